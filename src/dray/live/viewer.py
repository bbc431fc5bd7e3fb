"""A cluster as one viewer may see it, live: everything comes through that viewer's client, with no other rights.

    client of the viewer ─▶ rights (what may be listed) ─▶ informers ─▶ turns ─▶ cluster, log
                                                                              └▶ rows of the fleet, refreshed when calm

What the viewer may not read is named in `missing`. Rights are asked for again and again: when they have changed,
`is_outdated` says so, and whoever keeps the viewer starts a new one.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections.abc import Coroutine, Iterable, Iterator
from datetime import datetime
from itertools import chain
from typing import Any, Final

from dray import cel
from dray.api import kinds
from dray.api.generated.core import Event, Node, Pod
from dray.api.meta import Object
from dray.api.nodes import is_ready
from dray.api.references import ObjectName
from dray.api.registry import Kind
from dray.api.resource import DeviceClass, DeviceTaintRule, ResourceClaim
from dray.api.resource.pool import PoolKey
from dray.api.status import ApiError
from dray.client import Client, Informer
from dray.client.calls import list_if_served
from dray.live.rights import Sight, find_sights
from dray.live.turns import TURN_SECONDS, Handler, Turns
from dray.process.clock import as_time
from dray.reconcile import Clock
from dray.reconcile.later_turns import LaterTurns
from dray.reconcile.selector_work import SelectorWork
from dray.scheduling.cluster import Cluster
from dray.scheduling.device_states import differs_for_devices
from dray.snapshot import Snapshot, from_objects
from dray.tracker import AT_ONCE, Remove, Upsert
from dray.views import fleet, waiting
from dray.views.timeline import Log

FOLLOWED: Final = (*kinds.TRACKED, kinds.NODES, kinds.CLAIMS, kinds.PODS, kinds.EVENTS)
VOLUMES: Final = (kinds.VOLUMES, kinds.VOLUME_CLAIMS, kinds.STORAGE_CLASSES)
ASKED_FOR: Final = (
    *(kinds.TEMPLATES, kinds.BUDGETS, kinds.NAMESPACES, kinds.POD_GROUPS, kinds.PRIORITY_CLASSES),
    *(*VOLUMES, *kinds.STORAGE_LIMITS),
)
"""What answers need besides, and nobody looks at meanwhile."""

RIGHTS_SECONDS: Final = 30.0
SAMPLE_SECONDS: Final = 5.0
CALM_SECONDS: Final = 0.25
PAUSE_SECONDS: Final = 0.5
"""A pod is created, given its devices and started within that, as a rule: one change instead of ten."""
SELECTOR_SECONDS: Final = 10.0
"""What the selectors of a rule or patch may take for all devices together."""
EVENTS_SECONDS: Final = 10.0
"""So long the first answer with events in it waits for them."""
SHARE: Final = 30
"""Looking at everything may take one part in so many of the time."""

log = logging.getLogger(__name__)


class Viewer:
    """`start`, look as often as one likes, `stop`."""

    def __init__(self, client: Client, clock: Clock, namespace: str = "", *, pause: float = PAUSE_SECONDS) -> None:
        """What happens to an object within `pause` seconds is one change: 0 if the client's watches see to that."""
        self.client: Final = client
        self._pause = pause
        self.namespace: Final = namespace
        self._backlog = cel.Backlog(clock.monotonic)
        self.cluster: Final = Cluster(backlog=self._backlog, at_once=AT_ONCE)
        self.rows: Final = fleet.FleetRows()
        self.log: Final = Log()
        self.totals = fleet.FleetTotals()
        self.sights: tuple[Sight, ...] = ()
        self.is_outdated = False
        self.version = 0
        """Counts changes of anything."""
        self._clock = clock
        self._informers: dict[Kind, Informer[Any]] = {}
        self._tasks: list[asyncio.Task[None]] = []
        self._turns = Turns(self._on_done, clock.sleep)
        self._selector_work = SelectorWork(self._backlog, clock, self._on_selectors, seconds=SELECTOR_SECONDS)
        self._later = LaterTurns(lambda: self.cluster.is_behind, self._on_behind)
        self._news = asyncio.Event()
        self._dirty = asyncio.Event()
        self._waiting: set[str] = set()
        self._ready: set[str] = set()
        self._leaving: dict[str, tuple[ObjectName, ...]] = {}
        self._touched: set[PoolKey] = set()
        """Pools to look at again."""
        self._nodes_differ = True
        """Whether all of them have to be looked at, since nodes came, went, or take pods or not by now."""
        self._is_current = False
        self._lost = ""

    @property
    def missing(self) -> list[str]:
        """What the viewer may not see, a sentence each; first, that the cluster does not answer, if it does not."""
        return [*([self._lost] if self._lost else []), *(told for sight in self.sights if (told := sight.told()))]

    @property
    def sees_all_claims(self) -> bool:
        """Whether a device that looks free is."""
        return any(one.kind is kinds.CLAIMS and one.allowed and not one.namespace for one in self.sights)

    async def start(self) -> None:
        """Everything that may be seen has been read once, and is kept current. Raises ApiError or OSError."""
        self.sights = await find_sights(self.client, FOLLOWED, self.namespace)
        run = self._run
        run(self._turns.run())
        run(self._selector_work.run())
        for sight in self.sights:
            if sight.allowed and sight.kind is not kinds.EVENTS:
                self._follow(sight)
        for informer in self._informers.values():
            await informer.synced()
        await self._turns.idle.wait()
        self._is_current = True
        self._turns.pause = self._pause
        await self._refresh()
        run(self._keep_refreshed())
        run(self._keep_sampling())
        run(self._keep_asking())

    async def stop(self) -> None:
        """Ends all watches; who still looks is told to come again."""
        self._later.stop()
        tasks, self._tasks = self._tasks, []
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        self._give_up()

    def _run(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        task.add_done_callback(self._on_end)
        self._tasks.append(task)

    def _on_end(self, task: asyncio.Task[None]) -> None:
        """A part that failed leaves a view that is not current: the next who looks gets another."""
        error = None if task.cancelled() else task.exception()
        if error is not None:
            log.error("a view of the cluster failed: %s", error, exc_info=error)
            self._give_up()

    def _give_up(self) -> None:
        self.is_outdated = True
        self._tell()

    def _follow(self, sight: Sight) -> None:
        kind = sight.kind
        informer: Informer[Any] = Informer(self.client, kind, namespace=sight.namespace, sleep=self._clock.sleep)
        handlers: dict[Kind, Handler] = {
            kinds.NODES: self._on_node,
            kinds.CLAIMS: self._on_claim,
            kinds.PODS: self._on_pod,
        }
        if kind is kinds.EVENTS:
            informer.on_change(self._on_event)
        else:
            informer.on_change(self._turns.later(handlers.get(kind, self._on_tracked)))
        self._informers[kind] = informer
        self._run(informer.run())

    # What there is

    def of(self, kind: Kind) -> Iterator[Any]:
        """The objects of a kind that the viewer sees."""
        informer = self._informers.get(kind)
        return iter(informer) if informer is not None else iter(())

    def find(self, kind: Kind, namespace: str, name: str) -> Any | None:
        """One object, None if it is not there or not to be seen."""
        informer = self._informers.get(kind)
        return informer.get(namespace, name) if informer is not None else None

    async def events(self) -> list[Event]:
        """What was told of the cluster, followed from the first time that somebody asks: there are many of them."""
        sight = next(one for one in self.sights if one.kind is kinds.EVENTS)
        if not sight.allowed:
            return []
        if kinds.EVENTS not in self._informers:
            self._follow(sight)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(EVENTS_SECONDS):
                await self._informers[kinds.EVENTS].synced()
        return list(self.of(kinds.EVENTS))

    @property
    def pending_pods(self) -> int:
        """How many pods wait for a node."""
        return len(self._waiting)

    @property
    def ready_nodes(self) -> tuple[int, int]:
        """How many nodes are ready, and how many there are."""
        nodes = self._informers.get(kinds.NODES)
        return len(self._ready), len(nodes) if nodes is not None else 0

    async def snapshot(self) -> Snapshot:
        """What the viewer sees as a value, for answers that take a while. Raises ApiError or OSError."""
        seen = [list(self.of(kind)) for kind in FOLLOWED if kind is not kinds.EVENTS]
        asked_for = {kind: await self._asked_for(kind) for kind in ASKED_FOR}
        seen += [found or [] for found in asked_for.values()]
        knows_volumes = all(asked_for[kind] is not None for kind in VOLUMES)
        return await asyncio.to_thread(_as_snapshot, seen, knows_volumes)

    async def _asked_for(self, kind: Kind) -> list[Object] | None:
        """The objects of a kind; None if the viewer may not see them."""
        try:
            return list(await list_if_served(self.client, kind, self.namespace if kind.namespaced else "") or ())
        except ApiError as error:
            if error.code != 403:
                raise
            return None

    async def changed(self, version: int, seconds: float) -> bool:
        """Waits until something is different from a version, or until the time is over; whether something is."""
        if self.version == version:
            try:
                async with asyncio.timeout(seconds):
                    await self._news.wait()
            except TimeoutError:
                return False
        return True

    # What happens

    def _on_tracked(self, old: Any, new: Any) -> None:
        if isinstance(new, DeviceClass):
            self.cluster.set_class(new.metadata.name, new)
        elif isinstance(old, DeviceClass) and new is None:
            self.cluster.set_class(old.metadata.name, None)
        self._backlog.begin_turn("", TURN_SECONDS)
        self._touched |= self.cluster.track(Upsert(new) if new is not None else Remove.of(old))
        self._selector_work.look()
        self._later.look()
        if isinstance(old, DeviceTaintRule) and self._is_current:
            self.log.rule(old, new, self._now)

    def _on_claim(self, old: ResourceClaim | None, new: ResourceClaim | None) -> None:
        known = new if new is not None else old
        if known is None:
            return
        # What went may have changed once more before it did: what counts is what it was here.
        before = self.cluster.claims.get(ObjectName.of(known))
        self.cluster.set_claim(old, new)
        self._touch(before)
        self._touch(new)
        if self._is_current:
            self.log.claim(before, new, self._now)

    def _on_node(self, old: Node | None, new: Node | None) -> None:
        self.cluster.set_node(old, new)
        if new is not None and is_ready(new):
            self._ready.add(new.metadata.name)
        elif (known := new if new is not None else old) is not None:
            self._ready.discard(known.metadata.name)
        self._nodes_differ |= old is None or new is None or differs_for_devices(old, new)
        if self._is_current:
            self.log.node(old, new, self._now)

    def _on_pod(self, old: Pod | None, new: Pod | None) -> None:
        known = new if new is not None else old
        if known is None:
            return
        uid = known.metadata.uid
        if new is not None and waiting.is_waiting(new):
            self._waiting.add(uid)
        else:
            self._waiting.discard(uid)
        before = self._leaving.pop(uid, ())
        if new is not None and new.metadata.deletion_timestamp is not None:
            self._leaving[uid] = tuple(_claims_of(new))
        for claim in {*before, *self._leaving.get(uid, ())}:
            self._touch(self.cluster.claims.get(claim))

    def _touch(self, claim: ResourceClaim | None) -> None:
        """What a claim has looks different now."""
        if claim is not None and claim.status.allocation is not None:
            self._touched.update((one.driver, one.pool) for one in claim.status.allocation.devices.results)

    def _on_event(self, _old: Any, _new: Any) -> None:
        """Events are looked at when somebody asks: there are many, and only the newest of them count."""
        self._dirty.set()

    def _on_selectors(self) -> None:
        self._backlog.begin_turn("", TURN_SECONDS)
        self._touched |= self.cluster.resume()
        self._selector_work.look()
        self._later.look()
        self._dirty.set()

    def _on_behind(self) -> None:
        """A rule, patch or class concerns more devices than one turn is long enough for."""
        self._backlog.begin_turn("", TURN_SECONDS)
        self._touched |= self.cluster.go_on()
        self._selector_work.look()
        self._dirty.set()

    def _on_done(self) -> None:
        self._dirty.set()

    def _tell(self) -> None:
        self.version += 1
        self._news.set()
        self._news = asyncio.Event()

    # What goes on meanwhile

    async def _keep_refreshed(self) -> None:
        while True:
            await self._dirty.wait()
            self._dirty.clear()
            spent = await self._refresh()
            self._tell()
            await self._clock.sleep(max(CALM_SECONDS, SHARE * spent))

    async def _refresh(self) -> float:
        """Looks at what changed, with turns for others in between; the seconds of work that it took, without theirs."""
        leaving = {str(one) for one in chain.from_iterable(self._leaving.values())}
        touched, self._touched = self._touched, set()
        if self._nodes_differ:
            self._nodes_differ = False
            steps = self.rows.refresh(self.cluster, leaving)
        else:
            steps = self.rows.refresh_pools(self.cluster, touched, leaving)
        spent, began = 0.0, time.thread_time()
        for _ in steps:
            if time.thread_time() - began > TURN_SECONDS:
                spent += time.thread_time() - began
                await asyncio.sleep(0)
                began = time.thread_time()
        self.totals = self.rows.totals
        return spent + time.thread_time() - began

    async def _keep_sampling(self) -> None:
        while True:
            self.log.sample(self.totals, self._now())
            await self._clock.sleep(SAMPLE_SECONDS)

    async def _keep_asking(self) -> None:
        """A right that was taken away, or given, makes another view of it."""
        while not self.is_outdated:
            await self._clock.sleep(RIGHTS_SECONDS)
            try:
                self.is_outdated = await find_sights(self.client, FOLLOWED, self.namespace) != self.sights
            except ApiError as error:
                self.is_outdated = error.code in (401, 403)
            except OSError as error:
                self._note_loss(f"the cluster does not answer, this is how it was at {self._now()} ({error})")
                continue
            self._note_loss("")
        self._tell()

    def _note_loss(self, lost: str) -> None:
        """The time of the first is kept."""
        if bool(lost) != bool(self._lost):
            self._lost = lost
            self._tell()

    def now(self) -> datetime:
        """What time it is in the cluster."""
        return as_time(self._clock.now()).datetime()

    def _now(self) -> str:
        return str(as_time(self._clock.now()))


def _claims_of(pod: Pod) -> Iterator[ObjectName]:
    """The claims of a pod."""
    made = {one.name: one.resource_claim_name for one in pod.status.resource_claim_statuses}
    for ref in pod.spec.resource_claims:
        name = ref.resource_claim_name or made.get(ref.name)
        if name:
            yield ObjectName(pod.metadata.namespace, name)


def _as_snapshot(seen: Iterable[Iterable[Object]], knows_volumes: bool) -> Snapshot:
    return from_objects(chain.from_iterable(seen), has_all_nodes=True, has_all_volumes=knows_volumes)
