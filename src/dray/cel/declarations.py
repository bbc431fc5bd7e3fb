"""How a library declares its functions.

A function has overloads: signatures that the checker chooses from. Either each overload has its own
implementation, which is guarded by the types of its parameters at run time, or the function has one
implementation for all, which looks at the values itself.

How the arguments are evaluated is part of a declaration, because it shows in the costs of a failing call: an
*eager* implementation evaluates all arguments and then gives up on the first error among them, a *lazy* one
stops at the first error.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

from dray.cel.types import Kind, Type
from dray.cel.values import (
    NO_SUCH_OVERLOAD,
    MapValue,
    is_list,
    list_size,
    type_name,
)

__all__ = ["Function", "Implementation", "Overload", "accepts", "function", "member", "overload"]

Implementation: TypeAlias = Callable[..., Any]
"""Takes and returns values; a CelError is a failure."""


@dataclass(frozen=True, slots=True)
class Overload:
    """One signature. For a member function the first parameter is the receiver."""

    id: str
    params: tuple[Type, ...]
    result: Type
    implementation: Implementation | None = None
    is_member: bool = False
    is_lazy: bool = False

    def accepts(self, args: tuple[Any, ...]) -> bool:
        """Whether the values fit the parameters."""
        return len(args) == len(self.params) and all(map(accepts, self.params, args))


@dataclass(frozen=True, slots=True)
class Function:
    """A named function. ``implementation`` is the one for all overloads, if there is one."""

    name: str
    overloads: tuple[Overload, ...]
    implementation: Implementation | None = None
    is_guarded: bool = True
    accepts_errors: bool = False

    def merged(self, other: Function) -> Function:
        """Both functions' overloads under the one name."""
        return Function(
            self.name,
            self.overloads + other.overloads,
            self.implementation or other.implementation,
            self.is_guarded and other.is_guarded,
            self.accepts_errors,
        )

    def bind(self, overload_id: str) -> tuple[Implementation, bool]:
        """What to call, and whether its arguments are evaluated lazily.

        ``overload_id`` is empty if several signatures may apply; then the first that fits the values does.
        """
        if self.implementation is not None:
            return self.implementation, False
        bound = [candidate for candidate in self.overloads if candidate.implementation is not None]
        chosen = [candidate for candidate in bound if candidate.id == overload_id]
        if not chosen and len(bound) == 1:
            chosen = bound
        if not chosen:
            return _dispatch(bound), True
        return (_guarded(chosen[0]) if self.is_guarded else _bare(chosen[0])), chosen[0].is_lazy


def function(
    name: str,
    *overloads: Overload,
    implementation: Implementation | None = None,
    is_guarded: bool = True,
    accepts_errors: bool = False,
) -> Function:
    """Declare a function."""
    return Function(name, overloads, implementation, is_guarded, accepts_errors)


def overload(
    id: str,
    params: tuple[Type, ...],
    result: Type,
    implementation: Implementation | None = None,
    *,
    is_lazy: bool = False,
) -> Overload:
    """Declare a signature of a global function."""
    return Overload(id, params, result, implementation, is_lazy=is_lazy)


def member(
    id: str,
    params: tuple[Type, ...],
    result: Type,
    implementation: Implementation | None = None,
    *,
    is_lazy: bool = False,
) -> Overload:
    """Declare a signature of a function that is called on its first parameter."""
    return Overload(id, params, result, implementation, is_member=True, is_lazy=is_lazy)


def accepts(param: Type, value: Any) -> bool:
    """Whether a value is of a type; of lists and maps only the first element is looked at."""
    if param.kind in (Kind.DYN, Kind.PARAMETER):
        return True
    if param.name != type_name(value):
        return False
    if param.kind is Kind.LIST and is_list(value):
        return list_size(value) == 0 or accepts(param.params[0], value[0])
    if param.kind is Kind.MAP and isinstance(value, MapValue) and len(value):
        key = next(value.keys())
        return accepts(param.params[0], key) and accepts(param.params[1], value.find(key))
    return True


def _bare(chosen: Overload) -> Implementation:
    assert chosen.implementation is not None
    return chosen.implementation


def _guarded(chosen: Overload) -> Implementation:
    implementation = _bare(chosen)

    def call(*args: Any) -> Any:
        return implementation(*args) if chosen.accepts(args) else NO_SUCH_OVERLOAD

    return call


def _dispatch(candidates: list[Overload]) -> Implementation:
    def call(*args: Any) -> Any:
        for candidate in candidates:
            if candidate.implementation is not None and candidate.accepts(args):
                return candidate.implementation(*args)
        return NO_SUCH_OVERLOAD

    return call
