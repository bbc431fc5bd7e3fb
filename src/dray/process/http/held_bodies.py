"""How many bytes of request bodies are held, of everybody and of each caller, so that strangers cannot fill memory."""

from __future__ import annotations

from typing import Final

from dray.process.http.messages import Limits

MUCH: Final = 16 * 1024 * 1024


class HeldBodies:
    """Counts bytes from when they arrive until their request is answered."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._all = 0
        self._of: dict[str, int] = {}
        self._most = 0

    @property
    def total(self) -> int:
        """Bytes held now."""
        return self._all

    def take(self, owner: str, size: int) -> bool:
        """Counts so many bytes more; False, and nothing is counted, if that would be too many."""
        mine = self._of.get(owner, 0) + size
        if mine > self._limits.bodies_of_one or self._all + size > self._limits.all_bodies:
            return False
        self._all += size
        if self._all > self._most:
            self._most = self._all
        self._of[owner] = mine
        return True

    def give_back(self, owner: str, size: int) -> None:
        """So many bytes are no longer held."""
        self._all -= size
        left = self._of.get(owner, 0) - size
        if left > 0:
            self._of[owner] = left
        else:
            self._of.pop(owner, None)

    def left_much(self) -> bool:
        """Whether much was held since this was last said, and nothing is held now: memory may be given back."""
        if self._all or self._most < MUCH:
            return False
        self._most = 0
        return True
