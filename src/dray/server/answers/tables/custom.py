"""The columns of custom resources, as their definitions ask for them."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import msgspec

from dray.api import codec
from dray.api.custom import CustomObject
from dray.api.generated.apiextensions import CustomResourceColumnDefinition
from dray.api.times import Time
from dray.custom.json_path import JsonPathError, compile_path
from dray.custom.kinds import CustomKind
from dray.server.answers.tables.columns import AGE, NAME, Cell, Column, since


def columns_of(kind: CustomKind) -> tuple[Column, ...]:
    """The name and what the definition adds to it; the age, if it adds nothing. Made once."""
    made: tuple[Column, ...] | None = kind.__dict__.get("columns")
    if made is None:
        own = tuple(column for one in kind.version.columns if (column := _column(one)) is not None)
        made = kind.__dict__["columns"] = (NAME, *own) if kind.version.columns else (NAME, AGE)
    return made


def _column(found: CustomResourceColumnDefinition) -> Column | None:
    try:
        path = compile_path(found.json_path)
    except JsonPathError:
        return None  # Kubernetes leaves the column out, too

    reads_metadata = found.json_path.startswith(".metadata")

    def read(obj: CustomObject, now: Time) -> Cell:
        document = {"metadata": codec.to_builtins(obj.metadata)} if reads_metadata else obj.content
        values = path(document)
        return _cell(values[0], found.type, now) if values else None

    text = found.description or f"Custom resource definition column (in JSONPath format): {found.json_path}"
    return Column(found.name, read, priority=found.priority, type=found.type, format=found.format, description=text)


def _cell(value: Any, kind: str, now: Time) -> Cell:
    """A value as a column of a type shows it; nothing where it is of another type."""
    match kind:
        case "integer" if isinstance(value, int | float) and not isinstance(value, bool):
            return int(value)
        case "number" if isinstance(value, int | float) and not isinstance(value, bool):
            return value
        case "boolean" if isinstance(value, bool):
            return value
        case "string":
            return value if isinstance(value, str) else _written(value)
        case "date":
            return _since(value, now)
    return None


def _written(value: Any) -> str | None:
    return None if value is None else msgspec.json.encode(value).decode()


def _since(value: Any, now: Time) -> str:
    try:
        return since(datetime.fromisoformat(value), now)
    except (TypeError, ValueError):
        return "<invalid>"
