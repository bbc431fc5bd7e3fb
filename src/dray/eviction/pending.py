"""Things to look at, each once, in the order in which they came."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable, Iterable
from typing import TypeVar

T = TypeVar("T", bound=Hashable)


class Pending(OrderedDict[T, None]):
    """A set that is worked through from its front. In a plain dict, finding the first passes over all taken before."""

    def add(self, thing: T) -> None:
        """One more, unless it is there."""
        self[thing] = None

    def extend(self, things: Iterable[T]) -> None:
        """Some more."""
        for thing in things:
            self[thing] = None

    def discard(self, thing: T) -> None:
        """Not this one, if it is there."""
        self.pop(thing, None)

    def take(self, limit: int | None) -> list[T]:
        """Takes the first few, or all."""
        count = len(self) if limit is None else min(limit, len(self))
        return [self.popitem(last=False)[0] for _ in range(count)]
