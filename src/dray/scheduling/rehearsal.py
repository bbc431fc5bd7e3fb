"""A cluster in memory in which pods are scheduled, nodes come, and everything can be taken back.

Each step is what the scheduler does (decide, reserve, bind), against this state instead of the API, so that the next
pod sees what the one before it took (4381-201).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial

from msgspec.structs import replace

from dray.allocator import Explanation, Options, explain
from dray.api.extended_resources import is_for_extended
from dray.api.generated.core import Node, Pod
from dray.api.pod_claims import user_of
from dray.api.references import ObjectName, full_name
from dray.api.resource import DeviceClass, DeviceTaintRule, ResourceClaim, ResourceSlice, ResourceSlicePatch
from dray.scheduling.claims import is_in_reach
from dray.scheduling.cluster import Cluster
from dray.scheduling.company import name_company
from dray.scheduling.decide import Chosen, find_places
from dray.scheduling.extended_claim import name_resources
from dray.scheduling.extended_devices import look_for_devices
from dray.scheduling.gang_preemption import find_gang_victims
from dray.scheduling.gangs import Together, decide_group, finish
from dray.scheduling.likeness import find_likeness
from dray.scheduling.pod_info import PodInfo, identified, read_pod
from dray.scheduling.preemption import find_victims
from dray.scheduling.reasons import NodeReason, PodReason
from dray.scheduling.refusal import Refused
from dray.scheduling.shortage import tell_shortage
from dray.scheduling.text import tell_node
from dray.tracker import Remove, Upsert

Tracked = DeviceClass | ResourceSlice | ResourceSlicePatch | DeviceTaintRule


class Rehearsal:
    """Changes a cluster and takes back what it changed. Whoever lends the cluster gets it back after `go_back(0)`."""

    def __init__(self, cluster: Cluster, options: Options | None = None) -> None:
        self.cluster = cluster
        self.pending: tuple[PodInfo, ...] = ()
        """The pods that wait, in the scheduler's order."""
        self._options = options or Options()
        self._likeness: dict[PodInfo, tuple[bytes, ...] | None] = {}
        self._keeps_away = False
        """Whether some pods keep others away, so that it matters which labels a pod has."""
        self._undo: list[Callable[[], None]] = []

    @property
    def mark(self) -> int:
        """The state now, for `go_back`."""
        return len(self._undo)

    def go_back(self, mark: int) -> None:
        """Takes back everything that happened since."""
        while len(self._undo) > mark:
            self._undo.pop()()

    # What happens in the cluster

    def expect(self, pods: Iterable[Pod], claims: Iterable[ResourceClaim]) -> None:
        """These pods wait for nodes, in this order, with these claims besides those that are there."""
        for claim in claims:
            self.set_claim(None, claim)
        self.pending = tuple(read_pod(identified(pod)) for pod in pods)
        groups = self.cluster.groups
        for uid in [info.pod.metadata.uid for info in self.pending if info.group is not None]:
            self._undo.append(partial(groups.set_pod, None, uid))
        for info in self.pending:
            groups.set_pod(info.pod, info.pod.metadata.uid)
        self._keeps_away = self.cluster.nodes.topology.keeps_any_away or any(pod.terms for pod in self.pending)
        self._likeness = {pod: self._alike(pod) for pod in self.pending}

    def track(self, obj: Tracked) -> None:
        """A class, slice, patch or rule comes that was not there."""
        cluster = self.cluster
        if isinstance(obj, DeviceClass):
            cluster.set_class(obj.metadata.name, obj)
            self._undo.append(lambda: cluster.set_class(obj.metadata.name, None))
        cluster.track(Upsert(obj))
        self._undo.append(lambda: _discard(cluster.track(Remove.of(obj))))

    def has_class(self, name: str) -> bool:
        """Whether a device class of this name is there."""
        return name in self.cluster.classes

    def add_node(self, node: Node, slices: Iterable[ResourceSlice]) -> None:
        """A node joins, with its devices."""
        self.cluster.set_node(None, node)
        self._undo.append(lambda: self.cluster.set_node(node, None))
        for one in slices:
            self.track(one)

    def run_pod(self, pod: Pod) -> None:
        """A pod is on its node that was not there."""
        self.cluster.set_pod(pod, pod.metadata.uid)
        self._undo.append(lambda: self.cluster.set_pod(None, pod.metadata.uid))

    def remove_pod(self, pod: Pod) -> None:
        """A pod leaves its node; its claims stay as they are."""
        placed = identified(pod)
        self.cluster.set_pod(None, placed.metadata.uid)
        self._undo.append(lambda: self.cluster.set_pod(placed, placed.metadata.uid))

    def set_claim(self, old: ResourceClaim | None, new: ResourceClaim | None) -> None:
        """A claim comes, changes or goes."""
        self.cluster.set_claim(old, new)
        self._undo.append(lambda: self.cluster.set_claim(new, old))

    # What the scheduler does

    def schedule(self, pods: Iterable[PodInfo], *, together: bool = True) -> dict[PodInfo, str]:
        """Schedules pods of those that wait, one after the other, and those of a group at once; who gets which node.

        Unless `together`, those of a group are pods like any other.
        """
        placed: dict[PodInfo, str] = {}
        refused: set[tuple[bytes, ...]] = set()
        seen: set[ObjectName] = set()
        pods = list(pods)
        for pod in pods:
            if pod.group is not None and together:
                if pod.group not in seen:
                    seen.add(pod.group)
                    placed |= self._schedule_group(pod.group, [one for one in pods if one.group == pod.group])
                continue
            alike = self._likeness[pod]
            if alike is not None and alike in refused:
                continue  # nothing was freed since, so what did not fit before does not fit now
            chosen = self.find_places(pod)
            if not isinstance(chosen, Refused):
                self.bind(pod, chosen[0])
                placed[pod] = chosen[0].node
            elif alike is not None:
                refused.add(alike)
        return placed

    def _schedule_group(self, name: ObjectName, pods: list[PodInfo]) -> dict[PodInfo, str]:
        answer = self.decide_group(name, pods)
        if isinstance(answer, Refused):
            return {}
        for pod, chosen in answer.chosen:
            self.bind(pod, chosen)
        return {pod: chosen.node for pod, chosen in answer.chosen}

    def decide_group(self, name: ObjectName, pods: Sequence[PodInfo]) -> Together | Refused:
        """What the scheduler would decide about pods of a group; nothing is bound."""
        return finish(decide_group(self.cluster, name, pods, self._options))

    def decide(self, pod: PodInfo) -> Chosen | Refused:
        """What the scheduler would decide now, about the pod with all others of its group; nothing is bound."""
        if pod.group is not None:
            together = self.decide_group(pod.group, [one for one in self.pending if one.group == pod.group])
            if isinstance(together, Refused):
                return together
            by_pod: dict[PodInfo, Chosen | Refused] = dict(together.chosen) | dict(together.left_out)
            return by_pod[pod]
        mark = self.mark
        answer = self.find_places(pod)
        self.go_back(mark)
        return answer if isinstance(answer, Refused) else answer[0]

    def find_places(self, pod: PodInfo, most: int = 1) -> tuple[Chosen, ...] | Refused:
        """Nodes for a pod, the best first. As the scheduler does, a claim in the way that nobody uses is made anew."""
        answer = find_places(self.cluster, pod, self._options, most)
        while isinstance(answer, Refused) and answer.unused_claims:
            old = answer.unused_claims[0]
            freed = replace(old, status=replace(old.status, allocation=None, devices=()))  # 4381-113
            self.set_claim(old, None if is_for_extended(old) else freed)
            answer = find_places(self.cluster, pod, self._options, most)
        return answer

    def bind(self, pod: PodInfo, chosen: Chosen) -> None:
        """The pod gets the node, and its claims what was chosen for them."""
        for decided_on in chosen.claims:
            # Another pod of the group may have got it with what was decided for both.
            claim = self.cluster.claims.get(ObjectName.of(decided_on), decided_on)
            found = chosen.allocations.get(full_name(claim))
            allocation = found[1] if found is not None else claim.status.allocation
            user = user_of(claim, pod.pod, self.cluster.groups.get(pod.group))
            users = dict.fromkeys((*claim.status.reserved_for, user))
            status = replace(claim.status, allocation=allocation, reserved_for=tuple(users))
            stored = self.cluster.find_claim(claim.metadata.namespace, claim.metadata.name)
            self.set_claim(stored, replace(claim, status=status))
        uid = pod.pod.metadata.uid
        spec = replace(pod.pod.spec, node_name=chosen.node)
        told = replace(pod.pod.status, extended_resource_claim_status=chosen.extended) if chosen.extended else None
        waited_for = self.cluster.nominations.node_of(pod)
        self.cluster.set_pod(replace(pod.pod, spec=spec, status=told or pod.pod.status), uid)
        self._undo.append(lambda: self._take_off(pod, waited_for))

    def _take_off(self, pod: PodInfo, waits_for: str) -> None:
        """A pod that was bound waits again, for the node that it waited for."""
        self.cluster.set_pod(None, pod.pod.metadata.uid)
        if waits_for:
            self.cluster.nominations.set(pod, waits_for)
        if pod.group is not None:
            self.cluster.groups.set_pod(pod.pod, pod.pod.metadata.uid)

    def find_victims(self, pod: PodInfo, refused: Refused) -> Refused:
        """The refusal, with who would have to go for the pod, or why that does not help.

        As the scheduler does, it looks for them once claims in the way that nobody uses are free, and for the pods of
        a group at once.
        """
        if pod.group is not None:
            waiting = [one for one in self.pending if one.group == pod.group]
            found = finish(find_gang_victims(self.cluster, pod.group, waiting, self._options, refused))
            assert isinstance(found, Refused), "who goes for a group is told with why it waits"
            return found
        mark = self.mark
        again = self.find_places(pod) if pod.claims else refused
        found = find_victims(self.cluster, pod, self._options, again if isinstance(again, Refused) else refused)
        self.go_back(mark)
        return found

    # Why not

    def unsuitable(self, pod: PodInfo, node: str) -> tuple[NodeReason, ...]:
        """What a node has against a pod, whatever devices there are."""
        info = self.cluster.nodes.get(node)
        return () if info is None else self.cluster.nodes.filter(pod).refuses(info)

    def extended_devices(self, pod: PodInfo, node: str) -> tuple[str, ...]:
        """The extended resources that a pod asks for and that are devices on a node."""
        info, known = self.cluster.nodes.get(node), self.cluster.nodes.with_classes(pod)
        if info is None:
            return ()
        return tuple(name for name in known.extended if known.are_devices(name, info.allocatable))

    def is_in_reach(self, claim: ResourceClaim, node: str) -> bool:
        """Whether what a claim has can be used on a node."""
        info = self.cluster.nodes.get(node)
        return info is not None and is_in_reach(claim, node, info.node.metadata.labels)

    def tell(self, pod: PodInfo, node: str, reason: NodeReason) -> str:
        """What a node has against a pod, with the numbers, pods and terms that are behind it."""
        info = self.cluster.nodes.get(node)
        if info is None:
            return tell_node(reason)
        behind = tell_shortage(pod, info, reason) or name_company(self.cluster, pod, info, reason)
        return f"{tell_node(reason)} ({behind})" if behind else tell_node(reason)

    def explain(self, pod: PodInfo, nodes: Iterable[str]) -> Explanation | PodReason | None:
        """Why the claims of a pod fit on nodes or not; what keeps them from every node; None if all are allocated."""
        found = self.cluster.claims_of(pod.pod)
        if found.problem is not None:
            return found.problem
        devices = look_for_devices(self.cluster, pod, found.claims, self._options)
        if devices is None or not devices.pending:
            return None
        report = explain(self.cluster.inventory, self.cluster.classes, devices.pending, nodes)
        return name_resources(report, pod.pod, devices.pending)

    def _alike(self, pod: PodInfo) -> tuple[bytes, ...] | None:
        return find_likeness(self.cluster, pod, self._options, keeps_away=self._keeps_away)


def _discard(_: object) -> None:
    """For what is called for what it does."""
