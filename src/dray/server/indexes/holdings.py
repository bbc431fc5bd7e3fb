"""How much is stored on whose account, of one resource: counted as it changes, read from the store when asked."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from dray.server.indexes.followed import Followed
from dray.store import OBJECT_BYTES, Key, Store


class Holdings:
    """Bytes by holder. Until somebody asks, it costs nothing."""

    def __init__(self, store: Store, resource: str, holder_of: Callable[[Any], str]) -> None:
        """`holder_of` says on whose account an object is; empty if on nobody's."""
        self._store = store
        self._holder_of = holder_of
        self._followed = Followed(store, resource, self._apply)
        self._counted: dict[Key, tuple[str, int]] = {}
        self._bytes: dict[str, int] = {}

    @property
    def is_read(self) -> bool:
        """Whether `of` costs no more than what has changed. Else `read` comes first."""
        return self._followed.is_read

    async def read(self) -> None:
        """Reads what is there, a part in each turn of the loop."""
        await self._followed.read_in_turns()

    def of(self, holder: str) -> int:
        """What somebody has."""
        self._followed.catch_up()
        return self._bytes.get(holder, 0)

    def _apply(self, key: Key, obj: Any) -> None:
        holder, size = self._counted.pop(key, ("", 0))
        self._add(holder, -size)
        record = self._store.get(key)
        holder = self._holder_of(obj) if obj is not None and record is not None else ""
        if holder and record is not None:
            size = OBJECT_BYTES + record.size
            self._counted[key] = (holder, size)
            self._add(holder, size)

    def _add(self, holder: str, size: int) -> None:
        if not holder:
            return
        total = self._bytes.get(holder, 0) + size
        if total:
            self._bytes[holder] = total
        else:
            self._bytes.pop(holder, None)
