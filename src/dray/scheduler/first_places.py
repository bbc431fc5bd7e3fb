"""Pods that get their node as they are stored: decided on before anybody can see them wait.

    POST pod ─▶ pod and its claims, not stored yet ─▶ `place` ─▶ one write with node and devices ─▶ `stored`
                                                        └─▶ None: stored without, and decided on from the queue

Only what is decided quickly, and where nobody waits who should come first. What is refused here is refused again from
the queue, which says why and does what can be done about it.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine, Sequence
from time import perf_counter
from typing import Any, Final

from msgspec.structs import replace

from dray.allocator import Options
from dray.api.generated.core import Pod
from dray.api.resource import ResourceClaim
from dray.process.clock import as_time
from dray.scheduler.announcements import Announcements
from dray.scheduler.binding import claims_with_devices
from dray.scheduler.changes import Changes
from dray.scheduler.state import State
from dray.scheduler.trace import Trace
from dray.scheduling.decide import Chosen, decide
from dray.scheduling.pod_info import PodInfo, read_pod

MOST_REQUESTS: Final = 8
LOST_SECONDS: Final = 10.0
"""After which a write that nobody waited for has been seen, or will not be."""

log = logging.getLogger(__name__)


class FirstPlaces:
    """Decides on pods that are about to be stored."""

    def __init__(
        self,
        state: State,
        changes: Changes,
        options: Options,
        announcements: Announcements,
        trace: Callable[[PodInfo, float], Trace | None],
        start: Callable[[Coroutine[Any, Any, None]], None],
    ) -> None:
        """`trace` follows an attempt that is to be measured or told; `start` does work in a task of its own."""
        self.state = state
        self.announcements = announcements
        self.under_way = 0
        """Decisions that are being stored."""
        self.bound = 0
        self._changes = changes
        self._options = options
        self._further_options = replace(options, devices_judged=0)
        self._has_judged = False
        """Whether there was a decision in this turn of the loop that had devices judged by a new selector."""
        self._trace = trace
        self._start = start

    def place(self, pod: Pod, claims: Sequence[ResourceClaim]) -> Placement | None:
        """A node for a pod and devices for the claims that were made for it, which count as given away from now on.

        None, and nothing is, if the pod is to be decided on from the queue.
        """
        if self.state.queue.has_active or not self.state.is_ours(pod) or not _are_easy(pod, claims):
            return None
        info = read_pod(pod)
        if info.group is not None or info.volume_claims or info.extended:
            return None
        started = perf_counter()
        trace = self._trace(info, started)
        cluster = self.state.cluster
        for claim in claims:
            cluster.set_claim(None, claim)
        placement = None
        try:
            placement = self._decide(info, trace)
        except Exception:
            log.exception("a mistake while deciding on new pod %s; it is decided on again once it is stored", info.name)
        finally:
            if placement is None:
                for claim in claims:
                    cluster.set_claim(claim, None)
        if placement is not None:
            self.state.metrics.attempted("scheduled", perf_counter() - started)
        return placement

    def _decide(self, info: PodInfo, trace: Trace | None) -> Placement | None:
        self._changes.begin_turn(info.pod.metadata.namespace)
        answer = decide(self.state.cluster, info, self._options_of_turn(), trace)
        self._changes.end_turn()
        if not isinstance(answer, Chosen):
            return None
        claims = claims_with_devices(info.pod, answer, as_time(self.state.clock.now()))
        if claims is None:
            return None
        if trace is not None:
            trace.done("Filter", detail=f"node {answer.node}")
        self.state.decided += 1
        self.state.cluster.assume(info, answer.node, answer.allocations)
        if trace is not None:
            trace.done("Reserve")
        return Placement(self, info, answer, claims, trace)

    def _options_of_turn(self) -> Options:
        """The first pod of a turn of the loop has devices judged, for all of them: as many come as have connections."""
        if self._has_judged:
            return self._further_options
        self._has_judged = True
        asyncio.get_running_loop().call_soon(self._begin_turn)
        return self._options

    def _begin_turn(self) -> None:
        self._has_judged = False

    def take_back_if_lost(self, placement: Placement) -> None:
        """Whoever asked for it does not wait for the write any more: it is looked at later whether it was stored."""

        async def look() -> None:
            await self.state.clock.sleep(LOST_SECONDS)
            meta = placement.info.pod.metadata
            stored = self.state.pods.get(meta.namespace, meta.name)
            if stored is None or stored.metadata.uid != meta.uid:
                placement.take_back()

        self._start(look())


class Placement:
    """A decision on a pod that is about to be stored: `stored`, `failed` or `lost` follows."""

    __slots__ = ("_chosen", "_places", "_trace", "claims", "info")

    def __init__(
        self, places: FirstPlaces, info: PodInfo, chosen: Chosen, claims: Sequence[ResourceClaim], trace: Trace | None
    ) -> None:
        self.info = info
        self.claims = claims
        self._places = places
        self._chosen = chosen
        self._trace = trace
        places.under_way += 1

    @property
    def node(self) -> str:
        """The node of the pod."""
        return self._chosen.node

    def stored(self, pod: Pod) -> None:
        """The pod is stored with its node, and its claims with their devices."""
        places = self._places
        places.under_way -= 1
        places.bound += 1
        if self._trace is not None:
            self._trace.done("PreBind")
            self._trace.done("Bind")
            self._trace.ended(f"bound to {self.node}")
        places.announcements.bound(pod, self.node)

    def failed(self) -> None:
        """Nothing is stored."""
        self._places.under_way -= 1
        self.take_back()

    def lost(self) -> None:
        """Nobody waits for the outcome; it may be stored any moment."""
        self._places.under_way -= 1
        self._places.take_back_if_lost(self)

    def take_back(self) -> None:
        """Others can have what the pod would have got."""
        cluster = self._places.state.cluster
        cluster.take_back(self.info, self._chosen.allocations)
        for claim in self.claims:
            if self._places.state.claims.get(claim.metadata.namespace, claim.metadata.name) is None:
                cluster.set_claim(claim, None)


def _are_easy(pod: Pod, claims: Sequence[ResourceClaim]) -> bool:
    """Whether all claims of a pod are here, and devices for them are found without a search."""
    if len(claims) != len(pod.spec.resource_claims) or pod.spec.scheduling_gates:
        return False
    requests = 0
    for claim in claims:
        devices = claim.spec.devices
        requests += len(devices.requests)
        if devices.constraints or requests > MOST_REQUESTS:
            return False
        for request in devices.requests:
            if request.exactly is None or request.exactly.count > MOST_REQUESTS:
                return False
    return len(claims) < 2 or len({claim.metadata.name for claim in claims}) == len(claims)
