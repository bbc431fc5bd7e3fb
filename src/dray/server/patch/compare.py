"""What differs between two versions of an object, as sets of fields."""

from __future__ import annotations

from typing import Any, NamedTuple

from dray.server.patch import fields
from dray.server.patch.fields import LEAF, FieldSet
from dray.server.patch.shape import Elements, Object, Shape


class Changes(NamedTuple):
    """The fields that are gone, that have another value, and that are new."""

    removed: FieldSet
    modified: FieldSet
    added: FieldSet

    @property
    def written(self) -> FieldSet:
        """The fields that have a value which they did not have before."""
        return fields.union(self.modified, self.added)

    def without(self, roots: FieldSet) -> Changes:
        """The changes outside of the subtrees of `roots`."""
        return Changes(*(fields.without_subtrees(change, roots) for change in self)) if roots else self


def compare(shape: Shape, old: Any, new: Any) -> Changes:
    """The changes between two values of a shape, both of which are there. Raises ElementError."""
    changes = Changes({}, {}, {})
    if isinstance(shape, Object):
        _compare_objects(shape, old or {}, new or {}, changes)
    elif isinstance(shape, Elements):
        _compare_elements(shape, old or [], new or [], changes)
    return changes


def _compare_objects(shape: Object, old: dict[str, Any], new: dict[str, Any], changes: Changes) -> None:
    for name, before in old.items():
        if name not in new:
            step, part = shape.field(name)
            changes.removed[step] = part.all_fields(before)
            continue
        after = new[name]
        if before is not after and before != after:
            step, part = shape.field(name)
            _compare_parts(step, part, before, after, changes)
    for name, after in new.items():
        if name not in old:
            step, part = shape.field(name)
            changes.added[step] = part.all_fields(after)


def _compare_parts(step: str, shape: Shape, before: Any, after: Any, changes: Changes) -> None:
    """Adds to the changes what differs below a step, or the step itself if what it leads to has no parts."""
    if not _has_parts(shape, before, after):
        changes.modified[step] = LEAF
        return
    below = compare(shape, before, after)
    for change, part in zip(changes, below, strict=True):
        if part:
            change[step] = part


def _has_parts(shape: Shape, before: Any, after: Any) -> bool:
    """Whether two values differ in parts. Null is an object or a list without parts, as an empty one is."""
    kind = dict if isinstance(shape, Object) else list if isinstance(shape, Elements) else None
    return (
        kind is not None
        and bool(before or after)
        and isinstance(before, kind | None)
        and isinstance(after, kind | None)
    )


def _compare_elements(shape: Elements, old: list[Any], new: list[Any], changes: Changes) -> None:
    before, after = _by_step(shape, old), _by_step(shape, new)
    for step in before | after:
        was, now = before.get(step, []), after.get(step, [])
        if was == now:
            continue
        if len(was) == len(now) == 1:
            _compare_parts(step, shape.item, was[0], now[0], changes)
        elif len(was) > 1 and len(now) > 1:
            changes.modified[step] = LEAF
        else:
            # Elements that cannot be told apart are one value: it comes when a single one goes, and the reverse.
            if was:
                changes.removed[step] = shape.item.all_fields(was[0]) if len(was) == 1 else LEAF
            if now:
                changes.added[step] = shape.item.all_fields(now[0]) if len(now) == 1 else LEAF


def _by_step(shape: Elements, elements: list[Any]) -> dict[str, list[Any]]:
    found: dict[str, list[Any]] = {}
    for element in elements:
        found.setdefault(shape.step(element), []).append(element)
    return found
