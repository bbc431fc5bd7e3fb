"""How many nodes of which group make the pending pods schedulable."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import builders
from dray.scale_up import NodeGroupError, plan
from dray.snapshot import load
from scale_up_objects import added, group, groups_of, node, plan_for, template, waiting
from snapshot_objects import Manifest, claim, device, device_class, held, resource_slice, rule

EXAMPLES = Path(__file__).parents[3] / "examples"


@pytest.mark.req("4381-199", "4381-201")
def test_each_pod_sees_what_the_one_before_it_took() -> None:
    pods = [waiting("a", claim_template="one"), waiting("b", claim_template="one")]
    answer = plan_for([device_class(), template("one"), *pods], group("single", devices=1))
    assert added(answer) == {"single": 2}
    assert answer.placements == {"ml/a": "single#1", "ml/b": "single#2"}


@pytest.mark.req("4381-199", "4381-200")
@pytest.mark.parametrize(("pods", "devices", "nodes"), [(1, 4, 1), (4, 4, 1), (5, 4, 2), (40, 4, 10), (7, 2, 4)])
def test_many_nodes_at_a_time(pods: int, devices: int, nodes: int) -> None:
    objects = [device_class(), template("one"), *(waiting(f"pod-{n}", claim_template="one") for n in range(pods))]
    answer = plan_for(objects, group("gpu", devices=devices))
    assert added(answer) == {"gpu": nodes}
    assert len(answer.placements) == pods
    assert not answer.unplaced


@pytest.mark.req("4381-200")
def test_nothing_is_changed() -> None:
    snapshot = load(device_class(), template("one"), waiting("a", claim_template="one"))
    groups = groups_of(snapshot, group("gpu", devices=1))
    first, second = plan(snapshot, groups), plan(snapshot, groups)
    assert first == second
    assert snapshot.nodes() == []
    assert list(snapshot.devices()) == []


def test_nodes_that_are_there_are_used_first() -> None:
    objects = [device_class(), template("one"), node("here"), resource_slice("here", device("gpu-0"), device("gpu-1"))]
    objects += [waiting(f"pod-{n}", claim_template="one") for n in range(3)]
    answer = plan_for(objects, group("gpu", devices=4))
    assert added(answer) == {"gpu": 1}
    objects += [held(claim("busy"), "here", "gpu-0", "gpu-1")]
    assert added(plan_for(objects, group("gpu", devices=1))) == {"gpu": 3}
    assert added(plan_for(objects[:-2], group("gpu", devices=4))) == {}, "two pods fit"


def test_the_cheaper_group_wins_and_a_limit_is_kept() -> None:
    objects = [device_class(), template("one"), *(waiting(f"pod-{n}", claim_template="one") for n in range(6))]
    dear, cheap = group("dear", devices=4, price=10), group("cheap", devices=2, price=3)
    assert added(plan_for(objects, dear, cheap)) == {"cheap": 3}
    limited = group("cheap", devices=2, price=3, limit=1)
    assert added(plan_for(objects, dear, limited)) == {"cheap": 1, "dear": 1}
    assert plan_for(objects, dear, limited).cost == 13
    few = plan_for(objects, dear, cheap, max_nodes=1)
    assert few.nodes == 1
    assert {one.groups["cheap"] for one in few.unplaced} == {"would fit, but no more than 1 nodes may be added in all"}


def test_nodes_that_nobody_needs_are_dropped() -> None:
    """Filling one group for its price may leave a node without a purpose once another has come."""
    objects = [device_class(), template("one"), waiting("small", cpu=1), waiting("gpu", cpu=1, claim_template="one")]
    answer = plan_for(objects, group("plain", cpu=4, price=1), group("gpus", cpu=4, devices=1, price=3))
    assert added(answer) == {"gpus": 1}


def test_resources_selectors_and_taints_of_templates_count() -> None:
    template_node = {**node("tainted", cpu=4), "spec": {"taints": [{"key": "dedicated", "effect": "NoSchedule"}]}}
    tainted = group("tainted", template=[template_node])
    answer = plan_for([waiting("a", cpu=3), waiting("big", cpu=30)], tainted, group("plain", cpu=4))
    assert added(answer) == {"plain": 1}
    [refused] = answer.unplaced
    assert refused.pod == "ml/big"
    assert refused.groups == {
        "tainted": "node(s) had untolerated taint(s) {dedicated}",
        "plain": "Insufficient cpu (needs 30, 4 of 4 left)",
    }
    chosen = plan_for([waiting("a", nodeSelector={"zone": "b"})], group("zoned", template=[node("zoned", zone="b")]))
    assert added(chosen) == {"zoned": 1}


def test_pods_that_no_node_helps_are_not_said_to_fit_nowhere() -> None:
    objects = [device_class(), waiting("a", schedulingGates=[{"name": "x/y"}]), waiting("b", schedulerName="ghost")]
    answer = plan_for(objects, group("pair", devices=2))
    assert answer.headline() == "2 pods are pending: 2 wait for something other than nodes, or for another scheduler."
    big = [template("three", 3), waiting("c", claim_template="three")]
    both = plan_for([*objects, *big], group("pair", devices=2)).headline()
    assert both.startswith("3 pods are pending: 1 fits on no node of any group, 2 wait for something other than nodes")


def test_what_a_pod_lacks_wherever_it_goes_is_said_once() -> None:
    """And not of each group, as if another group might have it."""
    objects = [device_class(), waiting("a", claim="missing"), waiting("b", claim_template="missing")]
    answer = plan_for(objects, group("pair", devices=2), group("four", devices=4))
    assert answer.headline() == "2 pods are pending: 2 wait for something other than nodes, or for another scheduler."
    assert [one.groups for one in answer.unplaced] == [{}, {}]
    assert all("missing" in one.message for one in answer.unplaced), answer.unplaced


def test_why_no_group_helps() -> None:
    objects = [device_class(), template("three", 3), waiting("a", claim_template="three")]
    answer = plan_for(objects, group("pair", devices=2))
    [refused] = answer.unplaced
    assert refused.groups["pair"].startswith('request "gpu": 2 of 2 devices match; 2 free')
    assert "1 fits on no node of any group" in answer.text()


def test_pods_that_share_a_claim_go_together() -> None:
    pods = [waiting(f"pod-{n}", claim="shared") for n in range(3)]
    answer = plan_for([device_class(), claim("shared"), *pods], group("gpu", devices=1))
    assert added(answer) == {"gpu": 1}
    assert set(answer.placements.values()) == {"gpu#1"}


def test_priority_decides_who_gets_the_last_node() -> None:
    objects = [device_class(), template("one")]
    objects += [waiting("low", claim_template="one"), waiting("high", claim_template="one", priority=10)]
    answer = plan_for(objects, group("gpu", devices=1, limit=1))
    assert list(answer.placements) == ["ml/high"]


@pytest.mark.req("4381-203", "4381-15")
def test_slices_of_whoever_published_them_and_rules_count() -> None:
    """A rule that taints a driver's devices also taints those of nodes to come."""
    network = resource_slice("pool", device("net-0"), device("net-1"))
    del network["spec"]["nodeName"]
    network["spec"]["allNodes"] = True
    objects = [device_class(), template("one"), *(waiting(f"pod-{n}", claim_template="one") for n in range(2))]
    answer = plan_for([*objects, network], group("plain"))
    assert added(answer) == {"plain": 1}, "devices come over the network, only a node is missing"
    third = waiting("pod-2", claim_template="one")
    assert len(plan_for([*objects, third, network], group("plain")).unplaced) == 1, "they do not come with nodes"
    everywhere = rule("all-bad", effect="NoSchedule", driver="gpu.example.com")
    assert len(plan_for([*objects, everywhere], group("gpu", devices=2)).unplaced) == 2


