"""Which slices of a pool count, and for which nodes.

A pool is what has one driver and one name. A driver that changes it publishes slices of a higher generation, and those
of lower ones are obsolete. Pools may span nodes, but a node whose own slices are all there needs no others, and none
of another node can take them away or add to them:

    slices of one pool                        parts
    a  node-1  generation 3  1 of 1  ───────→ node-1: a
    b  node-2  generation 9  1 of 1  ───────→ node-2: b
    c  node-3  generation 4  1 of 2  ─┬─────→ others: c, d      what several nodes share follows one generation
    d  all     generation 4  1 of 2  ─┘
    e  node-3  generation 2                   obsolete

What is left over and incomplete is obsolete, too, if some part is newer: then the driver has gone on without it.
Slices for all nodes, or for those that match a selector, concern every node: they make slices of lower generations
obsolete wherever those are, and a node has a part of its own only if no such slice is as new as its own. What they
have complete is not undone by slices of single nodes that fit in nowhere.
"""

from __future__ import annotations

from collections.abc import Iterable

from dray.api.resource import ResourceSlice

OTHERS = ""
"""The part of all nodes that have none of their own."""


def split(slices: Iterable[ResourceSlice]) -> dict[str, list[ResourceSlice]]:
    """The slices of a pool that count, by the node whose part they are; all that is left over is in OTHERS.

    A pool with slices of one node alone is that node's part, complete or not.
    """
    by_node: dict[str, list[ResourceSlice]] = {}
    for each in slices:
        by_node.setdefault(each.spec.node_name or OTHERS, []).append(each)
    if len(by_node) <= 1:
        return {node: newest(found) for node, found in by_node.items()}
    shared = max((_generation(each) for each in by_node.get(OTHERS, ())), default=-1)
    parts: dict[str, list[ResourceSlice]] = {}
    rest: list[ResourceSlice] = []
    for node, found in by_node.items():
        own = newest(found)
        if node != OTHERS and _generation(own[0]) > shared and is_complete(own):
            parts[node] = own
        else:
            rest += found
    others = _shared_part(rest, shared)
    if others and (is_complete(others) or not _is_older(others, parts.values())):
        parts[OTHERS] = others
    return parts


def _shared_part(rest: list[ResourceSlice], shared: int) -> list[ResourceSlice]:
    """The slices that count of those that are no node's own; `shared` is the newest generation for several nodes.

    The newest of all. If these are incomplete, then those without what single nodes have added: of a newer generation,
    or of the same.
    """
    if shared >= 0:
        expected = [each for each in rest if _generation(each) <= shared]
        for found in (rest, expected, [each for each in expected if not each.spec.node_name]):
            if is_complete(newest(found)):
                return newest(found)
    return newest(rest)


def newest(slices: Iterable[ResourceSlice]) -> list[ResourceSlice]:
    """The slices of the highest generation."""
    found = list(slices)
    generation = max(map(_generation, found), default=0)
    return [each for each in found if _generation(each) == generation]


def is_complete(slices: list[ResourceSlice]) -> bool:
    """Whether there are as many slices of one generation as each of them says."""
    return all(each.spec.pool.resource_slice_count == len(slices) for each in slices)


def _is_older(slices: list[ResourceSlice], parts: Iterable[list[ResourceSlice]]) -> bool:
    return any(_generation(slices[0]) < _generation(part[0]) for part in parts)


def _generation(each: ResourceSlice) -> int:
    return each.spec.pool.generation
