"""Reasons in words, those of kube-scheduler where it has the same reason. The only place where they are made."""

from __future__ import annotations

from dray.allocator.results import DOES_NOT_FIT, SEARCHING, STILL_JUDGING, TIMED_OUT
from dray.api.resource.claim import RESERVED_FOR
from dray.scheduling import reasons
from dray.scheduling.reasons import NodeReason, PodReason
from dray.scheduling.refusal import GroupPreempts, GroupShort, Ineligible, NodesRefuse, Preempts, Refused


def tell(refused: Refused) -> str:
    """Why a pod has no node, in a line."""
    why = refused.why
    message = tell_nodes(why) if isinstance(why, NodesRefuse) else tell_pod(why)
    if refused.group is not None:
        message = f"{tell_group(refused.group)}: {message}"
    match refused.preemption:
        case NodesRefuse() as unhelpful:
            return f"{message} preemption: {tell_nodes(unhelpful)}"
        case Ineligible(reason):
            return f"{message} preemption: not eligible due to {reason}."
    return message


def tell_group(short: GroupShort) -> str:
    """`PodGroup train needs nodes for 8 pods at once, and 5 fit; the next one does not`"""
    have = f"{short.fitting} fit" if not short.placed else f"{short.placed} have one and {short.fitting} more fit"
    where = f" on the nodes with {short.domain[0]}={short.domain[1]}" if short.domain is not None else ""
    return f"PodGroup {short.group} needs nodes for {short.needed} pods at once, and {have}{where}; the next does not"


def tell_preemption(preempts: Preempts | GroupPreempts) -> str:
    """`Preempting ns/low (priority 0) on node a would help.`"""
    victims = [f"{one.name} (priority {one.pod.spec.priority or 0})" for one in preempts.victims]
    if isinstance(preempts, GroupPreempts):
        return f"Preempting {', '.join(victims)} would help the group."
    budgets = f", against {preempts.violations} disruption budget(s)" if preempts.violations else ""
    return f"Preempting {', '.join(victims)} on node {preempts.node} would help{budgets}."


def tell_nodes(why: NodesRefuse) -> str:
    """`0/5 nodes are available: 2 node(s) were unschedulable, 3 Insufficient cpu, 3 Insufficient memory.`"""
    if not why.nodes:
        return "no nodes available to schedule pods"
    parts = ", ".join(sorted(f"{count} {tell_node(reason)}" for reason, count in why.reasons().items()))
    return f"0/{why.nodes} nodes are available: {parts}." if parts else f"0/{why.nodes} nodes are available."


def tell_node(reason: NodeReason) -> str:
    """What one node has against a pod."""
    match reason:
        case reasons.OtherNode():
            return "node(s) didn't match the requested node name"
        case reasons.Unschedulable():
            return "node(s) were unschedulable"
        case reasons.UntoleratedTaint(key, value):
            return f"node(s) had untolerated taint(s) {{{key}: {value}}}" if value else _tainted(key)
        case reasons.NotAffine():
            return "node(s) didn't match Pod's node affinity/selector"
        case reasons.PortsTaken():
            return "node(s) didn't have free ports for the requested pod ports"
        case reasons.TooManyPods():
            return "Too many pods"
        case reasons.Insufficient(resource):
            return f"Insufficient {resource}"
        case reasons.NoCompany():
            return "node(s) didn't match pod affinity rules"
        case reasons.BadCompany():
            return "node(s) didn't match pod anti-affinity rules"
        case reasons.KeptAway():
            return "node(s) didn't satisfy existing pods anti-affinity rules"
        case reasons.Crowded():
            return "node(s) didn't match pod topology spread constraints"
        case reasons.OutsideTopology():
            return "node(s) didn't match pod topology spread constraints (missing required label)"
        case reasons.OutsideDomain():
            return "node(s) were outside the topology domain of the pod group"
        case reasons.PreemptionUnhelpful():
            return "Preemption is not helpful for scheduling"
        case reasons.NoVictims():
            return "No preemption victims found for incoming pod"
        case reasons.VolumeOutOfReach():
            return "node(s) didn't match PersistentVolume's node affinity"
        case reasons.VolumesLacking():
            return "node(s) didn't find available persistent volumes to bind"
        case reasons.VolumeInUse():
            return (
                "node(s) unavailable due to PersistentVolumeClaim with ReadWriteOncePod access mode already in-use by "
                "another pod"
            )
        case reasons.ClaimOutOfReach():
            return "resourceclaim not available on the node"
        case reasons.DevicesKept():
            return "node(s) keep their devices for other pods that wait for them, as important or more"
        case reasons.DevicesLacking():
            return DOES_NOT_FIT
        case reasons.SearchTimedOut(node):
            return f"node {node}: {TIMED_OUT}"
        case reasons.SelectorsRunning():
            return STILL_JUDGING
        case reasons.DevicesBeingSought():
            return SEARCHING
    raise AssertionError(f"no words for {reason}")


