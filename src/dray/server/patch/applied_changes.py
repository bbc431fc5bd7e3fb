"""What a mutating policy applies: like server-side apply, but nobody owns what it sets, and nothing is taken away."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from dray.api import schema
from dray.server.patch import check, shape
from dray.server.patch.errors import PatchError, bounded_depth
from dray.server.patch.inline import InlineDefinition
from dray.server.patch.merge import merge
from dray.server.patch.shape import Atomic, ElementError, Elements, Object, Sequence, Shape


def merge_applied(
    document: dict[str, Any], applied: dict[str, Any], definition: schema.Definition | InlineDefinition
) -> Any:
    """The document with what is applied put in.

    Raises PatchError if that does not fit the schema, or would replace a list, map or struct that has no parts.
    """
    kind = shape.of(definition)
    with bounded_depth():
        problems = list(check.problems(kind, applied))
        if problems:
            raise PatchError(422, f"failed to convert patch object to typed object: {'; '.join(problems)}")
        whole = list(_atomics(kind, applied, ""))
        if whole:
            names = ", ".join(whole)
            raise PatchError(422, f"invalid ApplyConfiguration: may not mutate atomic arrays, maps or structs: {names}")
        try:
            return merge(kind, document, applied)
        except ElementError as error:
            raise PatchError(422, f"failed to merge patch: {error}") from None


def _atomics(of: Shape, value: Any, path: str) -> Iterator[str]:
    """Paths of what would be replaced as a whole: who sets one field of it would lose all others."""
    if isinstance(of, Atomic):
        if isinstance(value, dict | list):
            yield path
    elif isinstance(of, Object) and isinstance(value, dict):
        for name, part in value.items():
            yield from _atomics(of.field(name)[1], part, f"{path}.{name}")
    elif isinstance(of, Elements | Sequence) and isinstance(value, list):
        for index, part in enumerate(value):
            yield from _atomics(of.item, part, f"{path}[{index}]")
