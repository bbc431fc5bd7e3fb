"""Advice is tried on a copy before it is given."""

from __future__ import annotations

from typing import Any

import pytest

import builders
import dray
from dray.snapshot.pod_explanation import explain_pod
from snapshot_objects import DRIVER, Manifest, claim, device, device_class, held, node, resource_slice, rule


def told(*objects: Manifest, name: str = "ml/x") -> str:
    return str(dray.load(device_class(), *objects).explain(name))


def draw(card: str, memory: str) -> Manifest:
    return {"counterSet": card, "counters": {"memory": {"value": memory}}}


def partition(name: str, memory: str) -> Manifest:
    draw = {"counterSet": "card", "counters": {"memory": {"value": memory}}}
    return device(name, consumesCounters=[draw])


def card() -> list[Manifest]:
    """A card whole and in two halves."""
    parts = resource_slice("n", partition("whole", "80"), partition("h0", "40"), partition("h1", "40"), count=2)
    counters = resource_slice("n", count=2)
    counters["metadata"] = {"name": "counters"}
    counters["spec"]["sharedCounters"] = [{"name": "card", "counters": {"memory": {"value": "80"}}}]
    return [parts, counters]


def test_who_uses_up_a_counter_is_named_and_asked_to_give_it_back() -> None:
    text = told(*card(), held(claim("y"), "n", "whole"), claim("x"))
    assert "short of counter card/memory: needs 40, left 0 (used by ml/y)" in text
    assert "It would fit when whole (ml/y) is released." in text


def test_a_release_that_does_not_help_is_not_advised() -> None:
    """h0 is held, but the whole that is wanted needs h1 as well."""
    wants = claim("x", selector=f'device.capacity["{DRIVER}"].memory.compareTo(quantity("80Gi")) >= 0')
    objects = [*card(), held(claim("y"), "n", "h0"), held(claim("z"), "n", "h1")]
    objects[0]["spec"]["devices"][1]["capacity"]["memory"]["value"] = "40Gi"
    objects[0]["spec"]["devices"][2]["capacity"]["memory"]["value"] = "40Gi"
    text = told(*objects, wants)
    assert "It would fit when ml/y, ml/z give back what they hold." in text
    assert "is released" not in text


@pytest.mark.parametrize("wanted", [1, 2])
def test_of_many_small_holders_those_of_a_card_are_asked_to_give_it_back(wanted: int) -> None:
    """Four cards in seven parts each, all held: more than anybody would ask, and seven are enough for a card."""
    objects: list[Manifest] = []
    for number in range(4):
        name = f"card-{number}"
        parts = [device(f"{name}-p{part}", consumesCounters=[draw(name, "10")]) for part in range(7)]
        whole = device(f"{name}-whole", memory="90Gi", consumesCounters=[draw(name, "70")])
        published = resource_slice("n", whole, *parts, count=5)
        published["metadata"]["name"] = f"devices-{number}"
        objects += [published]
        objects += [held(claim(f"y{number}-{part}"), "n", f"{name}-p{part}") for part in range(7)]
    counters = resource_slice("n", count=5)
    counters["metadata"] = {"name": "counters"}
    counters["spec"]["sharedCounters"] = [
        {"name": f"card-{number}", "counters": {"memory": {"value": "70"}}} for number in range(4)
    ]
    large = f'device.capacity["{DRIVER}"].memory.compareTo(quantity("90Gi")) == 0'
    wants = claim("x", count=wanted, selector=large)
    text = told(*objects, counters, wants)
    named = [f"ml/y{number}-{part}" for number in range(wanted) for part in range(7)]
    assert f"It would fit when {', '.join(named)} give back what they hold." in text


def test_what_takes_both_a_rule_lifted_and_a_device_back_is_not_said_to_be_hopeless() -> None:
    both = resource_slice("n", device("a")), rule("r", "NoSchedule", pool="n"), held(claim("y"), "n", "a"), claim("x")
    assert "makes it fit; to lift rules and give devices back as well was not tried." in told(*both)


def test_no_more_holders_are_asked_than_are_needed() -> None:
    """Four cards are held whole, and three halves are wanted: two of them are enough."""
    objects: list[Manifest] = []
    for number in range(4):
        parts, counters = card()
        for one in (parts, counters):
            one["metadata"]["name"] += str(number)
            one["spec"]["pool"]["name"] = f"card-{number}"
        objects += [parts, counters, held(claim(f"y{number}"), f"card-{number}", "whole")]
    for published in objects[::3]:
        for part in published["spec"]["devices"][1:]:
            part["capacity"]["memory"]["value"] = "40Gi"
    halves = f'device.capacity["{DRIVER}"].memory.compareTo(quantity("40Gi")) == 0'
    text = told(*objects, claim("x", count=3, selector=halves))
    assert "It would fit when ml/y0, ml/y1 give back what they hold." in text


