"""Which nodes a node selector means. Pure functions: no I/O.

Terms are alternatives, the requirements in a term all have to hold, and an empty term matches nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import TypeVar

from dray.api import labels
from dray.api.node_selector import NodeSelector, NodeSelectorRequirement, NodeSelectorTerm

__all__ = ["NodeMatcher", "NodeSelectorError", "matches", "matches_lazily"]

_Requirement = TypeVar("_Requirement", labels.Requirement, labels.FieldRequirement)


class NodeSelectorError(ValueError):
    """A node selector holds a requirement that cannot be evaluated. The message names its place."""


@dataclass(frozen=True, slots=True)
class _Term:
    by_label: labels.LabelSelector
    by_field: labels.FieldSelector

    def matches(self, node_labels: Mapping[str, str], node_fields: Mapping[str, str]) -> bool:
        return self.by_label.matches(node_labels) and self.by_field.matches(node_fields)


@dataclass(frozen=True, slots=True)
class NodeMatcher:
    """A node selector made ready for many nodes: the usable terms, and the faults of the others."""

    terms: tuple[_Term, ...]
    faults: tuple[str, ...]

    @classmethod
    def of(cls, selector: NodeSelector) -> NodeMatcher:
        """Read all terms; faults are collected, not raised."""
        terms: list[_Term] = []
        faults: list[str] = []
        for index, term in enumerate(selector.node_selector_terms):
            path = f"nodeSelectorTerms[{index}]"
            term_faults: list[str] = []
            by_label = _collect(term.match_expressions, f"{path}.matchExpressions", _read_label, term_faults)
            by_field = _collect(term.match_fields, f"{path}.matchFields", _read_field, term_faults)
            if term_faults:
                faults += term_faults
            elif not _is_empty(term):
                terms.append(_Term(labels.LabelSelector(by_label), labels.FieldSelector(by_field)))
        return cls(tuple(terms), tuple(faults))

    def matches(self, node_name: str, node_labels: Mapping[str, str]) -> bool:
        """Whether a usable term matches the node."""
        node_fields = {"metadata.name": node_name}
        return any(term.matches(node_labels, node_fields) for term in self.terms)


def matches(selector: NodeSelector, node_name: str, node_labels: Mapping[str, str]) -> bool:
    """Whether the selector of a slice, device or allocation means this node.

    Raises NodeSelectorError if any term is faulty, even when another matches.
    """
    matcher = _matcher_of(selector)
    if matcher.faults:
        raise NodeSelectorError("; ".join(matcher.faults))
    return matcher.matches(node_name, node_labels)


def matches_lazily(selector: NodeSelector, node_name: str, node_labels: Mapping[str, str]) -> bool:
    """Whether a pod's required node affinity allows this node.

    A faulty term is passed over; NodeSelectorError is raised only if no other term matches.
    """
    matcher = _matcher_of(selector)
    if matcher.matches(node_name, node_labels):
        return True
    if matcher.faults:
        raise NodeSelectorError("; ".join(matcher.faults))
    return False


@lru_cache(maxsize=4096)
def _matcher_of(selector: NodeSelector) -> NodeMatcher:
    return NodeMatcher.of(selector)


def _is_empty(term: NodeSelectorTerm) -> bool:
    return not term.match_expressions and not term.match_fields


def _collect(
    requirements: tuple[NodeSelectorRequirement, ...],
    path: str,
    read: Callable[[NodeSelectorRequirement], _Requirement],
    faults: list[str],
) -> tuple[_Requirement, ...]:
    """Read the requirements; what cannot be read is added to ``faults``."""
    collected: list[_Requirement] = []
    for index, requirement in enumerate(requirements):
        try:
            collected.append(read(requirement))
        except labels.SelectorError as error:
            faults.append(f"{path}[{index}]: {error}")
    return tuple(collected)


def _read_label(requirement: NodeSelectorRequirement) -> labels.Requirement:
    return labels.Requirement.of(requirement.key, requirement.operator, requirement.values)


def _read_field(requirement: NodeSelectorRequirement) -> labels.FieldRequirement:
    if requirement.operator not in ("In", "NotIn"):
        raise labels.SelectorError(
            f"unknown operator {requirement.operator!r} for field {requirement.key!r}; known are In, NotIn"
        )
    if len(requirement.values) != 1:
        raise labels.SelectorError(f"field {requirement.key!r} needs exactly one value")
    return labels.FieldRequirement(requirement.key, requirement.values[0], requirement.operator == "NotIn")
