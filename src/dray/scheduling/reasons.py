"""Why a pod has no node, as values: what one node has against it, and what keeps it from every node.

    Reason
      NodeReason   of a filter about one node; nodes are counted by these (`refusal.NodesRefuse`)
      PodReason    of the pod itself or of its claims: no node was looked at, or none decides

Each says under which name Kubernetes knows the check (`plugin`), and which changes may help (`causes`). Words for
people are made in `text`, and nowhere else.
"""

from __future__ import annotations

from enum import StrEnum
from typing import ClassVar

import msgspec

from dray.scheduling.cause import Cause
from dray.scheduling.plugin import Plugin


class Verdict(StrEnum):
    """What the PodScheduled condition says in a word. Autoscalers add nodes for those that are Unschedulable."""

    UNSCHEDULABLE = "Unschedulable"
    GATED = "SchedulingGated"
    UNSUPPORTED = "Unsupported"
    ERROR = "SchedulerError"
    DEVICES_NOT_READY = "DevicesNotReady"


DEVICE_CAUSES = Cause.DEVICES | Cause.CLAIM | Cause.CLASS


class Reason(msgspec.Struct, frozen=True, cache_hash=True):
    """One thing that keeps a pod from a node, or from all."""

    plugin: ClassVar[Plugin | None] = None
    causes: ClassVar[Cause] = Cause.NOTHING
    """The kinds of change after which it may be otherwise."""


# What one node has against a pod.


class NodeReason(Reason, frozen=True, cache_hash=True):
    """What a filter has against a pod on one node."""


class OtherNode(NodeReason, frozen=True, cache_hash=True):
    """The pod names another node."""

    plugin = Plugin.NODE_NAME
    causes = Cause.NODE


class Unschedulable(NodeReason, frozen=True, cache_hash=True):
    """The node is cordoned."""

    plugin = Plugin.NODE_UNSCHEDULABLE
    causes = Cause.NODE


class UntoleratedTaint(NodeReason, frozen=True, cache_hash=True):
    """The node has a taint that the pod does not tolerate."""

    plugin = Plugin.TAINT_TOLERATION
    causes = Cause.NODE

    key: str
    value: str = ""


class NotAffine(NodeReason, frozen=True, cache_hash=True):
    """The node lacks labels that the pod's node selector or required node affinity wants."""

    plugin = Plugin.NODE_AFFINITY
    causes = Cause.NODE


class PortsTaken(NodeReason, frozen=True, cache_hash=True):
    """A pod on the node has one of the pod's host ports."""

    plugin = Plugin.NODE_PORTS
    causes = Cause.NODE | Cause.POD_GONE


class TooManyPods(NodeReason, frozen=True, cache_hash=True):
    """The node has as many pods as it may have."""

    plugin = Plugin.NODE_RESOURCES_FIT
    causes = Cause.NODE | Cause.POD_GONE


class Insufficient(NodeReason, frozen=True, cache_hash=True):
    """Too little is left of a resource."""

    plugin = Plugin.NODE_RESOURCES_FIT
    causes = Cause.NODE | Cause.POD_GONE

    resource: str


class InsufficientExtended(Insufficient, frozen=True, cache_hash=True):
    """Too little is left of a resource that a device class could stand for."""

    causes = Cause.NODE | Cause.POD_GONE | Cause.CLASS


class NoCompany(NodeReason, frozen=True, cache_hash=True):
    """The pods whose company the pod requires are in other domains, or nowhere."""

    plugin = Plugin.INTER_POD_AFFINITY
    causes = Cause.NODE | Cause.POD_CAME


class BadCompany(NodeReason, frozen=True, cache_hash=True):
    """Pods that the pod avoids are in the node's domain."""

    plugin = Plugin.INTER_POD_AFFINITY
    causes = Cause.NODE | Cause.POD_GONE


class KeptAway(NodeReason, frozen=True, cache_hash=True):
    """Pods in the node's domain avoid pods such as this one."""

    plugin = Plugin.INTER_POD_AFFINITY
    causes = Cause.NODE | Cause.POD_GONE


class Crowded(NodeReason, frozen=True, cache_hash=True):
    """The node's domain would have too many of the pods that are to be spread."""

    plugin = Plugin.POD_TOPOLOGY_SPREAD
    causes = Cause.NODE | Cause.POD_GONE | Cause.POD_CAME


class OutsideTopology(NodeReason, frozen=True, cache_hash=True):
    """The node lacks a label over whose values the pods are to be spread."""

    plugin = Plugin.POD_TOPOLOGY_SPREAD
    causes = Cause.NODE


class VolumeOutOfReach(NodeReason, frozen=True, cache_hash=True):
    """A volume of the pod cannot be used on the node."""

    plugin = Plugin.VOLUME_BINDING
    causes = Cause.NODE | Cause.VOLUME


class VolumesLacking(NodeReason, frozen=True, cache_hash=True):
    """For a claim that waits for a node there is no volume here, and none is made here."""

    plugin = Plugin.VOLUME_BINDING
    causes = Cause.NODE | Cause.VOLUME


