"""How many nodes may get NoExecute taints, by the health of their zones, so that one fault does not empty a cluster.

    zone            rate
    Normal          0.1 nodes/s
    Partial         0.01 nodes/s if the zone is large, else none
    Full            0.1 nodes/s; if all zones are: none, and no node keeps a NoExecute taint (3902-11)

Pure: times are seconds of a clock that never jumps.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import NamedTuple

from dray.api.generated.core import Node
from dray.controllers.settings import NodeLifecycleSettings

REGION = "topology.kubernetes.io/region"
ZONE = "topology.kubernetes.io/zone"
EXCLUDED = "node.kubernetes.io/exclude-disruption"
TOLERATED_UNHEALTHY = 2
"""So few unhealthy nodes are no disruption, whatever their share."""


class ZoneState(StrEnum):
    """How a zone is."""

    NORMAL = "Normal"
    PARTIAL = "PartialDisruption"
    FULL = "FullDisruption"


class Count(NamedTuple):
    """The nodes of a zone."""

    ready: int = 0
    unready: int = 0

    @property
    def size(self) -> int:
        """All of them."""
        return self.ready + self.unready

    def plus(self, *, is_ready: bool) -> Count:
        """With one node more."""
        return Count(self.ready + is_ready, self.unready + (not is_ready))


def zone_of(node: Node) -> str:
    """The zone of a node; nodes that do not say are in one zone together."""
    labels = node.metadata.labels
    return f"{labels.get(REGION, '')}/{labels.get(ZONE, '')}"


def is_counted(node: Node) -> bool:
    """Whether the node's health says something about its zone."""
    return EXCLUDED not in node.metadata.labels


def judge(count: Count, settings: NodeLifecycleSettings) -> ZoneState:
    """The state of a zone."""
    if count.unready and not count.ready:
        return ZoneState.FULL
    if count.unready > TOLERATED_UNHEALTHY and count.unready / count.size >= settings.unhealthy_share:
        return ZoneState.PARTIAL
    return ZoneState.NORMAL


class Disruption:
    """The zones, and for each the nodes that wait for their NoExecute taint."""

    def __init__(self, settings: NodeLifecycleSettings) -> None:
        self._settings = settings
        self._rates: dict[str, float] = {}
        self._waiting: dict[str, dict[str, None]] = {}
        self._zones: dict[str, str] = {}
        self._last: dict[str, float] = {}
        self.states: dict[str, ZoneState] = {}

    @property
    def is_total(self) -> bool:
        """Whether all zones are fully disrupted: more likely we are cut off than all nodes dead."""
        return bool(self.states) and all(state is ZoneState.FULL for state in self.states.values())

    def update(self, counts: Mapping[str, Count]) -> None:
        """These are the zones now."""
        self.states = {zone: judge(count, self._settings) for zone, count in counts.items()}
        self._rates = {
            zone: 0.0 if self.is_total else self._rate(state, counts[zone]) for zone, state in self.states.items()
        }
        self._last = {zone: last for zone, last in self._last.items() if zone in counts}

    def add(self, node: str, zone: str) -> None:
        """A node waits for its taint."""
        if self._zones.get(node) != zone:
            self.remove(node)
            self._zones[node] = zone
            self._waiting.setdefault(zone, {})[node] = None

    def remove(self, node: str) -> None:
        """A node does not wait any more."""
        zone = self._zones.pop(node, None)
        if zone is not None:
            self._waiting[zone].pop(node)
            if not self._waiting[zone]:
                del self._waiting[zone]

    def take(self, tick: float) -> list[str]:
        """The nodes that may be tainted now: at most one of each zone."""
        due = [zone for zone in self._waiting if self._free_at(zone) <= tick]
        taken = []
        for zone in due:
            node = next(iter(self._waiting[zone]))
            self._last[zone] = tick
            self.remove(node)
            taken.append(node)
        return taken

    def wait(self, tick: float) -> float | None:
        """After how many seconds `take` may have something; None if nobody waits or may be tainted."""
        moments = [moment for moment in map(self._free_at, self._waiting) if moment != float("inf")]
        return max(min(moments) - tick, 0.0) if moments else None

    def _free_at(self, zone: str) -> float:
        rate = self._rates.get(zone, self._settings.taint_rate)
        if rate <= 0:
            return float("inf")
        return self._last.get(zone, float("-inf")) + 1 / rate

    def _rate(self, state: ZoneState, count: Count) -> float:
        if state is not ZoneState.PARTIAL:
            return self._settings.taint_rate
        return self._settings.secondary_taint_rate if count.size > self._settings.large_zone else 0.0
