"""How many parts an object may have: each takes a hundred times the bytes that it is written with.

`{}` is three bytes of a body, two kilobytes of a pod with defaults, and an error of half a kilobyte where a custom
object wants more. So what has too many is refused before anything is made of it.
"""

from __future__ import annotations

from typing import Any, Final

from dray.api import codec
from dray.api.kinds import PODS, WITH_TEMPLATES_OF_PODS
from dray.api.registry import Kind
from dray.api.status import ApiError

MOST_OBJECTS: Final = 50_000
MOST_OBJECTS_OF_PODS: Final = 3_000
"""Objects in a pod, or in what has a template of one: plugins of admission go over them on the event loop."""
MOST_VALUES: Final = 200_000
"""Members of objects and elements of lists."""
MOST_OWNED: Final = 100_000
"""The same in `metadata.managedFields`, which has no part in the numbers above: everybody who sets a field has it in
there once more. What is thrown away goes on the event loop, a million parts in fifty milliseconds."""
_HOLDS: Final = (dict, list)


def check_json(body: bytes, kind: Kind) -> None:
    """Refuses a body in JSON whose object has too many parts (ApiError). Small ones are not read for it."""
    if not may_be_too_many(len(body), kind):
        return
    if body.count(b"{") > most_objects(kind) or body.count(b",") + body.count(b"{") > MOST_VALUES:
        try:
            value = codec.parse_json(body)
        except codec.DecodeError:
            return  # whoever reads it says what is wrong
        check(value, kind)


def may_be_too_many(size: int, kind: Kind) -> bool:
    """Whether an object that takes so many bytes in JSON may have too many parts: each takes two of them at least."""
    return size > 2 * most_objects(kind)


def check(value: Any, kind: Kind) -> None:
    """Refuses an object that has too many parts (ApiError); who set its fields counts apart."""
    _check(value, most_objects(kind))


def check_read(value: Any, size: int) -> None:
    """Refuses what was read from so many bytes, a patch or anything else, if it has more parts than any object."""
    if size > 2 * MOST_OBJECTS:
        _check(value, MOST_OBJECTS)


def are_too_many_owned(managed: Any) -> bool:
    """Whether entries of `metadata.managedFields` are more than an object keeps."""
    return _count(managed, MOST_OWNED)[1] > MOST_OWNED


def too_many_owned() -> ApiError:
    """What whoever wants more is answered."""
    return _too_many(f"more than {MOST_OWNED} values in metadata.managedFields")


def most_objects(kind: Kind) -> int:
    """How many objects there may be in one of a kind."""
    return MOST_OBJECTS_OF_PODS if kind.kind == PODS.kind or kind.kind in WITH_TEMPLATES_OF_PODS else MOST_OBJECTS


def _check(value: Any, most: int) -> None:
    metadata = value.get("metadata") if isinstance(value, dict) else None
    managed = metadata.get("managedFields") if isinstance(metadata, dict) else None
    objects, values = _count(value, MOST_VALUES, managed)
    if objects > most:
        raise _too_many(f"more than {most} objects in it")
    if values > MOST_VALUES:
        raise _too_many(f"more than {MOST_VALUES} values in it")
    if are_too_many_owned(managed):
        raise too_many_owned()


def _too_many(what: str) -> ApiError:
    return ApiError(413, "RequestEntityTooLarge", f"Request entity too large: there are {what}")


def _count(value: Any, most: int, beside: Any = None) -> tuple[int, int]:
    """How many objects and values there are, `beside` not counted. Stops when there are more than `most` values."""
    objects = values = 0
    waiting = [value] if value.__class__ in _HOLDS else []
    while waiting and values <= most:
        one = waiting.pop()
        values += len(one)
        if one.__class__ is dict:
            objects += 1
            waiting += [part for part in one.values() if part.__class__ in _HOLDS and part is not beside]
        else:
            waiting += [part for part in one if part.__class__ in _HOLDS and part is not beside]
    return objects, values
