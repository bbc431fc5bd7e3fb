"""Memory follows what is looked at: of objects that nobody has written for a while, only packed bytes are kept.

    enough was written ─▶ each table, each version in it that is not among the last written:
                           its bytes are packed, its typed object is let go of unless somebody else has it, too

It is done on the loop, a few versions in a turn, and cut by number, not by time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Final, Protocol

from dray.store.records import Decode
from dray.store.table import Table

EACH_BYTES: Final = 32 * 1024 * 1024
"""So much is written, or read at a start, between two sweeps. Below that, nothing is packed."""
BYTES_FOR_EACH_SEEN: Final = 256
"""So much more has to be written for each version that the last sweep looked at, if that is more: with hundreds of
thousands of them, to look whether they are packed takes as long as to pack what is new."""
PACKED_IN_A_TURN: Final = 16
SEEN_IN_A_TURN: Final = 1024


class CallSoon(Protocol):
    """Has a function called in the next turn of the loop."""

    def __call__(self, function: Callable[[], None], /) -> object: ...


class Sweep:
    """Goes through all tables of a store whenever enough was written."""

    def __init__(self, tables: Mapping[str, Table], decode: Decode) -> None:
        self._tables = tables
        self._decode = decode
        self.on_end: Callable[[], None] = _nothing
        """Called when a sweep is over: pieces of memory that it left can be given back now."""
        self._written = 0
        self._enough = EACH_BYTES
        self._is_held = False
        self._walk: Iterator[None] | None = None

    def loaded(self, size: int) -> None:
        """So many bytes were there at the start; there may be no loop yet."""
        self._written += size

    def wrote(self, size: int, call_soon: CallSoon) -> None:
        """So many bytes more are in memory."""
        self._written += size
        if self._written >= self._enough and self._walk is None and not self._is_held:
            self._written = 0
            self._walk = self._turns()
            call_soon(lambda: self._go_on(call_soon))

    def hold(self) -> None:
        """No sweep begins until `release`: what was read at a start is looked at by everybody first."""
        self._is_held = True

    def release(self, call_soon: CallSoon) -> None:
        """One may begin, and does if enough was read."""
        self._is_held = False
        self.wrote(0, call_soon)

    def close(self) -> None:
        """What is not packed yet is left as it is."""
        self._walk = None

    def _go_on(self, call_soon: CallSoon) -> None:
        if self._walk is None:
            return
        try:
            next(self._walk)
        except StopIteration:
            self._walk = None
            self.on_end()
        else:
            call_soon(lambda: self._go_on(call_soon))

    def _turns(self) -> Iterator[None]:
        """Packs what may be packed, and stops wherever others should have their turn."""
        seen = packed = before = 0
        for table in list(self._tables.values()):
            for record in table.cold():
                seen += 1
                packed += record.rest(table.packer, self._decode)
                if packed >= PACKED_IN_A_TURN or seen >= SEEN_IN_A_TURN:
                    before += seen
                    seen = packed = 0
                    yield
        self._enough = max(EACH_BYTES, (before + seen) * BYTES_FOR_EACH_SEEN)


def _nothing() -> None:
    """Nobody wants to know."""
