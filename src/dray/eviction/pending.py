"""Things to look at, each once, in the order in which they came."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable, Iterable
from typing import Generic, TypeVar

T = TypeVar("T", bound=Hashable)


class Pending(Generic[T]):
    """A set that is worked through from its front. In a plain dict, finding the first passes over all taken before."""

    def __init__(self) -> None:
        self._things: OrderedDict[T, None] = OrderedDict()

    def __len__(self) -> int:
        return len(self._things)

    def add(self, thing: T) -> None:
        """One more, unless it is there."""
        self._things[thing] = None

    def update(self, things: Iterable[T]) -> None:
        """Some more."""
        for thing in things:
            self._things[thing] = None

    def discard(self, thing: T) -> None:
        """Not this one, if it is there."""
        self._things.pop(thing, None)

    def pop(self, limit: int | None = None) -> list[T]:
        """Takes the first few, or all."""
        count = len(self._things) if limit is None else min(limit, len(self._things))
        return [self._things.popitem(last=False)[0] for _ in range(count)]
