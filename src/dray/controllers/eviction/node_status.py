"""Tells on nodes that evictions from them are held and how to confirm them, or that a policy or their rate fails."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

import msgspec
from msgspec.structs import replace

from dray.api import codec
from dray.api.conditions import is_true
from dray.api.generated.core import Node, NodeCondition
from dray.api.kinds import NODES
from dray.api.node_annotations import NO_EXECUTE, read_rations
from dray.api.resource.rule_annotations import EVICTIONS_PER_SECOND
from dray.client import Informer, PatchFormat
from dray.controllers.context import Context
from dray.controllers.queue_controller import QueueController
from dray.eviction.confirmations import CONFIRM_ANNOTATION, confirmation
from dray.eviction.guard import Hold
from dray.eviction.node_planner import NodePlanner
from dray.eviction.rule_condition import (
    EVICTION_HELD,
    POLICY_FAILED,
    REASON_ASKED,
    REASON_NOT_HELD,
    REASON_TOO_MANY,
    REASON_UNASKED,
)
from dray.process.clock import as_time
from dray.reconcile import EventRecorder

BAD_RATE: Final = "InvalidEvictionRate"


class ChangedNode(msgspec.Struct, frozen=True):
    """A node of which something else may be held, or have failed, than before."""

    name: str


class RatedNode(msgspec.Struct, frozen=True):
    """A node whose annotation about rates is another one now."""

    name: str


class NodeStatus(QueueController[ChangedNode | RatedNode]):
    """Keeps the conditions EvictionHeld and EvictionPolicyFailed of nodes."""

    name = "taint-eviction-controller-nodes"

    def __init__(self, context: Context, planner: NodePlanner, nodes: Informer[Node], recorder: EventRecorder) -> None:
        super().__init__(context, nodes, workers=2)
        self._planner = planner
        self._nodes = nodes
        self._recorder = recorder

    def report(self, names: Iterable[str]) -> None:
        """About these nodes something else may be said."""
        for name in sorted(names):
            self.queue.add(ChangedNode(name))

    def note(self, old: Node | None, new: Node | None) -> None:
        """A node has changed: in what it says of rates, or in what is said here, by a write whose answer was lost."""
        said = [one.metadata.annotations.get(EVICTIONS_PER_SECOND) if one is not None else None for one in (old, new)]
        if new is not None and said[0] != said[1]:
            self.queue.add(RatedNode(new.metadata.name))
        if old is not None and new is not None and _told(old) != _told(new):
            self.report([new.metadata.name])

    async def reconcile(self, key: ChangedNode | RatedNode) -> float | None:
        """Tells about one node."""
        node = self._nodes.get("", key.name)
        if node is not None:
            await (self._tell_state(node) if isinstance(key, ChangedNode) else self._tell_rate(node))
        return None

    async def _tell_state(self, node: Node) -> None:
        """Writes what is held and what has failed now, and an event if that is news."""
        holds = self._planner.holds(node.metadata.name)
        held = "; ".join(f"taint {key}: {hold}" for key, hold in holds.items())
        told = f"{held}. To confirm: {_command(node, holds)}" if holds else ""
        await self._tell(node, EVICTION_HELD, told, (REASON_TOO_MANY, REASON_NOT_HELD, "No evictions are held."))
        unasked = self._planner.unasked(node.metadata.name)
        otherwise = "No pod is held by a policy that fails."
        reasons = (REASON_UNASKED, REASON_ASKED, otherwise)
        await self._tell(node, POLICY_FAILED, "" if unasked is None else str(unasked), reasons)

    async def _tell(self, node: Node, type_: str, problem: str, reasons: tuple[str, str, str]) -> None:
        """Writes a condition: True while there is a problem, False afterwards. Who never had it gets none to say so."""
        is_told = is_true(node.status.conditions, type_)
        bad, good, otherwise = reasons
        if problem and not is_told:
            await self._write(node, NodeCondition(type=type_, status="True", reason=bad, message=problem))
            await self._recorder.warning(node, type_, problem)
        elif is_told and not problem:
            await self._write(node, NodeCondition(type=type_, status="False", reason=good, message=otherwise))

    async def _tell_rate(self, node: Node) -> None:
        problems = read_rations(node.metadata.annotations).problems
        if problems:
            what = f"Annotation {EVICTIONS_PER_SECOND}: {'; '.join(problems)}"
            then = "Taints that it does not name evict 10 pods a second until it is corrected or removed"
            await self._recorder.warning(node, BAD_RATE, f"{what}. {then}")

    async def _write(self, node: Node, condition: NodeCondition) -> None:
        now = as_time(self._clock.now())
        timed = replace(condition, last_transition_time=now, last_heartbeat_time=now)
        patch = {"status": {"conditions": [codec.to_builtins(timed)]}}
        await self._client.patch(
            NODES, "", node.metadata.name, patch, format=PatchFormat.STRATEGIC, subresource="status"
        )


def _told(node: Node) -> tuple[bool, bool]:
    return is_true(node.status.conditions, EVICTION_HELD), is_true(node.status.conditions, POLICY_FAILED)


def _command(node: Node, holds: Mapping[str, Hold]) -> str:
    names = [confirmation(taint) for taint in node.spec.taints if taint.effect == NO_EXECUTE and taint.key in holds]
    value = ",".join(dict.fromkeys(names))
    return f"kubectl annotate --overwrite node {node.metadata.name} {CONFIRM_ANNOTATION}={value}"
