"""Runs all simulated nodes of a cluster: one informer per kind for all of them, however many there are.

A node is simulated if it carries the label `dray.dev/simulated=true`, whoever created it. Stopped nodes
(`dray.dev/simulated-state=stopped`) fall silent: no heartbeats, no status, as if they had lost power.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, Protocol, TypeVar

from msgspec.structs import replace

from dray.api.generated.core import Node, Pod
from dray.api.kinds import CLAIMS, NODES, PODS
from dray.api.meta import Object
from dray.api.nodes import is_simulated
from dray.api.pod_groups import is_group
from dray.api.pods import RUNNING, is_finished
from dray.api.references import ObjectName
from dray.api.registry import Kind
from dray.api.resource import ResourceClaim
from dray.client import Client, Informer
from dray.client.calls import delete_exactly
from dray.process.clock import as_time
from dray.process.tasks import run_together
from dray.reconcile import Clock, Controller, EventRecorder
from dray.scheduling.filters.ports import is_taken
from dray.scheduling.pod_info import host_ports
from dray.simulation import pod_lifecycle
from dray.simulation.addresses import Addresses
from dray.simulation.behaviour import read_behaviour
from dray.simulation.heartbeats import Heartbeats
from dray.simulation.node_status import is_running, with_good_conditions, without_not_ready_taint
from dray.simulation.pod_lifecycle import PodSurroundings, Step

BY_NODE: Final = "simulation: by node"
COMPONENT: Final = "simulated-kubelet"
WORKERS: Final = 64
PATIENCE: Final = 1.0
"""How long claims may lag behind their pod, in seconds, before somebody is told."""

T = TypeVar("T", bound=Object)


class InformerSource(Protocol):
    """Informers that a process shares; whoever gives them runs them."""

    def of(self, kind: Kind, type_: type[T]) -> Informer[T]:
        """The informer of a kind."""
        ...


class Simulator:
    """The kubelets of all simulated nodes."""

    def __init__(self, client: Client, clock: Clock, informers: InformerSource, *, untaint: bool = True) -> None:
        """With `untaint` the not-ready taint of new nodes is removed here; else a node lifecycle controller does it."""
        self._client = client
        self._clock = clock
        self._informers = informers
        self._untaint = untaint
        self._recorder = EventRecorder(client, COMPONENT, clock)
        self._addresses = Addresses()
        self.heartbeats = Heartbeats(client, clock)
        self._known: set[str] = set()
        self._hosts: dict[str, Node] = {}
        """The nodes that run, as they are stored."""
        self._waiting: dict[ObjectName, float] = {}
        self._starting: dict[ObjectName, Pod] = {}
        """Pods that run as soon as that is written: their host ports are taken, though nobody can see it yet."""
        self._nodes: Informer[Node] = informers.of(NODES, Node)
        self._pods: Informer[Pod] | None = None
        self._claims: Informer[ResourceClaim] | None = None
        self._node_work: Controller[str] = Controller("simulated-nodes", self._reconcile_node, clock, workers=WORKERS)
        self._pod_work: Controller[ObjectName] = Controller(
            "simulated-pods", self._reconcile_pod, clock, workers=WORKERS
        )

    @property
    def count(self) -> int:
        """How many nodes are simulated, running or stopped."""
        return len(self._known)

    def knows(self, nodes: Iterable[str]) -> bool:
        """Whether all these nodes have been seen."""
        return self._known.issuperset(nodes)

    @property
    def idle(self) -> bool:
        """Whether nothing is to be done now."""
        return self._node_work.queue.idle and self._pod_work.queue.idle

    async def run(self) -> None:
        """Simulates until cancelled."""
        self._nodes.on_change(self._on_node)
        await self._nodes.synced()
        await run_together(self._node_work.run(), self._pod_work.run(), self.heartbeats.run())

    # Events

    def _on_node(self, old: Node | None, new: Node | None) -> None:
        name = (new or old).metadata.name  # type: ignore[union-attr]  # one of the two is there
        if new is None or not is_simulated(new):
            self._known.discard(name)
            self._stop(name)
            return
        self._known.add(name)
        if not is_running(new):
            self._stop(name)
            return
        started = name not in self._hosts
        self._hosts[name] = new
        if started:
            self._follow_pods()
            self.heartbeats.start(new)
            self._look_at_pods(name)
        self._node_work.queue.add(name)

    def _stop(self, name: str) -> None:
        if self._hosts.pop(name, None) is not None:
            self.heartbeats.stop(name)

    def _follow_pods(self) -> None:
        """A cluster without simulated nodes need not be bothered about its pods."""
        if self._pods is not None:
            return
        self._claims = self._informers.of(CLAIMS, ResourceClaim)
        self._claims.on_change(self._on_claim)
        self._pods = self._informers.of(PODS, Pod)
        self._pods.add_index(BY_NODE, lambda pod: (pod.spec.node_name,) if pod.spec.node_name else ())
        self._pods.on_change(self._on_pod)

    def _look_at_pods(self, node: str) -> None:
        if self._pods is not None:
            for pod in self._pods.by_index(BY_NODE, node):
                self._on_pod(None, pod)

    def _on_pod(self, old: Pod | None, new: Pod | None) -> None:
        if new is None:
            if old is not None:
                self._addresses.release(old.metadata.uid)
                self._waiting.pop(ObjectName.of(old), None)
            return
        if new.spec.node_name not in self._hosts:
            return
        if is_finished(new):
            self._addresses.release(new.metadata.uid)
            if new.metadata.deletion_timestamp is None:
                return
        elif new.status.pod_ip:
            self._addresses.note(new.metadata.uid, new.status.pod_ip)
        self._pod_work.queue.add(ObjectName.of(new))

    def _on_claim(self, _old: ResourceClaim | None, new: ResourceClaim | None) -> None:
        if new is None or not self._waiting:
            return
        for consumer in new.status.reserved_for:
            place = ObjectName(new.metadata.namespace, consumer.name)
            if place in self._waiting:
                self._pod_work.queue.add(place)
            elif is_group(consumer):
                for waiting in self._waiting:  # any of them may be of the group
                    self._pod_work.queue.add(waiting)

    # Work

    async def _reconcile_node(self, name: str) -> float | None:
        """Ready, and without the taint of new nodes."""
        node = self._hosts.get(name)
        if node is None:
            return None
        good = with_good_conditions(node, as_time(self._clock.now()))
        if good is not node:
            node = await self._client.update(good, "status")
        clean = without_not_ready_taint(node) if self._untaint else node
        if clean is not node:
            node = await self._client.update(clean)
        self._nodes.put(node)
        return None

    async def _reconcile_pod(self, place: ObjectName) -> float | None:
        pods = self._pods
        pod = pods.get(*place) if pods is not None else None
        host = self._hosts.get(pod.spec.node_name) if pod is not None else None
        if pods is None or pod is None or host is None:
            return None
        now = self._clock.now()
        surroundings = self._surroundings(pod, host)
        step = pod_lifecycle.plan(pod, surroundings, now, as_time(now))
        if step.warning:
            return await self._wait(pod, step)
        self._waiting.pop(place, None)
        if step.status is not None:
            if surroundings.behaviour.problem:
                await self._recorder.warning(pod, "InvalidAnnotation", surroundings.behaviour.problem)
            if step.status.phase == RUNNING:
                self._starting[place] = pod
            try:
                pod = await self._client.update(replace(pod, status=step.status), "status")
                pods.put(pod)
            finally:
                self._starting.pop(place, None)
        if step.remove:
            await self._remove(pod)
        return step.again_in

    def _surroundings(self, pod: Pod, host: Node) -> PodSurroundings:
        address = next((one.address for one in host.status.addresses if one.type == "InternalIP"), "")
        behaviour = read_behaviour(pod.metadata.annotations, host.metadata.annotations)
        return PodSurroundings(
            address, self._addresses.take(pod.metadata.uid), behaviour, self._find_claim, self._has_free_ports(pod)
        )

    def _has_free_ports(self, pod: Pod) -> bool:
        """Whether nobody else on the node has the host ports of a pod; whoever is put there by hand may find out."""
        wanted = host_ports(pod.spec)
        if not wanted or self._pods is None or pod.status.phase == RUNNING:
            return True
        others = [one for one in self._pods.by_index(BY_NODE, pod.spec.node_name) if one.status.phase == RUNNING]
        others += [one for one in self._starting.values() if one.spec.node_name == pod.spec.node_name]
        return not any(is_taken(port, host_ports(one.spec)) for port in wanted for one in others)

    def _find_claim(self, namespace: str, name: str) -> ResourceClaim | None:
        return self._claims.get(namespace, name) if self._claims is not None else None

    async def _wait(self, pod: Pod, step: Step) -> float | None:
        """The pod's claims are not as they must be: it waits until they are, and after a while an event says so."""
        since = self._waiting.setdefault(ObjectName.of(pod), self._clock.monotonic())
        waited = self._clock.monotonic() - since
        if waited < PATIENCE:
            return PATIENCE - waited
        await self._recorder.warning(pod, "FailedPrepareDynamicResources", step.warning)
        return None

    async def _remove(self, pod: Pod) -> None:
        await delete_exactly(self._client, PODS, pod, grace_seconds=0)
