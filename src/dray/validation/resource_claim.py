"""ResourceClaim: the rules for spec and status, and what the server does to it before they are applied."""

from __future__ import annotations

from typing import Final

from msgspec.structs import replace

from dray.api.field import FieldError
from dray.api.resource import ResourceClaim, ResourceClaimSpec
from dray.api.sharing import remembered
from dray.api.times import Time
from dray.validation import check
from dray.validation.claim_status import (
    allocated_devices,
    device_key,
    validate_admin_access_status,
    validate_status,
)
from dray.validation.context import Context, Errors
from dray.validation.device_claim import (
    claim_warnings,
    default_claim,
    default_tolerations,
    validate_admin_access,
    validate_device_claim,
)
from dray.validation.gates_claim import drop_spec_fields, drop_status_fields
from dray.validation.rules import Rules


def _default(obj: ResourceClaim, _now: Time) -> ResourceClaim:
    spec = default_claim(obj.spec)
    return _default_status(obj if spec is obj.spec else replace(obj, spec=spec))


def _default_status(obj: ResourceClaim) -> ResourceClaim:
    allocation = obj.status.allocation
    if allocation is None or not any(result.tolerations for result in allocation.devices.results):
        return obj
    results = tuple(
        replace(result, tolerations=default_tolerations(result.tolerations)) for result in allocation.devices.results
    )
    devices = replace(allocation.devices, results=results)
    return replace(obj, status=replace(obj.status, allocation=replace(allocation, devices=devices)))


def _check(errors: Errors, new: ResourceClaim, old: ResourceClaim | None, ctx: Context) -> None:
    """The spec is immutable (4381-37), so an update need not look at it further."""
    if old is not None:
        check.immutable(errors, "spec", new.spec, old.spec)
        return
    validate_admin_access(errors, new.spec.devices, ctx)
    errors += _spec_errors(new.spec, ctx.is_v1beta1)


@remembered
def _spec_errors(spec: ResourceClaimSpec, is_v1beta1: bool) -> tuple[FieldError, ...]:
    """What is wrong with a spec by itself."""
    errors: Errors = []
    validate_device_claim(errors, spec.devices, "spec.devices", is_v1beta1=is_v1beta1)
    return tuple(errors)


def _check_status(errors: Errors, new: ResourceClaim, old: ResourceClaim, ctx: Context) -> None:
    validate_admin_access_status(errors, new.status, old.status, ctx)
    validate_status(errors, new, old)


def _change(new: ResourceClaim, old: ResourceClaim | None, ctx: Context) -> ResourceClaim:
    spec = drop_spec_fields(new.spec, old.spec if old is not None else None, ctx)
    return new if spec is new.spec else replace(new, spec=spec)


def _change_status(new: ResourceClaim, old: ResourceClaim, ctx: Context) -> ResourceClaim:
    """What drivers said of devices goes away together with the devices."""
    status = drop_status_fields(new, old, ctx)
    gone = allocated_devices(old.status) - allocated_devices(status)
    if gone:
        status = replace(status, devices=tuple(entry for entry in status.devices if device_key(entry) not in gone))
    return replace(new, status=status)


RULES: Final = {
    "ResourceClaim": Rules(
        has_status=True,
        default=_default,
        default_status=_default_status,
        change=_change,
        change_status=_change_status,
        check=_check,
        check_status=_check_status,
        warnings=lambda obj: claim_warnings(obj.spec.devices, "spec.devices"),
    )
}