def _tainted(key: str) -> str:
    return f"node(s) had untolerated taint(s) {{{key}}}"


def tell_pod(reason: PodReason) -> str:
    """What keeps a pod from every node."""
    if isinstance(reason, reasons.ClaimReason):
        return _tell_claim(reason)
    if isinstance(reason, reasons.GroupReason):
        return _tell_group_reason(reason)
    match reason:
        case reasons.Gated():
            return "Scheduling is blocked due to non-empty scheduling gates"
        case reasons.VolumeClaimMissing(claim):
            return f'persistentvolumeclaim "{claim}" not found'
        case reasons.VolumeClaimDeleted(claim):
            return f'persistentvolumeclaim "{claim}" is being deleted'
        case reasons.VolumeMissing(claim, volume):
            return f'persistentvolumeclaim "{claim}" bound to non-existent persistentvolume "{volume}"'
        case reasons.VolumeClaimsUnbound(claims):
            return f"pod has unbound immediate PersistentVolumeClaims: {', '.join(claims)}"
        case reasons.OtherScheduler(scheduler):
            return f"it is for scheduler {scheduler}, and what that one decides is not known here"
        case reasons.StillDeciding():
            return "it is still being found out which nodes suit the pod"
        case reasons.TooManyTerms(what, count, most):
            return f"the pod has {count} {what}, and at most {most} are looked at; say it with fewer"
        case reasons.TermUnreadable(error):
            return f"the pod's affinity or topology spread constraints cannot be read: {error}"
    raise AssertionError(f"no words for {reason}")


def _tell_group_reason(reason: reasons.GroupReason) -> str:
    match reason:
        case reasons.GroupMissing(group):
            return f'waiting for pod group "{group}", which does not exist'
        case reasons.GroupIncomplete(group, there, needed):
            return f"waiting for more pods of PodGroup {group}: {there} of the {needed} that it needs are there"
        case reasons.GroupInconsistent(group, why):
            return f"PodGroup {group}: {why}"
        case reasons.NoDomain(group, key):
            return f"PodGroup {group}: there is no one value of node label {key} for all of its pods"
    raise AssertionError(f"no words for {reason}")


def _tell_claim(reason: reasons.ClaimReason) -> str:
    match reason:
        case reasons.ClaimNotCreated(entry, template, claim):
            return f"ResourceClaim not created yet: {claim or f'claim {entry} of template {template}'}"
        case reasons.ClaimKeptOut(entry, quota, why):
            return f"the ResourceClaim for {entry} cannot be made: not let in by quota {quota}: {why}"
        case reasons.TemplateMissing(namespace, template):
            return f"there is no ResourceClaimTemplate {namespace}/{template}"
        case reasons.ClaimNotFound(claim):
            return f'resourceclaim "{claim}" not found'
        case reasons.ClaimDeleted(claim):
            return f'resourceclaim "{claim}" is being deleted'
        case reasons.ClaimOfAnother(claim, pod):
            return f'resourceclaim "{claim}" was not created for pod {pod}: pod is not its owner'
        case reasons.ClaimCrowded(claim):
            return f'resourceclaim "{claim}" is in use by {RESERVED_FOR} others, which is the most'
        case reasons.ClaimInFlight(claim):
            return f'resourceclaim "{claim}" is being allocated for another pod'
        case reasons.ClaimBeingJudged():
            return f"{DOES_NOT_FIT}: {STILL_JUDGING}"
        case reasons.ClaimBeingSearched():
            return f"{DOES_NOT_FIT}: {SEARCHING}"
        case reasons.ClaimsTooLarge(count, most):
            return (
                f"the pod's claims have {count} requests and alternatives, and only {most} are looked at; "
                "use fewer claims or alternatives"
            )
        case reasons.ClassMissing(request, device_class):
            return f"{DOES_NOT_FIT}: request {request}: device class {device_class} does not exist"
        case reasons.ClaimTainted(claim, device, key, effect):
            return f'resourceclaim "{claim}" has a device with an untolerated taint: {device} {key}:{effect}'
        case reasons.DeviceUnready(claim, device, missing):
            return f'resourceclaim "{claim}": device {device} is not ready: waiting for {", ".join(missing)}'
        case reasons.DeviceFailed(claim, device, condition, why):
            return f'resourceclaim "{claim}": device {device} could not be made ready: {condition}: {why}'
        case reasons.ClaimsUnjudgeable(error):
            return f"{DOES_NOT_FIT}: {error}"
    raise AssertionError(f"no words for {reason}")
