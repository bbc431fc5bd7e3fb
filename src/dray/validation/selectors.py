"""CEL selectors, and the derived attributes of claims.

An expression is compiled when it is new or changed; one that is stored already is not judged again, so that limits may
change without making stored objects invalid (4381-52).
"""

from __future__ import annotations

from dray.api.field import FieldError, forbidden, invalid, required
from dray.api.resource.device_class import EXPRESSION_BYTES, SELECTORS, DeviceSelector
from dray.api.text_memory import remember_texts
from dray.cel import CompileError, compile
from dray.cel.derived import derived_cost
from dray.cel.errors import TooComplex
from dray.validation import check
from dray.validation.context import Errors


def validate_selectors(
    errors: Errors, selectors: tuple[DeviceSelector, ...], path: str, *, stored: bool = False, declared: str = ""
) -> None:
    """At most 32 selectors, each with an expression that compiles and is cheap enough (4381-44, 4381-49..51).

    `declared` is the path for the rule about the number, where the request's version spells it differently.
    """
    if not check.fits(errors, declared or path, selectors, SELECTORS):
        return
    for index, selector in enumerate(selectors):
        if selector.cel is None:
            errors.append(required(f"{path}[{index}].cel"))
        elif not stored:
            validate_expression(errors, selector.cel.expression, f"{path}[{index}].cel.expression")


def validate_expression(errors: Errors, expression: str, path: str) -> None:
    """An expression over `device`: at most 10 KiB, well typed, with a result of true or false, and not too costly."""
    if _is_short_enough(errors, expression, path):
        problem, is_too_complex = _problem(expression)
        if problem:
            errors.append(_refused(path, expression, problem, is_too_complex=is_too_complex))


def validate_derived_expression(errors: Errors, expression: str, path: str) -> int:
    """An expression that derives an attribute from `device`; the most that it can cost, 0 if something is wrong."""
    if _is_short_enough(errors, expression, path):
        try:
            return derived_cost(expression)
        except CompileError as error:
            is_too_complex = isinstance(error, TooComplex)
            problem = error.message if is_too_complex else str(error)
            errors.append(_refused(path, expression, problem, is_too_complex=is_too_complex))
    return 0


def _is_short_enough(errors: Errors, expression: str, path: str) -> bool:
    before = len(errors)
    check.length(errors, path, expression, EXPRESSION_BYTES)
    return len(errors) == before


def _refused(path: str, expression: str, problem: str, *, is_too_complex: bool) -> FieldError:
    """Kubernetes forbids what costs too much; other expressions are invalid."""
    return forbidden(path, problem) if is_too_complex else invalid(path, expression, problem)


@remember_texts(1024)
def _problem(expression: str) -> tuple[str, bool]:
    """What is wrong with a new expression, and whether that is its cost; empty if nothing is."""
    try:
        compile(expression, mode="new")
    except TooComplex as error:
        return error.message, True
    except CompileError as error:
        return str(error), False
    return "", False
