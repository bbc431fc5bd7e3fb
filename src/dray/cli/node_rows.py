"""Nodes with their devices and pods in numbers, who leaves them, and how they are in a few words."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import TYPE_CHECKING, NamedTuple

from dray.api.nodes import is_ready
from dray.api.pods import is_finished
from dray.api.resource.taint import EFFECT_NO_EXECUTE, EFFECT_NO_SCHEDULE
from dray.eviction.budgets import waiting_for
from dray.eviction.drain import is_drained, last_leaves, must_leave
from dray.prose.wording import count, names

if TYPE_CHECKING:
    from dray.api.generated.core import Node, Pod
    from dray.live.cluster_view import LiveView
    from dray.scheduling.device_states import DeviceState


class NodeRow(NamedTuple):
    """A node, or the name of one that is gone and has devices published still."""

    name: str
    node: Node | None
    devices: list[DeviceState]
    pods: int
    leaving: list[Pod]
    """Pods that must leave it and are there still."""
    waiting: dict[str, int]
    """How many of them wait for each disruption budget that allows none now."""
    last_leaves: datetime | None
    """Before when the last of them does not leave; None if that is not known."""

    @property
    def state(self) -> str:
        """`ready` or not, and what else keeps new pods away."""
        if self.node is None:
            return "gone"
        told = ["ready" if is_ready(self.node) else "not ready"]
        told += ["unschedulable"] if self.node.spec.unschedulable else []
        keeping = [one for one in self.node.spec.taints if one.effect in (EFFECT_NO_SCHEDULE, EFFECT_NO_EXECUTE)]
        if self.leaving:
            told.append("draining")
        elif is_drained(self.node):
            told.append("drained")
        elif any(not one.key.startswith("node.kubernetes.io/") for one in keeping):
            told.append("tainted")
        return ", ".join(told)

    @property
    def counts(self) -> tuple[int, int, int, int, int]:
        """Devices: all, free, held, blocked, tainted."""
        return (
            len(self.devices),
            sum(row.is_free for row in self.devices),
            sum(bool(row.holders) for row in self.devices),
            sum(row.is_blocked for row in self.devices),
            sum(row.is_tainted for row in self.devices),
        )

    def tell_leaving(self, now: datetime) -> str:
        """`3 pods leave, the last not before 14:07`, or `…, 1 waits for budget ml/api`; empty if nobody does."""
        if not self.leaving:
            return ""
        told = f"{count(len(self.leaving), 'pod')} {'leaves' if len(self.leaving) == 1 else 'leave'}"
        waiting = sum(self.waiting.values())
        if self.last_leaves is not None and self.last_leaves > now:
            here = self.last_leaves.astimezone()
            day = "" if here.date() == now.astimezone().date() else f"{here:%Y-%m-%d} "
            told += f",{'' if len(self.leaving) == 1 else ' the last'} not before {day}{here:%H:%M}"
        if not waiting:
            return told
        which = f"budget{'' if len(self.waiting) == 1 else 's'} {names(sorted(self.waiting), 3)}"
        return f"{told}, {waiting} {'waits' if waiting == 1 else 'wait'} for {which}"


def node_rows(view: LiveView, wanted: str = "") -> Iterator[NodeRow]:
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
    for name, node in nodes.items():
        if wanted in ("", name):
            there = pods.get(name, [])
            leaving = [] if node is None else must_leave(node, there)
            last = None if node is None else last_leaves(node, leaving)
            waiting = waiting_for(leaving, view.budgets()) if leaving else {}
            yield NodeRow(name, node, devices.get(name, []), len(there), leaving, waiting, last)
