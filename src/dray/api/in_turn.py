"""What is to be done, by whom it is for: everybody gets a turn, and one with a thousand things keeps nobody waiting."""

from __future__ import annotations

from collections import deque
from typing import Generic, TypeVar

T = TypeVar("T")


class InTurn(Generic[T]):
    """Things of several owners, each owner's in the order in which they were put."""

    __slots__ = ("_things",)

    def __init__(self) -> None:
        self._things: dict[str, deque[T]] = {}

    def put(self, owner: str, thing: T) -> None:
        """A thing to do, behind the owner's others."""
        self._things.setdefault(owner, deque()).append(thing)

    def next(self) -> T | None:
        """The next thing to do, which is taken out; its owner's others wait until all other owners had a turn."""
        if not self._things:
            return None
        owner, things = next(iter(self._things.items()))
        thing = things.popleft()
        del self._things[owner]
        if things:
            self._things[owner] = things  # behind the others
        return thing
