"""Who would have to go so that a pod that has no node gets one.

    refused pod ─▶ may it preempt? ─▶ nodes, cheapest first, by what pods of lower priority take there (`Share`)
                                        └─▶ dry runs on a few: all of them go, then as many as possible come back
                                              └─▶ the best of those nodes: Preempts, or NodesRefuse: why not

The rules are kube-scheduler's; which nodes are tried is not left to chance. Devices that pods hold through claims that
nobody else uses are free when they go. Pure: what is taken away for a dry run is put back.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Set
from typing import Final

import msgspec

from dray.allocator import Allocated, Options
from dray.api.resource.allocated_node import allocated_node
from dray.scheduling.absence import Absence
from dray.scheduling.cluster import Cluster
from dray.scheduling.extended_devices import look_for_devices
from dray.scheduling.filters.resources import ONE, PODS
from dray.scheduling.node_info import NodeInfo
from dray.scheduling.pod_info import PodInfo
from dray.scheduling.reasons import ClaimBeingSearched, NodeReason, NoVictims, PreemptionUnhelpful, SearchTimedOut
from dray.scheduling.refusal import Counts, Ineligible, NodesRefuse, Preempts, Refused

NODES_RANKED: Final = 250
"""How many nodes on which pods of lower priority take enough are compared before any is tried."""
WORK: Final = 600
"""How many pods dry runs may take away and put back, five times as costly where more than room decides; twice as many
if nothing helped so far. kube-scheduler tries at least a hundred nodes, in parallel, from one chosen at random."""
NEVER: Final = "Never"

_UNHELPFUL = (PreemptionUnhelpful(),)
_NO_VICTIMS = (NoVictims(),)


def find_victims(cluster: Cluster, pod: PodInfo, options: Options, refused: Refused) -> Refused:
    """The refusal, with who would have to go (`preemption`), or why nobody would help.

    Nothing is added if nobody of lower priority is anywhere, or if no node decides about the pod.
    """
    priority = pod.pod.spec.priority or 0
    if not isinstance(refused.why, NodesRefuse) or not cluster.has_below(priority):
        return refused
    answer: Ineligible | Preempts | NodesRefuse | Unfinished | None = _ineligible(cluster, pod, priority)
    if answer is None:
        # Room that others, as important as the pod, were promised is not made a second time.
        with cluster.nominations.counted(pod, cluster.nodes):
            answer = _Search(cluster, pod, options, priority).run()
    if isinstance(answer, Unfinished):
        return Refused(ClaimBeingSearched())
    return msgspec.structs.replace(refused, preemption=answer)


def _ineligible(cluster: Cluster, pod: PodInfo, priority: int) -> Ineligible | None:
    if pod.pod.spec.preemption_policy == NEVER:
        return Ineligible("preemptionPolicy=Never")
    nominated = cluster.nominations.node_of(pod)
    if nominated and is_making_room(cluster, {nominated}, priority, devices=pod.wants_devices):
        return Ineligible("a terminating pod on the nominated node")
    return None


def is_making_room(cluster: Cluster, nominated: Set[str], priority: int, *, devices: bool) -> bool:
    """Whether pods of lower priority are leaving these nodes, or have left and their `devices` are not free yet."""
    for name in nominated:
        node = cluster.nodes.get(name)
        for one in node.pods.values() if node is not None else ():
            if (one.pod.spec.priority or 0) < priority and cluster.is_leaving(one):
                return True
    for claim in cluster.claims.values() if devices else ():
        users = claim.status.reserved_for
        is_there = users and allocated_node(claim.status.allocation) in nominated
        if is_there and all(user.resource == "pods" and not cluster.node_of(user.uid) for user in users):
            return True
    return False


class Unfinished:
    """Who would have to go takes longer to find out than a turn."""


class _Search:
    """Looks for victims for one pod."""

    def __init__(self, cluster: Cluster, pod: PodInfo, options: Options, priority: int) -> None:
        self._cluster = cluster
        self._pod = pod = cluster.nodes.with_classes(pod)
        self._priority = priority
        self._devices = look_for_devices(cluster, pod, cluster.claims_of(pod.pod).claims, options)
        self._counts: Counts = Counter()

    def run(self) -> Preempts | NodesRefuse | Unfinished:
        """The best of the first nodes on which it helps that others go."""
        if self._devices is not None and self._devices.refuse() is not None:
            return NodesRefuse(len(self._cluster.nodes), Counter({_UNHELPFUL: len(self._cluster.nodes)}))
        found: list[Preempts] = []
        needs_room_alone = self._devices is None and self._cluster.nodes.filter(self._pod).depends_on_room_alone
        left = WORK
        for _, pods, node in sorted(self._ranked(), key=_rank):
            answer = self._try(node, needs_room_alone=needs_room_alone)
            if isinstance(answer, Preempts):
                found.append(answer)
            else:
                self._counts[answer] += 1
            if self._devices is not None:
                pods = sum(share.pods for level, share in node.by_priority.items() if level < self._priority)
            left -= pods if needs_room_alone else 5 * pods
            if left <= (0 if found else -WORK) or self._is_unfinished():
                break
        if found:
            return min(found, key=_cost)
        if self._is_unfinished():
            return Unfinished()
        total = len(self._cluster.nodes)
        missing = total - sum(self._counts.values())
        if missing > 0:
            self._counts[_NO_VICTIMS] += missing
        return NodesRefuse(total, self._counts)

    def _is_unfinished(self) -> bool:
        """Whether it takes longer than a turn to find out whether there are devices if some go."""
        return self._devices is not None and self._devices.is_unfinished

    def _ranked(self) -> Iterator[tuple[int, int, NodeInfo]]:
        """Nodes where enough would be free: how high the victims' priority would be, and how many would go."""
        nodes, pod, priority = self._cluster.nodes, self._pod, self._priority
        unsuitable = nodes.filter(pod).is_unsuitable
        ranked = 0
        for node in nodes:
            if unsuitable(node):
                self._counts[_UNHELPFUL] += 1
                continue
            shares = node.by_priority
            if self._devices is not None and not self._frees_devices(node):
                continue
            if len(shares) == 1:
                [(level, share)] = shares.items()
                if level >= priority or not _suffices(pod, node, share.used, share.pods):
                    continue
                yield level, share.pods, node
            else:
                below = [level for level in shares if level < priority]
                if not below:
                    continue
                rank = _reached(pod, node, sorted(below))
                if rank is None:
                    continue
                yield *rank, node
            ranked += 1
            if ranked >= NODES_RANKED:
                return

    def _frees_devices(self, node: NodeInfo) -> bool:
        """Whether devices are not what is missing, or somebody of lower priority may hold some."""
        held = any(share.holders for level, share in node.by_priority.items() if level < self._priority)
        return held or bool(self._cluster.nodes.filter(self._pod).refuses(node))

    def _try(self, node: NodeInfo, *, needs_room_alone: bool) -> Preempts | tuple[NodeReason, ...]:
        """Who has to go on one node: all of lower priority, but for those beside whom the pod fits."""
        potential = [one for one in node.pods.values() if (one.pod.spec.priority or 0) < self._priority]
        potential.sort(key=importance)
        violating = self._cluster.budgets.violating(potential)
        # Those that a budget protects come back first.
        by_right = sorted(potential, key=lambda each: each.pod.metadata.uid not in violating)
        if needs_room_alone:
            victims = _without_room(self._pod, node, by_right)
        else:
            found = self._in_the_way(node, by_right)
            if isinstance(found, tuple):
                return found
            victims = found
        if not victims:
            return _NO_VICTIMS  # it fits with everybody there: another attempt will find that out
        victims = self._with_companions(victims)
        if any((one.pod.spec.priority or 0) >= self._priority for one in victims):
            return _NO_VICTIMS
        violating = self._cluster.budgets.violating(victims) if len(victims) > len(potential) else violating
        victims.sort(key=importance)
        violations = sum(one.pod.metadata.uid in violating for one in victims)
        return Preempts(node.name, tuple(victims), violations)

    def _with_companions(self, victims: list[PodInfo]) -> list[PodInfo]:
        """With those who go, wherever they are, if one of their group has to."""
        cluster = self._cluster
        found = {one.pod.metadata.uid: one for one in victims}
        for one in victims if cluster.groups else ():
            whole = cluster.groups.goes_as_a_whole(one.pod)
            for uid in cluster.groups.members(whole) if whole is not None else ():
                companion = cluster.placed(uid)
                if companion is not None:
                    found.setdefault(uid, companion)
        return list(found.values())

    def _in_the_way(self, node: NodeInfo, potential: list[PodInfo]) -> list[PodInfo] | tuple[NodeReason, ...]:
        """Beside whom the pod does not fit; what the node has against it even if all of them go."""
        victims: list[PodInfo] = []
        with Absence(self._cluster) as absence:
            for one in potential:
                absence.remove(one, node.name)
            refusal = self._refuses(node)
            if refusal:
                return refusal
            for one in potential:
                absence.put_back(one)
                refusal = self._refuses(node)
                if self._is_unfinished():
                    return refusal  # nobody goes because a decision takes long
                if refusal:
                    absence.remove(one, node.name)
                    victims.append(one)
        return victims

    def _refuses(self, node: NodeInfo) -> tuple[NodeReason, ...]:
        refusal = self._cluster.nodes.filter(self._pod).refuses(node)
        if refusal or self._devices is None:
            return refusal
        answer = self._devices.allocate(node)
        if isinstance(answer, Allocated):
            return ()
        return answer if isinstance(answer, tuple) else (SearchTimedOut(node.name),)


