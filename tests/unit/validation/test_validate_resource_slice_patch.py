"""The rules for ResourceSlicePatches."""

from __future__ import annotations

from typing import Any

import pytest

from dray import validation
from dray.api.resource import ResourceSlicePatch
from dray.api.times import Time

NOW = Time("2026-06-01T12:00:00Z")


def a_patch(**devices: Any) -> dict[str, Any]:
    return {
        "apiVersion": "resource.k8s.io/v1alpha3",
        "kind": "ResourceSlicePatch",
        "metadata": {"name": "patch"},
        "spec": {"devices": devices},
    }


@pytest.mark.req("5027-01", "5027-05", "5027-06", "5027-57")
def test_a_patch_needs_no_filter(verdict: Any) -> None:
    assert verdict(a_patch()) == set()
    assert verdict(a_patch(attributes={"example.com/a": {"int": 1}})) == set()


@pytest.mark.req("5027-07")
@pytest.mark.parametrize("priority", [-5, 0, 5])
def test_any_priority(verdict: Any, priority: int) -> None:
    assert verdict(a_patch(priority=priority)) == set()


@pytest.mark.req("5027-08", "5027-09", "X-10")
def test_names_need_their_domain(verdict: Any) -> None:
    path = "spec.devices"
    assert verdict(a_patch(attributes={"model": {"int": 1}})) == {("Invalid", f"{path}.attributes")}
    assert verdict(a_patch(capacity={"memory": {"value": "1"}})) == {("Invalid", f"{path}.capacity")}
    assert verdict(a_patch(capacity={"example.com/memory": {"value": "0"}})) == set()


@pytest.mark.req("5027-10")
def test_how_many_attributes_and_capacities(verdict: Any) -> None:
    attributes = {f"example.com/a{number}": {"int": 1} for number in range(20)}
    capacity = {f"example.com/c{number}": {"value": "1"} for number in range(13)}
    assert verdict(a_patch(attributes=attributes, capacity=capacity)) == {("Invalid", "spec.devices")}
    capacity.popitem()
    assert verdict(a_patch(attributes=attributes, capacity=capacity)) == set()


VALUES = [
    ({"null": {}}, set()),
    ({"int": 1}, set()),
    ({"strings": ["a"]}, set()),
    ({}, {("Invalid", "")}),
    ({"null": {}, "int": 1}, {("Invalid", "")}),
    ({"version": "1"}, {("Invalid", ".version")}),
    ({"string": "a" * 65}, {("TooLong", ".string")}),
]


@pytest.mark.req("5027-11", "5027-12", "5027-58")
@pytest.mark.parametrize(("value", "expected"), VALUES)
def test_attribute_values(verdict: Any, value: dict[str, Any], expected: set[tuple[str, str]]) -> None:
    path = "spec.devices.attributes[example.com/a]"
    assert verdict(a_patch(attributes={"example.com/a": value})) == {
        (reason, path + field) for reason, field in expected
    }


@pytest.mark.req("5027-25")
def test_capacities_cannot_be_removed() -> None:
    patch = validation.default(a_patch(capacity={"example.com/m": {"null": {}}}))
    assert patch["spec"]["devices"]["capacity"] == {"example.com/m": {"value": "0"}}


@pytest.mark.req("5027-14", "5027-15")
def test_filters(verdict: Any) -> None:
    def judge(**criteria: Any) -> set[tuple[str, str]]:
        found: set[tuple[str, str]] = verdict(a_patch(filter=criteria))
        return {(reason, field.removeprefix("spec.devices.filter.")) for reason, field in found}

    cel = {"cel": {"expression": "true"}}
    assert judge() == set()
    assert judge(deviceClassName="c", driver="d", pool="p", device="e", selectors=[cel]) == set()
    assert judge(selectors=[{}]) == {("Required", "selectors[0].cel")}
    assert judge(driver="d d", device="E") == {("Invalid", "driver"), ("Invalid", "device")}


def prepared(manifest: dict[str, Any], old: ResourceSlicePatch | None, *, gate: bool) -> ResourceSlicePatch:
    off = frozenset() if gate else frozenset(("DRAAdminControlledDeviceAttributes",))
    ctx = validation.Context(now=NOW, disabled_gates=off)
    patch = validation.documents.read(manifest)[2]
    assert isinstance(patch, ResourceSlicePatch)
    return validation.prepare_for_create(patch, ctx) if old is None else validation.prepare_for_update(patch, old, ctx)


@pytest.mark.req("5027-02", "5027-42", "5027-48")
def test_while_the_gate_is_off_new_content_is_dropped_and_stored_content_kept() -> None:
    manifest = a_patch(priority=3, attributes={"example.com/a": {"int": 1}}, capacity={"example.com/m": {"value": "1"}})
    dropped = prepared(manifest, None, gate=False)
    assert (dropped.spec.devices.attributes, dropped.spec.devices.capacity) == ({}, {})
    assert dropped.spec.devices.priority == 3
    stored = prepared(manifest, None, gate=True)
    assert prepared(manifest, stored, gate=False).spec == stored.spec


@pytest.mark.req("5027-03")
def test_generation(edit: Any) -> None:
    manifest = a_patch(priority=3)
    stored = prepared(manifest, None, gate=True)
    assert stored.metadata.generation == 1
    assert prepared(edit(manifest, {"metadata.labels": {"a": "b"}}), stored, gate=True).metadata.generation == 1
    assert prepared(edit(manifest, {"spec.devices.priority": 4}), stored, gate=True).metadata.generation == 2