@pytest.mark.req("4381-15")
def test_a_node_that_is_there_as_the_template() -> None:
    like = {
        **node("old"),
        "spec": {
            "unschedulable": True,
            "taints": [{"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"}],
        },
    }
    objects = [device_class(), template("two", 2), like, resource_slice("old", device("gpu-0"), device("gpu-1"))]
    objects += [waiting("a", claim_template="two"), waiting("b", claim_template="two")]
    answer = plan_for(objects, group("same", fromNode="old"))
    assert added(answer) == {"same": 2}
    # What is on the network does not come with a node: there is one such device, however many nodes.
    network = resource_slice("pool", device("net-0"))
    del network["spec"]["nodeName"]
    network["spec"]["allNodes"] = True
    third = [template("three", 3), waiting("c", claim_template="three"), waiting("d", claim_template="three")]
    answer = plan_for([*objects[:1], *objects[2:4], network, *third], group("same", fromNode="old"))
    assert (added(answer), len(answer.unplaced)) == ({"same": 1}, 1)


def test_a_profile_as_the_template_brings_its_class() -> None:
    requests = [{"name": "gpu", "exactly": {"deviceClassName": "gpu.example.com", "count": 8}}]
    made = template("eight")
    made["spec"]["spec"]["devices"]["requests"] = requests
    pods = [waiting(f"pod-{n}", claim_template="eight") for n in range(2)]
    assert added(plan_for([made, *pods], group("racks", profile="gpu-8"))) == {"racks": 2}