def _without_room(pod: PodInfo, node: NodeInfo, potential: list[PodInfo]) -> list[PodInfo]:
    """Beside whom there is no room for the pod, if all that it needs is room, and there is enough without all."""
    allocatable = node.allocatable
    if allocatable is None:
        return []
    wanted = [(name, amount) for name, amount in pod.requests.items() if amount]
    left = {name: allocatable.get(name, 0) - node.used.get(name, 0) - amount for name, amount in wanted}
    limit = allocatable.get(PODS)
    places = limit // ONE - len(node.pods) - 1 if limit is not None else len(node.pods)
    for one in potential:
        places += 1
        for name in left:
            left[name] += one.requests.get(name, 0)
    victims: list[PodInfo] = []
    for one in potential:
        needed = one.requests
        if places > 0 and all(needed.get(name, 0) <= free for name, free in left.items()):
            places -= 1
            for name in left:
                left[name] -= needed.get(name, 0)
        else:
            victims.append(one)
    return victims


def _suffices(pod: PodInfo, node: NodeInfo, freed: dict[str, int], pods: int) -> bool:
    """Whether there is room for the pod when so much is free."""
    allocatable, used = node.allocatable, node.used
    if allocatable is None:
        return True
    limit = allocatable.get(PODS)
    if limit is not None and (len(node.pods) - pods + 1) * ONE > limit:
        return False
    for name, amount in pod.requests.items():
        free = allocatable.get(name, 0) - used.get(name, 0) + freed.get(name, 0)
        if amount and amount > free and not pod.are_devices(name, allocatable):
            return False
    return True


