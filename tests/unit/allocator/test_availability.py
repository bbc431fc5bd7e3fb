"""Which devices can be had: pools, nodes, taints, counters, shares."""

from __future__ import annotations

from typing import Any

import pytest

from allocation_manifests import claim, device, devices_of, held, node, request, resource_slice, run
from dray.allocator import Allocated, Failed, Options, Unsatisfiable

NO_SCHEDULE = {"key": "k", "value": "v", "effect": "NoSchedule"}
NO_EXECUTE = {"key": "k", "value": "v", "effect": "NoExecute"}
RACK = {"nodeSelectorTerms": [{"matchExpressions": [{"key": "rack", "operator": "In", "values": ["r1"]}]}]}

# Pools


@pytest.mark.req("4381-89", "4381-09")
def test_only_the_highest_generation_counts() -> None:
    old = resource_slice(device("old"), name="s1", generation=1)
    new = resource_slice(device("new"), name="s2", generation=2)
    assert devices_of(run(old, new, claim("c", request()))) == ["new"]


@pytest.mark.req("4381-90", "SVS-50")
def test_an_incomplete_pool_is_not_used_and_named() -> None:
    part = resource_slice(device("a"), count=2)
    outcome = run(part, claim("c", request()))
    assert isinstance(outcome, Unsatisfiable)
    assert "gpu.example.com/p" in outcome.message
    everything = run(part, claim("c", request(allocationMode="All")))
    assert isinstance(everything, Failed)
    assert "resource pool gpu.example.com/p is currently being updated" in everything.error
    rest = resource_slice(device("b"), count=2, name="rest")
    assert devices_of(run(part, rest, claim("c", request(allocationMode="All")))) == ["b", "a"]


@pytest.mark.req("4381-02", "SVS-50")
def test_a_pool_with_a_name_twice_is_not_used() -> None:
    slices = [resource_slice(device("a"), count=2, name=name) for name in ("s1", "s2")]
    assert isinstance(run(*slices, claim("c", request())), Unsatisfiable)
    everything = run(*slices, claim("c", request(allocationMode="All")))
    assert isinstance(everything, Failed)
    assert "is currently invalid" in everything.error


def test_devices_are_tried_by_driver_pool_slice_and_position() -> None:
    slices = [
        resource_slice(device("z"), device("a"), driver="b.example.com", pool="p"),
        resource_slice(device("q"), driver="a.example.com", pool="z"),
        resource_slice(device("n"), driver="a.example.com", pool="m", name="s2", count=2),
        resource_slice(device("o"), driver="a.example.com", pool="m", name="s1", count=2),
    ]
    assert devices_of(run(*slices, claim("c", request(count=5)))) == ["o", "n", "q", "z", "a"]


def test_a_pool_with_binding_conditions_comes_last() -> None:
    binding = device("b", bindingConditions=["ready"], bindingFailureConditions=["broken"])
    slices = [resource_slice(device("a"), binding, pool="p1"), resource_slice(device("c"), pool="p2")]
    outcome = run(*slices, claim("c", request(count=3)))
    assert devices_of(outcome) == ["c", "a", "b"]
    assert isinstance(outcome, Allocated)
    results = outcome.allocations["ns/c"].devices.results
    assert results[2].binding_conditions == ("ready",)
    assert results[2].binding_failure_conditions == ("broken",)


@pytest.mark.req("4381-101", "4381-102")
def test_a_held_device_that_is_gone_does_no_harm() -> None:
    assert devices_of(run(resource_slice(device("a")), held("x", "gone"), claim("c", request()))) == ["a"]


# Nodes


@pytest.mark.req("4381-14", "4381-64", "SVS-35")
@pytest.mark.parametrize(
    ("fields", "labels", "selector"),
    [
        ({"nodeName": "node-1"}, {}, "node"),
        ({"nodeName": "node-2"}, {}, None),
        ({"allNodes": True}, {}, "everywhere"),
        ({"nodeSelector": RACK}, {"rack": "r1"}, "rack"),
        ({"nodeSelector": RACK}, {"rack": "r2"}, None),
    ],
)
def test_devices_are_used_where_they_can_be_reached(
    fields: dict[str, Any], labels: dict[str, str], selector: str | None
) -> None:
    outcome = run(node(**labels), resource_slice(device("a"), **fields), claim("c", request()))
    if selector is None:
        assert isinstance(outcome, Unsatisfiable)
        return
    assert isinstance(outcome, Allocated)
    found = outcome.allocations["ns/c"].node_selector
    if selector == "everywhere":
        assert found is None
    else:
        assert found is not None
        term = found.node_selector_terms[0]
        requirement = (term.match_fields or term.match_expressions)[0]
        expected = {"node": ("metadata.name", ("node-1",)), "rack": ("rack", ("r1",))}[selector]
        assert (requirement.key, requirement.values) == expected