def test_a_holder_that_must_give_back_several_is_named_instead_of_one_of_them() -> None:
    """Of the two free halves of a card that is used in part, only one can be had."""
    used, counters = card()
    held_halves, more_counters = card()
    for one in (held_halves, more_counters):
        one["metadata"]["name"] += "-b"
        one["spec"]["pool"]["name"] = "b"
    for published in (used, held_halves):
        for part in published["spec"]["devices"][1:]:
            part["capacity"]["memory"]["value"] = "40Gi"
    used["spec"]["devices"].append(partition("small", "10"))
    holds = held(claim("y", count=2), "b", "h0", "h1")
    halves = f'device.capacity["{DRIVER}"].memory.compareTo(quantity("40Gi")) == 0'
    text = told(
        used,
        counters,
        held_halves,
        more_counters,
        holds,
        held(claim("z"), "n", "small"),
        claim("x", count=3, selector=halves),
    )
    assert "It would fit when ml/y gives back what it holds." in text


def test_a_pool_of_another_driver_is_not_what_is_missing() -> None:
    other: dict[str, Any] = resource_slice("n", device("nic"), count=2)
    other["metadata"]["name"] = "other"
    other["spec"]["driver"] = "nic.example.com"
    objects = [resource_slice("n", device("a")), other, held(claim("y"), "n", "a"), claim("x")]
    assert "complete" not in told(*objects).partition("It would fit")[2]


def test_no_advice_for_a_node_that_takes_no_pods() -> None:
    objects = [node("n", spec={"unschedulable": True}), resource_slice("n", device("a")), claim("x")]
    text = told(*objects)
    assert "It would fit" not in text
    assert "Take no pods: n (cordoned)." in text


def test_totals_are_the_sum_of_the_rows() -> None:
    """A pool that publishes the same names on two nodes has twice as many devices."""
    slices = []
    for name in ("a", "b"):
        made = resource_slice(name, device("gpu-0"), device("gpu-1"))
        made["spec"]["pool"]["name"] = "shared"
        slices.append(made)
    text = told(*slices, claim("x", count=3))
    assert "4 of 4 devices match; 4 free." in text


def test_that_nothing_helps_is_said() -> None:
    gpus = resource_slice("node-1", device("gpu-0", numa=0), device("gpu-1", numa=1))
    base = dray.load(node("node-1"), device_class(), gpus, claim("many", count=3), claim("none", selector="false"))
    assert "Nothing that was tried makes it fit" in str(base.explain("ml/many"))
    assert "No device that was looked at matches: to give back or lift something there does not help" in str(
        base.explain("ml/none")
    )
    held_up = base.with_objects(held(claim("other"), "node-1", "gpu-0"), claim("pair", count=2))
    assert "Nothing that was tried" not in str(held_up.explain("ml/pair"))


def test_a_class_that_is_missing_is_told_of_claims_as_of_pods() -> None:
    waits = builders.pod("p", namespace="ml", claims=[builders.pod_claim("gpu", claim="c")], meta={"uid": "p"})
    base = dray.load(node("node-1"), claim("c", device_class_name="nope"), waits)
    said = "request gpu: device class nope does not exist"
    assert str(base.explain("ml/c")) == f"ml/c is pending: {said}."
    told = explain_pod(base, "ml/p")
    assert told.status == "pending"
    assert said in told.message
    assert str(base.explain("ml/c")) in told.text()


def test_what_a_holder_has_it_gives_back_as_a_whole() -> None:
    """Of three devices of one claim two are needed: nobody can give back two of them."""
    full = resource_slice("n", *map(device, "abc"))
    text = told(full, held(claim("y", count=3), "n", "a", "b", "c"), claim("x", count=2))
    assert "It would fit when ml/y gives back what it holds." in text


