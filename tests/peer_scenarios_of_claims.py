"""What claims get, keep and give back."""

from __future__ import annotations

from typing import Any

from patience import eventually
from peer_world import RESOURCE, Body, World

VERSION = "resource.k8s.io/v1"


def _exactly(world: World, **more: Any) -> Body:
    return {"deviceClassName": world.name, "allocationMode": "ExactCount", "count": 1, **more}


def _claim(world: World, name: str, *requests: Body, **devices: Any) -> str:
    """Makes a claim; its path."""
    path = f"{RESOURCE}/namespaces/{world.name}/resourceclaims"
    named = [{"name": f"r{number}", "exactly": request} for number, request in enumerate(requests)]
    world.create(path, VERSION, "ResourceClaim", name, {"devices": {"requests": named, **devices}})
    return f"{path}/{name}"


def _publish(world: World, name: str, *devices: Body, count: int = 1, **spec: Any) -> None:
    """A driver publishes devices of a pool, with all nodes if nothing else is said."""
    pool = {"name": name.partition("-more")[0], "generation": 1, "resourceSliceCount": count}
    where = spec if {"nodeName", "nodeSelector", "perDeviceNodeSelection"} & {*spec} else {"allNodes": True, **spec}
    content: Body = {"driver": world.driver, "pool": pool, **({"devices": list(devices)} if devices else {}), **where}
    world.create(f"{RESOURCE}/resourceslices", VERSION, "ResourceSlice", name, content)


def _two_pods(world: World, *spec: Any, **more: Any) -> None:
    for name in "ab":
        world.pod(name, *spec, **more)


def all_devices_of_a_node_are_given(world: World) -> None:
    _claim(world, "c", {"deviceClassName": world.name, "allocationMode": "All"})
    world.pod("p", claim="c")
    node = world.bound("p")
    assert sorted(world.devices_of("c")) == [(node, "gpu-0"), (node, "gpu-1")]


def two_requests_get_two_devices(world: World) -> None:
    _claim(world, "c", _exactly(world), _exactly(world))
    world.pod("p", claim="c")
    world.bound("p")
    assert len(set(world.devices_of("c"))) == 2


def two_claims_of_a_pod_are_on_its_node(world: World) -> None:
    world.claim("c")
    world.claim("d")
    names = [{"name": name, "resourceClaimName": name} for name in "cd"]
    world.pod("p", resourceClaims=names)
    node = world.bound("p")
    assert {pool for name in "cd" for pool, _ in world.devices_of(name)} == {node}


def devices_that_must_be_alike_are_not_mixed(world: World) -> None:
    constraint = {"matchAttribute": f"{world.driver}/model"}
    _claim(world, "c", _exactly(world, count=2), constraints=[constraint])
    world.pod("p", claim="c")
    world.refused("p")


def a_missing_class_is_waited_for(world: World) -> None:
    later = f"{world.name}-later"
    _claim(world, "c", _exactly(world, deviceClassName=later))
    world.pod("p", claim="c")
    world.refused("p")
    world.create(f"{RESOURCE}/deviceclasses", VERSION, "DeviceClass", later, {})
    world.bound("p")


def a_missing_claim_is_waited_for(world: World) -> None:
    world.pod("p", claim="c")
    world.pod("other")
    world.bound("other")
    assert not world.node_of("p")
    world.claim("c")
    world.bound("p")


def a_missing_template_is_waited_for(world: World) -> None:
    world.pod("p", template="t")
    world.pod("other")
    world.bound("other")
    assert not world.node_of("p")
    world.template("t")
    world.bound("p")


def a_device_that_is_published_later_is_found(world: World) -> None:
    world.claim("c", f'"late" in device.attributes["{world.driver}"]')
    world.pod("p", claim="c")
    world.refused("p")
    _publish(world, f"{world.name}-late", {"name": "late", "attributes": {"late": {"bool": True}}})
    world.bound("p")
    assert world.devices_of("c") == [(f"{world.name}-late", "late")]


def a_pool_that_is_not_whole_gives_nothing(world: World) -> None:
    _publish(world, f"{world.name}-half", {"name": "h", "attributes": {"half": {"bool": True}}}, count=2)
    world.claim("c", f'"half" in device.attributes["{world.driver}"]')
    world.pod("p", claim="c")
    world.refused("p")
    _publish(world, f"{world.name}-half-more", {"name": "i", "attributes": {"other": {"bool": True}}}, count=2)
    world.bound("p")


