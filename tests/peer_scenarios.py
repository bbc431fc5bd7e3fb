"""What a control plane for devices must do, whoever it is made of; each scenario has a corner of its own (`World`)."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import peer_scenarios_of_claims
import peer_scenarios_of_controllers
import peer_scenarios_of_scheduling
import peer_scenarios_of_workloads
from patience import eventually
from peer_world import RESOURCE, Body, World


def pod_gets_a_device_from_a_template(world: World) -> None:
    world.template("t")
    world.pod("p", template="t")
    node = world.bound("p")
    (claim,) = world.get("resourceclaims", root=RESOURCE)["items"]
    assert claim["metadata"]["ownerReferences"][0]["name"] == "p"
    assert claim["status"]["allocation"]["devices"]["results"][0]["pool"] == node
    assert claim["status"]["reservedFor"][0]["name"] == "p"


def devices_are_given_once(world: World) -> None:
    world.template("t", count=2)
    for name in "abc":
        world.pod(name, template="t")
    eventually(lambda: sum(bool(world.node_of(name)) for name in "abc") == 2)
    waiting = next(name for name in "abc" if not world.node_of(name))
    world.refused(waiting)


def a_released_device_is_given_again(world: World) -> None:
    world.template("t", count=2)
    for name in "abc":
        world.pod(name, template="t")
    eventually(lambda: sum(bool(world.node_of(name)) for name in "abc") == 2)
    waiting = next(name for name in "abc" if not world.node_of(name))
    world.kill(next(name for name in "abc" if name != waiting))
    world.bound(waiting)


def a_selector_finds_its_device(world: World) -> None:
    world.claim("c", f'device.attributes["{world.driver}"].model == "m1"')
    world.pod("p", claim="c")
    world.bound("p")
    assert [device for _, device in world.devices_of("c")] == ["gpu-1"]


def a_selector_that_nothing_matches_keeps_a_pod_waiting(world: World) -> None:
    world.claim("c", f'device.attributes["{world.driver}"].index > 7')
    world.pod("p", claim="c")
    assert "cannot allocate all claims" in world.refused("p")


def pods_share_a_claim(world: World) -> None:
    world.claim("c")
    world.pod("a", claim="c")
    world.pod("b", claim="c")
    assert world.bound("a") == world.bound("b")
    claim = eventually(lambda: world.get("resourceclaims", "c", RESOURCE))
    assert {one["name"] for one in claim["status"]["reservedFor"]} == {"a", "b"}


def a_claim_is_free_after_its_pods(world: World) -> None:
    world.claim("c")
    world.pod("p", claim="c")
    world.bound("p")
    world.kill("p")
    eventually(lambda: not world.devices_of("c"), "the claim was not deallocated")


def claims_of_gone_pods_go(world: World) -> None:
    world.template("t")
    world.pod("p", template="t")
    world.bound("p")
    world.kill("p")
    eventually(lambda: not world.get("resourceclaims", root=RESOURCE)["items"], "the claim is still there")


def a_rule_keeps_pods_away(world: World) -> None:
    rule = world.rule("NoSchedule", pool=world.nodes[0])
    world.claim("c", count=2)
    world.pod("p", claim="c")
    assert world.bound("p") == world.nodes[1]
    world.claim("d", count=2)
    world.pod("q", claim="d")
    world.refused("q")
    world.server.ask("DELETE", rule)
    assert world.bound("q") == world.nodes[0]


def a_rule_evicts(world: World) -> None:
    world.claim("c")
    world.pod("p", claim="c")
    ((pool, device),) = [pair for _ in [world.bound("p")] for pair in world.devices_of("c")]
    world.rule("NoExecute", pool=pool, device=device)
    eventually(lambda: world.leaving("p"), "the pod was not evicted")


def tolerating_pods_stay(world: World) -> None:
    # The effect is named: kube-controller-manager evicts where a toleration has none, although it stands for all.
    toleration = {"operator": "Exists", "key": "example.com/broken", "effect": "NoExecute"}
    exactly = {"deviceClassName": world.name, "allocationMode": "ExactCount", "count": 1, "tolerations": [toleration]}
    spec = {"devices": {"requests": [{"name": "r", "exactly": exactly}]}}
    path = f"{RESOURCE}/namespaces/{world.name}/resourceclaims"
    world.create(path, "resource.k8s.io/v1", "ResourceClaim", "calm", spec)
    world.claim("c")
    world.pod("stays", claim="calm")
    world.pod("goes", claim="c")
    world.bound("stays")
    world.bound("goes")
    world.rule("NoExecute")
    eventually(lambda: world.leaving("goes"), "the pod was not evicted")
    assert not world.leaving("stays")


def a_tainted_node_is_emptied(world: World) -> None:
    world.pod("p")
    node = world.bound("p")
    taint = {"key": "example.com/out", "effect": "NoExecute"}
    world.merge(f"/api/v1/nodes/{node}", {"spec": {"taints": [taint]}})
    eventually(lambda: world.leaving("p"), "the pod was not evicted")
    world.pod("q")
    assert world.bound("q") != node


def a_cordoned_node_gets_nothing(world: World) -> None:
    world.merge(f"/api/v1/nodes/{world.nodes[0]}", {"spec": {"unschedulable": True}})
    world.template("t", count=2)
    world.pod("p", template="t")
    assert world.bound("p") == world.nodes[1]
    world.pod("q", template="t")
    world.refused("q")


def the_first_alternative_that_fits_is_taken(world: World) -> None:
    def alternative(name: str, count: int) -> Body:
        return {"name": name, "deviceClassName": world.name, "allocationMode": "ExactCount", "count": count}

    request = {"name": "r", "firstAvailable": [alternative("many", 3), alternative("two", 2)]}
    path = f"{RESOURCE}/namespaces/{world.name}/resourceclaims"
    world.create(path, "resource.k8s.io/v1", "ResourceClaim", "c", {"devices": {"requests": [request]}})
    world.pod("p", claim="c")
    world.bound("p")
    assert len(world.devices_of("c")) == 2


def a_deployment_gets_pods_with_devices(world: World) -> None:
    world.template("t")
    labels = {"app": "x"}
    pod = {
        "containers": [{"name": "c", "image": "i", "resources": {"claims": [{"name": "c"}]}}],
        "nodeSelector": {"world": world.name},
        "resourceClaims": [{"name": "c", "resourceClaimTemplateName": "t"}],
    }
    template = {"metadata": {"labels": labels}, "spec": pod}
    spec = {"replicas": 4, "selector": {"matchLabels": labels}, "template": template}
    world.create(f"/apis/apps/v1/namespaces/{world.name}/deployments", "apps/v1", "Deployment", "d", spec)

    def placed() -> bool:
        return sum(bool(one["spec"].get("nodeName")) for one in world.get("pods")["items"]) == 4

    eventually(placed, "not all pods have nodes")
    taken = [
        (result["pool"], result["device"])
        for claim in world.get("resourceclaims", root=RESOURCE)["items"]
        for result in claim["status"]["allocation"]["devices"]["results"]
    ]
    assert len(set(taken)) == 4


def a_job_gets_a_pod(world: World) -> None:
    world.template("t")
    pod = {
        "containers": [{"name": "c", "image": "i", "resources": {"claims": [{"name": "c"}]}}],
        "nodeSelector": {"world": world.name},
        "restartPolicy": "Never",
        "resourceClaims": [{"name": "c", "resourceClaimTemplateName": "t"}],
    }
    spec = {"template": {"spec": pod}}
    world.create(f"/apis/batch/v1/namespaces/{world.name}/jobs", "batch/v1", "Job", "j", spec)
    eventually(lambda: any(one["spec"].get("nodeName") for one in world.get("pods")["items"]), "no pod has a node")


def a_namespace_is_emptied(world: World) -> None:
    world.template("t")
    world.claim("c")
    world.server.ask("DELETE", f"/api/v1/namespaces/{world.name}")
    eventually(lambda: world.server.ask("GET", f"/api/v1/namespaces/{world.name}") is None, "it is still there")


def gated_pods_wait(world: World) -> None:
    world.claim("c")
    world.pod("p", claim="c", schedulingGates=[{"name": "example.com/later"}])
    world.claim("d")
    world.pod("q", claim="d")
    world.bound("q")
    assert not world.node_of("p")
    world.merge(f"/api/v1/namespaces/{world.name}/pods/p", {"spec": {"schedulingGates": []}})
    world.bound("p")


def scenarios() -> Iterator[Callable[[World], None]]:
    """All of them, in the order in which they are written."""
    more = (
        peer_scenarios_of_claims,
        peer_scenarios_of_scheduling,
        peer_scenarios_of_workloads,
        peer_scenarios_of_controllers,
    )
    for found in [*globals().values(), *(each for module in more for each in vars(module).values())]:
        is_one = callable(found) and getattr(found, "__annotations__", {}) == {"world": "World", "return": "None"}
        if is_one and not found.__name__.startswith("_"):
            yield found
