"""A recording as what came from outside: what was there, what people and machines did, and the work that arrived. Pure.

What a scheduler or a controller did is not part of it: allocations, bindings, claims made from templates, evictions.
"""

from __future__ import annotations

import msgspec

from dray.api.generated.core import Pod
from dray.api.meta import Object
from dray.api.registry import Kind
from dray.api.resource import ResourceClaim
from dray.recording import Gap, Gone, Recording, Seen
from dray.recording.files import KINDS
from dray.replay.work import Stories, Work, find_work


class Place(msgspec.Struct, frozen=True):
    """Where an object is."""

    kind: str
    namespace: str
    name: str

    @classmethod
    def of(cls, obj: Object) -> Place:
        """The place of an object."""
        return cls(obj.kind, obj.metadata.namespace, obj.metadata.name)


class Change(msgspec.Struct, frozen=True):
    """From a moment on an object is like this; None if it is gone."""

    at: float
    place: Place
    object: Object | None


class History(msgspec.Struct, frozen=True, kw_only=True):
    """What a replay needs of a recording. Moments in seconds since 1970."""

    start: float
    end: float
    first: tuple[Object, ...]
    """What was there, other than pods."""
    changes: tuple[Change, ...]
    """What happened to it, and what came."""
    work: tuple[Work, ...]
    seen: tuple[Change, ...]
    """Everything as it was recorded, decisions included."""
    seen_first: int
    """How many of these say what was there at the start."""
    problems: tuple[str, ...]


def read_history(recording: Recording) -> History:
    """The history in a recording."""
    start = next(entry.at for entry in recording.entries if not isinstance(entry, Seen | Gone | Gap))
    stories = Stories()
    seen: list[Change] = []
    there: dict[Place, Object] = {}
    first: tuple[Object, ...] | None = None
    seen_first = 0
    changes: list[Change] = []
    for entry in recording.entries:
        if isinstance(entry, Gap):
            continue
        if not isinstance(entry, Seen | Gone):
            first = tuple(obj for obj in there.values() if not isinstance(obj, Pod))
            seen_first = len(seen)
            continue
        is_first = first is None
        change = _change(entry, start if is_first else entry.at)
        seen.append(change)
        if change.place.kind == "Pod":
            if isinstance(entry, Gone):
                stories.miss(entry.uid, change.at)
            elif isinstance(change.object, Pod):
                stories.see(change.object, change.at, is_first=is_first)
            continue
        before = there.get(change.place)
        if change.object is None:
            there.pop(change.place, None)
        else:
            there[change.place] = change.object
        if not is_first and (from_outside := _from_outside(change, before)) is not None:
            changes.append(from_outside)
    return History(
        start=start,
        end=max(recording.ended, start),
        first=first or (),
        changes=tuple(changes),
        work=tuple(find_work(stories, start)),
        seen=tuple(seen),
        seen_first=seen_first,
        problems=tuple(recording.problems),
    )


def _change(entry: Seen | Gone, at: float) -> Change:
    if isinstance(entry, Seen):
        return Change(at, Place.of(entry.object), entry.object)
    return Change(at, Place(entry.kind, entry.namespace, entry.name), None)


def is_made_for_others(claim: Object) -> bool:
    """Whether a controller or scheduler made a claim, for a pod or a group of them."""
    return isinstance(claim, ResourceClaim) and any(
        owner.kind in ("Pod", "PodGroup") for owner in claim.metadata.owner_references
    )


def _from_outside(change: Change, before: Object | None) -> Change | None:
    """A change, if somebody outside made it. Of claims that is when they come, and when somebody deletes them."""
    if change.place.kind != "ResourceClaim":
        return change
    now = change.object
    if now is None:
        is_news = before is not None and before.metadata.deletion_timestamp is None and not is_made_for_others(before)
        return change if is_news else None
    if is_made_for_others(now):
        return None
    is_leaving = now.metadata.deletion_timestamp is not None
    if before is None or before.metadata.uid != now.metadata.uid:
        return None if is_leaving else change
    if is_leaving and before.metadata.deletion_timestamp is None:
        return Change(change.at, change.place, None)
    return None


def kind_of(place: Place) -> Kind:
    """The kind of what is at a place."""
    return KINDS[place.kind]
