"""Decisions on a cluster built from plain manifests, without any server."""

import time
from typing import Any

import pytest
from msgspec.structs import replace

import builders
from dray.allocator import Options
from dray.api import codec
from dray.api.generated.core import Node, Pod
from dray.api.references import full_name
from dray.scheduling.cause import Cause
from dray.scheduling.decide import Chosen, decide
from dray.scheduling.pod_info import read_pod
from dray.scheduling.text import tell
from scheduler_objects import (
    DRIVER,
    allocated,
    choose,
    chosen_node,
    claim,
    cluster,
    device_class,
    node,
    pod,
    refusal,
    resource_slice,
    told,
    typed,
)

ALIKE: Any = {"topologyKey": "zone", "labelSelector": {"matchLabels": {"app": "x"}}}
SPREAD: Any = {"maxSkew": 1, "whenUnsatisfiable": "DoNotSchedule", **ALIKE}
APART: Any = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [ALIKE]}}


@pytest.mark.parametrize(
    ("nodes", "wanted", "expected"),
    [
        ([node("a"), node("b", spec={"unschedulable": True})], pod(), "a"),
        ([node("a", labels={"zone": "x"}), node("b", labels={"zone": "y"})], pod(nodeSelector={"zone": "y"}), "b"),
        ([node("a", cpu="1"), node("b", cpu="8")], pod(cpu="2"), "b"),
        ([node("a", spec={"taints": [{"key": "k", "effect": "NoSchedule"}]}), node("b")], pod(), "b"),
        (
            [node("a", spec={"taints": [{"key": "k", "effect": "NoSchedule"}]})],
            pod(tolerations=[{"key": "k", "operator": "Exists"}]),
            "a",
        ),
        ([node("a", spec={"taints": [{"key": "k", "effect": "PreferNoSchedule"}]}), node("b", cpu="2")], pod(), "b"),
    ],
)
def test_plain_pods(nodes: list[Node], wanted: Pod, expected: str) -> None:
    assert chosen_node(cluster(*nodes), wanted) == expected


@pytest.mark.parametrize("order", ["abc", "cba", "bca"])
@pytest.mark.parametrize("terms", [{}, {"topologySpreadConstraints": [SPREAD]}, {"affinity": APART}])
def test_of_equally_good_nodes_the_first_by_name_is_taken_whichever_came_first(order: str, terms: Any) -> None:
    """Else what is explained from a dump, where they are in order, is not what a scheduler does that saw them come."""
    here = cluster(*(node(name, labels={"zone": name}) for name in order))
    assert chosen_node(here, pod("first", labels={"app": "x"}, **terms)) == "a"
    here.nodes.remove("b")
    here.nodes.set(node("b", labels={"zone": "b", "new": "yes"}))
    here.set_pod(pod("first", labels={"app": "x"}, nodeName="a"), "uid-first")
    assert chosen_node(here, pod("second", labels={"app": "x"}, **terms)) == "b"


@pytest.mark.req("4381-236")
def test_what_device_plugins_count_is_counted_next_to_claims() -> None:
    resources = {"requests": {"vendor.com/gpu": "2"}, "limits": {"vendor.com/gpu": "2"}}
    containers = [{"name": "c", "image": "i", "resources": resources}]
    nodes = node("a"), node("b", plugins={"vendor.com/gpu": "2"})
    here = cluster(*nodes, resource_slice("a", "gpu-0"), device_class(), claim())
    assert chosen_node(here, pod(containers=containers)) == "b"
    here.set_pod(pod(containers=containers, nodeName="b"), "uid-p")
    assert "2 Insufficient vendor.com/gpu" in told(here, pod("q", containers=containers))
    assert chosen_node(here, pod("with-claim", claims=("c",))) == "a"


@pytest.mark.req("4381-110")
def test_five_hundred_nodes_are_filled_within_the_time_that_a_filter_has() -> None:
    """The goal is 10 ms while there is room, and 200 ms while a cluster fills up. Here it is CPU time."""
    names = [f"n{number:03}" for number in range(500)]
    full = [claim(f"held-{name}", status=allocated("gpu-0", name)) for name in names[:-1]]
    here = cluster(
        *map(node, names), device_class(), *(resource_slice(name, "gpu-0") for name in names), *full, claim()
    )
    wanted = pod(claims=("c",))
    spent = []
    for _ in range(3):
        began = time.thread_time()
        assert chosen_node(here, wanted) == names[-1]
        spent.append(time.thread_time() - began)
    assert min(spent) < 0.2


