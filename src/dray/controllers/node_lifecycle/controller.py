"""The shell: notes signs of life, looks at everybody's health from time to time, and writes what follows."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any, NamedTuple

from dray.api import codec
from dray.api.conditions import READY, find_condition
from dray.api.generated.coordination import Lease
from dray.api.generated.core import Node, Pod
from dray.api.kinds import LEASES, NODES, PODS
from dray.api.pods import is_ready
from dray.api.references import ObjectName
from dray.api.well_known import LEASE_NAMESPACE
from dray.client.calls import patch_pod_status
from dray.controllers.context import Context
from dray.controllers.node_lifecycle import health
from dray.controllers.node_lifecycle.disruption import Count, Disruption, is_counted, zone_of
from dray.controllers.node_lifecycle.taints import has_no_execute, plan_taints, wanted_no_execute
from dray.controllers.queue_controller import QueueController
from dray.process.clock import as_time
from dray.reconcile import Wakeup

BY_NODE = "node"
WORKERS = 8
AT_ONCE = 100
"""Nodes that are looked at in one turn of the loop."""
LATE = 1.0
"""Seconds: who looks around so much later than it meant to was held up."""


YOUNG = 60.0
"""Seconds: nodes that were there so long before us have been announced by whoever came before us."""


class _News(NamedTuple):
    """That a node has come or gone, for an event."""

    node: Node
    reason: str
    text: str


class NodeLifecycleController(QueueController[str | ObjectName]):
    """Keys are names of nodes whose conditions, taints or pods may have to be changed."""

    name = "node-lifecycle-controller"

    def __init__(self, context: Context) -> None:
        """Registers with the informers of nodes, leases and pods."""
        self._nodes = context.informers.of(NODES, Node)
        self._leases = context.informers.of(LEASES, Lease)
        self._pods = context.informers.of(PODS, Pod)
        super().__init__(context, self._nodes, self._leases, self._pods, workers=WORKERS)
        self._settings = context.settings.node_lifecycle
        self._disruption = Disruption(self._settings)
        self._signs: dict[str, health.Sign] = {}
        self._let_execute: set[str] = set()
        self._told_pods: set[str] = set()
        self._news: dict[str, list[_News]] = {}
        self._since = as_time(self._clock.now() - YOUNG)
        self._wakeup = Wakeup(context.clock)
        self._recorder = context.recorder("node-controller")
        self._pods.add_index(BY_NODE, lambda pod: (pod.spec.node_name,) if pod.spec.node_name else ())
        self._nodes.on_change(self._node_changed)
        self._leases.on_change(self._lease_changed)

    async def run(self) -> None:
        """Watches over nodes until cancelled."""
        async with asyncio.TaskGroup() as group:
            group.create_task(super().run())
            group.create_task(self._monitor())

    async def reconcile(self, key: str | ObjectName) -> float | None:
        """Writes conditions and taints of one node, or the readiness of a pod, where they are wrong."""
        if isinstance(key, ObjectName):
            await self._tell_pod(key)
            return None
        for news in self._news.pop(key, ()):
            await self._recorder.normal(news.node, news.reason, f"Node {key} event: {news.text}")
        node = self._nodes.get("", key)
        if node is None:
            return None
        node = await self._write_conditions(node)
        if health.is_unknown(node):
            self._tell_pods(node)
        else:
            self._told_pods.discard(key)
        await self._write_taints(node)
        return None

    async def _monitor(self) -> None:
        for informer in self.informers:
            await informer.synced()
        look_at = self._clock.monotonic()
        while True:
            if self._clock.monotonic() >= look_at:
                self._forgive_silence(self._clock.monotonic() - look_at)
                await self._look_around()
                look_at = self._clock.monotonic() + self._settings.monitor_period
            tick = self._clock.monotonic()
            for name in self._disruption.take(tick):
                self._let_execute.add(name)
                self.queue.add(name)
            waits = [look_at - tick, self._disruption.wait(tick)]
            await self._wakeup.wait(min(wait for wait in waits if wait is not None))

    def _forgive_silence(self, late: float) -> None:
        """Whoever looks late could not hear either: nodes are judged by the time in which they could be heard."""
        if late > LATE:
            self._signs = {name: sign._replace(seen=sign.seen + late) for name, sign in self._signs.items()}

    async def _some_after_the_other(self) -> AsyncIterator[Node]:
        """The nodes as they are, with a turn for others after each few: there may be thousands."""
        for number, name in enumerate([node.metadata.name for node in self._nodes], 1):
            node = self._nodes.get("", name)
            if node is not None:
                yield node
            if number % AT_ONCE == 0:
                tick = self._clock.monotonic()
                await asyncio.sleep(0)
                self._forgive_silence(self._clock.monotonic() - tick)

    async def _look_around(self) -> None:
        """Judges zones by their nodes, and finds the nodes that something has to be written about."""
        was_total = self._disruption.is_total
        counts: dict[str, Count] = {}
        async for node in self._some_after_the_other():
            if is_counted(node):
                is_well = health.is_ready(node) and not self._is_silent(node)
                counts[zone_of(node)] = counts.get(zone_of(node), Count()).plus(is_ready=is_well)
        self._disruption.update(counts)
        if was_total and not self._disruption.is_total:
            # We were cut off: nobody could be heard of meanwhile, so everybody's time starts anew.
            tick = self._clock.monotonic()
            self._signs = {name: sign._replace(seen=tick) for name, sign in self._signs.items()}
        async for node in self._some_after_the_other():
            self._judge(node)

    def _judge(self, node: Node) -> None:
        """Puts a node in line for its NoExecute taint, or out of it, and to work if something is wrong with it."""
        name = node.metadata.name
        is_ill = wanted_no_execute(node) is not None
        if not is_ill or self._disruption.is_total:
            self._let_execute.discard(name)
            self._disruption.remove(name)
        elif not has_no_execute(node) and name not in self._let_execute:
            self._disruption.add(name, zone_of(node))
        if self._needs_work(node):
            self.queue.add(name)

    def _needs_work(self, node: Node) -> bool:
        if self._is_silent(node) and health.silenced(node, as_time(self._clock.now())) != node.status.conditions:
            return True
        must_tell = health.is_unknown(node) and node.metadata.name not in self._told_pods
        return must_tell or self._plan_taints(node) != node.spec.taints

    def _is_silent(self, node: Node) -> bool:
        sign = self._signs.get(node.metadata.name)
        return sign is not None and health.is_silent(sign, node, self._clock.monotonic(), self._settings)

    def _plan_taints(self, node: Node) -> tuple[Any, ...]:
        may_execute = not self._disruption.is_total and (
            node.metadata.name in self._let_execute or has_no_execute(node)
        )
        return plan_taints(node, may_execute=may_execute, now=as_time(self._clock.now()))

    async def _write_conditions(self, node: Node) -> Node:
        if not self._is_silent(node):
            return node
        was_ready = health.is_ready(node)
        conditions = health.silenced(node, as_time(self._clock.now()))
        if conditions == node.status.conditions:
            return node
        written = await self._patch(node, {"status": {"conditions": codec.to_builtins(conditions)}}, "status")
        if was_ready:
            message = f"Node {node.metadata.name} status is now: NodeNotReady"
            await self._recorder.normal(written, "NodeNotReady", message)
        return written

    async def _write_taints(self, node: Node) -> None:
        taints = self._plan_taints(node)
        if taints != node.spec.taints:
            await self._patch(node, {"spec": {"taints": codec.to_builtins(taints)}})

    async def _patch(self, node: Node, patch: dict[str, Any], subresource: str = "") -> Node:
        """Changes the node as it was read: if somebody else was faster, this fails and is tried again."""
        name = node.metadata.name
        guarded = {**patch, "metadata": {"resourceVersion": node.metadata.resource_version}}
        changed = await self._client.patch(NODES, "", name, guarded, subresource=subresource)
        assert isinstance(changed, Node)
        self._nodes.put(changed)
        return changed

    def _tell_pods(self, node: Node) -> None:
        """Pods of a node that is not heard of are not ready either, so that nobody sends them work.

        A node that says itself that it is not ready speaks for its pods, too. Each is told by itself: a webhook may
        refuse what is written of one of them, or take its time.
        """
        if node.metadata.name in self._told_pods:
            return
        for pod in self._pods.by_index(BY_NODE, node.metadata.name):
            if is_ready(pod):
                self.queue.add(ObjectName.of(pod))
        self._told_pods.add(node.metadata.name)

    async def _tell_pod(self, name: ObjectName) -> None:
        pod = self._pods.get(*name)
        node = self._nodes.get("", pod.spec.node_name) if pod is not None else None
        if pod is not None and node is not None and health.is_unknown(node) and is_ready(pod):
            await self._mark_unready(pod)

    async def _mark_unready(self, pod: Pod) -> None:
        now = str(as_time(self._clock.now()))
        ready = find_condition(pod.status.conditions, READY)
        condition = {**codec.to_builtins(ready), "status": "False", "lastTransitionTime": now}
        if await patch_pod_status(self._client, pod, {"conditions": [condition]}):
            await self._recorder.warning(pod, "NodeNotReady", "Node is not ready")

    def _node_changed(self, old: Node | None, new: Node | None) -> None:
        if old is not None and (new is None or new.metadata.uid != old.metadata.uid):
            self._tell(old, "RemovingNode", f"Removing Node {old.metadata.name} from Controller")
        if new is None:
            if old is not None:
                self._forget(old.metadata.name)
            return
        if (old is None or new.metadata.uid != old.metadata.uid) and (
            new.metadata.creation_timestamp or ""
        ) > self._since:
            self._tell(new, "RegisteredNode", f"Registered Node {new.metadata.name} in Controller")
        self._hear(new)
        self._judge(new)
        self._wakeup.set()

    def _tell(self, node: Node, reason: str, text: str) -> None:
        self._news.setdefault(node.metadata.name, []).append(_News(node, reason, text))
        self.queue.add(node.metadata.name)

    def _lease_changed(self, old: Lease | None, new: Lease | None) -> None:  # noqa: ARG002 - as informers call it
        if new is not None and new.metadata.namespace == LEASE_NAMESPACE:
            node = self._nodes.get("", new.metadata.name)
            if node is not None:
                self._hear(node)

    def _hear(self, node: Node) -> None:
        name = node.metadata.name
        lease = self._leases.get(LEASE_NAMESPACE, name)
        tick, now = self._clock.monotonic(), self._clock.now()
        self._signs[name] = health.observe(self._signs.get(name), node, lease, now, tick)

    def _forget(self, name: str) -> None:
        self._signs.pop(name, None)
        self._let_execute.discard(name)
        self._told_pods.discard(name)
        self._disruption.remove(name)
