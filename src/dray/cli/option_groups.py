"""Options that belong together: a command takes them as one value, and its help shows them one by one."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterator
from typing import Any, get_type_hints

import msgspec
import typer


class OptionGroup(msgspec.Struct, frozen=True):
    """Each field is an option or argument of every command with a parameter of this type, under the field's name."""


def spread(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function as typer wants to see it: with the options in place of each group of them."""
    hints = get_type_hints(function, include_extras=True)
    groups = {name: hint for name, hint in hints.items() if inspect.isclass(hint) and issubclass(hint, OptionGroup)}
    if not groups:
        return function

    @functools.wraps(function)
    def run(**given: Any) -> Any:
        made = {name: group(**{one: given.pop(one) for one in _fields(group)}) for name, group in groups.items()}
        return function(**given, **made)

    parameters = list(_parameters(function, hints, groups))
    run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]  # what typer looks at
    run.__annotations__ = {one.name: one.annotation for one in parameters}
    return run


def spread_all(commands: typer.Typer) -> None:
    """The same for all commands of a Typer."""
    for command in commands.registered_commands:
        if command.callback is not None:
            command.callback = spread(command.callback)


def _parameters(
    function: Callable[..., Any], hints: dict[str, Any], groups: dict[str, type[OptionGroup]]
) -> Iterator[inspect.Parameter]:
    for name, one in inspect.signature(function).parameters.items():
        if name not in groups:
            yield one.replace(kind=one.KEYWORD_ONLY, annotation=hints[name])
            continue
        types = get_type_hints(groups[name], include_extras=True)
        for field, default in _fields(groups[name]).items():
            yield inspect.Parameter(field, one.KEYWORD_ONLY, default=default, annotation=types[field])


def _fields(group: type[OptionGroup]) -> dict[str, Any]:
    """The options of a group, its own before those of what it is made from, with what they are if not given."""
    defaults = {
        field.name: inspect.Parameter.empty if field.default is msgspec.NODEFAULT else field.default
        for field in msgspec.structs.fields(group)
    }
    return {name: defaults[name] for one in group.__mro__ for name in inspect.get_annotations(one) if name in defaults}
