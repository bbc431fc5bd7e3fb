"""Storing a decision: finalizer and allocation of each claim, then the pod's binding; and taking it back (4381-115)."""

from __future__ import annotations

from msgspec.structs import replace

from dray.api.generated.core import Binding, ObjectReference, Pod
from dray.api.meta import ObjectMeta
from dray.api.registry import by_kind
from dray.api.resource import ResourceClaim, ResourceClaimConsumerReference
from dray.api.resource.claim import FINALIZER
from dray.api.status import ApiError
from dray.client.interface import Client
from dray.scheduler.claims import is_reserved_for
from dray.scheduler.decide import Chosen

PODS = by_kind("v1", "Pod")
CLAIMS = by_kind("resource.k8s.io/v1", "ResourceClaim")


class Binder:
    """Writes decisions through a client. Every write is guarded by the version of the object that was decided on."""

    def __init__(self, client: Client) -> None:
        self._client = client

    async def bind(self, pod: Pod, chosen: Chosen) -> list[ResourceClaim]:
        """Stores the decision; returns the claims as they are stored then. Raises ApiError or OSError."""
        stored = []
        for claim in chosen.claims:
            key = f"{claim.metadata.namespace}/{claim.metadata.name}"
            allocation = chosen.allocations[key][1] if key in chosen.allocations else claim.status.allocation
            if is_reserved_for(claim, pod) and claim.status.allocation is not None:
                stored.append(claim)
                continue
            reserved_for = (*claim.status.reserved_for, consumer(pod))
            claim = replace(claim, status=replace(claim.status, allocation=allocation, reserved_for=reserved_for))
            if FINALIZER in claim.metadata.finalizers:
                stored.append(await self._client.update(claim, subresource="status"))
            else:  # never allocated without it: the finalizer is stored first, or with the allocation
                stored.append(await self._client.update_with_status(_with_finalizer(claim)))
        await self._client.post(PODS, pod.metadata.namespace, pod.metadata.name, "binding", _binding(pod, chosen.node))
        return stored

    async def unreserve(self, pod: Pod, claims: tuple[ResourceClaim, ...]) -> None:
        """Takes the pod off the claims that were reserved for it before the binding failed (4381-116)."""
        for claim in claims:
            meta = claim.metadata
            try:
                current = await self._client.get(CLAIMS, meta.namespace, meta.name)
                if isinstance(current, ResourceClaim) and is_reserved_for(current, pod):
                    left = tuple(one for one in current.status.reserved_for if one.uid != pod.metadata.uid)
                    status = replace(current.status, reserved_for=left)
                    await self._client.update(replace(current, status=status), subresource="status")
            except ApiError as error:
                if error.code not in (404, 409):
                    raise

    async def deallocate(self, claim: ResourceClaim) -> None:
        """Clears the allocation of a claim that nobody uses, so that it can be made anew elsewhere (4381-113)."""
        status = replace(claim.status, allocation=None, devices=())
        await self._client.update(replace(claim, status=status), subresource="status")


def consumer(pod: Pod) -> ResourceClaimConsumerReference:
    """A pod as a claim names those who may use it."""
    return ResourceClaimConsumerReference(resource="pods", name=pod.metadata.name, uid=pod.metadata.uid)


def _with_finalizer(claim: ResourceClaim) -> ResourceClaim:
    return replace(claim, metadata=replace(claim.metadata, finalizers=(*claim.metadata.finalizers, FINALIZER)))


def _binding(pod: Pod, node: str) -> Binding:
    meta = ObjectMeta(name=pod.metadata.name, namespace=pod.metadata.namespace, uid=pod.metadata.uid)
    target = ObjectReference(api_version="v1", kind="Node", name=node)
    return Binding(api_version="v1", kind="Binding", metadata=meta, target=target)
