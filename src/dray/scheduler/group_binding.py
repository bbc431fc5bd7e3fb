"""Storing what was decided for a group of pods: the devices of all of them first, then all of their nodes.

volumes ─▶ claims: allocation and users, one write each ─▶ bindings, all at once
              │ one is refused                                │ no answer
              └─▶ all are let go again                        └─▶ asked again, the place is kept meanwhile
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Iterable, Sequence
from typing import Final

import msgspec
from msgspec.structs import replace

from dray.api.backoff import Backoff
from dray.api.generated.core import Pod
from dray.api.generated.scheduling import PodGroup
from dray.api.kinds import CLAIMS
from dray.api.pod_claims import user_of
from dray.api.references import full_name
from dray.api.resource import AllocationResult, ResourceClaim, ResourceClaimConsumerReference, ResourceClaimStatus
from dray.api.status import ApiError
from dray.client.calls import find
from dray.client.interface import Client
from dray.process.clock import Clock
from dray.scheduler.binding import Binder, DevicesNotReady, VolumesNotBound
from dray.scheduling.decide import Chosen
from dray.scheduling.device_readiness import find_unready
from dray.scheduling.pod_info import PodInfo

AT_ONCE: Final = 32
ATTEMPTS: Final = 5
BACKOFF: Final = Backoff(first=1.0, longest=8.0)
Placed = Sequence[tuple[PodInfo, Chosen]]
Failure = tuple[PodInfo, Chosen, BaseException]


class _Need(msgspec.Struct):
    """A claim as it was decided on, what it gets, and who is going to use it."""

    claim: ResourceClaim
    allocation: AllocationResult | None
    users: dict[str, ResourceClaimConsumerReference]


class GroupBinder:
    """Writes decisions about groups through a client."""

    def __init__(self, client: Client, clock: Clock, binder: Binder) -> None:
        self._client = client
        self._clock = clock
        self._binder = binder

    async def bind_volumes(self, placed: Placed) -> None:
        """What claims for volumes get. Raises ApiError, OSError, and VolumesNotBound if there is something to bind."""
        are_bound = True
        for _, chosen in placed:
            if chosen.volumes:
                are_bound = False
                with contextlib.suppress(VolumesNotBound):
                    await self._binder.bind_volumes(chosen)
        if not are_bound:
            raise VolumesNotBound

    async def reserve(self, placed: Placed, group: PodGroup | None) -> list[ResourceClaim]:
        """Stores devices and users of all claims; the claims as they are stored then. Raises ApiError, OSError,
        DevicesNotReady.

        If one of them cannot be stored, the next attempt goes on with the others, or lets go of them.
        """
        needs = _find_needs(placed, group)
        limit = asyncio.Semaphore(AT_ONCE)

        async def store(need: _Need) -> ResourceClaim:
            async with limit:
                claim = need.claim if need.claim.metadata.uid else await self._binder.create(need.claim)
                return await self._binder.store_users(claim, need.allocation, need.users.values())

        answers = await asyncio.gather(*map(store, needs), return_exceptions=True)
        stored = [answer for answer in answers if isinstance(answer, ResourceClaim)]
        for answer in answers:
            if isinstance(answer, BaseException):
                raise answer
        if any(find_unready(claim) for claim in stored):
            raise DevicesNotReady(stored)
        return stored

    async def unreserve(self, claims: Iterable[ResourceClaim], pods: Sequence[Pod], group: PodGroup | None) -> None:
        """Takes pods that have no node, and their group, off claims. Raises ApiError, OSError."""
        uids = {pod.metadata.uid for pod in pods}
        if group is not None:
            uids.add(group.metadata.uid)
        for claim in await self._as_stored(claims, pods):
            left = tuple(user for user in claim.status.reserved_for if user.uid not in uids)
            if left != claim.status.reserved_for:
                await self._store(claim, replace(claim.status, reserved_for=left))

    async def deallocate(self, claims: Iterable[ResourceClaim], pods: Sequence[Pod], _group: PodGroup | None) -> None:
        """Clears the devices of claims that nobody uses, if the pods still have no node. Raises ApiError, OSError."""
        for claim in await self._as_stored(claims, pods):
            if claim.status.allocation is not None and not claim.status.reserved_for:
                await self._store(claim, replace(claim.status, allocation=None, devices=()))

    async def _as_stored(self, claims: Iterable[ResourceClaim], pods: Sequence[Pod]) -> list[ResourceClaim]:
        """The claims as the server knows them; none if another scheduler gave a pod a node, and its group goes on."""
        for pod in pods:
            if await self._binder.has_node(pod):
                return []
        found = []
        for claim in claims:
            meta = claim.metadata
            current = await find(self._client, CLAIMS, meta.namespace, meta.name, ResourceClaim)
            if current is not None and current.metadata.uid == meta.uid:
                found.append(current)
        return found

    async def _store(self, claim: ResourceClaim, status: ResourceClaimStatus) -> None:
        try:
            await self._client.update(replace(claim, status=status), subresource="status")
        except ApiError as error:
            if error.code not in (404, 409):
                raise

    async def bind(self, placed: Placed, group: PodGroup) -> list[Failure]:
        """Gives all pods their nodes; those that did not get theirs, and why.

        Without an answer it is tried again: the rest of the group may have its nodes already.
        """
        limit = asyncio.Semaphore(AT_ONCE)

        async def bind_one(pod: PodInfo, chosen: Chosen) -> Failure | None:
            pauses = BACKOFF.pauses()
            for attempt in range(1, ATTEMPTS + 1):
                try:
                    async with limit:
                        if chosen.extended is not None:
                            await self._binder.record_extended(pod.pod, chosen.extended)
                        await self._binder.bind_pod(pod.pod, chosen.node, group)
                    return None
                except (ApiError, OSError, TimeoutError) as error:
                    is_final = isinstance(error, ApiError) and error.code < 500 and error.code != 429
                    if is_final and attempt > 1 and await self._is_bound(pod.pod):
                        return None
                    if is_final or attempt == ATTEMPTS:
                        return pod, chosen, error
                await self._clock.sleep(pauses.next())
            return None

        answers = await asyncio.gather(*(bind_one(pod, chosen) for pod, chosen in placed))
        return [answer for answer in answers if answer is not None]

    async def _is_bound(self, pod: Pod) -> bool:
        """Whether an earlier request, which was not answered, was heard all the same."""
        try:
            return await self._binder.has_node(pod)
        except (ApiError, OSError, TimeoutError):
            return False


def _find_needs(placed: Placed, group: PodGroup | None) -> list[_Need]:
    needs: dict[str, _Need] = {}
    for pod, chosen in placed:
        for claim in chosen.claims:
            key = full_name(claim)
            decided = chosen.allocations.get(key)
            need = needs.get(key)
            if need is None:
                allocation = decided[1] if decided is not None else None
                need = needs[key] = _Need(decided[0] if decided is not None else claim, allocation, {})
            user = user_of(claim, pod.pod, group)
            need.users[user.uid] = user
    return list(needs.values())
