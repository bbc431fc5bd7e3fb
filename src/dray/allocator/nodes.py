"""Nodes in the order of their names, and sets of them by rank. When a node comes or goes, the ranks above it shift."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Mapping
from typing import Final

from dray.allocator.layout import Layout
from dray.tracker.columns import positions

_CHUNK: Final = 1024


class Node:
    """A node's labels, and what is in sight from it once that was asked for."""

    __slots__ = ("labels", "layout", "name")

    def __init__(self, name: str, labels: Mapping[str, str]) -> None:
        self.name = name
        self.labels = labels
        self.layout: Layout | None = None


class Nodes:
    """The nodes of a cluster, sorted by name."""

    def __init__(self) -> None:
        self._names: list[str] = []
        self._by_name: dict[str, Node] = {}

    def __len__(self) -> int:
        return len(self._names)

    def __iter__(self) -> Iterator[Node]:
        return (self._by_name[name] for name in self._names)

    def get(self, name: str) -> Node | None:
        return self._by_name.get(name)

    def at(self, rank: int) -> Node:
        return self._by_name[self._names[rank]]

    def name_at(self, rank: int) -> str:
        return self._names[rank]

    def rank(self, name: str) -> int:
        """The rank of a node, or where it would be inserted."""
        return bisect_left(self._names, name)

    def add(self, node: Node) -> int:
        """Insert a new node; its rank."""
        rank = self.rank(node.name)
        self._names.insert(rank, node.name)
        self._by_name[node.name] = node
        return rank

    def remove(self, name: str) -> int:
        """Take a node out; the rank it had."""
        rank = self.rank(name)
        del self._names[rank], self._by_name[name]
        return rank


class NodeSet:
    """A set of nodes by rank, which finds its first members in constant time however many nodes there are.

    Ranks are kept in chunks, each an integer with one bit per node, and a summary says which chunks are not empty.
    """

    __slots__ = ("_chunks", "_summary")

    def __init__(self, count: int) -> None:
        """All nodes of a cluster of `count` nodes."""
        self._chunks: list[int] = []
        self._summary = 0
        self._load((1 << count) - 1)

    def __iter__(self) -> Iterator[int]:
        """Ranks in ascending order. Members may be taken out meanwhile."""
        for number in positions(self._summary):
            for bit in positions(self._chunks[number]):
                yield number * _CHUNK + bit

    def __contains__(self, rank: int) -> bool:
        number, bit = divmod(rank, _CHUNK)
        return number < len(self._chunks) and bool(self._chunks[number] >> bit & 1)

    def __len__(self) -> int:
        return sum(chunk.bit_count() for chunk in self._chunks)

    @property
    def mask(self) -> int:
        """The set as one integer: bit i for the node of rank i."""
        return int.from_bytes(b"".join(chunk.to_bytes(_CHUNK // 8, "little") for chunk in self._chunks), "little")

    def add(self, rank: int) -> None:
        number, bit = divmod(rank, _CHUNK)
        while number >= len(self._chunks):
            self._chunks.append(0)
        self._chunks[number] |= 1 << bit
        self._summary |= 1 << number

    def discard(self, rank: int) -> None:
        number, bit = divmod(rank, _CHUNK)
        if number < len(self._chunks):
            self._chunks[number] &= ~(1 << bit)
            if not self._chunks[number]:
                self._summary &= ~(1 << number)

    def shift_in(self, rank: int) -> None:
        """A node was inserted at a rank; it is a member."""
        mask = self.mask
        below = mask & (1 << rank) - 1
        self._load(mask >> rank << rank + 1 | 1 << rank | below)

    def shift_out(self, rank: int) -> None:
        """The node at a rank was removed."""
        mask = self.mask
        below = mask & (1 << rank) - 1
        self._load(mask >> rank + 1 << rank | below)

    def _load(self, mask: int) -> None:
        data = mask.to_bytes(-(-mask.bit_length() // _CHUNK) * _CHUNK // 8, "little")
        width = _CHUNK // 8
        self._chunks = [int.from_bytes(data[i : i + width], "little") for i in range(0, len(data), width)]
        self._summary = sum(1 << number for number, chunk in enumerate(self._chunks) if chunk)
