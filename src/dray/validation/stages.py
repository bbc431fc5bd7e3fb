"""The stages that an object passes on its way into the store, for typed objects in hub shape.

For validation of documents without a server (`documents`, `review`) and for snapshots; `rules` draws the order. The API
server takes the same functions from the `Rules` of a kind (`dray.server.strategies`). Nothing here does I/O or asks for
the time.
"""

from __future__ import annotations

from typing import TypeVar

from dray.api.field import FieldError
from dray.api.meta import Object
from dray.api.times import Time
from dray.validation.context import Context
from dray.validation.table import rules_for

T = TypeVar("T", bound=Object)


def default_object(obj: T, now: Time) -> T:
    """The object with every default filled in; `now` is the time for what is added at this moment."""
    result: T = rules_for(obj).default(obj, now)
    return result


def prepare_for_create(obj: T, ctx: Context) -> T:
    """What the server decides about a new object: no status, first generation, no fields of gates that are off."""
    result: T = rules_for(obj).prepare_create(obj, ctx)
    return result


def prepare_for_update(new: T, old: T, ctx: Context) -> T:
    """What the server decides about a changed object: old status, system metadata kept, generation counted."""
    result: T = rules_for(new).prepare_update(new, old, ctx)
    return result


def prepare_for_status_update(new: T, old: T, ctx: Context) -> T:
    """What the server decides about a changed status: everything else is as it was."""
    result: T = rules_for(new).prepare_status(new, old, ctx)
    return result


def validate_create(obj: T, ctx: Context) -> list[FieldError]:
    """All errors of a new object, after `prepare_for_create`."""
    return rules_for(obj).validate_create(obj, ctx)


def validate_update(new: T, old: T, ctx: Context) -> list[FieldError]:
    """All errors of a changed object, after `prepare_for_update`."""
    return rules_for(new).validate_update(new, old, ctx)


def validate_status_update(new: T, old: T, ctx: Context) -> list[FieldError]:
    """All errors of a changed status, after `prepare_for_status_update`."""
    return rules_for(new).validate_status(new, old, ctx)


def warnings(obj: T) -> list[str]:
    """What the server tells the author of an object that it accepts on create or update."""
    return rules_for(obj).warnings(obj)
