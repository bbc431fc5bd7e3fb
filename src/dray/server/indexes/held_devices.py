"""A device is not given away twice, however many schedulers run at once.

With several servers, allocations from one pool follow each other: each is judged by a state that has those before (the
guards of `Store.update`).

The versions of claims keep two schedulers from giving one claim twice. Nothing in Kubernetes keeps them from giving one
device to two claims; here the write of the second allocation is refused with a conflict, and its scheduler looks again.

    write of an allocation ─▶ staged ─▶ who else holds the device: as stored, or as on its way to disk? ─▶ 409 or go on

Only decisions of schedulers are judged, which reserve the claim in the same write, and all that users of the system
write: a person who only writes an allocation knows what they do, as with kube-apiserver, and so does one who gives away
what is not published. For users of the system a device that is not published any more has a holder like any other; what
else draws on the same counters, nobody could say. Results with adminAccess hold nothing (4381-48).
"""

from __future__ import annotations

import asyncio
from collections import Counter, deque
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from dray.api.kinds import CLAIMS, PATCHES
from dray.api.resource import DeviceRequestAllocationResult, ResourceClaim
from dray.api.resource.allocated_node import allocated_node
from dray.api.resource.pool import PoolKey
from dray.api.resource.slice import Device
from dray.server import errors
from dray.server.indexes.followed import Followed
from dray.server.indexes.published_pools import CounterKey, PublishedPool, PublishedPools
from dray.store import ITSELF, Basis, Finish, Key, Store

Result = DeviceRequestAllocationResult

RELEASED_AT_ONCE: Final = 4
READ_AT_ONCE: Final = 100


