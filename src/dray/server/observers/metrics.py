"""Numbers for Prometheus: requests, watches, and what the store holds.

A request costs one look-up and three additions here. The numbers are kept as plain integers, since everything happens
on one event loop, and become metric families only when somebody scrapes them.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Iterator
from time import perf_counter
from typing import TypeAlias

from prometheus_client import CollectorRegistry, GCCollector, PlatformCollector, ProcessCollector
from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    Metric,
    SummaryMetricFamily,
)
from prometheus_client.registry import Collector

from dray.process.component_endpoints import CONTENT_TYPE, metric_page
from dray.process.histogram import Histogram, histogram_family
from dray.process.http import Answer, Request, Response
from dray.server.observers.handling import Handling
from dray.server.routes import Route
from dray.server.security.identity import Identity
from dray.store import SharedStats, Store

BUCKETS = (0.005, 0.025, 0.05, 0.1, 0.2, 0.4, 0.6, 0.8, 1.0, 1.25, 1.5, 2.0, 3.0, 4.0, 5.0, 6.0, 8.0, 10.0, 30.0, 60.0)
LABELS = ("verb", "group", "version", "resource", "subresource", "scope")
_MUTATING = frozenset({"POST", "PUT", "PATCH", "DELETE"})

Labels: TypeAlias = tuple[str, ...]
Look: TypeAlias = Callable[[], Awaitable[None]]
"""Counts what is only counted when somebody wants to know."""


class _Requests:
    """All requests with the same labels: how many per code, and how long they took."""

    __slots__ = ("codes", "durations")

    def __init__(self) -> None:
        self.codes: dict[int, int] = {}
        self.durations = Histogram(BUCKETS)


class Metrics:
    """Hears of every request (an `Observer`) and counts; `page` serves the numbers."""

    def __init__(self, store: Store) -> None:
        self._requests: dict[tuple[str, str, str, str, str], _Requests] = {}
        self._labels: dict[tuple[str, str, str, str, str], Labels] = {}
        self._watch_events: dict[Labels, int] = {}
        self._streams: dict[Labels, int] = {}
        self._reading = 0
        self._writing = 0
        self.registry = CollectorRegistry()
        self._others: list[CollectorRegistry] = []
        self._looks: list[Look] = []
        self.registry.register(_Numbers(self.families))
        self.registry.register(_Numbers(lambda: store_families(store)))
        ProcessCollector(registry=self.registry)
        PlatformCollector(registry=self.registry)
        GCCollector(registry=self.registry)

    def began(self, handling: Handling) -> None:
        """One more request under way."""
        if handling.request.method in _MUTATING:
            self._writing += 1
        else:
            self._reading += 1

    def answered(self, handling: Handling, answer: Answer) -> None:
        """One less under way; a stream goes on, but is counted by itself."""
        if handling.request.method in _MUTATING:
            self._writing -= 1
        else:
            self._reading -= 1
        key = self._key(handling)
        requests = self._requests.get(key)
        if requests is None:
            requests = self._requests[key] = _Requests()
            self._labels[key] = _labels(handling)
        if not isinstance(answer, Response):
            labels = self._labels[key]
            self._streams[labels] = self._streams.get(labels, 0) + 1
        else:
            requests.durations.observe(perf_counter() - handling.started)
        requests.codes[answer.code] = requests.codes.get(answer.code, 0) + 1

    def ended(self, handling: Handling) -> None:
        """One stream less."""
        self._streams[self._labels[self._key(handling)]] -= 1

    def sent(self, route: Route, events: int) -> None:
        """Counts the events that watches of a resource send."""
        labels = (route.kind.group, route.version, route.kind.plural)
        self._watch_events[labels] = self._watch_events.get(labels, 0) + events

    def include(self, registry: CollectorRegistry, look: Look | None = None) -> None:
        """Shows the numbers of a component that runs in the same process, too; `look` is asked to count them first."""
        self._others.append(registry)
        if look is not None:
            self._looks.append(look)

    async def page(self, _request: Request, _caller: Identity) -> Answer:
        """`/metrics`."""
        for look in self._looks:
            await look()
        return Response(200, await metric_page((self.registry, *self._others)), CONTENT_TYPE)

    def families(self) -> Iterator[Metric]:
        """What is counted here, as metric families."""
        yield self._totals()
        yield self._durations()
        inflight = GaugeMetricFamily(
            "apiserver_current_inflight_requests", "Requests being answered now", labels=("request_kind",)
        )
        inflight.add_metric(("mutating",), self._writing)
        inflight.add_metric(("readOnly",), self._reading)
        yield inflight
        running = GaugeMetricFamily("apiserver_longrunning_requests", "Watches open now", labels=LABELS)
        for labels, count in self._streams.items():
            running.add_metric(labels, count)
        yield running
        events = CounterMetricFamily(
            "apiserver_watch_events", "Events sent to watches", labels=("group", "version", "resource")
        )
        for labels, count in self._watch_events.items():
            events.add_metric(labels, count)
        yield events

    def _totals(self) -> Metric:
        totals = CounterMetricFamily("apiserver_request", "Requests answered", labels=(*LABELS, "code"))
        for key, requests in self._requests.items():
            for code, count in requests.codes.items():
                totals.add_metric((*self._labels[key], str(code)), count)
        return totals

    def _durations(self) -> Metric:
        found = ((self._labels[key], one.durations) for key, one in self._requests.items() if one.durations)
        return histogram_family("apiserver_request_duration_seconds", "Time to answer, watches left out", LABELS, found)

    @staticmethod
    def _key(handling: Handling) -> tuple[str, str, str, str, str]:
        """What decides the labels, cheap to make. Paths that are no resources share one entry per method."""
        route = handling.route
        if route is None:
            return (handling.request.method, "", "", "", "")
        return (route.verb, route.kind.resource, route.version, route.subresource, _scope(route))


def _scope(route: Route) -> str:
    if route.name:
        return "resource"
    return "namespace" if route.namespace else "cluster"


def _labels(handling: Handling) -> Labels:
    route = handling.route
    if route is None:
        return (handling.request.method, "", "", "", "", "")
    kind = route.kind
    return (route.verb.upper(), kind.group, route.version, kind.plural, route.subresource, _scope(route))


def store_families(store: Store) -> Iterator[Metric]:
    """What the store knows of itself, as metric families."""
    stats = store.stats()
    yield GaugeMetricFamily("dray_store_revision", "The latest durable revision", stats.revision)
    yield GaugeMetricFamily("dray_store_pending_writes", "Writes on their way to disk", stats.pending_writes)
    yield SummaryMetricFamily(
        "dray_store_commit_duration_seconds",
        "Commits to disk, each of one or more writes",
        count_value=stats.commits,
        sum_value=stats.commit_seconds,
    )
    yield GaugeMetricFamily("dray_store_used_bytes", "How much of the database is in use", stats.used_bytes)
    yield GaugeMetricFamily("dray_store_quota_bytes", "How much of it may be in use", stats.quota_bytes)
    if stats.shared is not None:
        yield from _shared_families(stats.shared)
    yield _by_resource("dray_store_watchers", "Watches of a resource", stats.watchers)
    yield _by_resource("dray_store_history_events", "Past events kept for watches", stats.events)
    # Kubernetes renamed this one; dashboards know either name.
    yield _by_resource("apiserver_storage_objects", "Objects stored", stats.objects)
    objects = GaugeMetricFamily("apiserver_resource_objects", "Objects stored", labels=("group", "resource"))
    for resource, count in stats.objects.items():
        plural, _, group = resource.partition(".")
        objects.add_metric((group, plural), count)
    yield objects


def _shared_families(shared: SharedStats) -> Iterator[Metric]:
    """What is only there with several servers."""
    yield CounterMetricFamily(
        "dray_store_conflicts", "Writes judged anew after somebody else's", value=shared.conflicts
    )
    yield CounterMetricFamily(
        "dray_store_uncertain_commits", "Transactions whose answer got lost", value=shared.uncertain
    )
    yield CounterMetricFamily("dray_store_watch_restarts", "Watches of etcd begun anew", value=shared.watch_restarts)
    yield CounterMetricFamily("dray_store_leader_changes", "Members of etcd that led anew", value=shared.leader_changes)
    yield SummaryMetricFamily(
        "dray_store_catch_up_duration_seconds",
        "Waits until all that was acknowledged is visible here, each for one or more reads",
        count_value=shared.catch_ups,
        sum_value=shared.catch_up_seconds,
    )


def _by_resource(name: str, help_text: str, numbers: dict[str, int]) -> Metric:
    family = GaugeMetricFamily(name, help_text, labels=("resource",))
    for resource, number in numbers.items():
        family.add_metric((resource,), number)
    return family


class _Numbers(Collector):
    """Asks for the families at every scrape."""

    def __init__(self, families: Callable[[], Iterable[Metric]]) -> None:
        self._families = families

    def collect(self) -> Iterable[Metric]:
        return self._families()
