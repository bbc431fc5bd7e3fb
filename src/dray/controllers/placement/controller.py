"""The shell: feeds the engine with what the API shows, wakes it when time alone changes something, hands out writes."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from datetime import UTC, datetime
from itertools import chain
from typing import Any

from dray.api.cluster import Placement, PlacementDecision
from dray.api.cluster.placement_decision import PLACEMENT_LABEL
from dray.api.kinds import ADD_ON_SCORES, CLUSTER_SET_BINDINGS, CLUSTER_SETS, CLUSTERS, DECISIONS, PLACEMENTS
from dray.api.references import ObjectName
from dray.client import Informer
from dray.controllers.context import Context
from dray.controllers.placement.plan import plan_writes
from dray.controllers.placement.writer import Writer
from dray.controllers.queue_controller import QueueController
from dray.placement import Engine, Event, PlacementResult, decision_names
from dray.placement.moments import MICROS_PER_SECOND
from dray.process.clock import as_time
from dray.reconcile import Wakeup

FLEET = (CLUSTERS, CLUSTER_SETS, CLUSTER_SET_BINDINGS, ADD_ON_SCORES)
BY_PLACEMENT = "placement"
WORKERS = 8

NOTES_AFTER = 5.0
"""Seconds after which a changed fleet shows in the status of placements whose decisions it did not change."""
NOTES_AT_ONCE = 10
NOTES_PAUSE = 0.2


class PlacementController(QueueController[ObjectName]):
    """Keys are placements whose decisions or status may have to be written."""

    name = "placement-controller"

    def __init__(self, context: Context) -> None:
        """Registers with the informers of the fleet, of placements and of their decisions."""
        of = context.informers.of
        self._placements = of(PLACEMENTS, Placement)
        self._decisions = of(DECISIONS, PlacementDecision)
        fleet: list[Informer[Any]] = [of(kind, kind.hub) for kind in FLEET]
        super().__init__(context, *fleet, self._decisions, self._placements, workers=WORKERS)
        self.engine = Engine()
        self._is_loaded = False
        self._noted = 0
        self._time = Wakeup(context.clock)
        self._notes = Wakeup(context.clock)
        self._writer = Writer(context.client, context.recorder(self.name), self._placements, self._decisions)
        self._decisions.add_index(BY_PLACEMENT, lambda decision: (_owner(decision),))
        self._placements.on_change(self._placement_changed)
        self._decisions.on_change(self._decision_changed)
        for informer in self.informers:
            informer.on_change(self._changed)

    async def run(self) -> None:
        """Decides, and writes what was decided, until cancelled. Starts from what the API shows."""
        await self._load()
        async with asyncio.TaskGroup() as group:
            group.create_task(super().run())
            group.create_task(self._follow_time())
            group.create_task(self._follow_fleet())

    async def reconcile(self, key: ObjectName) -> float | None:
        """Writes a placement's decisions and its status, where the API shows others."""
        placement = self._placements.get(*key)
        result = self.engine.result(key)
        if placement is None or result is None or placement.metadata.deletion_timestamp is not None:
            return None
        if result.held is not None:
            await self._writer.tell_held(placement, result.held)
            return None
        note = self.engine.summary(key, self._now())
        existing = self._existing(key, result)
        plan = plan_writes(placement, result, existing, note, as_time(self._clock.now()))
        await self._writer.write(placement, result, plan, existing.values())
        return None

    async def _load(self) -> None:
        """Nothing is decided before everything is known: half a fleet would move everybody."""
        self._is_loaded = False
        for informer in self.informers:
            await informer.synced()
        self.engine = Engine()
        self.engine.load(chain.from_iterable(self.informers), self._now())
        self._is_loaded = True
        self._noted = self.engine.fleet.version
        self._add(ObjectName(*_place(placement)) for placement in self._placements)

    async def _follow_time(self) -> None:
        """Requeues at the first toleration to run out, over all placements (OCM-20)."""
        while True:
            self._add(self.engine.due(self._now()))
            due = self.engine.next_due
            await self._time.wait(None if due is None else due / MICROS_PER_SECOND - self._clock.now())

    async def _follow_fleet(self) -> None:
        """Brings the explanations in the placements up to date, some time after the fleet has changed, a few at a time.

        Decisions do not wait for this: it is for clusters that were not selected before and are not now.
        """
        while True:
            await self._notes.wait(None)
            await self._clock.sleep(NOTES_AFTER)
            self._noted = self.engine.fleet.version
            keys = [ObjectName(*_place(placement)) for placement in self._placements]
            for start in range(0, len(keys), NOTES_AT_ONCE):
                self._add(keys[start : start + NOTES_AT_ONCE])
                await self._clock.sleep(NOTES_PAUSE)

    def _changed(self, old: Any, new: Any) -> None:
        if not self._is_loaded:
            return
        event = Event(new if new is not None else old, deleted=new is None)
        self._add(self.engine.apply(event, self._now()))
        self._time.set()
        if self.engine.fleet.version != self._noted:
            self._notes.set()

    def _placement_changed(self, old: Placement | None, new: Placement | None) -> None:
        """A changed spec is told of in the status even if it decides the same; what others wrote there is put right."""
        if new is None and old is not None:
            self._writer.forget(old)
        if new is None or not self._is_loaded:
            return
        is_same_spec = old is not None and old.metadata.generation == new.metadata.generation
        if not is_same_spec or not self._writer.wrote(new):
            self.queue.add(ObjectName(*_place(new)))

    def _decision_changed(self, old: PlacementDecision | None, new: PlacementDecision | None) -> None:
        """What others wrote into a decision is put right, also if it names the same clusters."""
        if new is None and old is not None:
            self._writer.forget_decision(old)
        if new is not None and self._is_loaded and not self._writer.stated(new):
            self.queue.add(_owner(new))

    def _add(self, keys: Iterable[ObjectName]) -> None:
        for key in keys:
            self.queue.add(key)

    def _existing(self, key: ObjectName, result: PlacementResult) -> dict[str, PlacementDecision]:
        """The placement's PlacementDecisions, and any other that has the name of one."""
        found = {decision.metadata.name: decision for decision in self._decisions.by_index(BY_PLACEMENT, key)}
        for name in decision_names(key.name, result):
            other = self._decisions.get(key.namespace, name)
            if other is not None:
                found[name] = other
        return found

    def _now(self) -> datetime:
        return datetime.fromtimestamp(self._clock.now(), UTC)


def _place(placement: Placement) -> tuple[str, str]:
    return placement.metadata.namespace, placement.metadata.name


def _owner(decision: PlacementDecision) -> ObjectName:
    return ObjectName(decision.metadata.namespace, decision.metadata.labels.get(PLACEMENT_LABEL, ""))
