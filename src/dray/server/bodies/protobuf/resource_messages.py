"""The field numbers of resource.k8s.io, whose kinds DRA drivers and schedulers in Go write (see `messages`).

A name with `.v1beta1` is a message that has another shape there; all others are the same in every version.
"""

from __future__ import annotations

_SLICES = """
ResourceSlice: metadata=1:ObjectMeta spec=2:ResourceSliceSpec
ResourceSliceSpec: driver=1 pool=2:ResourcePool nodeName=3 nodeSelector=4:NodeSelector allNodes=5:bool devices=6:*Device
    perDeviceNodeSelection=7:bool sharedCounters=8:*CounterSet partitionTypeAttribute=9 skipNodeOperations=10:*text
ResourcePool: name=1 generation=2:int resourceSliceCount=3:int
Device: name=1 attributes=2:@DeviceAttribute capacity=3:@DeviceCapacity consumesCounters=4:*DeviceCounterConsumption
    nodeName=5 nodeSelector=6:NodeSelector allNodes=7:bool taints=8:*DeviceTaint bindsToNode=9:bool
    bindingConditions=10:*text bindingFailureConditions=11:*text allowMultipleAllocations=12:bool
    nodeAllocatableResources=14:@NodeAllocatableResource
DeviceAttribute: int=2:int bool=3:bool string=4 version=5 ints=6:*int bools=7:*bool strings=8:*text versions=9:*text
DeviceCapacity: value=1:quantity requestPolicy=2:CapacityRequestPolicy
CapacityRequestPolicy: default=1:quantity validValues=3:*quantity validRange=4:CapacityRequestPolicyRange
CapacityRequestPolicyRange: min=1:quantity max=2:quantity step=3:quantity
DeviceCounterConsumption: counterSet=1 counters=2:@Counter compatibilityGroups=3:*text
CounterSet: name=1 counters=2:@Counter
Counter: value=1:quantity
NodeAllocatableResource: mapping=3:NodeAllocatableMapping overhead=4:NodeAllocatableOverhead
NodeAllocatableMapping: capacityKey=1 capacityMultiplier=2:quantity deviceMultiplier=3:quantity
NodeAllocatableOverhead: perPod=1:quantity perContainer=2:quantity
NodeSelector: nodeSelectorTerms=1:*NodeSelectorTerm
NodeSelectorTerm: matchExpressions=1:*NodeSelectorRequirement matchFields=2:*NodeSelectorRequirement
NodeSelectorRequirement: key=1 operator=2 values=3:*text
DeviceTaint: key=1 value=2 effect=3 timeAdded=4:time
DeviceTaintRule: metadata=1:ObjectMeta spec=2:DeviceTaintRuleSpec status=3:DeviceTaintRuleStatus
DeviceTaintRuleSpec: deviceSelector=1:DeviceTaintSelector taint=2:DeviceTaint
DeviceTaintSelector: driver=2 pool=3 device=4
DeviceTaintRuleStatus: conditions=1:*Condition
"""

_CLAIMS = """
DeviceClass: metadata=1:ObjectMeta spec=2:DeviceClassSpec
DeviceClassSpec: selectors=1:*DeviceSelector config=2:*DeviceClassConfiguration extendedResourceName=4
DeviceClassConfiguration: deviceConfiguration=1:+DeviceConfiguration
DeviceConfiguration: opaque=1:OpaqueDeviceConfiguration
OpaqueDeviceConfiguration: driver=1 parameters=2:json
DeviceSelector: cel=1:CELDeviceSelector
CELDeviceSelector: expression=1
ResourceClaimTemplate: metadata=1:ObjectMeta spec=2:ResourceClaimTemplateSpec
ResourceClaimTemplateSpec: metadata=1:ObjectMeta spec=2:ResourceClaimSpec
ResourceClaim: metadata=1:ObjectMeta spec=2:ResourceClaimSpec status=3:ResourceClaimStatus
ResourceClaimSpec: devices=1:DeviceClaim
DeviceClaim: requests=1:*DeviceRequest constraints=2:*DeviceConstraint config=3:*DeviceClaimConfiguration
DeviceRequest: name=1 exactly=2:ExactDeviceRequest firstAvailable=3:*DeviceSubRequest
ExactDeviceRequest: deviceClassName=1 selectors=2:*DeviceSelector allocationMode=3 count=4:int adminAccess=5:bool
    tolerations=6:*DeviceToleration capacity=7:CapacityRequirements derivedAttributes=8:*DeviceDerivedAttribute
DeviceSubRequest: name=1 deviceClassName=2 selectors=3:*DeviceSelector allocationMode=4 count=5:int
    tolerations=6:*DeviceToleration capacity=7:CapacityRequirements derivedAttributes=8:*DeviceDerivedAttribute
DeviceToleration: key=1 operator=2 value=3 effect=4 tolerationSeconds=5:int
CapacityRequirements: requests=1:@quantity
DeviceDerivedAttribute: name=1 expression=2
DeviceConstraint: requests=1:*text matchAttribute=2 distinctAttribute=3
DeviceClaimConfiguration: requests=1:*text deviceConfiguration=2:+DeviceConfiguration
ResourceClaimStatus: allocation=1:AllocationResult reservedFor=2:*ResourceClaimConsumerReference
    devices=4:*AllocatedDeviceStatus
ResourceClaimConsumerReference: apiGroup=1 resource=3 name=4 uid=5
AllocationResult: devices=1:DeviceAllocationResult nodeSelector=3:NodeSelector allocationTimestamp=5:time
DeviceAllocationResult: results=1:*DeviceRequestAllocationResult config=2:*DeviceAllocationConfiguration
DeviceRequestAllocationResult: request=1 driver=2 pool=3 device=4 adminAccess=5:bool tolerations=6:*DeviceToleration
    bindingConditions=7:*text bindingFailureConditions=8:*text shareID=9 consumedCapacity=10:@quantity
    skipNodeOperations=11:*text
DeviceAllocationConfiguration: source=1 requests=2:*text deviceConfiguration=3:+DeviceConfiguration
AllocatedDeviceStatus: driver=1 pool=2 device=3 conditions=4:*Condition data=5:json networkData=6:NetworkDeviceData
    shareID=7
NetworkDeviceData: interfaceName=1 ips=2:*text hardwareAddress=3
"""

