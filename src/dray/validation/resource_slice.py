"""ResourceSlice: the rules for its spec, and what the server does to it before they are applied."""

from __future__ import annotations

from typing import Final

from msgspec.structs import replace

from dray.api.field import invalid, required
from dray.api.resource import Device, ResourcePool, ResourceSlice, ResourceSliceSpec
from dray.api.resource.slice import DEVICES_PER_SLICE, DEVICES_PER_SLICE_WITH_TAINTS_OR_COUNTERS
from dray.api.resource.taint import TAINTS_PER_SLICE
from dray.api.times import Time
from dray.validation import check, names
from dray.validation.context import Context, Errors
from dray.validation.device import validate_counter_set, validate_device
from dray.validation.device_attributes import has_list
from dray.validation.device_taints import timed, validate_taint
from dray.validation.gates_slice import drop_slice_fields
from dray.validation.node_selectors import validate_node_selector
from dray.validation.resource_names import (
    validate_driver_name,
    validate_fully_qualified_name,
    validate_pool_name,
)
from dray.validation.rules import Rules

COUNTER_SETS_PER_SLICE: Final = 8
NODE_OPERATIONS: Final = ("*", "NodePrepareResources", "NodeUnprepareResources")


def _check(errors: Errors, new: ResourceSlice, old: ResourceSlice | None, ctx: Context) -> None:
    """Driver, pool name and node name stay (4381-05, 4381-08, 4381-12)."""
    if old is not None:
        check.immutable(errors, "spec.pool.name", new.spec.pool.name, old.spec.pool.name)
        check.immutable(errors, "spec.driver", new.spec.driver, old.spec.driver)
        check.immutable(errors, "spec.nodeName", new.spec.node_name, old.spec.node_name)
    _validate_spec(errors, new.spec, old.spec if old is not None else None, ctx)


def _default(obj: ResourceSlice, now: Time) -> ResourceSlice:
    """Taints get the time at which they were added (5055-15, 5055-40)."""
    spec = obj.spec
    if any(device.taints for device in spec.devices):
        devices = tuple(replace(device, taints=timed(device.taints, now)) for device in spec.devices)
        spec = replace(spec, devices=devices)
    if spec.taints:
        taints = tuple(replace(entry, taint=timed((entry.taint,), now)[0]) for entry in spec.taints)
        spec = replace(spec, taints=taints)
    return obj if spec is obj.spec else replace(obj, spec=spec)


def _warnings(obj: ResourceSlice) -> list[str]:
    """What is accepted although it may bite later (SVS-38)."""
    driver = obj.spec.driver
    if driver == driver.lower():
        return []
    return [f'spec.driver: driver names should be lowercase; "{driver}" contains uppercase characters']


def _validate_spec(errors: Errors, spec: ResourceSliceSpec, old: ResourceSliceSpec | None, ctx: Context) -> None:
    validate_driver_name(errors, spec.driver, "spec.driver")
    _validate_pool(errors, spec.pool)
    _validate_node_selection(errors, spec)
    contents = [bool(spec.devices), bool(spec.taints), bool(spec.shared_counters)]
    if sum(contents) > 1:
        errors.append(invalid("spec", None, "only one of devices, taints and sharedCounters may be given"))
    _validate_devices(errors, spec, old, ctx)
    _validate_taints(errors, spec, old)
    if check.fits(errors, "spec.sharedCounters", spec.shared_counters, COUNTER_SETS_PER_SLICE):
        check.unique(errors, "spec.sharedCounters", (entry.name for entry in spec.shared_counters))
        for index, counter_set in enumerate(spec.shared_counters):
            validate_counter_set(errors, counter_set, f"spec.sharedCounters[{index}]")
    if spec.partition_type_attribute is not None:
        _validate_partition_type(errors, spec, spec.partition_type_attribute)
    validate_skipped_operations(errors, spec.skip_node_operations, "spec.skipNodeOperations")


def _validate_pool(errors: Errors, pool: ResourcePool) -> None:
    validate_pool_name(errors, pool.name, "spec.pool.name")
    if pool.resource_slice_count <= 0:
        where = "spec.pool.resourceSliceCount"
        errors.append(invalid(where, pool.resource_slice_count, "must be greater than zero"))
    check.not_negative(errors, "spec.pool.generation", pool.generation)