def _reached(pod: PodInfo, node: NodeInfo, levels: list[int]) -> tuple[int, int] | None:
    """Up to which priority pods would have to go for there to be room, and how many; None if it is never enough."""
    freed: dict[str, int] = {}
    pods = 0
    for level in levels:
        share = node.by_priority[level]
        pods += share.pods
        for name, amount in share.used.items():
            freed[name] = freed.get(name, 0) + amount
        if _suffices(pod, node, freed, pods):
            return level, pods
    return None


def _rank(ranked: tuple[int, int, NodeInfo]) -> tuple[int, int]:
    return ranked[0], ranked[1]


def importance(pod: PodInfo) -> tuple[int, str, str]:
    """The most important first: by priority, then by how long it has run. Of equals the name decides, so that whoever
    is asked, whatever they heard of first, says the same."""
    started = pod.pod.status.start_time
    return -(pod.pod.spec.priority or 0), str(started) if started is not None else "~", str(pod.name)


def _cost(one: Preempts) -> tuple[int, int, int, int, tuple[int, ...], str]:
    """Fewest violated budgets, lowest priorities, fewest victims, then those that have run for the shortest time; of
    equals the first node by name."""
    priorities = [victim.pod.spec.priority or 0 for victim in one.victims]
    highest = max(priorities)
    most_important = [each for each in one.victims if (each.pod.spec.priority or 0) == highest]
    started = min(str(each.pod.status.start_time or "~") for each in most_important)
    # As with all priorities, what is later is better: a text that is larger must sort first.
    later = tuple(-ord(letter) for letter in started)
    return one.violations, highest, sum(each + 2**31 for each in priorities), len(priorities), later, one.node
