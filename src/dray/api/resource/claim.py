"""ResourceClaim and ResourceClaimTemplate: what a workload asks for, and what it was given."""

from __future__ import annotations

from typing import Any, Literal, TypeAlias

from msgspec import field

from dray.api.meta import Condition, Object, ObjectMeta
from dray.api.node_selector import NodeSelector
from dray.api.quantity import Quantity
from dray.api.resource.device_class import DeviceSelector, OpaqueDeviceConfiguration
from dray.api.resource.taint import DeviceToleration
from dray.api.struct import Struct
from dray.api.times import Time

MODE_EXACT_COUNT = "ExactCount"
MODE_ALL = "All"

SOURCE_CLASS = "FromClass"
SOURCE_CLAIM = "FromClaim"

REQUESTS = 32
CONSTRAINTS = 32
CONFIGS = 32
SUBREQUESTS = 8
ALLOCATION_RESULTS = 32
ALLOCATION_CONFIGS = 64
RESERVED_FOR = 256

ClaimState: TypeAlias = Literal["pending", "allocated", "reserved", "deleting"]

FINALIZER = "resource.kubernetes.io/delete-protection"


class CapacityRequirements(Struct):
    """How much of each capacity a request needs of a device that may be shared."""

    requests: dict[str, Quantity] = field(default_factory=dict)


class DeviceDerivedAttribute(Struct):
    """An attribute computed by CEL for the constraints of a claim."""

    name: str = field(default_factory=str)
    expression: str = field(default_factory=str)


class ExactDeviceRequest(Struct):
    """A request with one way to satisfy it."""

    device_class_name: str = field(default_factory=str)
    selectors: tuple[DeviceSelector, ...] = ()
    allocation_mode: str = ""
    count: int = 0
    admin_access: bool | None = None
    tolerations: tuple[DeviceToleration, ...] = ()
    capacity: CapacityRequirements | None = None
    derived_attributes: tuple[DeviceDerivedAttribute, ...] = ()


class DeviceSubRequest(Struct):
    """One of several alternatives, tried in order."""

    name: str = field(default_factory=str)
    device_class_name: str = field(default_factory=str)
    selectors: tuple[DeviceSelector, ...] = ()
    allocation_mode: str = ""
    count: int = 0
    tolerations: tuple[DeviceToleration, ...] = ()
    capacity: CapacityRequirements | None = None
    derived_attributes: tuple[DeviceDerivedAttribute, ...] = ()


class DeviceRequest(Struct):
    """Devices under one name: either `exactly` this, or the first of several alternatives that fits."""

    name: str = field(default_factory=str)
    exactly: ExactDeviceRequest | None = None
    first_available: tuple[DeviceSubRequest, ...] = ()


class DeviceConstraint(Struct):
    """What must hold between the devices of the named requests (all requests if none is named)."""

    requests: tuple[str, ...] = ()
    match_attribute: str | None = None
    distinct_attribute: str | None = None


class DeviceClaimConfiguration(Struct):
    """Configuration for the devices of the named requests (all if none is named)."""

    requests: tuple[str, ...] = ()
    opaque: OpaqueDeviceConfiguration | None = None


class DeviceClaim(Struct):
    """All requests must be satisfied; none asks for nothing."""

    requests: tuple[DeviceRequest, ...] = field(default_factory=lambda: ())
    constraints: tuple[DeviceConstraint, ...] = ()
    config: tuple[DeviceClaimConfiguration, ...] = ()


class ResourceClaimSpec(Struct):
    """What the claim asks for. Immutable."""

    devices: DeviceClaim = field(default_factory=DeviceClaim)


def request_parts(name: str) -> tuple[str, str]:
    """The request that a result, a constraint or a configuration names, and which of its alternatives, if one."""
    request, _, subrequest = name.partition("/")
    return request, subrequest


