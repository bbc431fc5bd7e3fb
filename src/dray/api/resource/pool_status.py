"""ResourcePoolStatusRequest: a question about the state of a driver's pools, answered in its status (v1alpha3)."""

from __future__ import annotations

from msgspec import field

from dray.api.meta import Condition, Object
from dray.api.quantity import Quantity
from dray.api.struct import Struct


class ResourcePoolStatusRequestSpec(Struct):
    """Which pools are asked about."""

    driver: str = field(default_factory=str)
    pool_name: str | None = None
    limit: int | None = None
    default_partition_type_attribute: str | None = None


class PartitionTypeStatus(Struct):
    """Devices of one partition type."""

    attribute: str = field(default_factory=str)
    type: str = field(default_factory=str)
    total: int = field(default_factory=int)
    allocatable: int = field(default_factory=int)


class ShareableCapacityStatus(Struct):
    """One capacity, summed over the shareable devices of a pool."""

    name: str = field(default_factory=str)
    total: Quantity = field(default_factory=lambda: Quantity.parse("0"))
    consumed: Quantity = field(default_factory=lambda: Quantity.parse("0"))
    available: Quantity = field(default_factory=lambda: Quantity.parse("0"))


class ShareableSummaryStatus(Struct):
    """The shareable devices of a pool."""

    fully_available_devices: int = field(default_factory=int)
    partially_available_devices: int = field(default_factory=int)
    capacity: tuple[ShareableCapacityStatus, ...] = ()


class PoolStatus(Struct):
    """The state of one pool."""

    driver: str = field(default_factory=str)
    pool_name: str = field(default_factory=str)
    node_name: str | None = None
    generation: int = field(default_factory=int)
    resource_slice_count: int | None = None
    total_devices: int | None = None
    allocated_devices: int | None = None
    available_devices: int | None = None
    unavailable_devices: int | None = None
    partition_summary: tuple[PartitionTypeStatus, ...] = ()
    shareable_summary: ShareableSummaryStatus | None = None
    validation_error: str | None = None


class ResourcePoolStatusRequestStatus(Struct):
    """The answer."""

    pool_count: int = field(default_factory=int)
    pools: tuple[PoolStatus, ...] = ()
    conditions: tuple[Condition, ...] = ()


class ResourcePoolStatusRequest(Object):
    """Asks for the state of pools. Cluster-scoped."""

    spec: ResourcePoolStatusRequestSpec = field(default_factory=ResourcePoolStatusRequestSpec)
    status: ResourcePoolStatusRequestStatus | None = None
