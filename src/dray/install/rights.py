"""The rights of an installation: those that dray's own server gives to the same components, and what else they need.

On dray's server a component follows objects as the user of the controller manager, who may list everything. Here it
follows them as itself, so what it follows is added. Kinds that may be in dray's own group are there, too.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from typing import Any, Final

from msgspec.structs import replace

from dray.api import codec
from dray.api.generated.rbac import ClusterRole, PolicyRule
from dray.api.well_known import SYSTEM_NAMESPACE
from dray.controllers.catalog import CATALOG
from dray.server.security.default_roles import default_objects
from dray.server.security.default_roles.building import CORE, DRAY, GROUP, LEASES, READ, RESOURCE, rule
from dray.server.security.default_roles.component_roles import SCHEDULER
from dray.server.security.default_roles.user_roles import READER

Document = dict[str, Any]

API_VERSION: Final = f"{GROUP}/v1"
PREFIX: Final = "system:controller:"
OURS: Final = ("resourceslicepatches", "devicetaintrules", "devicetaintrules/status")
"""What may be a custom resource in dray's own group."""

_FOLLOWED: Final = {
    # Budgets, and what taints, patches and claims come to.
    "device-taint-eviction-controller": (
        rule(READ, CORE, "nodes"),
        rule(READ, "policy", "poddisruptionbudgets"),
    ),
    "taint-eviction-controller": (
        rule(READ, RESOURCE, "resourceclaims resourceslices resourceslicepatches deviceclasses devicetaintrules"),
        rule(READ, "policy", "poddisruptionbudgets"),
    ),
}


@cache
def _role_rules() -> dict[str, tuple[PolicyRule, ...]]:
    return {obj.metadata.name: obj.rules for obj in default_objects() if isinstance(obj, ClusterRole)}


def scheduler_rules() -> Iterator[PolicyRule]:
    """What the scheduler needs, without leases."""
    for name in (SCHEDULER, "system:volume-scheduler"):
        yield from (one for one in _role_rules()[name] if LEASES not in one.api_groups)


def controller_rules(*accounts: str) -> Iterator[PolicyRule]:
    """What controllers need, by the accounts that they act as."""
    for account in accounts:
        yield from _role_rules()[f"{PREFIX}{account}"]
        yield from _FOLLOWED.get(account, ())


def cluster_rights(account: str, rules: Iterable[PolicyRule]) -> tuple[Document, Document]:
    """A ClusterRole, and its binding to a ServiceAccount of the installation's namespace."""
    name = account.replace("-", ":", 1)
    role = _role("ClusterRole", name, rules)
    subject = {"kind": "ServiceAccount", "name": account, "namespace": "${namespace}"}
    return role, _binding("ClusterRoleBinding", name, "ClusterRole", subject)


def lease_rights(account: str, namespace: str, lease: str) -> tuple[Document, Document]:
    """A Role for one lease, and its binding. A name cannot be asked for when something is created."""
    name = f"{account}-lease"
    rules = (rule("create", LEASES, "leases"), rule("get update watch", LEASES, "leases", names=lease))
    role = _role("Role", name, rules, namespace)
    subject = {"kind": "ServiceAccount", "name": account, "namespace": "${namespace}"}
    return role, _binding("RoleBinding", name, "Role", subject, namespace)


def reader() -> Document:
    """The ClusterRole for people who only look; admins bind it to whom they like."""
    return _role("ClusterRole", READER, _role_rules()[READER])


def account_roles() -> Iterator[Document]:
    """For controllers that each act as their own ServiceAccount in kube-system, what Kubernetes does not give them."""
    for account in dict.fromkeys(entry.account for entry in CATALOG.values()):
        if account not in _OF_KUBERNETES:
            name = f"dray:controller:{account}"
            yield _role("ClusterRole", name, _role_rules()[f"{PREFIX}{account}"])
            subject = {"kind": "ServiceAccount", "name": account, "namespace": SYSTEM_NAMESPACE}
            yield _binding("ClusterRoleBinding", name, "ClusterRole", subject)
    manager = {"kind": "User", "apiGroup": GROUP, "name": "system:kube-controller-manager"}
    lease = rule("get update watch", LEASES, "leases", names="dray-controllers")
    yield _role("Role", "dray-controllers-lease", (lease,), SYSTEM_NAMESPACE)
    yield _binding("RoleBinding", "dray-controllers-lease", "Role", manager, SYSTEM_NAMESPACE)


_OF_KUBERNETES: Final = frozenset(
    {
        "resource-claim-controller",
        "generic-garbage-collector",
        "namespace-controller",
        "pod-garbage-collector",
        "resourcequota-controller",
        "replicaset-controller",
        "deployment-controller",
        "daemon-set-controller",
        "statefulset-controller",
        "replication-controller",
        "job-controller",
        "cronjob-controller",
        "ttl-after-finished-controller",
        "disruption-controller",
        "service-account-controller",
        "podgroup-protection-controller",
        "resourcepoolstatusrequest-controller",
        "root-ca-cert-publisher",
        "clusterrole-aggregation-controller",
        "ephemeral-volume-controller",
        "persistent-volume-binder",
        "pvc-protection-controller",
        "pv-protection-controller",
        "endpoint-controller",
        "endpointslice-controller",
    }
)
"""Accounts for which Kubernetes has a role that is enough. That of device evictions is not: it knows no budgets."""


def _role(kind: str, name: str, rules: Iterable[PolicyRule], namespace: str = "") -> Document:
    return {
        "apiVersion": API_VERSION,
        "kind": kind,
        "metadata": _metadata(name, namespace),
        "rules": [codec.to_builtins(one) for one in _merged(_with_own_group(rules))],
    }


def _binding(kind: str, name: str, role_kind: str, subject: Document, namespace: str = "") -> Document:
    return {
        "apiVersion": API_VERSION,
        "kind": kind,
        "metadata": _metadata(name, namespace),
        "roleRef": {"apiGroup": GROUP, "kind": role_kind, "name": name},
        "subjects": [subject],
    }


def _metadata(name: str, namespace: str) -> Document:
    labels = {"app.kubernetes.io/part-of": "dray"}
    return {"name": name, **({"namespace": namespace} if namespace else {}), "labels": labels}


def _with_own_group(rules: Iterable[PolicyRule]) -> Iterator[PolicyRule]:
    for one in rules:
        yield one
        ours = tuple(name for name in one.resources if name in OURS)
        if ours and RESOURCE in one.api_groups and DRAY not in one.api_groups:
            yield replace(one, api_groups=(DRAY,), resources=ours)


def _merged(rules: Iterable[PolicyRule]) -> Sequence[PolicyRule]:
    """Rules with the same verbs on the same groups become one, and none is there twice."""
    found: dict[tuple[Any, ...], dict[str, None]] = {}
    for one in rules:
        key = (one.api_groups, one.verbs, one.resource_names, one.non_resource_urls)
        found.setdefault(key, {}).update(dict.fromkeys(one.resources))
    return [
        PolicyRule(
            api_groups=groups, verbs=verbs, resource_names=names, non_resource_urls=urls, resources=tuple(resources)
        )
        for (groups, verbs, names, urls), resources in found.items()
    ]
