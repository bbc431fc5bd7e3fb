"""Reason trees: the first check that each device fails, and what would help."""

from __future__ import annotations

import json
from typing import Any

import pytest

from allocation_manifests import (
    DRIVER,
    cel,
    claim,
    cluster_of,
    device,
    device_class,
    held,
    node,
    one_of,
    request,
    resource_slice,
)
from dray.allocator import Explanation, device_check, explain
from dray.allocator.judge import conditions_of
from dray.allocator.reasons import (
    AttributeMissing,
    CapacityShort,
    CapacityUnsuitable,
    Check,
    ConstraintConflict,
    CounterShort,
    GroupsIncompatible,
    InUse,
    NodeReport,
    OutOfReach,
    SelectorFailed,
    SelectorFalse,
    Tainted,
)
from dray.cel.explain import Condition
from dray.tracker.view import EffectiveDevice

NUMA = f"{DRIVER}/numa"


def tree(*objects: dict[str, Any], wanted: tuple[str, ...] = ("c",)) -> Explanation:
    cluster = cluster_of(*objects)
    claims = [cluster.claims[f"ns/{name}"] for name in wanted]
    found = explain(cluster.inventory, cluster.classes, claims)
    assert json.loads(json.dumps(found.to_dict())) == found.to_dict()
    return found


def only_node(*objects: dict[str, Any]) -> NodeReport:
    return tree(*objects).claims[0].requests[0].nodes[0]


def first_check(*objects: dict[str, Any]) -> Check | None:
    return only_node(*objects).devices[0].check


def test_the_false_condition_with_the_values_it_saw() -> None:
    expression = f'device.driver == "{DRIVER}" && device.attributes["{DRIVER}"].memory >= 80'
    slice_ = resource_slice(device("a", attributes={"memory": 40}))
    check = first_check(slice_, claim("c", request(selectors=cel("true", expression))))
    assert isinstance(check, SelectorFalse)
    assert (check.class_name, check.index) == (None, 1)
    assert check.condition == f'device.attributes["{DRIVER}"].memory >= 80'
    assert check.values == {f"{DRIVER}/memory": 40}
    of_class = first_check(slice_, device_class("gpu", "false"), claim("c", request()))
    assert isinstance(of_class, SelectorFalse)
    assert of_class.class_name == "gpu"


def test_devices_that_look_the_same_are_explained_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """However many there are, on however many nodes, and each kind with its own values."""
    explained: list[str] = []

    def count(expression: str, of: EffectiveDevice) -> list[Condition]:
        explained.append(of.id.device)
        return conditions_of(expression, of)

    monkeypatch.setattr(device_check, "conditions_of", count)
    nodes = [f"node-{number}" for number in range(3)]
    slices = [
        resource_slice(
            *[
                device(f"{name}-{number}", attributes={"memory": memory, "serial": f"{name}-{number}"})
                for number in range(4)
            ],
            pool=name,
            nodeName=name,
        )
        for name, memory in zip(nodes, (40, 48, 40), strict=True)
    ]
    expression = f'device.attributes["{DRIVER}"].memory >= 80'
    found = tree(*map(node, nodes), *slices, claim("c", request(selectors=cel(expression))))
    assert explained == ["node-0-0", "node-1-0"]
    told = {each.device: each.check for at in found.claims[0].requests[0].nodes for each in at.devices}
    assert len(told) == 12
    for name, check in told.items():
        assert isinstance(check, SelectorFalse)
        assert check.values == {f"{DRIVER}/memory": 48 if name.startswith("node-1") else 40}


def test_a_selector_that_fails() -> None:
    report = only_node(
        resource_slice(device("a")), claim("c", request(selectors=cel(f'device.attributes["{DRIVER}"].x == 1')))
    )
    assert isinstance(report.devices[0].check, SelectorFailed)
    assert report.error is not None
    assert "CEL runtime error" in report.error


@pytest.mark.req("5055-47")
def test_a_taint_names_its_rule() -> None:
    rule = {
        "kind": "DeviceTaintRule",
        "metadata": {"name": "rack-3-maintenance"},
        "spec": {
            "deviceSelector": {"device": "a"},
            "taint": {"key": "k", "effect": "NoSchedule", "timeAdded": "2026-06-01T11:46:00Z"},
        },
    }
    check = first_check(resource_slice(device("a")), rule, claim("c", request()))
    assert check == Tainted(key="k", effect="NoSchedule", rule="rack-3-maintenance", time_added="2026-06-01T11:46:00Z")


def test_who_holds_a_device() -> None:
    report = only_node(resource_slice(device("a"), device("b")), held("x", "a"), claim("c", request(count=2)))
    assert [d.check for d in report.devices] == [InUse(claims=("ns/x",)), None]
    assert (report.matching, report.free, report.missing, report.fits) == (2, 1, 1, False)


def test_a_device_of_another_node() -> None:
    slice_ = resource_slice(device("a", nodeName="node-2"), device("b", nodeName="node-1"), perDeviceNodeSelection=True)
    assert isinstance(first_check(slice_, claim("c", request())), OutOfReach)


