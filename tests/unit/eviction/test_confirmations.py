"""Pools are confirmed for as long as one of their slices says so."""

from __future__ import annotations

from dray.api.meta import ObjectMeta
from dray.api.resource import ResourceSlice
from dray.api.resource.pool import pool_of
from dray.api.resource.slice import ResourcePool, ResourceSliceSpec
from dray.eviction.confirmations import CONFIRM_ANNOTATION, PoolConfirmations

POOL = ResourcePool(name="a", generation=7, resource_slice_count=2)


def piece(name: str, *, is_confirmed: bool) -> ResourceSlice:
    meta = ObjectMeta(name=name, annotations={CONFIRM_ANNOTATION: "7"} if is_confirmed else {})
    return ResourceSlice(metadata=meta, spec=ResourceSliceSpec(driver="gpu.example.com", pool=POOL))


def test_a_pool_is_confirmed_until_the_last_slice_that_says_so_is_gone_or_says_it_no_more() -> None:
    confirmations, one, two = PoolConfirmations(), piece("one", is_confirmed=True), piece("two", is_confirmed=True)
    pool = pool_of(one)
    assert confirmations.put("one", piece("one", is_confirmed=False)) == {}
    assert confirmations.put("one", one) == {pool: True}
    assert confirmations.put("two", two) == {pool: True}
    assert confirmations.put("one", None) == {pool: True}
    assert confirmations.put("two", piece("two", is_confirmed=False)) == {pool: False}
    assert confirmations.put("two", two) == {pool: True}
    assert confirmations.put("two", None) == {pool: False}
