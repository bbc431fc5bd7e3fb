"""A recording run again, on dray's own scheduler and controllers, with other rules if one likes, and compared.

    Recording ─▶ history (what came from outside: nodes, devices, rules, work that arrives and ends)
                    ├▶ measures of what was recorded ─────────────────────────────────────┐
                    └▶ Player ─▶ ControlPlane (API server in memory, scheduler, evictions) ─▶ measures ─▶ Comparison
                                   virtual time: a day takes seconds, and is the same every time

Arrivals and changes come from the history, decisions from dray. `stage` shows the same to a browser, on a clock that
runs as fast as one likes. May import everything but `dray.cli` and `dray.testing`.
"""

from dray.replay.changes import ChangeError, Changes, load_changes
from dray.replay.comparison import Comparison, compare
from dray.replay.history import History, read_history
from dray.replay.run import Replayed, measure, replay

__all__ = [
    "ChangeError",
    "Changes",
    "Comparison",
    "History",
    "Replayed",
    "compare",
    "load_changes",
    "measure",
    "read_history",
    "replay",
]
