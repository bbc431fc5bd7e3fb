"""How a decision came about, stage by stage: the stuff that conditions and explanations are made of."""

from __future__ import annotations

from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field

from dray.placement.case import PlacementCase
from dray.placement.member import ClusterTaint
from dray.placement.policy import Policy
from dray.placement.problem import PlacementProblem

_NONE: frozenset[str] = frozenset()


@dataclass(slots=True)
class Trace:
    """Filled in while a placement is decided; each set of clusters is part of the one before."""

    case: PlacementCase
    policy: Policy
    bound: tuple[str, ...] = ()
    """Cluster sets bound to the namespace."""
    eligible: tuple[str, ...] = ()
    """Those of them that the spec asks for."""
    available: AbstractSet[str] = _NONE
    """Clusters of the eligible sets."""
    matched: AbstractSet[str] = _NONE
    """Clusters that match a predicate."""
    feasible: AbstractSet[str] = _NONE
    """Clusters whose taints are tolerated."""
    shunned: Mapping[str, ClusterTaint] = field(default_factory=dict)
    totals: Mapping[str, int] = field(default_factory=dict)
    parts: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    ranking: tuple[str, ...] = ()
    chosen: tuple[str, ...] = ()
    """What select picked; the decisions, unless dividing them into groups failed."""
    selected: tuple[str, ...] = ()
    """The decisions."""
    problem: PlacementProblem | None = None
    held: str | None = None
    """Why the placement was left as it is."""
