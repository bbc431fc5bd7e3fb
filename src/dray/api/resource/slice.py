"""ResourceSlice: the devices that a driver publishes, as pools that may span several slices."""

from __future__ import annotations

from msgspec import field

from dray.api.meta import Object
from dray.api.node_selector import NodeSelector
from dray.api.quantity import Quantity
from dray.api.resource.taint import DeviceTaint
from dray.api.struct import Struct

DEVICES_PER_SLICE = 128
DEVICES_PER_SLICE_WITH_TAINTS_OR_COUNTERS = 64
ATTRIBUTES_AND_CAPACITIES_PER_DEVICE = 32
ATTRIBUTE_VALUE_LENGTH = 64
LIST_VALUES_PER_DEVICE = 48
DRIVER_NAME_LENGTH = 63
POOL_NAME_LENGTH = 253
DOMAIN_LENGTH = 63
IDENTIFIER_LENGTH = 32
SHARED_CAPACITY_PER_SLICE = 128  # named by the seed, used by no field (4381-17)


class DeviceAttribute(Struct):
    """A value of exactly one type; the plural ones are lists."""

    int_value: int | None = field(default=None, name="int")
    bool_value: bool | None = field(default=None, name="bool")
    string: str | None = None
    version: str | None = None
    ints: tuple[int, ...] | None = None
    bools: tuple[bool, ...] | None = None
    strings: tuple[str, ...] | None = None
    versions: tuple[str, ...] | None = None


class CapacityRequestPolicyRange(Struct):
    """Requests are rounded up to `min` plus a multiple of `step`, and may not pass `max`."""

    min: Quantity | None = None
    max: Quantity | None = None
    step: Quantity | None = None


class CapacityRequestPolicy(Struct):
    """How much of a shared device's capacity one request may consume, and how much it gets if it does not say."""

    default: Quantity | None = field(default_factory=lambda: None)
    valid_values: tuple[Quantity, ...] = ()
    valid_range: CapacityRequestPolicyRange | None = None


class DeviceCapacity(Struct):
    """An amount that a device has."""

    value: Quantity = field(default_factory=lambda: Quantity.parse("0"))
    request_policy: CapacityRequestPolicy | None = None


class Counter(Struct):
    """An amount in a counter set, or what a device takes of it."""

    value: Quantity = field(default_factory=lambda: Quantity.parse("0"))


class CounterSet(Struct):
    """A named set of counters that the devices of a pool share (partitionable devices)."""

    name: str = field(default_factory=str)
    counters: dict[str, Counter] = field(default_factory=dict)


class DeviceCounterConsumption(Struct):
    """What a device takes from one counter set while it is allocated."""

    counter_set: str = field(default_factory=str)
    counters: dict[str, Counter] = field(default_factory=dict)
    compatibility_groups: tuple[str, ...] = ()


class NodeAllocatableMapping(Struct):
    """How an allocated device counts as an ordinary node resource."""

    capacity_key: str | None = None
    capacity_multiplier: Quantity | None = None
    device_multiplier: Quantity | None = None


class NodeAllocatableOverhead(Struct):
    """Node resources that using the device costs on top."""

    per_pod: Quantity | None = None
    per_container: Quantity | None = None


class NodeAllocatableResource(Struct):
    """What a device means for one of the node's allocatable resources."""

    mapping: NodeAllocatableMapping | None = None
    overhead: NodeAllocatableOverhead | None = None


class Device(Struct):
    """One device. Its name is unique in its pool, over all slices of the pool."""

    name: str = field(default_factory=str)
    attributes: dict[str, DeviceAttribute] = field(default_factory=dict)
    capacity: dict[str, DeviceCapacity] = field(default_factory=dict)
    consumes_counters: tuple[DeviceCounterConsumption, ...] = ()
    node_name: str | None = None
    node_selector: NodeSelector | None = None
    all_nodes: bool | None = None
    taints: tuple[DeviceTaint, ...] = ()
    binds_to_node: bool | None = None
    binding_conditions: tuple[str, ...] = ()
    binding_failure_conditions: tuple[str, ...] = ()
    allow_multiple_allocations: bool | None = None
    node_allocatable_resources: dict[str, NodeAllocatableResource] = field(default_factory=dict)


class ResourcePool(Struct):
    """The pool that a slice belongs to. Of slices that concern the same nodes, only the highest generation counts."""

    name: str = field(default_factory=str)
    generation: int = field(default_factory=int)
    resource_slice_count: int = field(default_factory=int)


class SliceDeviceTaint(Struct):
    """A taint on a device of the slice's pool, published apart from the device (5055-06..10)."""

    device: str = field(default_factory=str)
    taint: DeviceTaint = field(default_factory=DeviceTaint)


class ResourceSliceSpec(Struct):
    """Where devices are reachable, and the devices, their taints or the counters they share: one of the three."""

    driver: str = field(default_factory=str)
    pool: ResourcePool = field(default_factory=ResourcePool)
    node_name: str | None = None
    node_selector: NodeSelector | None = None
    all_nodes: bool | None = None
    devices: tuple[Device, ...] = ()
    per_device_node_selection: bool | None = None
    shared_counters: tuple[CounterSet, ...] = ()
    taints: tuple[SliceDeviceTaint, ...] = ()
    partition_type_attribute: str | None = None
    skip_node_operations: tuple[str, ...] = ()


class ResourceSlice(Object):
    """Devices of one pool of one driver. Cluster-scoped; it has no status."""

    spec: ResourceSliceSpec = field(default_factory=ResourceSliceSpec)