@pytest.mark.req("SVS-35")
def test_nodes_per_device() -> None:
    slice_ = resource_slice(
        device("a", nodeName="node-2"),
        device("b", nodeName="node-1"),
        device("c", allNodes=True),
        perDeviceNodeSelection=True,
    )
    assert devices_of(run(slice_, claim("c", request(count=2)))) == ["b", "c"]
    assert isinstance(run(slice_, claim("c", request(count=3))), Unsatisfiable)


def test_an_unreadable_node_selector_is_an_error() -> None:
    bad = {"nodeSelectorTerms": [{"matchExpressions": [{"key": "rack", "operator": "In"}]}]}
    outcome = run(resource_slice(device("a"), nodeSelector=bad), claim("c", request()))
    assert isinstance(outcome, Failed)
    assert "unreadable node selector" in outcome.error


@pytest.mark.req("4381-105")
def test_the_first_node_by_name_is_taken() -> None:
    slices = [resource_slice(device("a"), pool=f"p{n}", nodeName=f"node-{n}") for n in (3, 2)]
    outcome = run(node("node-3"), node("node-2"), node("node-1"), *slices, claim("c", request()), on=None)
    assert isinstance(outcome, Allocated)
    assert outcome.node == "node-2"


# Taints


@pytest.mark.req("5055-44", "5055-45", "5055-46", "5055-47", "5055-48", "5055-49", "5055-50", "5055-51", "5055-52")
@pytest.mark.parametrize(
    ("taints", "tolerations", "usable"),
    [
        ([NO_SCHEDULE], [], False),
        ([NO_EXECUTE], [], False),
        ([{"key": "k", "effect": "None"}], [], True),
        ([NO_SCHEDULE], [{"key": "k", "value": "v", "effect": "NoSchedule"}], True),
        ([NO_SCHEDULE], [{"key": "k", "value": "v"}], True),
        ([NO_SCHEDULE], [{"key": "k", "value": "w"}], False),
        ([NO_SCHEDULE], [{"key": "k", "operator": "Exists"}], True),
        ([NO_SCHEDULE], [{"operator": "Exists"}], True),
        ([NO_SCHEDULE], [{"key": "k", "value": "v", "operator": "Like"}], False),
        ([NO_SCHEDULE], [{"operator": "Exists", "effect": "None"}], False),
        ([NO_SCHEDULE, NO_EXECUTE], [{"key": "k", "operator": "Exists", "effect": "NoExecute"}], False),
        ([NO_SCHEDULE, NO_EXECUTE], [{"key": "k", "operator": "Exists"}], True),
    ],
)
def test_all_taints_must_be_tolerated(
    taints: list[dict[str, str]], tolerations: list[dict[str, str]], usable: bool
) -> None:
    outcome = run(resource_slice(device("a", taints=taints)), claim("c", request(tolerations=tolerations)))
    assert isinstance(outcome, Allocated) == usable


@pytest.mark.req("5055-60", "5055-61", "5055-63")
def test_one_device_out_of_service_by_rule() -> None:
    slice_ = resource_slice(device("a", taints=[{"key": "driver", "effect": "NoSchedule"}]), device("b"))
    rule = {
        "kind": "DeviceTaintRule",
        "metadata": {"name": "maintenance"},
        "spec": {"deviceSelector": {"device": "a"}, "taint": {"key": "repair", "effect": "NoExecute"}},
    }
    assert devices_of(run(slice_, rule, claim("c", request()))) == ["b"]
    repair = {"key": "repair", "operator": "Exists"}
    both = [repair, {"key": "driver", "operator": "Exists"}]
    assert devices_of(run(slice_, rule, claim("c", request(tolerations=[repair])))) == ["b"]
    assert devices_of(run(slice_, rule, claim("c", request(tolerations=both)))) == ["a"]


@pytest.mark.req("SVS-16")
def test_the_result_keeps_the_tolerations() -> None:
    outcome = run(resource_slice(device("a")), claim("c", request(tolerations=[{"operator": "Exists"}])))
    assert isinstance(outcome, Allocated)
    assert outcome.allocations["ns/c"].devices.results[0].tolerations[0].operator == "Exists"


@pytest.mark.req("implied-11")
def test_all_does_not_skip_a_tainted_device() -> None:
    """Implied 11: not a silent partial allocation."""
    slice_ = resource_slice(device("a"), device("b", taints=[NO_SCHEDULE]))
    assert isinstance(run(slice_, claim("c", request(allocationMode="All"))), Unsatisfiable)
    tolerating = claim("c", request(allocationMode="All", tolerations=[{"operator": "Exists"}]))
    assert devices_of(run(slice_, tolerating)) == ["a", "b"]


