"""The formats of patches, by media type, and a patch as a value."""

from __future__ import annotations

from typing import Any

import msgspec

from dray.client.interface import PatchFormat

JSON_PATCH = PatchFormat.JSON.value
MERGE_PATCH = PatchFormat.MERGE.value
STRATEGIC_PATCH = PatchFormat.STRATEGIC.value
APPLY_PATCH = PatchFormat.APPLY.value
FORMATS = (JSON_PATCH, MERGE_PATCH, STRATEGIC_PATCH, APPLY_PATCH)


class Patch(msgspec.Struct, frozen=True):
    """What to change, as plain values in one of the FORMATS."""

    format: str
    value: Any
    has_large_numbers: bool = False
    """Whether there may be numbers in it that do not fit into their fields."""
