"""The nodes of a replay: containers start, run as long as they did, and stop; what belonged to pods goes with them.

Nodes themselves are as the history says, ready or not: nobody sends heartbeats, and nobody looks for them.
"""

from __future__ import annotations

from typing import Final

from msgspec.structs import replace

from dray.api.generated.core import Pod
from dray.api.generated.scheduling import PodGroup
from dray.api.kinds import CLAIMS, POD_GROUPS, PODS
from dray.api.meta import Object
from dray.api.pods import is_finished
from dray.api.references import ObjectName
from dray.api.resource import ResourceClaim
from dray.client import Client
from dray.client.calls import delete_exactly
from dray.process.clock import Clock, as_time
from dray.process.tasks import run_together
from dray.reconcile import Controller, Informers
from dray.simulation import pod_lifecycle
from dray.simulation.behaviour import read_behaviour
from dray.simulation.pod_lifecycle import PodSurroundings

BY_OWNER: Final = "replay: by owner"
ADDRESS: Final = "192.0.2.1"
"""Of all nodes and pods: nobody connects to them."""
LOOK_SECONDS: Final = 1.0
WORKERS: Final = 16


class Kubelet:
    """One for all nodes."""

    def __init__(self, client: Client, clock: Clock, informers: Informers) -> None:
        self._client = client
        self._clock = clock
        self._pods = informers.of(PODS, Pod)
        self._claims = informers.of(CLAIMS, ResourceClaim)
        self._groups = informers.of(POD_GROUPS, PodGroup)
        self._work: Controller[ObjectName] = Controller("replayed-pods", self._reconcile, clock, workers=WORKERS)
        self._leftovers: Controller[str] = Controller("replayed-claims", self._collect, clock)

    async def run(self) -> None:
        """Works until cancelled."""
        self._claims.add_index(BY_OWNER, lambda claim: [owner.uid for owner in claim.metadata.owner_references])
        self._pods.on_change(self._on_pod)
        self._groups.on_change(self._on_owner)
        await run_together(self._work.run(), self._leftovers.run())

    def _on_pod(self, old: Pod | None, new: Pod | None) -> None:
        if new is not None and new.spec.node_name:
            self._work.queue.add(ObjectName.of(new))
        self._on_owner(old, new)

    def _on_owner(self, old: Object | None, new: Object | None) -> None:
        if new is None and old is not None:
            self._leftovers.queue.add(old.metadata.uid)

    async def _reconcile(self, place: ObjectName) -> float | None:
        pod = self._pods.get(*place)
        if pod is None or not pod.spec.node_name:
            return None
        if is_finished(pod) and pod.metadata.deletion_timestamp is None:
            await delete_exactly(self._client, PODS, pod, grace_seconds=0)
            return None
        now = self._clock.now()
        behaviour = read_behaviour(pod.metadata.annotations, {})
        surroundings = PodSurroundings(ADDRESS, ADDRESS, behaviour, self._claims.get)
        step = pod_lifecycle.plan(pod, surroundings, now, as_time(now))
        if step.warning:
            return LOOK_SECONDS  # its claims are on their way
        if step.status is not None:
            pod = await self._client.update(replace(pod, status=step.status), "status")
            self._pods.put(pod)
        if step.remove:
            await delete_exactly(self._client, PODS, pod, grace_seconds=0)
        return step.again_in

    async def _collect(self, uid: str) -> float | None:
        """A garbage collector for claims only: what else owned things in the history is not there."""
        for claim in self._claims.by_index(BY_OWNER, uid):
            await delete_exactly(self._client, CLAIMS, claim)
        return None
