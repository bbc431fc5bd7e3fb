"""Records are gone through in parts that are neither too many nor too large."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from dray.store import in_parts

SIZES = st.lists(st.integers(0, 12), max_size=40)


@given(SIZES, st.integers(1, 20), st.integers(1, 6))
def test_parts_keep_the_order_and_leave_nothing_out(sizes: list[int], most_bytes: int, most: int) -> None:
    parts = list(in_parts(sizes, int, most_bytes, most))
    assert [size for part in parts for size in part] == sizes


@given(SIZES, st.integers(1, 20), st.integers(1, 6))
def test_a_part_is_as_large_as_it_may_be(sizes: list[int], most_bytes: int, most: int) -> None:
    parts = list(in_parts(sizes, int, most_bytes, most))
    for part in parts:
        assert part
        assert len(part) <= most
        assert sum(part) <= most_bytes or len(part) == 1
    for part, following in pairwise(parts):
        assert len(part) == most or sum(part) + following[0] > most_bytes
