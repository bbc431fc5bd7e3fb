"""What the tracker is told: an object is there or has changed, or it is gone."""

from __future__ import annotations

from typing import Final, NamedTuple, Self, TypeAlias

from dray.api.resource import DeviceClass, DeviceTaintRule, ResourceSlice, ResourceSlicePatch

TrackedObject: TypeAlias = ResourceSlice | ResourceSlicePatch | DeviceTaintRule | DeviceClass

KINDS: Final[dict[str, type[TrackedObject]]] = {
    kind.__name__: kind for kind in (ResourceSlice, ResourceSlicePatch, DeviceTaintRule, DeviceClass)
}


class Upsert(NamedTuple):
    """The object was created, or this is its new state."""

    object: TrackedObject


class Remove(NamedTuple):
    """The object of this kind and name was deleted. It need not be known."""

    kind: str
    name: str

    @classmethod
    def of(cls, gone: TrackedObject) -> Self:
        """The removal of this object, of which only kind and name count."""
        return cls(type(gone).__name__, gone.metadata.name)


Event: TypeAlias = Upsert | Remove


def check_kind(event: Event) -> None:
    """Raise ValueError for an event about anything that is not tracked."""
    kind = event.kind if isinstance(event, Remove) else type(event.object).__name__
    if kind not in KINDS:
        raise ValueError(f"the tracker does not follow objects of kind {kind}, only {', '.join(sorted(KINDS))}")
