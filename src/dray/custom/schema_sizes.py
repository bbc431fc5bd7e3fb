"""How large the parts of an object can be, as its schema says: what estimates of the cost of rules start from.

Where a schema sets no bound, the largest request that Kubernetes takes does. Its numbers are followed, since they
decide which rules are accepted.
"""

from __future__ import annotations

from typing import Final

from dray.api.generated.apiextensions import JSONSchemaProps
from dray.cel.device_sizes import Path
from dray.cel.estimate import Sizes
from dray.cel.ranges import Range
from dray.custom.cel_values import escaped
from dray.custom.pruning import META_FIELDS

REQUEST_BYTES: Final = 3 * 1024 * 1024
_TIMES: Final = {"duration": 32, "date": 12, "date-time": 32}
_LEAST: Final = {"boolean": 4, "number": 1, "integer": 1, "string": 2, "array": 2}
_LEAST_TIMES: Final = {"duration": 3, "date": 12, "date-time": 21}
_TEXT: Final = JSONSchemaProps(type="string")
_METADATA: Final = JSONSchemaProps(type="object", properties={"name": _TEXT, "generateName": _TEXT})


def least_size(schema: JSONSchemaProps) -> int:
    """The fewest bytes that a value of a schema has as JSON."""
    if schema.x_kubernetes_int_or_string:
        return 1
    if schema.type == "object" and not isinstance(schema.additional_properties, JSONSchemaProps):
        needed = set(schema.required)
        return 2 + sum(
            len(name) + least_size(part) + 4
            for name, part in schema.properties.items()
            if name in needed and part.default is None
        )
    if schema.type == "string" and schema.format in _LEAST_TIMES:
        return _LEAST_TIMES[schema.format]
    return _LEAST.get(schema.type, 2)


def largest_size(schema: JSONSchemaProps) -> int:
    """The most elements that a value of a schema can have: letters, items or entries."""
    if schema.x_kubernetes_int_or_string or schema.type == "string":
        return _longest_text(schema)
    if schema.type == "array" and isinstance(schema.items, JSONSchemaProps):
        most = schema.max_items
        return max(0, most) if most is not None else (REQUEST_BYTES - 2) // (least_size(schema.items) + 1)
    others = schema.additional_properties
    if schema.type == "object" and isinstance(others, JSONSchemaProps):
        most = schema.max_properties
        return max(0, most) if most is not None else (REQUEST_BYTES - 2) // (least_size(others) + 6)
    return 0


def _longest_text(schema: JSONSchemaProps) -> int:
    if schema.format in _TIMES and not schema.x_kubernetes_int_or_string:
        return _TIMES[schema.format]
    if schema.max_length is not None:
        # Letters of up to four bytes, unless the format says that there are none.
        return max(0, schema.max_length) * (1 if schema.format == "byte" else 4)
    texts = [len(value) for value in schema.enum if isinstance(value, str)]
    return max(texts) if texts and not schema.x_kubernetes_int_or_string else REQUEST_BYTES - 2


def most_places(schema: JSONSchemaProps) -> int:
    """How often a value of a schema can be in one object, where nothing else bounds it."""
    return REQUEST_BYTES // (least_size(schema) + 1)


def sizes_in(schema: JSONSchemaProps, *, is_root: bool) -> Sizes:
    """The sizes of the parts of `self` and `oldSelf`.

    As in Kubernetes, whatever else has a name is as large as these, and what is no text, list or map has no size.
    """

    def size(path: Path) -> Range | None:
        if not path:
            return None
        part: JSONSchemaProps | None = schema
        at_root = is_root
        for step in path[1:]:
            if step == "@keys":
                return Range(0, 0)
            part = _part(part, step, at_root=at_root) if part is not None else None
            at_root = False
        return None if part is None else Range(0, largest_size(part))

    return size


def _part(schema: JSONSchemaProps, step: str, *, at_root: bool) -> JSONSchemaProps | None:
    if step == "@items":
        return schema.items if isinstance(schema.items, JSONSchemaProps) else None
    if step == "@values":
        others = schema.additional_properties
        return others if isinstance(others, JSONSchemaProps) else None
    if at_root and step in META_FIELDS:
        return _METADATA if step == "metadata" else _TEXT
    found = schema.properties.get(step)
    if found is None:
        found = next((part for name, part in schema.properties.items() if escaped(name) == step), None)
    return found