def test_a_template_that_is_missing_is_said() -> None:
    [refused] = plan_for([waiting("a", claim_template="gone")], group("plain")).unplaced
    assert refused.message == "there is no ResourceClaimTemplate ml/gone"


@pytest.mark.parametrize(
    ("spec", "says"),
    [
        ({"profile": "gpu-8", "fromNode": "x"}, "give one of fromNode, profile and template, not fromNode and profile"),
        ({"maxNodes": 3}, "give one of fromNode, profile and template, not none"),
        ({"fromNode": "x"}, "spec.fromNode: there is no node x"),
        ({"profile": "none"}, "there is no profile 'none'"),
        ({"profile": "gpu-8", "maxNodes": -1}, "spec.maxNodes: must be from 0 to 1000"),
        ({"profile": "gpu-8", "price": -2.0}, "spec.price: must not be negative"),
        ({"profil": "gpu-8"}, "spec.profil: unknown field"),
        ({"template": [claim("x")]}, "a ResourceClaim is no part of a node"),
        ({"template": [resource_slice("a", device("d"))]}, "one Node is needed, not 0"),
        ({"template": [node("b"), resource_slice("a", device("d"))]}, "ResourceSlice a-slice is not one of node b"),
        ({"template": [{"kind": "Node"}]}, "spec.template[0]: an object has no apiVersion"),
    ],
)
def test_groups_that_cannot_be_used(spec: dict[str, Any], says: str) -> None:
    with pytest.raises(NodeGroupError) as failure:
        plan_for([], group("bad", **spec))
    assert str(failure.value).startswith("<dict>: NodeGroup bad: ")
    assert says in str(failure.value)


def test_two_groups_of_one_name() -> None:
    with pytest.raises(NodeGroupError, match="two node groups called a"):
        plan_for([], group("a", devices=1), group("a", devices=2))


# Gangs


def gang(needed: int, **spec: Any) -> Manifest:
    about = {"schedulingPolicy": {"gang": {"minCount": needed}}, **spec}
    return builders.manifest("scheduling.k8s.io/v1beta1", "PodGroup", "g", "ml", meta={"uid": "uid-g"}, spec=about)


def members(count: int, cpu: int = 4, first: int = 0, **spec: Any) -> list[Manifest]:
    spec["schedulingGroup"] = {"podGroupName": "g"}
    return [waiting(f"m{first + number}", cpu=cpu, **spec) for number in range(count)]


