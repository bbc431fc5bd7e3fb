"""Which containers of a pod are to start now, and whether the pod has come to its end. Pure.

init containers one after the other ─▶ all others together ─▶ ended, by restartPolicy: again later, or done
sidecars (init containers that always restart) start in order and go on beside the others
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import msgspec

from dray.api.backoff import Backoff
from dray.api.generated.core import Container, PodSpec
from dray.api.pods import FAILED, SUCCEEDED

RESTARTS: Final = Backoff(first=10.0, longest=300.0)
STEADY_SECONDS: Final = 600.0
"""Who ran for so long starts anew without waiting."""
FAILED_STARTS: Final = Backoff(first=1.0, longest=60.0)


class Ended(msgspec.Struct, frozen=True):
    """A run of a container that is over; `code` is None if nobody knows."""

    code: int | None
    started_at: float
    finished_at: float
    identity: str = ""

    @property
    def well(self) -> bool:
        """Whether it did what it should."""
        return self.code == 0


class View(msgspec.Struct, frozen=True):
    """A container as it stands: running, ended, or not started (yet, or because that failed)."""

    restarts: int = 0
    running_since: float | None = None
    identity: str = ""
    ended: Ended | None = None
    before: Ended | None = None
    start_failures: int = 0
    failed_at: float = 0.0
    reason: str = ""
    message: str = ""

    @property
    def running(self) -> bool:
        """Whether it runs."""
        return self.running_since is not None


class PodPlan(msgspec.Struct, frozen=True):
    """What to start now, after how many seconds to look again, and the phase in which the pod has ended, if it has."""

    start: tuple[str, ...] = ()
    again_in: float | None = None
    outcome: str = ""


NEW: Final = View()


def plan(spec: PodSpec, views: Mapping[str, View], now: float) -> PodPlan:
    """The next step of a pod whose claims are prepared."""
    turns = _Turns(spec, views, now)
    for container in spec.init_containers:
        view = views.get(container.name, NEW)
        if is_sidecar(container):
            if not turns.consider(container) and not view.running and view.ended is None:
                return turns.plan()
        elif view.ended is None or not view.ended.well:
            if view.ended is not None and not must_restart(spec, container, view.ended):
                return PodPlan(outcome=FAILED)
            turns.consider(container)
            return turns.plan()
    for container in spec.containers:
        turns.consider(container)
    return turns.plan(outcome(spec, views))


def outcome(spec: PodSpec, views: Mapping[str, View]) -> str:
    """Succeeded or Failed once all containers have ended for good; empty before."""
    ended = [views.get(container.name, NEW).ended for container in spec.containers]
    for container, end in zip(spec.containers, ended, strict=True):
        if end is None or must_restart(spec, container, end):
            return ""
    return SUCCEEDED if all(end is not None and end.well for end in ended) else FAILED


def is_initialized(spec: PodSpec, views: Mapping[str, View]) -> bool:
    """Whether all init containers have done their work."""
    for container in spec.init_containers:
        view = views.get(container.name, NEW)
        done = view.running or view.ended is not None if is_sidecar(container) else _well(view)
        if not done:
            return False
    return True


def is_sidecar(container: Container) -> bool:
    """Whether an init container goes on beside the others."""
    return container.restart_policy == "Always"


def must_restart(spec: PodSpec, container: Container, ended: Ended) -> bool:
    """Whether a container that ended is to run again."""
    policy = container.restart_policy or spec.restart_policy or "Always"
    if policy == "Always":
        # Init containers run until they succeed, whatever the pod does otherwise.
        return is_sidecar(container) or container not in spec.init_containers or not ended.well
    return policy == "OnFailure" and not ended.well


def backoff(view: View) -> float:
    """How long a container that ended waits: the first time not at all, then twice as long each time."""
    ended = view.ended
    if ended is None or not view.restarts or ended.finished_at - ended.started_at >= STEADY_SECONDS:
        return 0.0
    return RESTARTS.after(view.restarts)


class _Turns:
    """Collects what is due."""

    def __init__(self, spec: PodSpec, views: Mapping[str, View], now: float) -> None:
        self._spec = spec
        self._views = views
        self._now = now
        self._start: list[str] = []
        self._waits: list[float] = []

    def consider(self, container: Container) -> bool:
        """Notes when a container is to start, if it is; True if that is later."""
        view = self._views.get(container.name, NEW)
        if view.running or (view.ended is not None and not must_restart(self._spec, container, view.ended)):
            return False
        wait = 0.0
        if view.start_failures:
            wait = self._left(view.failed_at, FAILED_STARTS.after(view.start_failures))
        elif view.ended is not None:
            wait = self._left(view.ended.finished_at, backoff(view))
        if wait <= 0.0:
            self._start.append(container.name)
            return False
        self._waits.append(wait)
        return True

    def _left(self, since: float, pause: float) -> float:
        """What is left of a pause. A clock that is set back by hours makes none of it longer, but ends it."""
        return since + pause - self._now if since <= self._now else 0.0

    def plan(self, outcome: str = "") -> PodPlan:
        return PodPlan(tuple(self._start), min(self._waits, default=None), outcome)


def _well(view: View) -> bool:
    return view.ended is not None and view.ended.well
