"""Runs a history on virtual time: a day takes seconds, and the same history is the same answer."""

from __future__ import annotations

import asyncio
import gc
import logging
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

import msgspec

from dray.api import kinds
from dray.api.generated.core import Pod
from dray.api.meta import Object
from dray.process import virtual_loop
from dray.process.clock import Clock
from dray.process.tasks import cancel_all
from dray.process.virtual_loop import LoopClock
from dray.reconcile import Informers
from dray.recording import RECORDED
from dray.replay.changes import Changes
from dray.replay.control_plane import ControlPlane, client_of, memory_server
from dray.replay.history import History, Place
from dray.replay.measures import Measures, ReplayObserver, moments
from dray.replay.new_nodes import NewNodes
from dray.replay.player import Player

MOST_TURNS: Final = 10_000_000
"""A cluster that is set up, or a thousand pods that come at once, keep the loop busy for a while."""
TIDY_EVERY: Final = 20
"""After so many looks at the devices, what is not needed any more is let go."""


class Replayed(msgspec.Struct, frozen=True, kw_only=True):
    """What came of a replay."""

    measures: Measures
    refused: int
    """How many of the recorded changes the server did not accept."""
    problems: tuple[str, ...]
    nodes_added: dict[str, int]
    """By node group."""


def measure(history: History) -> Measures:
    """What came of a history when it was recorded."""
    observer = ReplayObserver()
    there: dict[Place, Object] = {}
    looks = iter(moments(history.start, history.end))
    next_look = next(looks, None)
    for number, change in enumerate(history.seen):
        if number == history.seen_first:
            observer.begin(history.start)
        while number >= history.seen_first and next_look is not None and change.at > next_look:
            observer.sample(next_look)
            next_look = next(looks, None)
        old = there.pop(change.place, None)
        if change.object is not None:
            there[change.place] = change.object
        if old is not None or change.object is not None:
            observer.change(old, change.object, change.at)
    if history.seen_first >= len(history.seen):
        observer.begin(history.start)
    while next_look is not None:
        observer.sample(next_look)
        next_look = next(looks, None)
    return observer.measures()


def replay(history: History, changes: Changes | None = None, pace: float | None = None) -> Replayed:
    """Runs a history; with a `pace`, so many of its seconds in one. Raises SettingsError."""
    with _quietly(), _frozen():
        return virtual_loop.run(_replay(history, changes or Changes()), pace, MOST_TURNS)


async def _replay(history: History, changes: Changes) -> Replayed:
    clock = LoopClock(history.start)
    observer = ReplayObserver()
    async with memory_server(clock) as server:
        client = client_of(server)
        control = ControlPlane(client, clock, changes.settings)
        player = Player(client, clock, history, changes.objects)
        _watch(control.informers, observer, clock)
        control.informers.of(kinds.PODS, Pod).on_change(player.on_pod)
        new_nodes = NewNodes(player, clock, control.informers, changes.groups)
        await player.set_up()
        await control.follow()
        observer.begin(history.start)
        await control.start()
        growing = asyncio.create_task(new_nodes.run())
        for number, moment in enumerate(moments(history.start, history.end), 1):
            await player.run(moment)
            observer.sample(moment)
            if number % TIDY_EVERY == 0:
                await server.store.compact()
                gc.collect()
        found = observer.measures()
        await cancel_all([growing])
        await player.close()
        problems = [*player.problems, *(f"{name}: {why}" for name, why in control.problems.items())]
        await control.stop()
    added = {name: count for name, count in new_nodes.added.items() if count}
    return Replayed(measures=found, refused=player.refused, problems=tuple(problems), nodes_added=added)


def _watch(informers: Informers, observer: ReplayObserver, clock: Clock) -> None:
    def tell(old: Object | None, new: Object | None) -> None:
        observer.change(old, new, clock.now())

    for kind in RECORDED:
        informers.of(kind, Object).on_change(tell)


@contextmanager
def _quietly() -> Iterator[None]:
    """What components say in their logs is about a cluster that does not exist."""
    log = logging.getLogger("dray")
    level = log.level
    log.setLevel(logging.CRITICAL)
    try:
        yield
    finally:
        log.setLevel(level)


@contextmanager
def _frozen() -> Iterator[None]:
    """What was there before is left out when the garbage collector looks for cycles."""
    gc.freeze()
    try:
        yield
    finally:
        gc.unfreeze()
