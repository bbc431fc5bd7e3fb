"""A pod that gets no node: why, and what may help."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import msgspec

from dray.api.resource import ResourceClaim
from dray.scheduling.cause import Cause
from dray.scheduling.plugin import Plugin
from dray.scheduling.pod_info import PodInfo
from dray.scheduling.reasons import NodeReason, PodReason, Reason, Verdict

Counts = Counter[tuple[NodeReason, ...]]
"""How many nodes refuse a pod, by everything that each of them has against it."""


class NodesRefuse(msgspec.Struct, frozen=True):
    """Every node has something against the pod; those that were not looked at are counted by what is known of them."""

    nodes: int
    counts: Counts

    def reasons(self) -> Counter[NodeReason]:
        """How many nodes have what against the pod. A node may have several things."""
        counted: Counter[NodeReason] = Counter()
        for several, nodes in self.counts.items():
            for reason in several:
                counted[reason] += nodes
        return counted


class Ineligible(msgspec.Struct, frozen=True):
    """The pod may not make others go now."""

    why: str


class Preempts(msgspec.Struct, frozen=True):
    """The pod gets a node as soon as these pods, all of lower priority, have gone."""

    node: str
    victims: tuple[PodInfo, ...]
    violations: int = 0
    """How many of them a disruption budget would have kept."""


class GroupPreempts(msgspec.Struct, frozen=True):
    """The pods of a group get these nodes as soon as the victims, all of lower priority, have gone."""

    places: tuple[tuple[PodInfo, str], ...]
    victims: tuple[PodInfo, ...]


class GroupShort(msgspec.Struct, frozen=True):
    """Too few pods of a group fit at once; what stopped the first of the others is why none of them has a node."""

    group: str
    placed: int
    """How many have nodes already."""
    fitting: int
    """How many more would get one."""
    needed: int
    stopped: PodInfo
    """The first of the others: claims that were looked for in vain are its."""
    domain: tuple[str, str] | None = None
    """The label and value of the nodes among which the most would fit, if they have to be together."""


class Refused(msgspec.Struct, frozen=True):
    """Why there is no node. Words for it are made by `text.tell`."""

    why: PodReason | NodesRefuse
    unallocated: tuple[ResourceClaim, ...] = ()
    """The claims for which devices were looked for in vain."""
    unused_claims: tuple[ResourceClaim, ...] = ()
    """Claims that are allocated, not in use, and in the way: one of them may be deallocated (4381-113)."""
    preemption: Preempts | GroupPreempts | NodesRefuse | Ineligible | None = None
    """Who would have to go for the pod, or why that does not help; None if nobody of lower priority is anywhere."""
    group: GroupShort | None = None
    """The pod's group, if it has none because too few of them would."""

    @property
    def causes(self) -> Cause:
        """The kinds of change after which the pod may fit."""
        if isinstance(self.why, NodesRefuse) and not self.why.nodes:
            return Cause.NODE if self.group is None else Cause.NODE | Cause.GROUP
        causes = Cause.NOTHING if self.group is None else Cause.GROUP
        for reason in self._reasons():
            causes |= reason.causes
        return causes

    @property
    def plugins(self) -> tuple[Plugin, ...]:
        """Which plugins of Kubernetes would have refused the pod; none for what no plugin is about."""
        return tuple(dict.fromkeys(reason.plugin for reason in self._reasons() if reason.plugin is not None))

    @property
    def verdict(self) -> Verdict:
        """What the pod's condition says in a word."""
        return Verdict.UNSCHEDULABLE if isinstance(self.why, NodesRefuse) else self.why.verdict

    @property
    def passes_soon(self) -> bool:
        """Whether the pod only waits for something that is on its way; nobody need be told at once."""
        return not isinstance(self.why, NodesRefuse) and self.why.passes_soon

    @property
    def needs_more_turns(self) -> bool:
        """Whether the decision is not finished, only because it takes long."""
        return not isinstance(self.why, NodesRefuse) and self.why.needs_more_turns

    def _reasons(self) -> Iterator[Reason]:
        if isinstance(self.why, NodesRefuse):
            for several in self.why.counts:
                yield from several
        else:
            yield self.why
