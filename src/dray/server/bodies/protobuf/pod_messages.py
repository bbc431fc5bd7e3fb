"""The field numbers of pods and of what they are made from (see `messages`)."""

from __future__ import annotations

_SPEC = """
Pod: metadata=1:ObjectMeta spec=2:PodSpec status=3:PodStatus
PodTemplate: metadata=1:ObjectMeta template=2:PodTemplateSpec
PodTemplateSpec: metadata=1:ObjectMeta spec=2:PodSpec
PodSpec: volumes=1:*Volume containers=2:*Container restartPolicy=3 terminationGracePeriodSeconds=4:int
    activeDeadlineSeconds=5:int dnsPolicy=6 nodeSelector=7:@text serviceAccountName=8 serviceAccount=9 nodeName=10
    hostNetwork=11:bool hostPID=12:bool hostIPC=13:bool securityContext=14:PodSecurityContext
    imagePullSecrets=15:*LocalObjectReference hostname=16 subdomain=17 affinity=18:Affinity schedulerName=19
    initContainers=20:*Container automountServiceAccountToken=21:bool tolerations=22:*Toleration
    hostAliases=23:*HostAlias priorityClassName=24 priority=25:int dnsConfig=26:PodDNSConfig
    shareProcessNamespace=27:bool readinessGates=28:*PodReadinessGate runtimeClassName=29 enableServiceLinks=30:bool
    preemptionPolicy=31 overhead=32:@quantity topologySpreadConstraints=33:*TopologySpreadConstraint
    ephemeralContainers=34:*EphemeralContainer setHostnameAsFQDN=35:bool os=36:PodOS hostUsers=37:bool
    schedulingGates=38:*PodSchedulingGate resourceClaims=39:*PodResourceClaim resources=40:ResourceRequirements
    hostnameOverride=41 schedulingGroup=43:PodSchedulingGroup evictionResponders=44:*EvictionResponder
Toleration: key=1 operator=2 value=3 effect=4 tolerationSeconds=5:int
HostAlias: ip=1 hostnames=2:*text
PodDNSConfig: nameservers=1:*text searches=2:*text options=3:*PodDNSConfigOption
PodDNSConfigOption: name=1 value=2
PodReadinessGate: conditionType=1
PodSchedulingGate: name=1
PodSchedulingGroup: podGroupName=1
PodOS: name=1
PodResourceClaim: name=1 resourceClaimName=3 resourceClaimTemplateName=4
EvictionResponder: name=1 priority=2:int
TopologySpreadConstraint: maxSkew=1:int topologyKey=2 whenUnsatisfiable=3 labelSelector=4:LabelSelector minDomains=5:int
    nodeAffinityPolicy=6 nodeTaintsPolicy=7 matchLabelKeys=8:*text
Affinity: nodeAffinity=1:NodeAffinity podAffinity=2:PodAffinity podAntiAffinity=3:PodAffinity
NodeAffinity: requiredDuringSchedulingIgnoredDuringExecution=1:NodeSelector
    preferredDuringSchedulingIgnoredDuringExecution=2:*PreferredSchedulingTerm
PreferredSchedulingTerm: weight=1:int preference=2:NodeSelectorTerm
PodAffinity: requiredDuringSchedulingIgnoredDuringExecution=1:*PodAffinityTerm
    preferredDuringSchedulingIgnoredDuringExecution=2:*WeightedPodAffinityTerm
PodAffinityTerm: labelSelector=1:LabelSelector namespaces=2:*text topologyKey=3 namespaceSelector=4:LabelSelector
    matchLabelKeys=5:*text mismatchLabelKeys=6:*text
WeightedPodAffinityTerm: weight=1:int podAffinityTerm=2:PodAffinityTerm
PodSecurityContext: seLinuxOptions=1:SELinuxOptions runAsUser=2:int runAsNonRoot=3:bool supplementalGroups=4:*int
    fsGroup=5:int runAsGroup=6:int sysctls=7:*Sysctl windowsOptions=8:WindowsSecurityContextOptions
    fsGroupChangePolicy=9 seccompProfile=10:LocalProfile appArmorProfile=11:LocalProfile supplementalGroupsPolicy=12
    seLinuxChangePolicy=13
Sysctl: name=1 value=2
"""

