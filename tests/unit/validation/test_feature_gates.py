"""Fields of gates that are off: dropped from new objects, kept in stored ones."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

import builders
from dray import validation
from dray.api.resource import DeviceClass, ResourceClaim, ResourceSlice
from dray.api.times import Time

NOW = Time("2026-06-01T12:00:00Z")
TAINT = {"key": "a", "effect": "NoExecute", "timeAdded": "2026-01-01T00:00:00Z"}


def a_slice(**spec: Any) -> ResourceSlice:
    found = validation.documents.read(builders.resource_slice("s", **spec))[2]
    assert isinstance(found, ResourceSlice)
    return found


def a_claim(**exactly: Any) -> ResourceClaim:
    found = validation.documents.read(builders.claim("c", builders.request(**exactly)))[2]
    assert isinstance(found, ResourceClaim)
    return found


def without(*gates: str) -> validation.Context:
    return validation.Context(now=NOW, disabled_gates=frozenset(gates))


DEVICE_FIELDS = [
    ("DRADeviceTaints", {"taints": [TAINT]}),
    ("DRAPartitionableDevices", {"consumesCounters": [{"counterSet": "s", "counters": {"c": {"value": "1"}}}]}),
    ("DRADeviceBindingConditions", {"bindingConditions": ["a"], "bindingFailureConditions": ["b"]}),
    ("DRAConsumableCapacity", {"allowMultipleAllocations": True}),
    ("DRANodeAllocatableResources", {"nodeAllocatableResources": {"cpu": {"overhead": {"perPod": "1"}}}}),
]


@pytest.mark.req("5055-01", "5055-110", "5055-111", "5055-123", "SVS-14")
@pytest.mark.parametrize(("gate", "fields"), DEVICE_FIELDS)
def test_devices(gate: str, fields: dict[str, Any]) -> None:
    plain, full = a_slice(devices=[{"name": "a"}]), a_slice(devices=[{"name": "a", **fields}])
    assert validation.prepare_for_create(full, without(gate)).spec == plain.spec
    assert validation.prepare_for_create(full, without()).spec == full.spec
    assert validation.prepare_for_update(full, full, without(gate)).spec == full.spec
    assert validation.prepare_for_update(full, plain, without(gate)).spec == plain.spec


@pytest.mark.req("5055-110", "5055-111", "5055-01")
def test_separate_taints() -> None:
    full = a_slice(taints=[{"device": "a", "taint": TAINT}])
    assert validation.prepare_for_create(full, without("DRADeviceTaints")).spec == a_slice().spec
    assert validation.prepare_for_update(full, full, without("DRADeviceTaints")).spec == full.spec


@pytest.mark.req("5055-20", "5055-110", "5055-111", "5055-123")
@pytest.mark.parametrize(
    ("gate", "fields"),
    [
        ("DRADeviceTaints", {"tolerations": [{"key": "a", "operator": "Exists"}]}),
        ("DRAAdminAccess", {"adminAccess": True}),
        ("DRAConsumableCapacity", {"capacity": {"requests": {"m": "1"}}}),
        ("DRADerivedAttributes", {"derivedAttributes": [{"name": "a.example/x", "expression": "1"}]}),
    ],
)
def test_requests(gate: str, fields: dict[str, Any]) -> None:
    plain, full = a_claim(), a_claim(**fields)
    assert validation.prepare_for_create(full, without(gate)).spec == plain.spec
    assert validation.prepare_for_create(full, without()).spec == full.spec
    assert validation.prepare_for_update(full, full, without(gate)).spec == full.spec


@pytest.mark.req("4381-03")
def test_a_slice_counts_changes_of_its_spec() -> None:
    ctx = without()
    stored = validation.prepare_for_create(a_slice(), ctx)
    assert stored.metadata.generation == 1
    labelled = replace(stored, metadata=replace(stored.metadata, labels={"a": "b"}, generation=99))
    assert validation.prepare_for_update(labelled, stored, ctx).metadata.generation == 1
    assert validation.prepare_for_update(a_slice(devices=[{"name": "a"}]), stored, ctx).metadata.generation == 2


@pytest.mark.req("4381-62")
def test_a_class_may_change_and_counts_it() -> None:
    def a_class(*expressions: str, **meta: Any) -> DeviceClass:
        selectors = [{"cel": {"expression": expression}} for expression in expressions]
        metadata = {"name": "gpu", **meta}
        obj = {"apiVersion": "resource.k8s.io/v1", "kind": "DeviceClass", "metadata": metadata}
        found = validation.documents.read({**obj, "spec": {"selectors": selectors}})[2]
        assert isinstance(found, DeviceClass)
        return found

    ctx = without()
    stored = validation.prepare_for_create(a_class("true"), ctx)
    assert stored.metadata.generation == 1
    assert validation.prepare_for_update(a_class("true", labels={"a": "b"}), stored, ctx).metadata.generation == 1
    assert validation.prepare_for_update(a_class("false"), stored, ctx).metadata.generation == 2


@pytest.mark.req("4381-130")
def test_a_status_update_changes_nothing_but_the_status() -> None:
    ctx = without()
    stored = validation.prepare_for_create(a_claim(), ctx)
    obj = validation.documents.read(
        {
            "apiVersion": "resource.k8s.io/v1",
            "kind": "ResourceClaim",
            "metadata": {"name": "c", "namespace": "default", "finalizers": ["a/b"], "labels": {"a": "b"}},
            "spec": {"devices": {"requests": []}},
            "status": {"allocation": {"devices": {}}},
        }
    )[2]
    assert isinstance(obj, ResourceClaim)
    updated = validation.prepare_for_status_update(obj, stored, ctx)
    assert (updated.spec, updated.metadata) == (stored.spec, stored.metadata)
    assert updated.status.allocation is not None


def test_what_drivers_said_goes_with_the_devices() -> None:
    result = {"request": "r", "driver": "d", "pool": "p", "device": "x"}
    status = {"driver": "d", "pool": "p", "device": "x"}
    old = a_claim()
    read = validation.documents.read
    base = {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaim",
        "metadata": {"name": "c", "namespace": "default"},
    }
    allocated = read({**base, "status": {"allocation": {"devices": {"results": [result]}}, "devices": [status]}})[2]
    freed = read({**base, "status": {"devices": [status]}})[2]
    assert isinstance(allocated, ResourceClaim)
    assert isinstance(freed, ResourceClaim)
    assert validation.prepare_for_status_update(freed, allocated, without()).status.devices == ()
    assert validation.prepare_for_status_update(allocated, old, without()).status.devices != ()
