"""The search for the nodes to add.

    ┌▶ schedule everybody on what is there and what was added, in the scheduler's order
    │  who is left? ── nobody, or nobody can be helped ─▶ drop nodes that turn out not to be needed ─▶ ScaleUpPlan
    │  for each group: fill its nodes one by one with those who are left
    └─ add the nodes of the group that helps most pods for its price; if none helps anybody, those that a gang needs
       at once: as many as its pods would need one by one, or of one group, if they have to be together

Several nodes are added at a time (4381-199), and what the plan promises was replayed as the scheduler would do it.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from typing import Final

import msgspec
from msgspec.structs import replace

from dray.allocator import Explanation
from dray.api.generated.apps import DaemonSet
from dray.api.generated.core import Node, Pod
from dray.api.references import ObjectName, full_name
from dray.api.resource import DeviceClass, ResourceSlice
from dray.prose import explanations
from dray.prose.wording import count
from dray.scale_up.answer import GroupAnswer, ScaleUpPlan, Unplaced
from dray.scale_up.node_group import Machine, NodeGroup
from dray.scheduling.daemon_nodes import DaemonNodes, spec_for
from dray.scheduling.judgeable import not_for_new_nodes
from dray.scheduling.pod_info import PodInfo, identified, read_pod
from dray.scheduling.reasons import PodReason
from dray.scheduling.refusal import NodesRefuse, Refused
from dray.scheduling.rehearsal import Rehearsal
from dray.scheduling.text import tell, tell_pod
from dray.snapshot import Snapshot
from dray.snapshot.pending_pods import pending_pods, with_claims
from dray.snapshot.storage_limits import tell_storage_limits
from dray.what_if.workloads import pod_of

MAX_NODES: Final = 1000
MAX_EXPLAINED: Final = 20
"""Pods that stay pending for which it is said, group by group, why."""

Counts = tuple[int, ...]
"""How many nodes of each group."""


class _Option(msgspec.Struct, frozen=True):
    """So many nodes of a group would help so many pods."""

    group: int
    nodes: int
    helped: int
    cost: float

    @property
    def rank(self) -> tuple[float, int, int]:
        """Smaller is better: price per pod, then nodes, then the order in which groups were given."""
        return self.cost / self.helped, self.nodes, self.group


def plan(snapshot: Snapshot, groups: Sequence[NodeGroup], *, max_nodes: int = MAX_NODES) -> ScaleUpPlan:
    """The nodes to add for the pods that wait, at most `max_nodes` in all. Nothing is changed anywhere."""
    waiting = pending_pods(snapshot)
    slices = {one.metadata.name for one in snapshot.objects(ResourceSlice)}
    with snapshot.rehearsal() as rehearsal:
        _bring_objects(rehearsal, groups, slices)
        problems = dict(waiting.problems)
        judged = []
        for pod in waiting.pods:
            problem = not_for_new_nodes(read_pod(identified(pod)), rehearsal.cluster.volumes)
            if problem is None:
                judged.append(pod)
            else:
                problems[full_name(pod)] = problem
        rehearsal.expect(judged, waiting.claims)
        daemons = _Daemons(rehearsal, snapshot)
        found = _Search(rehearsal, problems, groups, daemons, max_nodes).run()
    return replace(found, notes=tuple(tell_storage_limits(snapshot, found.placements)))


def _bring_objects(rehearsal: Rehearsal, groups: Sequence[NodeGroup], slices: set[str]) -> None:
    """What groups need and the cluster lacks; slices that all nodes share come once."""
    for obj in (obj for group in groups for obj in group.objects):
        if isinstance(obj, DeviceClass) and not rehearsal.has_class(obj.metadata.name):
            rehearsal.track(obj)
        elif isinstance(obj, ResourceSlice) and obj.metadata.name not in slices:
            slices.add(obj.metadata.name)
            rehearsal.track(obj)


class _Daemons:
    """The pods of DaemonSets, which are on a new node before others, with the devices that they ask for."""

    def __init__(self, rehearsal: Rehearsal, snapshot: Snapshot) -> None:
        self._rehearsal = rehearsal
        self._snapshot = snapshot
        self._daemons = [(one, DaemonNodes(one)) for one in snapshot.objects(DaemonSet)]

    def come_to(self, node: Node) -> None:
        """Each DaemonSet that is for a node has a pod there, unless there are no devices for it: then that waits."""
        name = node.metadata.name
        for daemon_set, nodes in self._daemons:
            if not nodes.judge(node).should_run:
                continue
            pod = identified(pod_of(daemon_set, name, spec_for(daemon_set, name)))
            if read_pod(pod).wants_devices:
                self._place(pod)
            else:
                self._rehearsal.run_pod(replace(pod, spec=replace(pod.spec, node_name=name)))

    def _place(self, pod: Pod) -> None:
        made = with_claims(pod, self._snapshot)
        if isinstance(made, PodReason):
            return
        mark = self._rehearsal.mark
        for claim in made[1]:
            self._rehearsal.set_claim(None, claim)
        info = read_pod(made[0])
        found = self._rehearsal.find_places(info)
        if isinstance(found, Refused):
            self._rehearsal.go_back(mark)
        else:
            self._rehearsal.bind(info, found[0])


class _Search:
    def __init__(
        self,
        rehearsal: Rehearsal,
        problems: Mapping[str, PodReason],
        groups: Sequence[NodeGroup],
        daemons: _Daemons,
        max_nodes: int,
    ) -> None:
        self._rehearsal = rehearsal
        self._daemons = daemons
        self._problems = problems
        self._groups = groups
        self._max_nodes = max_nodes

    def run(self) -> ScaleUpPlan:
        rehearsal = self._rehearsal
        counts, placed = self._grow()
        counts, placed = self._shrink(counts, placed)
        groups = tuple(self._answer(number, counts, placed) for number in range(len(self._groups)))
        on_new = {pod for group in groups for pod in group.pods}
        return ScaleUpPlan(
            pending=len(rehearsal.pending) + len(self._problems),
            fitting=tuple(_name(pod) for pod in placed if _name(pod) not in on_new),
            groups=groups,
            placements={_name(pod): node for pod, node in placed.items()},
            unplaced=self._unplaced(counts, placed),
        )

    def _grow(self) -> tuple[Counts, dict[PodInfo, str]]:
        counts: Counts = (0,) * len(self._groups)
        rehearsal = self._rehearsal
        while True:
            mark = rehearsal.mark
            placed = self._replay(counts)
            left = [pod for pod in rehearsal.pending if pod not in placed]
            found = [self._option(number, counts, left) for number in range(len(self._groups))] if left else []
            rehearsal.go_back(mark)
            options = [option for option in found if option is not None]
            if options:
                best = min(options, key=lambda option: option.rank)
                counts = _changed(counts, best.group, best.nodes)
                continue
            more = self._for_gangs(counts, left)
            if more is None:
                return counts, placed
            counts = more

    def _for_gangs(self, counts: Counts, left: Sequence[PodInfo]) -> Counts | None:
        """With the nodes that the first gang needs which new nodes help; None if there is none."""
        gangs: dict[ObjectName, list[PodInfo]] = {}
        for pod in left:
            if pod.group is not None:
                gangs.setdefault(pod.group, []).append(pod)
        for gang in gangs.values():
            wanted = self._one_by_one(counts, gang)
            if wanted != counts and self._helps(wanted, gang):
                return wanted
            wanted = self._of_one_group(counts, gang)
            if wanted != counts:
                return wanted
        return None

    def _one_by_one(self, counts: Counts, gang: Sequence[PodInfo]) -> Counts:
        """With the nodes that the pods of a gang would need if each were alone."""
        rehearsal = self._rehearsal
        mark = rehearsal.mark
        self._replay(counts)
        while True:
            placed = rehearsal.schedule(gang, together=False)
            gang = [pod for pod in gang if pod not in placed]
            found = [self._option(number, counts, gang, together=False) for number in range(len(self._groups))]
            options = [option for option in found if option is not None]
            if not options:
                rehearsal.go_back(mark)
                return counts
            best = min(options, key=lambda option: option.rank)
            for index in range(best.nodes):
                self._join(self._machine(best.group, counts[best.group] + index))
            counts = _changed(counts, best.group, best.nodes)

    def _of_one_group(self, counts: Counts, gang: Sequence[PodInfo]) -> Counts:
        """With as few nodes of one group as a gang needs, of the cheapest group that helps it."""
        for number in sorted(range(len(self._groups)), key=lambda one: self._groups[one].price):
            most = min(self._room(number, counts), len(gang))
            if not most or not self._helps(_changed(counts, number, most), gang):
                continue
            fewest = bisect_left(
                range(1, most), True, key=lambda nodes: self._helps(_changed(counts, number, nodes), gang)
            )
            return _changed(counts, number, fewest + 1)
        return counts

    def _helps(self, counts: Counts, gang: Sequence[PodInfo]) -> bool:
        """Whether pods of a gang get nodes if there are so many."""
        mark = self._rehearsal.mark
        placed = self._replay(counts)
        self._rehearsal.go_back(mark)
        return any(pod in placed for pod in gang)

    def _room(self, number: int, counts: Counts) -> int:
        """How many more nodes of a group there may be."""
        return min(self._groups[number].limit - counts[number], self._max_nodes - sum(counts))

    def _shrink(self, counts: Counts, placed: dict[PodInfo, str]) -> tuple[Counts, dict[PodInfo, str]]:
        """Without the nodes, dearest first, that nobody misses: filling group by group may have bought too much."""
        dearest = sorted(range(len(self._groups)), key=lambda number: -self._groups[number].price)
        for number in dearest:
            while counts[number]:
                fewer = _changed(counts, number, -1)
                mark = self._rehearsal.mark
                still = self._replay(fewer)
                self._rehearsal.go_back(mark)
                if len(still) < len(placed) or not still.keys() >= placed.keys():
                    break
                counts, placed = fewer, still
        return counts, placed

    def _replay(self, counts: Counts) -> dict[PodInfo, str]:
        """All nodes join, then all pods are scheduled. Whoever calls goes back afterwards."""
        for number, nodes in enumerate(counts):
            for index in range(nodes):
                self._join(self._machine(number, index))
        return self._rehearsal.schedule(self._rehearsal.pending)

    def _option(self, number: int, counts: Counts, left: Sequence[PodInfo], *, together: bool = True) -> _Option | None:
        """What more nodes of a group would do for those who are left; None if nothing."""
        rehearsal, group = self._rehearsal, self._groups[number]
        room = self._room(number, counts)
        mark = rehearsal.mark
        waiting, nodes, helped = list(left), 0, 0
        while nodes < room and waiting:
            self._join(self._machine(number, counts[number] + nodes))
            placed = rehearsal.schedule(waiting, together=together)
            if not placed:
                break
            nodes += 1
            helped += len(placed)
            waiting = [pod for pod in waiting if pod not in placed]
        rehearsal.go_back(mark)
        return _Option(number, nodes, helped, nodes * group.price) if nodes else None

    def _join(self, machine: Machine) -> None:
        """A node comes, and with it the pods of DaemonSets that are for it."""
        self._rehearsal.add_node(machine.node, machine.slices)
        self._daemons.come_to(machine.node)

    def _machine(self, number: int, index: int) -> Machine:
        group = self._groups[number]
        return group.machine(f"{group.name}#{index + 1}")  # no node that is there can be called like this

    def _answer(self, number: int, counts: Counts, placed: dict[PodInfo, str]) -> GroupAnswer:
        group = self._groups[number]
        own = {self._machine(number, index).name for index in range(counts[number])}
        pods = tuple(_name(pod) for pod, node in placed.items() if node in own)
        return GroupAnswer(group.name, counts[number], group.limit, group.price, pods)

    def _unplaced(self, counts: Counts, placed: dict[PodInfo, str]) -> tuple[Unplaced, ...]:
        rehearsal = self._rehearsal
        mark = rehearsal.mark
        self._replay(counts)
        found = [Unplaced(pod, tell_pod(problem)) for pod, problem in self._problems.items()]
        left = [pod for pod in rehearsal.pending if pod not in placed]
        for pod in left[:MAX_EXPLAINED]:
            answer = rehearsal.decide(pod)
            told = tell(answer) if isinstance(answer, Refused) else ""
            if isinstance(answer, Refused) and not isinstance(answer.why, NodesRefuse):
                found.append(Unplaced(_name(pod), told))  # whatever nodes there are
                continue
            reasons = {group.name: self._why_not(number, counts, pod) for number, group in enumerate(self._groups)}
            found.append(Unplaced(_name(pod), told, reasons))
        found += [Unplaced(_name(pod), "") for pod in left[MAX_EXPLAINED:]]
        rehearsal.go_back(mark)
        return tuple(found)

    def _why_not(self, number: int, counts: Counts, pod: PodInfo) -> str:
        group = self._groups[number]
        machine = self._machine(number, counts[number])
        mark = self._rehearsal.mark
        self._join(machine)
        reason = self._tell_refusal(pod, machine.name)
        self._rehearsal.go_back(mark)
        if reason:
            return reason
        if pod.group is not None and (room := self._room(number, counts)):
            return f"would fit by itself, but with at most {count(room, 'node')} too few pods of its group do"
        if counts[number] >= group.limit:
            return f"would fit, but no more than {group.limit} nodes may be added"
        return f"would fit, but no more than {self._max_nodes} nodes may be added in all"

    def _tell_refusal(self, pod: PodInfo, node: str) -> str:
        """Why a pod does not fit on a node, in a line; empty if it does."""
        refusal = self._rehearsal.unsuitable(pod, node)
        if refusal or not pod.wants_devices:
            return ", ".join(self._rehearsal.tell(pod, node, one) for one in refusal)
        told = self._rehearsal.explain(pod, [node])
        if isinstance(told, Explanation):
            return explanations.brief(told)
        return "claims that are allocated already cannot be used there" if told is None else tell_pod(told)


def _changed(counts: Counts, number: int, step: int) -> Counts:
    return (*counts[:number], counts[number] + step, *counts[number + 1 :])


def _name(pod: PodInfo) -> str:
    return str(pod.name)
