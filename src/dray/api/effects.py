"""What storing an object of a kind brings about here: it acts, it is data that others read, or it does nothing.

Nothing is accepted and ignored in silence: whoever writes an object of a kind that does nothing is told so in a
`Warning`. `docs/kinds.md` is made from this table.
"""

from __future__ import annotations

from enum import Enum
from typing import Final, NamedTuple

from dray.api.registry import Kind


class Effect(Enum):
    """What comes of an object."""

    ACTS = "acts"
    DATA = "data"
    NOTHING = "does nothing"


class KindEffect(NamedTuple):
    """The effect of a kind, and what is done, or not done, with its objects."""

    effect: Effect
    text: str


def _acts(text: str) -> KindEffect:
    return KindEffect(Effect.ACTS, text)


def _data(text: str) -> KindEffect:
    return KindEffect(Effect.DATA, text)


def _nothing(text: str) -> KindEffect:
    return KindEffect(Effect.NOTHING, text)


_NO_STORAGE: Final = _nothing("there is no storage here; volumes only pretend")
_NO_NETWORK: Final = _nothing("there is no network between pods here")

EFFECTS: Final[dict[str, KindEffect]] = {
    "bindings": _acts("gives a pod its node"),
    "componentstatuses": _data("an empty list, as in Kubernetes today"),
    "configmaps": _data("read by whoever may"),
    "endpoints": _data("where a Service leads; kept for those with a selector, and for `kubernetes` in `default`"),
    "events": _acts("kept for an hour"),
    "limitranges": _acts("gives pods its defaults and holds pods and volume claims to its limits"),
    "namespaces": _acts("holds objects; deleting it deletes them"),
    "nodes": _acts("pods are scheduled to it; its taints evict"),
    "persistentvolumeclaims": _acts(
        "decides where its pods may go; bound to a volume, on `dray up` to one that only pretends"
    ),
    "persistentvolumes": _acts("its node affinity decides where pods may go; bound to claims"),
    "pods": _acts("scheduled, and run by `dray node` or simulated"),
    "podtemplates": _data("read by whoever may"),
    "replicationcontrollers": _acts("keeps a number of pods"),
    "resourcequotas": _acts("counted and enforced when objects are created or ask for more"),
    "secrets": _data("read by whoever may"),
    "serviceaccounts": _acts("an identity, with tokens on request"),
    "services": _nothing("it has an address and ports, but nothing is routed to its pods"),
    "apiservices.apiregistration.k8s.io": _nothing("requests are not passed on to other servers"),
    "controllerrevisions.apps": _data("history that controllers of workloads keep"),
    "daemonsets.apps": _acts("keeps a pod on every node that it is for"),
    "deployments.apps": _acts("rolls out ReplicaSets"),
    "replicasets.apps": _acts("keeps a number of pods"),
    "statefulsets.apps": _acts("keeps numbered pods, and their volume claims"),
    "events.events.k8s.io": _acts("the other face of core events"),
    "selfsubjectreviews.authentication.k8s.io": _acts("answers who asks"),
    "tokenreviews.authentication.k8s.io": _acts("answers whose token it is"),
    "localsubjectaccessreviews.authorization.k8s.io": _acts("answers who may do what"),
    "selfsubjectaccessreviews.authorization.k8s.io": _acts("answers what the caller may do"),
    "selfsubjectrulesreviews.authorization.k8s.io": _acts("answers what the caller may do"),
    "subjectaccessreviews.authorization.k8s.io": _acts("answers who may do what"),
    "horizontalpodautoscalers.autoscaling": _nothing("nobody measures pods, so nothing is scaled"),
    "cronjobs.batch": _acts("makes jobs at the times that it says"),
    "jobs.batch": _acts("runs pods until they have succeeded often enough"),
    "certificatesigningrequests.certificates.k8s.io": _acts("signed for clients and nodes"),
    "clustertrustbundles.certificates.k8s.io": _nothing("no volume is made from it"),
    "podcertificaterequests.certificates.k8s.io": _nothing("nobody signs it"),
    "ingressclasses.networking.k8s.io": _NO_NETWORK,
    "ingresses.networking.k8s.io": _NO_NETWORK,
    "ipaddresses.networking.k8s.io": _NO_NETWORK,
    "networkpolicies.networking.k8s.io": _NO_NETWORK,
    "servicecidrs.networking.k8s.io": _NO_NETWORK,
    "poddisruptionbudgets.policy": _acts("holds up evictions"),
    "clusterrolebindings.rbac.authorization.k8s.io": _acts("gives rights"),
    "clusterroles.rbac.authorization.k8s.io": _acts("gives rights, where it is bound"),
    "rolebindings.rbac.authorization.k8s.io": _acts("gives rights"),
    "roles.rbac.authorization.k8s.io": _acts("gives rights, where it is bound"),
    "csidrivers.storage.k8s.io": _NO_STORAGE,
    "csinodes.storage.k8s.io": _NO_STORAGE,
    "csistoragecapacities.storage.k8s.io": _NO_STORAGE,
    "storageclasses.storage.k8s.io": _acts("says whether volumes are bound at once or for the pod's node"),
    "volumeattachments.storage.k8s.io": _NO_STORAGE,
    "volumeattributesclasses.storage.k8s.io": _NO_STORAGE,
    "mutatingadmissionpolicies.admissionregistration.k8s.io": _acts("changes what is written, where it is bound"),
    "mutatingadmissionpolicybindings.admissionregistration.k8s.io": _acts("has a policy asked"),
    "mutatingwebhookconfigurations.admissionregistration.k8s.io": _acts("asks others to change or refuse requests"),
    "validatingadmissionpolicies.admissionregistration.k8s.io": _acts("refuses requests, where it is bound"),
    "validatingadmissionpolicybindings.admissionregistration.k8s.io": _acts("has a policy asked, and acted upon"),
    "validatingwebhookconfigurations.admissionregistration.k8s.io": _acts("asks others to refuse requests"),
    "customresourcedefinitions.apiextensions.k8s.io": _acts("its custom resources are served"),
    "podgroups.scheduling.k8s.io": _acts("its pods are scheduled together, and share its claims"),
    "priorityclasses.scheduling.k8s.io": _acts("gives pods their priority"),
    "workloads.scheduling.k8s.io": _data("templates from which controllers make PodGroups"),
    "leases.coordination.k8s.io": _acts("signs of life of nodes, and who leads"),
    "runtimeclasses.node.k8s.io": _acts(
        "its overhead and its choice of nodes are applied to pods; which handler runs them is the node's affair"
    ),
    "endpointslices.discovery.k8s.io": _data(
        "where a Service leads; kept for those with a selector, and for `kubernetes` in `default`"
    ),
    "deviceclasses.resource.k8s.io": _acts("devices that claims ask for"),
    "devicetaintrules.resource.k8s.io": _acts("taints devices, and evicts"),
    "resourceclaims.resource.k8s.io": _acts("gets devices"),
    "resourceclaimtemplates.resource.k8s.io": _acts("claims are made from it for pods"),
    "resourceslices.resource.k8s.io": _acts("publishes devices"),
    "resourcepoolstatusrequests.resource.k8s.io": _acts("says how many devices of a driver's pools are left"),
    "flowschemas.flowcontrol.apiserver.k8s.io": _nothing("shares are given per user, not by it"),
    "prioritylevelconfigurations.flowcontrol.apiserver.k8s.io": _nothing("shares are given per user, not by it"),
    "storageversionmigrations.storagemigration.k8s.io": _nothing("objects are always stored in one version"),
    "resourceslicepatches.resource.k8s.io": _acts("sets attributes of devices"),
    "resourceslicepatches.dray.dev": _acts("the other face of resourceslicepatches.resource.k8s.io"),
    "devicetaintrules.dray.dev": _acts("the other face of devicetaintrules.resource.k8s.io"),
    "managedclusters.cluster.open-cluster-management.io": _acts("a cluster of the fleet; its taints move placements"),
    "managedclustersets.cluster.open-cluster-management.io": _acts("groups clusters"),
    "managedclustersetbindings.cluster.open-cluster-management.io": _acts("lets a namespace use a set"),
    "placements.cluster.open-cluster-management.io": _acts("chooses clusters"),
    "placementdecisions.cluster.open-cluster-management.io": _acts("the clusters that were chosen"),
    "addonplacementscores.cluster.open-cluster-management.io": _acts("scores that placements can go by"),
}
"""By the resource's name. A kind that learns to act gets another line here, and its page changes with it."""


_OF_OTHERS = _data("of whoever has defined it")


def effect_of(kind: Kind) -> KindEffect:
    """What comes of objects of a kind. Kinds that are not in the table belong to somebody else, who acts on them."""
    return EFFECTS.get(kind.resource, _OF_OTHERS)
