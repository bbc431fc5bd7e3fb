"""Who has how many of the connections: when all places are taken, those who have most give one up."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, Generic, TypeVar

C = TypeVar("C")

SHARE: Final = 0.25
"""Who has more than this share of all places gives one up when somebody else finds none."""


class Places(Generic[C]):
    """Connections by owner, each owner's in the order in which they became theirs."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._owners: dict[C, str] = {}
        self._of: dict[str, dict[C, None]] = {}

    def __len__(self) -> int:
        return len(self._owners)

    def __iter__(self) -> Iterator[C]:
        return iter(self._owners)

    def __contains__(self, connection: object) -> bool:
        return connection in self._owners

    @property
    def are_taken(self) -> bool:
        """Whether there is no place left."""
        return len(self._owners) >= self._most

    def give(self, connection: C, owner: str) -> None:
        """A connection takes a place, or turns out to be somebody else's."""
        before = self._owners.get(connection)
        if before == owner:
            return
        if before is not None:
            self._leave(connection, before)
        self._owners[connection] = owner
        self._of.setdefault(owner, {})[connection] = None

    def take_back(self, connection: C) -> None:
        """A connection has ended; nothing happens if it had no place."""
        owner = self._owners.pop(connection, None)
        if owner is not None:
            self._leave(connection, owner)

    def _leave(self, connection: C, owner: str) -> None:
        own = self._of[owner]
        del own[connection]
        if not own:
            del self._of[owner]

    def find_dispensable(self) -> C | None:
        """The oldest connection of whoever has most, if that is more than a share."""
        most = max(self._of.values(), key=len, default={})
        return next(iter(most)) if len(most) > SHARE * self._most else None
