"""Fields of slices and patches that belong to a feature gate.

While a gate is off, its fields are dropped from what is written, unless the stored object uses them already: then they
are kept, so that an unrelated update loses nothing (5055-110, 5055-111, 5027-42).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from msgspec.structs import replace

from dray.api.resource import Device, ResourceSlice, ResourceSlicePatch, ResourceSliceSpec
from dray.validation.context import Context
from dray.validation.device_attributes import has_list

_Change = Callable[[Device], Device]


def drop_slice_fields(new: ResourceSlice, old: ResourceSlice | None, ctx: Context) -> ResourceSlice:
    """The slice without the fields of gates that are off."""
    if not ctx.disabled_gates:
        return new
    spec = new.spec
    for gates, in_use, drop in _RULES:
        if not all(ctx.enabled(gate) for gate in gates) and not (old is not None and in_use(old.spec)):
            spec = drop(spec)
    return new if spec is new.spec else replace(new, spec=spec)


def drop_patch_fields(new: ResourceSlicePatch, old: ResourceSlicePatch | None, ctx: Context) -> ResourceSlicePatch:
    """The patch without attributes and capacities while its gate is off (5027-02, 5027-42)."""
    if ctx.enabled("DRAAdminControlledDeviceAttributes"):
        return new
    if old is not None and (old.spec.devices.attributes or old.spec.devices.capacity):
        return new
    devices = replace(new.spec.devices, attributes={}, capacity={})
    return replace(new, spec=replace(new.spec, devices=devices))


def _on_devices(spec: ResourceSliceSpec, change: _Change) -> ResourceSliceSpec:
    return replace(spec, devices=tuple(change(device) for device in spec.devices))


def _clear(**fields: Any) -> _Change:
    return lambda device: replace(device, **fields)


def _drop_taints(spec: ResourceSliceSpec) -> ResourceSliceSpec:
    return replace(_on_devices(spec, _clear(taints=())), taints=())


def _drop_partitions(spec: ResourceSliceSpec) -> ResourceSliceSpec:
    cleared = _clear(consumes_counters=(), node_name=None, node_selector=None, all_nodes=None)
    return replace(_on_devices(spec, cleared), shared_counters=(), per_device_node_selection=None)


def _uses_partitions(spec: ResourceSliceSpec) -> bool:
    return (
        bool(spec.shared_counters)
        or spec.per_device_node_selection is not None
        or any(
            device.consumes_counters
            or device.node_name is not None
            or device.node_selector is not None
            or device.all_nodes is not None
            for device in spec.devices
        )
    )


def _drop_sharing(spec: ResourceSliceSpec) -> ResourceSliceSpec:
    def change(device: Device) -> Device:
        capacity = {key: replace(value, request_policy=None) for key, value in device.capacity.items()}
        return replace(device, allow_multiple_allocations=None, capacity=capacity)

    return _on_devices(spec, change)


def _uses_sharing(spec: ResourceSliceSpec) -> bool:
    return any(
        device.allow_multiple_allocations is not None
        or any(capacity.request_policy is not None for capacity in device.capacity.values())
        for device in spec.devices
    )


def _drop_groups(spec: ResourceSliceSpec) -> ResourceSliceSpec:
    def change(device: Device) -> Device:
        consumed = tuple(replace(entry, compatibility_groups=()) for entry in device.consumes_counters)
        return replace(device, consumes_counters=consumed)

    return _on_devices(spec, change)


def _drop_lists(spec: ResourceSliceSpec) -> ResourceSliceSpec:
    def change(device: Device) -> Device:
        attributes = {
            key: replace(value, ints=None, bools=None, strings=None, versions=None)
            for key, value in device.attributes.items()
        }
        return replace(device, attributes=attributes)

    return _on_devices(spec, change)


def _any_device(test: Callable[[Device], Any]) -> Callable[[ResourceSliceSpec], bool]:
    return lambda spec: any(test(device) for device in spec.devices)


_Rule = tuple[tuple[str, ...], Callable[[ResourceSliceSpec], bool], Callable[[ResourceSliceSpec], ResourceSliceSpec]]

# Gates that must all be on; whether a spec uses the feature; how to take its fields away.
_RULES: Final[tuple[_Rule, ...]] = (
    (
        ("DRADeviceTaints",),
        lambda spec: bool(spec.taints) or any(device.taints for device in spec.devices),
        _drop_taints,
    ),
    (("DRAPartitionableDevices",), _uses_partitions, _drop_partitions),
    (
        ("DRADeviceBindingConditions", "DRAResourceClaimDeviceStatus"),
        _any_device(
            lambda device: (
                device.binding_conditions or device.binding_failure_conditions or device.binds_to_node is not None
            )
        ),
        lambda spec: _on_devices(
            spec, _clear(binding_conditions=(), binding_failure_conditions=(), binds_to_node=None)
        ),
    ),
    (("DRAConsumableCapacity",), _uses_sharing, _drop_sharing),
    (
        ("DRADeviceCompatibilityGroups",),
        _any_device(lambda device: any(entry.compatibility_groups for entry in device.consumes_counters)),
        _drop_groups,
    ),
    (
        ("DRANodeAllocatableResources",),
        _any_device(lambda device: device.node_allocatable_resources),
        lambda spec: _on_devices(spec, _clear(node_allocatable_resources={})),
    ),
    (
        ("DRAListTypeAttributes",),
        _any_device(lambda device: has_list(device.attributes)),
        _drop_lists,
    ),
    (
        ("DRAPartitionableDevicesType",),
        lambda spec: spec.partition_type_attribute is not None,
        lambda spec: replace(spec, partition_type_attribute=None),
    ),
    (
        ("DRAOptionalNodeOperations",),
        lambda spec: bool(spec.skip_node_operations),
        lambda spec: replace(spec, skip_node_operations=()),
    ),
)