class VolumeInUse(NodeReason, frozen=True, cache_hash=True):
    """A claim of the pod is for one pod at a time, and another one has it, on whatever node."""

    plugin = Plugin.VOLUME_RESTRICTIONS
    causes = Cause.POD_GONE | Cause.VOLUME


class ClaimOutOfReach(NodeReason, frozen=True, cache_hash=True):
    """Devices that a claim of the pod has already cannot be used on the node."""

    plugin = Plugin.DYNAMIC_RESOURCES
    causes = DEVICE_CAUSES | Cause.NODE | Cause.POD_GONE


class DevicesLacking(NodeReason, frozen=True, cache_hash=True):
    """The pending claims do not fit on the node."""

    plugin = Plugin.DYNAMIC_RESOURCES
    causes = DEVICE_CAUSES | Cause.NODE | Cause.POD_GONE


class DevicesKept(DevicesLacking, frozen=True, cache_hash=True):
    """Pods on the node go for somebody more important, who gets devices there first."""


class SearchTimedOut(NodeReason, frozen=True, cache_hash=True):
    """Whether the claims fit on the node was not found out in time (4381-108)."""

    plugin = Plugin.DYNAMIC_RESOURCES
    causes = DEVICE_CAUSES | Cause.NODE | Cause.POD_GONE | Cause.SELECTORS

    node: str


class SelectorsRunning(NodeReason, frozen=True, cache_hash=True):
    """Selectors of the pod's claims are still being evaluated on devices of the node."""

    plugin = Plugin.DYNAMIC_RESOURCES
    causes = DEVICE_CAUSES | Cause.SELECTORS


class DevicesBeingSought(NodeReason, frozen=True, cache_hash=True):
    """Whether the claims fit on the node takes longer to find out than a turn."""

    plugin = Plugin.DYNAMIC_RESOURCES
    causes = DEVICE_CAUSES | Cause.SELECTORS


class OutsideDomain(NodeReason, frozen=True, cache_hash=True):
    """The node is not in the domain in which the pods of the group were to be together."""

    plugin = Plugin.TOPOLOGY_PLACEMENT
    causes = Cause.NODE


class PreemptionUnhelpful(NodeReason, frozen=True, cache_hash=True):
    """What the node has against the pod does not change if others go."""

    causes = Cause.NODE


class NoVictims(NodeReason, frozen=True, cache_hash=True):
    """Nobody of lower priority on the node takes enough of what the pod needs."""

    causes = Cause.NODE | Cause.POD_CAME


# What keeps a pod from every node.


class PodReason(Reason, frozen=True, cache_hash=True):
    """What keeps a pod from every node."""

    verdict: ClassVar[Verdict] = Verdict.UNSCHEDULABLE
    passes_soon: ClassVar[bool] = False
    """True if the pod only waits for something that is on its way; nobody need be told at once."""
    needs_more_turns: ClassVar[bool] = False
    """True if the decision is not finished, only because it takes long."""


class VolumeReason(PodReason, frozen=True, cache_hash=True):
    """A volume of the pod cannot be used, on any node."""

    plugin = Plugin.VOLUME_BINDING
    causes = Cause.VOLUME


class VolumeClaimMissing(VolumeReason, frozen=True, cache_hash=True):
    """There is no PersistentVolumeClaim of the name that the pod says."""

    claim: str


class VolumeClaimDeleted(VolumeReason, frozen=True, cache_hash=True):
    """The PersistentVolumeClaim is being deleted."""

    claim: str


class VolumeMissing(VolumeReason, frozen=True, cache_hash=True):
    """The PersistentVolumeClaim is bound to a volume that is not there."""

    claim: str
    volume: str


class VolumeClaimsUnbound(VolumeReason, frozen=True, cache_hash=True):
    """Claims that do not wait for a node have no volume yet, or have just got one."""

    claims: tuple[str, ...]


class OtherScheduler(PodReason, frozen=True, cache_hash=True):
    """The pod names a scheduler of which nobody here knows how it decides."""

    verdict = Verdict.UNSUPPORTED

    scheduler: str


class TermUnreadable(PodReason, frozen=True, cache_hash=True):
    """A label selector in the pod's affinities or spread constraints cannot be read."""

    verdict = Verdict.ERROR

    error: str


class TooManyTerms(PodReason, frozen=True, cache_hash=True):
    """The pod says more about nodes or other pods than can be looked at while others wait."""

    verdict = Verdict.UNSUPPORTED

    what: str
    count: int
    most: int


class StillDeciding(PodReason, frozen=True, cache_hash=True):
    """Which nodes suit the pod takes longer to find out than a turn."""

    causes = Cause.SELECTORS | Cause.NODE
    passes_soon = True
    needs_more_turns = True


class Gated(PodReason, frozen=True, cache_hash=True):
    """The pod has scheduling gates."""

    plugin = Plugin.SCHEDULING_GATES
    verdict = Verdict.GATED


