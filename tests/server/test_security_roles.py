"""What the default roles give on a running server: to people, to components, to monitors. Rights count at once."""

import pytest

from dray.api.kinds import CLUSTER_ROLES
from dray.api.registry import by_kind
from dray.server.local import component_identity
from dray.server.security.authorization import Attributes
from dray.server.security.identity import authenticated
from local_server import local_server, refused, typed
from server_objects import RBAC, binding, claim, node_slice, pod, role, rule

PODS = by_kind("v1", "Pod")
CLAIMS = by_kind("resource.k8s.io/v1", "ResourceClaim")
BINDINGS = by_kind(f"{RBAC}/v1", "RoleBinding")
RESOURCE = "resource.k8s.io"


COMPONENTS = [
    # component, what it may do, what it may not
    (
        "resource-claim-controller",
        ["create resourceclaims", "update resourceclaims", "update resourceclaims/status", "patch pods/status"],
        ["delete pods", "create resourceslices", "get secrets", "update devicetaintrules/status"],
    ),
    (
        "device-taint-eviction-controller",
        ["delete pods", "patch pods/status", "list resourceslices", "patch devicetaintrules/status", "create events"],
        ["create pods", "update resourceclaims", "update resourceclaims/status", "create devicetaintrules"],
    ),
    (
        "kube-scheduler",
        ["create pods/binding", "update resourceclaims/status", "list resourceslicepatches", "patch pods/status"],
        ["create pods", "update resourceslices", "update nodes", "get secrets"],
    ),
    (
        "taint-eviction-controller",
        ["delete pods", "patch pods/status", "watch nodes", "patch nodes/status"],
        ["update nodes", "patch nodes", "delete resourceclaims"],
    ),
    (
        "node-lifecycle-controller",
        ["update nodes", "patch nodes/status", "list leases"],
        ["delete pods", "delete nodes", "update resourceclaims/status"],
    ),
    (
        "placement-controller",
        ["update placements/status", "create placementdecisions", "list managedclusters"],
        ["update managedclusters", "update placements", "list pods"],
    ),
]
GROUPS = {
    "resourceclaims": RESOURCE,
    "resourceslices": RESOURCE,
    "resourceslicepatches": RESOURCE,
    "resourceclaimtemplates": RESOURCE,
    "devicetaintrules": RESOURCE,
    "leases": "coordination.k8s.io",
    "placements": "cluster.open-cluster-management.io",
    "placementdecisions": "cluster.open-cluster-management.io",
    "managedclusters": "cluster.open-cluster-management.io",
}


def attributes(text: str, namespace: str = "default") -> Attributes:
    verb, _, resource = text.partition(" ")
    plural, _, subresource = resource.partition("/")
    return Attributes(verb, GROUPS.get(plural, ""), plural, subresource, namespace, "x")


@pytest.mark.req("4381-143", "5055-135", "SVS-30", "implied-16")
async def test_components_have_their_own_rights_and_no_others() -> None:
    async with local_server() as server:
        for component, may, may_not in COMPONENTS:
            identity = component_identity(component)
            assert [text for text in may if not server.roles.allowed(identity, attributes(text)).allowed] == []
            assert [text for text in may_not if server.roles.allowed(identity, attributes(text)).allowed] == []


@pytest.mark.req("5055-135")
async def test_the_eviction_controller_works_with_its_own_rights_alone() -> None:
    async with local_server() as server:
        admin, controller = server.client(), server.component("device-taint-eviction-controller")
        await admin.create(pod("victim"))
        condition = {"type": "DisruptionTarget", "status": "True", "reason": "DeletionByDeviceTaintManager"}
        patch = {"status": {"conditions": [condition]}}
        await controller.patch(PODS, "default", "victim", patch, subresource="status")
        await controller.delete(PODS, "default", "victim")
        await refused(controller.create(pod("other")), "cannot")
        await refused(controller.create(node_slice("s", "n")), "cannot")


def test_an_unknown_component_is_said() -> None:
    with pytest.raises(ValueError, match=r"'nonsense'; there are .*resource-claim-controller"):
        component_identity("nonsense")


@pytest.mark.req("4381-188", "5027-39")
@pytest.mark.parametrize("name", ["admin", "edit", "view"])
async def test_roles_for_people_leave_the_status_of_claims_and_device_policy_alone(name: str) -> None:
    async with local_server() as server:
        await server.client().create(binding("team", name, "jane", "default"))
        jane = authenticated("jane")
        may = ["get resourceclaims", "list pods", *(["create resourceclaims", "delete pods"] if name != "view" else [])]
        may_not = [
            f"{verb} {resource}"
            for verb in ("create", "update", "patch", "delete")
            for resource in ("resourceclaims/status", "resourceslicepatches", "devicetaintrules", "resourceslices")
        ]
        assert [text for text in may if not server.roles.allowed(jane, attributes(text)).allowed] == []
        assert [text for text in may_not if server.roles.allowed(jane, attributes(text)).allowed] == []
        client = server.client(jane)
        status = {"status": {"reservedFor": [{"resource": "pods", "name": "p", "uid": "u"}]}}
        await refused(client.patch(CLAIMS, "default", "c", status, subresource="status"), "cannot")
        await refused(client.list(PODS, "kube-system"), "cannot")


