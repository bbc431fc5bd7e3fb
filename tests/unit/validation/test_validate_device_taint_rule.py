"""Device taints, in rules and in slices, and what the server does to rules."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

import builders
from dray import validation
from dray.api.resource import DeviceTaintRule
from dray.api.times import Time

LATER = Time("2026-06-01T13:00:00Z")


def a_rule(taint: dict[str, Any] | None = None, **spec: Any) -> dict[str, Any]:
    tainted = {"key": "example.com/broken", "effect": "NoExecute", **(taint or {})}
    return builders.manifest(builders.V1ALPHA3, "DeviceTaintRule", "rule", spec={"taint": tainted, **spec})


def a_taint_slice(taint: dict[str, Any]) -> dict[str, Any]:
    whole = {"key": "example.com/broken", "effect": "NoExecute", **taint}
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceSlice",
        "metadata": {"name": "slice"},
        "spec": {
            "driver": "gpu.example.com",
            "pool": {"name": "p", "generation": 1, "resourceSliceCount": 1},
            "allNodes": True,
            "taints": [{"device": "gpu-0", "taint": whole}],
        },
    }


TAINTS = [
    ({}, set()),
    ({"key": ""}, {("Invalid", "key")}),
    ({"key": "a b"}, {("Invalid", "key")}),
    ({"key": "a" * 64}, {("Invalid", "key")}),
    ({"key": "kubernetes.io/x"}, set()),
    ({"key": "any.domain.example/x"}, set()),
    ({"value": "v"}, set()),
    ({"value": "v" * 63}, set()),
    ({"value": "v" * 64}, {("Invalid", "value")}),
    ({"value": "v!"}, {("Invalid", "value")}),
    ({"effect": "None"}, set()),
    ({"effect": "NoSchedule"}, set()),
    ({"effect": ""}, {("Required", "effect")}),
    ({"effect": "PreferNoSchedule"}, {("NotSupported", "effect")}),
    ({"timeAdded": "2026-01-01T02:00:00+02:00"}, set()),
    ({"data": {"any": ["json", 1, None]}}, set()),
    ({"data": "x" * 10_238}, set()),
    ({"data": "x" * 10_239}, {("TooLong", "data")}),
    ({"description": "ä" * 1024}, set()),
    ({"description": "x" * 1025}, {("TooLong", "description")}),
    ({"evictionsPerSecond": 1}, set()),
    ({"evictionsPerSecond": 2**63 - 1}, set()),
    ({"evictionsPerSecond": 0}, {("Invalid", "evictionsPerSecond")}),
    ({"evictionsPerSecond": -1}, {("Invalid", "evictionsPerSecond")}),
]


@pytest.mark.req(
    "5055-10", "5055-11", "5055-12", "5055-13", "5055-14", "5055-16", "5055-17", "5055-18", "5055-19", "5055-37",
    "5055-41", "5055-42", "5055-43", "5055-141", "5055-146", "X-07", "implied-9",
)  # fmt: skip
@pytest.mark.parametrize(("taint", "expected"), TAINTS)
def test_a_taint_is_the_same_in_rules_and_slices(
    verdict: Any, taint: dict[str, Any], expected: set[tuple[str, str]]
) -> None:
    assert verdict(a_rule(taint)) == {(reason, f"spec.taint.{field}") for reason, field in expected}
    assert verdict(a_taint_slice(taint)) == {(reason, f"spec.taints[0].taint.{field}") for reason, field in expected}


@pytest.mark.req("5055-29", "5055-32", "5055-33", "SVS-10", "SVS-13")
@pytest.mark.parametrize("version", ["v1alpha3", "v1beta2", "v1"])
def test_selectors_of_rules(verdict: Any, version: str) -> None:
    def judge(selector: dict[str, Any] | None) -> set[tuple[str, str]]:
        rule = a_rule(**({} if selector is None else {"deviceSelector": selector}))
        rule["apiVersion"] = f"resource.k8s.io/{version}"
        found: set[tuple[str, str]] = verdict(rule)
        return {(reason, field.removeprefix("spec.deviceSelector.")) for reason, field in found}

    cel = {"cel": {"expression": 'device.driver == "x"'}}
    assert judge(None) == judge({}) == set()
    assert judge({"deviceClassName": "c", "driver": "d", "pool": "a/b", "device": "e", "selectors": [cel]}) == set()
    assert judge({"driver": "d d"}) == {("Invalid", "driver")}
    assert judge({"pool": ""}) == {("Required", "pool")}
    assert judge({"device": "E"}) == {("Invalid", "device")}
    assert judge({"deviceClassName": "C"}) == {("Invalid", "deviceClassName")}
    assert judge({"selectors": [{"cel": {"expression": "1"}}]}) == {("Invalid", "selectors[0].cel.expression")}
    assert judge({"selectors": [{}]}) == {("Required", "selectors[0].cel")}


@pytest.mark.req("5055-32")
def test_the_taint_of_a_rule_is_required(verdict: Any, edit: Any) -> None:
    assert verdict(edit(a_rule(), {"spec.taint": None})) == {
        ("Invalid", "spec.taint.key"),
        ("Required", "spec.taint.effect"),
    }


@pytest.mark.req("5055-15", "5055-40", "5055-151")
@pytest.mark.parametrize("effect", ["None", "NoSchedule", "NoExecute"])
def test_time_added_is_filled_in_once(effect: str) -> None:
    rule = validation.default(a_rule({"effect": effect}), now=LATER)
    assert rule["spec"]["taint"]["timeAdded"] == LATER
    kept = validation.default(a_rule({"timeAdded": "2020-01-01T00:00:00Z"}), now=LATER)
    assert kept["spec"]["taint"]["timeAdded"] == "2020-01-01T00:00:00Z"


@pytest.mark.req("5055-40", "SVS-01", "5055-144")
def test_only_taints_without_a_time_get_one() -> None:
    early = "2020-01-01T00:00:00Z"
    devices = [
        {"name": "a", "taints": [{"key": "x", "effect": "None", "timeAdded": early}, {"key": "y", "effect": "None"}]}
    ]
    obj = {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceSlice",
        "metadata": {"name": "s"},
        "spec": {"devices": devices},
    }
    taints = validation.default(obj, now=LATER)["spec"]["devices"][0]["taints"]
    assert [taint["timeAdded"] for taint in taints] == [early, LATER]
    separate = validation.default(a_taint_slice({}), now=LATER)["spec"]["taints"]
    assert separate[0]["taint"]["timeAdded"] == LATER


def stored_rule(**taint: Any) -> DeviceTaintRule:
    rule = validation.documents.read(a_rule({"timeAdded": "2026-01-01T00:00:00Z", **taint}))[2]
    assert isinstance(rule, DeviceTaintRule)
    return validation.prepare_for_create(rule, validation.Context(now=LATER))


def updated(rule: DeviceTaintRule, **taint: Any) -> DeviceTaintRule:
    changed = replace(rule, spec=replace(rule.spec, taint=replace(rule.spec.taint, **taint)))
    return validation.prepare_for_update(changed, rule, validation.Context(now=LATER))


@pytest.mark.req("5055-150", "SVS-09", "5055-97")
def test_a_new_effect_starts_anew() -> None:
    rule = stored_rule(effect="None")
    assert updated(rule, effect="NoExecute").spec.taint.time_added == LATER
    chosen = Time("2026-02-02T00:00:00Z")
    assert updated(rule, effect="NoExecute", time_added=chosen).spec.taint.time_added == chosen
    assert updated(rule, value="x").spec.taint.time_added == rule.spec.taint.time_added


@pytest.mark.req("5055-30", "5055-31")
def test_generation_counts_changes_of_the_spec() -> None:
    rule = stored_rule()
    assert rule.metadata.generation == 1
    assert updated(rule).metadata.generation == 1
    assert updated(rule, value="x").metadata.generation == 2
    labelled = replace(rule, metadata=replace(rule.metadata, labels={"a": "b"}, generation=99))
    ctx = validation.Context(now=LATER)
    assert validation.prepare_for_update(labelled, rule, ctx).metadata.generation == 1
    assert validation.prepare_for_status_update(labelled, rule, ctx).metadata == rule.metadata


@pytest.mark.req("5055-31", "5055-34", "5055-35")
def test_status_of_rules(verdict: Any, edit: Any) -> None:
    def condition(kind: str) -> dict[str, Any]:
        return {"type": kind, "status": "True", "reason": "R", "lastTransitionTime": "2026-01-01T00:00:00Z"}

    rule = a_rule({"timeAdded": "2026-01-01T00:00:00Z"})
    eight = [condition(f"Type{number}") for number in range(8)]
    assert verdict(edit(rule, {"status": {"conditions": eight}}), rule) == set()
    nine = [*eight, condition("Foreign")]
    assert verdict(edit(rule, {"status": {"conditions": nine}}), rule) == {("TooMany", "status.conditions")}
    twice = [condition("A"), condition("A")]
    assert verdict(edit(rule, {"status": {"conditions": twice}}), rule) == {("Duplicate", "status.conditions[1]")}
