"""The answer to a ResourcePoolStatusRequest, and how long it is kept."""

from __future__ import annotations

from collections.abc import Iterable, Set

import msgspec

from dray.api.conditions import find_condition
from dray.api.meta import Condition
from dray.api.resource import (
    PoolStatus,
    ResourceClaim,
    ResourcePoolStatusRequest,
    ResourcePoolStatusRequestStatus,
    ResourceSlice,
)
from dray.api.times import Time
from dray.controllers.resource_pool_status import views
from dray.controllers.resource_pool_status.pools import CountedPool, Use, gather_pools, gather_use
from dray.validation.resource_pool_status_request import DEFAULT_LIMIT

ERROR_BYTES = 256
KEPT_SECONDS = 3600.0
"""How long an answer stays."""
WAITING_SECONDS = 24 * 3600.0
"""How long a request without an answer stays."""

Place = tuple[str, str]
"""Pool and device."""


class Known(msgspec.Struct, frozen=True):
    """What there is to answer from, of one driver."""

    slices: Iterable[ResourceSlice]
    claims: Iterable[ResourceClaim]
    unavailable: Set[Place]
    """Devices with taints that keep pods away."""


def goes_at(request: ResourcePoolStatusRequest) -> float | None:
    """When a request has to go, in seconds since 1970."""
    kept, since = WAITING_SECONDS, request.metadata.creation_timestamp
    if request.status is not None:
        conditions = request.status.conditions
        done = find_condition(conditions, "Complete") or find_condition(conditions, "Failed")
        kept, since = KEPT_SECONDS, since if done is None else done.last_transition_time
    return None if since is None else since.datetime().timestamp() + kept


def concerns(request: ResourcePoolStatusRequest, found: ResourceSlice) -> bool:
    """Whether a request is about the pool of a slice."""
    spec = request.spec
    return found.spec.driver == spec.driver and spec.pool_name in (None, found.spec.pool.name)


def answer(request: ResourcePoolStatusRequest, known: Known, now: Time) -> ResourcePoolStatusRequestStatus | None:
    """The answer; None while a pool that would be in it is incomplete, and its driver may still be publishing."""
    spec = request.spec
    pools = gather_pools(found for found in known.slices if concerns(request, found))
    uses = gather_use(spec.driver, known.claims)
    listed = [pools[name] for name in sorted(pools)][: spec.limit or DEFAULT_LIMIT]
    if not all(pool.is_complete for pool in pools.values()):
        return None
    default_attribute = spec.default_partition_type_attribute or ""
    told = tuple(_status(pool, uses.get(pool.name) or Use(), known.unavailable, default_attribute) for pool in listed)
    flawed = sum(pool.validation_error is not None for pool in told)
    message = f"Calculated status for {len(told)} pools" + (f" ({flawed} incomplete)" if flawed else "")
    complete = Condition(
        type="Complete", status="True", last_transition_time=now, reason="CalculationComplete", message=message
    )
    return ResourcePoolStatusRequestStatus(pool_count=len(pools), pools=told, conditions=(complete,))


def _status(pool: CountedPool, use: Use, tainted: Set[Place], default_attribute: str) -> PoolStatus:
    total = len(pool.devices)
    unavailable = sum((pool.name, found.device.name) in tainted for found in pool.devices)
    (node,) = pool.nodes if len(pool.nodes) == 1 else ("",)
    status = PoolStatus(
        driver=pool.driver,
        pool_name=pool.name,
        node_name=node or None,
        generation=pool.generation,
        resource_slice_count=pool.slices,
        total_devices=total,
        allocated_devices=len(use.devices),
        available_devices=max(0, total - len(use.devices) - unavailable),
        unavailable_devices=unavailable,
    )
    return _with_views(status, pool, use, default_attribute)


def _with_views(status: PoolStatus, pool: CountedPool, use: Use, default_attribute: str) -> PoolStatus:
    """Each view by itself, but one pool has one error: the first."""
    problem = ""
    try:
        status = msgspec.structs.replace(status, partition_summary=views.partitions(pool, use, default_attribute))
    except views.ViewError as error:
        problem = str(error)
    try:
        status = msgspec.structs.replace(status, shareable_summary=views.shared(pool, use))
    except views.ViewError as error:
        problem = problem or str(error)
    if not problem:
        return status
    cut = problem.encode()[:ERROR_BYTES].decode(errors="ignore")
    return msgspec.structs.replace(status, validation_error=cut, partition_summary=())
