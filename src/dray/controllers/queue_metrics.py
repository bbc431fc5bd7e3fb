"""Metrics of work queues, under the names that all Kubernetes components use (4381-192)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from prometheus_client import CollectorRegistry
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from dray.process.histogram import Histogram, histogram_family
from dray.reconcile import WorkQueue

BUCKETS = (1e-5, 1e-4, 1e-3, 1e-2, 0.1, 1.0, 10.0)


class QueueMetrics(Collector):
    """Reads queues when somebody asks; only durations are noted as they happen."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._queues: list[WorkQueue[Any]] = []
        self._work: dict[str, Histogram] = {}
        self._waits: dict[str, Histogram] = {}
        registry.register(self)

    def add(self, queue: WorkQueue[Any]) -> Histogram:
        """Shows a queue from now on. Returns where to note how long work takes."""
        self._queues.append(queue)
        queue.on_wait = self._waits.setdefault(queue.name, Histogram(BUCKETS)).observe
        return self._work.setdefault(queue.name, Histogram(BUCKETS))

    def collect(self) -> Iterator[Metric]:
        """The state of all queues now."""
        depth = GaugeMetricFamily("workqueue_depth", "How many items wait in the queue.", labels=["name"])
        busy = GaugeMetricFamily("workqueue_processing", "How many items are worked on now.", labels=["name"])
        adds = CounterMetricFamily("workqueue_adds", "How often items were added.", labels=["name"])
        retries = CounterMetricFamily("workqueue_retries", "How often items were retried.", labels=["name"])
        unfinished = GaugeMetricFamily(
            "workqueue_unfinished_work_seconds", "Seconds of work in progress, all items together.", labels=["name"]
        )
        longest = GaugeMetricFamily(
            "workqueue_longest_running_processor_seconds", "Seconds that the longest work has taken.", labels=["name"]
        )
        for queue in self._queues:
            seconds = queue.working_seconds()
            unfinished.add_metric([queue.name], sum(seconds))
            longest.add_metric([queue.name], max(seconds, default=0.0))
            depth.add_metric([queue.name], len(queue))
            busy.add_metric([queue.name], queue.processing)
            adds.add_metric([queue.name], queue.adds)
            retries.add_metric([queue.name], queue.retries)
        yield from (depth, busy, adds, retries, unfinished, longest)
        work = "How long processing an item from the queue takes."
        yield histogram_family("workqueue_work_duration_seconds", work, ["name"], _labelled(self._work))
        wait = "How long an item stays in the queue before it is processed."
        yield histogram_family("workqueue_queue_duration_seconds", wait, ["name"], _labelled(self._waits))


def _labelled(by_queue: dict[str, Histogram]) -> Iterator[tuple[list[str], Histogram]]:
    return (([queue], histogram) for queue, histogram in by_queue.items())