_CONTAINERS = """
Container: name=1 image=2 command=3:*text args=4:*text workingDir=5 ports=6:*ContainerPort env=7:*EnvVar
    resources=8:ResourceRequirements volumeMounts=9:*VolumeMount livenessProbe=10:Probe readinessProbe=11:Probe
    lifecycle=12:Lifecycle terminationMessagePath=13 imagePullPolicy=14 securityContext=15:SecurityContext stdin=16:bool
    stdinOnce=17:bool tty=18:bool envFrom=19:*EnvFromSource terminationMessagePolicy=20 volumeDevices=21:*VolumeDevice
    startupProbe=22:Probe resizePolicy=23:*ContainerResizePolicy restartPolicy=24
    restartPolicyRules=25:*ContainerRestartRule
EphemeralContainer: ephemeralContainerCommon=1:+Container targetContainerName=2
ContainerPort: name=1 hostPort=2:int containerPort=3:int protocol=4 hostIP=5
EnvFromSource: prefix=1 configMapRef=2:EnvironmentSource secretRef=3:EnvironmentSource
EnvironmentSource: localObjectReference=1:+LocalObjectReference optional=2:bool
EnvVar: name=1 value=2 valueFrom=3:EnvVarSource
EnvVarSource: fieldRef=1:ObjectFieldSelector resourceFieldRef=2:ResourceFieldSelector configMapKeyRef=3:KeySelector
    secretKeyRef=4:KeySelector fileKeyRef=5:FileKeySelector
KeySelector: localObjectReference=1:+LocalObjectReference key=2 optional=3:bool
FileKeySelector: volumeName=1 path=2 key=3 optional=4:bool
ObjectFieldSelector: apiVersion=1 fieldPath=2
ResourceFieldSelector: containerName=1 resource=2 divisor=3:quantity
ResourceRequirements: limits=1:@quantity requests=2:@quantity claims=3:*ContainerClaim
ContainerClaim: name=1 request=2
ContainerResizePolicy: resourceName=1 restartPolicy=2
ContainerRestartRule: action=1 exitCodes=2:ContainerRestartRuleOnExitCodes
ContainerRestartRuleOnExitCodes: operator=1 values=2:*int
VolumeMount: name=1 readOnly=2:bool mountPath=3 subPath=4 mountPropagation=5 subPathExpr=6 recursiveReadOnly=7
    bindMountOptions=8:*text
VolumeDevice: name=1 devicePath=2
Probe: handler=1:+ProbeHandler initialDelaySeconds=2:int timeoutSeconds=3:int periodSeconds=4:int
    successThreshold=5:int failureThreshold=6:int terminationGracePeriodSeconds=7:int
ProbeHandler: exec=1:ExecAction httpGet=2:HTTPGetAction tcpSocket=3:TCPSocketAction grpc=4:GRPCAction
Lifecycle: postStart=1:LifecycleHandler preStop=2:LifecycleHandler stopSignal=3
LifecycleHandler: exec=1:ExecAction httpGet=2:HTTPGetAction tcpSocket=3:TCPSocketAction sleep=4:SleepAction
ExecAction: command=1:*text
HTTPGetAction: path=1 port=2:int-or-string host=3 scheme=4 httpHeaders=5:*HTTPHeader protocol=6
HTTPHeader: name=1 value=2
TCPSocketAction: port=1:int-or-string host=2
GRPCAction: port=1:int service=2 mode=3
SleepAction: seconds=1:int
SecurityContext: capabilities=1:Capabilities privileged=2:bool seLinuxOptions=3:SELinuxOptions runAsUser=4:int
    runAsNonRoot=5:bool readOnlyRootFilesystem=6:bool allowPrivilegeEscalation=7:bool runAsGroup=8:int procMount=9
    windowsOptions=10:WindowsSecurityContextOptions seccompProfile=11:LocalProfile appArmorProfile=12:LocalProfile
Capabilities: add=1:*text drop=2:*text
SELinuxOptions: user=1 role=2 type=3 level=4
LocalProfile: type=1 localhostProfile=2
WindowsSecurityContextOptions: gmsaCredentialSpecName=1 gmsaCredentialSpec=2 runAsUserName=3 hostProcess=4:bool
"""