def test_why_no_node_fits_is_counted() -> None:
    full = cluster(node("a", cpu="1"), node("b", cpu="1"), node("c", spec={"unschedulable": True}))
    message = told(full, pod(cpu="2"))
    assert message == "0/3 nodes are available: 1 node(s) were unschedulable, 2 Insufficient cpu."


def test_pods_on_a_node_take_its_room() -> None:
    there = [pod(f"p{number}", cpu="100m", nodeName="a") for number in range(3)]
    message = told(cluster(node("a"), *there), pod())
    assert "1 Too many pods" in message


def test_host_ports_are_exclusive() -> None:
    ports = [{"name": "c", "image": "i", "ports": [{"containerPort": 80, "hostPort": 80}]}]
    here = cluster(node("a"), pod("first", nodeName="a", containers=ports))
    assert "free ports" in told(here, pod("second", containers=ports))


@pytest.mark.req("4381-105", "4381-114", "4381-121")
def test_a_pending_claim_gets_devices_on_the_chosen_node() -> None:
    here = cluster(node("a"), node("b"), device_class(), resource_slice("b", "gpu-0"), claim())
    answer = choose(here, pod(claims=("c",)))
    assert isinstance(answer, Chosen)
    assert answer.node == "b"
    [(asked, allocation)] = answer.allocations.values()
    assert full_name(asked) == "ns/c"
    assert [result.device for result in allocation.devices.results] == ["gpu-0"]


@pytest.mark.req("4381-93", "4381-114")
def test_what_is_in_flight_is_taken() -> None:
    here = cluster(node("a"), device_class(), resource_slice("a", "gpu-0"), claim("c1"), claim("c2"))
    first = read_pod(pod("p1", claims=("c1",)))
    answer = decide(here, first, Options())
    assert isinstance(answer, Chosen)
    here.assume(first, answer.node, answer.allocations)
    assert "cannot allocate all claims" in told(here, pod("p2", claims=("c2",)))
    here.take_back(first, answer.allocations)
    assert chosen_node(here, pod("p2", claims=("c2",))) == "a"


@pytest.mark.parametrize("where", ["a", "b"])
def test_a_pod_that_has_a_node_keeps_its_room_when_a_decision_is_taken_back(where: str) -> None:
    """Its answer was lost, or another scheduler was faster."""
    here = cluster(node("a", cpu="1"), node("b", cpu="1"))
    first = pod("first", cpu="1")
    info = read_pod(first)
    here.assume(info, "a", {})
    here.set_pod(replace(first, spec=replace(first.spec, node_name=where)), first.metadata.uid)
    here.take_back(info, {})
    other = "b" if where == "a" else "a"
    assert chosen_node(here, pod("second", cpu="1")) == other
    assert here.node_of(first.metadata.uid) == where


@pytest.mark.req("4381-112", "4381-128")
def test_a_claim_that_is_being_allocated_makes_others_wait() -> None:
    here = cluster(node("a"), device_class(), resource_slice("a", "gpu-0", "gpu-1"), claim())
    first = read_pod(pod("p1", claims=("c",)))
    answer = decide(here, first, Options())
    assert isinstance(answer, Chosen)
    here.assume(first, answer.node, answer.allocations)
    refused = refusal(here, pod("p2", claims=("c",)))
    assert refused.passes_soon
    assert Cause.CLAIM in refused.causes


@pytest.mark.req("4381-105")
def test_a_pod_follows_an_allocated_claim_to_its_node() -> None:
    held = claim(status=allocated("gpu-0", "b", reserved=True))
    here = cluster(node("a"), node("b"), device_class(), resource_slice("b", "gpu-0"), held)
    assert chosen_node(here, pod(claims=("c",))) == "b"


@pytest.mark.req("4381-252")
def test_a_claim_is_shared_until_the_list_of_its_users_is_full() -> None:
    everybody = {f"user-{number}": str(number) for number in range(256)}
    some = {name: uid for name, uid in everybody.items() if uid != "0"}
    full, free = (
        claim(status=builders.allocated("gpu-0", pool="a", on="a", users=users)) for users in (everybody, some)
    )
    here = cluster(node("a"), device_class(), resource_slice("a", "gpu-0"), full)
    assert "in use by 256 others, which is the most" in told(here, pod(claims=("c",)))
    here.set_claim(full, free)
    assert chosen_node(here, pod(claims=("c",))) == "a"