@pytest.mark.req("5027-39")
async def test_an_admin_of_the_cluster_writes_patches() -> None:
    async with local_server() as server:
        await server.client().create(binding("root", "cluster-admin", "root"))
        patch = {
            "apiVersion": f"{RESOURCE}/v1alpha3",
            "kind": "ResourceSlicePatch",
            "metadata": {"name": "fix"},
            "spec": {
                "devices": {"filter": {"driver": "gpu.example.com"}, "attributes": {"a.example.com/x": {"int": 1}}}
            },
        }
        kind = by_kind(patch["apiVersion"], patch["kind"])  # type: ignore[arg-type]
        made = await server.client(authenticated("root")).create(typed(patch))
        assert (await server.client().get(kind, "", "fix")).metadata.uid == made.metadata.uid


@pytest.mark.req("5055-127")
async def test_a_health_monitor_takes_devices_offline_through_rules_alone() -> None:
    async with local_server() as server:
        await server.client().create(binding("monitor", "system:device-health-monitor", "monitor"))
        monitor = server.client(authenticated("monitor"))
        rule_ = {
            "apiVersion": f"{RESOURCE}/v1",
            "kind": "DeviceTaintRule",
            "metadata": {"name": "sick"},
            "spec": {
                "deviceSelector": {"driver": "gpu.example.com", "device": "gpu-0"},
                "taint": {"key": "example.com/unhealthy", "effect": "NoExecute"},
            },
        }
        made = await monitor.create(typed(rule_))
        await monitor.delete(by_kind(f"{RESOURCE}/v1", "DeviceTaintRule"), "", made.metadata.name)
        await refused(monitor.list(by_kind(f"{RESOURCE}/v1", "ResourceSlice")), "cannot")
        await refused(monitor.create(node_slice("s", "n")), "cannot")
        await refused(monitor.list(PODS), "cannot")


@pytest.mark.req("4381-183")
async def test_who_may_not_create_claims_may_still_use_templates() -> None:
    """The controller makes the claim, with its own rights: documented in KEP-4381, and so it is."""

    async with local_server() as server:
        admin = server.client()
        await admin.create(role("pods", rule("create get", "pods"), namespace="default"))
        await admin.create(binding("pods", "pods", "jane", "default", "Role"))
        jane = server.client(authenticated("jane"))
        await refused(jane.create(claim("direct")), "cannot")
        claims = [{"name": "gpu", "resourceClaimTemplateName": "template"}]
        made = await jane.create(pod("indirect", resourceClaims=claims))
        assert made.spec.resource_claims[0].resource_claim_template_name == "template"
        await server.component("resource-claim-controller").create(claim("indirect-gpu-x"))


async def test_rights_come_and_go_with_the_binding_at_once() -> None:
    async with local_server() as server:
        admin, jane = server.client(), server.client(authenticated("jane"))
        for _ in range(3):
            await refused(jane.list(PODS, "default"), "cannot")
            await admin.create(binding("b", "view", "jane", "default"))
            await jane.list(PODS, "default")
            await admin.delete(BINDINGS, "default", "b")
        await admin.create(role("reader", rule("list", "pods")))
        await admin.create(binding("b", "reader", "jane"))
        await jane.list(PODS)
        await admin.patch(CLUSTER_ROLES, "", "reader", {"rules": []})
        await refused(jane.list(PODS), "cannot")


async def test_a_right_to_one_object_is_none_to_others() -> None:
    async with local_server() as server:
        admin, jane = server.client(), server.client(authenticated("jane"))
        for name in ("hers", "theirs"):
            await admin.create(pod(name))
        await admin.create(role("one", {**rule("get", "pods"), "resourceNames": ["hers"]}, namespace="default"))
        await admin.create(binding("one", "one", "jane", "default", "Role"))
        for _ in range(2):
            assert (await jane.get(PODS, "default", "hers")).metadata.name == "hers"
            await refused(jane.get(PODS, "default", "theirs"), "cannot")


async def test_roles_survive_a_restart() -> None:
    async with local_server() as first:
        await first.client().create(binding("b", "view", "jane", "default"))
        backend = first.backend
    async with local_server(backend=backend) as second:
        await second.client(authenticated("jane")).list(PODS, "default")
