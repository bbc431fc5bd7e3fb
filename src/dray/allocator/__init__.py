"""Which devices claims get, and why not others.

    Tracker ─→ PoolView ┐
    nodes               ├─→ Inventory ─→ allocate(inventory, classes, claims, node) ─→ Outcome
    allocated claims    ┘          └──→ explain(inventory, classes, claims) ─→ Explanation (see `reasons`)

Pure and synchronous: imports `dray.api`, `dray.cel` and `dray.tracker` only, does no I/O, reads no clock (one may be
given) and changes none of its inputs. Whoever calls stores the result and tells the inventory.
"""

from dray.allocator.allocate import allocate, find_fault
from dray.allocator.explain import explain
from dray.allocator.inventory import Inventory
from dray.allocator.reasons import Explanation
from dray.allocator.results import (
    Allocated,
    BudgetExceeded,
    Failed,
    Options,
    Outcome,
    Undecided,
    Unsatisfiable,
)

__all__ = [
    "Allocated",
    "BudgetExceeded",
    "Explanation",
    "Failed",
    "Inventory",
    "Options",
    "Outcome",
    "Undecided",
    "Unsatisfiable",
    "allocate",
    "explain",
    "find_fault",
]
