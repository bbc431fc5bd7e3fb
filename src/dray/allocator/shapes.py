"""Equal claims are one problem: what was found out about a node holds until something changes there.

A shape starts with every node as a candidate. A node on which the problem does not fit is ruled out; it comes back when
something changes on it that could help. So the first node that fits is found without asking the others again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from hashlib import blake2b
from typing import Final, NamedTuple, TypeAlias

import msgspec

from dray.allocator.change_log import ChangeLog
from dray.allocator.nodes import NodeSet
from dray.allocator.plain import only_alternative
from dray.allocator.pools import Pool
from dray.allocator.requests import Alternative, Claim
from dray.allocator.selection import Criteria
from dray.api.resource import DeviceClass, ResourceClaim, ResourceClaimSpec
from dray.api.sharing import remembered
from dray.api.struct import encode_value

_encode = msgspec.json.Encoder(enc_hook=encode_value).encode


def shape_key(claims: Sequence[ResourceClaim]) -> bytes:
    """What a problem depends on: requests and constraints. Names, labels and configuration do not matter."""
    if len(claims) == 1:
        return _key_of(claims[0].spec)
    return b"".join([_key_of(claim.spec) for claim in claims])


@remembered
def _key_of(spec: ResourceClaimSpec) -> bytes:
    return blake2b(_encode((spec.devices.requests, spec.devices.constraints)), digest_size=32).digest()


class Touched(NamedTuple):
    """Something may fit on a node now that did not before."""

    rank: int


class Inserted(NamedTuple):
    """A node is new; ranks from here on shift up."""

    rank: int


class Removed(NamedTuple):
    """A node is gone; ranks above shift down."""

    rank: int


class PoolTouched(NamedTuple):
    """The same for all nodes, on account of a pool that many of them may see: only for those who want its devices."""

    pool: Pool


NodeChange: TypeAlias = Touched | Inserted | Removed | PoolTouched
"""What happened to nodes, for shapes to catch up with."""


class Shape:
    """A problem and the nodes that are still candidates for it."""

    def __init__(self, claims: tuple[Claim, ...]) -> None:
        self.claims: Final = claims
        self.faultless_at: int | None = None
        """The number of changes of pools (`faults`) after which all devices could be judged."""
        self._candidates = NodeSet(0)
        self._seen: int | None = None

    @cached_property
    def only(self) -> Alternative | None:
        """What is asked for, if that is some devices and nothing else."""
        return only_alternative(self.claims)

    @cached_property
    def criteria(self) -> tuple[Criteria, ...]:
        """What devices must fulfil, by one alternative or another."""
        alternatives = [a for claim in self.claims for request in claim.requests for a in request.alternatives]
        return tuple(dict.fromkeys(alternative.criteria for alternative in alternatives))

    def is_current(self, classes: Mapping[str, DeviceClass]) -> bool:
        """Whether the classes are still what they were when the claims were read (4381-62)."""
        return all(
            classes.get(name) is seen or classes.get(name) == seen
            for claim in self.claims
            for name, seen in claim.classes
        )

    def candidates(self, changes: ChangeLog[NodeChange], node_count: int) -> NodeSet:
        """The candidates, after catching up with what happened since the last time."""
        if self._seen == changes.end:
            return self._candidates
        seen = self._seen
        missed = changes.read(seen) if seen is not None and changes.reaches(seen) else None
        self._seen = changes.end
        if missed is None or any(isinstance(c, PoolTouched) and self._wants(c.pool) for c in missed):
            self._candidates = NodeSet(node_count)
            return self._candidates
        for change in missed:
            if isinstance(change, Touched):
                self._candidates.add(change.rank)
            elif isinstance(change, Inserted):
                self._candidates.shift_in(change.rank)
            elif isinstance(change, Removed):
                self._candidates.shift_out(change.rank)
        return self._candidates

    def _wants(self, pool: Pool) -> bool:
        """Whether devices of a pool can matter to the problem. `All` depends on every pool."""
        alternatives = [a for claim in self.claims for request in claim.requests for a in request.alternatives]
        return any(a.count is None or pool.concerns(a.criteria) for a in alternatives)

    def rule_out(self, rank: int) -> None:
        """The problem does not fit on a node now."""
        self._candidates.discard(rank)
