"""What is different about Services: the pods behind them. Nothing else is decided by a Service. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from dray.allocator.reasons import Report
from dray.api.generated.core import Pod, Service
from dray.api.meta import Object
from dray.api.pods import is_ready
from dray.api.references import full_name
from dray.snapshot.snapshot import Snapshot
from dray.what_if.workloads import ActivePods


class ServiceChange(Report, frozen=True, kw_only=True):
    """A Service that is different."""

    service: str
    before: int | None = None
    """How many ready pods are behind it; absent if there is no such Service, or it selects no pods."""
    after: int | None = None

    @property
    def loses(self) -> bool:
        """Whether somebody answered, and nobody does any more."""
        return bool(self.before) and not self.after


def compare_services(
    differing: Collection[tuple[Object | None, Object | None]], before: Snapshot, after: Snapshot
) -> Iterator[ServiceChange]:
    """Each Service that differs."""
    pairs = [pair for pair in differing if isinstance(pair[0] or pair[1], Service)]
    if not pairs:
        return
    were, are = ActivePods(before), ActivePods(after)
    for here, there in pairs:
        obj = there or here
        assert obj is not None, "one of them is there, or nothing would differ"
        yield ServiceChange(service=full_name(obj), before=_behind(here, were), after=_behind(there, are))


def selects(service: Service, pod: Pod) -> bool:
    """Whether a pod is behind a Service."""
    meta, selector = pod.metadata, service.spec.selector
    return bool(selector) and service.metadata.namespace == meta.namespace and selector.items() <= meta.labels.items()


def _behind(service: Object | None, pods: ActivePods) -> int | None:
    if not isinstance(service, Service) or not service.spec.selector:
        return None
    return sum(is_ready(pod) and selects(service, pod) for pod in pods.near(service))
