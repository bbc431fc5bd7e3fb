"""Numbers of the scheduler under the names that Kubernetes uses (4381-195 … 197, 4381-258).

Counting a decision costs a few additions. How long each extension point takes is noted for every attempt, or, when pods
come in thousands, for some of them.
"""

from __future__ import annotations

from collections import Counter as Counts
from collections.abc import Callable, Iterator
from typing import Final

from prometheus_client import CollectorRegistry
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from dray.api.references import ObjectName
from dray.process.histogram import Histogram, histogram_family
from dray.scheduler.queue import SchedulingQueue
from dray.scheduling.plugin import Plugin
from dray.scheduling.refusal import Refused

TRACES_PER_SECOND: Final = 100.0
"""How many attempts are looked at closely; as many at once if there were few before."""
ATTEMPT_BUCKETS: Final = tuple(0.001 * 2**power for power in range(15))
STEP_BUCKETS: Final = tuple(0.0001 * 2**power for power in range(12))
PLUGIN_BUCKETS: Final = tuple(0.00001 * 1.5**power for power in range(20))


class SchedulerMetrics(Collector):
    """Outlives the scheduler that it is about: one that failed and was made anew goes on counting."""

    def __init__(self, registry: CollectorRegistry, profile: str) -> None:
        self._profile = profile
        self._queue: Callable[[], SchedulingQueue | None] = lambda: None
        self._refusals: dict[ObjectName, Refused] = {}
        self._credit = TRACES_PER_SECOND
        self._credited_at = 0.0
        self._attempts: Counts[str] = Counts()
        self._durations: dict[tuple[str, ...], Histogram] = {}
        self._points: dict[tuple[str, ...], Histogram] = {}
        self._plugin_points: dict[tuple[str, ...], Histogram] = {}
        registry.register(self)

    def follow(self, queue: SchedulingQueue) -> None:
        """From now on the numbers of pending pods are those of this queue."""
        self._queue = lambda: queue
        self._refusals.clear()

    def wants_trace(self, now: float) -> bool:
        """Whether the attempt that starts now is one to look at closely."""
        earned = (now - self._credited_at) * TRACES_PER_SECOND
        self._credit = min(self._credit + earned, TRACES_PER_SECOND)
        self._credited_at = now
        if self._credit < 1.0:
            return False
        self._credit -= 1.0
        return True

    def attempted(self, result: str, seconds: float) -> None:
        """A decision was made; `result` is scheduled, unschedulable or error."""
        _at(self._durations, (result, self._profile), ATTEMPT_BUCKETS).observe(seconds)
        self._attempts[result] += 1

    def failed(self) -> None:
        """A decision could not be stored."""
        self._attempts["error"] += 1

    def refused(self, key: ObjectName, refused: Refused) -> None:
        """Notes what keeps a pod waiting."""
        queue = self._queue()
        if queue is not None and len(self._refusals) > 2 * len(queue) + 1000:
            self._forget_gone(queue)
        self._refusals[key] = refused

    def took(self, point: str, status: str, plugin: str, seconds: float) -> None:
        """An extension point has ended; `plugin` is named where it did all the work."""
        _at(self._points, (point, status, self._profile), STEP_BUCKETS).observe(seconds)
        if plugin:
            _at(self._plugin_points, (plugin, point, status), PLUGIN_BUCKETS).observe(seconds)

    def collect(self) -> Iterator[Metric]:
        """What can be counted when somebody asks."""
        attempts = CounterMetricFamily(
            "scheduler_schedule_attempts", "Attempts to schedule pods, by result.", labels=["result", "profile"]
        )
        for result, number in self._attempts.items():
            attempts.add_metric([result, self._profile], number)
        yield attempts
        yield histogram_family(
            "scheduler_scheduling_attempt_duration_seconds",
            "How long a decision takes, from taking the pod from the queue.",
            ["result", "profile"],
            self._durations.items(),
        )
        yield histogram_family(
            "scheduler_framework_extension_point_duration_seconds",
            "How long all plugins of an extension point take.",
            ["extension_point", "status", "profile"],
            self._points.items(),
        )
        yield histogram_family(
            "scheduler_plugin_execution_duration_seconds",
            "How long a plugin takes at an extension point.",
            ["plugin", "extension_point", "status"],
            self._plugin_points.items(),
        )
        queue = self._queue()
        sizes = queue.sizes() if queue is not None else {}
        pending = GaugeMetricFamily("scheduler_pending_pods", "Pods without a node, by queue.", labels=["queue"])
        if queue is not None:
            self._forget_gone(queue)
        refusing = {key: refused.plugins for key, refused in self._refusals.items()}
        gated = sum(
            Plugin.SCHEDULING_GATES in plugins and queue is not None and not queue.is_backing_off(key)
            for key, plugins in refusing.items()
        )
        for name, number in (
            ("active", sizes.get("active", 0) + sizes.get("in flight", 0)),
            ("backoff", sizes.get("backoff", 0)),
            ("unschedulable", sizes.get("unschedulable", 0) - gated),
            ("gated", gated),
        ):
            pending.add_metric([name], number)
        yield pending
        by_plugin = Counts(plugin for plugins in refusing.values() for plugin in plugins)
        unschedulable = GaugeMetricFamily(
            "scheduler_unschedulable_pods", "Pods that a plugin keeps waiting.", labels=["plugin", "profile"]
        )
        for plugin in sorted({Plugin.DYNAMIC_RESOURCES, *by_plugin}):
            unschedulable.add_metric([plugin, self._profile], by_plugin[plugin])
        yield unschedulable

    def _forget_gone(self, queue: SchedulingQueue) -> None:
        waiting = {info.name for info in queue.waiting()}
        self._refusals = {key: refused for key, refused in self._refusals.items() if key in waiting}


def _at(timings: dict[tuple[str, ...], Histogram], labels: tuple[str, ...], bounds: tuple[float, ...]) -> Histogram:
    known = timings.get(labels)
    if known is None:
        known = timings[labels] = Histogram(bounds)
    return known