def test_a_counter_that_is_short() -> None:
    def partition(name: str, amount: str, *groups: str) -> dict[str, Any]:
        draw = {"counterSet": "card", "counters": {"memory": {"value": amount}}, "compatibilityGroups": list(groups)}
        return device(name, consumesCounters=[draw])

    counters = [{"name": "card", "counters": {"memory": {"value": "8Gi"}}}]
    slices = [
        resource_slice(
            partition("a", "5Gi", "g"), partition("b", "4Gi", "g"), partition("c", "1Gi"), count=2, name="d"
        ),
        resource_slice(count=2, name="counters", sharedCounters=counters),
    ]
    report = only_node(*slices, held("x", "b"), claim("c", request()))
    assert report.devices[0].check == CounterShort(
        counter_set="card", counter="memory", needed="5Gi", left="4Gi", short_by="1Gi", claims=("ns/x",)
    )
    assert report.devices[2].check == GroupsIncompatible(
        counter_set="card", groups=(), present=("g",), claims=("ns/x",)
    )


def test_capacity_that_is_short_or_unsuitable() -> None:
    capacity = {"memory": {"value": "8Gi"}}
    slice_ = resource_slice(device("a", allowMultipleAllocations=True, capacity=capacity))
    used = held("x", "a", shareID="s", consumedCapacity={"memory": "6Gi"})
    check = first_check(slice_, used, claim("c", request(capacity={"requests": {"memory": "4Gi"}})))
    assert check == CapacityShort(capacity="memory", needed="4Gi", left="2Gi", short_by="2Gi", claims=("ns/x",))
    too_much = first_check(slice_, claim("c", request(capacity={"requests": {"memory": "9Gi"}})))
    assert too_much == CapacityUnsuitable(capacity="memory", requested="9Gi", value="8Gi")
    unknown = first_check(slice_, claim("c", request(capacity={"requests": {"cores": "1"}})))
    assert unknown == CapacityUnsuitable(capacity="cores", requested="1")


@pytest.mark.parametrize(
    ("policy", "allowed"),
    [
        ({"default": "10", "validRange": {"min": "10", "step": "10", "max": "60"}}, {"at_most": "60"}),
        ({"default": "10", "validValues": ["10", "20"]}, {"choices": ("10", "20")}),
    ],
)
def test_what_a_policy_lets_one_request_have(policy: dict[str, Any], allowed: dict[str, Any]) -> None:
    """The capacity whose policy forbids the amount is named, not the first one that has a policy."""
    amounts = {"slots": {"value": "4", "requestPolicy": {"default": "1", "validValues": ["1", "2"]}}}
    amounts["bandwidth"] = {"value": "100", "requestPolicy": policy}
    slice_ = resource_slice(device("a", allowMultipleAllocations=True, capacity=amounts))
    check = first_check(slice_, claim("c", request(capacity={"requests": {"slots": "2", "bandwidth": "70"}})))
    assert check == CapacityUnsuitable(capacity="bandwidth", requested="70", value="100", **allowed)


@pytest.mark.req("4381-55")
def test_a_constraint_with_the_conflicting_values() -> None:
    slice_ = resource_slice(
        device("a", attributes={"numa": 0}), device("b", attributes={"numa": 1}), device("c", attributes={})
    )
    report = only_node(slice_, claim("c", request(count=2), constraints=[{"matchAttribute": NUMA}]))
    assert report.fits_without == (NUMA,)
    assert (report.free, report.missing) == (2, 1)
    assert report.devices[0].check == ConstraintConflict(
        attribute=NUMA, values=("0",), others={"1": (f"{DRIVER}/p/b",)}
    )
    assert report.devices[2].check == AttributeMissing(attribute=NUMA)


@pytest.mark.req("SVS-50")
def test_pools_that_cannot_be_used_are_named() -> None:
    report = only_node(resource_slice(device("a"), count=3), claim("c", request()))
    assert len(report.problems) == 1
    assert report.problems[0].pool == "p"
    assert report.problems[0].incomplete
    assert report.devices == ()


def test_every_alternative_and_node_has_a_report() -> None:
    found = tree(
        node("node-2"),
        resource_slice(device("a")),
        resource_slice(device("b"), device("c"), pool="q", nodeName="node-2"),
        claim("c", one_of("r", {"count": 3}, {"count": 2})),
    )
    reports = found.claims[0].requests
    assert [(r.name, r.count) for r in reports] == [("r/s0", 3), ("r/s1", 2)]
    assert [[(n.node, n.fits, n.missing) for n in r.nodes] for r in reports] == [
        [("node-1", False, 2), ("node-2", False, 1)],
        [("node-1", False, 1), ("node-2", True, 0)],
    ]
    assert [(v.node, v.status) for v in found.nodes] == [("node-1", "unsatisfiable"), ("node-2", "allocated")]


def test_claims_that_fit_alone_but_not_together() -> None:
    found = tree(resource_slice(device("a")), claim("c", request()), claim("d", request()), wanted=("c", "d"))
    assert [v.status for v in found.nodes] == ["unsatisfiable"]
    assert [[v.status for v in report.nodes] for report in found.claims] == [["allocated"], ["allocated"]]


def test_a_claim_that_cannot_be_judged() -> None:
    found = tree(claim("c", request(deviceClassName="gone")))
    assert found.claims[0].error is not None
    assert "device class gone not found" in found.claims[0].error
    assert found.nodes[0].status == "error"
