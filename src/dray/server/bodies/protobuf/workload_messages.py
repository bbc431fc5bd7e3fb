"""The field numbers of what makes pods, and of what scales it (see `messages`)."""

from __future__ import annotations

_APPS = """
Deployment: metadata=1:ObjectMeta spec=2:DeploymentSpec status=3:DeploymentStatus
DeploymentSpec: replicas=1:int selector=2:LabelSelector template=3:PodTemplateSpec strategy=4:DeploymentStrategy
    minReadySeconds=5:int revisionHistoryLimit=6:int paused=7:bool progressDeadlineSeconds=9:int
DeploymentStrategy: type=1 rollingUpdate=2:RollingUpdate
RollingUpdate: maxUnavailable=1:int-or-string maxSurge=2:int-or-string
DeploymentStatus: observedGeneration=1:int replicas=2:int updatedReplicas=3:int availableReplicas=4:int
    unavailableReplicas=5:int conditions=6:*DeploymentCondition readyReplicas=7:int collisionCount=8:int
    terminatingReplicas=9:int
DeploymentCondition: type=1 status=2 reason=4 message=5 lastUpdateTime=6:time lastTransitionTime=7:time
ReplicaSet: metadata=1:ObjectMeta spec=2:ReplicaSetSpec status=3:ReplicaSetStatus
ReplicaSetSpec: replicas=1:int selector=2:LabelSelector template=3:PodTemplateSpec minReadySeconds=4:int
ReplicaSetStatus: replicas=1:int fullyLabeledReplicas=2:int observedGeneration=3:int readyReplicas=4:int
    availableReplicas=5:int conditions=6:*WorkloadCondition terminatingReplicas=7:int
WorkloadCondition: type=1 status=2 lastTransitionTime=3:time reason=4 message=5
ReplicationController: metadata=1:ObjectMeta spec=2:ReplicationControllerSpec status=3:ReplicationControllerStatus
ReplicationControllerSpec: replicas=1:int selector=2:@text template=3:PodTemplateSpec minReadySeconds=4:int
ReplicationControllerStatus: replicas=1:int fullyLabeledReplicas=2:int observedGeneration=3:int readyReplicas=4:int
    availableReplicas=5:int conditions=6:*WorkloadCondition
StatefulSet: metadata=1:ObjectMeta spec=2:StatefulSetSpec status=3:StatefulSetStatus
StatefulSetSpec: replicas=1:int selector=2:LabelSelector template=3:PodTemplateSpec
    volumeClaimTemplates=4:*PersistentVolumeClaim serviceName=5 podManagementPolicy=6
    updateStrategy=7:StatefulSetUpdateStrategy revisionHistoryLimit=8:int minReadySeconds=9:int
    persistentVolumeClaimRetentionPolicy=10:StatefulSetPersistentVolumeClaimRetentionPolicy
    ordinals=11:StatefulSetOrdinals
StatefulSetUpdateStrategy: type=1 rollingUpdate=2:RollingUpdateStatefulSetStrategy
RollingUpdateStatefulSetStrategy: partition=1:int maxUnavailable=2:int-or-string
StatefulSetPersistentVolumeClaimRetentionPolicy: whenDeleted=1 whenScaled=2
StatefulSetOrdinals: start=1:int
StatefulSetStatus: observedGeneration=1:int replicas=2:int readyReplicas=3:int currentReplicas=4:int
    updatedReplicas=5:int currentRevision=6 updateRevision=7 collisionCount=9:int conditions=10:*WorkloadCondition
    availableReplicas=11:int
DaemonSet: metadata=1:ObjectMeta spec=2:DaemonSetSpec status=3:DaemonSetStatus
DaemonSetSpec: selector=1:LabelSelector template=2:PodTemplateSpec updateStrategy=3:DaemonSetUpdateStrategy
    minReadySeconds=4:int revisionHistoryLimit=6:int
DaemonSetUpdateStrategy: type=1 rollingUpdate=2:RollingUpdate
DaemonSetStatus: currentNumberScheduled=1:int numberMisscheduled=2:int desiredNumberScheduled=3:int numberReady=4:int
    observedGeneration=5:int updatedNumberScheduled=6:int numberAvailable=7:int numberUnavailable=8:int
    collisionCount=9:int conditions=10:*WorkloadCondition
ControllerRevision: metadata=1:ObjectMeta data=2:json revision=3:int
"""

