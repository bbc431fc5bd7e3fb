"""What connects pods and claims: which claims a pod's status names, for whom a claim was made, who may use it.

And the claim that is made for an entry of a pod from a template.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from dray.api.generated.core import Pod, PodResourceClaim, PodResourceClaimStatus
from dray.api.generated.scheduling import PodGroup, PodGroupResourceClaim
from dray.api.meta import ObjectMeta, OwnerReference
from dray.api.pod_groups import consumer_of, group_of, is_group, is_made_for_group_of, owner_reference, shared_entry
from dray.api.references import is_owned_by
from dray.api.resource import ResourceClaim, ResourceClaimConsumerReference, ResourceClaimTemplate

POD_CLAIM_NAME: Final = "resource.kubernetes.io/pod-claim-name"
LONGEST_BASE: Final = 57
"""Leaves room for the five characters that the server adds in a name of 63 (SVS-59)."""

FindClaim = Callable[[str], ResourceClaim | None]
"""A claim of the pod's namespace by name."""


def uses_devices(pod: Pod) -> bool:
    """Whether a pod has devices of its own, or shares some."""
    return bool(pod.spec.resource_claims) or pod.status.extended_resource_claim_status is not None


def is_made_for(claim: ResourceClaim, pod: Pod) -> bool:
    """Whether a claim was made from a template for a pod, or for the PodGroup that it is of."""
    return is_owned_by(claim, pod) or is_made_for_group_of(claim, pod)


def owning_pod(claim: ResourceClaim) -> OwnerReference | None:
    """The pod that a claim was made for, if it was."""
    for owner in claim.metadata.owner_references:
        if owner.controller and owner.kind == "Pod":
            return owner
    return None


def is_reserved_for(claim: ResourceClaim, pod: Pod) -> bool:
    """Whether a pod, or the PodGroup that it is of, is among those that may use a claim."""
    group = group_of(pod)
    return any(
        user.uid == pod.metadata.uid or (group is not None and user.name == group.name and is_group(user))
        for user in claim.status.reserved_for
    )


def consumer(pod: Pod) -> ResourceClaimConsumerReference:
    """A pod as a claim names those who may use it."""
    return ResourceClaimConsumerReference(resource="pods", name=pod.metadata.name, uid=pod.metadata.uid)


def is_pod(user: ResourceClaimConsumerReference) -> bool:
    """Whether a user of a claim is a pod."""
    return user.resource == "pods" and not user.api_group


def user_of(claim: ResourceClaim, pod: Pod, group: PodGroup | None) -> ResourceClaimConsumerReference:
    """Whom a claim names when a pod uses it: the pod, or its group if the claim is one that the group shares."""
    if group is not None and group.spec.resource_claims:
        recorded = recorded_claims(pod)
        for entry in pod.spec.resource_claims:
            name = entry.resource_claim_name or recorded.get(entry.name)
            if name == claim.metadata.name and shared_entry(group, entry) is not None:
                return consumer_of(group)
    return consumer(pod)


def recorded_claims(user: Pod | PodGroup) -> dict[str, str | None]:
    """The claims that a status names, by the name of the entry; None where none is needed (4381-75)."""
    return {status.name: status.resource_claim_name for status in user.status.resource_claim_statuses}


def lacks_claim(entry: PodResourceClaim, recorded: Mapping[str, str | None], find: FindClaim) -> bool:
    """Whether an entry is to get a claim from its template and has none: none is recorded, or that one is gone."""
    if entry.resource_claim_template_name is None:
        return False
    if entry.name not in recorded:
        return True
    name = recorded[entry.name]
    return name is not None and find(name) is None


def with_statuses(pod: Pod, names: Mapping[str, str]) -> tuple[PodResourceClaimStatus, ...]:
    """The pod's claim statuses with new names, ordered by entry."""
    return tuple(
        PodResourceClaimStatus(name=entry, resource_claim_name=name)
        for entry, name in sorted({**recorded_claims(pod), **names}.items())
    )


def claim_for(pod: Pod, entry: PodResourceClaim, template: ResourceClaimTemplate) -> ResourceClaim:
    """The claim to create for an entry of a pod (4381-71, 4381-78, 4381-133)."""
    meta = pod.metadata
    owner = OwnerReference(api_version="v1", kind="Pod", name=meta.name, uid=meta.uid, controller=True)
    return _made(owner, meta.namespace, entry.name, template)


def claim_for_group(group: PodGroup, entry: PodGroupResourceClaim, template: ResourceClaimTemplate) -> ResourceClaim:
    """The claim to create for an entry of a PodGroup, for all of its pods."""
    owner = owner_reference(group, controller=True)
    return _made(owner, group.metadata.namespace, entry.name, template)


def _made(owner: OwnerReference, namespace: str, entry: str, template: ResourceClaimTemplate) -> ResourceClaim:
    meta = template.spec.metadata
    return ResourceClaim(
        kind="ResourceClaim",
        api_version="resource.k8s.io/v1",
        metadata=ObjectMeta(
            generate_name=generate_name(owner.name, entry),
            namespace=namespace,
            labels=meta.labels,
            annotations={**meta.annotations, POD_CLAIM_NAME: entry},
            owner_references=(owner,),
        ),
        spec=template.spec.spec,
    )


def generate_name(pod: str, entry: str) -> str:
    """`<pod>-<entry>-`; if that is too long, both are cut in proportion, so that neither disappears."""
    length = len(pod) + len(entry)
    room = LONGEST_BASE - 2
    if length > room:
        pod, entry = pod[: len(pod) * room // length], entry[: len(entry) * room // length]
    return f"{pod.rstrip('.-')}-{entry.rstrip('-')}-"
