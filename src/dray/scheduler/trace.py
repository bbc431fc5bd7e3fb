"""What happens in one attempt, extension point by extension point: for metrics, and for the log.

    PreEnqueue ─▶ PreFilter ─▶ Filter ─┬─▶ Reserve ─▶ PreBind ─▶ Bind
                                       │              └─(failed)─▶ Unreserve
                                       └─(nothing fits)─▶ PostFilter

That is the order in which Kubernetes calls its plugins (4381-202). With -v=4 the log has the start and the end of each
attempt, with -v=5 every step (4381-222).
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Final

import msgspec

from dray.scheduler.metrics import SchedulerMetrics
from dray.scheduling.plugin import Plugin
from dray.scheduling.pod_info import PodInfo
from dray.scheduling.refusal import Preempts, Refused
from dray.scheduling.text import tell

PROGRESS_FROM: Final = 4
STEPS_FROM: Final = 5

SUCCESS: Final = "Success"
UNSCHEDULABLE: Final = "Unschedulable"
ERROR: Final = "Error"

log = logging.getLogger("dray.scheduler")


class TraceStep(msgspec.Struct, frozen=True):
    """An extension point of one attempt. `plugin` is named where it did all the work."""

    point: str
    seconds: float
    status: str = SUCCESS
    plugin: str = ""


class Trace:
    """Follows one attempt. Times are taken between calls of `done`."""

    __slots__ = ("_clock", "_has_claims", "_metrics", "_since", "_verbosity", "pod", "steps")

    def __init__(
        self, pod: PodInfo, clock: Callable[[], float], metrics: SchedulerMetrics | None = None, verbosity: int = 0
    ) -> None:
        self.pod = str(pod.name)
        self.steps: list[TraceStep] = []
        self._has_claims = pod.wants_devices
        self._clock = clock
        self._metrics = metrics
        self._verbosity = verbosity
        self._since = clock()
        if verbosity >= PROGRESS_FROM:
            log.info("attempting to schedule pod %s", self.pod)

    def done(self, point: str, status: str = SUCCESS, detail: str = "") -> None:
        """An extension point has ended."""
        now = self._clock()
        step = TraceStep(point, now - self._since, status, Plugin.DYNAMIC_RESOURCES if self._has_claims else "")
        self._since = now
        self.steps.append(step)
        if self._metrics is not None:
            self._metrics.took(point, status, step.plugin, step.seconds)
        if self._verbosity >= STEPS_FROM:
            fields = {"pod": self.pod, "status": status, "ms": round(step.seconds * 1000, 3)}
            log.info("%s%s", point, f": {detail}" if detail else "", extra={"fields": fields})

    def refused(self, refused: Refused) -> None:
        """There is no node; a claim that is in the way may be given up, or pods made to go (PostFilter)."""
        message = tell(refused)
        if not self.steps:
            self.done("PreEnqueue", UNSCHEDULABLE, message)
        elif self.steps[-1].status == SUCCESS:
            self.done("Filter", UNSCHEDULABLE, message)
            helps = refused.unused_claims or isinstance(refused.preemption, Preempts)
            self.done("PostFilter", SUCCESS if helps else UNSCHEDULABLE)
        self.ended(message)

    def ended(self, result: str) -> None:
        """The attempt is over."""
        if self._verbosity >= PROGRESS_FROM:
            log.info("pod %s: %s", self.pod, result)
