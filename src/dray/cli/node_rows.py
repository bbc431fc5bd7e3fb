"""Nodes with their devices and pods in numbers, who leaves them, and how they are in a few words."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Final, NamedTuple

from dray.api.conditions import is_true
from dray.api.nodes import NOT_READY, UNREACHABLE, UNSCHEDULABLE, is_known_unready, is_ready
from dray.api.pods import is_finished
from dray.api.resource.taint import EFFECT_NO_EXECUTE, EFFECT_NO_SCHEDULE
from dray.api.taints import taint_text
from dray.controllers.eviction.waiting_condition import is_waiting
from dray.eviction.budgets import Keepers, waiting_for
from dray.eviction.drain import is_drained, is_paused, last_leaves, leaves_by_drain, must_leave, still_stopping
from dray.eviction.rule_condition import EVICTION_HELD
from dray.eviction.stop import all_are_stopped, is_stopped
from dray.prose.wording import count, names
from dray.views.pools import bad_pools

if TYPE_CHECKING:
    from dray.api.generated.core import Node, Pod
    from dray.cli.file_view import FileView
    from dray.live.cluster_view import LiveView
    from dray.scheduling.device_states import DeviceState
    from dray.tracker import PoolView


_STANDSTILL: Final = {
    "stopped": ", but evictions are stopped",
    "held": ", held until `dray confirm`",
    "paused": ", paused",
}


class Counts(NamedTuple):
    """Devices in numbers."""

    all: int
    free: int
    held: int
    blocked: int
    tainted: int


def count_devices(devices: Sequence[DeviceState]) -> Counts:
    """How many there are of each state."""
    return Counts(
        len(devices),
        sum(row.is_free for row in devices),
        sum(bool(row.holders) for row in devices),
        sum(row.is_blocked for row in devices),
        sum(row.is_tainted for row in devices),
    )


def tell_shared(devices: Iterable[DeviceState]) -> str:
    """How many devices are of no single node, and what they are good for; empty if all are."""
    shared = [row for row in devices if row.device.access.node_name is None]
    if not shared:
        return ""
    told = count_devices(shared)
    states = f"{told.free} free, {told.held} held, {told.blocked} blocked, {told.tainted} tainted"
    return f"Besides, {count(told.all, 'device')} that several nodes can use: {states}."


class NodeRow(NamedTuple):
    """A node, or the name of one that has devices published still: it is gone, or files do not say how it is."""

    name: str
    node: Node | None
    devices: list[DeviceState]
    pods: int
    leaving: list[Pod]
    """Pods that must leave it and that nobody has told so."""
    waiting: dict[str, int]
    """How many of them wait for each disruption budget that allows none now. A taint with NoExecute asks for none,
    unless the eviction policy does."""
    last_leaves: datetime | None
    """Before when the last of them does not leave; None if that is not known."""
    unusable: tuple[PoolView, ...] = ()
    """Pools of the node alone whose devices do not count; there may be none of these, and nothing else tells then."""
    is_gone: bool = False
    stopping: int = 0
    """Pods that were told, and have not stopped yet."""
    is_stopped: bool = False
    """Whoever would evict them was told to stop."""

    @property
    def state(self) -> str:
        """`ready` or not, and what else keeps new pods away, taints by name."""
        told = [f"tainted {names(self.taints, 2)}" if word == "tainted" else word for word in self.words]
        return ", ".join(told)

    @property
    def words(self) -> tuple[str, ...]:
        """The same for programs."""
        if self.node is None:
            return ("gone" if self.is_gone else "not known",)
        told = ["ready" if self.is_ready else "not known" if self.is_ready is None else "not ready"]
        told += ["unschedulable"] if self.node.spec.unschedulable else []
        if self.leaving or self.stopping:
            told.append("draining")
        elif is_drained(self.node):
            told.append("drained")
        elif self.taints:
            told.append("tainted")
        return tuple(told)

    @property
    def taints(self) -> tuple[str, ...]:
        """Taints that keep pods away which do not tolerate them, without those that another word of the state says."""
        keeping = (EFFECT_NO_SCHEDULE, EFFECT_NO_EXECUTE)
        taints = self.node.spec.taints if self.node is not None else ()
        further = (one for one in taints if one.key not in (NOT_READY, UNREACHABLE, UNSCHEDULABLE))
        return tuple(taint_text(one) for one in further if one.effect in keeping)

    @property
    def is_ready(self) -> bool | None:
        """None if it does not say. Who watches over a node knows better than itself: its devices go by that, too."""
        if self.node is None:
            return False if self.is_gone else None
        return False if is_known_unready(self.node) else True if is_ready(self.node) else None

    @property
    def counts(self) -> Counts:
        """Its devices in numbers."""
        return count_devices(self.devices)

    def tell_leaving(self, now: datetime) -> str:
        """`3 pods leave, the last not before 14:07`, or `…, 1 waits for budget ml/api; 2 pods stop`; or nothing."""
        stops = f"{count(self.stopping, 'pod')} {'stops' if self.stopping == 1 else 'stop'}" if self.stopping else ""
        return "; ".join(filter(None, (self._tell_untold(now), stops)))

    def _tell_untold(self, now: datetime) -> str:
        if not self.leaving:
            return ""
        told = f"{count(len(self.leaving), 'pod')} {'leaves' if len(self.leaving) == 1 else 'leave'}"
        waiting = sum(self.waiting.values())
        told += _STANDSTILL.get(self.standstill or "", "")
        if self.last_leaves is not None and self.last_leaves > now:
            here = self.last_leaves.astimezone()
            day = "" if here.date() == now.astimezone().date() else f"{here:%Y-%m-%d} "
            told += f",{'' if len(self.leaving) == 1 else ' the last'} not before {day}{here:%H:%M}"
        if not waiting:
            return told
        which = f"budget{'' if len(self.waiting) == 1 else 's'} {names(sorted(self.waiting), 3)}"
        return f"{told}, {waiting} {'waits' if waiting == 1 else 'wait'} for {which}"

    @property
    def standstill(self) -> str | None:
        """What keeps all of them: everything is `stopped`, the guard has them `held`, or the drain is `paused`."""
        if self.node is None or not self.leaving:
            return None
        if self.is_stopped:
            return "stopped"
        if is_true(self.node.status.conditions, EVICTION_HELD):
            return "held"
        waits_for_drain = all(leaves_by_drain(self.node, pod) for pod in self.leaving)
        return "paused" if waits_for_drain and is_paused(self.node.metadata.annotations) else None


def node_rows(view: LiveView | FileView, wanted: str = "") -> Iterator[NodeRow]:
    """All nodes by name, or one; those that are gone last."""
    devices: dict[str, list[DeviceState]] = {}
    for row in view.devices():
        devices.setdefault(row.device.access.node_name or "", []).append(row)
    pods: dict[str, list[Pod]] = {}
    for pod in view.pods():
        if pod.spec.node_name and not is_finished(pod):
            pods.setdefault(pod.spec.node_name, []).append(pod)
    nodes: dict[str, Node | None] = {node.metadata.name: node for node in view.nodes()}
    nodes |= dict.fromkeys(sorted(devices.keys() - nodes.keys() - {""}))
    gone = nodes.keys() - set(view.mentioned_nodes)
    place = view.place_of_stop()
    unusable = bad_pools(view.pools())
    keepers = Keepers(view.budgets())
    for name, node in nodes.items():
        if wanted in ("", name):
            there = pods.get(name, [])
            leaving = [] if node is None else must_leave(node, there)
            last = None if node is None else last_leaves(node, leaving)
            asked = [pod for pod in leaving if node is not None and (leaves_by_drain(node, pod) or is_waiting(pod))]
            waiting = waiting_for(asked, keepers) if asked else {}
            is_gone = node is None and name in gone
            stopping = 0 if node is None else len(still_stopping(node, there))
            stopped = all_are_stopped(place) or (node is not None and is_drained(node) and is_stopped(place))
            bad = tuple(one for one in unusable if one.node == name)
            mine = devices.get(name, [])
            yield NodeRow(name, node, mine, len(there), leaving, waiting, last, bad, is_gone, stopping, stopped)
