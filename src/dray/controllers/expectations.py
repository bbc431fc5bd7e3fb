"""What was asked for and has not been seen yet, so that nothing is done twice while news is on its way."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

LONGEST = 300.0
"""After so many seconds the news is taken as lost: a watch that had to start over may have skipped it."""


@dataclass
class _Open:
    since: float
    created: set[str] = field(default_factory=set)
    deleted: set[str] = field(default_factory=set)


class Expectations:
    """By the uid of an owner: names of objects to be created, uids of objects to be deleted."""

    def __init__(self, monotonic: Callable[[], float]) -> None:
        self._monotonic = monotonic
        self._open: dict[str, _Open] = {}

    def expect_created(self, owner: str, name: str) -> None:
        """An object of that name is about to be created."""
        self._of(owner).created.add(name)

    def expect_deleted(self, owner: str, uid: str) -> None:
        """That object is about to be deleted."""
        self._of(owner).deleted.add(uid)

    def saw_created(self, owner: str, name: str) -> None:
        """The object is there, or its creation failed."""
        self._settle(owner, name, "")

    def saw_deleted(self, owner: str, uid: str) -> None:
        """The object is gone or going, or its deletion failed."""
        self._settle(owner, "", uid)

    def are_met(self, owner: str) -> bool:
        """Whether everything that was asked for has been seen."""
        found = self._open.get(owner)
        if found is None:
            return True
        if self._monotonic() - found.since > LONGEST:
            del self._open[owner]
            return True
        return False

    def forget(self, owner: str) -> None:
        """The owner is gone."""
        self._open.pop(owner, None)

    def _of(self, owner: str) -> _Open:
        found = self._open.setdefault(owner, _Open(self._monotonic()))
        found.since = self._monotonic()
        return found

    def _settle(self, owner: str, name: str, uid: str) -> None:
        found = self._open.get(owner)
        if found is None:
            return
        found.created.discard(name)
        found.deleted.discard(uid)
        if not found.created and not found.deleted:
            del self._open[owner]