def what_is_reached_from_everywhere_is_given_once(world: World) -> None:
    _publish(world, f"{world.name}-net", {"name": "n", "attributes": {"net": {"bool": True}}})
    for name in "cd":
        world.claim(name, f'"net" in device.attributes["{world.driver}"]')
    world.pod("p", claim="c")
    world.bound("p")
    world.pod("q", claim="d")
    world.refused("q")


def devices_with_a_node_selector_bring_pods_there(world: World) -> None:
    wanted = {"key": "kubernetes.io/hostname", "operator": "In", "values": [world.nodes[1]]}
    selector = {"nodeSelectorTerms": [{"matchExpressions": [wanted]}]}
    _publish(world, f"{world.name}-sel", {"name": "n", "attributes": {"sel": {"bool": True}}}, nodeSelector=selector)
    world.claim("c", f'"sel" in device.attributes["{world.driver}"]')
    world.pod("p", claim="c")
    assert world.bound("p") == world.nodes[1]


def partitions_share_what_their_card_has(world: World) -> None:
    pool = f"{world.name}-parts"
    _publish(
        world,
        f"{pool}-more",
        count=2,
        sharedCounters=[{"name": "card", "counters": {"memory": {"value": "4"}}}],
    )
    parts = [
        {
            "name": f"part-{number}",
            "attributes": {"part": {"bool": True}},
            "consumesCounters": [{"counterSet": "card", "counters": {"memory": {"value": "2"}}}],
        }
        for number in range(3)
    ]
    _publish(world, pool, *parts, count=2)
    for name in "cde":
        world.claim(name, f'"part" in device.attributes["{world.driver}"]')
        world.pod(f"p{name}", claim=name)
    eventually(lambda: sum(bool(world.node_of(f"p{name}")) for name in "cde") == 2)
    world.refused(next(f"p{name}" for name in "cde" if not world.node_of(f"p{name}")))


def a_device_is_shared_by_capacity(world: World) -> None:
    device = {
        "name": "link",
        "allowMultipleAllocations": True,
        "attributes": {"link": {"bool": True}},
        "capacity": {"bandwidth": {"value": "10"}},
    }
    _publish(world, f"{world.name}-link", device)
    selectors = [{"cel": {"expression": f'"link" in device.attributes["{world.driver}"]'}}]
    for name in "cde":
        _claim(world, name, _exactly(world, selectors=selectors, capacity={"requests": {"bandwidth": "4"}}))
        world.pod(f"p{name}", claim=name)
    eventually(lambda: sum(bool(world.node_of(f"p{name}")) for name in "cde") == 2)
    world.refused(next(f"p{name}" for name in "cde" if not world.node_of(f"p{name}")))


def whoever_looks_after_devices_sees_those_in_use(world: World) -> None:
    world.merge(
        f"/api/v1/namespaces/{world.name}", {"metadata": {"labels": {"resource.kubernetes.io/admin-access": "true"}}}
    )
    world.template("t", count=2)
    _two_pods(world, template="t")
    for name in "ab":
        world.bound(name)
    _claim(world, "c", {"deviceClassName": world.name, "allocationMode": "All", "adminAccess": True})
    world.pod("p", claim="c")
    world.bound("p")
    assert len(world.devices_of("c")) == 2


def not_everybody_looks_after_devices(world: World) -> None:
    body = {
        "apiVersion": VERSION,
        "kind": "ResourceClaim",
        "metadata": {"name": "c"},
        "spec": {"devices": {"requests": [{"name": "r", "exactly": _exactly(world, adminAccess=True)}]}},
    }
    assert world.refuse("POST", f"{RESOURCE}/namespaces/{world.name}/resourceclaims", body).startswith("422")


def configuration_reaches_the_allocation(world: World) -> None:
    opaque = {"opaque": {"driver": world.driver, "parameters": {"kind": "Config", "mode": "fast"}}}
    path = f"{RESOURCE}/deviceclasses/{world.name}"
    world.merge(path, {"spec": {"config": [opaque]}})
    _claim(world, "c", _exactly(world), config=[{"requests": ["r0"], **opaque}])
    world.pod("p", claim="c")
    world.bound("p")
    found = world.get("resourceclaims", "c", RESOURCE)["status"]["allocation"]["devices"]["config"]
    assert [one["source"] for one in found] == ["FromClass", "FromClaim"]


