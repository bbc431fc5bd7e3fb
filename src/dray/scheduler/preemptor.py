"""Makes pods go for one that is more important: says so in both, deletes them, and lets the pod wait for the node."""

from __future__ import annotations

import asyncio
from typing import Any, Final

from dray.api.generated.core import Pod
from dray.api.kinds import PODS
from dray.api.meta import DeleteOptions, Preconditions
from dray.api.status import ApiError
from dray.client import Client, PatchFormat
from dray.process.clock import Clock, as_time
from dray.reconcile import EventRecorder
from dray.scheduling.cluster import Cluster
from dray.scheduling.pod_info import PodInfo
from dray.scheduling.refusal import Preempts

REASON: Final = "PreemptionByScheduler"


class Preemptor:
    """Carries out what `scheduling.preemption` decided."""

    def __init__(self, client: Client, clock: Clock, cluster: Cluster, recorder: EventRecorder, name: str) -> None:
        self._client = client
        self._clock = clock
        self._cluster = cluster
        self._recorder = recorder
        self._name = name

    def promise(self, pod: PodInfo, plan: Preempts) -> None:
        """From now on the node is kept for the pod, and the victims count as leaving."""
        self._cluster.nominations.set(pod, plan.node)
        for victim in plan.victims:
            self._cluster.send_away(victim)

    async def carry_out(self, pod: PodInfo, plan: Preempts) -> None:
        """Makes the victims go, and takes back what was promised to less important pods. Raises ApiError, OSError."""
        try:
            await self.nominate(pod.pod, plan.node)
            for other in self._cluster.nominations.below(pod, plan.node):
                self._cluster.nominations.drop(other.pod.metadata.uid)
                await self.nominate(other.pod, "")
        except (ApiError, OSError, TimeoutError):
            for victim in plan.victims:
                self._cluster.keep(victim)
            self._cluster.nominations.drop(pod.pod.metadata.uid)
            raise
        await asyncio.gather(*(self._send_away(pod.pod, victim, plan.node) for victim in plan.victims))

    async def nominate(self, pod: Pod, node: str) -> None:
        """Says in a pod's status for which node it waits; for none if it is empty."""
        await self._patch(pod, {"nominatedNodeName": node or None})

    async def _send_away(self, pod: Pod, victim: PodInfo, node: str) -> None:
        meta = victim.pod.metadata
        try:
            if meta.deletion_timestamp is None:
                await self._patch(victim.pod, {"conditions": [self._condition()]})
                options = DeleteOptions(preconditions=Preconditions(uid=meta.uid))
                await self._client.delete(PODS, meta.namespace, meta.name, options)
                message = f"Preempted by pod {pod.metadata.uid} on node {node}"
                await self._recorder.normal(victim.pod, "Preempted", message)
        except ApiError as error:
            if error.code not in (404, 409):
                self._cluster.keep(victim)
                raise
        except (OSError, TimeoutError):
            self._cluster.keep(victim)
            raise

    def _condition(self) -> dict[str, Any]:
        message = f"{self._name}: preempting to accommodate a higher priority pod"
        now = str(as_time(self._clock.now()))
        return {
            "type": "DisruptionTarget",
            "status": "True",
            "reason": REASON,
            "message": message,
            "lastTransitionTime": now,
        }

    async def _patch(self, pod: Pod, status: dict[str, Any]) -> None:
        meta = pod.metadata
        patch = {"status": status}
        await self._client.patch(
            PODS, meta.namespace, meta.name, patch, format=PatchFormat.STRATEGIC, subresource="status"
        )
