"""Makes pods go for one that is more important: says so in both, deletes them, and lets the pod wait for the node."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Sequence
from typing import Final

from msgspec.structs import replace

from dray.api.conditions import DISRUPTION_TARGET, with_condition
from dray.api.generated.core import Pod
from dray.api.kinds import PODS
from dray.api.meta import Condition
from dray.api.pods import disruption_condition
from dray.api.references import full_name
from dray.api.status import ApiError
from dray.client import Client
from dray.client.calls import delete_exactly, patch_pod_status
from dray.process.clock import Clock, as_time
from dray.reconcile import EventRecorder
from dray.scheduling.cluster import Cluster
from dray.scheduling.pod_info import PodInfo
from dray.scheduling.refusal import GroupPreempts, Preempts

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
        await self._mark_groups(plan.victims)
        await asyncio.gather(*(self._send_away(pod.pod, victim, plan.node) for victim in plan.victims))

    def promise_group(self, plan: GroupPreempts) -> None:
        """From now on the nodes are kept for the pods of a group, and the victims count as leaving."""
        for pod, node in plan.places:
            self._cluster.nominations.set(pod, node)
        for victim in plan.victims:
            self._cluster.send_away(victim)

    async def carry_out_group(self, plan: GroupPreempts) -> None:
        """Makes the victims of a group go. Raises ApiError, OSError."""
        try:
            await asyncio.gather(*(self.nominate(pod.pod, node) for pod, node in plan.places))
        except (ApiError, OSError, TimeoutError):
            for victim in plan.victims:
                self._cluster.keep(victim)
            for pod, _ in plan.places:
                self._cluster.nominations.drop(pod.pod.metadata.uid)
            raise
        first = plan.places[0][0].pod
        nodes = {victim.pod.metadata.uid: victim.pod.spec.node_name for victim in plan.victims}
        await self._mark_groups(plan.victims)
        await asyncio.gather(
            *(self._send_away(first, victim, nodes[victim.pod.metadata.uid]) for victim in plan.victims)
        )

    async def _mark_groups(self, victims: Sequence[PodInfo]) -> None:
        """Says of groups that leave as a whole that they do."""
        names = {self._cluster.groups.goes_as_a_whole(victim.pod) for victim in victims}
        for group in filter(None, map(self._cluster.groups.get, names)):
            condition = Condition(
                type=DISRUPTION_TARGET,
                status="True",
                reason=REASON,
                message=f"{self._name}: preempting to accommodate a higher priority pod",
                last_transition_time=as_time(self._clock.now()),
            )
            conditions = with_condition(group.status.conditions, condition)
            with contextlib.suppress(ApiError):  # it is only said; the pods go all the same
                status = replace(group.status, conditions=conditions)
                await self._client.update(replace(group, status=status), subresource="status")

    async def nominate(self, pod: Pod, node: str) -> None:
        """Says in a pod's status for which node it waits; for none if it is empty. Raises ApiError if it is gone."""
        if not await patch_pod_status(self._client, pod, {"nominatedNodeName": node or None}):
            raise ApiError(404, "NotFound", f"pod {full_name(pod)} is gone")

    async def _send_away(self, pod: Pod, victim: PodInfo, node: str) -> None:
        if victim.pod.metadata.deletion_timestamp is not None:
            return
        message = f"{self._name}: preempting to accommodate a higher priority pod"
        condition = disruption_condition(victim.pod, REASON, message, as_time(self._clock.now()))
        status = {"conditions": [condition]}
        try:
            is_marked = await patch_pod_status(self._client, victim.pod, status)
            if is_marked and await delete_exactly(self._client, PODS, victim.pod):
                message = f"Preempted by pod {pod.metadata.uid} on node {node}"
                await self._recorder.normal(victim.pod, "Preempted", message)
        except (ApiError, OSError, TimeoutError):
            self._cluster.keep(victim)
            raise
