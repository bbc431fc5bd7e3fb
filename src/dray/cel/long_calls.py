"""Calls that may take longer than they cost."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from dray.cel.ast import ACCUMULATOR, Call, Ident, Node, children
from dray.cel.types import Kind

__all__ = ["adds_lists", "formats", "takes_longer"]

_LONGER: Final = frozenset({"findAll", "flatten"})


def takes_longer(root: Node) -> bool:
    """Whether an expression calls what is paid for by its arguments and takes longer: a search of a text, again and
    again, each time perhaps to its end; or a walk through lists, of which one can be in others as often as one likes
    (`cel.bind(b, [a, a], cel.bind(c, [b, b], …`) and is walked through each time."""
    return any(call.function in _LONGER for call in _calls(root))


def formats(root: Node) -> bool:
    """Whether an expression writes values out as text, which may be as much longer in the same way."""
    return any(call.function == "format" for call in _calls(root))


def adds_lists(root: Node) -> bool:
    """Whether an expression adds lists, or what may be lists. Added to itself again and again, one has half a million
    elements in no time, and whatever looks at it looks at all of them before that is charged for."""
    return any(
        call.function == "_+_" and call.type.kind in (Kind.LIST, Kind.DYN) and not _gathers(call)
        for call in _calls(root)
    )


def _gathers(call: Call) -> bool:
    """Whether it is a round of a loop, which is counted."""
    first = call.args[0]
    return isinstance(first, Ident) and first.name == ACCUMULATOR


def _calls(root: Node) -> Iterator[Call]:
    pending = [root]
    while pending:
        node = pending.pop()
        if isinstance(node, Call):
            yield node
        pending.extend(children(node))
