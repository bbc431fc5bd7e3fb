"""The pods of a workload made anew, in memory: so many new ones come before old ones go, and so many may be missing.

new ones come, as long as there are not too many, and quotas let them in ─▶ they get places, if there are any ─▶
old ones go, as long as enough are left ─▶ … until all are new, or nothing moves any more
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from dray.api.generated.apps import Deployment, StatefulSet
from dray.api.generated.core import Pod
from dray.api.meta import Object
from dray.api.references import is_owned_by
from dray.api.shares import resolve
from dray.scheduling.pod_info import PodInfo
from dray.scheduling.refusal import Refused
from dray.scheduling.rehearsal import Rehearsal
from dray.scheduling.text import tell
from dray.snapshot.quota_room import KeptOut
from dray.what_if.making_room import Preemption, let_go
from dray.what_if.newcomers import Insecure, Newcomers

DEFAULT_SHARE = "25%"


class Bounds(NamedTuple):
    """How many pods are wanted, and how many there may be too many or too few while they are made anew."""

    wanted: int
    surge: int = 0
    unavailable: int = 0


def bounds_of(workload: Object, wanted: int) -> Bounds:
    """What a workload says; of one that says nothing, all old ones go first."""
    if isinstance(workload, Deployment) and workload.spec.strategy.type != "Recreate":
        rolling = workload.spec.strategy.rolling_update
        given = (rolling.max_surge, rolling.max_unavailable) if rolling is not None else (None, None)
        surge, unavailable = (DEFAULT_SHARE if one is None else one for one in given)
        more, fewer = resolve(surge, wanted, up=True), min(resolve(unavailable, wanted, up=False), wanted)
        return Bounds(wanted, more, fewer if more or fewer else 1)
    if isinstance(workload, StatefulSet):
        update = workload.spec.update_strategy.rolling_update
        away = update.max_unavailable if update is not None else None
        return Bounds(wanted, 0, max(resolve(away, wanted, up=False), 1))
    return Bounds(wanted, 0, wanted)


class Rollout:
    """What became of the new pods: those that have a place, and why the first of the others has none."""

    def __init__(
        self, rehearsal: Rehearsal, old: Sequence[Pod], new: Sequence[PodInfo], bounds: Bounds, room: Newcomers
    ) -> None:
        self.fitting = 0
        self.victims: list[str] = []
        """Pods of lower priority that go for new ones."""
        self._refused: Refused | None = None
        self._kept_out: KeptOut | Insecure | None = None
        self._rehearsal = rehearsal
        self._room = room
        self._bounds = bounds
        self._old = [pod for pod in old if pod.spec.node_name]
        self._idle = [pod for pod in old if not pod.spec.node_name]
        """Old pods that have no node, and hold nothing but what quotas count."""
        self._preemption = Preemption(rehearsal)
        self._to_make = list(reversed(new))
        self._waiting: list[PodInfo] = []

    def play(self) -> None:
        """To its end."""
        while self._make() + self._place() + self._leave():
            pass

    @property
    def why_not(self) -> str:
        """Why the first pod that has no place has none."""
        if self._refused is not None:
            return tell(self._refused)
        return str(self._kept_out) if self._kept_out is not None else ""

    @property
    def _total(self) -> int:
        return len(self._old) + len(self._idle) + self.fitting + len(self._waiting)

    def _make(self) -> int:
        room = self._bounds.wanted + self._bounds.surge - self._total
        made = 0
        self._kept_out = None
        while made < room and self._to_make and self._kept_out is None:
            self._kept_out = self._room.let_in(self._brings(self._to_make[-1]))
            if self._kept_out is None:
                self._waiting.append(self._to_make.pop())
                made += 1
        return made

    def _brings(self, pod: PodInfo) -> list[Object]:
        """A pod and the claims that are made for it."""
        claims = (self._rehearsal.cluster.claims.get(name) for name in pod.claims)
        return [pod.pod, *(one for one in claims if one is not None and is_owned_by(one, pod.pod))]

    def _place(self) -> int:
        left: list[PodInfo] = []
        self._refused = None
        for pod in self._waiting:
            answer = self._rehearsal.find_places(pod)
            if not isinstance(answer, Refused):
                self._rehearsal.bind(pod, answer[0])
            elif (preempted := self._preemption.make_room(pod, answer)) is not None:
                self.victims += preempted.pods
                self._room.give_back(preempted.gone)
            else:
                self._refused = self._refused or answer
                left.append(pod)
        placed = len(self._waiting) - len(left)
        self.fitting += placed
        self._waiting = left
        return placed

    def _leave(self) -> int:
        least = self._bounds.wanted - self._bounds.unavailable
        idle = min(len(self._idle), max(self._total - least - len(self._waiting), 0))
        for _ in range(idle):
            self._room.give_back(let_go(self._rehearsal, self._idle.pop()))
        count = min(len(self._old), max(len(self._old) + self.fitting - least, 0))
        for _ in range(count):
            self._room.give_back(let_go(self._rehearsal, self._old.pop()))
        return idle + count