class DeviceRequestAllocationResult(Struct):
    """One device for one request; for an alternative, `request` is `<request>/<subrequest>`."""

    request: str = field(default_factory=str)
    driver: str = field(default_factory=str)
    pool: str = field(default_factory=str)
    device: str = field(default_factory=str)
    admin_access: bool | None = None
    tolerations: tuple[DeviceToleration, ...] = ()
    binding_conditions: tuple[str, ...] = ()
    binding_failure_conditions: tuple[str, ...] = ()
    share_id: str | None = field(default=None, name="shareID")
    consumed_capacity: dict[str, Quantity] = field(default_factory=dict)
    skip_node_operations: tuple[str, ...] = ()


class DeviceAllocationConfiguration(Struct):
    """A configuration as of allocation time, with where it came from: the class (admin) or the claim (user)."""

    source: str = field(default_factory=str)
    requests: tuple[str, ...] = ()
    opaque: OpaqueDeviceConfiguration | None = None


class DeviceAllocationResult(Struct):
    """The devices that were chosen and the configuration that goes with them."""

    results: tuple[DeviceRequestAllocationResult, ...] = ()
    config: tuple[DeviceAllocationConfiguration, ...] = ()


class AllocationResult(Struct):
    """What was allocated and on which nodes it can be used (everywhere, without a selector)."""

    devices: DeviceAllocationResult = field(default_factory=DeviceAllocationResult)
    node_selector: NodeSelector | None = None
    allocation_timestamp: Time | None = None


class ResourceClaimConsumerReference(Struct):
    """Who may use the claim: an object in the claim's namespace, for Kubernetes always a pod."""

    api_group: str = ""
    resource: str = field(default_factory=str)
    name: str = field(default_factory=str)
    uid: str = field(default_factory=str)


class NetworkDeviceData(Struct):
    """What a driver says of a network interface that it prepared."""

    interface_name: str = ""
    ips: tuple[str, ...] = ()
    hardware_address: str = ""


class AllocatedDeviceStatus(Struct):
    """What a driver says of one allocated device."""

    driver: str = field(default_factory=str)
    pool: str = field(default_factory=str)
    device: str = field(default_factory=str)
    share_id: str | None = field(default=None, name="shareID")
    conditions: tuple[Condition, ...] = field(default_factory=lambda: ())
    data: Any = None
    network_data: NetworkDeviceData | None = None


class ResourceClaimStatus(Struct):
    """Allocated if `allocation` is set; in use if `reserved_for` is not empty (4381-131)."""

    allocation: AllocationResult | None = None
    reserved_for: tuple[ResourceClaimConsumerReference, ...] = ()
    devices: tuple[AllocatedDeviceStatus, ...] = ()


class ResourceClaim(Object):
    """A request for devices by the pods of a namespace, and its fulfilment."""

    null_when_empty = (("spec", "devices", "requests"), ("status", "devices", "conditions"))

    spec: ResourceClaimSpec = field(default_factory=ResourceClaimSpec)
    status: ResourceClaimStatus = field(default_factory=ResourceClaimStatus)


class ResourceClaimTemplateSpec(Struct):
    """Labels, annotations and the spec of the claims that are made from a template."""

    metadata: ObjectMeta = field(default_factory=ObjectMeta)
    spec: ResourceClaimSpec = field(default_factory=ResourceClaimSpec)


class ResourceClaimTemplate(Object):
    """A pattern from which each pod that names it gets a claim of its own. Immutable."""

    null_when_empty = (("spec", "spec", "devices", "requests"),)

    spec: ResourceClaimTemplateSpec = field(default_factory=ResourceClaimTemplateSpec)


def claim_state(claim: ResourceClaim) -> ClaimState:
    """In one word, how a claim is."""
    if claim.metadata.deletion_timestamp is not None:
        return "deleting"
    if claim.status.allocation is None:
        return "pending"
    return "reserved" if claim.status.reserved_for else "allocated"
