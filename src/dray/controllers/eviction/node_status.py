"""Tells on nodes that evictions from them are held and how to confirm them, or that a policy or their rate fails."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

import msgspec
from msgspec.structs import replace

from dray.api import codec
from dray.api.conditions import find_condition, is_true
from dray.api.generated.core import Node, NodeCondition
from dray.api.kinds import NODES
from dray.api.node_annotations import read_rations
from dray.api.resource.rule_annotations import EVICTIONS_PER_SECOND
from dray.api.resource.taint import EFFECT_NO_EXECUTE
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
RETELL_SECONDS: Final = 60.0
"""How long the numbers of what is held may be out of date: a taint may be on a thousand nodes, told each by itself."""


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
        self._told: dict[tuple[str, str], tuple[frozenset[str], float]] = {}
        """By node and condition: of which taints it was told that they are held, and when."""

    def report(self, names: Iterable[str]) -> None:
        """About these nodes something else may be said. Other numbers wait: a thousand nodes may share them."""
        for name in sorted(names):
            self.queue.add_after(ChangedNode(name), self._pause(name))

    def note(self, old: Node | None, new: Node | None) -> None:
        """A node has changed: in what it says of rates, or in what is said here, by a write whose answer was lost."""
        said = [one.metadata.annotations.get(EVICTIONS_PER_SECOND) if one is not None else None for one in (old, new)]
        if new is not None and said[0] != said[1]:
            self.queue.add(RatedNode(new.metadata.name))
        if old is not None and new is not None and _told(old) != _told(new):
            self.queue.add(ChangedNode(new.metadata.name))

    def _pause(self, name: str) -> float:
        """How long what a node says may stay: it says of the same taints, and since a moment, that they are held."""
        taints, at = self._told.get((name, EVICTION_HELD), (None, 0.0))
        may_be_unasked = (name, POLICY_FAILED) in self._told or self._planner.departures.unasked_pods
        if may_be_unasked or taints != frozenset(self._planner.holds(name)):
            return 0.0
        return max(at + RETELL_SECONDS - self._clock.monotonic(), 0.0)

    async def reconcile(self, key: ChangedNode | RatedNode) -> float | None:
        """Tells about one node."""
        node = self._nodes.get("", key.name)
        if node is None:
            for type_ in (EVICTION_HELD, POLICY_FAILED):
                self._told.pop((key.name, type_), None)
            return None
        if isinstance(key, ChangedNode):
            return await self._tell_state(node)
        await self._tell_rate(node)
        return None

    async def _tell_state(self, node: Node) -> float | None:
        """Writes what is held and what has failed now, and an event if that is news. Returns when to look again."""
        holds = self._planner.holds(node.metadata.name)
        held = "; ".join(f"taint {key}: {hold}" for key, hold in holds.items())
        told = f"{held}. To confirm: {_command(node, holds)}" if holds else ""
        what = (REASON_TOO_MANY, REASON_NOT_HELD, "No evictions are held.")
        waits = [await self._tell(node, EVICTION_HELD, (told, frozenset(holds)), what)]
        unasked = self._planner.unasked(node.metadata.name)
        what = (REASON_UNASKED, REASON_ASKED, "No pod is held by a policy that fails.")
        why = "" if unasked is None else str(unasked)
        waits.append(await self._tell(node, POLICY_FAILED, (why, frozenset()), what))
        return min((wait for wait in waits if wait is not None), default=None)

    async def _tell(
        self, node: Node, type_: str, problem: tuple[str, frozenset[str]], reasons: tuple[str, str, str]
    ) -> float | None:
        """Writes a condition: True while there is a problem, False afterwards. Who never had it gets none to say so.

        The problem is what to say, and about which taints: about others it is said at once, in other numbers after a
        while. Returns how long that is.
        """
        known = find_condition(node.status.conditions, type_)
        is_told = known is not None and known.status == "True"
        message, taints = problem
        bad, good, otherwise = reasons
        place, now = (node.metadata.name, type_), self._clock.monotonic()
        if not message:
            self._told.pop(place, None)
            if is_told:
                await self._write(node, NodeCondition(type=type_, status="False", reason=good, message=otherwise))
            return None
        if known is not None and is_told:
            before, at = self._told.get(place, (taints, -RETELL_SECONDS))
            if known.message == message:
                return None
            if before == taints and now - at < RETELL_SECONDS:
                return at + RETELL_SECONDS - now
        self._told[place] = (taints, now)
        since = known.last_transition_time if known is not None and is_told else None
        condition = NodeCondition(type=type_, status="True", reason=bad, message=message, last_transition_time=since)
        await self._write(node, condition)
        if not is_told:
            await self._recorder.warning(node, type_, message)
        return None

    async def _tell_rate(self, node: Node) -> None:
        problems = read_rations(node.metadata.annotations).problems
        if problems:
            what = f"Annotation {EVICTIONS_PER_SECOND}: {'; '.join(problems)}"
            then = "Taints that it does not name evict 10 pods a second until it is corrected or removed"
            await self._recorder.warning(node, BAD_RATE, f"{what}. {then}")

    async def _write(self, node: Node, condition: NodeCondition) -> None:
        now = as_time(self._clock.now())
        timed = replace(condition, last_transition_time=condition.last_transition_time or now, last_heartbeat_time=now)
        patch = {"status": {"conditions": [codec.to_builtins(timed)]}}
        await self._client.patch(
            NODES, "", node.metadata.name, patch, format=PatchFormat.STRATEGIC, subresource="status"
        )


def _told(node: Node) -> tuple[bool, bool]:
    return is_true(node.status.conditions, EVICTION_HELD), is_true(node.status.conditions, POLICY_FAILED)


def _command(node: Node, holds: Mapping[str, Hold]) -> str:
    held = [one for one in node.spec.taints if one.effect == EFFECT_NO_EXECUTE and one.key in holds]
    value = ",".join(dict.fromkeys(map(confirmation, held)))
    return f"kubectl annotate --overwrite node {node.metadata.name} {CONFIRM_ANNOTATION}={value}"
