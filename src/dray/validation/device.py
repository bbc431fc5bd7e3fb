"""One device of a slice."""

from __future__ import annotations

from typing import Final

from dray.api.field import invalid, required
from dray.api.resource import Counter, CounterSet, Device, DeviceCounterConsumption
from dray.api.resource.slice import ATTRIBUTES_AND_CAPACITIES_PER_DEVICE, LIST_VALUES_PER_DEVICE
from dray.api.resource.taint import TAINTS_PER_DEVICE
from dray.validation import check, names
from dray.validation.capacity import validate_capacities
from dray.validation.context import Errors
from dray.validation.device_attributes import count_values, validate_attributes
from dray.validation.device_taints import validate_taint
from dray.validation.node_allocatable import validate_node_allocatable_resources
from dray.validation.node_selectors import validate_node_selector

COUNTERS_PER_SET: Final = 32
COUNTER_SETS_PER_DEVICE: Final = 2
COMPATIBILITY_GROUPS: Final = 2
BINDING_CONDITIONS: Final = 4


def validate_device(
    errors: Errors, device: Device, path: str, *, old: Device | None, selects_nodes: bool, declared: str
) -> None:
    """One device; `old` is the device of the same name before an update, whose unchanged parts are not judged again.

    `selects_nodes` tells whether the slice leaves the choice of nodes to its devices. `declared` is the path as the
    request's version spells it.
    """
    check.name(errors, f"{path}.name", device.name, names.dns_label)
    total = len(device.attributes) + len(device.capacity)
    if total > ATTRIBUTES_AND_CAPACITIES_PER_DEVICE:
        limit = ATTRIBUTES_AND_CAPACITIES_PER_DEVICE
        errors.append(invalid(path, total, f"must not have more than {limit} attributes and capacities"))
    values = count_values(device.attributes)
    if values > LIST_VALUES_PER_DEVICE:
        errors.append(invalid(path, values, f"must not have more than {LIST_VALUES_PER_DEVICE} attribute values"))
    if device.attributes:
        validate_attributes(errors, device.attributes, f"{path}.attributes", f"{declared}.attributes")
    if device.capacity and (old is None or old.capacity != device.capacity):
        shareable = bool(device.allow_multiple_allocations)
        validate_capacities(errors, device.capacity, f"{path}.capacity", shareable=shareable)
    if device.taints and (old is None or old.taints != device.taints):
        _validate_taints(errors, device, path, declared)
    if device.consumes_counters:
        _validate_consumption(errors, device.consumes_counters, f"{declared}.consumesCounters")
    _validate_node_selection(errors, device, path, selects_nodes=selects_nodes)
    if device.binding_conditions or device.binding_failure_conditions:
        validate_binding_conditions(
            errors, device.binding_conditions, device.binding_failure_conditions, path, declared
        )
    if device.node_allocatable_resources:
        validate_node_allocatable_resources(
            errors,
            device.node_allocatable_resources,
            device.capacity,
            f"{path}.nodeAllocatableResources",
            f"{declared}.nodeAllocatableResources",
        )


def _validate_taints(errors: Errors, device: Device, path: str, declared: str) -> None:
    if check.fits(errors, f"{path}.taints", device.taints, TAINTS_PER_DEVICE):
        for index, taint in enumerate(device.taints):
            validate_taint(errors, taint, f"{path}.taints[{index}]", declared=f"{declared}.taints[{index}]")


def _validate_consumption(errors: Errors, consumed: tuple[DeviceCounterConsumption, ...], path: str) -> None:
    if not check.fits(errors, path, consumed, COUNTER_SETS_PER_DEVICE):
        return
    check.unique(errors, path, (entry.counter_set for entry in consumed))
    for index, entry in enumerate(consumed):
        inner = f"{path}[{index}]"
        check.required_name(errors, f"{inner}.counterSet", entry.counter_set, names.dns_label)
        _validate_counters(errors, entry.counters, f"{inner}.counters")
        groups = f"{inner}.compatibilityGroups"
        if check.fits(errors, groups, entry.compatibility_groups, COMPATIBILITY_GROUPS):
            check.unique(errors, groups, entry.compatibility_groups)
            for position, group in enumerate(entry.compatibility_groups):
                check.name(errors, f"{groups}[{position}]", group, names.dns_label)


def validate_counter_set(errors: Errors, counter_set: CounterSet, path: str) -> None:
    """A set of counters that devices share."""
    check.required_name(errors, f"{path}.name", counter_set.name, names.dns_label)
    _validate_counters(errors, counter_set.counters, f"{path}.counters")


def _validate_counters(errors: Errors, counters: dict[str, Counter], path: str) -> None:
    if not counters:
        errors.append(required(path))
    elif check.fits(errors, path, counters, COUNTERS_PER_SET):
        for key in counters:
            check.name(errors, path, key, names.dns_label)


def _validate_node_selection(errors: Errors, device: Device, path: str, *, selects_nodes: bool) -> None:
    """Exactly one way to say on which nodes a device is, but only where the slice leaves it to the devices (SVS-35)."""
    given = device.node_name is not None or device.node_selector is not None or device.all_nodes is not None
    if not selects_nodes:
        if given:
            errors.append(invalid(path, None, "node fields need perDeviceNodeSelection: true in the slice"))
        return
    ways = 0
    if device.node_name is not None:
        if device.node_name:
            ways += 1
            check.name(errors, f"{path}.nodeName", device.node_name, names.dns_subdomain)
        else:
            errors.append(invalid(f"{path}.nodeName", "", "must not be empty"))
    if device.node_selector is not None:
        ways += 1
        validate_node_selector(errors, device.node_selector, f"{path}.nodeSelector")
    if device.all_nodes is not None:
        if device.all_nodes:
            ways += 1
        else:
            errors.append(invalid(f"{path}.allNodes", False, "must be unset or true"))
    detail = "exactly one of nodeName, nodeSelector and allNodes is required with perDeviceNodeSelection"
    if ways == 0:
        errors.append(required(path, detail))
    elif ways > 1:
        errors.append(invalid(path, None, detail))


def validate_binding_conditions(
    errors: Errors, conditions: tuple[str, ...], failures: tuple[str, ...], path: str, declared: str
) -> None:
    """Conditions to wait for before binding, and those that mean failure: both or neither, without overlap."""
    for field, entries in (("bindingConditions", conditions), ("bindingFailureConditions", failures)):
        if check.fits(errors, f"{declared}.{field}", entries, BINDING_CONDITIONS):
            for index, entry in enumerate(entries):
                check.name(errors, f"{path}.{field}[{index}]", entry, names.label_key)
        check.unique(errors, f"{path}.{field}", entries)
    awaited = frozenset(conditions)
    for index, entry in enumerate(failures):
        if entry in awaited:
            where = f"{path}.bindingFailureConditions[{index}]"
            errors.append(invalid(where, entry, "must not be among bindingConditions too"))
    if failures and not conditions:
        errors.append(invalid(f"{path}.bindingConditions", [], "required with bindingFailureConditions"))
    if conditions and not failures:
        errors.append(invalid(f"{path}.bindingFailureConditions", [], "required with bindingConditions"))
