"""The fleet as rows: a pool, or the part of it that a node has, with the state of every device in one letter.

A row is made again only when its pool changed: looking at forty thousand devices costs what is new about them.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from typing import Final

import msgspec

from dray.allocator.flow import members
from dray.scheduling.cluster import Cluster
from dray.scheduling.device_states import DeviceState, DeviceStates, PoolState
from dray.snapshot import Snapshot
from dray.tracker.view import PoolView

FREE: Final = 1
HELD: Final = 2
TAINTED: Final = 4
BLOCKED: Final = 8
LEAVING: Final = 16
"""A pod that uses it is being deleted."""
LETTERS: Final = "".join(chr(48 + bits) for bits in range(32))
"""The letter of a device: `0` plus the sum of what it is."""
WORDS: Final = {FREE: "free", HELD: "held", TAINTED: "tainted", BLOCKED: "blocked", LEAVING: "leaving"}


SHOWN: Final = (LEAVING, TAINTED, HELD, BLOCKED, FREE)
"""What is shown of a device that is several things: the first of these."""


class FleetRow(msgspec.Struct, frozen=True, rename="camel"):
    """The devices of a pool, in order; `states` has a letter for each."""

    key: str
    driver: str
    pool: str
    node: str
    """Empty if they are not on one node."""
    names: tuple[str, ...]
    states: str


class FleetTotals(msgspec.Struct, frozen=True, rename="camel"):
    """Devices in numbers: one counts for everything that it is."""

    devices: int = 0
    free: int = 0
    held: int = 0
    tainted: int = 0
    blocked: int = 0
    leaving: int = 0
    whole: int = 0
    """Free devices on nodes, or in pools, where all are free: the others lie in fragments."""


class FleetRows:
    """The rows of a cluster, kept current by `refresh`."""

    def __init__(self) -> None:
        self.rows: dict[str, FleetRow] = {}
        self.views: dict[str, PoolView] = {}
        self.revisions: dict[str, int] = {}
        """By key, the refresh that last changed a row."""
        self.gone: dict[str, int] = {}
        self.revision = 0
        self._states = DeviceStates()
        self._seen: dict[str, tuple[PoolState, frozenset[str]]] = {}

    def refresh(self, cluster: Cluster, leaving: Collection[str] = ()) -> Iterator[None]:
        """Looks at everything once, a pool per step, so that the caller can do something else in between.

        `leaving` are claims (`namespace/name`) whose pods are being deleted. `revision` counts the times that something
        was different.
        """
        revision = self.revision + 1
        found: set[str] = set()
        different = False
        for state in self._states.pools(cluster):
            key = row_key(state.view)
            found.add(key)
            going = _leaving(state, leaving)
            if self.views.get(key) is not state.view or self._seen[key] != (state, going):
                different |= self._note(key, state, going, revision)
            yield
        for key in [key for key in self.rows if key not in found]:
            del self.rows[key], self.views[key], self._seen[key], self.revisions[key]
            self.gone[key] = revision
            different = True
        if different:
            self.revision = revision

    def _note(self, key: str, state: PoolState, going: frozenset[str], revision: int) -> bool:
        self._seen[key] = (state, going)
        self.views[key] = state.view
        row = fleet_row(state, going)
        if self.rows.get(key) == row:
            return False
        self.rows[key] = row
        self.revisions[key] = revision
        self.gone.pop(key, None)
        return True

    def devices(self, key: str) -> list[DeviceState]:
        """The devices of a row, as of the last refresh; none if there is no such row."""
        found = self._seen.get(key)
        return list(self._states.of_pool(found[0])) if found is not None else []

    def since(self, revision: int) -> tuple[list[FleetRow], list[str]]:
        """The rows that changed after a revision, and the keys of those that went."""
        changed = [self.rows[key] for key, at in self.revisions.items() if at > revision]
        return changed, [key for key, at in self.gone.items() if at > revision]


def rows_of(snapshot: Snapshot) -> list[FleetRow]:
    """The fleet of a snapshot, by driver and pool."""
    rows = FleetRows()
    with snapshot.rehearsal() as rehearsal:
        for _ in rows.refresh(rehearsal.cluster):
            pass
    return list(rows.rows.values())


def row_key(view: PoolView) -> str:
    """What tells a pool, or a part of one, from all others."""
    return f"{view.driver}/{view.name}/{view.node}"


def fleet_row(state: PoolState, going: frozenset[str] = frozenset()) -> FleetRow:
    """A pool as a row."""
    view = state.view
    bits = [0] * len(view.devices)
    sets = ((FREE, state.free), (HELD, state.held), (TAINTED, state.tainted), (BLOCKED, state.blocked))
    for bit, mask in sets:
        for position in members(mask):
            bits[position] |= bit
    if going:
        for position in members(state.held):
            if not going.isdisjoint(state.occupancy.holders(position)):
                bits[position] |= LEAVING
    names = tuple([device.id.device for device in view.devices])
    return FleetRow(row_key(view), view.driver, view.name, view.node, names, "".join([LETTERS[one] for one in bits]))


def _leaving(state: PoolState, leaving: Collection[str]) -> frozenset[str]:
    if not leaving or not state.held:
        return frozenset()
    holders = (name for position in members(state.held) for name in state.occupancy.holders(position))
    return frozenset(name for name in holders if name in leaving)


def totals(rows: Iterable[FleetRow]) -> FleetTotals:
    """All rows in numbers."""
    letters: dict[str, int] = {}
    whole = 0
    for row in rows:
        for letter in set(row.states):
            letters[letter] = letters.get(letter, 0) + row.states.count(letter)
        if row.states == LETTERS[FREE] * len(row.states):
            whole += len(row.states)
    numbers = {
        word: sum(number for letter, number in letters.items() if (ord(letter) - 48) & bit)
        for bit, word in WORDS.items()
    }
    return FleetTotals(devices=sum(letters.values()), whole=whole, **numbers)


def words_of(letter: str) -> list[str]:
    """What a letter means."""
    return [word for bit, word in WORDS.items() if (ord(letter) - 48) & bit]


def shown_as(letter: str) -> str:
    """The one word for a device in a picture."""
    bits = ord(letter) - 48
    return next((WORDS[bit] for bit in SHOWN if bits & bit), WORDS[BLOCKED])
