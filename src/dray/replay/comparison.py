"""What was recorded, what dray makes of the same history, and what it makes of it with changes, side by side."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final

import msgspec

from dray.process.clock import as_time
from dray.replay.history import History
from dray.replay.measures import Measures, Waits
from dray.replay.run import Replayed

MOST_SHOWN: Final = 10
NOTHING: Final = "–"


class Comparison(msgspec.Struct, frozen=True, kw_only=True):
    """The columns, in order; `changed` is None if nothing was to be different."""

    history: History
    recorded: Measures
    replayed: Replayed
    changed: Replayed | None = None

    def to_dict(self) -> dict[str, Any]:
        """As a document."""
        history = self.history
        found: dict[str, Any] = {
            "start": str(as_time(history.start)),
            "seconds": round(history.end - history.start, 3),
            "notes": list(history.problems),
            "recorded": msgspec.to_builtins(self.recorded),
            "replayed": _document(self.replayed),
        }
        if self.changed is not None:
            found["changed"] = _document(self.changed)
        return found

    def rows(self) -> list[tuple[str, ...]]:
        """The table: what, and a cell for each column."""
        columns = [self.recorded, self.replayed.measures]
        if self.changed is not None:
            columns.append(self.changed.measures)
        return [(name, *(cell(one) for one in columns)) for name, cell in _ROWS]

    def notes(self) -> Iterator[str]:
        """What to know besides, a line each."""
        yield from self.history.problems
        last = self.changed or self.replayed
        for name, count in last.nodes_added.items():
            yield f"{count} nodes of group {name} were added"
        for one in last.measures.never_ran[:MOST_SHOWN]:
            yield f"never ran: {one.pod}{f': {one.why}' if one.why else ''}"
        if last.measures.never_ran_count > MOST_SHOWN:
            yield f"never ran: {last.measures.never_ran_count - MOST_SHOWN} more"
        if last.refused:
            yield f"{last.refused} recorded changes could not be replayed, such as {last.problems[0]}"


def compare(history: History, recorded: Measures, replayed: Replayed, changed: Replayed | None = None) -> Comparison:
    """The columns as one answer."""
    return Comparison(history=history, recorded=recorded, replayed=replayed, changed=changed)


def _document(found: Replayed) -> dict[str, Any]:
    return {
        **msgspec.to_builtins(found.measures),
        "nodesAdded": found.nodes_added,
        "refused": found.refused,
        "problems": list(found.problems),
    }


def _seconds(value: float | None) -> str:
    if value is None:
        return NOTHING
    if value >= 5400:
        return f"{value / 3600:.1f} h"
    return f"{value / 60:.1f} min" if value >= 90 else f"{value:.1f} s"


def _share(value: float | None) -> str:
    return NOTHING if value is None else f"{value:.1%}"


def _wait(pick: Callable[[Measures], Waits], which: str) -> Callable[[Measures], str]:
    return lambda one: _seconds(getattr(pick(one), which))


def _waits_of(one: Measures) -> Waits:
    return one.waits


def _device_waits_of(one: Measures) -> Waits:
    return one.device_waits


_ROWS: Final[tuple[tuple[str, Callable[[Measures], str]], ...]] = (
    ("pods that wanted a node", lambda one: str(one.pods)),
    ("got one", lambda one: str(one.placed)),
    ("never ran", lambda one: str(one.never_ran_count)),
    ("wait, median", _wait(_waits_of, "p50")),
    ("wait, 95 of 100", _wait(_waits_of, "p95")),
    ("wait, longest", _wait(_waits_of, "max")),
    ("with devices: median", _wait(_device_waits_of, "p50")),
    ("with devices: 95 of 100", _wait(_device_waits_of, "p95")),
    ("with devices: longest", _wait(_device_waits_of, "max")),
    ("devices in use", lambda one: _share(one.utilisation)),
    ("free devices in fragments", lambda one: _share(one.fragmentation)),
    ("evictions", lambda one: str(one.evictions)),
    ("nodes at the end", lambda one: str(one.nodes)),
)
