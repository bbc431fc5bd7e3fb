"""Plays a history to an API server: what was there, then one thing after the other at its time.

    agenda: (when, what) ─▶ wait ─▶ create, change, delete ─▶ the control plane decides
                 ▲ a pod that was evicted comes again, if its controller would make another

What the server refuses is counted and told; the rest goes on.
"""

from __future__ import annotations

import asyncio
import heapq
from collections.abc import Awaitable, Callable, Iterable
from functools import partial
from typing import Final

from msgspec.structs import replace

from dray.api import kinds
from dray.api.generated.core import Namespace, Node, Pod, PodStatus
from dray.api.generated.scheduling import PodGroup
from dray.api.meta import DeleteOptions, Object, ObjectMeta, Preconditions
from dray.api.registry import by_kind
from dray.api.resource import ResourceClaim
from dray.api.status import ApiError
from dray.api.well_known import DEFAULT_SCHEDULER
from dray.client import Client
from dray.process.clock import Clock
from dray.process.tasks import cancel_all
from dray.replay.history import Change, History, Place, kind_of
from dray.replay.work import Work, disruption
from dray.simulation import names

REPLACED_SECONDS: Final = 1.0
"""After which a controller has made another pod for one that was evicted."""
REFUSED_SECONDS: Final = 5.0
"""After which an eviction is asked for again that a disruption budget did not allow."""
MOST_TOLD: Final = 20

Act = Callable[[], Awaitable[None]]


