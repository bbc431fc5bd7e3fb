"""Small pieces of text: counts, lists of names, spans of time, values cut to a readable length."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta

from dray.api.resource import DeviceRequestAllocationResult

MAX_NAMES = 3
MAX_KNOWN = 5
MAX_VALUE = 40

_UNITS = (("d", 86_400), ("h", 3_600), ("min", 60), ("s", 1))


def count(number: int, noun: str) -> str:
    """`1 node`, `2 nodes`."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def are(number: int) -> str:
    """The verb that goes with a number."""
    return "is" if number == 1 else "are"


def names(listed: Sequence[str], limit: int = MAX_NAMES) -> str:
    """`a, b, c and 4 more`."""
    shown = ", ".join(listed[:limit])
    return f"{shown} and {len(listed) - limit} more" if len(listed) > limit else shown


def tell_apart(paths: Iterable[tuple[str, ...]], least: int = 1) -> list[str]:
    """The last `least` parts of each path, or as many of all of them as it takes to tell different ones apart.

    Devices are driver, pool and name: `gpu-3`, where pools of a node or drivers have the same names `pool/gpu-3`.
    """
    paths = list(paths)
    different, most = len(set(paths)), max(map(len, paths), default=0)
    parts = least
    while parts < most and len({path[-parts:] for path in paths}) < different:
        parts += 1
    return ["/".join(path[-parts:]) for path in paths]


def tell_results(results: Iterable[DeviceRequestAllocationResult]) -> list[str]:
    """The devices of an allocation: `node-1/gpu-3`."""
    return tell_apart(((one.driver, one.pool, one.device) for one in results), least=2)


def there_is(known: Iterable[str]) -> str:
    """What there is, for who named something else: `there is a, b and 4 more`."""
    return f"there is {names(sorted(set(known)), MAX_KNOWN) or 'none at all'}"


def rest(number: int, noun: str, where: str = "") -> list[str]:
    """The line below a table that leaves rows out: `… and 7 more pods`, and where they are; none if it has all."""
    if number <= 0:
        return []
    return [f"  … and {count(number, f'more {noun}')}{f'; {where}' if where else ''}"]


def ends(listed: Sequence[str]) -> str:
    """`a`, `a, b`, or `a … z` for many names in order."""
    return ", ".join(listed) if len(listed) <= MAX_NAMES else f"{listed[0]} … {listed[-1]}"


def shorten(text: str, limit: int = MAX_VALUE) -> str:
    """A text on one line, its middle left out if it is too long."""
    text = " ".join(text.split())
    if len(text) <= limit:
        return text
    tail = limit // 3
    return f"{text[: limit - tail - 1]}…{text[-tail:]}"


def told_labels(before: Mapping[str, str], after: Mapping[str, str]) -> Iterator[str]:
    """Each label that is another one: `tier gold → silver`."""
    for key in sorted({*before, *after}):
        if before.get(key) != after.get(key):
            yield f"{key} {before.get(key, 'unset')} → {after.get(key, 'unset')}"


def local_name(qualified: str) -> str:
    """An attribute or capacity without its domain; programs get the whole name."""
    return qualified.rpartition("/")[2]


def span(length: timedelta) -> str:
    """A span of time in its largest unit: `14 min`."""
    seconds = int(length.total_seconds())
    for unit, size in _UNITS:
        if seconds >= size:
            return f"{seconds // size} {unit}"
    return "0 s"


def since(moment: datetime, now: datetime | None) -> str:
    """`since 14 min`; without a current time the moment itself; nothing for what is not past."""
    if now is None:
        return f"since {moment:%Y-%m-%d %H:%M}"
    return f"since {span(now - moment)}" if now > moment else ""