class GroupReason(PodReason, frozen=True, cache_hash=True):
    """The pods of a PodGroup cannot be decided on together, on any node."""

    plugin = Plugin.GANG_SCHEDULING
    causes = Cause.GROUP

    group: str


class GroupMissing(GroupReason, frozen=True, cache_hash=True):
    """The PodGroup that the pod is of is not there."""

    passes_soon = True


class GroupIncomplete(GroupReason, frozen=True, cache_hash=True):
    """Fewer pods of the group are there than it needs."""

    passes_soon = True

    there: int
    needed: int


class GroupInconsistent(GroupReason, frozen=True, cache_hash=True):
    """The pods of the group do not go together."""

    verdict = Verdict.ERROR
    causes = Cause.GROUP | Cause.POD_GONE

    why: str


class NoDomain(GroupReason, frozen=True, cache_hash=True):
    """No node is in a domain in which the pods of the group could be together, or some are in several already."""

    plugin = Plugin.TOPOLOGY_PLACEMENT
    causes = Cause.GROUP | Cause.NODE | Cause.POD_GONE

    key: str


class ClaimReason(PodReason, frozen=True, cache_hash=True):
    """A claim of the pod cannot be used by it, on any node (4381-111)."""

    plugin = Plugin.DYNAMIC_RESOURCES
    causes = Cause.CLAIM


class ClaimNotCreated(ClaimReason, frozen=True, cache_hash=True):
    """A claim is still to be made from a template: for an entry of the pod, or again because it is gone."""

    passes_soon = True

    entry: str
    template: str
    claim: str = ""
    """The name of the one that is gone."""


class ClaimKeptOut(ClaimReason, frozen=True, cache_hash=True):
    """A claim is to be made from a template, and a quota does not let it in."""

    entry: str
    quota: str
    why: str


class TemplateMissing(ClaimReason, frozen=True, cache_hash=True):
    """A claim is to be made from a template that is not there."""

    namespace: str
    template: str


class ClaimNotFound(ClaimReason, frozen=True, cache_hash=True):
    """There is no claim of the name that the pod says."""

    claim: str


class ClaimDeleted(ClaimReason, frozen=True, cache_hash=True):
    """The claim is being deleted."""

    claim: str


class ClaimOfAnother(ClaimReason, frozen=True, cache_hash=True):
    """The claim was made from a template, but not for this pod (4381-135)."""

    claim: str
    pod: str


class ClaimCrowded(ClaimReason, frozen=True, cache_hash=True):
    """As many use the claim as may."""

    claim: str


class ClaimInFlight(ClaimReason, frozen=True, cache_hash=True):
    """Devices for the claim were decided on for another pod, and are being stored."""

    passes_soon = True

    claim: str


class ClaimBeingJudged(ClaimReason, frozen=True, cache_hash=True):
    """Selectors of the pod's claims take long to evaluate; until that is done, no node fits."""

    causes = DEVICE_CAUSES | Cause.NODE | Cause.POD_GONE | Cause.SELECTORS
    passes_soon = True
    needs_more_turns = True


class ClaimBeingSearched(ClaimReason, frozen=True, cache_hash=True):
    """To find devices for the pod's claims takes longer than a turn; until that is done, no node fits."""

    causes = DEVICE_CAUSES | Cause.NODE | Cause.POD_GONE | Cause.SELECTORS
    passes_soon = True
    needs_more_turns = True


class ClaimsTooLarge(ClaimReason, frozen=True, cache_hash=True):
    """The pod's claims ask for more than can be looked at while others wait."""

    causes = Cause.CLAIM

    count: int
    most: int


class ClassMissing(ClaimReason, frozen=True, cache_hash=True):
    """A request names a device class that is not there."""

    causes = Cause.CLASS | Cause.CLAIM

    request: str
    device_class: str


class ClaimTainted(ClaimReason, frozen=True, cache_hash=True):
    """A device of the claim has a taint that the claim does not tolerate: no new pod may use it (5055-54)."""

    causes = DEVICE_CAUSES

    claim: str
    device: str
    key: str
    effect: str


class DeviceUnready(ClaimReason, frozen=True, cache_hash=True):
    """A device of the claim must be made ready by its driver first."""

    verdict = Verdict.DEVICES_NOT_READY

    claim: str
    device: str
    missing: tuple[str, ...]
    """The conditions that are not true yet."""


class DeviceFailed(ClaimReason, frozen=True, cache_hash=True):
    """The driver of a device says that it cannot be made ready."""

    verdict = Verdict.DEVICES_NOT_READY

    claim: str
    device: str
    condition: str
    why: str


class ClaimsUnjudgeable(ClaimReason, frozen=True, cache_hash=True):
    """Something is wrong with a claim or class, such as a selector that fails on a device (SVS-51).

    Not "Unschedulable": more nodes do not help, and autoscalers must not think so.
    """

    causes = DEVICE_CAUSES | Cause.ERROR
    verdict = Verdict.ERROR

    error: str