class Player:
    """`set_up`, then `run`."""

    def __init__(self, client: Client, clock: Clock, history: History, objects: Iterable[Object] = ()) -> None:
        """`objects` are there from the start to the end, instead of what the history has at their places."""
        self._client = client
        self._clock = clock
        self._history = history
        self._objects = tuple(objects)
        self._others = {Place.of(obj) for obj in self._objects}
        self._agenda: list[tuple[float, int, Act]] = []
        self._count = 0
        self._tasks: set[asyncio.Task[None]] = set()
        self._namespaces: set[str] = {"default"}
        self._uids: dict[str, str] = {}
        """By recorded uid, that in the replay."""
        self._current: dict[int, Pod] = {}
        """By number of the work, the pod that stands for it now."""
        self._work_of: dict[str, int] = {}
        """By uid of a pod, the number of its work."""
        self._comings: dict[int, int] = {}
        self.refused = 0
        self.problems: list[str] = []
        """What the server did not accept, the first of them."""

    async def set_up(self) -> None:
        """Everything that was there at the start, with what was decided by then."""
        history = self._history
        mine = [obj for obj in history.first if Place.of(obj) not in self._others]
        claims = [obj for obj in mine if isinstance(obj, ResourceClaim)]
        for obj in (*(one for one in mine if not isinstance(one, ResourceClaim)), *self._objects):
            await self._try(obj, partial(self.put, obj))
        for number, work in enumerate(history.work):
            if work.is_first and work.node:
                await self._try(work.pod, partial(self._arrive, number))
        for claim in claims:
            await self._try(claim, partial(self._put_claim, claim))
        for number, work in enumerate(history.work):
            if number in self._current and work.pod.status.resource_claim_statuses:
                await self._try(work.pod, partial(self._name_claims, number))
        self._plan()

    def _plan(self) -> None:
        """Everything that is going to happen."""
        for change in self._history.changes:
            if change.place not in self._others:
                self._at(change.at, change.place, partial(self._apply, change))
        for number, work in enumerate(self._history.work):
            place = Place.of(work.pod)
            if not (work.is_first and work.node):
                self._at(work.arrives, place, partial(self._arrive, number))
            for moment, pod in work.changes:
                self._at(moment, place, partial(self._alter, number, pod))
            for moment in work.evicted:
                self._at(moment, place, partial(self._evict, number))
            if work.removed is not None:
                self._at(work.removed, place, partial(self._take_away, number))

    async def run(self, until: float) -> None:
        """Lets happen what happens up to a moment, and returns then."""
        while self._agenda and self._agenda[0][0] <= until:
            at, _, act = heapq.heappop(self._agenda)
            await self._wait(at)
            await act()
        await self._wait(until)

    async def _wait(self, moment: float) -> None:
        left = moment - self._clock.now()
        if left > 0:
            await self._clock.sleep(left)

    def _at(self, moment: float, place: Place, act: Act) -> None:
        async def tried() -> None:
            await self._try(place, act)

        self._count += 1
        heapq.heappush(self._agenda, (max(moment, self._history.start), self._count, tried))

    def _later(self, seconds: float, place: Place, act: Act) -> None:
        async def waited() -> None:
            await self._clock.sleep(seconds)
            await self._try(place, act)

        task = asyncio.get_running_loop().create_task(waited())
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def close(self) -> None:
        """Nothing happens any more."""
        await cancel_all(self._tasks)

    async def _try(self, what: Object | Place, act: Act) -> None:
        try:
            await act()
        except ApiError as error:
            self.refused += 1
            if len(self.problems) < MOST_TOLD:
                place = what if isinstance(what, Place) else Place.of(what)
                where = f"{place.namespace}/{place.name}" if place.namespace else place.name
                self.problems.append(f"{place.kind} {where}: {error}")

    # Objects

    async def _apply(self, change: Change) -> None:
        if change.object is not None:
            await self.put(change.object)
            return
        try:
            await self._client.delete(kind_of(change.place), change.place.namespace, change.place.name)
        except ApiError as error:
            if error.code != 404:
                raise

    async def put(self, obj: Object) -> None:
        """Creates an object, or makes the stored one like it. Its status comes with it where it is no decision."""
        kind = by_kind(obj.api_version, obj.kind)
        meta = obj.metadata
        await self._make_room(meta.namespace)
        fresh = replace(obj, metadata=_fresh(meta))
        if isinstance(fresh, ResourceClaim | PodGroup):
            fresh = replace(fresh, status=type(fresh.status)())
        try:
            stored: Object = await self._client.create(fresh)
        except ApiError as error:
            if error.code != 409:
                raise
            before = await self._client.get(kind, meta.namespace, meta.name)
            kept = replace(before.metadata, labels=meta.labels, annotations=meta.annotations, resource_version="")
            stored = await self._client.update(replace(fresh, metadata=kept))
        if meta.uid:
            self._uids[meta.uid] = stored.metadata.uid
        if isinstance(obj, Node) and isinstance(stored, Node) and stored.status != obj.status:
            meta = replace(stored.metadata, resource_version="")
            await self._client.update(replace(stored, metadata=meta, status=obj.status), "status")
        if isinstance(obj, Namespace):
            self._namespaces.add(obj.metadata.name)

    async def _make_room(self, namespace: str) -> None:
        if namespace and namespace not in self._namespaces:
            self._namespaces.add(namespace)
            meta = ObjectMeta(name=namespace)
            try:
                await self._client.create(Namespace(kind="Namespace", api_version="v1", metadata=meta))
            except ApiError as error:
                if error.code != 409:
                    raise

    async def _put_claim(self, claim: ResourceClaim) -> None:
        """A claim as it was at the start. One of a pod that is still to come is made again for it."""
        owners = [owner for owner in claim.metadata.owner_references if owner.kind in ("Pod", "PodGroup")]
        if claim.metadata.deletion_timestamp is not None or any(owner.uid not in self._uids for owner in owners):
            return
        mine = replace(
            claim.metadata,
            owner_references=tuple(
                replace(owner, uid=self._uids.get(owner.uid, owner.uid)) for owner in claim.metadata.owner_references
            ),
        )
        await self.put(replace(claim, metadata=mine))
        reserved = tuple(
            replace(one, uid=self._uids[one.uid]) for one in claim.status.reserved_for if one.uid in self._uids
        )
        if claim.status.allocation is None or not (reserved or not claim.status.reserved_for):
            return
        stored = await self._client.get(kinds.CLAIMS, claim.metadata.namespace, claim.metadata.name)
        assert isinstance(stored, ResourceClaim)
        finalizers = (*stored.metadata.finalizers, "resource.kubernetes.io/delete-protection")
        status = replace(stored.status, allocation=claim.status.allocation, reserved_for=reserved)
        meta = replace(stored.metadata, finalizers=finalizers)
        await self._client.update_with_status(replace(stored, metadata=meta, status=status))

    # Work

    async def _arrive(self, number: int) -> None:
        """The pod of a piece of work comes, for the first time or again."""
        work = self._history.work[number]
        comings = self._comings[number] = self._comings.get(number, 0) + 1
        if comings > 1 and work.removed is not None and work.removed <= self._clock.now():
            return
        pod = as_it_comes(work, comings)
        await self._make_room(pod.metadata.namespace)
        stored = await self._client.create(pod)
        if comings == 1:
            self._uids[work.pod.metadata.uid] = stored.metadata.uid
        self._current[number] = stored
        self._work_of[stored.metadata.uid] = number

    async def _name_claims(self, number: int) -> None:
        """A pod that ran already says which claims were made for it."""
        recorded = self._history.work[number].pod.status
        stored = self._current[number]
        status = PodStatus(
            phase="Pending",
            resource_claim_statuses=recorded.resource_claim_statuses,
            extended_resource_claim_status=recorded.extended_resource_claim_status,
        )
        self._current[number] = await self._client.update(replace(stored, status=status), "status")

    async def _alter(self, number: int, pod: Pod) -> None:
        """Somebody changed labels or took gates away."""
        current = self._current.get(number)
        if current is None:
            return
        meta = current.metadata
        stored = await self._client.get(kinds.PODS, meta.namespace, meta.name)
        assert isinstance(stored, Pod)
        if stored.metadata.uid == meta.uid:
            changed = replace(stored.metadata, labels=pod.metadata.labels)
            gates = (
                stored.spec
                if stored.spec.node_name
                else replace(stored.spec, scheduling_gates=pod.spec.scheduling_gates)
            )
            await self._client.update(replace(stored, metadata=changed, spec=gates))

    async def _evict(self, number: int) -> None:
        """Somebody asks for a pod to be moved, through the eviction API."""
        current = self._current.get(number)
        if current is None:
            return
        meta = current.metadata
        options = {"preconditions": {"uid": meta.uid}}
        body = {
            "apiVersion": "policy/v1",
            "kind": "Eviction",
            "metadata": {"name": meta.name, "namespace": meta.namespace},
            "deleteOptions": options,
        }
        try:
            await self._client.post(kinds.PODS, meta.namespace, meta.name, "eviction", body)
        except ApiError as error:
            if error.code == 429:
                self._later(REFUSED_SECONDS, Place.of(current), partial(self._evict, number))
            elif error.code not in (404, 409):
                raise

    async def _take_away(self, number: int) -> None:
        current = self._current.pop(number, None)
        if current is None:
            return
        meta = current.metadata
        self._work_of.pop(meta.uid, None)
        options = DeleteOptions(preconditions=Preconditions(uid=meta.uid))
        try:
            await self._client.delete(kinds.PODS, meta.namespace, meta.name, options)
        except ApiError as error:
            if error.code not in (404, 409):
                raise

    def on_pod(self, old: Pod | None, new: Pod | None) -> None:
        """To be told of every pod: one that was evicted comes again, if its controller would make another."""
        if new is not None or old is None:
            return
        number = self._work_of.pop(old.metadata.uid, None)
        if number is None:
            return
        work = self._history.work[number]
        self._current.pop(number, None)
        if disruption(old) and work.is_replaced:
            self._later(REPLACED_SECONDS, Place.of(work.pod), partial(self._arrive, number))


