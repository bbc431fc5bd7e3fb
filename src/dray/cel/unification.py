"""Whether one static type can stand for another, and what that says about free type variables.

``Substitution`` maps variable names to what is known about them. The functions here extend a substitution in
place; a caller that may have to give up works on a copy.
"""

from __future__ import annotations

from typing import TypeAlias

from dray.cel import types
from dray.cel.types import Kind, Type

__all__ = ["Substitution", "assign", "assign_all", "most_general", "substitute"]

Substitution: TypeAlias = dict[str, Type]

_NULLABLE = (Kind.OPAQUE, Kind.STRUCT, Kind.DURATION, Kind.TIMESTAMP)
_STRUCTURED = (Kind.LIST, Kind.MAP, Kind.OPAQUE)


def assign(known: Substitution, left: Type, right: Type) -> bool:
    """Whether the types agree, given and extending what is known of their variables."""
    if right.kind is Kind.PARAMETER:
        agrees, was_bound = _bind(known, left, right)
        if agrees or was_bound:
            return agrees
    if left.kind is Kind.PARAMETER:
        return _bind(known, right, left)[0]
    if left.kind in (Kind.DYN, Kind.ERROR) or right.kind in (Kind.DYN, Kind.ERROR):
        return True
    if left.kind is Kind.NULL or right.kind is Kind.NULL:
        other = right if left.kind is Kind.NULL else left
        return other.kind is Kind.NULL or other.kind in _NULLABLE
    if left.kind is not right.kind:
        return False
    if left.kind in _STRUCTURED:
        return left.name == right.name and assign_all(known, left.params, right.params)
    return left.kind is Kind.TYPE or left.text == right.text


def assign_all(known: Substitution, left: tuple[Type, ...], right: tuple[Type, ...]) -> bool:
    """``assign`` pairwise; types of different number never agree."""
    if len(left) != len(right):
        return False
    return all(assign(known, mine, theirs) for mine, theirs in zip(left, right, strict=True))


def most_general(left: Type, right: Type) -> Type:
    """Whichever of two agreeing types says less."""
    return left if _says_no_more(left, right) else right


def substitute(known: Substitution, of: Type, *, free_to_dyn: bool = False) -> Type:
    """The type with its bound variables replaced, and with ``free_to_dyn`` the free ones by ``dyn``."""
    if not of.has_parameters:
        return of
    if of.kind is Kind.PARAMETER:
        bound = known.get(of.name)
        if bound is not None:
            return substitute(known, bound, free_to_dyn=free_to_dyn)
        return types.DYN if free_to_dyn else of
    params = tuple(substitute(known, param, free_to_dyn=free_to_dyn) for param in of.params)
    return Type(of.kind, of.name, params)


def _bind(known: Substitution, value: Type, variable: Type) -> tuple[bool, bool]:
    """Let the variable stand for the value: whether that agrees, and whether it was bound before."""
    if value == variable:
        return True, True
    bound = known.get(variable.name)
    if bound is None:
        if not _mentions(known, value, variable):
            known[variable.name] = value
            return True, False
        return False, False
    if value == bound:
        return True, True
    if not assign(known, value, bound):
        return False, True
    general = most_general(value, bound)
    if not _mentions(known, general, variable):
        known[variable.name] = general
    return True, True


def _mentions(known: Substitution, within: Type, variable: Type) -> bool:
    """Whether the variable occurs in the type, so that binding it would never end."""
    if within == variable:
        return True
    if within.kind is Kind.PARAMETER:
        bound = known.get(within.name)
        return bound is not None and _mentions(known, bound, variable)
    return within.has_parameters and any(_mentions(known, param, variable) for param in within.params)


def _says_no_more(left: Type, right: Type) -> bool:
    if left.is_dyn or left.kind is Kind.PARAMETER:
        return True
    if right.is_dyn or right.kind is Kind.PARAMETER or left.kind is not right.kind:
        return False
    if left.kind in _STRUCTURED:
        return (
            left.name == right.name
            and len(left.params) == len(right.params)
            and all(_says_no_more(mine, theirs) for mine, theirs in zip(left.params, right.params, strict=True))
        )
    return left.kind is Kind.TYPE or left == right
