"""Selectors of clusters by label and claim, as predicates and decision groups have them."""

from __future__ import annotations

from collections.abc import Set as AbstractSet
from typing import NamedTuple

from dray.api.cluster import ClusterClaimSelector
from dray.api.labels import LabelSelector, Requirement, SelectorError
from dray.api.meta import LabelSelector as LabelSelectorSpec
from dray.placement.fleet import Fleet
from dray.placement.member import Member


class Mismatch(NamedTuple):
    """A requirement that a cluster does not meet, and what the cluster has instead (None: nothing)."""

    kind: str
    requirement: Requirement
    actual: str | None

    def __str__(self) -> str:
        actual = "is not set" if self.actual is None else f"is {self.actual!r}"
        return f"{self.kind} {self.requirement.key} {actual}, needs {self.requirement}"


class ClusterSelector(NamedTuple):
    """Both parts must match."""

    labels: LabelSelector
    claims: LabelSelector

    @staticmethod
    def of(labels: LabelSelectorSpec, claims: ClusterClaimSelector, path: str) -> ClusterSelector:
        """Read the selectors at `path`; raises SelectorError with the place of the fault."""
        claims_as_labels = LabelSelectorSpec(match_expressions=claims.match_expressions)
        return ClusterSelector(_read(labels, f"{path}.labelSelector"), _read(claims_as_labels, f"{path}.claimSelector"))

    def matches(self, member: Member) -> bool:
        """Whether one cluster matches."""
        return self.labels.matches(member.labels) and self.claims.matches(member.claims)

    def select(self, fleet: Fleet, among: AbstractSet[str]) -> AbstractSet[str]:
        """All clusters of `among` that match, from the fleet's indexes."""
        return fleet.claims.select(self.claims, fleet.labels.select(self.labels, among))

    def find_mismatch(self, member: Member) -> Mismatch | None:
        """The first requirement that a cluster does not meet."""
        for kind, selector, values in (("label", self.labels, member.labels), ("claim", self.claims, member.claims)):
            for requirement in selector.requirements:
                if not requirement.matches(values):
                    return Mismatch(kind, requirement, values.get(requirement.key))
        return None


def _read(selector: LabelSelectorSpec, path: str) -> LabelSelector:
    try:
        return LabelSelector.of(selector)
    except SelectorError as error:
        raise SelectorError(f"{path}: {error}") from error