class HeldDevices:
    """Which claims were given which devices. Entries are hints: what a claim holds is read from the claim."""

    def __init__(self, store: Store, pools: PublishedPools) -> None:
        self._store = store
        self._pools = pools
        self._holders: dict[PoolKey, dict[str, dict[Key, None]]] = {}
        self._released: deque[tuple[PoolKey, str]] = deque()
        """Devices that were let go of: their entries go with the next looks."""
        self._is_loaded = False
        # Other servers give devices away, too: what they write is noted before each look.
        self._claims = Followed(store, CLAIMS.resource, self._apply) if store.is_shared else None

    def guarded(
        self,
        key: Key,
        new: ResourceClaim,
        old: ResourceClaim,
        finish: Finish,
        *,
        is_judged: bool = True,
        by_program: bool = True,
    ) -> Finish:
        """How the store completes a claim, and refuses (ApiError 409) one that takes what another claim has.

        A program may not do so either where the device is not published any more.

        The store calls this when it numbers the write, after which it counts as being on its way: nobody can come
        between the look and the write.
        """
        if old.status.allocation is not None:
            if new.status.allocation is None:
                self._released.extend(((each.driver, each.pool), each.device) for each in _held(old))
            return finish
        if new.status.allocation is None:
            return finish

        def complete(revision: int) -> tuple[Any, bytes]:
            self._take(key, new, is_judged=is_judged, by_program=by_program)
            return finish(revision)

        return complete

    def _take(self, key: Key, claim: ResourceClaim, *, is_judged: bool, by_program: bool) -> None:
        """Notes who holds the devices of a claim from now on. Raises ApiError if another claim does."""
        if self._claims is not None:
            self._claims.catch_up()
        elif not self._is_loaded:
            self._load()
        for _ in range(min(RELEASED_AT_ONCE, len(self._released))):
            self._others(key, *self._released.popleft())
        results, node = _held(claim), allocated_node(claim.status.allocation)
        for result in results if is_judged else ():
            pool = self._pool_with(result, node)
            problem = ""
            if pool is not None:
                problem = self._problem(key, pool, result, results)
            elif by_program:
                problem = _holder(result, self._others(key, (result.driver, result.pool), result.device))
            if problem:
                device = f"{result.driver}/{result.pool}/{result.device}"
                raise errors.conflict(CLAIMS, claim.metadata.name, f"device {device} {problem}; allocate anew")
        self._note(key, results)

    async def read(self) -> None:
        """Reads what claims hold, a part in each turn of the loop. Raises Closed."""
        if self._claims is not None:
            await self._claims.read_in_turns()
            return
        after = None
        while not self._is_loaded:
            records = self._store.list(CLAIMS.resource, after=after, limit=READ_AT_ONCE).records
            for record in records:
                self._note(record.key, _held(record.obj))
            if len(records) < READ_AT_ONCE:
                self._is_loaded = True
                return
            after = (records[-1].key.namespace, records[-1].key.name)
            await asyncio.sleep(0)

    def _pool_with(self, result: Result, node: str) -> PublishedPool | None:
        """The pool that says what a device draws on, and how much of it there is; None if the device is not published.

        A driver that publishes anew does so slice by slice: what is missing of the new generation, the old one tells.
        """
        key = (result.driver, result.pool)
        pool = self._pools.find(key, node)
        device = pool.devices.get(result.device) if pool is not None else None
        if pool is not None and device is not None and all(drawn in pool.counters for drawn, _ in _consumption(device)):
            return pool
        published = PublishedPool(self._pools.slices(*key))
        return published if result.device in published.devices else None

    def basis(self, claims: Iterable[ResourceClaim]) -> Basis:
        """What the write of allocations is judged by besides the claims: what others hold of the same pools."""
        if self._claims is None:
            return ITSELF
        pools = (f"pools/{each.driver}/{each.pool}" for claim in claims for each in _held(claim))
        return Basis(guards=tuple(dict.fromkeys(pools)))

    def _apply(self, key: Key, claim: ResourceClaim | None) -> None:
        if claim is not None:
            self._note(key, _held(claim))

    def _load(self) -> None:
        self._is_loaded = True
        for record in self._store.list(CLAIMS.resource).records:
            self._note(record.key, _held(record.obj))

    def _note(self, key: Key, results: list[Result]) -> None:
        for result in results:
            held = self._holders.setdefault((result.driver, result.pool), {})
            held.setdefault(result.device, {})[key] = None

    def _problem(self, key: Key, pool: PublishedPool, wanted: Result, together: list[Result]) -> str:
        """Why a device cannot be given to a claim, besides what the claim gets `together` with it; empty if it can."""
        place, device = (wanted.driver, wanted.pool), pool.devices[wanted.device]
        others = self._others(key, place, wanted.device)
        if problem := _holder(wanted, others):
            return problem
        if wanted.share_id is not None:
            shares = [result for held in others.values() for result in held]
            problem = self._capacity_problem(device, [*shares, *(each for each in together if _is_same(each, wanted))])
            if problem:
                return problem
        if others:
            return ""  # somebody has a share of it, and its counters are drawn on once
        return self._counter_problem(key, place, pool, device, together)

    def _others(self, key: Key, place: PoolKey, device: str) -> dict[Key, list[Result]]:
        """What other claims hold of a device. Claims that have let go of it are forgotten."""
        holders = self._holders.get(place, {}).get(device)
        found = {}
        for owner in list(holders or ()):
            held = [one for one in self._results(owner) if (one.driver, one.pool, one.device) == (*place, device)]
            if held:
                found[owner] = held
            elif holders is not None:
                del holders[owner]
        if holders is not None and not holders:
            del self._holders[place][device]
            if not self._holders[place]:
                del self._holders[place]
        found.pop(key, None)
        return found

    def _results(self, key: Key) -> list[Result]:
        """What a claim holds: as stored, and if that is nothing, as it is going to be."""
        for record in (self._store.get(key), self._store.pending(key)):
            if record is not None and record.obj.status.allocation is not None:
                return _held(record.obj)
        return []

    def _capacity_problem(self, device: Device, shares: list[Result]) -> str:
        """What shares take of a device must be there. Patches may change how much there is: then it is not judged."""
        used: Counter[str] = Counter()
        for share in shares:
            for name, amount in share.consumed_capacity.items():
                used[name] += amount.nanos
        short = sorted(
            name for name, sum_ in used.items() if name in device.capacity and sum_ > device.capacity[name].value.nanos
        )
        if not short or self._store.list(PATCHES.resource, limit=1).records:
            return ""
        return f"has not enough {short[0]} left"

    def _counter_problem(
        self, key: Key, place: PoolKey, pool: PublishedPool, device: Device, together: list[Result]
    ) -> str:
        """What the held devices of a pool take of the counters that this one draws on must be there."""
        drawn = dict(_consumption(device))
        if not drawn:
            return ""
        names = {each.device for each in together if (each.driver, each.pool) == place}
        names.update(name for name in list(self._holders.get(place, ())) if self._others(key, place, name))
        used: Counter[CounterKey] = Counter()
        for name in names:
            if name in pool.devices:
                used.update(dict(_consumption(pool.devices[name])))
        for counter in drawn:
            if counter in pool.counters and used[counter] > pool.counters[counter]:
                return f"needs more of counter {'/'.join(counter)} than is left"
        return ""


def _holder(wanted: Result, others: Mapping[Key, list[Result]]) -> str:
    """Why a device cannot be given away: one of the others has it; empty if none has."""
    for owner, held in others.items():
        if wanted.share_id is None or any(result.share_id is None for result in held):
            return f"is allocated to ResourceClaim {owner.namespace}/{owner.name}"
    return ""


def _held(claim: ResourceClaim) -> list[Result]:
    allocation = claim.status.allocation
    return [each for each in allocation.devices.results if not each.admin_access] if allocation is not None else []


def _is_same(one: Result, other: Result) -> bool:
    return (one.driver, one.pool, one.device) == (other.driver, other.pool, other.device)


def _consumption(device: Device) -> Iterator[tuple[CounterKey, int]]:
    for consumption in device.consumes_counters:
        for name, counter in consumption.counters.items():
            yield (consumption.counter_set, name), counter.value.nanos
