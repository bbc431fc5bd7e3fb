"""The published field numbers of the kinds that typed clients write in protobuf.

A message is a line of `name=number`, with a type after a colon where the field is no plain text:

    int, bool, double, bytes, time, microtime, quantity, json (JSON inside bytes), int-or-string, or a message by name;
    `*` before the type: a list; `@`: a map from text; `+`: a message whose fields JSON has one level higher.
"""

from __future__ import annotations

import msgspec

from dray.server.bodies.protobuf import (
    admission_messages,
    definition_messages,
    network_messages,
    node_messages,
    pod_messages,
    resource_messages,
    volume_messages,
    workload_messages,
)

SCALARS = frozenset(
    ("text", "int", "bool", "double", "bytes", "time", "microtime", "quantity", "json", "int-or-string", "texts")
)


class Field(msgspec.Struct, frozen=True):
    """One field: its JSON name, the type of its values, and its form (`*` a list, `@` a map, `+` spread out)."""

    name: str
    type: str
    many: str = ""


Message = dict[int, Field]

ONE_OF = frozenset(("SchemaOrList", "SchemaOrBool", "SchemaOrTexts"))
"""Messages that stand for whichever of their fields is set, the last one if several are."""

_META = """
ObjectMeta: name=1 generateName=2 namespace=3 selfLink=4 uid=5 resourceVersion=6 generation=7:int
    creationTimestamp=8:time deletionTimestamp=9:time deletionGracePeriodSeconds=10:int labels=11:@text
    annotations=12:@text ownerReferences=13:*OwnerReference finalizers=14:*text managedFields=17:*ManagedFieldsEntry
OwnerReference: kind=1 name=3 uid=4 apiVersion=5 controller=6:bool blockOwnerDeletion=7:bool
ManagedFieldsEntry: manager=1 operation=2 apiVersion=3 time=4:time fieldsType=6 fieldsV1=7:json subresource=8
LabelSelector: matchLabels=1:@text matchExpressions=2:*LabelSelectorRequirement
LabelSelectorRequirement: key=1 operator=2 values=3:*text
FieldSelectorRequirement: key=1 operator=2 values=3:*text
DeleteOptions: gracePeriodSeconds=1:int preconditions=2:Preconditions orphanDependents=3:bool propagationPolicy=4
    dryRun=5:*text ignoreStoreReadErrorWithClusterBreakingPotential=6:bool
Preconditions: uid=1 resourceVersion=2
Condition: type=1 status=2 observedGeneration=3:int lastTransitionTime=4:time reason=5 message=6
"""

_AUTHORIZATION = """
SelfSubjectAccessReview: metadata=1:ObjectMeta spec=2:SelfSubjectAccessReviewSpec
SelfSubjectAccessReviewSpec: resourceAttributes=1:ResourceAttributes nonResourceAttributes=2:NonResourceAttributes
SubjectAccessReview: metadata=1:ObjectMeta spec=2:SubjectAccessReviewSpec
LocalSubjectAccessReview: metadata=1:ObjectMeta spec=2:SubjectAccessReviewSpec
SubjectAccessReviewSpec: resourceAttributes=1:ResourceAttributes nonResourceAttributes=2:NonResourceAttributes user=3
    groups=4:*text extra=5:@texts uid=6
ResourceAttributes: namespace=1 verb=2 group=3 version=4 resource=5 subresource=6 name=7
    fieldSelector=8:FieldSelectorAttributes labelSelector=9:LabelSelectorAttributes
FieldSelectorAttributes: rawSelector=1 requirements=2:*FieldSelectorRequirement
LabelSelectorAttributes: rawSelector=1 requirements=2:*LabelSelectorRequirement
NonResourceAttributes: path=1 verb=2
SelfSubjectRulesReview: metadata=1:ObjectMeta spec=2:SelfSubjectRulesReviewSpec
SelfSubjectRulesReviewSpec: namespace=1
"""

