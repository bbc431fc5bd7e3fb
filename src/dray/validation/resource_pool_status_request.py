"""ResourcePoolStatusRequest: a question about pools, asked once and answered once."""

from __future__ import annotations

from typing import Final

from msgspec.structs import replace

from dray.api.field import invalid, required, too_many
from dray.api.resource import PoolStatus, ResourcePoolStatusRequest, ResourcePoolStatusRequestSpec
from dray.api.times import Time
from dray.validation import check, names
from dray.validation.conditions import validate_conditions
from dray.validation.context import Context, Errors
from dray.validation.resource_names import validate_fully_qualified_name, validate_pool_name
from dray.validation.rules import Rules

DEFAULT_LIMIT: Final = 100
LIMIT: Final = 1000
POOLS: Final = 1000
CONDITIONS: Final = 10
SUMMARIES: Final = 32
ERROR_BYTES: Final = 256


def _default(obj: ResourcePoolStatusRequest, _now: Time) -> ResourcePoolStatusRequest:
    spec = _limited(obj.spec)
    return obj if spec is obj.spec else replace(obj, spec=spec)


def _limited(spec: ResourcePoolStatusRequestSpec) -> ResourcePoolStatusRequestSpec:
    return spec if spec.limit is not None else replace(spec, limit=DEFAULT_LIMIT)


def _check(
    errors: Errors, new: ResourcePoolStatusRequest, old: ResourcePoolStatusRequest | None, _ctx: Context
) -> None:
    """A request does not change; one that was stored without a limit has had the usual one all the time."""
    if old is not None:
        check.immutable(errors, "spec", new.spec, _limited(old.spec))
        return
    spec = new.spec
    check.required_name(errors, "spec.driver", spec.driver.lower(), names.dns_subdomain)
    if spec.pool_name is not None:
        validate_pool_name(errors, spec.pool_name, "spec.poolName")
    if spec.limit is not None and not 1 <= spec.limit <= LIMIT:
        errors.append(invalid("spec.limit", spec.limit, f"must be between 1 and {LIMIT}"))
    if spec.default_partition_type_attribute is not None:
        path = "spec.defaultPartitionTypeAttribute"
        validate_fully_qualified_name(errors, spec.default_partition_type_attribute, path)


def _check_status(
    errors: Errors,
    new: ResourcePoolStatusRequest,
    old: ResourcePoolStatusRequest,
    _ctx: Context,
) -> None:
    """Once answered, a request is complete."""
    if old.status is not None:
        check.immutable(errors, "status", new.status, old.status)
    elif new.status is not None:
        status = new.status
        check.not_negative(errors, "status.poolCount", status.pool_count)
        if check.fits(errors, "status.pools", status.pools, POOLS):
            for index, pool in enumerate(status.pools):
                _validate_pool(errors, pool, f"status.pools[{index}]")
        check.fits(errors, "status.conditions", status.conditions, CONDITIONS)
        validate_conditions(errors, status.conditions, "status.conditions")


def _validate_pool(errors: Errors, pool: PoolStatus, path: str) -> None:
    check.required_name(errors, f"{path}.driver", pool.driver.lower(), names.dns_subdomain)
    if pool.pool_name:
        validate_pool_name(errors, pool.pool_name, f"{path}.poolName")
    else:
        errors.append(required(f"{path}.poolName"))
    for field, value in (
        ("generation", pool.generation),
        ("totalDevices", pool.total_devices),
        ("allocatedDevices", pool.allocated_devices),
        ("availableDevices", pool.available_devices),
        ("unavailableDevices", pool.unavailable_devices),
    ):
        check.not_negative(errors, f"{path}.{field}", value or 0)
    if pool.resource_slice_count is not None and pool.resource_slice_count < 1:
        errors.append(invalid(f"{path}.resourceSliceCount", pool.resource_slice_count, "must be at least 1"))
    if pool.node_name is not None:
        check.name(errors, f"{path}.nodeName", pool.node_name, names.dns_subdomain)
    check.length(errors, f"{path}.validationError", pool.validation_error or "", ERROR_BYTES)
    if len(pool.partition_summary) > SUMMARIES:
        errors.append(too_many(f"{path}.partitionSummary", len(pool.partition_summary), SUMMARIES))
    check.unique(
        errors, f"{path}.partitionSummary", ((entry.attribute, entry.type) for entry in pool.partition_summary)
    )


def _change(
    new: ResourcePoolStatusRequest, old: ResourcePoolStatusRequest | None, ctx: Context
) -> ResourcePoolStatusRequest:
    used = old is not None and old.spec.default_partition_type_attribute is not None
    if ctx.enabled("DRAPartitionableDevicesType") or used:
        return new
    return replace(new, spec=replace(new.spec, default_partition_type_attribute=None))


RULES: Final = {
    "ResourcePoolStatusRequest": Rules(
        namespaced=False,
        has_status=True,
        default=_default,
        change=_change,
        check=_check,
        check_status=_check_status,
    )
}
