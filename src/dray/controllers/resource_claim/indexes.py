"""How the claim controller finds pods, groups and claims by each other."""

from __future__ import annotations

from dray.api.generated.core import Pod
from dray.api.generated.scheduling import PodGroup
from dray.api.pod_groups import group_of
from dray.api.references import ObjectName
from dray.api.resource import ResourceClaim
from dray.client import Informer

BY_CLAIM = "resource-claim"
BY_TEMPLATE = "resource-claim-template"
BY_OWNER = "owner-of-claim"
BY_GROUP = "pod-group"


def add_indexes(pods: Informer[Pod], groups: Informer[PodGroup], claims: Informer[ResourceClaim]) -> None:
    """To be called before the informers run."""
    pods.add_index(BY_CLAIM, claim_names)
    pods.add_index(BY_TEMPLATE, _template_names)
    pods.add_index(BY_GROUP, _group_names)
    groups.add_index(BY_TEMPLATE, _shared_template_names)
    groups.add_index(BY_CLAIM, shared_claim_names)
    claims.add_index(BY_OWNER, _owners)


def claim_names(pod: Pod) -> list[tuple[str, str]]:
    """The claims that a pod uses, however it came by them."""
    namespace = pod.metadata.namespace
    names = [entry.resource_claim_name for entry in pod.spec.resource_claims]
    names += [status.resource_claim_name for status in pod.status.resource_claim_statuses]
    if pod.status.extended_resource_claim_status is not None:
        names.append(pod.status.extended_resource_claim_status.resource_claim_name)
    return [(namespace, name) for name in names if name]


def _template_names(pod: Pod) -> list[tuple[str, str]]:
    namespace = pod.metadata.namespace
    names = [entry.resource_claim_template_name for entry in pod.spec.resource_claims]
    return [(namespace, name) for name in names if name]


def _owners(claim: ResourceClaim) -> list[str]:
    """The pod or the group that a claim was made for."""
    owners = claim.metadata.owner_references
    return [owner.uid for owner in owners if owner.controller and owner.kind in ("Pod", "PodGroup")]


def _group_names(pod: Pod) -> list[ObjectName]:
    name = group_of(pod)
    return [] if name is None else [name]


def _shared_template_names(group: PodGroup) -> list[tuple[str, str]]:
    names = [entry.resource_claim_template_name for entry in group.spec.resource_claims]
    return [(group.metadata.namespace, name) for name in names if name]


def shared_claim_names(group: PodGroup) -> list[tuple[str, str]]:
    """The claims that a group shares, however it came by them."""
    names = [entry.resource_claim_name for entry in group.spec.resource_claims]
    names += [status.resource_claim_name for status in group.status.resource_claim_statuses]
    return [(group.metadata.namespace, name) for name in names if name]