def _explain_pod_with_two_claims(*devices: str) -> str:
    """A pod wants two devices in each of its two claims; ml/y has all but one of what is there."""
    uses = [builders.pod_claim(name, claim=name) for name in ("first", "second")]
    wants = builders.pod("p", namespace="ml", claims=uses, meta={"uid": "p"})
    objects = [node("n"), device_class(), resource_slice("n", *map(device, devices)), wants]
    objects += [claim("first", count=2), claim("second", count=2)]
    objects += [held(claim("y", count=len(devices) - 1), "n", *devices[1:])]
    return explain_pod(dray.load(*objects), "ml/p").text()


def test_what_helps_one_claim_is_no_advice_for_a_pod_that_needs_two() -> None:
    text = _explain_pod_with_two_claims("a", "b", "c")
    assert "Nothing that was tried makes its 2 claims fit together on one node." in text
    assert "would fit" not in text


def test_claims_that_fit_together_when_something_is_given_back_are_told_together() -> None:
    text = _explain_pod_with_two_claims("a", "b", "c", "d")
    assert "Its 2 claims would fit together on n when ml/y gives back what it holds." in text


def test_all_rules_that_taint_a_device_are_named_and_must_be_lifted_together() -> None:
    worn = device("a")
    rules = [rule(name, "NoSchedule", driver=DRIVER) for name in ("first", "second")]
    text = told(node("n"), resource_slice("n", worn), *rules, claim("x"))
    assert "tainted NoSchedule by rule first" in text
    assert "and by rule second" in text
    assert "1 of 1 device matches; 1 tainted by rules first, second." in text
    assert "It would fit without the taints of rules first, second." in text


def test_a_rule_is_no_way_out_where_the_driver_taints_the_device_too() -> None:
    worn = device("a", taints=[{"key": "k", "effect": "NoSchedule"}])
    text = told(node("n"), resource_slice("n", worn), rule("r", "NoSchedule", driver=DRIVER), claim("x"))
    assert "tainted by rule r and the driver" in text
    assert "without the taint" not in text


def test_no_advice_for_a_node_while_devices_of_another_make_the_claim_fail() -> None:
    """Without the rule it would fit on m, but a selector that fails on n fails for the claim as a whole."""
    odd = device("b")
    odd["attributes"]["speed"] = {"int": 1}
    slices = [resource_slice("m", odd), resource_slice("n", device("a"))]
    wants = claim("x", selector=f'device.attributes["{DRIVER}"].speed == 1')
    for one in slices:
        one["spec"]["pool"]["name"] = one["spec"]["nodeName"]
    lifted = [node("m"), node("n"), *slices, wants]
    assert "cannot be judged" in told(*lifted)
    assert "It would fit without" not in told(*lifted, rule("r", "NoSchedule", pool="m"))


def test_a_pod_is_not_advised_to_take_from_the_claims_that_it_uses_itself() -> None:
    """It has one of two devices by one claim, and wants one more by another: the other's holder must go."""
    uses = [builders.pod_claim(name, claim=name) for name in ("mine", "wanted")]
    waits = builders.pod("p", namespace="ml", claims=uses, meta={"uid": "p"})
    objects = [node("n"), device_class(), resource_slice("n", *map(device, "ab")), waits]
    objects += [held(claim("mine"), "n", "a"), claim("wanted")]
    text = explain_pod(dray.load(*objects, held(claim("y"), "n", "b")), "ml/p").text()
    assert "It would fit when b (ml/y) is released." in text


@pytest.mark.parametrize("others", [True, False], ids=["others", "alone"])
def test_devices_that_match_on_a_node_that_takes_no_pods_are_told(others: bool) -> None:
    """No device of the others matches; to say that nothing helps, or that there are no nodes, is not so."""
    closed = node("closed", spec={"unschedulable": True})
    wanted = claim("c", selector='device.attributes["gpu.example.com"].numa == 1')
    there = [closed, resource_slice("closed", device("gpu-0", numa=1))]
    there += [node("open"), resource_slice("open", device("gpu-0", numa=0))] if others else []
    base = dray.load(device_class(), *there, wanted)
    told = str(base.explain("ml/c"))
    assert "Take no pods: closed (cordoned). Devices that fit are on closed." in told
    assert ("No device that was looked at matches" if others else "there is no node for it") in told
    assert base.explain("ml/c").to_dict()["wouldFitOn"] == ["closed"]
    outcome = base.allocate("ml/c")
    assert outcome.explain().brief().endswith("; there are devices on closed, which is cordoned")
    held_there = base.with_objects(held(claim("h"), "closed", "gpu-0"))
    assert "Take no pods: closed (cordoned)." in str(held_there.explain("ml/c"))
    assert "Devices that fit" not in str(held_there.explain("ml/c"))
