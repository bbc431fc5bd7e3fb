"""What the store keeps and says: keys, records, events, and the operations that writers hand in. Pure data."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from enum import Enum
from sys import getrefcount
from typing import Any, Final, NamedTuple

import msgspec

from dray.store.packing import Packed, Packer

Finish = Callable[[int], tuple[Any, bytes]]
"""Makes the object and its bytes for the revision it is called with. Called at most once per attempt, on the
event loop, so that the object, the disk, the response and every watcher carry one revision, encoded once."""

Decode = Callable[[str, bytes], Any]
"""Turns `(resource, data)` back into the object; called on first use of a record loaded from disk."""


class Key(NamedTuple):
    """The place of a record; `namespace` is empty for cluster-scoped resources. Sorts in listing order."""

    resource: str
    namespace: str
    name: str

    def __str__(self) -> str:
        return f"{self.resource} {self.namespace}/{self.name}" if self.namespace else f"{self.resource} {self.name}"


class Record(msgspec.Struct, frozen=True, gc=False, eq=False):
    """One version of one object: immutable, shared by the store, its readers and all watchers.

    `gc=False` keeps tens of thousands of records out of the garbage collector's sight. It is sound because
    a record points only to immutable values (and to `decode`, which must not be owned by the store).
    """

    key: Key
    revision: int
    create_revision: int
    _data: bytes | Packed
    _obj: Any = None
    _decode: Decode | None = None

    @property
    def data(self) -> bytes:
        """The object's bytes."""
        data = self._data  # looked at once: a thread may read while the loop packs
        return data if type(data) is bytes else data.unpack()  # type: ignore[union-attr]  # there are two types

    @property
    def size(self) -> int:
        """How many bytes that are. Costs nothing, however they are kept."""
        data = self._data
        return len(data) if type(data) is bytes else data.size  # type: ignore[union-attr]  # there are two types

    @property
    def obj(self) -> Any:
        """The typed object; decoded on first use when the record came from disk, or was `lightened`."""
        obj = self._obj  # looked at once: a thread may read while the loop lightens
        if obj is None and self._decode is not None:
            obj = self._decode(self.key.resource, self.data)
            msgspec.structs.force_setattr(self, "_obj", obj)
        return obj

    @property
    def is_decoded(self) -> bool:
        """Whether the typed object is here."""
        return self._obj is not None

    def lighten(self, decode: Decode) -> None:
        """Of a version that was replaced the bytes are enough: hardly anybody asks for it again."""
        msgspec.structs.force_setattr(self, "_decode", decode)
        msgspec.structs.force_setattr(self, "_obj", None)

    def rest(self, packer: Packer, decode: Decode) -> bool:
        """Take little room, as nobody has written it for a while; whether the bytes had to be packed for that.

        A typed object that somebody else has, too, such as an informer, is kept: another one would take more.
        """
        obj = self._obj
        if obj is not None and getrefcount(obj) <= _OWN_REFERENCES:
            self.lighten(decode)
        data = self._data
        if type(data) is not bytes:
            return False
        packed = packer.pack(data)
        if packed is not None:
            msgspec.structs.force_setattr(self, "_data", packed)
        return True


_OWN_REFERENCES: Final = 3
"""Of an object that nobody has but its record: the record's, the variable's, and that of the question."""


class EventType(Enum):
    """What happened to a record; the names are those of a Kubernetes watch."""

    ADDED = "ADDED"
    MODIFIED = "MODIFIED"
    DELETED = "DELETED"


class Event(msgspec.Struct, frozen=True, gc=False, eq=False):
    """One change. For DELETED, `record` is the last state with the deletion's revision; `previous` is what
    was stored before (None for ADDED), so that a selector can tell "left my view" from "changed"."""

    type: EventType
    record: Record
    previous: Record | None

    @property
    def revision(self) -> int:
        return self.record.revision


def folded(events: Sequence[Event]) -> list[Event]:
    """The same with one change for each object, from what it was before all of them to what it is now.

    What came and went meanwhile comes and goes: whoever made it waits to hear that it is there, and that it is gone.
    One that was made anew is another, and follows. In the order in which objects were first heard of.
    """
    last = {(event.record.key, event.record.create_revision): event for event in events}
    first = {(event.record.key, event.record.create_revision): event for event in reversed(events)}
    return [told for one, event in last.items() for told in _as_few(first[one], event)]


def _as_few(first: Event, last: Event) -> tuple[Event, ...]:
    """Two changes of an object and all between them as one, or as two."""
    if first is last:
        return (last,)
    before = first.previous
    if last.type is not EventType.DELETED:
        return (Event(EventType.ADDED if before is None else EventType.MODIFIED, last.record, before),)
    if before is not None:
        return (Event(EventType.DELETED, last.record, before),)
    return (first, Event(EventType.DELETED, last.record, first.record))


GROWTH: Final = 512
"""An update may add so many bytes and still count as one that needs no room: what marks an object as deleted."""


def needs_room(event: Event) -> bool:
    """Whether a change makes what is stored larger: it is the first to be refused when there is no room."""
    if event.type is EventType.DELETED:
        return False
    return event.previous is None or event.record.size > event.previous.size + GROWTH


class Create(NamedTuple):
    """Store a new record; fails with `Exists`."""

    key: Key
    finish: Finish


class Update(NamedTuple):
    """Replace the record that has `expected_revision`; fails with `NotFound` or `Conflict`."""

    key: Key
    expected_revision: int
    finish: Finish


class Delete(NamedTuple):
    """Remove the record, if `expected_revision` is given only when it has that one; fails like `Update`."""

    key: Key
    expected_revision: int | None
    finish: Finish


Operation = Create | Update | Delete


class Basis(NamedTuple):
    """What a write is judged by besides its own keys, for engines that others write to as well.

    Of all writes that name one of the `guards`, wherever they are made, each is judged by a state that has the ones
    before. A write is made only if nobody has written the `keys`, nor in the `namespaces` (resource, namespace), since
    `finish` looked at them; else `finish` is asked anew.
    """

    guards: tuple[str, ...] = ()
    keys: tuple[Key, ...] = ()
    namespaces: tuple[tuple[str, str], ...] = ()


ITSELF: Final = Basis()
"""A write that is judged by nothing but its own keys."""


class Listing(NamedTuple):
    """Records in key order as they were at `revision`; `remaining` counts those after the last one given."""

    records: list[Record]
    revision: int
    remaining: int