def _validate_node_selection(errors: Errors, spec: ResourceSliceSpec) -> None:
    """Exactly one way to say on which nodes the devices are (4381-11, SVS-35)."""
    ways = 0
    if spec.node_name is not None:
        if spec.node_name:
            ways += 1
            check.name(errors, "spec.nodeName", spec.node_name, names.dns_subdomain)
        else:
            errors.append(invalid("spec.nodeName", "", "must be unset or not empty"))
    if spec.node_selector is not None:
        ways += 1
        validate_node_selector(errors, spec.node_selector, "spec.nodeSelector")
        if len(spec.node_selector.node_selector_terms) != 1:
            # One term only, so that the selectors of several slices can be merged (4381-13).
            where = "spec.nodeSelector.nodeSelectorTerms"
            errors.append(invalid(where, len(spec.node_selector.node_selector_terms), "must be exactly one term"))
    for field, value in (
        ("allNodes", spec.all_nodes),
        ("perDeviceNodeSelection", spec.per_device_node_selection),
    ):
        if value is False:
            errors.append(invalid(f"spec.{field}", False, "must be unset or true"))
        ways += value is True
    detail = "exactly one of nodeName, nodeSelector, allNodes and perDeviceNodeSelection is required"
    if ways == 0:
        errors.append(required("spec", detail))
    elif ways > 1:
        errors.append(invalid("spec", ways, detail))


def _validate_devices(errors: Errors, spec: ResourceSliceSpec, old: ResourceSliceSpec | None, ctx: Context) -> None:
    advanced = any(device.taints or device.consumes_counters or has_list(device.attributes) for device in spec.devices)
    limit = DEVICES_PER_SLICE_WITH_TAINTS_OR_COUNTERS if advanced else DEVICES_PER_SLICE
    if not check.fits(errors, "spec.devices", spec.devices, limit):
        return
    before = {device.name: device for device in old.devices} if old is not None else {}
    suffix = ".basic" if ctx.is_v1beta1 else ""
    selects_nodes = bool(spec.per_device_node_selection)
    for index, device in enumerate(spec.devices):
        path = f"spec.devices[{index}]"
        validate_device(
            errors,
            device,
            path,
            old=before.get(device.name),
            selects_nodes=selects_nodes,
            declared=path + suffix,
        )
    check.unique(errors, "spec.devices", (device.name for device in spec.devices))


def _validate_taints(errors: Errors, spec: ResourceSliceSpec, old: ResourceSliceSpec | None) -> None:
    """Taints published apart from their devices: at most 32, each for some device (5055-02, 5055-06..10)."""
    if not check.fits(errors, "spec.taints", spec.taints, TAINTS_PER_SLICE):
        return
    stored = old.taints if old is not None else ()
    for index, entry in enumerate(spec.taints):
        path = f"spec.taints[{index}]"
        if not entry.device:
            errors.append(required(f"{path}.device"))
        if entry not in stored:
            validate_taint(errors, entry.taint, f"{path}.taint")


def _validate_partition_type(errors: Errors, spec: ResourceSliceSpec, name: str) -> None:
    """Devices that consume counters must carry the named attribute as a string."""
    path = "spec.partitionTypeAttribute"
    malformed: Errors = []
    validate_fully_qualified_name(malformed, name, path)
    errors.extend(malformed)
    if not any(device.consumes_counters for device in spec.devices):
        errors.append(invalid(path, name, "needs devices that consume counters"))
    elif not malformed:
        bare = name.removeprefix(f"{spec.driver}/")
        for index, device in enumerate(spec.devices):
            if device.consumes_counters:
                _validate_partition_attribute(errors, device, name, bare, f"spec.devices[{index}]")


def _validate_partition_attribute(errors: Errors, device: Device, name: str, bare: str, path: str) -> None:
    attribute = device.attributes.get(name) or device.attributes.get(bare)
    if attribute is None:
        errors.append(required(f"{path}.attributes[{name}]", "named by partitionTypeAttribute"))
    elif attribute.string is None:
        errors.append(invalid(f"{path}.attributes[{name}]", None, "partitionTypeAttribute needs a string"))


def validate_skipped_operations(errors: Errors, operations: tuple[str, ...], path: str) -> None:
    """Known operations, each once; whoever skips preparing must skip unpreparing too."""
    for index, operation in enumerate(operations):
        check.one_of(errors, f"{path}[{index}]", operation, NODE_OPERATIONS)
    check.unique(errors, path, operations)
    if "NodePrepareResources" in operations and not {"NodeUnprepareResources", "*"} & set(operations):
        errors.append(invalid(path, operations, "NodeUnprepareResources must be skipped too"))


RULES: Final = {
    "ResourceSlice": Rules(
        namespaced=False,
        has_generation=True,
        default=_default,
        change=drop_slice_fields,
        check=_check,
        warnings=_warnings,
    )
}
