"""What the guard knows of pods that must leave for the same sources, and of groups of these. Pure."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Generic, TypeVar

from dray.eviction.causes import Source

P = TypeVar("P", bound=Hashable)


class Alike(Generic[P]):
    """Pods that must leave for the same sources."""

    __slots__ = ("going", "groups", "is_counted", "is_meant", "pods", "sources")

    def __init__(self, sources: frozenset[Source]) -> None:
        self.sources = sources
        self.groups: frozenset[str] = frozenset()
        """Of the sources that nobody has confirmed."""
        self.is_meant = False
        """Whether somebody confirmed that they leave, for whichever of their sources."""
        self.pods: dict[P, None] = {}
        self.going = 0
        """How many of them are on their way."""
        self.is_counted = False
        """Whether all of them count, for a group that may evict them."""

    @property
    def counted(self) -> int:
        """How many of them count."""
        return len(self.pods) if self.is_counted else self.going


class SourceGroup(Generic[P]):
    """The pods that must leave for sources of one group that nobody has confirmed."""

    __slots__ = ("alikes", "is_allowed", "number", "since", "size", "unjudged")

    def __init__(self, number: int, since: float) -> None:
        self.number = number
        self.since = since
        self.alikes: dict[Alike[P], None] = {}
        self.size = 0
        """How many pods these are."""
        self.unjudged: dict[P, None] = {}
        """Those who came since the group was judged: they are not allowed before it is judged again."""
        self.is_allowed = False