_STATUS = """
PodStatus: phase=1 conditions=2:*PodCondition message=3 reason=4 hostIP=5 podIP=6 startTime=7:time
    containerStatuses=8:*ContainerStatus qosClass=9 initContainerStatuses=10:*ContainerStatus nominatedNodeName=11
    podIPs=12:*Address ephemeralContainerStatuses=13:*ContainerStatus resize=14
    resourceClaimStatuses=15:*PodResourceClaimStatus hostIPs=16:*Address observedGeneration=17:int
    extendedResourceClaimStatus=18:PodExtendedResourceClaimStatus allocatedResources=19:@quantity
    resources=20:ResourceRequirements
    nodeAllocatableResourceClaimStatuses=21:*NodeAllocatableResourceClaimStatus volumeHealth=22:*PodVolumeHealth
PodCondition: type=1 status=2 lastProbeTime=3:time lastTransitionTime=4:time reason=5 message=6 observedGeneration=7:int
Address: ip=1
PodResourceClaimStatus: name=1 resourceClaimName=2
PodExtendedResourceClaimStatus: requestMappings=1:*ContainerExtendedResourceRequest resourceClaimName=2
ContainerExtendedResourceRequest: containerName=1 resourceName=2 requestName=3
NodeAllocatableResourceClaimStatus: resourceClaimName=1 containers=2:*text mapping=4:*NodeAllocatableMappedResources
    overhead=5:*NodeAllocatableOverheadResources
NodeAllocatableMappedResources: name=1 quantity=2:quantity
NodeAllocatableOverheadResources: name=1 perPod=2:quantity perContainer=3:quantity
PodVolumeHealth: name=1 healthConditions=2:*VolumeHealthCondition lastTransitionTime=3:time
ContainerStatus: name=1 state=2:ContainerState lastState=3:ContainerState ready=4:bool restartCount=5:int image=6
    imageID=7 containerID=8 started=9:bool allocatedResources=10:@quantity resources=11:ResourceRequirements
    volumeMounts=12:*VolumeMountStatus user=13:ContainerUser allocatedResourcesStatus=14:*ResourceStatus stopSignal=15
ContainerState: waiting=1:ContainerStateWaiting running=2:ContainerStateRunning terminated=3:ContainerStateTerminated
ContainerStateWaiting: reason=1 message=2
ContainerStateRunning: startedAt=1:time
ContainerStateTerminated: exitCode=1:int signal=2:int reason=3 message=4 startedAt=5:time finishedAt=6:time
    containerID=7
VolumeMountStatus: name=1 mountPath=2 readOnly=3:bool recursiveReadOnly=4 volumeStatus=5:VolumeStatus
VolumeStatus: image=1:ImageVolumeStatus
ImageVolumeStatus: imageRef=1
ContainerUser: linux=1:LinuxContainerUser
LinuxContainerUser: uid=1:int gid=2:int supplementalGroups=3:*int
ResourceStatus: name=1 resources=2:*ResourceHealth
ResourceHealth: resourceID=1 health=2 message=6
"""

TABLE = _SPEC + _CONTAINERS + _STATUS

KINDS: dict[tuple[str, str], str] = {("v1", "Pod"): "Pod", ("v1", "PodTemplate"): "PodTemplate"}
"""The message of each kind, by its version."""
