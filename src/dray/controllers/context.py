"""What every controller is made with."""

from __future__ import annotations

import logging
import random
from collections.abc import Awaitable, Callable, Hashable, Sequence
from dataclasses import dataclass, field

from prometheus_client import CollectorRegistry

from dray.api.references import ObjectRef
from dray.api.registry import Kind
from dray.api.status import ApiError
from dray.client import Client
from dray.controllers.queue_metrics import QueueMetrics
from dray.controllers.settings import ControllerSettings
from dray.eviction.recent import Recent
from dray.reconcile import Clock, EventRecorder
from dray.reconcile.informers import Informers

log = logging.getLogger(__name__)


def report(name: str, key: Hashable, error: Exception) -> None:
    """Logs a failure that is going to be retried. Conflicts are how concurrent writers are told apart: no news."""
    level = logging.DEBUG if isinstance(error, ApiError) and error.code in (404, 409) else logging.WARNING
    log.log(level, "%s: %s: %s; it is tried again", name, key, error)


ForeignKinds = Callable[[], Awaitable[Sequence[Kind]]]
"""Which kinds the server has that dray does not know. Raises ApiError or OSError if that cannot be told."""


async def no_foreign_kinds() -> Sequence[Kind]:
    """Of dray's own server."""
    return ()


@dataclass(frozen=True)
class Context:
    """The way to the cluster, as one controller.

    `client` acts with the rights of that controller; all else is shared.
    """

    client: Client
    informers: Informers
    clock: Clock
    metrics: CollectorRegistry
    queue_metrics: QueueMetrics
    randomness: random.Random = field(default_factory=random.SystemRandom)
    report: Callable[[str, Hashable, Exception], None] = field(default=report)
    settings: ControllerSettings = field(default_factory=ControllerSettings)
    foreign_kinds: ForeignKinds = no_foreign_kinds
    recent_evictions: Recent[ObjectRef] = field(default_factory=Recent)
    """Who was evicted without a confirmation: one list for all controllers that evict."""

    def recorder(self, component: str) -> EventRecorder:
        """Writes events in the name of a component."""
        return EventRecorder(self.client, component, self.clock)
