"""Filters: each takes clusters away, in turn. Taints come last (OCM-19, OCM-45)."""

from __future__ import annotations

from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from typing import NamedTuple, Protocol

from dray.placement.case import PlacementCase
from dray.placement.member import ClusterTaint
from dray.placement.moments import Moment
from dray.placement.policy import Policy
from dray.placement.problem import PlacementProblem


class Filtered(NamedTuple):
    """What a filter leaves."""

    kept: AbstractSet[str]
    problem: PlacementProblem | None = None
    """Why the filter cannot work; then nothing is kept."""
    shunned: Mapping[str, ClusterTaint] = {}
    """Kept clusters that are to be taken only if no other is left, and the taint that says so."""
    requeue_at: Moment | None = None
    """When the filter should be asked again, if time alone changes its mind (OCM-21)."""


class Filter(Protocol):
    """One stage of the filter pipeline."""

    @property
    def name(self) -> str:
        """As conditions and explanations call the stage."""

    def filter(self, case: PlacementCase, policy: Policy, clusters: AbstractSet[str]) -> Filtered:
        """Those of `clusters` that pass; `clusters` is not empty."""
