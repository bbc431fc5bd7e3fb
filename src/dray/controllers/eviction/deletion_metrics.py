"""How many pods an eviction controller has deleted, and how long after they were due (SVS-29, SVS-68, 3902-28)."""

from __future__ import annotations

from prometheus_client import CollectorRegistry, Counter, Histogram

BUCKETS = (0.005, 0.025, 0.1, 0.5, 1.0, 2.5, 10.0, 30.0, 60.0, 120.0, 180.0, 240.0)


class DeletionMetrics:
    """The two metrics, named after the controller."""

    def __init__(self, prefix: str, registry: CollectorRegistry) -> None:
        """`prefix` is the controller's name as metrics spell it."""
        self._deletions = Counter(
            f"{prefix}_pod_deletions",
            "Pods that were deleted since the controller started.",
            registry=registry,
        )
        self._durations = Histogram(
            f"{prefix}_pod_deletion_duration_seconds",
            "Seconds from when a pod had to leave until it was deleted.",
            buckets=BUCKETS,
            registry=registry,
        )

    def deleted(self, seconds: float) -> None:
        """A pod was deleted so long after it was due."""
        self._deletions.inc()
        self._durations.observe(max(seconds, 0.0))
