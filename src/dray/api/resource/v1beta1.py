"""resource.k8s.io/v1beta1, where it differs from the hub: a device wraps its content in `basic`, a request is flat."""

from __future__ import annotations

from msgspec import field

from dray.api.meta import Object, ObjectMeta
from dray.api.node_selector import NodeSelector
from dray.api.resource.claim import (
    CapacityRequirements,
    DeviceClaimConfiguration,
    DeviceConstraint,
    DeviceDerivedAttribute,
    DeviceSubRequest,
    ResourceClaimStatus,
)
from dray.api.resource.device_class import DeviceSelector
from dray.api.resource.slice import (
    CounterSet,
    DeviceAttribute,
    DeviceCapacity,
    DeviceCounterConsumption,
    NodeAllocatableResource,
    ResourcePool,
    SliceDeviceTaint,
)
from dray.api.resource.taint import DeviceTaint, DeviceToleration
from dray.api.struct import Struct


class BasicDevice(Struct):
    """Everything of a device but its name."""

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


class Device(Struct):
    """One device."""

    name: str = field(default_factory=str)
    basic: BasicDevice | None = None


class ResourceSliceSpec(Struct):
    """As in v1, but with wrapped devices and plain node fields."""

    driver: str = field(default_factory=str)
    pool: ResourcePool = field(default_factory=ResourcePool)
    node_name: str = ""
    node_selector: NodeSelector | None = None
    all_nodes: bool = False
    devices: tuple[Device, ...] = ()
    per_device_node_selection: bool | None = None
    shared_counters: tuple[CounterSet, ...] = ()
    taints: tuple[SliceDeviceTaint, ...] = ()
    partition_type_attribute: str | None = None
    skip_node_operations: tuple[str, ...] = ()


class ResourceSlice(Object):
    """A ResourceSlice in v1beta1 form."""

    spec: ResourceSliceSpec = field(default_factory=ResourceSliceSpec)


class DeviceRequest(Struct):
    """A request whose single alternative stands in the request itself."""

    name: str = field(default_factory=str)
    device_class_name: str = field(default_factory=str)
    selectors: tuple[DeviceSelector, ...] = ()
    allocation_mode: str = ""
    count: int = 0
    admin_access: bool | None = None
    first_available: tuple[DeviceSubRequest, ...] = ()
    tolerations: tuple[DeviceToleration, ...] = ()
    capacity: CapacityRequirements | None = None
    derived_attributes: tuple[DeviceDerivedAttribute, ...] = ()


class DeviceClaim(Struct):
    """As in v1, with flat requests."""

    requests: tuple[DeviceRequest, ...] = field(default_factory=lambda: ())
    constraints: tuple[DeviceConstraint, ...] = ()
    config: tuple[DeviceClaimConfiguration, ...] = ()


class ResourceClaimSpec(Struct):
    """As in v1, with flat requests."""

    devices: DeviceClaim = field(default_factory=DeviceClaim)


class ResourceClaim(Object):
    """A ResourceClaim in v1beta1 form."""

    null_when_empty = (("spec", "devices", "requests"), ("status", "devices", "conditions"))

    spec: ResourceClaimSpec = field(default_factory=ResourceClaimSpec)
    status: ResourceClaimStatus = field(default_factory=ResourceClaimStatus)


class ResourceClaimTemplateSpec(Struct):
    """As in v1, with flat requests."""

    metadata: ObjectMeta = field(default_factory=ObjectMeta)
    spec: ResourceClaimSpec = field(default_factory=ResourceClaimSpec)


class ResourceClaimTemplate(Object):
    """A ResourceClaimTemplate in v1beta1 form."""

    null_when_empty = (("spec", "spec", "devices", "requests"),)

    spec: ResourceClaimTemplateSpec = field(default_factory=ResourceClaimTemplateSpec)
