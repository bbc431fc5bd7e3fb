"""The status of a ResourceClaim: its allocation, who uses it, and what drivers say of its devices."""

from __future__ import annotations

import ipaddress
from typing import Final, TypeAlias

from dray.api.field import FieldError, forbidden, invalid, required
from dray.api.node_selector import NodeSelector
from dray.api.resource import (
    AllocatedDeviceStatus,
    AllocationResult,
    DeviceAllocationConfiguration,
    DeviceRequestAllocationResult,
    NetworkDeviceData,
    ResourceClaim,
    ResourceClaimConsumerReference,
    ResourceClaimStatus,
)
from dray.api.resource.claim import (
    ALLOCATION_CONFIGS,
    ALLOCATION_RESULTS,
    RESERVED_FOR,
    SOURCE_CLAIM,
    SOURCE_CLASS,
)
from dray.api.sharing import remembered
from dray.validation import check, names
from dray.validation.conditions import validate_conditions
from dray.validation.context import DRA_ADMIN_NAMESPACE_LABEL, Context, Errors
from dray.validation.device import validate_binding_conditions
from dray.validation.device_claim import (
    ADMIN_ACCESS_DENIED,
    RequestNames,
    validate_opaque,
    validate_request_reference,
    validate_request_references,
)
from dray.validation.device_taints import validate_toleration
from dray.validation.node_selectors import validate_node_selector
from dray.validation.resource_names import validate_driver_name, validate_pool_name
from dray.validation.resource_slice import validate_skipped_operations

DEVICE_CONDITIONS: Final = 8
DEVICE_DATA_BYTES: Final = 10 * 1024
NETWORK_IPS: Final = 16
INTERFACE_NAME_BYTES: Final = 256
HARDWARE_ADDRESS_BYTES: Final = 128

DeviceKey: TypeAlias = tuple[str, str, str, str | None]
"""Driver, pool, device and share: what identifies an allocated device within a claim."""


def device_key(device: DeviceRequestAllocationResult | AllocatedDeviceStatus) -> DeviceKey:
    """Which device a result or a status is about."""
    return (device.driver, device.pool, device.device, device.share_id)


def allocated_devices(status: ResourceClaimStatus) -> frozenset[DeviceKey]:
    """The devices that a claim has."""
    if status.allocation is None:
        return frozenset()
    return frozenset(device_key(result) for result in status.allocation.devices.results)


def validate_status(errors: Errors, new: ResourceClaim, old: ResourceClaim) -> None:
    """A status, given the one before (4381-58..68, SVS-44, SVS-46..49)."""
    status, before = new.status, old.status
    _validate_reserved_for(errors, new, old)
    allocated = allocated_devices(status)
    for index, device in enumerate(status.devices):
        _validate_device_status(errors, device, f"status.devices[{index}]", allocated)
    check.unique(errors, "status.devices", (device_key(device) for device in status.devices))
    if status.allocation is not None:
        if before.allocation is not None:
            check.immutable(errors, "status.allocation", status.allocation, before.allocation)
        else:
            _validate_allocation(errors, status.allocation, RequestNames.of(new.spec.devices))


def validate_admin_access_status(
    errors: Errors, new: ResourceClaimStatus, old: ResourceClaimStatus, ctx: Context
) -> None:
    """Devices can be handed out for admin access only in a namespace that is marked for it (SVS-42)."""
    if ctx.namespace_labels is None or _first_admin_result(old) is not None:
        return
    index = _first_admin_result(new)
    if index is not None and ctx.namespace_labels.get(DRA_ADMIN_NAMESPACE_LABEL) != "true":
        errors.append(forbidden(f"status.allocation.devices.results[{index}].adminAccess", ADMIN_ACCESS_DENIED))


def _first_admin_result(status: ResourceClaimStatus) -> int | None:
    if status.allocation is None:
        return None
    results = enumerate(status.allocation.devices.results)
    return next((index for index, result in results if result.admin_access), None)


def _validate_reserved_for(errors: Errors, new: ResourceClaim, old: ResourceClaim) -> None:
    path = "status.reservedFor"
    consumers = new.status.reserved_for
    if check.fits(errors, path, consumers, RESERVED_FOR):
        for index, consumer in enumerate(consumers):
            _validate_consumer(errors, consumer, f"{path}[{index}]")
        check.unique(errors, path, (consumer.uid for consumer in consumers))
    if not consumers:
        return
    if new.status.allocation is None:
        errors.append(forbidden(path, "may not be given while the claim is not allocated"))
    elif new.metadata.deletion_timestamp is not None and not set(consumers) <= set(old.status.reserved_for):
        errors.append(forbidden(path, "nobody may be added while the claim is being deleted"))