# Counters


def partition(name: str, amount: str, *groups: str, counter_set: str = "card") -> dict[str, Any]:
    draw: dict[str, Any] = {"counterSet": counter_set, "counters": {"memory": {"value": amount}}}
    if groups:
        draw["compatibilityGroups"] = list(groups)
    return device(name, consumesCounters=[draw])


def card(*partitions: dict[str, Any], size: str = "8") -> list[dict[str, Any]]:
    counters = [{"name": "card", "counters": {"memory": {"value": size}}}]
    return [
        resource_slice(*partitions, count=2, name="devices"),
        resource_slice(count=2, name="counters", sharedCounters=counters),
    ]


@pytest.mark.req("SVS-64")
def test_partitions_share_counters() -> None:
    slices = card(partition("a", "5"), partition("b", "4"), partition("c", "3"))
    assert devices_of(run(*slices, claim("c", request(count=2)))) == ["a", "c"]
    assert isinstance(run(*slices, claim("c", request(count=3))), Unsatisfiable)
    assert devices_of(run(*slices, held("x", "b"), claim("c", request()))) == ["c"]


def test_partitions_of_one_counter_set_need_a_common_group() -> None:
    slices = card(partition("a", "1", "mig"), partition("b", "1", "vgpu"), partition("c", "1", "mig", "vgpu"))
    assert devices_of(run(*slices, claim("c", request(count=2)))) == ["a", "c"]
    assert isinstance(run(*slices, claim("c", request(count=3))), Unsatisfiable)
    mixed = card(partition("a", "1", "mig"), partition("b", "1"))
    assert isinstance(run(*mixed, claim("c", request(count=2))), Unsatisfiable)


# Shares


def shared(name: str, value: str = "10", **policy: Any) -> dict[str, Any]:
    capacity = {"memory": {"value": value, **({"requestPolicy": policy} if policy else {})}}
    return device(name, allowMultipleAllocations=True, capacity=capacity)


def wants(amount: str) -> dict[str, Any]:
    return {"capacity": {"requests": {"memory": amount}}}


@pytest.mark.req("SVS-48", "SVS-64")
def test_shares_until_the_capacity_is_used_up() -> None:
    slice_ = resource_slice(shared("a"))
    three = claim("c", request("r0", **wants("4")), request("r1", **wants("4")), request("r2", **wants("2")))
    outcome = run(slice_, three)
    assert devices_of(outcome) == ["r0:a", "r1:a", "r2:a"]
    assert isinstance(outcome, Allocated)
    results = outcome.allocations["ns/c"].devices.results
    assert len({result.share_id for result in results}) == 3
    assert [str(result.consumed_capacity["memory"]) for result in results] == ["4", "4", "2"]
    used = held("x", "a", shareID="s", consumedCapacity={"memory": "7"})
    assert isinstance(run(slice_, used, claim("c", request(**wants("4")))), Unsatisfiable)
    assert devices_of(run(slice_, used, claim("c", request(**wants("3"))))) == ["a"]


def test_without_a_policy_a_request_that_names_no_amount_takes_all() -> None:
    slice_ = resource_slice(shared("a"))
    assert isinstance(run(slice_, claim("c", request("r0"), request("r1"))), Unsatisfiable)
    with_default = resource_slice(shared("a", default="4"))
    assert devices_of(run(with_default, claim("c", request("r0"), request("r1")))) == ["r0:a", "r1:a"]


def test_share_ids_come_from_the_given_factory_and_repeat_by_default() -> None:
    slice_ = resource_slice(shared("a"))
    mine = run(slice_, claim("c", request()), options=Options(share_id=lambda _: "id-1"))
    assert isinstance(mine, Allocated)
    assert mine.allocations["ns/c"].devices.results[0].share_id == "id-1"
    assert run(slice_, claim("c", request())) == run(slice_, claim("c", request()))


def test_only_the_first_share_draws_from_counters() -> None:
    draw = [{"counterSet": "card", "counters": {"memory": {"value": "8"}}}]
    slices = card({**shared("a", default="1"), "consumesCounters": draw}, partition("b", "1"))
    assert devices_of(run(*slices, claim("c", request("r0"), request("r1")))) == ["r0:a", "r1:a"]
    assert isinstance(run(*slices, claim("c", request(count=2))), Unsatisfiable)


def test_a_preference_changes_the_order() -> None:
    slice_ = resource_slice(*(device(name) for name in "abc"))
    last_first = Options(preference=lambda found: -ord(found.id.device))
    assert devices_of(run(slice_, held("x", "c"), claim("c", request(count=2)), options=last_first)) == ["b", "a"]
