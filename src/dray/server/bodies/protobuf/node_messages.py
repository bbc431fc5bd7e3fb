"""The field numbers of what a kubelet writes when it registers its node (see `messages`)."""

from __future__ import annotations

TABLE = """
Node: metadata=1:ObjectMeta spec=2:NodeSpec status=3:NodeStatus
NodeSpec: podCIDR=1 externalID=2 providerID=3 unschedulable=4:bool taints=5:*Taint configSource=6:NodeConfigSource
    podCIDRs=7:*text podPreemptionPolicy=8:NodePodPreemptionPolicy
NodePodPreemptionPolicy: disableResizePreemption=1:*text
Taint: key=1 value=2 effect=3 timeAdded=4:time
NodeConfigSource: configMap=2:ConfigMapNodeConfigSource
ConfigMapNodeConfigSource: namespace=1 name=2 uid=3 resourceVersion=4 kubeletConfigKey=5
NodeStatus: capacity=1:@quantity allocatable=2:@quantity phase=3 conditions=4:*NodeCondition addresses=5:*NodeAddress
    daemonEndpoints=6:NodeDaemonEndpoints nodeInfo=7:NodeSystemInfo images=8:*ContainerImage volumesInUse=9:*text
    volumesAttached=10:*AttachedVolume config=11:NodeConfigStatus runtimeHandlers=12:*NodeRuntimeHandler
    features=13:NodeFeatures declaredFeatures=14:*text
NodeCondition: type=1 status=2 lastHeartbeatTime=3:time lastTransitionTime=4:time reason=5 message=6
NodeAddress: type=1 address=2
NodeDaemonEndpoints: kubeletEndpoint=1:DaemonEndpoint
DaemonEndpoint: Port=1:int
NodeSystemInfo: machineID=1 systemUUID=2 bootID=3 kernelVersion=4 osImage=5 containerRuntimeVersion=6 kubeletVersion=7
    kubeProxyVersion=8 operatingSystem=9 architecture=10 swap=11:NodeSwapStatus
    runningInUserNamespace=12:bool
NodeSwapStatus: capacity=1:int
ContainerImage: names=1:*text sizeBytes=2:int
AttachedVolume: name=1 devicePath=2
NodeConfigStatus: assigned=1:NodeConfigSource active=2:NodeConfigSource lastKnownGood=3:NodeConfigSource error=4
NodeRuntimeHandler: name=1 features=2:NodeRuntimeHandlerFeatures
NodeRuntimeHandlerFeatures: recursiveReadOnlyMounts=1:bool userNamespaces=2:bool
NodeFeatures: supplementalGroupsPolicy=1:bool
CSINode: metadata=1:ObjectMeta spec=2:CSINodeSpec status=3:CSINodeStatus
CSINodeStatus: storageHealth=1:*StorageHealth
StorageHealth: name=1 healthConditions=2:*StorageHealthCondition
StorageHealthCondition: status=1 reason=2 message=3 accessMode=4 volumeMode=5 lastTransitionTime=6:time
CSINodeSpec: drivers=1:*CSINodeDriver
CSINodeDriver: name=1 nodeID=2 topologyKeys=3:*text allocatable=4:VolumeNodeResources
VolumeNodeResources: count=1:int
"""

KINDS: dict[tuple[str, str], str] = {("v1", "Node"): "Node", ("storage.k8s.io/v1", "CSINode"): "CSINode"}
"""The message of each kind, by its version."""
