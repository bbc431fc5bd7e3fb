"""The fleet as rows: a pool, or the part of it that a node has, with the state of every device in one letter.

A row is made again only when its pool changed: looking at forty thousand devices costs what is new about them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator
from itertools import takewhile
from typing import Final

import msgspec

from dray.api.resource.pool import PoolKey
from dray.scheduling.cluster import Cluster
from dray.scheduling.device_states import DeviceState, DeviceStates, PoolState
from dray.snapshot import Snapshot
from dray.tracker.columns import positions
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
        self.gone: dict[str, int] = {}
        self.revision = 0
        self._revisions: dict[str, int] = {}
        """By key, the refresh that last changed a row; the newest last."""
        self._states = DeviceStates()
        self._seen: dict[str, tuple[PoolState, frozenset[str]]] = {}
        self._keys: dict[PoolKey, list[str]] = {}
        """The rows of each pool."""
        self._tally = _Tally()
        self._is_different = False

    def refresh(self, cluster: Cluster, leaving: Collection[str] = ()) -> Iterator[None]:
        """Looks at everything once, a pool per step, so that the caller can do something else in between.

        `leaving` are claims (`namespace/name`) whose pods are being deleted. `revision` counts the times that something
        was different.
        """
        revision = self.revision + 1
        found: dict[PoolKey, list[str]] = {}
        for state in self._states.pools(cluster):
            found.setdefault((state.view.driver, state.view.name), []).append(self._look(state, leaving, revision))
            yield
        before, self._keys = self._keys, found
        for pool, keys in before.items():
            self._drop(keys, found.get(pool, ()), revision)
        self._finish(revision)

    def refresh_pools(self, cluster: Cluster, pools: Collection[PoolKey], leaving: Collection[str]) -> Iterator[None]:
        """The same for some pools, while nodes are as they were: costs what these do, however many others there are."""
        revision = self.revision + 1
        for pool, states in self._states.pools_of(cluster, pools):
            before = self._keys.pop(pool, [])
            keys = [self._look(state, leaving, revision) for state in states]
            if keys:
                self._keys[pool] = keys
            self._drop(before, keys, revision)
            yield
        self._finish(revision)

    def _finish(self, revision: int) -> None:
        """Whoever looks while rows are being made hears of all of them afterwards."""
        if self._is_different:
            self.revision = revision
            self._is_different = False

    def _look(self, state: PoolState, leaving: Collection[str], revision: int) -> str:
        key = row_key(state.view)
        going = _leaving(state, leaving)
        if self.views.get(key) is not state.view or self._seen[key] != (state, going):
            self._note(key, state, going, revision)
        return key

    def _drop(self, before: Iterable[str], keys: Collection[str], revision: int) -> None:
        for key in before:
            if key not in keys and key in self.rows:
                self._tally.count(self.rows.pop(key), -1)
                del self.views[key], self._seen[key], self._revisions[key]
                self.gone[key] = revision
                self._is_different = True

    def _note(self, key: str, state: PoolState, going: frozenset[str], revision: int) -> None:
        is_same_view = self.views.get(key) is state.view
        self._seen[key] = (state, going)
        self.views[key] = state.view
        row, before = fleet_row(state, going), self.rows.get(key)
        if before == row and is_same_view:
            return  # else its attributes may be others, which whoever groups or picks by them has to know
        if before is not None:
            self._tally.count(before, -1)
        self._tally.count(row, 1)
        self.rows[key] = row
        self._revisions.pop(key, None)
        self._revisions[key] = revision
        self.gone.pop(key, None)
        self._is_different = True

    @property
    def totals(self) -> FleetTotals:
        """All rows in numbers."""
        return self._tally.totals()

    def keys_of(self, driver: str, pool: str) -> list[str]:
        """The rows of a pool: one for each node that has a part of it."""
        return self._keys.get((driver, pool), [])

    def devices(self, key: str) -> list[DeviceState]:
        """The devices of a row, as of the last refresh; none if there is no such row."""
        found = self._seen.get(key)
        return list(self._states.of_pool(found[0])) if found is not None else []

    def since(self, revision: int) -> tuple[list[FleetRow], list[str]]:
        """The rows that changed after a revision, and the keys of those that went."""
        newest = takewhile(lambda one: one[1] > revision, reversed(self._revisions.items()))
        changed = [self.rows[key] for key, _ in newest]
        return changed[::-1], [key for key, at in self.gone.items() if at > revision]


def look_at(snapshot: Snapshot) -> FleetRows:
    """The fleet of a snapshot, by driver and pool."""
    found = FleetRows()
    with snapshot.rehearsal() as rehearsal:
        for _ in found.refresh(rehearsal.cluster):
            pass
    return found


def row_key(view: PoolView) -> str:
    """What tells a pool, or a part of one, from all others."""
    return f"{view.driver}/{view.name}/{view.node}"


def fleet_row(state: PoolState, going: frozenset[str]) -> FleetRow:
    """A pool as a row."""
    view = state.view
    bits = [0] * len(view.devices)
    sets = ((FREE, state.free), (HELD, state.held), (TAINTED, state.tainted), (BLOCKED, state.blocked))
    for bit, mask in sets:
        for position in positions(mask):
            bits[position] |= bit
    if going:
        for position in positions(state.held):
            if not going.isdisjoint(state.occupancy.holders(position)):
                bits[position] |= LEAVING
    names = tuple([device.id.device for device in view.devices])
    return FleetRow(row_key(view), view.driver, view.name, view.node, names, "".join([LETTERS[one] for one in bits]))


def _leaving(state: PoolState, leaving: Collection[str]) -> frozenset[str]:
    if not leaving or not state.held:
        return frozenset()
    holders = (name for position in positions(state.held) for name in state.occupancy.holders(position))
    return frozenset(name for name in holders if name in leaving)


def totals(rows: Iterable[FleetRow]) -> FleetTotals:
    """All rows in numbers."""
    tally = _Tally()
    for row in rows:
        tally.count(row, 1)
    return tally.totals()


class _Tally:
    """Devices by letter, and those of pools that are free as a whole."""

    def __init__(self) -> None:
        self._letters: Counter[str] = Counter()
        self._whole = 0

    def count(self, row: FleetRow, sign: int) -> None:
        """A row more, or less."""
        for letter in set(row.states):
            self._letters[letter] += sign * row.states.count(letter)
        if row.states == LETTERS[FREE] * len(row.states):
            self._whole += sign * len(row.states)

    def totals(self) -> FleetTotals:
        letters = self._letters
        numbers = {
            word: sum(number for letter, number in letters.items() if (ord(letter) - 48) & bit)
            for bit, word in WORDS.items()
        }
        return FleetTotals(devices=sum(letters.values()), whole=self._whole, **numbers)


def words_of(letter: str) -> list[str]:
    """What a letter means."""
    return [word for bit, word in WORDS.items() if (ord(letter) - 48) & bit]


def shown_as(letter: str) -> str:
    """The one word for a device in a picture."""
    bits = ord(letter) - 48
    return next((WORDS[bit] for bit in SHOWN if bits & bit), WORDS[BLOCKED])
