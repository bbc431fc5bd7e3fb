"""Which claims a pod has, and whether it may run with them. Pure.

A pod may run only if each of its claims exists, is allocated and is reserved for it (4381-157). That cannot be taken
for granted: a pod may come to the node without the scheduler, or from before DRA was switched on (4381-209, 215, 233).
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from dray.api.generated.core import Container, Pod
from dray.api.pod_claims import is_made_for, is_reserved_for
from dray.api.resource import ResourceClaim
from dray.node.claim_record import ClaimBook


class Refused(Exception):
    """The pod must not run now; the message says why."""


class PodClaim(msgspec.Struct, frozen=True):
    """A claim of a pod: its name in the pod (empty for extended resources) and that of the ResourceClaim."""

    name: str
    claim: str
    from_template: bool = False


def pod_claims(pod: Pod) -> tuple[PodClaim, ...]:
    """The ResourceClaims that a pod needs, used by a container or not. Raises Refused if one has not been made yet."""
    made = {status.name: status.resource_claim_name for status in pod.status.resource_claim_statuses}
    found = []
    for reference in pod.spec.resource_claims:
        if reference.resource_claim_name:
            found.append(PodClaim(reference.name, reference.resource_claim_name))
        elif reference.name not in made:
            raise Refused(
                f"claim {reference.name}: no ResourceClaim has been made from template "
                f"{reference.resource_claim_template_name} yet"
            )
        elif name := made[reference.name]:  # without a name none was needed
            found.append(PodClaim(reference.name, name, from_template=True))
    extended = pod.status.extended_resource_claim_status
    if extended is not None:
        found.append(PodClaim("", extended.resource_claim_name))
    return tuple(found)


def check_claim(pod: Pod, wanted: PodClaim, claim: ResourceClaim) -> None:
    """Raises Refused unless the claim is allocated, reserved for the pod and, if made from a template, made for it."""
    meta, name = pod.metadata, claim.metadata.name
    if wanted.from_template and not is_made_for(claim, pod):
        raise Refused(f"ResourceClaim {name} was not created for pod {meta.namespace}/{meta.name} ({meta.uid})")
    if claim.status.allocation is None:
        raise Refused(f"ResourceClaim {name} is not allocated")
    if not is_reserved_for(claim, pod):
        raise Refused(
            f"pod {meta.name} ({meta.uid}) is not allowed to use ResourceClaim {name} ({claim.metadata.uid}): "
            "it is not reserved for the pod"
        )


def container_claims(pod: Pod, container: Container) -> Iterator[tuple[str, str, str]]:
    """What a container uses: name of the claim in the pod, name of the ResourceClaim, request (empty for all)."""
    by_name = {one.name: one.claim for one in pod_claims(pod) if one.name}
    for use in container.resources.claims:
        if use.name in by_name:
            yield use.name, by_name[use.name], use.request
    extended = pod.status.extended_resource_claim_status
    if extended is not None:
        for mapping in extended.request_mappings:
            if mapping.container_name == container.name and mapping.resource_name in container.resources.requests:
                yield "", extended.resource_claim_name, mapping.request_name


def cdi_ids(pod: Pod, container: Container, book: ClaimBook) -> tuple[str, ...]:
    """The CDI devices that a container gets (4381-162, 169): those of the requests that it names."""
    ids: list[str] = []
    for _, name, request in container_claims(pod, container):
        record = book.named(pod.metadata.namespace, name)
        if record is not None:
            ids += record.cdi_ids(request)
    return tuple(ids)
