"""Keeping `managedFields` when an object is created, updated or patched: whoever changes a field owns it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from dray.api import schema
from dray.server.patch import entries, fields, reset, shape
from dray.server.patch.compare import Changes, compare
from dray.server.patch.entries import UPDATE, Entries, Entry, Owner
from dray.server.patch.errors import PatchError, bounded_depth
from dray.server.patch.fields import LEAF, FieldSet
from dray.server.patch.inline import InlineDefinition

# What the server sets, and what says which object it is: no matter of anybody's wishes.
_NOBODYS: FieldSet = {
    "f:apiVersion": LEAF,
    "f:kind": LEAF,
    "f:metadata": {
        ".": LEAF,
        "f:creationTimestamp": LEAF,
        "f:generation": LEAF,
        "f:managedFields": LEAF,
        "f:name": LEAF,
        "f:namespace": LEAF,
        "f:resourceVersion": LEAF,
        "f:selfLink": LEAF,
        "f:uid": LEAF,
    },
}


@dataclass(frozen=True, slots=True)
class Write:
    """Who writes what kind of object, through which endpoint, and when (RFC 3339)."""

    definition: schema.Definition | InlineDefinition
    manager: str
    now: str
    subresource: str = ""

    @property
    def gvk(self) -> schema.GroupVersionKind:
        """The kind in the version of the request."""
        return self.definition.kinds[0]

    @property
    def api_version(self) -> str:
        """Group and version as objects have them."""
        return f"{self.gvk.group}/{self.gvk.version}" if self.gvk.group else self.gvk.version

    @property
    def shape(self) -> shape.Object:
        """How objects of the kind merge."""
        return shape.of(self.definition)

    @property
    def reset(self) -> FieldSet:
        """What the endpoint does not write."""
        return reset.fields_of(self.definition, self.subresource)

    def owner(self, operation: str) -> Owner:
        """Whose entry the write belongs to."""
        return entries.owner_of(self.manager, operation, self.api_version, self.subresource)


def track_update(live: Mapping[str, Any] | None, new: Mapping[str, Any], write: Write) -> list[dict[str, Any]]:
    """The `managedFields` of an object that is written in any way but apply; `live` is None for a create.

    A write may set them itself: an empty list or one empty entry forgets everything. An object without any stays
    without until somebody applies. Entries that cannot be made sense of are those of the live object again.
    """
    known = starting_point(managed_fields(live), managed_fields(new), write.subresource)
    if not known and live is not None:
        return []
    before = shape.zero(write.definition) if live is None else live
    try:
        with bounded_depth():
            changes = compare(write.shape, before, new).without(write.reset)
    except shape.ElementError:
        return entries.write(known)
    return entries.write(entries.cap(record(known, changes, write, write.owner(UPDATE))))


def first_fields(new: Mapping[str, Any], definition: schema.Definition | InlineDefinition) -> FieldSet:
    """What whoever creates an object comes to own: all that it sets, as `track_update` has it for a create."""
    try:
        with bounded_depth():
            changes = compare(shape.of(definition), shape.zero(definition), new).without(
                reset.fields_of(definition, "")
            )
    except shape.ElementError:
        return {}
    own = stripped(changes.written)
    return fields.shared(own) if own else own


def record(known: Entries, changes: Changes, write: Write, owner: Owner) -> Entries:
    """The entries after an update by an owner: it gets what it wrote, everybody loses what is gone or not theirs."""
    written = changes.written
    kept = lose(known, written, changes.removed)
    own = stripped(written)
    if own:
        mine = kept.get(owner)
        merged = fields.union(own, mine.fields) if mine else own
        kept[owner] = Entry(fields.shared(merged), write.api_version, write.now)
    return kept


def lose(known: Entries, *lost: FieldSet, keeper: Owner | None = None) -> Entries:
    """The entries without some fields, and without those that have nothing left; `keeper` keeps what it has."""
    kept: Entries = {}
    for owner, entry in known.items():
        left = entry.fields
        if owner != keeper:
            for gone in lost:
                left = fields.difference(left, gone) if gone else left
        if left == entry.fields:
            kept[owner] = entry
        elif left:
            kept[owner] = entry._replace(fields=fields.shared(left))
    return kept


def stripped(found: FieldSet) -> FieldSet:
    """A set without what nobody owns."""
    return fields.difference(found, _NOBODYS)


def starting_point(stored: list[Any] | None, given: list[Any] | None, subresource: str) -> Entries:
    """The entries that a write starts from: those it brings, or else the live ones."""
    if not subresource and given is not None and given != stored:
        if given in ([], [{}]):
            return {}
        try:
            return entries.read(given)
        except PatchError:
            pass
    return entries.of_stored(stored or ())


def managed_fields(document: Mapping[str, Any] | None) -> list[Any] | None:
    """The entries that a document carries, as they are; None if it says nothing of them."""
    metadata = (document or {}).get("metadata")
    found = metadata.get("managedFields") if isinstance(metadata, dict) else None
    return found if isinstance(found, list) else None
