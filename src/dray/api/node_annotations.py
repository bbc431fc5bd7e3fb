"""What annotations of a node say about its taints, which have no room for it: how fast pods leave, and when they end.

dray.dev/evictions-per-second: maintenance:NoExecute=5,firmware:NoExecute=20@rack-3

    KEY:NoExecute=RATE          so many pods a second leave this node for this taint
    KEY:NoExecute=RATE@GROUP    so many leave all the nodes whose entries name the group, together

dray.dev/taints-expire-at: maintenance:NoExecute=2026-06-01T14:00:00Z,disk:NoSchedule=2026-06-02T00:00:00Z
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from typing import Final, NamedTuple

from dray.api.generated.core import Taint
from dray.api.resource.rule_annotations import EVICTIONS_PER_SECOND, read_rate
from dray.api.resource.taint import EFFECT_NO_EXECUTE
from dray.api.taints import TaintName
from dray.api.times import Time, TimeError

TAINTS_EXPIRE_AT: Final = "dray.dev/taints-expire-at"
_GROUP: Final = re.compile(r"[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?")


class Ration(NamedTuple):
    """So many pods may leave a second: this node, or all nodes of a group together."""

    rate: int
    group: str = ""

    def __str__(self) -> str:
        return f"{self.rate}@{self.group}" if self.group else str(self.rate)


class Rations(NamedTuple):
    """How fast pods leave a node, by taint; taints that are not in it know no limit."""

    entries: Mapping[TaintName, Ration] = {}
    problems: tuple[str, ...] = ()
    """Entries that cannot be read, each with what it should be."""


def read_rations(annotations: Mapping[str, str]) -> Rations:
    """What the annotation of a node says. Never fails: what is wrong is in `problems`."""
    entries: dict[TaintName, Ration] = {}
    problems: list[str] = []
    for entry in filter(None, map(str.strip, annotations.get(EVICTIONS_PER_SECOND, "").split(","))):
        name, _, value = entry.partition("=")
        key, _, effect = name.rpartition(":")
        text, at, group = value.partition("@")
        rate = read_rate(text)
        if not key or effect != EFFECT_NO_EXECUTE:
            problems.append(f"{entry[:80]!r} is not KEY:{EFFECT_NO_EXECUTE}=RATE")
        elif rate is None:
            problems.append(f"the rate of {entry[:80]!r} is not a whole number of at least 1")
        elif at and not _GROUP.fullmatch(group):
            problems.append(f"the group of {entry[:80]!r} is not a name of letters, digits, '-', '_' and '.'")
        else:
            entries[TaintName(key, effect)] = Ration(rate, group)
    return Rations(entries, tuple(problems))


def read_ends(annotations: Mapping[str, str]) -> dict[TaintName, Time]:
    """Which taints of a node end, and when. Raises TimeError with the entry that is wrong."""
    entries: dict[TaintName, Time] = {}
    for entry in filter(None, annotations.get(TAINTS_EXPIRE_AT, "").split(",")):
        name, equals, text = entry.strip().partition("=")
        key, colon, effect = name.rpartition(":")
        if not (equals and colon and key and effect):
            raise TimeError(f"{entry.strip()!r} is not KEY:EFFECT=TIME")
        entries[TaintName(key, effect)] = Time.parse(text)
    return entries


def write_entries(entries: Mapping[TaintName, object]) -> str | None:
    """An annotation with an entry for each taint; None if there is nothing to say."""
    return ",".join(f"{name}={said}" for name, said in sorted(entries.items())) or None


def rations_without(
    annotations: Mapping[str, str], removed: Collection[TaintName], left: Iterable[Taint]
) -> str | None:
    """The annotation once taints are removed from a node, and these are left.

    What cannot be read stays as long as there is a taint that it may be about.
    """
    entries, problems = read_rations(annotations)
    if problems and any(taint.effect == EFFECT_NO_EXECUTE for taint in left):
        return annotations[EVICTIONS_PER_SECOND]
    return write_entries({name: ration for name, ration in entries.items() if name not in removed})
