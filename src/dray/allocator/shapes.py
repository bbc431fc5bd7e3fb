"""Equal claims are one problem: what was found out about a node holds until something changes there.

A shape starts with every node as a candidate. A node on which the problem does not fit is ruled out; it comes back when
something changes on it that could help. So the first node that fits is found without asking the others again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

import msgspec

from dray.allocator.nodes import NodeSet
from dray.allocator.requests import Claim
from dray.api.resource import DeviceClass, ResourceClaim
from dray.api.struct import encode_value

_KEPT_CHANGES: Final = 8192
_encode = msgspec.json.Encoder(enc_hook=encode_value).encode


def shape_key(claims: Sequence[ResourceClaim]) -> bytes:
    """What a problem depends on: requests and constraints. Names, labels and configuration do not matter."""
    if len(claims) == 1:
        devices = claims[0].spec.devices
        return _encode((devices.requests, devices.constraints))
    return _encode([(c.spec.devices.requests, c.spec.devices.constraints) for c in claims])


class NodeChanges:
    """A log of what happened to nodes, for shapes to catch up with. Only the newest part is kept."""

    TOUCH: Final = 0
    INSERT: Final = 1
    REMOVE: Final = 2
    TOUCH_ALL: Final = 3

    def __init__(self) -> None:
        self._log: list[tuple[int, int]] = []
        self._dropped = 0

    @property
    def end(self) -> int:
        """The number of changes so far."""
        return self._dropped + len(self._log)

    def since(self, start: int) -> list[tuple[int, int]] | None:
        """The changes from number `start` on; None if they are not kept any more."""
        return self._log[start - self._dropped :] if start >= self._dropped else None

    def touch(self, rank: int) -> None:
        """Something may fit on the node now that did not before."""
        self._add((self.TOUCH, rank))

    def touch_all(self) -> None:
        self._add((self.TOUCH_ALL, 0))

    def insert(self, rank: int) -> None:
        self._add((self.INSERT, rank))

    def remove(self, rank: int) -> None:
        self._add((self.REMOVE, rank))

    def _add(self, change: tuple[int, int]) -> None:
        self._log.append(change)
        if len(self._log) >= 2 * _KEPT_CHANGES:
            del self._log[:_KEPT_CHANGES]
            self._dropped += _KEPT_CHANGES


class Shape:
    """A problem and the nodes that are still candidates for it."""

    def __init__(self, claims: tuple[Claim, ...]) -> None:
        self.claims: Final = claims
        self._candidates = NodeSet(0)
        self._seen: int | None = None

    def is_current(self, classes: Mapping[str, DeviceClass]) -> bool:
        """Whether the classes are still what they were when the claims were read (4381-62)."""
        return all(
            classes.get(name) is seen or classes.get(name) == seen
            for claim in self.claims
            for name, seen in claim.classes
        )

    def candidates(self, changes: NodeChanges, node_count: int) -> NodeSet:
        """The candidates, after catching up with what happened since the last time."""
        if self._seen == changes.end:
            return self._candidates
        missed = changes.since(self._seen) if self._seen is not None else None
        self._seen = changes.end
        if missed is None or any(kind == NodeChanges.TOUCH_ALL for kind, _ in missed):
            self._candidates = NodeSet(node_count)
            return self._candidates
        for kind, rank in missed:
            if kind == NodeChanges.TOUCH:
                self._candidates.add(rank)
            elif kind == NodeChanges.INSERT:
                self._candidates.shift_in(rank)
            else:
                self._candidates.shift_out(rank)
        return self._candidates

    def rule_out(self, rank: int) -> None:
        """The problem does not fit on a node now."""
        self._candidates.discard(rank)
