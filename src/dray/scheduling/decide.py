"""The decision: a node for a pod, and devices for its claims. Pure: looks at the cluster, changes nothing.

pod ─▶ what keeps it from every node? ─▶ nodes ─▶ filters ─▶ devices ─▶ the best of the first that fit ─▶ Chosen
                 └─▶ Refused                         └── counted ──┴─▶ Refused, if none does
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from itertools import chain
from operator import attrgetter
from typing import NamedTuple, Protocol

import msgspec

from dray.allocator import Allocated, Options
from dray.api.generated.core import PodExtendedResourceClaimStatus
from dray.api.resource import AllocationResult, ResourceClaim
from dray.api.well_known import HOSTNAME
from dray.scheduling.candidates import in_turns
from dray.scheduling.cluster import Cluster
from dray.scheduling.devices import LACKING, PodDevices
from dray.scheduling.extended_devices import ExtendedDevices, look_for_devices
from dray.scheduling.filters.node_affinity import NOT_AFFINE
from dray.scheduling.node_info import NodeInfo
from dray.scheduling.node_table import NO_REFUSALS, NodeFilter, Refusals
from dray.scheduling.pod_info import PodInfo
from dray.scheduling.preferences import BEST, Preferences
from dray.scheduling.reasons import (
    ClaimBeingJudged,
    ClaimBeingSearched,
    ClaimsUnjudgeable,
    Gated,
    NodeReason,
    OutsideDomain,
    PodReason,
    StillDeciding,
)
from dray.scheduling.refusal import Counts, NodesRefuse, Refused
from dray.scheduling.scoring import Score, preference, rate
from dray.scheduling.topology import StillCounting
from dray.scheduling.volumes import VolumeChoice

ENOUGH_NODES = 50
"""How many nodes that fit are compared before the best one is taken."""

NODES_JUDGED = 8
"""How many nodes are judged before it is asked whether others are next."""

_OUTSIDE = (OutsideDomain(),)


class Chosen(msgspec.Struct, frozen=True):
    """A node, and what each claim that had nothing yet gets there."""

    node: str
    claims: tuple[ResourceClaim, ...] = ()
    allocations: dict[str, tuple[ResourceClaim, AllocationResult]] = {}
    extended: PodExtendedResourceClaimStatus | None = None
    """Which requests of which of the claims serve extended resources of the pod."""
    volumes: tuple[VolumeChoice, ...] = ()
    """What claims for volumes that waited for a node get there; the pod is bound when they have it."""


class Observer(Protocol):
    """Hears which extension points of the scheduling framework an attempt has passed."""

    def done(self, point: str, status: str = "Success", detail: str = "") -> None:
        """An extension point has ended."""
        ...


Domain = tuple[str, str]
"""A node label and the value that it must have."""


def decide(
    cluster: Cluster, pod: PodInfo, options: Options, observer: Observer | None = None, within: Domain | None = None
) -> Chosen | Refused:
    """A node for the pod, or why there is none; one `within` a domain, if it is to be in one with others."""
    answer = find_places(cluster, pod, options, 1, observer, within)
    return answer if isinstance(answer, Refused) else answer[0]


def find_places(
    cluster: Cluster,
    pod: PodInfo,
    options: Options,
    most: int,
    observer: Observer | None = None,
    within: Domain | None = None,
) -> tuple[Chosen, ...] | Refused:
    """Up to so many nodes on which the pod fits, the best first, or why there is none."""
    refused = refuse_at_once(pod)
    if refused is not None:
        return refused
    found = cluster.claims_of(pod.pod)
    if found.problem is not None:
        return Refused(found.problem)
    volumes = cluster.volumes.of(pod) if pod.volume_claims else None
    if isinstance(volumes, PodReason):
        return Refused(volumes)
    if observer is not None:
        observer.done("PreEnqueue")
    return _look_in_turns(_Question(cluster, pod, found.claims, options, most, within), observer)


class _Question(NamedTuple):
    """Up to how many nodes are looked for, for whom and where."""

    cluster: Cluster
    pod: PodInfo
    claims: tuple[ResourceClaim, ...]
    options: Options
    most: int
    within: Domain | None
    refused: Refusals = NO_REFUSALS


def _look_in_turns(question: _Question, observer: Observer | None) -> tuple[Chosen, ...] | Refused:
    """What is found, as far as there is time; the decision goes on from there when it is made again."""
    aside = question.options.aside
    if aside is None:
        return _look_with_nominated(question, observer)
    topology = question.cluster.nodes.topology
    topology.hurry(aside.cut_short)
    try:
        return _look_with_nominated(question, observer)
    except StillCounting:
        return Refused(StillDeciding())
    finally:
        topology.hurry(None)


def _look_with_nominated(question: _Question, observer: Observer | None) -> tuple[Chosen, ...] | Refused:
    """Whoever waits for a node takes room there, and opens nothing to others: it may never come."""
    cluster, pod = question.cluster, question.pod
    if not cluster.nominations:
        return _look(question, observer)
    question = question._replace(refused=cluster.nodes.refused_by_company(pod))
    with cluster.nominations.counted(pod, cluster.nodes):
        return _look(question, observer)


def _look(question: _Question, observer: Observer | None) -> tuple[Chosen, ...] | Refused:
    cluster, pod, claims, options, most, *_ = question
    devices = look_for_devices(cluster, pod, claims, options) if claims or pod.extended else None
    if devices is None:
        return _Attempt(question, None).run(most)
    refused = devices.refuse()
    if observer is not None:
        observer.done("PreFilter", "Success" if refused is None else "Unschedulable")
    return refused or _Attempt(question, devices).run(most)


def refuse_at_once(pod: PodInfo) -> Refused | None:
    """Why a pod need not be tried, whatever there is in the cluster."""
    if pod.fault is not None:
        return Refused(pod.fault)
    return Refused(Gated()) if pod.pod.spec.scheduling_gates else None


class _Found(msgspec.Struct, frozen=True):
    """A node that fits, how good it is, and what the claims get there."""

    score: Score
    node: NodeInfo
    allocated: Allocated | None = None


_score = attrgetter("score")
_node_name = attrgetter("node.name")


class _Attempt:
    """Looks for nodes for one pod, with what is known of its devices, if it has claims."""

    def __init__(self, question: _Question, devices: PodDevices | ExtendedDevices | None) -> None:
        cluster, pod = question.cluster, question.pod
        self._nodes = cluster.nodes
        self._within = question.within
        self._aside = question.options.aside
        self._pod = pod
        self._devices = devices
        self._filter: NodeFilter = cluster.nodes.filter(pod, question.refused)
        self._preferences = Preferences(pod, cluster.nodes.topology)
        self._has_preferences = bool(self._preferences)
        self._rankings = cluster.rankings if self._is_ranked(question) else None
        self._walks = cluster.walks if self._is_walk(question) else None
        self._refusals: dict[str, tuple[NodeReason, ...]] = {} if self._walks is None else self._walks.find(pod)
        self._lacking: set[str] = set()
        """Of those that refuse the pod, the nodes on which it lacks nothing but devices."""
        self._is_narrowed = False
        self._nominated = cluster.nodes.get(cluster.nominations.node_of(pod)) if cluster.nominations else None

    def _is_walk(self, question: _Question) -> bool:
        """Whether the decision can go on where it was after others had a turn."""
        is_for_one = question.most == 1 and question.within is None and not question.refused
        return is_for_one and self._aside is not None and self._filter.depends_on_each_node_alone

    def _is_ranked(self, question: _Question) -> bool:
        """Whether which of the first nodes that fit is the best depends on nothing but the room on each."""
        return (
            question.most == 1
            and self._devices is None
            and self._filter.depends_on_room_alone
            and not question.pod.extended
            and not self._has_preferences
            and not question.cluster.nominations
            and question.within is None
            and HOSTNAME not in question.pod.pod.spec.node_selector
        )

    def run(self, most: int) -> tuple[Chosen, ...] | Refused:
        """The best of the first nodes that fit."""
        pod, devices = self._pod, self._devices
        refuses = self._filter.refuses if self._within is None else self._refuses_within
        fault = None if devices is None else devices.find_fault(refuses)
        if fault is not None:
            return Refused(fault)
        if self._aside is not None and not self._filter.judge_ahead(self._nodes, self._aside.cut_short):
            return Refused(StillDeciding())
        if self._aside is not None and self._nodes.topology.has_counted_much:
            self._aside.end_turn()  # to look at all nodes takes another one
            return Refused(StillDeciding())
        ranked = None if self._rankings is None else self._rankings.best(pod, refuses)
        if ranked is not None:
            return (self._chosen(_Found((), ranked)),)
        enough = max(most, ENOUGH_NODES) if self._is_choosy() else most
        found: list[_Found] = []
        are_all = False
        judging = self._filter
        if self._nominated is not None and not refuses(self._nominated):
            enough = most  # the node that others were made to leave for it
        refusals = self._refusals
        left = 0 if self._walks is None else self._walks.nodes_per_turn()  # 0: all of them
        for node in self._candidates():
            if node.name in refusals:
                continue
            refusal = refuses(node)
            left -= 1
            if refusal:
                refusals[node.name] = refusal
            if (judging.judged >= NODES_JUDGED and self._is_cut_short()) or (not left and self._is_for_later(found)):
                if found:
                    break
                return Refused(StillDeciding())
            if refusal:
                continue
            if devices is None:
                found.append(_Found(rate(pod, node), node))
            else:
                answer = devices.allocate(node)
                if isinstance(answer, ClaimsUnjudgeable):
                    return Refused(answer)
                if not isinstance(answer, Allocated):
                    refusals[node.name] = answer
                    self._lacking.add(node.name)
                    if devices.must_pause(soon=not found):
                        break
                    continue
                score = (*preference(pod, node), -devices.concessions(node, answer)) if enough > 1 else ()
                found.append(_Found(score, node, answer))
            if len(found) >= enough or (devices is not None and devices.must_pause()):
                break
        else:
            are_all = True
        if not found:
            return self._refused()
        if self._rankings is not None and (are_all or len(found) >= enough):
            self._rankings.keep(pod, found, are_all=are_all)
        return self._best(found, most)

    def _best(self, found: list[_Found], most: int) -> tuple[Chosen, ...]:
        """So many of the nodes that fit, the best first."""
        if self._has_preferences:
            found = self._with_preferences(found)
        if self._is_narrowed or self._has_preferences:
            found.sort(key=_node_name)  # they come in the order in which domains were counted
        best = [max(found, key=_score)] if most == 1 else sorted(found, key=_score, reverse=True)[:most]
        return tuple([self._chosen(one) for one in best])

    def _is_cut_short(self) -> bool:
        """Whether others are next. Asked after some nodes were judged of which nothing was known: so it ends."""
        self._filter.judged = 0
        if self._aside is None or not self._aside.cut_short():
            return False
        self._filter.note_cut_short()
        return True

    def _is_for_later(self, found: list[_Found]) -> bool:
        """Whether it is for another turn to look at further nodes. What these have against the pod is kept for it,
        unless one is found already."""
        if found or self._walks is None or self._aside is None:
            return bool(found) and self._walks is not None
        known = self._refusals
        if self._lacking:
            known = {name: refusal for name, refusal in known.items() if name not in self._lacking}
        if not self._walks.keep(self._pod, known):
            return False
        self._aside.end_turn()
        return True

    def _refuses_within(self, node: NodeInfo) -> tuple[NodeReason, ...]:
        """As the filters do, of the nodes in the domain; the others are not asked."""
        assert self._within is not None
        key, value = self._within
        return self._filter.refuses(node) if node.node.metadata.labels.get(key) == value else _OUTSIDE

    def _is_choosy(self) -> bool:
        """Whether nodes that fit may differ in how good they are; otherwise the first ones are taken."""
        devices = self._devices
        return (
            devices is None
            or self._nodes.any_disliked
            or bool(self._pod.preferred)
            or self._has_preferences
            or devices.has_alternatives
        )

    def _with_preferences(self, found: list[_Found]) -> list[_Found]:
        """What is said about other pods counts as much as what is said about nodes, and before everything else."""
        heaviest = max(max(one.score[1] for one in found), 1)
        wishes = self._preferences.rate([one.node for one in found])
        return [
            msgspec.structs.replace(one, score=(one.score[0], BEST * one.score[1] // heaviest + wish, *one.score[2:]))
            for one, wish in zip(found, wishes, strict=True)
        ]

    def _candidates(self) -> Iterable[NodeInfo]:
        """The nodes to look at: the one that it waits for, then those that are left."""
        if self._nominated is None:
            return self._others()
        return chain((self._nominated,), (node for node in self._others() if node is not self._nominated))

    def _others(self) -> Iterable[NodeInfo]:
        """Those that may have devices, the one that the pod's selector names, or all."""
        if self._devices is not None:
            return self._devices.candidates(self._refusals)
        wanted = self._pod.pod.spec.node_selector.get(HOSTNAME)
        only = self._nodes.get(wanted) if wanted else None
        if only is not None and only.node.metadata.labels.get(HOSTNAME) == wanted:
            return (only,)
        left = self._filter.candidates()
        self._is_narrowed = left is not None
        nodes = self._nodes if left is None else left
        return in_turns(self._preferences.best_first(), iter(nodes)) if self._has_preferences else nodes

    def _chosen(self, found: _Found) -> Chosen:
        volumes = self._choose_volumes(found.node) if self._pod.volume_claims else ()
        if self._devices is None or found.allocated is None:
            return Chosen(found.node.name, volumes=volumes)
        devices, node = self._devices, found.node
        allocations = devices.by_claim(node, found.allocated)
        return Chosen(node.name, devices.claims_on(node), allocations, devices.extended_on(node), volumes)

    def _choose_volumes(self, node: NodeInfo) -> tuple[VolumeChoice, ...]:
        volumes = self._nodes.volumes.of(self._pod)
        return () if isinstance(volumes, PodReason) else self._nodes.volumes.choose(volumes, node) or ()

    def _look_at_reach(self, devices: PodDevices | ExtendedDevices) -> bool:
        """Finds claims in the way on nodes that were passed over because they lack devices; whether it was time to."""
        refuses = self._filter.refuses if self._within is None else self._refuses_within
        for node in self._nodes:
            if not devices.may_be_in_the_way:
                break
            if node.name not in self._refusals and not refuses(node):
                devices.is_out_of_reach(node)
            if self._filter.judged >= NODES_JUDGED and self._is_cut_short():
                return False
        return True

    def _refused(self) -> Refused:
        total = len(self._nodes)
        if self._is_narrowed:
            refuses = self._filter.refuses if self._within is None else self._refuses_within
            for node in self._nodes:
                if node.name not in self._refusals:
                    self._refusals[node.name] = refuses(node)
                    if self._filter.judged >= NODES_JUDGED and self._is_cut_short():
                        return Refused(StillDeciding())
        counts: Counts = Counter(self._refusals.values())
        passed_over = total - len(self._refusals)
        devices = self._devices
        if devices is None:
            if passed_over > 0:
                counts[NOT_AFFINE] += passed_over
            return Refused(NodesRefuse(total, counts))
        if devices.is_being_judged:
            return Refused(ClaimBeingJudged())
        if devices.is_being_searched:
            return Refused(ClaimBeingSearched())
        if passed_over > 0 and not self._look_at_reach(devices):
            return Refused(StillDeciding())
        if passed_over > 0 and devices.pending:
            counts[LACKING] += passed_over
        return Refused(NodesRefuse(total, counts), tuple(devices.pending), devices.in_the_way)