_AUTHENTICATION = """
SelfSubjectReview: metadata=1:ObjectMeta
TokenReview: metadata=1:ObjectMeta spec=2:TokenReviewSpec
TokenReviewSpec: token=1 audiences=2:*text
TokenRequest: metadata=1:ObjectMeta spec=2:TokenRequestSpec
TokenRequestSpec: audiences=1:*text boundObjectRef=3:BoundObjectReference expirationSeconds=4:int
    attestations=5:@texts
BoundObjectReference: kind=1 apiVersion=2 name=3 uid=4
"""

_CORE = """
Namespace: metadata=1:ObjectMeta spec=2:NamespaceSpec status=3:NamespaceStatus
NamespaceSpec: finalizers=1:*text
NamespaceStatus: phase=1 conditions=2:*NamespaceCondition
NamespaceCondition: type=1 status=2 lastTransitionTime=4:time reason=5 message=6
ConfigMap: metadata=1:ObjectMeta data=2:@text binaryData=3:@bytes immutable=4:bool
Secret: metadata=1:ObjectMeta data=2:@bytes type=3 stringData=4:@text immutable=5:bool
ServiceAccount: metadata=1:ObjectMeta secrets=2:*ObjectReference imagePullSecrets=3:*LocalObjectReference
    automountServiceAccountToken=4:bool
ObjectReference: kind=1 namespace=2 name=3 uid=4 apiVersion=5 resourceVersion=6 fieldPath=7
LocalObjectReference: name=1
ResourceQuota: metadata=1:ObjectMeta spec=2:ResourceQuotaSpec status=3:ResourceQuotaStatus
ResourceQuotaSpec: hard=1:@quantity scopes=2:*text scopeSelector=3:ScopeSelector
ResourceQuotaStatus: hard=1:@quantity used=2:@quantity
ScopeSelector: matchExpressions=1:*ScopedResourceSelectorRequirement
ScopedResourceSelectorRequirement: scopeName=1 operator=2 values=3:*text
LimitRange: metadata=1:ObjectMeta spec=2:LimitRangeSpec
LimitRangeSpec: limits=1:*LimitRangeItem
LimitRangeItem: type=1 max=2:@quantity min=3:@quantity default=4:@quantity defaultRequest=5:@quantity
    maxLimitRequestRatio=6:@quantity
Binding: metadata=1:ObjectMeta target=2:ObjectReference
Event: metadata=1:ObjectMeta involvedObject=2:ObjectReference reason=3 message=4 source=5:EventSource
    firstTimestamp=6:time lastTimestamp=7:time count=8:int type=9 eventTime=10:microtime series=11:EventSeries action=12
    related=13:ObjectReference reportingComponent=14 reportingInstance=15
EventSource: component=1 host=2
EventSeries: count=1:int lastObservedTime=2:microtime
"""

