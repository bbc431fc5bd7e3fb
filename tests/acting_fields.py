"""The list of fields that are known to act, by the type that has them."""

from __future__ import annotations

from pathlib import Path

_LIST = Path(__file__).parent / "fixtures" / "acting_fields.txt"
ACTING = {
    name: set(fields.split()) for name, _, fields in (line.partition(":") for line in _LIST.read_text().splitlines())
}
