"""What the default roles allow, and what they must not."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from dray.api.generated.rbac import ClusterRole, ClusterRoleBinding
from dray.api.registry import kinds
from dray.server.security.authorization import Attributes
from dray.server.security.default_roles import default_objects
from dray.server.security.default_roles.building import (
    AUTOUPDATE,
    cluster_binding,
    cluster_role,
    rule,
    users,
)
from dray.server.security.default_roles.node_roles import DRIVER_ROLE, MONITOR_ROLE
from dray.server.security.default_roles.reconcile import reconciled
from dray.server.security.identity import ANONYMOUS_IDENTITY, Identity, authenticated, service_account_groups
from dray.server.security.rbac import Rbac, Stored

RESOURCE = "resource.k8s.io"
CLUSTER = "cluster.open-cluster-management.io"
EVERY_VERB = ("get", "list", "watch", "create", "update", "patch", "delete", "deletecollection")
WRITES = ("create", "update", "patch", "delete", "deletecollection")
READS = ("get", "list", "watch")


def controller(name: str) -> Identity:
    return authenticated(f"system:serviceaccount:kube-system:{name}", service_account_groups("kube-system"))


def bound(role: str) -> tuple[Rbac, Identity]:
    """An identity that has one default role, everywhere, besides what everybody has."""
    return Rbac([*default_objects(), cluster_binding(role, users("somebody"), name="test")]), authenticated("somebody")


def verbs(rbac: Rbac, identity: Identity, resource: str, group: str = "", namespace: str = "ns") -> set[str]:
    """Those of the usual verbs that an identity may use on a resource."""
    name, _, sub = resource.partition("/")
    return {
        verb for verb in EVERY_VERB if rbac.allowed(identity, Attributes(verb, group, name, sub, namespace)).allowed
    }


def everything_allowed(rbac: Rbac, identity: Identity) -> dict[str, set[str]]:
    """All that an identity may do to any kind the server knows, events apart."""
    found = {}
    for kind in kinds():
        names = [kind.plural, *(f"{kind.plural}/{subresource.name}" for subresource in kind.subresources)]
        for name in names:
            allowed = verbs(rbac, identity, name, kind.group)
            if allowed and kind.plural not in ("events", "selfsubjectaccessreviews", "selfsubjectrulesreviews"):
                found[f"{name}.{kind.group}" if kind.group else name] = allowed
    found.pop("selfsubjectreviews.authentication.k8s.io", None)
    return found


@pytest.mark.parametrize("path", ["/livez", "/readyz", "/healthz", "/version"])
def test_anonymous_sees_health_and_version(default_rbac: Rbac, path: str) -> None:
    assert default_rbac.allowed(ANONYMOUS_IDENTITY, Attributes("get", path=path)).allowed
    assert not default_rbac.allowed(ANONYMOUS_IDENTITY, Attributes("post", path=path)).allowed


def test_anonymous_sees_nothing_else(default_rbac: Rbac) -> None:
    assert everything_allowed(default_rbac, ANONYMOUS_IDENTITY) == {}
    for path in ("/", "/api", "/apis", "/metrics", "/openapi/v3", "/livez/ping", "/versions"):
        assert not default_rbac.allowed(ANONYMOUS_IDENTITY, Attributes("get", path=path)).allowed
    review = Attributes("create", "authorization.k8s.io", "selfsubjectaccessreviews")
    assert not default_rbac.allowed(ANONYMOUS_IDENTITY, review).allowed


def test_everybody_known_can_discover_and_ask(default_rbac: Rbac) -> None:
    user = authenticated("alice")
    assert everything_allowed(default_rbac, user) == {}
    for path in ("/api", "/apis", "/apis/apps/v1", "/openapi/v3", "/version", "/readyz"):
        assert default_rbac.allowed(user, Attributes("get", path=path)).allowed
    assert not default_rbac.allowed(user, Attributes("get", path="/metrics")).allowed
    for group, resource in (
        ("authorization.k8s.io", "selfsubjectaccessreviews"),
        ("authorization.k8s.io", "selfsubjectrulesreviews"),
        ("authentication.k8s.io", "selfsubjectreviews"),
    ):
        assert default_rbac.allowed(user, Attributes("create", group, resource)).allowed


def test_cluster_admin_may_do_everything() -> None:
    rbac, user = bound("cluster-admin")
    assert all(verbs(rbac, user, kind.plural, kind.group) == set(EVERY_VERB) for kind in kinds())
    assert rbac.allowed(user, Attributes("get", path="/metrics")).allowed


@pytest.mark.parametrize(
    ("role", "resource", "group", "expected"),
    [
        ("view", "pods", "", READS),
        ("view", "secrets", "", ()),
        ("view", "resourceclaims", RESOURCE, READS),
        ("view", "resourceclaims/status", RESOURCE, READS),
        ("view", "placements", CLUSTER, READS),
        ("edit", "pods", "", EVERY_VERB),
        ("edit", "secrets", "", EVERY_VERB),
        ("edit", "resourceclaims", RESOURCE, EVERY_VERB),
        ("edit", "resourceclaimtemplates", RESOURCE, EVERY_VERB),
        ("edit", "placements", CLUSTER, EVERY_VERB),
        ("edit", "managedclustersetbindings", CLUSTER, READS),
        ("edit", "roles", "rbac.authorization.k8s.io", ()),
        ("edit", "resourcequotas", "", READS),
        ("admin", "rolebindings", "rbac.authorization.k8s.io", EVERY_VERB),
        ("admin", "resourceclaims", RESOURCE, EVERY_VERB),
        ("admin", "deployments", "apps", EVERY_VERB),
        ("admin", "nodes", "", ()),
        ("admin", "clusterroles", "rbac.authorization.k8s.io", ()),
    ],
)
def test_user_roles(role: str, resource: str, group: str, expected: tuple[str, ...]) -> None:
    rbac, user = bound(role)
    assert verbs(rbac, user, resource, group) == set(expected)


@pytest.mark.req("4381-188")
@pytest.mark.parametrize("role", ["admin", "edit", "view"])
def test_users_do_not_write_the_status_of_claims(role: str) -> None:
    rbac, user = bound(role)
    assert verbs(rbac, user, "resourceclaims/status", RESOURCE) == set(READS)
    assert verbs(rbac, user, "resourceclaims/binding", RESOURCE) == set()


@pytest.mark.req("5027-39")
@pytest.mark.parametrize("resource", ["resourceslicepatches", "devicetaintrules", "resourceslices", "deviceclasses"])
@pytest.mark.parametrize("role", ["admin", "edit", "view"])
def test_users_do_not_change_devices(role: str, resource: str) -> None:
    rbac, user = bound(role)
    assert verbs(rbac, user, resource, RESOURCE).isdisjoint(WRITES)
    rbac, admin = bound("cluster-admin")
    assert verbs(rbac, admin, resource, RESOURCE) == set(EVERY_VERB)


@pytest.mark.req("4381-180")
def test_a_driver_has_exactly_what_it_needs() -> None:
    rbac, driver = bound(DRIVER_ROLE)
    assert everything_allowed(rbac, driver) == {
        "resourceslices.resource.k8s.io": {*EVERY_VERB} - {"deletecollection"},
        "resourceclaims.resource.k8s.io": {"get"},
        "nodes": {"get"},
    }


@pytest.mark.req("4381-187")
def test_drivers_on_one_node_are_not_separated_by_roles() -> None:
    rbac, driver = bound(DRIVER_ROLE)
    assert rbac.allowed(driver, Attributes("update", RESOURCE, "resourceslices", name="of-another-driver")).allowed


@pytest.mark.req("5055-127")
def test_a_health_monitor_needs_rules_only() -> None:
    rbac, monitor = bound(MONITOR_ROLE)
    assert everything_allowed(rbac, monitor) == {
        "devicetaintrules.resource.k8s.io": {*EVERY_VERB} - {"deletecollection"}
    }


@pytest.mark.req("5055-135", "SVS-30")
def test_the_device_taint_eviction_controller_has_exactly_what_it_needs(default_rbac: Rbac) -> None:
    assert everything_allowed(default_rbac, controller("device-taint-eviction-controller")) == {
        "namespaces": set(READS),
        "pods": {*READS, "delete"},
        "pods/status": {"patch", "update"},
        "pods/eviction": {"create"},
        "resourceclaims.resource.k8s.io": set(READS),
        "resourceslices.resource.k8s.io": set(READS),
        "resourceslicepatches.resource.k8s.io": set(READS),
        "deviceclasses.resource.k8s.io": set(READS),
        "devicetaintrules.resource.k8s.io": set(READS),
        "devicetaintrules/status.resource.k8s.io": {"patch", "update"},
        "podgroups.scheduling.k8s.io": set(READS),
    }


@pytest.mark.req("4381-143")
def test_the_claim_controller_creates_and_updates_claims(default_rbac: Rbac) -> None:
    identity = controller("resource-claim-controller")
    assert {"create", "update", "patch", "delete"} <= verbs(default_rbac, identity, "resourceclaims", RESOURCE)
    assert verbs(default_rbac, identity, "resourceclaims/status", RESOURCE) == {"patch", "update"}
    assert verbs(default_rbac, identity, "resourceclaimtemplates", RESOURCE) == set(READS)
    assert verbs(default_rbac, identity, "pods") == set(READS)
    assert verbs(default_rbac, identity, "resourceslices", RESOURCE) == set()


@pytest.mark.req("4381-183")
def test_claims_from_templates_need_no_right_to_create_claims() -> None:
    """Documented by the seed: whoever may create pods gets claims through templates, made by the controller."""
    rbac = Rbac(
        [
            *default_objects(),
            cluster_role("pods-only", rule("create", "core", "pods")),
            cluster_binding("pods-only", users("alice")),
        ]
    )
    alice = authenticated("alice")
    assert "create" in verbs(rbac, alice, "pods")
    assert "create" not in verbs(rbac, alice, "resourceclaims", RESOURCE)
    assert "create" in verbs(rbac, controller("resource-claim-controller"), "resourceclaims", RESOURCE)


@pytest.mark.req("implied-16")
@pytest.mark.parametrize(
    ("identity", "resource", "group", "needed", "denied"),
    [
        (authenticated("system:kube-scheduler"), "pods/binding", "", ("create",), ("delete",)),
        (authenticated("system:kube-scheduler"), "resourceclaims/status", RESOURCE, ("update", "patch"), ()),
        (authenticated("system:kube-scheduler"), "resourceslices", RESOURCE, READS, WRITES),
        (authenticated("system:kube-scheduler"), "resourceslicepatches", RESOURCE, READS, WRITES),
        (authenticated("system:kube-scheduler"), "storageclasses", "storage.k8s.io", READS, WRITES),
        (authenticated("system:kube-scheduler"), "secrets", "", (), EVERY_VERB),
        (authenticated("system:kube-controller-manager"), "pods", "", ("list", "watch"), WRITES),
        (controller("node-lifecycle-controller"), "nodes", "", ("update", "patch"), ("create", "delete")),
        (controller("node-lifecycle-controller"), "pods", "", READS, WRITES),
        (controller("taint-eviction-controller"), "pods", "", ("delete",), ("create", "update")),
        (controller("taint-eviction-controller"), "nodes", "", READS, WRITES),
        (controller("pod-garbage-collector"), "pods", "", ("delete",), ("create", "update")),
        (controller("generic-garbage-collector"), "resourceslices", RESOURCE, ("delete", "patch"), ("create",)),
        (controller("namespace-controller"), "resourceclaims", RESOURCE, ("deletecollection",), ("create", "update")),
        (controller("resourcequota-controller"), "resourcequotas/status", "", ("update",), ("delete",)),
        (controller("resourcequota-controller"), "pods", "", ("list",), WRITES),
        (controller("replicaset-controller"), "pods", "", ("create", "delete"), ()),
        (controller("deployment-controller"), "replicasets", "apps", ("create", "update"), ()),
        (controller("deployment-controller"), "pods", "", READS, ("create", "delete")),
        (controller("job-controller"), "pods", "", ("create", "delete"), ()),
        (controller("placement-controller"), "placementdecisions", CLUSTER, ("create", "update"), ()),
        (controller("placement-controller"), "managedclusters", CLUSTER, READS, WRITES),
        (controller("managed-cluster-controller"), "managedclusters", CLUSTER, ("update",), ("create", "delete")),
    ],
)
def test_components_have_least_privilege(
    default_rbac: Rbac, identity: Identity, resource: str, group: str, needed: tuple[str, ...], denied: tuple[str, ...]
) -> None:
    allowed = verbs(default_rbac, identity, resource, group)
    assert set(needed) <= allowed
    assert allowed.isdisjoint(denied)


def test_only_the_scheduler_and_the_claim_controller_write_the_status_of_claims() -> None:
    """4381-188, seen from the other side: of all named roles, beyond those that may write everything."""
    question = Attributes("update", RESOURCE, "resourceclaims", "status", "ns")
    writers = set()
    for obj in default_objects():
        if isinstance(obj, ClusterRoleBinding):
            rbac = Rbac([*(role for role in default_objects() if isinstance(role, ClusterRole)), obj])
            subject = obj.subjects[0]
            user = {"User": subject.name, "ServiceAccount": f"system:serviceaccount:kube-system:{subject.name}"}
            groups = (subject.name,) if subject.kind == "Group" else ()
            if rbac.allowed(Identity(user.get(subject.kind, "x"), groups), question).allowed:
                writers.add(obj.metadata.name)
    assert writers == {
        "cluster-admin",
        "system:kube-scheduler",
        "system:controller:resource-claim-controller",
        "system:controller:generic-garbage-collector",
    }


def test_leader_election_is_limited_to_the_system_namespace(default_rbac: Rbac) -> None:
    scheduler = authenticated("system:kube-scheduler")
    assert {"get", "create", "update"} <= verbs(default_rbac, scheduler, "leases", "coordination.k8s.io", "kube-system")
    assert "update" not in verbs(default_rbac, scheduler, "leases", "coordination.k8s.io", "kube-node-lease")


def test_names_are_unique_and_every_binding_finds_its_role() -> None:
    objects = default_objects()
    keys = [(obj.kind, obj.metadata.namespace, obj.metadata.name) for obj in objects]
    assert len(set(keys)) == len(keys)
    rbac = Rbac(objects)
    bindings = [obj for obj in objects if obj.kind.endswith("Binding")]
    assert all(rbac.role_rules(obj.role_ref, obj.metadata.namespace) for obj in bindings)  # type: ignore[union-attr]


def test_the_system_node_role_is_bound_to_nodes(default_rbac: Rbac) -> None:
    node = authenticated("system:node:n1", ("system:nodes",))
    assert verbs(default_rbac, node, "resourceclaims", RESOURCE) == {"get"}
    assert verbs(default_rbac, node, "resourceclaims/status", RESOURCE) == set()
    assert verbs(default_rbac, node, "resourceslices", RESOURCE) == set(EVERY_VERB)
    assert verbs(default_rbac, node, "deviceclasses", RESOURCE) == set()


class TestReconcile:
    wanted = cluster_role("r", rule("get list", "core", "pods"), rule("get", "core", "nodes"))

    def test_a_missing_default_is_created(self) -> None:
        assert reconciled(None, self.wanted) is self.wanted

    def test_what_is_complete_stays(self) -> None:
        assert reconciled(self.wanted, self.wanted) is None
        larger = replace(self.wanted, rules=(rule("*", "*", "*"),))
        assert reconciled(larger, self.wanted) is None

    def test_missing_rules_are_added_and_others_kept(self) -> None:
        own = rule("get", "core", "secrets")
        stored = replace(self.wanted, rules=(own, rule("get list", "core", "pods")))
        updated = reconciled(stored, self.wanted)
        assert isinstance(updated, ClusterRole)
        assert updated.rules == (*stored.rules, rule("get", "core", "nodes"))

    def test_an_admin_may_keep_a_role_for_themselves(self) -> None:
        metadata = replace(self.wanted.metadata, annotations={AUTOUPDATE: "false"})
        assert reconciled(replace(self.wanted, metadata=metadata, rules=()), self.wanted) is None

    def test_missing_subjects_are_added(self) -> None:
        wanted = cluster_binding("r", users("a", "b"))
        updated = reconciled(replace(wanted, subjects=users("c", "b")), wanted)
        assert isinstance(updated, ClusterRoleBinding)
        assert updated.subjects == users("c", "b", "a")
        other = cluster_binding("other", users("c"), name="r")
        assert reconciled(other, wanted) is None

    @pytest.mark.parametrize("obj", default_objects(), ids=lambda obj: f"{obj.kind}/{obj.metadata.name}")
    def test_defaults_are_stable(self, obj: Stored) -> None:
        assert reconciled(obj, obj) is None
