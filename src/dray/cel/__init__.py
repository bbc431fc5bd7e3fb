"""CEL for device selectors: expressions over one device that are true or false.

The folders and files are the pipeline: ``lexer`` → ``parser`` (with ``macros``) → ``checker`` → ``validators`` →
``planner``, whose ``steps`` define what an expression means and costs; ``estimate`` computes the worst-case cost
and ``codegen`` a Python function for the usual shapes. ``library`` has the functions that expressions can call,
``environment`` says which. ``selector`` ties it together.

Imports only ``dray.api``. No I/O, except that a named time zone is read from the system's database.
"""

from __future__ import annotations

from dray.cel.environment import Mode
from dray.cel.errors import CompileError, EvaluationError, Issue, SelectorError
from dray.cel.explain import Condition
from dray.cel.reads import Reads
from dray.cel.selector import Selector, compile
from dray.cel.view import DeviceView, device_view

__all__ = [
    "CompileError",
    "Condition",
    "DeviceView",
    "EvaluationError",
    "Issue",
    "Mode",
    "Reads",
    "Selector",
    "SelectorError",
    "compile",
    "device_view",
]