def _fresh(meta: ObjectMeta) -> ObjectMeta:
    return ObjectMeta(
        name=meta.name,
        namespace=meta.namespace,
        labels=meta.labels,
        annotations=meta.annotations,
        owner_references=meta.owner_references,
    )


def as_it_comes(work: Work, comings: int) -> Pod:
    """The pod of some work when it comes for the nth time: nothing has been decided, and it runs as long again."""
    pod, meta = work.pod, work.pod.metadata
    behaviour = {names.START_SECONDS: f"{work.starts_in:g}", names.STOP_SECONDS: f"{work.stops_in:g}"}
    policy = pod.spec.restart_policy
    if work.runs_for is not None:
        policy = "Never"
        behaviour |= {names.RUN_SECONDS: f"{work.runs_for:g}", names.EXIT_CODE: "1" if work.fails else "0"}
    annotations = {key: value for key, value in meta.annotations.items() if key not in behaviour} | behaviour
    name = meta.name if comings == 1 else f"{meta.name[:240]}-again-{comings}"
    fresh = replace(_fresh(meta), name=name, annotations=annotations)
    spec = replace(
        pod.spec,
        node_name=work.node if comings == 1 else "",
        scheduler_name=DEFAULT_SCHEDULER,
        active_deadline_seconds=None,
        restart_policy=policy,
        scheduling_gates=pod.spec.scheduling_gates if comings == 1 else (),
    )
    return Pod(kind=pod.kind, api_version=pod.api_version, metadata=fresh, spec=spec)
