"""Fields of claims, templates and classes that belong to a feature gate (5055-110, 5055-111).

The rule is that of slices: dropped while the gate is off, kept if the stored object uses them already.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final

from msgspec.structs import replace

from dray.api.resource import (
    DeviceClass,
    DeviceRequest,
    DeviceSubRequest,
    ExactDeviceRequest,
    ResourceClaim,
    ResourceClaimSpec,
    ResourceClaimStatus,
)
from dray.validation.context import Context

_Alternative = ExactDeviceRequest | DeviceSubRequest


def drop_spec_fields(new: ResourceClaimSpec, old: ResourceClaimSpec | None, ctx: Context) -> ResourceClaimSpec:
    """The spec of a claim without the fields of gates that are off."""
    if not ctx.disabled_gates:
        return new
    for gate, in_use, drop in _SPEC_RULES:
        if not ctx.enabled(gate) and not (old is not None and in_use(old)):
            new = drop(new)
    return new


def drop_class_fields(new: DeviceClass, old: DeviceClass | None, ctx: Context) -> DeviceClass:
    """The class without the fields of gates that are off."""
    if ctx.enabled("DRAExtendedResource") or (old is not None and old.spec.extended_resource_name is not None):
        return new
    return replace(new, spec=replace(new.spec, extended_resource_name=None))


def drop_status_fields(new: ResourceClaim, old: ResourceClaim, ctx: Context) -> ResourceClaimStatus:
    """The status of a claim without the fields of gates that are off."""
    status = new.status
    if not ctx.disabled_gates:
        return status
    if not ctx.enabled("DRAResourceClaimDeviceStatus") and not old.status.devices:
        status = replace(status, devices=())
    for gate, in_use, cleared in _RESULT_RULES:
        if not ctx.enabled(gate) and not in_use(old):
            status = _clear_results(status, **cleared)
            if "share_id" in cleared:
                status = replace(status, devices=tuple(replace(entry, share_id=None) for entry in status.devices))
    return status


def _clear_results(status: ResourceClaimStatus, **cleared: Any) -> ResourceClaimStatus:
    if status.allocation is None:
        return status
    devices = status.allocation.devices
    results = tuple(replace(result, **cleared) for result in devices.results)
    return replace(status, allocation=replace(status.allocation, devices=replace(devices, results=results)))


def _alternatives(spec: ResourceClaimSpec) -> Iterator[_Alternative]:
    for request in spec.devices.requests:
        if request.exactly is not None:
            yield request.exactly
        yield from request.first_available


def _on_requests(spec: ResourceClaimSpec, change: Callable[[DeviceRequest], DeviceRequest]) -> ResourceClaimSpec:
    requests = tuple(change(request) for request in spec.devices.requests)
    return replace(spec, devices=replace(spec.devices, requests=requests))


def _on_alternatives(spec: ResourceClaimSpec, **cleared: Any) -> ResourceClaimSpec:
    def change(request: DeviceRequest) -> DeviceRequest:
        exactly = replace(request.exactly, **cleared) if request.exactly is not None else None
        subrequests = tuple(replace(sub, **cleared) for sub in request.first_available)
        return replace(request, exactly=exactly, first_available=subrequests)

    return _on_requests(spec, change)


def _drop_admin_access(spec: ResourceClaimSpec) -> ResourceClaimSpec:
    def change(request: DeviceRequest) -> DeviceRequest:
        if request.exactly is None:
            return request
        return replace(request, exactly=replace(request.exactly, admin_access=None))

    return _on_requests(spec, change)


def _uses_admin_access(spec: ResourceClaimSpec) -> bool:
    return any(
        request.exactly is not None and request.exactly.admin_access is not None for request in spec.devices.requests
    )


def _drop_sharing(spec: ResourceClaimSpec) -> ResourceClaimSpec:
    constraints = tuple(replace(entry, distinct_attribute=None) for entry in spec.devices.constraints)
    spec = replace(spec, devices=replace(spec.devices, constraints=constraints))
    return _on_alternatives(spec, capacity=None)


def _uses_sharing(spec: ResourceClaimSpec) -> bool:
    return any(entry.distinct_attribute is not None for entry in spec.devices.constraints) or any(
        alternative.capacity is not None for alternative in _alternatives(spec)
    )


_SpecRule = tuple[str, Callable[[ResourceClaimSpec], bool], Callable[[ResourceClaimSpec], ResourceClaimSpec]]

_SPEC_RULES: Final[tuple[_SpecRule, ...]] = (
    (
        "DRAPrioritizedList",
        lambda spec: any(request.first_available for request in spec.devices.requests),
        lambda spec: _on_requests(spec, lambda request: replace(request, first_available=())),
    ),
    (
        "DRADeviceTaints",
        lambda spec: any(alternative.tolerations for alternative in _alternatives(spec)),
        lambda spec: _on_alternatives(spec, tolerations=()),
    ),
    ("DRAAdminAccess", _uses_admin_access, _drop_admin_access),
    ("DRAConsumableCapacity", _uses_sharing, _drop_sharing),
    (
        "DRADerivedAttributes",
        lambda spec: any(alternative.derived_attributes for alternative in _alternatives(spec)),
        lambda spec: _on_alternatives(spec, derived_attributes=()),
    ),
)


def _any_result(claim: ResourceClaim, *fields: str) -> bool:
    allocation = claim.status.allocation
    results = allocation.devices.results if allocation is not None else ()
    return any(getattr(result, field) not in (None, (), {}) for result in results for field in fields)


_ResultRule = tuple[str, Callable[[ResourceClaim], bool], dict[str, Any]]

_RESULT_RULES: Final[tuple[_ResultRule, ...]] = (
    (
        "DRAAdminAccess",
        lambda claim: _uses_admin_access(claim.spec) or _any_result(claim, "admin_access"),
        {"admin_access": None},
    ),
    (
        "DRAConsumableCapacity",
        lambda claim: (
            _uses_sharing(claim.spec)
            or _any_result(claim, "share_id", "consumed_capacity")
            or any(entry.share_id is not None for entry in claim.status.devices)
        ),
        {"share_id": None, "consumed_capacity": {}},
    ),
    (
        "DRADeviceBindingConditions",
        lambda claim: _any_result(claim, "binding_conditions", "binding_failure_conditions"),
        {"binding_conditions": (), "binding_failure_conditions": ()},
    ),
    (
        "DRAOptionalNodeOperations",
        lambda claim: _any_result(claim, "skip_node_operations"),
        {"skip_node_operations": ()},
    ),
)
