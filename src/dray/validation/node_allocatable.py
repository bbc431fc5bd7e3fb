"""What a device means for the ordinary resources of its node (alpha in Kubernetes 1.37)."""

from __future__ import annotations

from dray.api.field import invalid, required
from dray.api.quantity import Quantity
from dray.api.resource import (
    DeviceCapacity,
    NodeAllocatableMapping,
    NodeAllocatableOverhead,
    NodeAllocatableResource,
)
from dray.validation import check
from dray.validation.context import Errors


def is_node_allocatable(name: str) -> bool:
    """Whether a node's allocatable resource can be mapped to devices: cpu, memory and huge pages."""
    return name in ("cpu", "memory") or name.startswith("hugepages-")


def validate_node_allocatable_resources(
    errors: Errors,
    resources: dict[str, NodeAllocatableResource],
    capacities: dict[str, DeviceCapacity],
    path: str,
    declared: str,
) -> None:
    """Each entry maps a resource, says what it costs on top, or both."""
    for name, entry in resources.items():
        inner = f"{path}[{name}]"
        if not is_node_allocatable(name):
            errors.append(invalid(inner, name, "must be cpu, memory or hugepages-<size>"))
        if entry.mapping is None and entry.overhead is None:
            errors.append(required(inner, "at least one of mapping and overhead must be given"))
        if entry.mapping is not None:
            _validate_mapping(errors, entry.mapping, capacities, f"{inner}.mapping", f"{declared}[{name}].mapping")
        if entry.overhead is not None:
            _validate_overhead(errors, entry.overhead, f"{inner}.overhead")


def _validate_mapping(
    errors: Errors,
    mapping: NodeAllocatableMapping,
    capacities: dict[str, DeviceCapacity],
    path: str,
    declared: str,
) -> None:
    key, multiplier = mapping.capacity_key, mapping.capacity_multiplier
    if key == "":
        errors.append(invalid(f"{path}.capacityKey", "", "must not be empty"))
    elif key is not None and key not in capacities:
        check.not_found(errors, f"{path}.capacityKey", key)
    if key is not None and multiplier is None:
        errors.append(required(f"{path}.capacityMultiplier", "required with capacityKey"))
    if key is None and multiplier is not None:
        errors.append(required(f"{path}.capacityKey", "required with capacityMultiplier"))
    if key is not None:
        _validate_positive(errors, multiplier, f"{path}.capacityMultiplier")
    _validate_positive(errors, mapping.device_multiplier, f"{path}.deviceMultiplier")
    if (key is None) == (mapping.device_multiplier is None):
        errors.append(invalid(declared, None, "exactly one of capacityKey and deviceMultiplier must be given"))


def _validate_positive(errors: Errors, value: Quantity | None, path: str) -> None:
    if value is not None and value.nanos <= 0:
        errors.append(invalid(path, str(value), "must be positive"))


def _validate_overhead(errors: Errors, overhead: NodeAllocatableOverhead, path: str) -> None:
    if overhead.per_pod is None and overhead.per_container is None:
        errors.append(invalid(path, None, "at least one of perPod and perContainer must be given"))
    for field, value in (("perPod", overhead.per_pod), ("perContainer", overhead.per_container)):
        if value is not None and value.nanos < 0:
            errors.append(invalid(f"{path}.{field}", str(value), "must not be negative"))
