"""The columns of custom resources, as their definitions ask for them."""

from __future__ import annotations

import json
from decimal import Decimal
from itertools import takewhile
from typing import Any

from dray.api import codec
from dray.api.custom import CustomObject
from dray.api.generated.apiextensions import CustomResourceColumnDefinition
from dray.api.times import Time
from dray.custom.json_path import JsonPathError, compile_path
from dray.custom.kinds import CustomKind
from dray.server.answers.tables.columns import AGE, NAME, UNKNOWN, Cell, Column, since

NO_VALUE = "<no value>"
INVALID = "<invalid>"
_CONTENT = (".spec.", ".status.")
_ESCAPED = str.maketrans({"<": "\\u003c", ">": "\\u003e", "&": "\\u0026"})


def columns_of(kind: CustomKind) -> tuple[Column, ...]:
    """The name and what the definition adds to it; the age, if it adds nothing. Made once.

    As in Kubernetes, a path that cannot be read ends the columns.
    """
    made: tuple[Column, ...] | None = kind.__dict__.get("columns")
    if made is None:
        own = takewhile(lambda column: column is not None, map(column_of, kind.version.columns))
        made = kind.__dict__["columns"] = (NAME, *filter(None, own)) if kind.version.columns else (NAME, AGE)
    return made


def column_of(found: CustomResourceColumnDefinition) -> Column | None:
    """A column; None if its path cannot be read."""
    try:
        path = compile_path(found.json_path)
    except JsonPathError:
        return None

    reads_content = found.json_path.startswith(_CONTENT)

    def read(obj: CustomObject, now: Time) -> Cell:
        whole = obj.content if reads_content else {**obj.document(), "metadata": codec.to_builtins(obj.metadata)}
        values = path(whole)
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
            return _text(value)
        case "date" if isinstance(value, str):
            return _since(value, now)
    return None


def _text(value: Any) -> str:
    """Lists and maps as JSON, everything else as Go prints it."""
    match value:
        case str():
            return value
        case None:
            return NO_VALUE
        case bool() | int():
            return str(value).lower()
        case float():
            return _go_float(value)
    written = json.dumps(value, ensure_ascii=False, separators=(",", ":"), sort_keys=True)
    return written.translate(_ESCAPED)


def _go_float(value: float) -> str:
    """The shortest digits that mean the number, with an exponent below 0.0001 and from a million on."""
    number = Decimal(repr(value)).normalize()
    exponent = number.adjusted()
    if -5 < exponent < 6:
        return f"{number:f}"
    return f"{number.scaleb(-exponent):f}e{exponent:+03}"


def _since(value: str, now: Time) -> str:
    if value in ("", "null"):
        return UNKNOWN
    try:
        return since(Time.parse(value), now)
    except ValueError:
        return INVALID