@pytest.mark.req("5055-54", "5055-56")
def test_no_new_pod_for_a_claim_with_an_untolerated_taint() -> None:
    tainted = {"name": "gpu-0", "taints": [{"key": "k", "effect": "NoExecute", "timeAdded": "2026-01-01T00:00:00Z"}]}
    held = claim(status=allocated("gpu-0", "a", reserved=True))
    here = cluster(node("a"), device_class(), resource_slice("a", tainted), held)
    tolerant = pod(claims=("c",), tolerations=[{"operator": "Exists"}])
    assert "untolerated taint: gpu-0 k:NoExecute" in told(here, tolerant)
    tolerating = claim(status=allocated("gpu-0", "a", reserved=True, tolerations=[{"key": "k", "operator": "Exists"}]))
    here.set_claim(held, tolerating)
    assert chosen_node(here, pod(claims=("c",))) == "a"


@pytest.mark.req("4381-113")
def test_an_unused_claim_in_the_way_is_named() -> None:
    unused = claim("c1", status=allocated("gpu-0", "a"))
    used = claim("c2", status=allocated("gpu-0", "b", reserved=True))
    slices = (resource_slice("a", "gpu-0"), resource_slice("b", "gpu-0"))
    here = cluster(node("a"), node("b"), device_class(), *slices, unused, used)
    refused = refusal(here, pod(claims=("c1", "c2")))
    assert refused.unused_claims == (unused,)


@pytest.mark.req("4381-113")
def test_so_it_is_on_nodes_that_are_known_to_lack_devices() -> None:
    """What others found out of nodes leaves out to ask them for devices, not to see that a claim cannot go there."""
    unused = claim("c1", status=allocated("gpu-0", "a"))
    nodes = (node("a"), node("b", spec={"unschedulable": True}), node("c"))
    here = cluster(*nodes, device_class(), resource_slice("a", "gpu-0"), unused, claim("c2"), claim("c3"))
    assert refusal(here, pod("first", claims=("c3",))).unused_claims == ()
    assert refusal(here, pod(claims=("c1", "c2"))).unused_claims == (unused,)
    only_cordoned = cluster(*nodes[:2], device_class(), resource_slice("a", "gpu-0"), unused, claim("c2"))
    assert refusal(only_cordoned, pod(claims=("c1", "c2"))).unused_claims == (), "it could not go there anyhow"


@pytest.mark.req("4381-95")
def test_claims_that_others_use_are_in_the_way_and_stay() -> None:
    held = [claim(name, status=allocated("gpu-0", on, reserved=True)) for name, on in (("c1", "a"), ("c2", "b"))]
    slices = (resource_slice("a", "gpu-0"), resource_slice("b", "gpu-0"))
    here = cluster(node("a"), node("b"), device_class(), *slices, *held)
    assert refusal(here, pod(claims=("c1", "c2"))).unused_claims == ()


@pytest.mark.req("4381-98", "4381-218", "4381-111", "4381-184")
@pytest.mark.parametrize(
    ("objects", "wanted", "says", "cause"),
    [
        ((claim(),), pod(claims=("c",)), "device class gpu does not exist", Cause.CLASS),
        ((), pod(claims=("c",)), 'resourceclaim "c" not found', Cause.CLAIM),
        ((), pod(template="x"), "ResourceClaim not created yet", Cause.CLAIM),
    ],
)
def test_what_is_missing_is_named(objects: tuple[Any, ...], wanted: Pod, says: str, cause: Cause) -> None:
    refused = refusal(cluster(node("a"), *objects), wanted)
    assert says in tell(refused)
    assert cause in refused.causes


@pytest.mark.req("4381-75")
def test_a_claim_that_was_not_needed_is_not_waited_for() -> None:
    wanted = typed({**codec.to_builtins(pod(template="x")), "status": {"resourceClaimStatuses": [{"name": "t"}]}})
    assert chosen_node(cluster(node("a")), wanted) == "a"


@pytest.mark.req("4381-135")
def test_a_claim_of_somebody_else_is_not_used_for_a_template() -> None:
    foreign = claim("p-t-abcde")
    wanted = pod(template="x")
    status = {"resourceClaimStatuses": [{"name": "t", "resourceClaimName": "p-t-abcde"}]}
    wanted = typed({**codec.to_builtins(wanted), "status": status})
    assert "pod is not its owner" in told(cluster(node("a"), foreign), wanted)


@pytest.mark.req("4381-83", "4381-217", "X-05")
def test_a_selector_that_fails_aborts_and_is_told() -> None:
    broken = claim(selectors=[{"cel": {"expression": f'device.attributes["{DRIVER}"].missing == 1'}}])
    here = cluster(node("a"), device_class(), resource_slice("a", "gpu-0"), broken)
    refused = refusal(here, pod(claims=("c",)))
    assert "no such key" in tell(refused)
    assert Cause.ERROR in refused.causes
