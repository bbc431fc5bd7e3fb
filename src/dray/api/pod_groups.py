"""What connects pods and their PodGroup: which group a pod is of, what the group asks for, which claims it shares."""

from __future__ import annotations

from typing import Final

from dray.api.generated.core import Pod, PodResourceClaim
from dray.api.generated.scheduling import PodGroup, PodGroupResourceClaim
from dray.api.kinds import POD_GROUPS
from dray.api.meta import OwnerReference
from dray.api.references import ObjectName
from dray.api.resource import ResourceClaim, ResourceClaimConsumerReference

API_GROUP: Final = "scheduling.k8s.io"
FINALIZER: Final = "scheduling.k8s.io/podgroup-protection"
"""Keeps a group until none of its pods is left."""
INITIALLY_SCHEDULED: Final = "PodGroupInitiallyScheduled"
RESOURCE: Final = "podgroups"


def group_of(pod: Pod) -> ObjectName | None:
    """The PodGroup that a pod says it is of; None if it is of none. Nobody has said yet that there is such a group."""
    group = pod.spec.scheduling_group
    if group is None or not group.pod_group_name:
        return None
    return ObjectName(pod.metadata.namespace, group.pod_group_name)


def is_gang(group: PodGroup) -> bool:
    """Whether its pods get nodes together or not at all."""
    return group.spec.scheduling_policy.gang is not None


def min_count(group: PodGroup) -> int:
    """How many of its pods must have nodes for any of them to have one."""
    gang = group.spec.scheduling_policy.gang
    return 1 if gang is None else gang.min_count


def leaves_as_a_whole(group: PodGroup) -> bool:
    """Whether all of its pods go if one has to."""
    mode = group.spec.disruption_mode
    return mode is not None and mode.all is not None


def topology_key(group: PodGroup) -> str:
    """The node label that must have one value for all of its pods; empty if they may be anywhere."""
    constraints = group.spec.scheduling_constraints
    return constraints.topology[0].key if constraints is not None and constraints.topology else ""


def shared_entry(group: PodGroup, entry: PodResourceClaim) -> PodGroupResourceClaim | None:
    """The claim of the group that an entry of one of its pods is about: it says the same; None if it is the pod's."""
    for shared in group.spec.resource_claims:
        if (shared.name, shared.resource_claim_name, shared.resource_claim_template_name) == (
            entry.name,
            entry.resource_claim_name,
            entry.resource_claim_template_name,
        ):
            return shared
    return None


def consumer_of(group: PodGroup) -> ResourceClaimConsumerReference:
    """A group as a claim names those who may use it."""
    meta = group.metadata
    return ResourceClaimConsumerReference(api_group=API_GROUP, resource=RESOURCE, name=meta.name, uid=meta.uid)


def owner_reference(group: PodGroup, *, controller: bool | None = None) -> OwnerReference:
    """A group as what is made for it, or for its pods, names it."""
    meta = group.metadata
    version = POD_GROUPS.api_version
    return OwnerReference(api_version=version, kind="PodGroup", name=meta.name, uid=meta.uid, controller=controller)


def is_group(consumer: ResourceClaimConsumerReference) -> bool:
    """Whether a user of a claim is a PodGroup."""
    return consumer.api_group == API_GROUP and consumer.resource == RESOURCE


def is_made_for_group_of(claim: ResourceClaim, pod: Pod) -> bool:
    """Whether a claim was made for the group of a pod. Pods know the name of their group, and not its uid."""
    group = group_of(pod)
    return group is not None and any(
        owner.controller
        and owner.kind == "PodGroup"
        and owner.name == group.name
        and owner.api_version.startswith(f"{API_GROUP}/")
        for owner in claim.metadata.owner_references
    )
