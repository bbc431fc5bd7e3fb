"""Storing a decision: finalizer and allocation of each claim, then the pod's binding; and taking it back (4381-115)."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable

from msgspec.structs import replace

from dray.api import codec
from dray.api.generated.core import Pod, PodExtendedResourceClaimStatus
from dray.api.generated.scheduling import PodGroup
from dray.api.kinds import CLAIMS, PODS
from dray.api.pod_claims import consumer, is_reserved_for
from dray.api.pod_groups import owner_reference
from dray.api.pods import binding_of
from dray.api.references import full_name, object_reference
from dray.api.resource import AllocationResult, ResourceClaim, ResourceClaimConsumerReference
from dray.api.resource.claim import FINALIZER
from dray.api.status import ApiError
from dray.api.times import Time
from dray.client.calls import delete_exactly
from dray.client.interface import Client, PatchFormat
from dray.process.clock import Clock, as_time
from dray.scheduling.decide import Chosen, Observer
from dray.scheduling.device_readiness import find_unready
from dray.scheduling.volumes import SELECTED_NODE


class DevicesNotReady(Exception):
    """A decision is stored but for the pod's binding: some devices must be made ready first."""

    def __init__(self, claims: list[ResourceClaim]) -> None:
        super().__init__("devices are not ready")
        self.claims = claims


class VolumesNotBound(Exception):
    """A node is chosen, and volumes for it are on their way."""