def _validate_consumer(errors: Errors, consumer: ResourceClaimConsumerReference, path: str) -> None:
    for field, value in (("resource", consumer.resource), ("name", consumer.name), ("uid", consumer.uid)):
        if not value:
            errors.append(required(f"{path}.{field}"))


def _validate_allocation(errors: Errors, allocation: AllocationResult, references: RequestNames) -> None:
    path = "status.allocation.devices"
    results, configs = allocation.devices.results, allocation.devices.config
    if check.fits(errors, f"{path}.results", results, ALLOCATION_RESULTS):
        for index, result in enumerate(results):
            _validate_result(errors, result, f"{path}.results[{index}]", references)
    if check.fits(errors, f"{path}.config", configs, ALLOCATION_CONFIGS):
        for index, config in enumerate(configs):
            _validate_config(errors, config, f"{path}.config[{index}]", references)
    if allocation.node_selector is not None:
        errors += _selector_errors(allocation.node_selector)


@remembered
def _selector_errors(selector: NodeSelector) -> tuple[FieldError, ...]:
    """What is wrong with a node selector; all allocations on a node have the same one."""
    errors: Errors = []
    validate_node_selector(errors, selector, "status.allocation.nodeSelector")
    return tuple(errors)


def _validate_result(
    errors: Errors, result: DeviceRequestAllocationResult, path: str, references: RequestNames
) -> None:
    validate_request_reference(errors, result.request, f"{path}.request", references)
    validate_driver_name(errors, result.driver, f"{path}.driver")
    validate_pool_name(errors, result.pool, f"{path}.pool")
    check.name(errors, f"{path}.device", result.device, names.dns_label)
    validate_binding_conditions(errors, result.binding_conditions, result.binding_failure_conditions, path, path)
    for index, toleration in enumerate(result.tolerations):
        validate_toleration(errors, toleration, f"{path}.tolerations[{index}]")
    if result.share_id is not None:
        check.name(errors, f"{path}.shareID", result.share_id, names.uuid)
    validate_skipped_operations(errors, result.skip_node_operations, f"{path}.skipNodeOperations")


def _validate_config(
    errors: Errors, config: DeviceAllocationConfiguration, path: str, references: RequestNames
) -> None:
    check.required_one_of(errors, f"{path}.source", config.source, (SOURCE_CLAIM, SOURCE_CLASS))
    validate_request_references(errors, config.requests, f"{path}.requests", references)
    validate_opaque(errors, config.opaque, path)


def _validate_device_status(
    errors: Errors, device: AllocatedDeviceStatus, path: str, allocated: frozenset[DeviceKey]
) -> None:
    validate_driver_name(errors, device.driver, f"{path}.driver")
    validate_pool_name(errors, device.pool, f"{path}.pool")
    check.name(errors, f"{path}.device", device.device, names.dns_label)
    if device.share_id is not None:
        check.name(errors, f"{path}.shareID", device.share_id, names.uuid)
    if device_key(device) not in allocated:
        errors.append(invalid(path, device_key(device), "must be an allocated device of the claim"))
    check.fits(errors, f"{path}.conditions", device.conditions, DEVICE_CONDITIONS)
    validate_conditions(errors, device.conditions, f"{path}.conditions")
    if device.data is not None:
        check.json_object(errors, f"{path}.data", device.data, DEVICE_DATA_BYTES)
    if device.network_data is not None:
        _validate_network_data(errors, device.network_data, f"{path}.networkData")


def _validate_network_data(errors: Errors, data: NetworkDeviceData, path: str) -> None:
    check.length(errors, f"{path}.interfaceName", data.interface_name, INTERFACE_NAME_BYTES)
    check.length(errors, f"{path}.hardwareAddress", data.hardware_address, HARDWARE_ADDRESS_BYTES)
    if check.fits(errors, f"{path}.ips", data.ips, NETWORK_IPS):
        for index, address in enumerate(data.ips):
            _validate_address(errors, address, f"{path}.ips[{index}]")
        check.unique(errors, f"{path}.ips", data.ips)


def _validate_address(errors: Errors, value: str, path: str) -> None:
    """An address with its prefix length, in its one canonical spelling."""
    address, slash, length = value.partition("/")
    try:
        if not slash or not (length.isascii() and length.isdigit()):
            raise ValueError
        canonical = str(ipaddress.ip_interface(f"{address}/{int(length)}"))
    except ValueError:
        errors.append(invalid(path, value, "must be an address with a prefix length, as in 10.9.8.7/24"))
        return
    if value != canonical:
        errors.append(invalid(path, value, f"must be written in canonical form, {canonical}"))
