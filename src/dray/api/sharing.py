"""Work that is done once for many objects with the same part, such as the pods of one template.

Parts of API objects are never changed, so what a pure function made of one holds for as long as it exists. Comparing
two parts would cost as much as the work: they are told apart by identity, and kept alive so that an identity is theirs.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from functools import wraps
from inspect import signature
from typing import Concatenate, ParamSpec, TypeVar

from msgspec.json import Encoder

from dray.api.recent import Bounded
from dray.api.struct import encode_value
from dray.api.text_memory import text_length

T = TypeVar("T")
R = TypeVar("R")
P = ParamSpec("P")

_encoder = Encoder(enc_hook=encode_value)

LIMIT = 128
"""How many parts each function remembers before it forgets all."""
LARGE = 64 * 1024
"""Parts that are longer than that when written are not remembered, nor anything with arguments that are."""
WIDE = 500
"""Nor are parts with a list or map of more entries."""


def remembered(function: Callable[Concatenate[T, P], R]) -> Callable[Concatenate[T, P], R]:
    """A pure function of a part of an object, and of hashable arguments, that remembers its results."""
    known: Bounded[Hashable, tuple[T, R]] = Bounded(LIMIT)

    def work_out(key: Hashable, part: T, *args: P.args, **kwargs: P.kwargs) -> R:
        result = function(part, *args, **kwargs)
        if is_small(part) and text_length(*args, *kwargs.values()) <= LARGE:
            known.keep(key, (part, result))
        return result

    @wraps(function)
    def look_up(part: T, /, *args: P.args, **kwargs: P.kwargs) -> R:
        key: Hashable = (id(part), *args, *kwargs.items()) if kwargs else (id(part), *args)
        found = known.get(key)
        return found[1] if found is not None else work_out(key, part, *args, **kwargs)

    @wraps(function)
    def look_up_one(part: T) -> R:  # most are of this sort, and arguments in a tuple cost more than all the rest
        found = known.get(id(part))
        return found[1] if found is not None else work_out(id(part), part)  # type: ignore[call-arg]  # it has no other

    @wraps(function)
    def look_up_two(part: T, other: Hashable) -> R:
        found = known.get((id(part), other))
        return found[1] if found is not None else work_out((id(part), other), part, other)  # type: ignore[call-arg,arg-type]  # it has no others

    by_number = {1: look_up_one, 2: look_up_two}
    return by_number.get(len(signature(function).parameters), look_up)  # type: ignore[return-value]  # as `P` says


def is_small(part: object) -> bool:
    """Whether a part may be kept: large ones are rare, and many of them fill memory."""
    return not _is_wide(part) and len(_encoder.encode(part)) <= LARGE


def _is_wide(part: object) -> bool:
    """Whether a list or map of a part is so long that to write it, to see how much it is, would take milliseconds."""
    values = (getattr(part, name) for name in getattr(part, "__struct_fields__", ()))
    return any(value.__class__ in (tuple, dict) and len(value) > WIDE for value in values)