class Binder:
    """Writes decisions through a client. Every write is guarded by the version of the object that was decided on."""

    def __init__(self, client: Client, clock: Clock) -> None:
        self._client = client
        self._clock = clock

    async def bind(self, pod: Pod, chosen: Chosen, observer: Observer | None) -> list[ResourceClaim]:
        """Stores the decision; returns the claims as they are stored then. Raises ApiError, OSError,
        DevicesNotReady, VolumesNotBound.

        What was reserved is released again if the server refuses the rest (4381-116). If there is no answer, the rest
        may have been stored, or be stored any moment: then the reservation stays for the next attempt.
        """
        if chosen.volumes:
            await self.bind_volumes(chosen)
        if (at_once := await self._bind_at_once(pod, chosen)) is not None:
            if observer is not None:
                observer.done("PreBind")
            return at_once
        stored: list[ResourceClaim] = []
        reserved: list[ResourceClaim] = []
        made: ResourceClaim | None = None
        try:
            if chosen.extended is not None:  # before claims are looked at again: what was seen is soon old
                await self.record_extended(pod, chosen.extended)
            for claim in chosen.claims:
                if not claim.metadata.uid:
                    claim = made = await self.create(claim)
                if is_reserved_for(claim, pod) and claim.status.allocation is not None:
                    claim = await self._look_again(claim)
                if is_reserved_for(claim, pod):
                    stored.append(claim)
                else:
                    reserved.append(await self._reserve(claim, pod, chosen))
            if observer is not None:
                observer.done("PreBind")
            if any(find_unready(claim) for claim in (*stored, *reserved)):
                raise DevicesNotReady([*stored, *reserved])
            await self.bind_pod(pod, chosen.node)
        except ApiError:
            with contextlib.suppress(ApiError, OSError, TimeoutError):
                await self._give_back(pod, reserved, made)
            raise
        return [*stored, *reserved]

    async def _bind_at_once(self, pod: Pod, chosen: Chosen) -> list[ResourceClaim] | None:
        """Stores all of a decision in one write; None, and nothing is, if that cannot be. Raises ApiError, OSError."""
        claims = claims_with_devices(pod, chosen, as_time(self._clock.now()))
        if claims is None:
            return None
        stored = await self._client.bind_with_claims(pod, chosen.node, claims)
        return None if stored is None else list(stored)

    async def bind_pod(self, pod: Pod, node: str, group: PodGroup | None = None) -> None:
        """Gives a pod its node, as one of a group if one is given. Raises ApiError, OSError."""
        meta = pod.metadata
        owners = () if group is None else (owner_reference(group),)
        await self._client.post(PODS, meta.namespace, meta.name, "binding", binding_of(pod, node, owners))

    async def create(self, claim: ResourceClaim) -> ResourceClaim:
        """A claim for extended resources, as it is stored. Raises ApiError, OSError."""
        return await self._client.create(_with_finalizer(claim))

    async def store_users(
        self, claim: ResourceClaim, decided: AllocationResult | None, users: Iterable[ResourceClaimConsumerReference]
    ) -> ResourceClaim:
        """The claim as it is stored with what was decided for it, if it had nothing, and with these among its users.

        Raises ApiError, OSError.
        """
        known = {user.uid for user in claim.status.reserved_for}
        new = tuple(user for user in users if user.uid not in known)
        if not new and decided is None:
            current = await self._look_again(claim)
            if not known <= {user.uid for user in current.status.reserved_for}:
                raise ApiError(409, "Conflict", f"ResourceClaim {claim.metadata.name} has other users now")
            return current
        allocation = claim.status.allocation
        if decided is not None:
            allocation = replace(decided, allocation_timestamp=as_time(self._clock.now()))
        status = replace(claim.status, allocation=allocation, reserved_for=(*claim.status.reserved_for, *new))
        claim = replace(claim, status=status)
        if FINALIZER in claim.metadata.finalizers:
            return await self._client.update(claim, subresource="status")
        # Never allocated without it: the finalizer is stored first, or together with the allocation.
        return await self._client.update_with_status(_with_finalizer(claim))

    async def _look_again(self, claim: ResourceClaim) -> ResourceClaim:
        """A claim that was reserved before this attempt, as it is now: another scheduler may have let go of it."""
        current = await self._client.get(CLAIMS, claim.metadata.namespace, claim.metadata.name)
        if not isinstance(current, ResourceClaim) or current.status.allocation != claim.status.allocation:
            raise ApiError(409, "Conflict", f"ResourceClaim {claim.metadata.name} has another allocation now")
        return current

    async def _reserve(self, claim: ResourceClaim, pod: Pod, chosen: Chosen) -> ResourceClaim:
        """The claim as it is stored with its allocation, and with the pod among its users."""
        decided = chosen.allocations.get(full_name(claim))
        return await self.store_users(claim, decided[1] if decided is not None else None, (consumer(pod),))

    async def record_extended(self, pod: Pod, told: PodExtendedResourceClaimStatus) -> None:
        """Says in the pod's status which claim serves its extended resources: its node looks there."""
        if pod.status.extended_resource_claim_status == told:
            return
        meta = pod.metadata
        status = {"extendedResourceClaimStatus": codec.to_builtins(told)}
        patch = {"metadata": {"uid": meta.uid}, "status": status}  # never that of a later pod of the name
        await self._client.patch(PODS, meta.namespace, meta.name, patch, format=PatchFormat.MERGE, subresource="status")

    async def _give_back(self, pod: Pod, claims: list[ResourceClaim], made: ResourceClaim | None) -> None:
        """Takes the pod off claims that were reserved for it, unless another scheduler gave it a node with them.

        The claim that was made for its extended resources goes.
        """
        if not (claims or made) or await self.has_node(pod):
            return
        if made is not None:
            latest = next((claim for claim in claims if claim.metadata.uid == made.metadata.uid), made)
            claims = [claim for claim in claims if claim is not latest]
            await self.discard(latest)
        for claim in claims:
            meta = claim.metadata
            try:
                current = await self._client.get(CLAIMS, meta.namespace, meta.name)
                if isinstance(current, ResourceClaim) and is_reserved_for(current, pod):
                    status = replace(current.status, reserved_for=_without(current, pod))
                    await self._client.update(replace(current, status=status), subresource="status")
            except ApiError as error:
                if error.code not in (404, 409):
                    raise

    async def has_node(self, pod: Pod) -> bool:
        """Whether a pod has a node, as the server knows it."""
        try:
            current = await self._client.get(PODS, pod.metadata.namespace, pod.metadata.name)
        except ApiError as error:
            if error.code == 404:
                return False
            raise
        is_same = current.metadata.uid == pod.metadata.uid
        return isinstance(current, Pod) and is_same and bool(current.spec.node_name)

    async def bind_volumes(self, chosen: Chosen) -> None:
        """Promises volumes to claims that waited for a node, or says for which node they are to be made.

        Raises ApiError if somebody else was faster, and VolumesNotBound if it went well: whoever binds volumes is next.
        """
        for choice in chosen.volumes:
            meta = choice.claim.metadata
            if choice.volume is None:
                annotations = {**meta.annotations, SELECTED_NODE: chosen.node}
                if annotations != meta.annotations:
                    await self._client.update(replace(choice.claim, metadata=replace(meta, annotations=annotations)))
            elif choice.volume.spec.claim_ref is None or not choice.volume.spec.claim_ref.uid:
                spec = replace(choice.volume.spec, claim_ref=object_reference(choice.claim))
                await self._client.update(replace(choice.volume, spec=spec))
        if chosen.volumes:
            raise VolumesNotBound

    async def unreserve(self, claim: ResourceClaim, pod: Pod) -> ResourceClaim:
        """The claim as it is stored without the pod among its users. Raises ApiError if somebody else changed it."""
        status = replace(claim.status, reserved_for=_without(claim, pod))
        return await self._client.update(replace(claim, status=status), subresource="status")

    async def discard(self, claim: ResourceClaim) -> None:
        """Removes a claim that was made for extended resources of a pod that could not be bound."""
        if claim.status.allocation is not None:
            status = replace(claim.status, allocation=None, devices=(), reserved_for=())
            claim = await self._client.update(replace(claim, status=status), subresource="status")
        left = tuple(name for name in claim.metadata.finalizers if name != FINALIZER)
        claim = await self._client.update(replace(claim, metadata=replace(claim.metadata, finalizers=left)))
        await delete_exactly(self._client, CLAIMS, claim)

    async def deallocate(self, claim: ResourceClaim) -> None:
        """Clears the allocation of a claim that nobody uses, so that it can be made anew elsewhere (4381-113)."""
        assert not claim.status.reserved_for, "a claim in use keeps its devices (4381-95)"
        status = replace(claim.status, allocation=None, devices=())
        await self._client.update(replace(claim, status=status), subresource="status")


def claims_with_devices(pod: Pod, chosen: Chosen, now: Time) -> list[ResourceClaim] | None:
    """The claims of a pod as they are once it is bound; None if that takes more than one write."""
    if chosen.extended is not None:
        return None
    claims = []
    for claim in chosen.claims:
        decided = chosen.allocations.get(full_name(claim))
        if decided is None or claim.status.allocation is not None or claim.status.reserved_for:
            return None
        allocation = replace(decided[1], allocation_timestamp=now)
        given = replace(claim, status=replace(claim.status, allocation=allocation, reserved_for=(consumer(pod),)))
        if find_unready(given):
            return None
        claims.append(given if FINALIZER in given.metadata.finalizers else _with_finalizer(given))
    return claims


def _without(claim: ResourceClaim, pod: Pod) -> tuple[ResourceClaimConsumerReference, ...]:
    return tuple(one for one in claim.status.reserved_for if one.uid != pod.metadata.uid)


def _with_finalizer(claim: ResourceClaim) -> ResourceClaim:
    return replace(claim, metadata=replace(claim.metadata, finalizers=(*claim.metadata.finalizers, FINALIZER)))
