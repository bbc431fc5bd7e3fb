"""Sets of nodes against plain sets, and matchings against trying everything."""

from __future__ import annotations

from itertools import permutations

from hypothesis import given
from hypothesis import strategies as st

from dray.allocator.flow import can_meet_all, lowest
from dray.allocator.nodes import NodeSet
from dray.tracker.columns import positions


@given(
    st.integers(0, 3000),
    st.lists(st.tuples(st.sampled_from(("add", "discard", "in", "out")), st.integers(0, 2999)), max_size=25),
)
def test_node_sets_behave_like_sets(count: int, changes: list[tuple[str, int]]) -> None:
    nodes = NodeSet(count)
    plain = set(range(count))
    for kind, rank in changes:
        if kind == "add":
            nodes.add(rank)
            plain.add(rank)
        elif kind == "discard":
            nodes.discard(rank)
            plain.discard(rank)
        elif kind == "in":
            nodes.shift_in(rank)
            plain = {n + (n >= rank) for n in plain} | {rank}
        else:
            nodes.shift_out(rank)
            plain = {n - (n > rank) for n in plain if n != rank}
    assert list(nodes) == sorted(plain)
    assert len(nodes) == len(plain)
    assert nodes.mask == sum(1 << n for n in plain)
    assert all((rank in nodes) == (rank in plain) for _, rank in changes)


@given(st.lists(st.tuples(st.integers(0, 63), st.integers(0, 3)), min_size=1, max_size=4))
def test_matching_agrees_with_trying_everything(needs: list[tuple[int, int]]) -> None:
    slots = [mask for mask, need in needs for _ in range(need)]
    possible = len(slots) <= 6 and any(
        all(mask >> device & 1 for mask, device in zip(slots, order, strict=False))
        for order in permutations(range(6), len(slots))
    )
    assert can_meet_all(needs) == possible


@given(st.integers(0, 2**40), st.integers(0, 45))
def test_lowest_members(mask: int, count: int) -> None:
    assert list(positions(lowest(mask, count))) == list(positions(mask))[:count]
