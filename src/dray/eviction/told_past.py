"""Who has left, told where the next guard and those in other processes read it: an annotation of kube-system. Pure.

The eviction controllers write it before a pod leaves that nobody has confirmed, so that starting them anew, or running
them in processes of their own, does not let as many leave once more. Each process has an entry of its own; those of
others are kept for as long as somebody may ask about their time.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping
from typing import Final

import msgspec
from msgspec.structs import replace

from dray.api.generated.core import Namespace
from dray.eviction.guard import WINDOW
from dray.eviction.recent import Departed, Past

PAST_ANNOTATION: Final = "dray.dev/recent-evictions"
MOST_PODS: Final = 1_000_000
"""An annotation that says more is none of ours."""
MOST_ENTRIES: Final = 500
"""Of one process. Beyond that the oldest are told together, as if they had left when the last of them did."""

Left = tuple[tuple[int, int, int], ...]
"""By when, how many pods, and how many of them used devices. Times are in seconds since 1970."""


class Told(msgspec.Struct, rename="camel", omit_defaults=True, frozen=True):
    """What one process tells."""

    controllers: tuple[str, ...] = ()
    held_since: int | None = None
    left: Left = ()


def read_told(namespace: Namespace | None) -> dict[str, Told]:
    """What is told, by process; nothing if nobody has told it in words that are known."""
    text = "" if namespace is None else namespace.metadata.annotations.get(PAST_ANNOTATION, "")
    try:
        told = msgspec.json.decode(text or "{}", type=dict[str, Told])
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return {}
    numbers = [pods for one in told.values() for _, pods, _ in one.left]
    return {} if min(numbers, default=0) < 0 or sum(numbers) > MOST_PODS else told


class Offset:
    """What a tick has to be increased by to be a time: the least that it has been within the time that counts.

    Clocks are set. What others told before one was set ahead must not seem to be long ago since.
    """

    def __init__(self) -> None:
        self._seen: deque[tuple[float, int]] = deque()
        """Until when an offset was so, each with those before it that were less."""

    def least(self, tick: float, now: float) -> int:
        """Asked often enough to see how it was before the clock was set."""
        offset = int(now - tick)
        while self._seen and self._seen[-1][1] >= offset:
            self._seen.pop()
        self._seen.append((tick, offset))
        while self._seen[0][0] < tick - WINDOW:
            self._seen.popleft()
        return self._seen[0][1]


def departed(told: Iterable[Told], tick: float, offset: float) -> list[Departed]:
    """Who has left, in ticks. A time that is yet to come, for clocks are set, is now."""
    left = (entry for one in told for entry in one.left)
    return [Departed(min(by - offset, tick), pods, with_devices) for by, pods, with_devices in left]


def held_before(told: Iterable[Told], controllers: Iterable[str], now: float, jump: float) -> float | None:
    """The tick since which something is held that these controllers have to do with; None if nothing is."""
    wanted = set(controllers)
    held = [one.held_since for one in told if one.held_since is not None and wanted.intersection(one.controllers)]
    return min(*held, now) - jump if held else None


def of_past(past: Past, controllers: Iterable[str], jump: float) -> Told:
    """What a process tells of itself."""
    held = None if past.held_since is None else int(past.held_since + jump)
    left = tuple((int(by + jump), pods, with_devices) for by, pods, with_devices in past.departed)
    return Told(tuple(sorted(controllers)), held, _few(left))


def told_text(others: Mapping[str, Told], name: str, own: Told, since: float) -> str:
    """What the annotation says. Of others it is dropped who left before `since`, unless somebody is held for longer.

    Controllers run once: what others say that they hold for the same ones is what they held before this start.
    """
    kept = {
        each: replace(told, held_since=None) if set(own.controllers).intersection(told.controllers) else told
        for each, told in others.items()
    }
    holds = (told.held_since - WINDOW for told in kept.values() if told.held_since is not None)
    oldest = min((since, *holds))
    told = {each: replace(told, left=_since(told.left, oldest)) for each, told in kept.items()}
    said = {each: told for each, told in told.items() if told.left or told.held_since is not None}
    return msgspec.json.encode({**said, name: own}, order="sorted").decode()


def _since(left: Left, oldest: float) -> Left:
    return tuple(entry for entry in left if entry[0] >= oldest)


def _few(left: Left) -> Left:
    old, new = left[:-MOST_ENTRIES], left[-MOST_ENTRIES:]
    if not old:
        return new
    return ((old[-1][0], sum(pods for _, pods, _ in old), sum(devices for *_, devices in old)), *new)