_V1BETA1 = """
ResourceSlice.v1beta1: metadata=1:ObjectMeta spec=2:ResourceSliceSpec.v1beta1
ResourceSliceSpec.v1beta1: driver=1 pool=2:ResourcePool nodeName=3 nodeSelector=4:NodeSelector allNodes=5:bool
    devices=6:*Device.v1beta1 perDeviceNodeSelection=7:bool sharedCounters=8:*CounterSet partitionTypeAttribute=9
    skipNodeOperations=10:*text
Device.v1beta1: name=1 basic=2:BasicDevice
BasicDevice: attributes=1:@DeviceAttribute capacity=2:@DeviceCapacity consumesCounters=3:*DeviceCounterConsumption
    nodeName=4 nodeSelector=5:NodeSelector allNodes=6:bool taints=7:*DeviceTaint bindsToNode=8:bool
    bindingConditions=9:*text bindingFailureConditions=10:*text allowMultipleAllocations=11:bool
    nodeAllocatableResources=14:@NodeAllocatableResource
ResourceClaimTemplate.v1beta1: metadata=1:ObjectMeta spec=2:ResourceClaimTemplateSpec.v1beta1
ResourceClaimTemplateSpec.v1beta1: metadata=1:ObjectMeta spec=2:ResourceClaimSpec.v1beta1
ResourceClaim.v1beta1: metadata=1:ObjectMeta spec=2:ResourceClaimSpec.v1beta1 status=3:ResourceClaimStatus
ResourceClaimSpec.v1beta1: devices=1:DeviceClaim.v1beta1
DeviceClaim.v1beta1: requests=1:*DeviceRequest.v1beta1 constraints=2:*DeviceConstraint
    config=3:*DeviceClaimConfiguration
DeviceRequest.v1beta1: name=1 deviceClassName=2 selectors=3:*DeviceSelector allocationMode=4 count=5:int
    adminAccess=6:bool firstAvailable=7:*DeviceSubRequest.v1beta1 tolerations=8:*DeviceToleration
    capacity=9:CapacityRequirements derivedAttributes=10:*DeviceDerivedAttribute
DeviceSubRequest.v1beta1: name=1 deviceClassName=2 selectors=3:*DeviceSelector allocationMode=4 count=5:int
    tolerations=7:*DeviceToleration capacity=8:CapacityRequirements derivedAttributes=9:*DeviceDerivedAttribute
"""

TABLE = _SLICES + _CLAIMS + _V1BETA1

_BETA1_KINDS = ("ResourceSlice", "ResourceClaim", "ResourceClaimTemplate")
_KINDS = (*_BETA1_KINDS, "DeviceClass")

KINDS: dict[tuple[str, str], str] = {
    ("resource.k8s.io/v1alpha3", "DeviceTaintRule"): "DeviceTaintRule",
    ("resource.k8s.io/v1beta1", "DeviceClass"): "DeviceClass",
    **{("resource.k8s.io/v1beta1", kind): f"{kind}.v1beta1" for kind in _BETA1_KINDS},
    **{
        (f"resource.k8s.io/{version}", kind): kind
        for version in ("v1", "v1beta2")
        for kind in (*_KINDS, "DeviceTaintRule")
    },
}
"""The message of each kind, by its version."""
