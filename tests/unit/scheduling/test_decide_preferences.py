"""Which of several nodes that fit is taken, and what is said if none does."""

from typing import Any

import pytest

from dray.api.resource import ResourceClaim
from dray.scheduling.reasons import Verdict
from dray.scheduling.text import tell
from scheduler_objects import (
    DRIVER,
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

DISLIKED = {"taints": [{"key": "k", "effect": "PreferNoSchedule"}]}


def likes(zone: str, weight: int = 1) -> dict[str, Any]:
    wanted = {"matchExpressions": [{"key": "zone", "operator": "In", "values": [zone]}]}
    return {
        "nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [{"weight": weight, "preference": wanted}]}
    }


def with_alternatives() -> ResourceClaim:
    alternatives = [
        {"name": "many", "deviceClassName": "gpu", "allocationMode": "ExactCount", "count": 2},
        {"name": "one", "deviceClassName": "gpu", "allocationMode": "ExactCount", "count": 1},
    ]
    made: ResourceClaim = typed(
        {
            "apiVersion": "resource.k8s.io/v1",
            "kind": "ResourceClaim",
            "metadata": {"name": "c", "namespace": "ns", "uid": "uid-c"},
            "spec": {"devices": {"requests": [{"name": "r", "firstAvailable": alternatives}]}},
        }
    )
    return made


@pytest.mark.parametrize("claims", [(), ("c",)])
def test_a_node_with_a_taint_that_is_only_disliked_is_the_last_choice(claims: tuple[str, ...]) -> None:
    devices = resource_slice("a", "gpu-0"), resource_slice("b", "gpu-0")
    here = cluster(node("a", spec=DISLIKED), node("b"), *devices, device_class(), claim())
    assert chosen_node(here, pod(claims=claims)) == "b"
    assert chosen_node(here, pod(claims=claims, tolerations=[{"operator": "Exists"}])) == "a"
    alone = cluster(node("a", spec=DISLIKED), resource_slice("a", "gpu-0"), device_class(), claim())
    assert chosen_node(alone, pod(claims=claims)) == "a"


@pytest.mark.parametrize("claims", [(), ("c",)])
def test_what_a_pod_would_like_counts_more_than_an_empty_node(claims: tuple[str, ...]) -> None:
    nodes = node("a", cpu="64"), node("b", labels={"zone": "x"})
    devices = resource_slice("a", "gpu-0"), resource_slice("b", "gpu-0")
    here = cluster(*nodes, *devices, device_class(), claim())
    assert chosen_node(here, pod(claims=claims)) == "a"
    assert chosen_node(here, pod(claims=claims, affinity=likes("x"))) == "b"
    assert chosen_node(here, pod(claims=claims, affinity=likes("elsewhere"))) == "a"


def test_a_disliked_taint_weighs_more_than_any_affinity() -> None:
    here = cluster(node("a", spec=DISLIKED, labels={"zone": "x"}), node("b"))
    assert chosen_node(here, pod(affinity=likes("x", weight=100))) == "b"


@pytest.mark.req("SVS-41")
def test_the_node_with_the_better_alternative_is_taken() -> None:
    devices = resource_slice("a", "gpu-0"), resource_slice("b", "gpu-0", "gpu-1")
    nodes = node("a"), node("b")
    assert chosen_node(cluster(*nodes, *devices, device_class(), with_alternatives()), pod(claims=("c",))) == "b"
    assert chosen_node(cluster(*nodes, devices[0], device_class(), with_alternatives()), pod(claims=("c",))) == "a"


def test_everything_that_a_node_lacks_is_counted() -> None:
    resources = {"requests": {"cpu": "8", "memory": "16Gi"}}
    containers = [{"name": "c", "image": "i", "resources": resources}]
    here = cluster(node("a"), node("b", cpu="16"))
    message = told(here, pod(containers=containers))
    assert message == "0/2 nodes are available: 1 Insufficient cpu, 2 Insufficient memory."


def test_nodes_that_a_selector_by_name_leaves_out_are_counted() -> None:
    hosts = [node(name, labels={"kubernetes.io/hostname": name}) for name in ("a", "b", "c")]
    message = told(cluster(*hosts), pod(cpu="9", nodeSelector={"kubernetes.io/hostname": "b"}))
    assert message == (
        "0/3 nodes are available: 1 Insufficient cpu, 2 node(s) didn't match Pod's node affinity/selector."
    )


def test_a_taint_is_named_before_a_selector_that_does_not_match() -> None:
    tainted = node("a", spec={"taints": [{"key": "k", "value": "v", "effect": "NoSchedule"}]})
    message = told(cluster(tainted), pod(nodeSelector={"zone": "x"}))
    assert message == "0/1 nodes are available: 1 node(s) had untolerated taint(s) {k: v}."


@pytest.mark.req("SVS-51")
def test_a_claim_that_cannot_be_judged_is_an_error_of_its_own() -> None:
    broken = claim(selectors=[{"cel": {"expression": "device.attributes['x.example.com'].none == 1"}}])
    refused = refusal(cluster(node("a"), resource_slice("a", "gpu-0"), device_class(), broken), pod(claims=("c",)))
    assert refused.verdict is Verdict.ERROR  # an autoscaler adds nodes for those that are Unschedulable
    assert "CEL runtime error" in tell(refused)


@pytest.mark.req("4381-84", "SVS-51")
def test_a_selector_that_fails_on_another_node_counts_if_the_pod_could_go_there() -> None:
    fast = {"name": "gpu-0", "attributes": {"fast": {"bool": True}}}
    choosy = claim(selectors=[{"cel": {"expression": f'device.attributes["{DRIVER}"].fast'}}])
    there = [resource_slice("a", fast), resource_slice("b", "gpu-0"), device_class(), choosy]
    wanted = pod(claims=("c",))
    assert "CEL runtime error: no such key" in told(cluster(node("a"), node("b"), *there), wanted)
    cordoned = node("b", spec={"unschedulable": True})
    assert chosen_node(cluster(node("a"), cordoned, *there), wanted) == "a"
    assert chosen_node(cluster(node("a"), node("b", cpu="0"), *there), wanted) == "a"


def test_pods_that_ask_for_nothing_are_spread() -> None:
    here = cluster(node("a"), node("b"))
    nodes = []
    for number in range(4):
        wanted = pod(f"p{number}", cpu="0")
        nodes.append(chosen_node(here, wanted))
        here.set_pod(pod(f"p{number}", cpu="0", nodeName=nodes[-1]), f"uid-p{number}")
    assert sorted(nodes) == ["a", "a", "b", "b"]


def test_what_a_pod_asks_for_as_a_whole_counts() -> None:
    here = cluster(node("a"))
    assert chosen_node(here, pod(cpu="3", resources={"requests": {"cpu": "4"}})) == "a"
    assert "1 Insufficient cpu" in told(here, pod(cpu="1", resources={"requests": {"cpu": "5"}}))
    assert "1 Insufficient cpu" in told(here, pod(cpu="5", resources={"requests": {"memory": "1Gi"}}))


def test_a_claim_that_a_pod_names_twice_is_one_claim() -> None:
    here = cluster(node("a"), resource_slice("a", "gpu-0"), device_class(), claim())
    names = [{"name": name, "resourceClaimName": "c"} for name in ("first", "second")]
    assert chosen_node(here, pod(resourceClaims=names)) == "a"
