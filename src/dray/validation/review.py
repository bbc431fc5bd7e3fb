"""What a server would accept but remark on: fields that it does not know, and what its warnings say."""

from __future__ import annotations

from typing import Any, Final

from dray.api import codec, registry
from dray.api.field import FieldError
from dray.api.times import Time
from dray.validation import conversion, stages

UNKNOWN_FIELD: Final = "UnknownField"
WARNING: Final = "Warning"

# Defaults that depend on the time do not matter here.
_ANY_TIME: Final = Time("2000-01-01T00:00:00Z")


def review(obj: Any) -> list[FieldError]:
    """Remarks on a plain object; [] also for what `validate` finds cannot be read at all."""
    if not isinstance(obj, dict):
        return []
    try:
        kind = registry.by_kind(str(obj.get("apiVersion", "")), str(obj.get("kind", "")))
    except registry.UnknownKind:
        return []
    reading = codec.read(obj, kind.type_of(registry.split_api_version(obj["apiVersion"])[1]))
    remarks = [FieldError(UNKNOWN_FIELD, path, f'unknown field "{path}"') for path in reading.unknown]
    if reading.obj is not None:
        hub = stages.default_object(conversion.to_hub(reading.obj, kind.storage.api_version), _ANY_TIME)
        remarks += [FieldError(WARNING, "", text) for text in stages.warnings(hub)]
    return remarks
