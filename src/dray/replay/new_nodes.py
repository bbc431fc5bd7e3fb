"""Nodes that are added in a replay when pods wait: what a cluster autoscaler would do, asked of `dray.scale_up`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain
from typing import Final

from msgspec.structs import replace

from dray.api import kinds
from dray.api.generated.core import Pod
from dray.api.meta import Object
from dray.process.clock import Clock
from dray.reconcile import Informers
from dray.recording import RECORDED
from dray.replay.player import Player
from dray.scale_up import NodeGroup, plan
from dray.snapshot import from_objects

LOOK_SECONDS: Final = 10.0
PATIENCE_SECONDS: Final = 30.0
"""So long a pod waits before a node is added for it."""


class NewNodes:
    """Adds nodes and never takes one away. `added` counts them by group."""

    def __init__(self, player: Player, clock: Clock, informers: Informers, groups: Sequence[NodeGroup]) -> None:
        self._player = player
        self._clock = clock
        self._informers = [informers.of(kind, Object) for kind in RECORDED]
        self._pods = informers.of(kinds.PODS, Pod)
        self._groups = groups
        self._waiting: dict[str, float] = {}
        self._in_vain: frozenset[str] = frozenset()
        self.added: dict[str, int] = {group.name: 0 for group in groups}

    async def run(self) -> None:
        """Looks now and then, until cancelled."""
        while self._groups:
            await self._clock.sleep(LOOK_SECONDS)
            patient = frozenset(self._patient())
            if patient and patient != self._in_vain:
                self._in_vain = frozenset() if await self._add() else patient

    def _patient(self) -> Iterator[str]:
        """The pods that have waited long enough."""
        now = self._clock.monotonic()
        pods = [pod for pod in self._pods if not pod.spec.node_name and not pod.spec.scheduling_gates]
        self._waiting = {pod.metadata.uid: self._waiting.get(pod.metadata.uid, now) for pod in pods}
        return (uid for uid, since in self._waiting.items() if now - since >= PATIENCE_SECONDS)

    async def _add(self) -> bool:
        """Adds what helps; whether anything did."""
        left = [replace(group, limit=group.limit - self.added[group.name]) for group in self._groups]
        snapshot = from_objects(chain.from_iterable(self._informers), has_all_nodes=True)
        answer = plan(snapshot, left)
        for group, found in zip(self._groups, answer.groups, strict=True):
            for obj in group.objects if found.nodes else ():
                await self._player.put(obj)
            for _ in range(found.nodes):
                self.added[group.name] += 1
                machine = group.machine(f"{group.name}-{self.added[group.name]}")
                for obj in (machine.node, *machine.slices):
                    await self._player.put(obj)
        return any(found.nodes for found in answer.groups)