_BATCH = """
Job: metadata=1:ObjectMeta spec=2:JobSpec status=3:JobStatus
JobSpec: parallelism=1:int completions=2:int activeDeadlineSeconds=3:int selector=4:LabelSelector manualSelector=5:bool
    template=6:PodTemplateSpec backoffLimit=7:int ttlSecondsAfterFinished=8:int completionMode=9 suspend=10:bool
    podFailurePolicy=11:PodFailurePolicy backoffLimitPerIndex=12:int maxFailedIndexes=13:int podReplacementPolicy=14
    managedBy=15 successPolicy=16:SuccessPolicy scheduling=17:JobSchedulingConfiguration
JobSchedulingConfiguration: schedulingPolicy=1:PodGroupPolicy schedulingConstraints=2:PodGroupConstraints
    disruptionMode=3:PodGroupDisruption resourceClaims=4:*PodGroupClaim
PodGroupPolicy: basic=1:Nothing gang=2:PodGroupGang
PodGroupGang: minCount=1:int
PodGroupConstraints: topology=1:*PodGroupTopology
PodGroupTopology: key=1
PodGroupDisruption: single=1:Nothing all=2:Nothing
PodGroupClaim: name=1 resourceClaimName=2 resourceClaimTemplateName=3
Nothing:
PodFailurePolicy: rules=1:*PodFailurePolicyRule
PodFailurePolicyRule: action=1 onExitCodes=2:PodFailurePolicyOnExitCodesRequirement
    onPodConditions=3:*PodFailurePolicyOnPodConditionsPattern
PodFailurePolicyOnExitCodesRequirement: containerName=1 operator=2 values=3:*int
PodFailurePolicyOnPodConditionsPattern: type=1 status=2
SuccessPolicy: rules=1:*SuccessPolicyRule
SuccessPolicyRule: succeededIndexes=1 succeededCount=2:int
JobStatus: conditions=1:*JobCondition startTime=2:time completionTime=3:time active=4:int succeeded=5:int failed=6:int
    completedIndexes=7 uncountedTerminatedPods=8:UncountedTerminatedPods ready=9:int failedIndexes=10
    terminating=11:int
JobCondition: type=1 status=2 lastProbeTime=3:time lastTransitionTime=4:time reason=5 message=6
UncountedTerminatedPods: succeeded=1:*text failed=2:*text
CronJob: metadata=1:ObjectMeta spec=2:CronJobSpec status=3:CronJobStatus
CronJobSpec: schedule=1 startingDeadlineSeconds=2:int concurrencyPolicy=3 suspend=4:bool jobTemplate=5:JobTemplateSpec
    successfulJobsHistoryLimit=6:int failedJobsHistoryLimit=7:int timeZone=8
JobTemplateSpec: metadata=1:ObjectMeta spec=2:JobSpec
CronJobStatus: active=1:*ObjectReference lastScheduleTime=4:time lastSuccessfulTime=5:time
"""

_SCALING = """
Scale: metadata=1:ObjectMeta spec=2:ScaleSpec status=3:ScaleStatus
ScaleSpec: replicas=1:int
ScaleStatus: replicas=1:int selector=2
HorizontalPodAutoscaler.v1: metadata=1:ObjectMeta spec=2:HorizontalPodAutoscalerSpec.v1
    status=3:HorizontalPodAutoscalerStatus.v1
HorizontalPodAutoscalerSpec.v1: scaleTargetRef=1:CrossVersionObjectReference minReplicas=2:int maxReplicas=3:int
    targetCPUUtilizationPercentage=4:int
HorizontalPodAutoscalerStatus.v1: observedGeneration=1:int lastScaleTime=2:time currentReplicas=3:int
    desiredReplicas=4:int currentCPUUtilizationPercentage=5:int
HorizontalPodAutoscaler: metadata=1:ObjectMeta spec=2:HorizontalPodAutoscalerSpec status=3:HorizontalPodAutoscalerStatus
HorizontalPodAutoscalerSpec: scaleTargetRef=1:CrossVersionObjectReference minReplicas=2:int maxReplicas=3:int
    metrics=4:*MetricSpec behavior=5:HorizontalPodAutoscalerBehavior
CrossVersionObjectReference: kind=1 name=2 apiVersion=3
MetricSpec: type=1 object=2:ObjectMetricSource pods=3:PodsMetricSource resource=4:ResourceMetricSource
    external=5:ExternalMetricSource containerResource=7:ContainerResourceMetricSource
ObjectMetricSource: describedObject=1:CrossVersionObjectReference target=2:MetricTarget metric=3:MetricIdentifier
PodsMetricSource: metric=1:MetricIdentifier target=2:MetricTarget
ResourceMetricSource: name=1 target=2:MetricTarget
ExternalMetricSource: metric=1:MetricIdentifier target=2:MetricTarget
ContainerResourceMetricSource: name=1 target=2:MetricTarget container=3
MetricIdentifier: name=1 selector=2:LabelSelector
MetricTarget: type=1 value=2:quantity averageValue=3:quantity averageUtilization=4:int
HorizontalPodAutoscalerBehavior: scaleUp=1:HPAScalingRules scaleDown=2:HPAScalingRules
HPAScalingRules: selectPolicy=1 policies=2:*HPAScalingPolicy stabilizationWindowSeconds=3:int tolerance=4:quantity
HPAScalingPolicy: type=1 value=2:int periodSeconds=3:int
HorizontalPodAutoscalerStatus: observedGeneration=1:int lastScaleTime=2:time currentReplicas=3:int
    desiredReplicas=4:int currentMetrics=5:*MetricStatus conditions=6:*HorizontalPodAutoscalerCondition
HorizontalPodAutoscalerCondition: type=1 status=2 lastTransitionTime=3:time reason=4 message=5 observedGeneration=6:int
MetricStatus: type=1 object=2:ObjectMetricStatus pods=3:PodsMetricStatus resource=4:ResourceMetricStatus
    external=5:ExternalMetricStatus containerResource=7:ContainerResourceMetricStatus
ObjectMetricStatus: metric=1:MetricIdentifier current=2:MetricValueStatus describedObject=3:CrossVersionObjectReference
PodsMetricStatus: metric=1:MetricIdentifier current=2:MetricValueStatus
ResourceMetricStatus: name=1 current=2:MetricValueStatus
ExternalMetricStatus: metric=1:MetricIdentifier current=2:MetricValueStatus
ContainerResourceMetricStatus: name=1 current=2:MetricValueStatus container=3
MetricValueStatus: value=1:quantity averageValue=2:quantity averageUtilization=3:int
"""