def what_a_claim_asks_for_stays(world: World) -> None:
    path = _claim(world, "c", _exactly(world))
    patch = {"spec": {"devices": {"requests": [{"name": "other", "exactly": _exactly(world)}]}}}
    assert world.refuse("PATCH", path, patch, "application/merge-patch+json").startswith("422")


def a_claim_in_use_outlives_its_deletion(world: World) -> None:
    path = _claim(world, "c", _exactly(world))
    world.pod("p", claim="c")
    world.bound("p")
    world.server.ask("DELETE", path)
    assert world.server.ask("GET", path)["metadata"]["deletionTimestamp"]
    world.kill("p")
    eventually(lambda: world.server.ask("GET", path) is None, "the claim is still there")


def pods_that_have_ended_give_back(world: World) -> None:
    world.claim("c", count=2)
    world.template("t")
    world.pod("p", claim="c")
    world.pod("q", template="t")
    for name in "pq":
        world.bound(name)
        world.report(name, "Succeeded")
    eventually(lambda: not world.devices_of("c"), "the claim was not deallocated")
    eventually(lambda: len(world.get("resourceclaims", root=RESOURCE)["items"]) == 1, "the pod's own claim is there")


def a_pod_that_was_placed_by_hand_gets_its_reservation(world: World) -> None:
    world.claim("c")
    world.pod("p", claim="c")
    node = world.bound("p")
    world.pod("q", claim="c", nodeName=node)

    def users() -> set[str]:
        claim = world.get("resourceclaims", "c", RESOURCE)
        return {one["name"] for one in claim["status"]["reservedFor"]}

    eventually(lambda: users() == {"p", "q"}, "nobody reserved the claim for the pod")


def devices_are_an_extended_resource(world: World) -> None:
    resource = f"{world.name}.example.com/gpu"
    world.merge(f"{RESOURCE}/deviceclasses/{world.name}", {"spec": {"extendedResourceName": resource}})
    amounts = {"requests": {resource: "2"}, "limits": {resource: "2"}}
    _two_pods(world, containers=[{"name": "c", "image": "i", "resources": amounts}])
    assert {world.bound("a"), world.bound("b")} == {*world.nodes}
    status = world.get("pods", "a")["status"]["extendedResourceClaimStatus"]
    assert len(world.devices_of(status["resourceClaimName"])) == 2
    world.pod("c", containers=[{"name": "c", "image": "i", "resources": amounts}])
    world.refused("c")


def a_broken_device_is_avoided(world: World) -> None:
    """Its driver says so, in the slice."""
    for node in world.nodes:
        devices = world.server.ask("GET", f"{RESOURCE}/resourceslices/{node}")["spec"]["devices"]
        devices[0]["taints"] = [{"key": "example.com/broken", "effect": "NoSchedule"}]
        world.merge(f"{RESOURCE}/resourceslices/{node}", {"spec": {"devices": devices}})
    for name in "cde":
        world.claim(name)
        world.pod(f"p{name}", claim=name)
    eventually(lambda: sum(bool(world.node_of(f"p{name}")) for name in "cde") == 2)
    assert {device for name in "cde" for _, device in world.devices_of(name)} == {"gpu-1"}


def patience_with_a_broken_device_ends(world: World) -> None:
    toleration = {
        "operator": "Exists", "key": "example.com/broken", "effect": "NoExecute", "tolerationSeconds": 1,
    }  # fmt: skip
    _claim(world, "c", _exactly(world, tolerations=[toleration]))
    world.pod("p", claim="c")
    world.bound("p")
    world.rule("NoExecute")
    eventually(lambda: world.leaving("p"), "the pod was not evicted")


def who_is_evicted_is_told_why(world: World) -> None:
    world.claim("c")
    world.pod("p", claim="c", terminationGracePeriodSeconds=60)
    world.bound("p")
    world.report("p", "Running")
    world.rule("NoExecute")
    eventually(lambda: world.leaving("p"), "the pod was not evicted")
    conditions = world.get("pods", "p")["status"]["conditions"]
    (told,) = [one for one in conditions if one["type"] == "DisruptionTarget"]
    assert told["reason"] == "DeletionByDeviceTaintManager"


def a_rule_without_effect_moves_nobody(world: World) -> None:
    world.claim("c")
    world.pod("p", claim="c")
    world.bound("p")
    path = world.rule("None")
    eventually(lambda: (world.server.ask("GET", path).get("status") or {}).get("conditions"), "the rule says nothing")
    assert not world.leaving("p")
