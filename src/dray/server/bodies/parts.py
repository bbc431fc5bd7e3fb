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
_HOLDS: Final = (dict, list)


def check_json(body: bytes, kind: Kind) -> None:
    """Refuses a body in JSON whose object has too many parts (ApiError). Small ones are not read for it."""
    if len(body) <= 2 * most_objects(kind):
        return
    if body.count(b"{") > most_objects(kind) or body.count(b",") + body.count(b"{") > MOST_VALUES:
        try:
            value = codec.parse_json(body)
        except codec.DecodeError:
            return  # whoever reads it says what is wrong
        check(value, kind)


def check(value: Any, kind: Kind) -> None:
    """Refuses an object that has too many parts (ApiError); who set its fields does not count."""
    objects, values = _count(value)
    most = most_objects(kind)
    if objects > most:
        raise _too_many(f"more than {most} objects")
    if values > MOST_VALUES:
        raise _too_many(f"more than {MOST_VALUES} values")


def most_objects(kind: Kind) -> int:
    """How many objects there may be in one of a kind."""
    return MOST_OBJECTS_OF_PODS if kind.kind == PODS.kind or kind.kind in WITH_TEMPLATES_OF_PODS else MOST_OBJECTS


def _too_many(what: str) -> ApiError:
    return ApiError(413, "RequestEntityTooLarge", f"Request entity too large: there are {what} in it")


def _count(value: Any) -> tuple[int, int]:
    """How many objects and how many values there are. Stops when there are too many of either for anybody."""
    objects = values = 0
    waiting = [value]
    while waiting and objects <= MOST_OBJECTS and values <= MOST_VALUES:
        one = waiting.pop()
        values += len(one) if one.__class__ in _HOLDS else 0
        if one.__class__ is dict:
            objects += 1
            waiting += [part for name, part in one.items() if part.__class__ in _HOLDS and name != "managedFields"]
        elif one.__class__ is list:
            waiting += [part for part in one if part.__class__ in _HOLDS]
    return objects, values
