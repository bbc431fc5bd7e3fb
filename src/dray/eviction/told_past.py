"""Who has left, told where the next guard reads it: an annotation of kube-system. Pure.

The eviction controllers write it before a pod leaves that nobody has confirmed, so that starting them anew does not let
as many leave once more.
"""

from __future__ import annotations

from typing import Final

import msgspec

from dray.api.generated.core import Namespace
from dray.eviction.recent import Departed, Past

PAST_ANNOTATION: Final = "dray.dev/recent-evictions"
MOST_PODS: Final = 1_000_000
"""An annotation that says more is none of ours."""


class _Told(msgspec.Struct, rename="camel", omit_defaults=True):
    """Times are in seconds since 1970."""

    held_since: int | None = None
    left: tuple[tuple[int, int, int], ...] = ()
    """By when, how many pods, and how many of them used devices."""


def past_text(past: Past, jump: float) -> str:
    """What the annotation says; `jump` is what a tick has to be increased by to be a time."""
    held = None if past.held_since is None else int(past.held_since + jump)
    left = tuple((int(by + jump), pods, with_devices) for by, pods, with_devices in past.departed)
    return msgspec.json.encode(_Told(held, left)).decode()


def told_past(namespace: Namespace | None, now: float, jump: float) -> Past:
    """What was told before, in ticks; nothing if nobody has told it in words that are known.

    A time that is yet to come, for clocks may jump, is now.
    """
    text = "" if namespace is None else namespace.metadata.annotations.get(PAST_ANNOTATION, "")
    try:
        told = msgspec.json.decode(text or "{}", type=_Told)
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return Past()
    if any(pods < 0 for _, pods, _ in told.left) or sum(pods for _, pods, _ in told.left) > MOST_PODS:
        return Past()
    held = None if told.held_since is None else min(told.held_since, now) - jump
    left = (Departed(min(by, now) - jump, pods, with_devices) for by, pods, with_devices in told.left)
    return Past(tuple(left), held)
