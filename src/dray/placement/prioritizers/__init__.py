"""Prioritizers: each gives clusters a score from -100 to 100; weights and the sum are the pipeline's business."""

from __future__ import annotations

from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from typing import NamedTuple, Protocol

from dray.placement.case import PlacementCase
from dray.placement.moments import Moment

HIGHEST = 100


class Scores(NamedTuple):
    """What a prioritizer says. A cluster that it does not mention has 0."""

    values: Mapping[str, int]
    warnings: tuple[str, ...] = ()
    requeue_at: Moment | None = None
    """When the scores should be asked for again, if time alone changes them."""


class Prioritizer(Protocol):
    """One way to compare clusters."""

    @property
    def name(self) -> str:
        """As `spec.prioritizerPolicy` has it."""

    @property
    def relative(self) -> bool:
        """Whether a cluster's score depends on which other clusters are compared with it."""

    def score(self, case: PlacementCase, clusters: AbstractSet[str]) -> Scores:
        """The scores of `clusters`."""
