"""Who would have to go so that a group that does not fit does.

    some pods of lower priority go, ─▶ does the group fit? ─▶ as many as possible come back, the most important first,
    the least important first   ▲            │ no             as long as the group still fits where it is
                                └── more go ─┘

Pods of a group that leaves as a whole go, and come back, together. A generator, as `gangs` is, and for the same reason;
whatever is taken away meanwhile is there again in the end.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Generator, Sequence

from msgspec.structs import replace

from dray.allocator import Allocated, Options
from dray.api.references import ObjectName
from dray.scheduling.absence import Absence
from dray.scheduling.cluster import Cluster
from dray.scheduling.decide import Chosen
from dray.scheduling.extended_devices import look_for_devices
from dray.scheduling.gangs import Assumptions, Together, decide_group
from dray.scheduling.node_info import NodeInfo
from dray.scheduling.pod_info import PodInfo
from dray.scheduling.preemption import NEVER, importance, is_making_room
from dray.scheduling.reasons import ClaimBeingSearched, NoVictims
from dray.scheduling.refusal import GroupPreempts, Ineligible, NodesRefuse, Refused

AT_ONCE = 50
"""How many pods are taken away or put back at a time."""

GROWTH = 4
"""How many times as many are taken away with each try."""

Unit = tuple[tuple[PodInfo, str], ...]
"""Pods that go together, each with its node."""


def find_gang_victims(
    cluster: Cluster, name: ObjectName, waiting: Sequence[PodInfo], options: Options, refused: Refused
) -> Generator[None, None, Refused]:
    """The refusal of a group, with who would have to go for it (`preemption`), or why nobody would help."""
    group = cluster.groups.get(name)
    priority = (group.spec.priority or 0) if group is not None else 0
    is_for_want_of_room = refused.group is not None and isinstance(refused.why, NodesRefuse)
    if group is None or not is_for_want_of_room or not cluster.has_below(priority):
        return refused
    policy = group.spec.preemption_policy or next((pod.pod.spec.preemption_policy for pod in waiting), None)
    if policy == NEVER:
        return replace(refused, preemption=Ineligible("preemptionPolicy=Never"))
    nominated = {name for name in (cluster.nominations.node_of(pod) for pod in waiting) if name}
    if nominated and is_making_room(cluster, nominated, priority, devices=any(pod.wants_devices for pod in waiting)):
        return replace(refused, preemption=Ineligible("terminating pods on the nominated nodes"))
    answer = yield from _Search(cluster, name, waiting, options).run(priority)
    if answer is None:
        return replace(refused, why=ClaimBeingSearched())
    return replace(refused, preemption=answer)


class _Search:
    """Looks for victims for one group."""

    def __init__(self, cluster: Cluster, name: ObjectName, waiting: Sequence[PodInfo], options: Options) -> None:
        self._cluster = cluster
        self._name = name
        self._waiting = waiting
        self._options = options
        self._places: dict[str, dict[str, tuple[PodInfo, Chosen]]] = {}
        """By node, what was decided for the pods of the group there, in order."""
        self._is_unfinished = False
        """Whether it takes longer than a turn to find out whether there are devices if some go."""

    def run(self, priority: int) -> Generator[None, None, GroupPreempts | NodesRefuse | None]:
        """Who goes, and where the pods of the group wait for that. A few are taken away first, then more and more.

        None if there is no answer yet: nobody goes because a decision takes long.
        """
        units = self._by_right(self._units(priority))
        units.reverse()
        few = 1
        while True:
            answer = yield from self._try(units[:few])
            if answer is not None or self._is_unfinished:
                return answer
            if few >= len(units):
                total = len(self._cluster.nodes)
                return NodesRefuse(total, Counter({(NoVictims(),): total}))
            few *= GROWTH

    def _try(self, units: list[Unit]) -> Generator[None, None, GroupPreempts | None]:
        """Whether the group fits if some go, those who matter least first; and who of them may come back."""
        self._places.clear()
        work = Assumptions(self._cluster)
        with Absence(self._cluster) as absence:
            for number, (pod, node) in enumerate([each for unit in units for each in unit], 1):
                absence.remove(pod, node)
                if number % AT_ONCE == 0:
                    yield
            together = yield from decide_group(self._cluster, self._name, self._waiting, self._options)
            if not isinstance(together, Together):
                self._is_unfinished = together.needs_more_turns
                return None
            try:
                for pod, chosen in together.chosen:
                    work.add(pod, chosen)
                    self._places.setdefault(chosen.node, {})[pod.pod.metadata.uid] = (pod, chosen)
                victims: list[Unit] = []
                for unit in reversed(units):
                    if not self._can_stay(unit, absence, work):
                        victims.append(unit)
                    yield
            finally:
                work.undo()
        if not victims or self._is_unfinished:
            return None
        pods = sorted((pod for unit in victims for pod, _ in unit), key=importance)
        nodes = {uid: chosen.node for here in self._places.values() for uid, (_, chosen) in here.items()}
        return GroupPreempts(tuple((pod, nodes[pod.pod.metadata.uid]) for pod, _ in together.chosen), tuple(pods))

    def _units(self, priority: int) -> list[Unit]:
        """Those of lower priority: whole groups, if they leave as such, and single pods."""
        cluster = self._cluster
        singles: list[Unit] = []
        groups: dict[ObjectName, list[tuple[PodInfo, str]]] = {}
        for node in cluster.nodes:
            for pod in node.pods.values():
                if (pod.pod.spec.priority or 0) >= priority:
                    continue
                whole = cluster.groups.goes_as_a_whole(pod.pod)
                if whole is None:
                    singles.append(((pod, node.name),))
                else:
                    groups.setdefault(whole, []).append((pod, node.name))
        return [*map(tuple, groups.values()), *singles]

    def _by_right(self, units: list[Unit]) -> list[Unit]:
        """Those whom a budget protects first, then the most important; those that are leaving anyway last."""
        pods = [pod for unit in units for pod, _ in unit]
        violating = self._cluster.budgets.violating(sorted(pods, key=importance))

        def right(unit: Unit) -> tuple[bool, bool, tuple[int, str, str]]:
            is_leaving = all(self._cluster.is_leaving(pod) for pod, _ in unit)
            is_protected = any(pod.pod.metadata.uid in violating for pod, _ in unit)
            return is_leaving, not is_protected, min(importance(pod) for pod, _ in unit)

        return sorted(units, key=right)

    def _can_stay(self, unit: Unit, absence: Absence, work: Assumptions) -> bool:
        """Puts pods back if the group still fits where it is beside them."""
        nodes = [name for name in dict.fromkeys(node for _, node in unit) if name in self._places]
        before = {name: dict(self._places[name]) for name in nodes}
        for name in nodes:
            for uid in self._places[name]:
                work.remove(uid)
        for pod, _ in unit:
            absence.put_back(pod)
        if all(self._place_again(name, work) for name in nodes):
            return True
        for name in nodes:
            for uid in self._places[name]:
                work.remove(uid)
        for pod, node in unit:
            absence.remove(pod, node)
        for name in nodes:
            self._places[name] = before[name]
            for pod, chosen in before[name].values():
                work.add(pod, chosen)
        return False

    def _place_again(self, name: str, work: Assumptions) -> bool:
        """Decides once more on the pods of the group on one node, for that node."""
        node = self._cluster.nodes.get(name)
        for uid, (pod, chosen) in list(self._places[name].items()):
            again = self._choose(pod, node, chosen) if node is not None else None
            if again is None:
                return False
            work.add(pod, again)
            self._places[name][uid] = (pod, again)
        return True

    def _choose(self, pod: PodInfo, node: NodeInfo, before: Chosen) -> Chosen | None:
        if self._cluster.nodes.filter(pod).refuses(node):
            return None
        claims = self._cluster.claims_of(pod.pod)
        if claims.problem is not None:
            return None
        devices = look_for_devices(self._cluster, pod, claims.claims, self._options)
        if devices is None:
            return before
        answer = devices.allocate(node) if devices.refuse() is None else None
        self._is_unfinished = self._is_unfinished or devices.is_unfinished
        if not isinstance(answer, Allocated):
            return None
        allocations = devices.by_claim(node, answer)
        return Chosen(node.name, devices.claims_on(node), allocations, devices.extended_on(node), before.volumes)
