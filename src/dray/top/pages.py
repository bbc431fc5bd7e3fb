"""The four pages: which items they have, in which order, and what is said of each. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import datetime
from typing import Any, Final, TypeAlias

import msgspec

from dray.api.taints import taint_text
from dray.api.times import Time
from dray.prose.wording import count, span
from dray.top import screen
from dray.top.seen import Seen, Spot, is_picked
from dray.views.fleet import FleetRow, shown_as, words_of
from dray.views.grouping import TRUE, natural
from dray.views.pools import tell_reach
from dray.views.service import NodeRow, RuleRow
from dray.views.waiting import PodRow

NOTHING: Final = "–"
ORDER: Final = {word: number for number, word in enumerate(("leaving", "tainted", "held", "blocked", "free"))}
SYMBOLS: Final = {"free": ".", "held": "#", "tainted": "T", "blocked": "x", "leaving": "L"}

Item: TypeAlias = FleetRow | Spot | PodRow | RuleRow | NodeRow
Key: TypeAlias = Callable[[Any], Any]


class Scope(msgspec.Struct, frozen=True):
    """Which items a page shows."""

    words: str = ""
    """Those in which this is written; devices are filtered by CEL, before."""
    within: FleetRow | None = None
    """Of a node all, of a pool that is of no single node what is in it."""


class Page(msgspec.Struct, frozen=True, kw_only=True):
    """A list of items of one kind."""

    name: str
    title: str
    header: tuple[str, ...]
    items: Callable[[Seen], list[Any]]
    cells: Callable[[Any, Seen], tuple[str, ...]]
    key: Callable[[Any], str]
    sorts: tuple[tuple[str, Key | None], ...]
    """Names of orders; None is the order in which items come."""
    empty: str
    hints: str


def in_order(page: Page, seen: Seen, scope: Scope, sort: int, *, down: bool) -> list[Any]:
    """What a page shows."""
    found = page.items(seen)
    if scope.within is not None:
        found = [one for one in found if _is_within(one, scope.within)]
    if scope.words:
        wanted = scope.words.lower()
        found = [one for one in found if wanted in " ".join(page.cells(one, seen)).lower()]
    key = page.sorts[sort % len(page.sorts)][1]
    if key is not None:
        found = sorted(found, key=key, reverse=down)
    return found[::-1] if down and key is None else found


def _is_within(item: Item, place: FleetRow) -> bool:
    row = item.row if isinstance(item, Spot) else item
    return isinstance(row, FleetRow) and (row.node == place.node if place.node else row.key == place.key)


# The map


def _rows(seen: Seen) -> list[FleetRow]:
    if seen.picked is None:
        return list(seen.rows)
    return [row for row in seen.rows if row.key in seen.picked and TRUE in seen.picked[row.key].mask]


def row_name(row: FleetRow) -> str:
    """What a row is called."""
    return row.node or f"pool {row.pool}"


def row_names(rows: Iterable[FleetRow]) -> dict[str, str]:
    """What rows are called by key, with what tells those apart that would be called the same: driver, and pool."""
    alike: dict[str, list[FleetRow]] = {}
    for row in rows:
        alike.setdefault(row_name(row), []).append(row)
    return {
        row.key: " ".join((name, *_distinction(row, several))) for name, several in alike.items() for row in several
    }


def _distinction(row: FleetRow, several: Sequence[FleetRow]) -> Iterator[str]:
    if len({one.driver for one in several}) > 1:
        firsts = {one.driver: one.driver.partition(".")[0] for one in several}
        yield firsts[row.driver] if len(set(firsts.values())) == len(firsts) else row.driver
    if sum(one.driver == row.driver for one in several) > 1:
        yield row.pool


def _row_cells(row: FleetRow, _seen: Seen) -> tuple[str, ...]:
    counts = {word: sum(shown_as(letter) == word for letter in row.states) for word in SYMBOLS}
    told = ", ".join(f"{number} {word}" for word, number in counts.items() if number)
    return (row_name(row), row.driver, row.pool, told)


def squares(row: FleetRow, seen: Seen, most: int) -> screen.Line:
    """A symbol for each device, at most so many."""
    spans: list[screen.Span] = []
    number = len(row.states) if len(row.states) <= most else most - 1
    for position in range(number):
        word = shown_as(row.states[position])
        picked = is_picked(seen, row, position)
        style, symbol = (word, SYMBOLS[word]) if picked else (screen.PLAIN, " ")
        if spans and spans[-1].style == style:
            spans[-1] = screen.Span(spans[-1].text + symbol, style)
        else:
            spans.append(screen.Span(symbol, style))
    if number < len(row.states):
        spans.append(screen.Span("+", screen.DIM))
    return (*spans, screen.Span(" " * (most - min(most, len(row.states)))))


# Devices


def _spots(seen: Seen) -> list[Spot]:
    return [
        Spot(row, position)
        for row in seen.rows
        for position in range(len(row.states))
        if seen.picked is None or is_picked(seen, row, position)
    ]


def _spot_cells(spot: Spot, seen: Seen) -> tuple[str, ...]:
    states = seen.details(spot.row.key)
    state = next((one for one in states if one.device.id.device == spot.name), None)
    words = [word for word in words_of(spot.letter) if not (word == "free" and "held" in words_of(spot.letter))]
    holders = ", ".join(state.holders) if state is not None else ""
    taints = ", ".join(taint_text(one.taint) for one in state.device.taints) if state is not None else ""
    where = spot.row.node or (tell_reach(state.device.access) if state is not None else NOTHING)
    name = spot.name if spot.row.pool == where else f"{spot.row.pool}/{spot.name}"
    return (where, name, ", ".join(words), holders or NOTHING, taints or NOTHING)


# Pods that wait, and what leaves


def _pending(seen: Seen) -> list[PodRow]:
    return [pod for pod in seen.pods if pod.state in ("pending", "gated")]


def age(since: str | None, now: str) -> str:
    """`14 min`."""
    if not since or not now:
        return NOTHING
    return span(max(_moment(now) - _moment(since), _moment(now) - _moment(now)))


def _moment(text: str) -> datetime:
    return Time.parse(text).datetime()


def _pod_cells(pod: PodRow, seen: Seen) -> tuple[str, ...]:
    why = pod.message or ("its scheduling gates are closed" if pod.state == "gated" else "not tried yet")
    return (pod.name, age(pod.since, seen.now), str(pod.priority), why)


Leaving: TypeAlias = RuleRow | NodeRow | PodRow


def _evictions(seen: Seen) -> list[Leaving]:
    """What is held first: it waits for people."""
    causes: list[RuleRow | NodeRow] = [*seen.rules, *seen.emptied]
    return [*sorted(causes, key=lambda one: not one.held), *(pod for pod in seen.pods if pod.state == "leaving")]


def _eviction_cells(item: Leaving, seen: Seen) -> tuple[str, ...]:
    if isinstance(item, PodRow):
        return (item.name, f"pod on {item.node}", NOTHING, NOTHING, "is leaving")
    if isinstance(item, NodeRow):
        progress = (
            f"HELD: {item.held}" if item.held else f"{count(item.pods, 'pod')} to leave. {item.progress}".rstrip(". ")
        )
        return (item.name, ", ".join(item.taints), "node", NOTHING, progress)
    progress = f"HELD: {item.held}" if item.held else item.progress or NOTHING
    return (item.name, item.taint, str(item.devices), age(item.since, seen.now), progress)


def eviction_key(item: Leaving) -> str:
    """What an item of the page of evictions is called."""
    kind = "pod" if isinstance(item, PodRow) else "node" if isinstance(item, NodeRow) else "rule"
    return f"{kind} {item.name}"


PAGES: Final = (
    Page(
        name="fleet",
        title="Fleet",
        header=(),
        items=_rows,
        cells=_row_cells,
        key=lambda row: row.key,
        sorts=(
            ("name", lambda row: natural(row_name(row))),
            ("free", lambda row: sum(shown_as(one) == "free" for one in row.states)),
            ("worst", lambda row: min((ORDER[shown_as(one)] for one in row.states), default=9)),
        ),
        empty="No devices are published.",
        hints="Enter devices",
    ),
    Page(
        name="devices",
        title="Devices",
        header=("NODE", "DEVICE", "STATE", "HELD BY", "TAINTS"),
        items=_spots,
        cells=_spot_cells,
        key=lambda spot: f"{spot.row.key}/{spot.name}",
        sorts=(
            ("place", lambda spot: (natural(row_name(spot.row)), spot.position)),
            ("state", lambda spot: ORDER[shown_as(spot.letter)]),
            ("name", lambda spot: natural(spot.name)),
        ),
        empty="No device.",
        hints="Enter details",
    ),
    Page(
        name="pending",
        title="Pending",
        header=("POD", "WAITS", "PRIORITY", "WHY"),
        items=_pending,
        cells=_pod_cells,
        key=lambda pod: pod.name,
        sorts=(
            ("longest", None),
            ("name", lambda pod: natural(pod.name)),
            ("priority", lambda pod: -pod.priority),
        ),
        empty="No pod waits for a node.",
        hints="Enter explain",
    ),
    Page(
        name="evictions",
        title="Evictions",
        header=("NAME", "TAINT", "DEVICES", "SINCE", "PROGRESS"),
        items=_evictions,
        cells=_eviction_cells,
        key=eviction_key,
        sorts=(("progress", None), ("name", lambda item: natural(item.name))),
        empty="Nothing is out of service, and nobody leaves.",
        hints="Enter all of it  c confirm  x stop  u put back",
    ),
)


def heading(page: Page, rows: Sequence[Sequence[str]], width: int) -> tuple[list[int], str]:
    """How wide the columns of a table are, and its header."""
    sizes = screen.columns([page.header, *rows], width)
    return sizes, "  ".join(screen.pad(one, size) for one, size in zip(page.header, sizes, strict=True))
