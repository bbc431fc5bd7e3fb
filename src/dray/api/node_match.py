"""Which nodes a node selector means. Pure functions: no I/O.

Terms are alternatives, the requirements in a term all have to hold, and an empty term matches nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Final, NamedTuple, TypeAlias, TypeVar

from dray.api import labels
from dray.api.node_selector import NodeSelector, NodeSelectorRequirement, NodeSelectorTerm

__all__ = ["NodeMatcher", "NodeSelectorError", "matches", "matches_usable"]

_Requirement = TypeVar("_Requirement", labels.Requirement, labels.FieldRequirement)
_Test: TypeAlias = tuple[str, Collection[str | None], bool]
"""A label, and whether its value (None if there is none) has to be one of some."""
_FEW: Final = 20
"""Of selectors that say no more than so much, it is remembered how they are read."""
_SHORT: Final = 256
"""Letters of keys and values of one requirement; nobody says how long values may be."""


class NodeSelectorError(ValueError):
    """A node selector holds a requirement that cannot be evaluated. The message names its place."""


class _Term(NamedTuple):
    tests: tuple[_Test, ...]
    by_label: labels.LabelSelector | None
    """Comparisons of numbers; None if there are none."""
    by_field: labels.FieldSelector | None


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
                terms.append(_made_ready(by_label, by_field))
        return cls(tuple(terms), tuple(faults))

    def matches(self, node_name: str, node_labels: Mapping[str, str]) -> bool:
        """Whether a usable term matches the node. There may be a thousand of them, for thousands of nodes."""
        value_of = node_labels.get
        for tests, by_label, by_field in self.terms:
            for key, values, is_one in tests:
                if (value_of(key) in values) is not is_one:
                    break
            else:
                if (by_label is None or by_label.matches(node_labels)) and (
                    by_field is None or by_field.matches({"metadata.name": node_name})
                ):
                    return True
        return False


def matches(selector: NodeSelector, node_name: str, node_labels: Mapping[str, str]) -> bool:
    """Whether the selector of a slice, device or allocation means this node.

    Raises NodeSelectorError if any term is faulty, even when another matches.
    """
    matcher = _read(selector)
    if matcher.faults:
        raise NodeSelectorError("; ".join(matcher.faults))
    return matcher.matches(node_name, node_labels)


def matches_usable(selector: NodeSelector, node_name: str, node_labels: Mapping[str, str]) -> bool:
    """Whether a term of the selector that can be read means this node."""
    return _read(selector).matches(node_name, node_labels)


def _read(selector: NodeSelector) -> NodeMatcher:
    return _matcher_of(selector) if _says_little(selector) else NodeMatcher.of(selector)


@lru_cache(maxsize=4096)
def _matcher_of(selector: NodeSelector) -> NodeMatcher:
    return NodeMatcher.of(selector)


def _says_little(selector: NodeSelector) -> bool:
    terms = selector.node_selector_terms
    if len(terms) > _FEW:
        return False
    return all(
        len(term.match_expressions) + len(term.match_fields) <= _FEW
        and all(
            len(one.values) <= _FEW and len(one.key) + sum(map(len, one.values)) <= _SHORT
            for one in (*term.match_expressions, *term.match_fields)
        )
        for term in terms
    )


def _made_ready(by_label: tuple[labels.Requirement, ...], by_field: tuple[labels.FieldRequirement, ...]) -> _Term:
    tests: list[_Test] = []
    numbers: list[labels.Requirement] = []
    for one in by_label:
        if one.operator in ("Gt", "Lt"):
            numbers.append(one)
        elif one.operator in ("In", "NotIn"):
            tests.append((one.key, one.members, one.operator == "In"))
        else:
            tests.append((one.key, (None,), one.operator == "DoesNotExist"))
    return _Term(
        tuple(tests),
        labels.LabelSelector(tuple(numbers)) if numbers else None,
        labels.FieldSelector(by_field) if by_field else None,
    )


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
