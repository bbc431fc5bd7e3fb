"""The controller: one queue for rules and nodes that carry an expiry."""

from __future__ import annotations

from typing import ClassVar, NamedTuple

from dray.api import codec
from dray.api.generated.core import Node
from dray.api.kinds import NODES, RULES
from dray.api.meta import DeleteOptions, Object, Preconditions
from dray.api.node_annotations import TAINTS_EXPIRE_AT
from dray.api.resource import DeviceTaintRule
from dray.api.resource.rule_annotations import EXPIRES_AT, expiry
from dray.api.status import ApiError
from dray.api.times import Time, TimeError
from dray.controllers.context import Context
from dray.controllers.queue_controller import QueueController
from dray.controllers.taint_expiry.node_taints import plan
from dray.process.clock import as_time

LONGEST_SLEEP = 30.0
"""Seconds. The wall clock may be set while we wait; looking again now and then keeps that from mattering."""


class Carrier(NamedTuple):
    """A rule or a node, by name."""

    kind: str
    name: str


class TaintExpiryController(QueueController[Carrier]):
    """Looks at what has an annotation about its end, when it changes and when that end has come."""

    name: ClassVar[str] = "taint-expiry-controller"

    def __init__(self, context: Context) -> None:
        self._rules = context.informers.of(RULES, DeviceTaintRule)
        self._nodes = context.informers.of(NODES, Node)
        super().__init__(context, self._rules, self._nodes, workers=1)
        self._recorder = context.recorder(self.name)
        self._rules.on_change(self._on_rule)
        self._nodes.on_change(self._on_node)

    def _on_rule(self, _old: DeviceTaintRule | None, new: DeviceTaintRule | None) -> None:
        if new is not None and EXPIRES_AT in new.metadata.annotations:
            self.queue.add(Carrier(new.kind, new.metadata.name))

    def _on_node(self, old: Node | None, new: Node | None) -> None:
        """Heartbeats are no news."""
        if new is None or TAINTS_EXPIRE_AT not in new.metadata.annotations:
            return
        if old is None or old.metadata.annotations != new.metadata.annotations or old.spec != new.spec:
            self.queue.add(Carrier(new.kind, new.metadata.name))

    async def reconcile(self, key: Carrier) -> float | None:
        """Removes what has expired. Returns when to look again."""
        now = as_time(self._clock.now())
        obj: Object | None = None
        try:
            if key.kind == RULES.kind:
                obj = rule = self._rules.get("", key.name)
                end = await self._end_rule(rule, now) if rule is not None else None
            else:
                obj = node = self._nodes.get("", key.name)
                end = await self._end_node_taints(node, now) if node is not None else None
        except TimeError as error:
            assert obj is not None  # who said what is no time
            await self._recorder.warning(obj, "InvalidExpiry", f"The time to remove the taint cannot be read: {error}")
            return None
        except ApiError as error:
            if error.code == 404:
                return None
            raise
        if end is None:
            return None
        return min(max(now.seconds_until(end), 0.0), LONGEST_SLEEP)

    async def _end_rule(self, rule: DeviceTaintRule, now: Time) -> Time | None:
        """Deletes a rule whose time has come, if it still says so; else when that will be."""
        end = expiry(rule)
        if end is None or end > now:
            return end
        meta = rule.metadata
        same = Preconditions(uid=meta.uid, resource_version=meta.resource_version)
        await self._client.delete(RULES, "", meta.name, DeleteOptions(preconditions=same))
        await self._recorder.normal(rule, "Expired", f"Removed the rule, which was to last until {end}")
        return None

    async def _end_node_taints(self, node: Node, now: Time) -> Time | None:
        todo = plan(node, now)
        if todo.taints != node.spec.taints or todo.annotations:
            meta = {"resourceVersion": node.metadata.resource_version, "annotations": todo.annotations}
            taints = codec.to_builtins(todo.taints) or None
            await self._client.patch(NODES, "", node.metadata.name, {"metadata": meta, "spec": {"taints": taints}})
            for name in todo.removed:
                await self._recorder.normal(node, "TaintExpired", f"Removed the taint {name}, whose time was up")
        return todo.next