_OTHERS = """
Role: metadata=1:ObjectMeta rules=2:*PolicyRule
ClusterRole: metadata=1:ObjectMeta rules=2:*PolicyRule aggregationRule=3:AggregationRule
RoleBinding: metadata=1:ObjectMeta subjects=2:*Subject roleRef=3:RoleRef
ClusterRoleBinding: metadata=1:ObjectMeta subjects=2:*Subject roleRef=3:RoleRef
PolicyRule: verbs=1:*text apiGroups=2:*text resources=3:*text resourceNames=4:*text nonResourceURLs=5:*text
AggregationRule: clusterRoleSelectors=1:*LabelSelector
RoleRef: apiGroup=1 kind=2 name=3
Subject: kind=1 apiGroup=2 name=3 namespace=4
Eviction: metadata=1:ObjectMeta deleteOptions=2:DeleteOptions
PodDisruptionBudget: metadata=1:ObjectMeta spec=2:PodDisruptionBudgetSpec status=3:PodDisruptionBudgetStatus
PodDisruptionBudgetSpec: minAvailable=1:int-or-string selector=2:LabelSelector maxUnavailable=3:int-or-string
    unhealthyPodEvictionPolicy=4
PodDisruptionBudgetStatus: observedGeneration=1:int disruptedPods=2:@time disruptionsAllowed=3:int currentHealthy=4:int
    desiredHealthy=5:int expectedPods=6:int conditions=7:*Condition
PriorityClass: metadata=1:ObjectMeta value=2:int globalDefault=3:bool description=4 preemptionPolicy=5
Lease: metadata=1:ObjectMeta spec=2:LeaseSpec
LeaseSpec: holderIdentity=1 leaseDurationSeconds=2:int acquireTime=3:microtime renewTime=4:microtime
    leaseTransitions=5:int strategy=6 preferredHolder=7
NewEvent: metadata=1:ObjectMeta eventTime=2:microtime series=3:EventSeries reportingController=4 reportingInstance=5
    action=6 reason=7 regarding=8:ObjectReference related=9:ObjectReference note=10 type=11
    deprecatedSource=12:EventSource deprecatedFirstTimestamp=13:time deprecatedLastTimestamp=14:time
    deprecatedCount=15:int
RuntimeClass: metadata=1:ObjectMeta handler=2 overhead=3:Overhead scheduling=4:Scheduling
Overhead: podFixed=1:@quantity
Scheduling: nodeSelector=1:@text tolerations=2:*Toleration
CertificateSigningRequest: metadata=1:ObjectMeta spec=2:CertificateSigningRequestSpec
    status=3:CertificateSigningRequestStatus
CertificateSigningRequestSpec: request=1:bytes username=2 uid=3 groups=4:*text usages=5:*text extra=6:@texts
    signerName=7 expirationSeconds=8:int
CertificateSigningRequestStatus: conditions=1:*CertificateSigningRequestCondition certificate=2:bytes
CertificateSigningRequestCondition: type=1 reason=2 message=3 lastUpdateTime=4:time lastTransitionTime=5:time status=6
ClusterTrustBundle: metadata=1:ObjectMeta spec=2:ClusterTrustBundleSpec
ClusterTrustBundleSpec: signerName=1 trustBundle=2
"""


def _parse(text: str) -> dict[str, Message]:
    messages: dict[str, Message] = {}
    current: Message = {}
    for word in text.split():
        if word.endswith(":"):
            current = messages.setdefault(word[:-1], {})
            continue
        name, _, rest = word.partition("=")
        number, _, kind = rest.partition(":")
        many = kind[:1] if kind[:1] in "*@+" else ""
        current[int(number)] = Field(name, kind.lstrip("*@+") or "text", many)
    return messages


_PARTS = (
    definition_messages,
    pod_messages,
    volume_messages,
    workload_messages,
    network_messages,
    node_messages,
    resource_messages,
    admission_messages,
)
_TABLES = (_META, _AUTHORIZATION, _AUTHENTICATION, _CORE, _OTHERS, *(part.TABLE for part in _PARTS))
MESSAGES = _parse("".join(_TABLES))

_KINDS_OF_GROUP = {
    "v1": (
        "Namespace",
        "ConfigMap",
        "Secret",
        "ServiceAccount",
        "ResourceQuota",
        "LimitRange",
        "Binding",
        "Event",
    ),
    "authorization.k8s.io/v1": (
        "SelfSubjectAccessReview",
        "SubjectAccessReview",
        "LocalSubjectAccessReview",
        "SelfSubjectRulesReview",
    ),
    "authentication.k8s.io/v1": ("SelfSubjectReview", "TokenReview", "TokenRequest"),
    "rbac.authorization.k8s.io/v1": ("Role", "ClusterRole", "RoleBinding", "ClusterRoleBinding"),
    "policy/v1": ("Eviction", "PodDisruptionBudget"),
    "scheduling.k8s.io/v1": ("PriorityClass",),
    "coordination.k8s.io/v1": ("Lease",),
    "node.k8s.io/v1": ("RuntimeClass",),
    "certificates.k8s.io/v1": ("CertificateSigningRequest", "ClusterTrustBundle"),
}
KINDS = {(group, kind): MESSAGES[kind] for group, kinds in _KINDS_OF_GROUP.items() for kind in kinds}
KINDS["events.k8s.io/v1", "Event"] = MESSAGES["NewEvent"]
KINDS |= {kind: MESSAGES[name] for part in _PARTS for kind, name in part.KINDS.items()}
