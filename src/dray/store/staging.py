"""An operation becomes an event: judged, numbered, and completed by its writer."""

from __future__ import annotations

from sys import intern

from dray.store.records import Delete, Event, EventType, Key, Operation, Record

MAX_KEY_BYTES = 4096
"""Far beyond what Kubernetes allows for names, far below what a frame can hold."""


def stage(operation: Operation, previous: Record | None, revision: int) -> Event:
    """Number the change and let the writer make object and bytes for that number."""
    obj, data = operation.finish(revision)
    if previous is None:
        resource, namespace, name = operation.key
        # A key that the disk cannot hold must fail its writer here, not the whole batch later.
        if len(f"{resource}{namespace}{name}".encode()) > MAX_KEY_BYTES:
            raise ValueError(f"the key {name[:40]}… of {resource[:40]} is longer than {MAX_KEY_BYTES} bytes")
        key = Key(intern(resource), intern(namespace), name)
        return Event(EventType.ADDED, Record(key, revision, revision, data, obj), None)
    kind = EventType.DELETED if isinstance(operation, Delete) else EventType.MODIFIED
    return Event(kind, Record(previous.key, revision, previous.create_revision, data, obj), previous)