def test_a_gang_gets_the_nodes_that_it_needs_at_once() -> None:
    answer = plan_for([gang(4), *members(4)], group("plain", cpu=4))
    assert added(answer) == {"plain": 4}
    assert len(answer.placements) == 4
    there = plan_for([gang(4), node("n", cpu=8), *members(4)], group("plain", cpu=4))
    assert added(there) == {"plain": 2}, "two pods fit on what is there, as soon as the others do"
    none = plan_for([gang(4), *members(4)], group("plain", cpu=4, limit=3))
    assert added(none) == {}
    assert {one.groups["plain"] for one in none.unplaced} == {
        "would fit by itself, but with at most 3 nodes too few pods of its group do"
    }


def test_pods_of_a_gang_that_need_different_nodes() -> None:
    kinds = [group(name, template=[node(name, 4, kind=name)]) for name in ("left", "right")]
    lefts = members(2, nodeSelector={"kind": "left"})
    rights = members(1, first=2, nodeSelector={"kind": "right"})
    answer = plan_for([gang(3), *lefts, *rights], *kinds)
    assert added(answer) == {"left": 2, "right": 1}
    assert len(answer.placements) == 3


def test_a_gang_that_has_to_be_in_one_place_does_not_count_on_others() -> None:
    together = gang(3, schedulingConstraints={"topology": [{"key": "rack"}]})
    old = [node(f"n{number}", cpu=4, rack=f"r{number}") for number in range(2)]
    racked = group("racked", template=[node("racked", 4, rack="new")])
    answer = plan_for([together, *old, *members(3)], racked)
    assert added(answer) == {"racked": 3}
    assert set(answer.placements.values()) == {"racked#1", "racked#2", "racked#3"}


def test_more_than_a_gang_needs_is_nice_to_have() -> None:
    answer = plan_for([gang(2), *members(4)], group("plain", cpu=4, limit=3))
    assert added(answer) == {"plain": 3}
    assert len(answer.placements) == 3


def test_a_gang_that_waits_for_pods_gets_no_nodes() -> None:
    answer = plan_for([gang(4), *members(3)], group("plain", cpu=4))
    assert added(answer) == {}
    assert all(not one.groups and "3" in one.message for one in answer.unplaced)
    assert "3 wait for something other than nodes" in answer.headline()


def test_daemons_are_on_new_nodes_first() -> None:
    agent = builders.workload("agent", None, kind="DaemonSet", namespace="ml", containers=[builders.container(cpu="1")])
    pods = [waiting(f"p{number}", cpu=2) for number in range(4)]
    assert added(plan_for(pods, group("plain", cpu=4))) == {"plain": 2}
    assert added(plan_for([agent, *pods], group("plain", cpu=4))) == {"plain": 4}
    agent["spec"]["template"]["spec"]["nodeSelector"] = {"other": "nodes"}
    assert added(plan_for([agent, *pods], group("plain", cpu=4))) == {"plain": 2}


def test_devices_of_daemons_count() -> None:
    agent = builders.workload("agent", None, kind="DaemonSet", namespace="ml")
    agent["spec"]["template"]["spec"]["resourceClaims"] = [builders.pod_claim("gpu", template="one")]
    pods = [waiting(f"p{number}", claim_template="one") for number in range(4)]
    assert added(plan_for([device_class(), template("one"), *pods], group("gpus", devices=2))) == {"gpus": 2}
    assert added(plan_for([device_class(), template("one"), agent, *pods], group("gpus", devices=2))) == {"gpus": 4}
    answer = plan_for([device_class(), template("one"), agent, *pods], group("gpus", devices=1))
    assert added(answer) == {}
    assert len(answer.unplaced) == 4
    many = [device_class(), template("one"), template("many", 5), agent, *pods]
    agent["spec"]["template"]["spec"]["resourceClaims"] = [builders.pod_claim("gpu", template="many")]
    assert added(plan_for(many, group("gpus", devices=2))) == {"gpus": 2}  # it waits, and takes nothing
