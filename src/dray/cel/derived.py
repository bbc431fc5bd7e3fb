"""Expressions that derive an attribute from a device, as API validation judges them. Nothing here evaluates them."""

from __future__ import annotations

from typing import Final

from dray.api.text_memory import remember_texts
from dray.cel import types
from dray.cel.errors import CompileError, Issue, TooComplex, WrongResult
from dray.cel.estimate import estimate_cost
from dray.cel.recursion import TOO_DEEP, with_room
from dray.cel.selector import understood
from dray.cel.values import COST_LIMIT

_COMPARABLE: Final = (types.BOOL, types.INT, types.STRING, types.SEMVER, types.DYN)
"""What constraints can compare, by itself or in a list."""


def derived_cost(expression: str) -> int:
    """The most that deriving the attribute can cost. Raises CompileError for an expression that is not allowed."""
    known = _cost(expression)
    if isinstance(known, CompileError):
        raise known.with_traceback(None)
    return known


@remember_texts(1024)
def _cost(expression: str) -> int | CompileError:
    try:
        return with_room(expression, _judge, expression)
    except CompileError as error:
        return error
    except RecursionError:
        return CompileError((Issue(TOO_DEEP, 1, 1),))


def _judge(expression: str) -> int:
    root = understood(expression).root
    result = root.type
    if result.kind is types.Kind.LIST:
        result = result.params[0]
    if result not in _COMPARABLE:
        wanted = "a string, an integer, a boolean, a semver or a list of them"
        raise WrongResult((Issue(f"must evaluate to {wanted}, not {root.type.text}", 1, 1),))
    cost = estimate_cost(root)
    if cost > COST_LIMIT:
        raise TooComplex((Issue(f"too complex: the estimated cost {cost} exceeds the limit {COST_LIMIT}", 1, 1),))
    return cost
