"""The decision about a group of pods: nodes and devices for enough of them at once, or for none.

group, its pods that wait ─▶ are they there, and alike? ─▶ for each domain, or everywhere once:
                                                              one pod after the other: decide, assume
                                                              enough? ─▶ Together     too few? ─▶ the next domain
                                                           all taken back ─▶ Refused, with what stopped the best try

A generator, because there may be hundreds of pods: it hands over after each one, so that whoever runs it can let others
have their turn. Whatever it assumes meanwhile it takes back in the end, however it ends. Nothing is held for a group
that waits, so that two of them cannot wait for each other.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Sequence

import msgspec
from msgspec.structs import replace

from dray.allocator import Options
from dray.api.generated.scheduling import PodGroup
from dray.api.pod_groups import min_count, topology_key
from dray.api.references import ObjectName
from dray.scheduling.cluster import Cluster
from dray.scheduling.decide import Chosen, decide, refuse_at_once
from dray.scheduling.likeness import find_likeness
from dray.scheduling.pod_info import PodInfo
from dray.scheduling.reasons import GroupIncomplete, GroupInconsistent, GroupMissing, GroupReason, NoDomain
from dray.scheduling.refusal import GroupShort, Refused

AT_ONCE = 20
"""How many decisions are taken back at a time."""


class Together(msgspec.Struct, frozen=True):
    """Enough pods of a group fit at once: what each of them gets, and why others get nothing."""

    chosen: tuple[tuple[PodInfo, Chosen], ...]
    left_out: tuple[tuple[PodInfo, Refused], ...] = ()


Deciding = Generator[None, None, "Together | Refused"]
"""Hands over after each pod; what it returns in the end is the decision."""


def finish(deciding: Deciding) -> Together | Refused:
    """The decision, with nobody else having a turn meanwhile."""
    while True:
        try:
            next(deciding)
        except StopIteration as done:
            answer: Together | Refused = done.value
            return answer


def find_problem(cluster: Cluster, name: ObjectName) -> GroupReason | None:
    """Why the pods of a group need not be tried yet; None if they should be."""
    group = cluster.groups.get(name)
    if group is None:
        return GroupMissing(name.name)
    there = cluster.groups.number_without_gates(name)
    needed = min_count(group)
    return GroupIncomplete(name.name, there, needed) if there < needed else None


def decide_group(cluster: Cluster, name: ObjectName, waiting: Sequence[PodInfo], options: Options) -> Deciding:
    """Nodes and devices for the waiting pods of a group, with those that it has already."""
    problem = find_problem(cluster, name)
    group = cluster.groups.get(name)
    if problem is not None or group is None:
        return Refused(problem or GroupMissing(name.name))
    why = _find_difference(cluster, group, waiting)
    if why:
        return Refused(GroupInconsistent(name.name, why))
    yield
    unfit = _find_unfit(cluster, group, waiting)
    if unfit is not None:
        return unfit
    yield
    attempt = _Attempt(cluster, group, waiting, options)
    best: Refused | None = None
    answer: Together | Refused
    with cluster.nominations.left_out(waiting):  # they are decided on together: none keeps a place from another
        for domain in _domains(cluster, name, topology_key(group)):
            answer = yield from attempt.run(domain)
            if isinstance(answer, Together):
                return answer
            if best is None or _fitting(answer) > _fitting(best):
                best = answer
    return best or Refused(NoDomain(name.name, topology_key(group)))


def _find_unfit(cluster: Cluster, group: PodGroup, waiting: Sequence[PodInfo]) -> Refused | None:
    """What keeps too many pods from every node, such as claims that are still to be made; looked at before any node."""
    name = ObjectName.of(group)
    placed, needed = cluster.groups.number_placed(name), min_count(group)
    left = len(waiting)
    for pod in waiting:
        refused = refuse_at_once(pod)
        problem = cluster.claims_of(pod.pod).problem if refused is None else None
        if refused is None and problem is None:
            continue
        left -= 1
        if placed + left < needed:
            return refused or (Refused(problem) if problem is not None else None)
    return None


def _fitting(refused: Refused) -> int:
    return refused.group.fitting if refused.group is not None else -1


def _find_difference(cluster: Cluster, group: PodGroup, waiting: Iterable[PodInfo]) -> str:
    """What the pods of a group must have in common and have not; empty if all is well."""
    members = cluster.groups.members(ObjectName.of(group)).values()
    pods = [*(pod.pod for pod in waiting), *(pod for pod in members if pod.spec.node_name)]
    priority = group.spec.priority or 0
    first = pods[0].spec if pods else None
    for pod in pods:
        assert first is not None
        if (pod.spec.priority or 0) != priority:
            return (
                "all pods in a single pod group should have the same priority as the pod group's priority, "
                f"got {pod.spec.priority or 0} and {priority}"
            )
        if pod.spec.scheduler_name != first.scheduler_name:
            return (
                "all pods in a single pod group should have the same .spec.schedulerName set, "
                f'got: "{pod.spec.scheduler_name}" and "{first.scheduler_name}"'
            )
        wanted = group.spec.preemption_policy or first.preemption_policy or _PREEMPTS
        if (pod.spec.preemption_policy or _PREEMPTS) != wanted:
            return (
                "all pods in a single pod group should have the same preemption policy as the pod group's "
                f"preemption policy, got {pod.spec.preemption_policy or _PREEMPTS} and {wanted}"
            )
    return ""


_PREEMPTS = "PreemptLowerPriority"


def _domains(cluster: Cluster, name: ObjectName, key: str) -> list[tuple[str, str] | None]:
    """Where the pods may be together: anywhere, or in one of the domains, that of those that have nodes if some have.

    Small domains first, so that large ones are left for large groups.
    """
    if not key:
        return [None]
    sizes: dict[str, int] = {}
    taken: set[str] = set()
    placed = set(cluster.nodes_of_group(name))
    for node in cluster.nodes:
        value = node.node.metadata.labels.get(key)
        if value is None:
            continue
        sizes[value] = sizes.get(value, 0) + 1
        if node.name in placed:
            taken.add(value)
    if placed:
        return [(key, value) for value in sorted(taken)] if len(taken) == 1 else []
    return [(key, value) for value in sorted(sizes, key=lambda one: (sizes[one], one))]


class _Attempt:
    """Tries to place the waiting pods of one group, in a domain or anywhere."""

    def __init__(self, cluster: Cluster, group: PodGroup, waiting: Sequence[PodInfo], options: Options) -> None:
        self._cluster = cluster
        self._options = options
        self._name = ObjectName.of(group)
        self._waiting = waiting
        self._needed = min_count(group)

    def run(self, domain: tuple[str, str] | None) -> Deciding:
        """Enough of the pods, or what stopped the first that does not fit. All is taken back in the end."""
        placed = self._cluster.groups.number_placed(self._name)
        chosen: list[tuple[PodInfo, Chosen]] = []
        left_out: list[tuple[PodInfo, Refused]] = []
        refused: dict[tuple[bytes, ...], Refused] = {}
        work = Assumptions(self._cluster)
        try:
            for number, pod in enumerate(self._waiting):
                alike = find_likeness(self._cluster, pod, self._options) if left_out else None
                # Nothing was freed since, so what did not fit before does not fit now.
                answer: Chosen | Refused | None = refused.get(alike) if alike is not None else None
                if answer is None:
                    answer = refuse_at_once(pod) or decide(self._cluster, pod, self._options, within=domain)
                if isinstance(answer, Chosen):
                    work.add(pod, answer)
                    chosen.append((pod, answer))
                else:
                    left_out.append((pod, answer))
                    alike = find_likeness(self._cluster, pod, self._options)
                    if alike is not None:
                        refused[alike] = answer
                    if placed + len(chosen) + len(self._waiting) - number - 1 < self._needed:
                        break
                yield
            while work.undo(AT_ONCE):
                yield
        finally:
            work.undo()
        if chosen and placed + len(chosen) >= self._needed:
            return Together(tuple(chosen), tuple(left_out))
        if not left_out:
            return Refused(GroupIncomplete(self._name.name, placed + len(chosen), self._needed))
        unfinished = next((one for one in left_out if one[1].needs_more_turns), None)
        stopped, why = unfinished or left_out[0]
        return replace(why, group=GroupShort(self._name.name, placed, len(chosen), self._needed, stopped, domain))


class Assumptions:
    """Decisions that count in a cluster until they are taken back: what later pods of a group are decided on."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._made: dict[str, tuple[PodInfo, Chosen]] = {}

    def add(self, pod: PodInfo, chosen: Chosen) -> None:
        """A pod gets what was chosen for it; claims that others of its group share have their devices."""
        self._cluster.assume(pod, chosen.node, chosen.allocations)
        for key, (_, allocation) in chosen.allocations.items():
            self._cluster.suppose(key, allocation)
        self._made[pod.pod.metadata.uid] = (pod, chosen)

    def remove(self, uid: str) -> None:
        """What was chosen for a pod does not count any more."""
        made = self._made.pop(uid, None)
        if made is not None:
            pod, chosen = made
            for key in chosen.allocations:
                self._cluster.suppose(key, None)
            self._cluster.take_back(pod, chosen.allocations)

    def undo(self, most: int | None = None) -> bool:
        """Takes everything back, or so many decisions, the last first; whether some are left."""
        for uid in list(reversed(self._made))[:most]:
            self.remove(uid)
        return bool(self._made)
