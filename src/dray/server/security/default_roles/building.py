"""Short ways to write roles and bindings. Lists are given as texts with spaces, `core` stands for the core group."""

from __future__ import annotations

from collections.abc import Iterable

from dray.api.generated.rbac import (
    AggregationRule,
    ClusterRole,
    ClusterRoleBinding,
    PolicyRule,
    Role,
    RoleBinding,
    RoleRef,
    Subject,
)
from dray.api.meta import LabelSelector, ObjectMeta
from dray.api.registry import CLUSTER_GROUP, DRAY_GROUP, RBAC_GROUP, RESOURCE_GROUP
from dray.api.well_known import SYSTEM_NAMESPACE
from dray.server.security.rbac import Stored

GROUP = RBAC_GROUP
API_VERSION = f"{GROUP}/v1"
AUTOUPDATE = "rbac.authorization.kubernetes.io/autoupdate"

READ = "get list watch"
WRITE = "create delete deletecollection patch update"
ANY = f"{READ} {WRITE}"

CORE = "core"
RESOURCE = RESOURCE_GROUP
DRAY = DRAY_GROUP
CLUSTER = CLUSTER_GROUP
STORAGE = "storage.k8s.io"
LEASES = "coordination.k8s.io"
AUTHENTICATION = "authentication.k8s.io"
AUTHORIZATION = "authorization.k8s.io"
CERTIFICATES = "certificates.k8s.io"
NETWORKING = "networking.k8s.io"

_DEFAULT_LABELS = {"kubernetes.io/bootstrapping": "rbac-defaults"}


def rule(verbs: str, groups: str, resources: str, names: str = "") -> PolicyRule:
    """Verbs on resources of groups, of all names unless some are given."""
    return PolicyRule(
        api_groups=tuple("" if group == CORE else group for group in groups.split()),
        resources=tuple(resources.split()),
        verbs=tuple(verbs.split()),
        resource_names=tuple(names.split()),
    )


def path_rule(verbs: str, paths: str) -> PolicyRule:
    """Verbs on paths that are no resources."""
    return PolicyRule(non_resource_urls=tuple(paths.split()), verbs=tuple(verbs.split()))


EVENTS = rule("create patch update", f"{CORE} events.k8s.io", "events")
"""What every component that reports what it does needs."""


def _metadata(name: str, namespace: str = "", labels: dict[str, str] | None = None) -> ObjectMeta:
    return ObjectMeta(
        name=name, namespace=namespace, labels=_DEFAULT_LABELS | (labels or {}), annotations={AUTOUPDATE: "true"}
    )


def cluster_role(name: str, *rules: PolicyRule, aggregate_to: str = "") -> ClusterRole:
    """A ClusterRole, part of the aggregated role `aggregate_to` if given."""
    return ClusterRole(
        kind="ClusterRole",
        api_version=API_VERSION,
        metadata=_metadata(name, labels=_part_of(aggregate_to)),
        rules=rules,
    )


def aggregated_role(name: str, aggregate_to: str = "") -> ClusterRole:
    """A ClusterRole that is the sum of those labelled to be part of it."""
    selector = LabelSelector(match_labels=_part_of(name))
    return ClusterRole(
        kind="ClusterRole",
        api_version=API_VERSION,
        metadata=_metadata(name, labels=_part_of(aggregate_to)),
        aggregation_rule=AggregationRule(cluster_role_selectors=(selector,)),
    )


def _part_of(aggregated: str) -> dict[str, str]:
    return {f"{GROUP}/aggregate-to-{aggregated}": "true"} if aggregated else {}


def system_role(name: str, *rules: PolicyRule) -> Role:
    """A Role in `kube-system`."""
    return Role(kind="Role", api_version=API_VERSION, metadata=_metadata(name, SYSTEM_NAMESPACE), rules=rules)


def users(*names: str) -> tuple[Subject, ...]:
    """Users as subjects of a binding."""
    return tuple(Subject(kind="User", api_group=GROUP, name=name) for name in names)


def groups(*names: str) -> tuple[Subject, ...]:
    """Groups as subjects of a binding."""
    return tuple(Subject(kind="Group", api_group=GROUP, name=name) for name in names)


def service_accounts(*names: str) -> tuple[Subject, ...]:
    """ServiceAccounts of `kube-system` as subjects of a binding."""
    return tuple(Subject(kind="ServiceAccount", namespace=SYSTEM_NAMESPACE, name=name) for name in names)


def cluster_binding(role: str, subjects: Iterable[Subject], name: str = "") -> ClusterRoleBinding:
    """Gives a ClusterRole to subjects everywhere; the binding has the name of the role unless told otherwise."""
    return ClusterRoleBinding(
        kind="ClusterRoleBinding",
        api_version=API_VERSION,
        metadata=_metadata(name or role),
        role_ref=RoleRef(api_group=GROUP, kind="ClusterRole", name=role),
        subjects=tuple(subjects),
    )


def system_binding(role: str, subjects: Iterable[Subject], name: str = "") -> RoleBinding:
    """Gives a Role of `kube-system` to subjects there."""
    return RoleBinding(
        kind="RoleBinding",
        api_version=API_VERSION,
        metadata=_metadata(name or role, SYSTEM_NAMESPACE),
        role_ref=RoleRef(api_group=GROUP, kind="Role", name=role),
        subjects=tuple(subjects),
    )


def controller(name: str, *rules: PolicyRule, reports: bool = True) -> tuple[Stored, Stored]:
    """A controller's role and its binding to the ServiceAccount of the controller's name in `kube-system`."""
    role = f"system:controller:{name}"
    return (
        cluster_role(role, *rules, *((EVENTS,) if reports else ())),
        cluster_binding(role, service_accounts(name)),
    )
