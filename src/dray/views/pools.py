"""Pools that cannot be used, in words: no row of devices tells of them, there may be no device in them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from dray.tracker import NodeAccess, PoolView


def bad_pools(pools: Iterable[PoolView], node: str = "") -> list[PoolView]:
    """Those that cannot be used now; of a node, or of no single one, if a node is given."""
    return [one for one in pools if one.problem is not None and (not node or one.node in ("", node))]


def tell_bad_pools(pools: Iterable[PoolView]) -> Iterator[str]:
    """`Pool gpu.example.com/node-1 is incomplete: 1 of 2 slices of generation 1 are there; its devices do not count`"""
    for problem in (pool.problem or "" for pool in pools):
        yield f"{problem[:1].upper()}{problem[1:]}; its devices do not count"


def tell_reach(access: NodeAccess) -> str:
    """From where a device can be used: a node by name, or several."""
    if access.node_name is not None:
        return access.node_name
    return "(all)" if access.node_selector is None else "(by selector)"
