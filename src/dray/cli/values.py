"""Values of options that are what they should be already: taken as they are, without the machinery for all the others.

Typer converts with pydantic, which takes longer to import than most commands take to answer. What is refused, or not
understood here, goes to typer, which has the words for it.
"""

from __future__ import annotations

import os
from enum import Enum
from functools import partialmethod
from pathlib import Path
from typing import Any, Final, NamedTuple, get_args, get_origin

from typer import core

_NO: Final = object()
"""Not understood here; None is a value."""


class _Plain(NamedTuple):
    """How a parameter is converted. Parameters are `Any`: typer has no public types for them."""

    parameter: Any
    otherwise: Any
    """Typer's own way, made when it is needed."""

    def coerce(self, value: Any, param: Any, ctx: Any) -> Any:
        """The value for the command. Raises what typer raises for what is refused."""
        found = _convert(value, self.parameter)
        return self.otherwise(self.parameter).coerce(value, param=param, ctx=ctx) if found is _NO else found


def read_plainly() -> None:
    """Lets all parameters of all commands be read here first. Does nothing with a typer that does not need it."""
    for kind in (core.TyperOption, core.TyperArgument):
        otherwise = getattr(kind, "get_runtime_param", None)
        if otherwise is not None:
            setattr(kind, "get_runtime_param", partialmethod(_Plain, otherwise))  # noqa: B010 - mypy knows no such attribute


def _convert(value: Any, parameter: Any) -> Any:
    described = parameter.type_descriptor
    if described.parameter_info.parser is not None:
        return _NO
    is_many = parameter.multiple or parameter.nargs == -1
    if value is None:
        return () if is_many else None
    if not is_many:
        return _convert_one(value, described.annotation, described.parameter_info)
    inner = get_args(described.annotation)
    if get_origin(described.annotation) is not list or not isinstance(value, list | tuple):
        return _NO
    found = [_convert_one(one, inner[0], described.parameter_info) for one in value]
    return _NO if any(one is _NO for one in found) else found


def _convert_one(value: Any, wanted: Any, info: Any) -> Any:
    if wanted is str and isinstance(value, str):
        return _NO if info.exists or info.resolve_path else value
    if isinstance(wanted, type) and issubclass(wanted, Enum):
        return next((one for one in wanted if one is value or one.value == value), _NO)
    if wanted is int and type(value) is int:
        return value if _is_within(value, info) else _NO
    if wanted is int and isinstance(value, str) and value.isascii() and value.isdigit():
        return int(value) if _is_within(int(value), info) else _NO
    if wanted is float and type(value) is float:
        return value if _is_within(value, info) else _NO
    if wanted is Path and isinstance(value, str | Path):
        return Path(value) if _is_any_path(value, info) else _NO
    return _NO


def _is_within(value: float, info: Any) -> bool:
    return not info.clamp and (info.min is None or value >= info.min) and (info.max is None or value <= info.max)


def _is_any_path(value: str | Path, info: Any) -> bool:
    """Whether nothing is asked of a path, or only that it can be read if it is there."""
    asked = info.exists or info.resolve_path or info.writable or info.allow_dash or info.path_type is not None
    anything = info.file_okay and info.dir_okay
    return anything and not asked and (not os.path.lexists(value) or os.access(value, os.R_OK))
