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
from dray.api.resource import AllocationResult, ResourceClaim, ResourceClaimConsumerReference
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

        If one of them cannot be stored, the others are let go again: nothing is held for a group that waits.
        """
        needs = _find_needs(placed, group)
        limit = asyncio.Semaphore(AT_ONCE)

        async def store(need: _Need) -> ResourceClaim:
            async with limit:
                return await self._binder.store_users(need.claim, need.allocation, need.users.values())

        answers = await asyncio.gather(*map(store, needs), return_exceptions=True)
        stored = [answer for answer in answers if isinstance(answer, ResourceClaim)]
        failures = [answer for answer in answers if isinstance(answer, BaseException)]
        if failures:
            taken = [need for need, answer in zip(needs, answers, strict=True) if isinstance(answer, ResourceClaim)]
            with contextlib.suppress(ApiError, OSError, TimeoutError):
                await self.let_go((need.claim for need in taken), [pod.pod for pod, _ in placed], group)
            raise failures[0]
        if any(find_unready(claim) for claim in stored):
            raise DevicesNotReady(stored)
        return stored

    async def let_go(self, claims: Iterable[ResourceClaim], pods: Sequence[Pod], group: PodGroup | None) -> None:
        """Takes pods that have no node, and their group, off claims; clears the devices of those that nobody uses."""
        uids = {pod.metadata.uid for pod in pods}
        if group is not None:
            uids.add(group.metadata.uid)
        for pod in pods:
            if await self._binder.has_node(pod):
                return  # another scheduler gave it one: its group goes on from there
        for claim in claims:
            meta = claim.metadata
            current = await find(self._client, CLAIMS, meta.namespace, meta.name, ResourceClaim)
            if current is None or current.metadata.uid != meta.uid:
                continue
            left = tuple(user for user in current.status.reserved_for if user.uid not in uids)
            status = replace(current.status, reserved_for=left)
            if not left:
                status = replace(status, allocation=None, devices=())
            if status != current.status:
                await self._store_status(current, status.reserved_for, is_free=not left)

    async def _store_status(
        self, claim: ResourceClaim, users: tuple[ResourceClaimConsumerReference, ...], *, is_free: bool
    ) -> None:
        """Users first: nobody clears the devices of a claim that is reserved (4381-95)."""
        try:
            if users != claim.status.reserved_for:
                status = replace(claim.status, reserved_for=users)
                claim = await self._client.update(replace(claim, status=status), subresource="status")
            if is_free:
                await self._binder.deallocate(claim)
        except ApiError as error:
            if error.code not in (404, 409):
                raise

    async def bind(self, placed: Placed) -> list[Failure]:
        """Gives all pods their nodes; those that did not get theirs, and why.

        Without an answer it is tried again: the rest of the group may have its nodes already.
        """
        limit = asyncio.Semaphore(AT_ONCE)

        async def bind_one(pod: PodInfo, chosen: Chosen) -> Failure | None:
            pauses = BACKOFF.pauses()
            for attempt in range(1, ATTEMPTS + 1):
                try:
                    async with limit:
                        await self._binder.bind_pod(pod.pod, chosen.node)
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
