"""The volume claims of a StatefulSet's pods: one per template and number, kept or deleted as the policy says. Pure."""

from __future__ import annotations

from msgspec.structs import replace

from dray.api.generated.apps import StatefulSet
from dray.api.generated.core import PersistentVolumeClaim, Pod
from dray.api.meta import Object, ObjectMeta, OwnerReference
from dray.controllers.pod_templates import reference_to

DELETE = "Delete"


def claim_name(stateful_set: StatefulSet, template: PersistentVolumeClaim, ordinal: int) -> str:
    """The name of the claim that the pod of a number gets from a template."""
    return f"{template.metadata.name}-{stateful_set.metadata.name}-{ordinal}"


def claims_for(stateful_set: StatefulSet, ordinal: int) -> tuple[PersistentVolumeClaim, ...]:
    """The claims of the pod of a number, as they are created."""
    selector = stateful_set.spec.selector
    labels = selector.match_labels if selector is not None else {}
    return tuple(
        replace(
            template,
            kind="PersistentVolumeClaim",
            api_version="v1",
            metadata=ObjectMeta(
                name=claim_name(stateful_set, template, ordinal),
                namespace=stateful_set.metadata.namespace,
                labels={**template.metadata.labels, **labels},
                annotations=template.metadata.annotations,
                finalizers=template.metadata.finalizers,
            ),
        )
        for template in stateful_set.spec.volume_claim_templates
    )


def is_stale(claim: PersistentVolumeClaim, pod_name: str) -> bool:
    """Whether a claim is about to go with an earlier pod of a name, which a new one must not use."""
    return any(one.kind == "Pod" and one.name == pod_name for one in claim.metadata.owner_references)


def with_owner(
    stateful_set: StatefulSet, pod: Pod, claim: PersistentVolumeClaim, *, is_surplus: bool
) -> PersistentVolumeClaim:
    """A claim with the owner that the policy gives it, so that it goes with that one; `is_surplus`: the pod is to go.

    A claim that an earlier set or pod of the name owns is left alone: it is on its way out. One that somebody else
    manages is not ours.
    """
    policy = stateful_set.spec.persistent_volume_claim_retention_policy
    deletes = policy is not None and policy.when_deleted == DELETE
    shrinks = policy is not None and policy.when_scaled == DELETE
    known = claim.metadata.owner_references
    if any(_is_about(one, owner) and one.uid != owner.metadata.uid for one in known for owner in (stateful_set, pod)):
        return claim
    others = tuple(one for one in known if not _is_about(one, stateful_set) and not _is_about(one, pod))
    wanted = others
    if not any(one.controller for one in others):
        if shrinks and is_surplus:
            wanted = (*others, reference_to(pod))
        elif deletes:
            wanted = (*others, reference_to(stateful_set))
    if {(one.uid, one.controller) for one in wanted} == {(one.uid, one.controller) for one in known}:
        return claim
    return replace(claim, metadata=replace(claim.metadata, owner_references=wanted))


def _is_about(reference: OwnerReference, owner: Object) -> bool:
    return reference.kind == owner.kind and reference.name == owner.metadata.name
