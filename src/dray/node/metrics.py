"""Numbers for Prometheus: calls to drivers, what pods waited for, claims in use, containers started.

Plain numbers while the agent works; they become metric families, under the names of the proposal and under those that
Kubernetes ships (SVS-57), only when somebody scrapes them; the Prometheus library is loaded if somebody may.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from prometheus_client import CollectorRegistry
    from prometheus_client.core import Metric

BUCKETS: Final = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 15.0, 30.0, 45.0, 60.0)
ANY_DRIVER: Final = "<any>"

Labels = tuple[str, ...]


class Durations:
    """A histogram by labels."""

    def __init__(self) -> None:
        self._counts: dict[Labels, list[int]] = {}
        self._sums: dict[Labels, float] = {}

    def add(self, labels: Labels, seconds: float) -> None:
        """One more that took so long."""
        counts = self._counts.setdefault(labels, [0] * (len(BUCKETS) + 1))
        counts[bisect_left(BUCKETS, seconds)] += 1
        self._sums[labels] = self._sums.get(labels, 0.0) + seconds

    def family(self, name: str, text: str, labels: Labels) -> Metric:
        """The histogram as Prometheus has it, each bucket counting those below it, too."""
        from prometheus_client.core import HistogramMetricFamily

        family = HistogramMetricFamily(name, text, labels=labels)
        for values, counts in self._counts.items():
            total, buckets = 0, []
            for bound, count in zip((*map(str, BUCKETS), "+Inf"), counts, strict=True):
                total += count
                buckets.append((bound, float(total)))
            family.add_metric(values, buckets, self._sums[values])
        return family


class NodeMetrics:
    """What the agent counts."""

    def __init__(self, claims_in_use: Callable[[], dict[str, int]]) -> None:
        """`claims_in_use`: by driver, and under `ANY_DRIVER` all (4381-194)."""
        self._claims_in_use = claims_in_use
        self._calls = Durations()
        self._operations = Durations()
        self._skips: dict[Labels, int] = {}
        self._started = 0
        self._start_errors: dict[Labels, int] = {}

    def called(self, driver: str, method: str, code: str, seconds: float) -> None:
        """A gRPC call has ended with a status code."""
        self._calls.add((driver, method, code), seconds)

    def operated(self, operation: str, failed: bool, seconds: float) -> None:
        """All claims of a pod have been handled, as far as possible: PrepareResources or UnprepareResources."""
        self._operations.add((operation, "true" if failed else "false"), seconds)

    def skipped(self, driver: str, method: str) -> None:
        """A call was not made because the devices do not want it."""
        self._skips[driver, method] = self._skips.get((driver, method), 0) + 1

    def started(self) -> None:
        """A container was started."""
        self._started += 1

    def start_failed(self, reason: str) -> None:
        """A container could not be started."""
        self._start_errors["container", reason] = self._start_errors.get(("container", reason), 0) + 1

    def registry(self) -> CollectorRegistry:
        """All numbers, for whoever serves them."""
        from prometheus_client import CollectorRegistry
        from prometheus_client.registry import Collector

        class Numbers(Collector):
            """Asks for the families at every scrape."""

            def collect(_self) -> Iterator[Metric]:  # noqa: N805  # `self` is the NodeMetrics around it
                return self.families()

        registry = CollectorRegistry()
        registry.register(Numbers())
        return registry

    def families(self) -> Iterator[Metric]:
        """The agent's own numbers as metric families."""
        from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily

        text = "Dynamic Resource Allocation interface operation duration with gRPC error code status total"
        yield self._calls.family("dra_operations_seconds", text, ("driver_name", "method_name", "grpc_status_code"))
        labels = ("driver_name", "method_name", "grpc_status_code")
        yield self._calls.family("dra_grpc_operations_duration_seconds", "Duration of gRPC calls to drivers", labels)
        text = "Time to handle all claims of a pod that starts or ends"
        yield self._operations.family("dra_operations_duration_seconds", text, ("operation_name", "is_error"))
        in_use = GaugeMetricFamily(
            "dra_resource_claims_in_use", "Claims in use on the node, by driver and for all", labels=("driver_name",)
        )
        for driver, count in self._claims_in_use().items():
            in_use.add_metric((driver,), count)
        yield in_use
        for method, name in (
            ("NodePrepareResources", "dra_node_prepare_skips"),
            ("NodeUnprepareResources", "dra_node_unprepare_skips"),
        ):
            skips = CounterMetricFamily(name, f"{method} calls that the devices did not want", labels=("driver_name",))
            for (driver, skipped), count in self._skips.items():
                if skipped == method:
                    skips.add_metric((driver,), count)
            yield skips
        yield CounterMetricFamily("kubelet_started_containers", "Containers started", self._started)
        errors = CounterMetricFamily(
            "kubelet_started_containers_errors", "Containers that did not start", labels=("container_type", "code")
        )
        for values, count in self._start_errors.items():
            errors.add_metric(values, count)
        yield errors
