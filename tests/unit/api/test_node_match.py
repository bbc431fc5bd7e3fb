"""Node selectors against nodes."""

from __future__ import annotations

import pytest

from dray.api.node_match import NodeMatcher, NodeSelectorError, matches, matches_usable
from dray.api.node_selector import NodeSelector, NodeSelectorRequirement, NodeSelectorTerm

NAME = "node-1"
LABELS = {"zone": "a", "gpus": "8", "empty": ""}

Requirements = list[tuple[str, str, list[str]]]


def term(expressions: Requirements, fields: Requirements | None = None) -> NodeSelectorTerm:
    def build(requirements: Requirements) -> tuple[NodeSelectorRequirement, ...]:
        return tuple(
            NodeSelectorRequirement(key=key, operator=operator, values=tuple(values))
            for key, operator, values in requirements
        )

    return NodeSelectorTerm(match_expressions=build(expressions), match_fields=build(fields or []))


def selector(*terms: NodeSelectorTerm) -> NodeSelector:
    return NodeSelector(node_selector_terms=terms)


MATCHING = term([("zone", "In", ["a"])])
OTHER = term([("zone", "In", ["b"])])
FAULTY = term([("zone", "Near", ["a"])])


@pytest.mark.parametrize(
    ("requirement", "expected"),
    [
        (("zone", "In", ["a", "b"]), True),
        (("zone", "In", ["b"]), False),
        (("missing", "In", ["a"]), False),
        (("zone", "NotIn", ["b"]), True),
        (("zone", "NotIn", ["a"]), False),
        (("missing", "NotIn", ["a"]), True),
        (("zone", "Exists", []), True),
        (("missing", "Exists", []), False),
        (("zone", "DoesNotExist", []), False),
        (("missing", "DoesNotExist", []), True),
        (("gpus", "Gt", ["7"]), True),
        (("gpus", "Gt", ["8"]), False),
        (("gpus", "Lt", ["9"]), True),
        (("gpus", "Lt", ["8"]), False),
        (("zone", "Gt", ["1"]), False),
        (("missing", "Lt", ["1"]), False),
    ],
)
def test_label_operators(requirement: tuple[str, str, list[str]], expected: bool) -> None:
    assert matches(selector(term([requirement])), NAME, LABELS) is expected


@pytest.mark.parametrize(
    ("requirement", "expected"),
    [
        (("metadata.name", "In", ["node-1"]), True),
        (("metadata.name", "In", ["node-2"]), False),
        (("metadata.name", "NotIn", ["node-2"]), True),
        (("metadata.name", "NotIn", ["node-1"]), False),
    ],
)
def test_field_operators(requirement: tuple[str, str, list[str]], expected: bool) -> None:
    assert matches(selector(term([], [requirement])), NAME, LABELS) is expected


def test_terms_are_alternatives_and_requirements_are_not() -> None:
    assert matches(selector(OTHER, MATCHING), NAME, LABELS)
    assert not matches(selector(OTHER, OTHER), NAME, LABELS)
    both = term([("zone", "In", ["a"]), ("gpus", "Gt", ["100"])])
    assert not matches(selector(both), NAME, LABELS)
    mixed = term([("zone", "In", ["a"])], [("metadata.name", "In", ["node-2"])])
    assert not matches(selector(mixed), NAME, LABELS)


def test_empty_terms_match_nothing() -> None:
    assert not matches(selector(), NAME, LABELS)
    assert not matches(selector(term([])), NAME, LABELS)
    assert matches(selector(term([]), MATCHING), NAME, LABELS)


@pytest.mark.parametrize(
    ("faulty", "place"),
    [
        (FAULTY, r"nodeSelectorTerms\[1\].matchExpressions\[0\]: unknown operator 'Near'"),
        (term([("zone", "In", [])]), "at least one value"),
        (term([("zone", "Exists", ["a"])]), "takes no values"),
        (term([("gpus", "Gt", ["many"])]), "an integer"),
        (term([("a b", "Exists", [])]), "label key 'a b'"),
        (term([], [("metadata.name", "Exists", [])]), r"matchFields\[0\]: unknown operator 'Exists'"),
        (term([], [("metadata.name", "In", ["a", "b"])]), "exactly one value"),
    ],
)
def test_faulty_terms(faulty: NodeSelectorTerm, place: str) -> None:
    """A slice's selector must be right in every term; a pod's affinity only has to find one that matches."""
    with pytest.raises(NodeSelectorError, match=place):
        matches(selector(MATCHING, faulty), NAME, LABELS)
    assert matches_usable(selector(MATCHING, faulty), NAME, LABELS)
    assert not matches_usable(selector(OTHER, faulty), NAME, LABELS)


def test_any_of_several_terms_matches() -> None:
    assert matches_usable(selector(OTHER, MATCHING), NAME, LABELS)
    assert not matches_usable(selector(OTHER), NAME, LABELS)


def test_a_matcher_serves_many_nodes() -> None:
    matcher = NodeMatcher.of(selector(FAULTY, term([("gpus", "Gt", ["4"])])))
    assert len(matcher.faults) == 1
    assert [matcher.matches("n", {"gpus": str(count)}) for count in (4, 5)] == [False, True]
