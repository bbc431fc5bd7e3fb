"""Sets of fields are sets: against Python's own, over paths."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from dray.server.patch import fields
from dray.server.patch.fields import FieldSet

Path = tuple[str, ...]

steps = st.sampled_from(["f:a", "f:b", 'k:{"name":"x"}', 'v:"y"'])
path_sets = st.frozensets(st.lists(steps, min_size=1, max_size=3).map(tuple), max_size=6)


def tree(paths: frozenset[Path]) -> FieldSet:
    """The set with these paths, joined one by one."""
    found: FieldSet = {}
    for path in paths:
        node: FieldSet = {}
        for step in reversed(path):
            node = {step: node}
        found = fields.union(found, node)
    return found


def members(found: FieldSet, prefix: Path = ()) -> frozenset[Path]:
    below = ((step, node) for step, node in found.items() if step != fields.SELF)
    return frozenset().union(
        *(
            members(node, (*prefix, step)) | ({(*prefix, step)} if fields.is_member(node) else frozenset())
            for step, node in below
        )
    )


@given(path_sets)
def test_a_tree_holds_its_paths(paths: frozenset[Path]) -> None:
    assert members(tree(paths)) == paths


@given(path_sets)
def test_equal_sets_are_equal_trees(paths: frozenset[Path]) -> None:
    again = tree(frozenset(sorted(paths, reverse=True)))
    assert tree(paths) == again == fields.read(again) == fields.shared(again)


@given(path_sets, path_sets)
def test_operations(left: frozenset[Path], right: frozenset[Path]) -> None:
    assert fields.union(tree(left), tree(right)) == tree(left | right)
    assert fields.intersection(tree(left), tree(right)) == tree(left & right)
    assert fields.difference(tree(left), tree(right)) == tree(left - right)


@given(path_sets, path_sets)
def test_subtrees(left: frozenset[Path], right: frozenset[Path]) -> None:
    kept = {path for path in left if not any(path[: len(root)] == root for root in right)}
    assert fields.without_subtrees(tree(left), tree(right)) == tree(frozenset(kept))


@given(path_sets)
def test_every_path_has_a_text(paths: frozenset[Path]) -> None:
    texts = list(fields.paths(tree(paths)))
    assert sorted(texts) == sorted("".join(map(fields.show, path)) for path in paths)