_GROUPS = """
PodGroup: metadata=1:ObjectMeta spec=2:PodGroupSpec status=3:PodGroupStatus
PodGroupSpec: parentCompositePodGroupName=1 workloadRef=2:WorkloadReference schedulingPolicy=3:PodGroupPolicy
    schedulingConstraints=4:PodGroupConstraints resourceClaims=5:*PodGroupClaim disruptionMode=6:PodGroupDisruption
    priorityClassName=7 priority=8:int preemptionPolicy=9
PodGroupStatus: conditions=1:*Condition resourceClaimStatuses=2:*PodGroupClaimStatus
PodGroupClaimStatus: name=1 resourceClaimName=2
WorkloadReference: workloadName=1 templateName=2
Workload: metadata=1:ObjectMeta spec=2:WorkloadSpec
WorkloadSpec: controllerRef=1:WorkloadController podGroupTemplates=2:*PodGroupTemplate
    compositePodGroupTemplates=3:*CompositePodGroupTemplate
WorkloadController: apiGroup=1 kind=2 name=3
PodGroupTemplate: name=1 schedulingPolicy=2:PodGroupPolicy schedulingConstraints=3:PodGroupConstraints
    resourceClaims=4:*PodGroupClaim disruptionMode=5:PodGroupDisruption priorityClassName=6 priority=7:int
    preemptionPolicy=8
CompositePodGroupTemplate: name=1 schedulingPolicy=2:CompositePolicy schedulingConstraints=3:PodGroupConstraints
    disruptionMode=4:PodGroupDisruption priorityClassName=5 priority=6:int preemptionPolicy=7
    podGroupTemplates=8:*PodGroupTemplate compositePodGroupTemplates=9:*CompositePodGroupTemplate
CompositePolicy: basic=1:Nothing gang=2:CompositeGang
CompositeGang: minGroupCount=1:int
"""

TABLE = _APPS + _BATCH + _SCALING + _GROUPS

KINDS: dict[tuple[str, str], str] = {
    ("v1", "ReplicationController"): "ReplicationController",
    **{
        ("apps/v1", kind): kind
        for kind in ("Deployment", "ReplicaSet", "StatefulSet", "DaemonSet", "ControllerRevision")
    },
    **{("batch/v1", kind): kind for kind in ("Job", "CronJob")},
    **{
        (f"scheduling.k8s.io/{version}", kind): kind
        for version in ("v1beta1", "v1alpha3")
        for kind in ("PodGroup", "Workload")
    },
    ("autoscaling/v1", "Scale"): "Scale",
    ("autoscaling/v1", "HorizontalPodAutoscaler"): "HorizontalPodAutoscaler.v1",
    ("autoscaling/v2", "HorizontalPodAutoscaler"): "HorizontalPodAutoscaler",
}
"""The message of each kind, by its version."""
