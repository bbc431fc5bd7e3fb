"""A cluster in memory in which pods are scheduled, nodes come, and everything can be taken back.

Each step is what the scheduler does (decide, reserve, bind), against this state instead of the API, so that the next
pod sees what the one before it took (4381-201).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

import msgspec
from msgspec.structs import replace

from dray.allocator import Explanation, Options, explain
from dray.api import codec
from dray.api.generated.core import Node, Pod
from dray.api.meta import Object
from dray.api.resource import DeviceClass, DeviceTaintRule, ResourceClaim, ResourceSlice, ResourceSlicePatch
from dray.rehearsal.pending_pods import pending_pods
from dray.scheduler.binding import consumer
from dray.scheduler.claims import find_claims
from dray.scheduler.cluster import Cluster
from dray.scheduler.decide import Chosen, Refused, decide
from dray.scheduler.pod_info import PodInfo, read_pod
from dray.snapshot import Snapshot, prose
from dray.tracker import Remove, Upsert

TRACKED = (DeviceClass, ResourceSlice, ResourceSlicePatch, DeviceTaintRule)


class Rehearsal:
    """Starts with what the snapshot has; `pending` are its pods without a node, in the scheduler's order."""

    def __init__(self, snapshot: Snapshot, options: Options | None = None) -> None:
        self._cluster = Cluster()
        self._options = options or Options()
        self._undo: list[Callable[[], None]] = []
        for node in snapshot.objects(Node):
            self._cluster.set_node(None, node)
        for obj in snapshot.objects(Object):
            if isinstance(obj, TRACKED):
                self.track(obj)
        for claim in snapshot.objects(ResourceClaim):
            self._cluster.set_claim(None, claim)
        for pod in snapshot.objects(Pod):
            if pod.spec.node_name:
                self._cluster.set_pod(pod, _uid(pod))
        found = pending_pods(snapshot)
        for claim in found.claims:
            self._cluster.set_claim(None, claim)
        self.pending: tuple[PodInfo, ...] = tuple(read_pod(pod) for pod in found.pods)
        self._likeness = {pod: self._alike(pod) for pod in self.pending}
        self.problems = found.problems
        """By pod, why its claims cannot be made."""

    def track(self, obj: DeviceClass | ResourceSlice | ResourceSlicePatch | DeviceTaintRule) -> None:
        """A class, slice, patch or rule is there."""
        if isinstance(obj, DeviceClass):
            self._cluster.set_class(obj.metadata.name, obj)
        self._cluster.track(Upsert(obj))

    def has_class(self, name: str) -> bool:
        """Whether a device class of this name is there."""
        return name in self._cluster.classes

    @property
    def mark(self) -> int:
        """The state now, for `go_back`."""
        return len(self._undo)

    def go_back(self, mark: int) -> None:
        """Takes back everything that happened since."""
        while len(self._undo) > mark:
            self._undo.pop()()

    def add_node(self, node: Node, slices: Iterable[ResourceSlice]) -> None:
        """A node joins, with its devices."""
        published = tuple(slices)
        self._cluster.set_node(None, node)
        for one in published:
            self._cluster.track(Upsert(one))

        def leave() -> None:
            for one in published:
                self._cluster.track(Remove.of(one))
            self._cluster.set_node(node, None)

        self._undo.append(leave)

    def schedule(self, pods: Iterable[PodInfo]) -> dict[PodInfo, str]:
        """Schedules pods one after the other; the nodes of those that fit."""
        placed: dict[PodInfo, str] = {}
        refused: set[tuple[bytes, ...]] = set()
        for pod in pods:
            alike = self._likeness[pod]
            if alike is not None and alike in refused:
                continue  # nothing was freed since, so what did not fit before does not fit now
            chosen = self._decide(pod)
            if isinstance(chosen, Chosen):
                self._bind(pod, chosen)
                placed[pod] = chosen.node
            elif alike is not None:
                refused.add(alike)
        return placed

    def decide(self, pod: PodInfo) -> Chosen | Refused:
        """What the scheduler would decide now; nothing is bound."""
        mark = self.mark
        answer = self._decide(pod)
        self.go_back(mark)
        return answer

    def unsuitable(self, pod: PodInfo) -> dict[str, str]:
        """By node, why a pod cannot run there whatever devices there are; nodes that suit it are left out."""
        table = self._cluster.nodes
        found = {info.node.metadata.name: ", ".join(table.refuses(pod, info)) for info in table}
        return {name: reason for name, reason in found.items() if reason}

    def explain(self, pod: PodInfo, nodes: Iterable[str]) -> Explanation | str:
        """Why the claims of a pod fit on nodes or not; a text if there is nothing to look for on any node."""
        found = find_claims(pod.pod, self._cluster.find_claim)
        pending = [claim for claim in found.claims if claim.status.allocation is None]
        if found.problem or not pending:
            return found.problem or "claims that are allocated already cannot be used there"
        return explain(self._cluster.inventory, self._cluster.classes, pending, nodes)

    def why_not(self, pod: PodInfo, node: str) -> str:
        """Why a pod does not fit on a node, in a line; empty if it does."""
        info = self._cluster.nodes.get(node)
        if info is None:
            return f"there is no node {node}"
        reason = ", ".join(self._cluster.nodes.refuses(pod, info))
        if reason or not pod.pod.spec.resource_claims:
            return reason
        told = self.explain(pod, [node])
        return told if isinstance(told, str) else prose.brief(told)

    def _decide(self, pod: PodInfo) -> Chosen | Refused:
        answer = decide(self._cluster, pod, self._options)
        if isinstance(answer, Refused) and answer.unused_claim is not None:
            # As the scheduler does: a claim that nobody uses is made anew where the pod can go (4381-113).
            old = answer.unused_claim
            self._set_claim(old, replace(old, status=replace(old.status, allocation=None, devices=())))
            answer = decide(self._cluster, pod, self._options)
        return answer

    def _bind(self, pod: PodInfo, chosen: Chosen) -> None:
        for claim in chosen.claims:
            found = chosen.allocations.get(f"{claim.metadata.namespace}/{claim.metadata.name}")
            allocation = found[1] if found is not None else claim.status.allocation
            users = (*claim.status.reserved_for, consumer(pod.pod))
            status = replace(claim.status, allocation=allocation, reserved_for=users)
            self._set_claim(claim, replace(claim, status=status))
        uid = _uid(pod.pod)
        self._cluster.set_pod(replace(pod.pod, spec=replace(pod.pod.spec, node_name=chosen.node)), uid)
        self._undo.append(lambda: self._cluster.set_pod(None, uid))

    def _set_claim(self, old: ResourceClaim, new: ResourceClaim) -> None:
        self._cluster.set_claim(old, new)
        self._undo.append(lambda: self._cluster.set_claim(new, old))

    def _alike(self, pod: PodInfo) -> tuple[bytes, ...] | None:
        """Equal for pods that fit in the same places; None for a pod that shares a claim with others."""
        if any(entry.resource_claim_name for entry in pod.pod.spec.resource_claims):
            return None
        found = find_claims(pod.pod, self._cluster.find_claim)
        if found.problem:
            return None
        needs = msgspec.json.encode([sorted(pod.requests.items()), sorted(pod.ports)])
        return (pod.placement_key, needs, *(codec.encode(claim.spec) for claim in found.claims))


def _uid(pod: Pod) -> str:
    return pod.metadata.uid or f"{pod.metadata.namespace}/{pod.metadata.name}"
