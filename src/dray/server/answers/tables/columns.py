"""A column: its heading, whether it shows only with `-o wide`, and how to read its cell from an object."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Any

import msgspec

from dray.api.times import MicroTime, Time

Cell = str | int | float | None
NONE = "<none>"
UNKNOWN = "<unknown>"
UNSET = "<unset>"


class Column(msgspec.Struct, frozen=True):
    """One column of a table. `read` gets the object and the current time."""

    name: str
    read: Callable[[Any, Time], Cell]
    wide: bool = False
    type: str = "string"
    format: str = ""
    description: str = ""
    priority: int = 0
    """Another than `wide` says, where somebody else has decided it."""

    def definition(self) -> dict[str, Any]:
        """The column as a Table declares it."""
        return {
            "name": self.name,
            "type": self.type,
            "format": self.format,
            "description": self.description,
            "priority": self.priority or int(self.wide),
        }


def human_duration(seconds: float) -> str:
    """A duration as short as people want it: `45s`, `3m12s`, `5h`, `3d4h`, `2y10d`."""
    whole = int(seconds)
    if whole < 0:
        return "0s" if whole > -2 else "<invalid>"
    if whole < 120:
        return f"{whole}s"
    minutes, hours, days = whole // 60, whole // 3600, whole // 86400
    if minutes < 10:
        return f"{minutes}m{whole % 60}s" if whole % 60 else f"{minutes}m"
    if minutes < 180:
        return f"{minutes}m"
    if hours < 8:
        return f"{hours}h{minutes % 60}m" if minutes % 60 else f"{hours}h"
    if hours < 48:
        return f"{hours}h"
    if hours < 192:
        return f"{days}d{hours % 24}h" if hours % 24 else f"{days}d"
    if days < 730:
        return f"{days}d"
    years = days // 365
    rest = days % 365
    return f"{years}y{rest}d" if years < 8 and rest else f"{years}y"


def since(moment: Time | MicroTime | datetime | None, now: Time) -> str:
    """How long ago something was."""
    if moment is None:
        return UNKNOWN
    then = moment if isinstance(moment, datetime) else moment.datetime()
    return human_duration((now.datetime() - then).total_seconds())


def _name(obj: Any, _now: Time) -> Cell:
    return str(obj.metadata.name)


def _age(obj: Any, now: Time) -> Cell:
    return since(obj.metadata.creation_timestamp, now)


NAME = Column("Name", _name, format="name", description="The object's name, unique among its kind and namespace.")
AGE = Column("Age", _age, description="The time since the object was created.")


def text(name: str, read: Callable[[Any], Cell | None], *, wide: bool = False, description: str = "") -> Column:
    """A column that does not depend on the time; what is missing is empty."""
    return Column(name, lambda obj, _now: _shown(read(obj)), wide=wide, description=description)


def _shown(value: Cell | None) -> Cell:
    return "" if value is None else value


def pairs(mapping: dict[str, str]) -> str:
    """Labels as text."""
    return ",".join(f"{key}={value}" for key, value in sorted(mapping.items())) or NONE
