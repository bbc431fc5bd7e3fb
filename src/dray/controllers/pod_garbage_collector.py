"""Removes pods that nobody else will: of nodes that are gone or out of service, unscheduled, or finished long ago."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import ClassVar, NamedTuple

from prometheus_client import Counter

from dray.api.generated.core import Node, Pod
from dray.api.kinds import NODES, PODS
from dray.api.nodes import OUT_OF_SERVICE, QUARANTINE_SECONDS, is_ready
from dray.api.pods import disruption_condition, is_finished
from dray.api.references import ObjectName
from dray.api.status import ApiError
from dray.client.calls import delete_exactly, find, patch_pod_status
from dray.controllers.context import Context
from dray.controllers.queue_controller import QueueController
from dray.process.clock import as_time

THRESHOLD = 12_500
BY_NODE = "node-name"


class Removal(NamedTuple):
    """A pod to remove without grace, the reason for metrics, and what its condition says."""

    pod: Pod
    reason: str
    message: str


class Key(NamedTuple):
    """A node by name, a pod by place, or (neither) the finished pods."""

    node: str = ""
    pod: ObjectName | None = None

    @property
    def namespace(self) -> str:
        """Pods are removed in turns of their namespaces: each removal may take as long as a webhook likes."""
        return self.pod.namespace if self.pod is not None else ""


def is_out_of_service(node: Node) -> bool:
    """Whether an admin said that the node is off and its pods cannot be running (4381-142)."""
    return not is_ready(node) and any(taint.key == OUT_OF_SERVICE for taint in node.spec.taints)


def plan_node(node: Node | None, pods: Iterable[Pod]) -> list[Removal]:
    """Which pods of a node to remove. None: the node has been gone for long enough."""
    if node is None:
        return [Removal(pod, "orphaned", "PodGC: node no longer exists") for pod in pods]
    if not is_out_of_service(node):
        return []
    stuck = [pod for pod in pods if pod.metadata.deletion_timestamp is not None]
    return [Removal(pod, "out-of-service", "PodGC: node is out of service") for pod in stuck]


def plan_pod(pod: Pod) -> list[Removal]:
    """A pod that is being deleted and never got to a node has nobody to confirm that it stopped."""
    if pod.metadata.deletion_timestamp is None or pod.spec.node_name:
        return []
    return [Removal(pod, "unscheduled", "PodGC: pod was deleted before it was scheduled")]


def plan_finished(pods: Sequence[Pod], threshold: int) -> list[Removal]:
    """The finished pods beyond a threshold, evicted ones first, then the oldest."""
    ordered = sorted(pods, key=lambda pod: (pod.status.reason != "Evicted", pod.metadata.creation_timestamp or ""))
    surplus = ordered[: max(len(ordered) - threshold, 0)]
    return [Removal(pod, "terminated", "") for pod in surplus]


class PodGarbageCollector(QueueController[Key]):
    """Work comes from events: nobody goes through all pods."""

    name: ClassVar[str] = "pod-garbage-collector-controller"

    def __init__(self, context: Context, threshold: int = THRESHOLD) -> None:
        self._nodes = context.informers.of(NODES, Node)
        self._pods = context.informers.of(PODS, Pod)
        super().__init__(context, self._nodes, self._pods)
        self._threshold = threshold
        self._finished: dict[ObjectName, None] = {}
        self._missing_since: dict[str, float] = {}
        self._doomed: dict[ObjectName, Removal] = {}
        """Pods that are to be removed because of others, or of their node, when it is their turn."""
        self._deleted = Counter(
            "pod_gc_collector_force_delete_pods",
            "Number of pods that were removed without grace, by namespace and reason.",
            ["namespace", "reason"],
            registry=context.metrics,
        )
        self._pods.add_index(BY_NODE, _node_name)
        self._nodes.on_change(self._on_node)
        self._pods.on_change(self._on_pod)

    def _on_node(self, old: Node | None, new: Node | None) -> None:
        if new is None:
            assert old is not None
            self.queue.add(Key(old.metadata.name))
        elif is_out_of_service(new) and (old is None or not is_out_of_service(old)):
            self.queue.add(Key(new.metadata.name))

    def _on_pod(self, old: Pod | None, new: Pod | None) -> None:
        if new is not None and is_finished(new):
            self._finished[ObjectName.of(new)] = None
            if len(self._finished) > self._threshold:
                self.queue.add(Key())
        elif self._finished:
            pod = new if new is not None else old
            assert pod is not None
            self._finished.pop(ObjectName.of(pod), None)
        if new is None:
            return
        node_name = new.spec.node_name
        if not node_name:
            if new.metadata.deletion_timestamp is not None:
                self.queue.add(Key(pod=ObjectName.of(new)))
        elif old is None or not old.spec.node_name or new.metadata.deletion_timestamp is not None:
            node = self._nodes.get("", node_name)
            if node is None or is_out_of_service(node):
                self.queue.add(Key(node_name))

    async def reconcile(self, key: Key) -> float | None:
        """Looks at the pods of a node, at one pod, or at the finished pods."""
        if key.pod is not None:
            await self._reconcile_pod(key.pod)
            return None
        if key.node:
            return await self._reconcile_node(key.node)
        finished = [self._pods.get(*place) for place in self._finished]
        return self._doom(plan_finished([pod for pod in finished if pod is not None], self._threshold))

    def _doom(self, removals: Iterable[Removal]) -> float | None:
        """Has pods removed, each by itself; after how many seconds to look whether they are gone."""
        again = None
        for removal in removals:
            name, again = ObjectName.of(removal.pod), QUARANTINE_SECONDS
            self._doomed[name] = removal
            self.queue.add(Key(pod=name))
        return again

    async def _reconcile_pod(self, name: ObjectName) -> None:
        doomed = self._doomed.pop(name, None)
        pod = self._pods.get(*name)
        removals = plan_pod(pod) if pod is not None else []
        for removal in removals or filter(None, [doomed]):
            try:
                await self._remove(removal)
            except ApiError as error:
                if error.code not in (404, 409):  # gone, or another pod of that name by now
                    raise

    async def _reconcile_node(self, name: str) -> float | None:
        node = self._nodes.get("", name)
        pods = self._pods.by_index(BY_NODE, name)
        if node is not None or not pods:
            self._missing_since.pop(name, None)
            return self._doom(plan_node(node, pods)) if node is not None else None
        now = self._clock.monotonic()
        waited = now - self._missing_since.setdefault(name, now)
        if waited < QUARANTINE_SECONDS:
            return QUARANTINE_SECONDS - waited
        if await self._exists(name):
            return QUARANTINE_SECONDS
        return self._doom(plan_node(None, pods))

    async def _exists(self, node: str) -> bool:
        """Asks the server: the informer may be behind."""
        return await find(self._client, NODES, "", node, Node) is not None

    async def _remove(self, removal: Removal) -> None:
        if not is_finished(removal.pod):
            await self._fail(removal)
        if await delete_exactly(self._client, PODS, removal.pod, grace_seconds=0):
            self._deleted.labels(removal.pod.metadata.namespace, removal.reason).inc()

    async def _fail(self, removal: Removal) -> None:
        """Whoever watches the pod learns that it did not end well, and why."""
        now = as_time(self._clock.now())
        condition = disruption_condition(removal.pod, "DeletionByPodGC", removal.message, now)
        status = {"phase": "Failed", "conditions": [condition]}
        await patch_pod_status(self._client, removal.pod, status)


def _node_name(pod: Pod) -> tuple[str, ...]:
    return (pod.spec.node_name,) if pod.spec.node_name else ()
