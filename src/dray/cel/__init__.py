"""CEL: device selectors, which are true or false of a device, and programs over any other variables.

The folders and files are the pipeline: ``lexer`` → ``parser`` (with ``macros``) → ``checker`` → ``validators`` →
``planner``, whose ``steps`` define what an expression means and costs; ``estimate`` computes the worst-case cost
and ``codegen`` a Python function for the usual shapes. ``library`` has the functions that expressions can call,
``environment`` says which. ``selector`` ties it together for devices, ``program`` for everything else.

Imports only ``dray.api``. No I/O, except that a named time zone is read from the system's database.
"""

from __future__ import annotations

from dray.cel.backlog import Backlog, Task
from dray.cel.environment import Environment, Mode
from dray.cel.errors import CompileError, EvaluationError, Issue, OutOfTime, Postponed, SelectorError
from dray.cel.explain import Condition
from dray.cel.program import NOW, UNHURRIED, Budget, Program, compile_program
from dray.cel.reads import Reads
from dray.cel.selector import Selector, compile
from dray.cel.view import DeviceView, device_view

__all__ = [
    "NOW",
    "UNHURRIED",
    "Backlog",
    "Budget",
    "CompileError",
    "Condition",
    "DeviceView",
    "Environment",
    "EvaluationError",
    "Issue",
    "Mode",
    "OutOfTime",
    "Postponed",
    "Program",
    "Reads",
    "Selector",
    "SelectorError",
    "Task",
    "compile",
    "compile_program",
    "device_view",
]
