"""Writes how far each rule is into its status: at once, then at most every ten seconds (SVS-27)."""

from __future__ import annotations

from collections.abc import Iterable
from functools import reduce

from dray.api.resource import DeviceTaintRule
from dray.client import Informer
from dray.controllers.context import Context
from dray.controllers.queue_controller import QueueController
from dray.eviction import Planner
from dray.eviction.rule_condition import plan_condition, plan_held_condition, with_condition
from dray.reconcile import EventRecorder
from dray.reconcile.clock import as_time

PERIOD = 10.0


class RuleStatus(QueueController[str]):
    """Looks at rules by name."""

    name = "device-taint-eviction-controller-rules"

    def __init__(
        self, context: Context, planner: Planner, rules: Informer[DeviceTaintRule], recorder: EventRecorder
    ) -> None:
        super().__init__(context, rules, workers=2)
        self._planner = planner
        self._rules = rules
        self._recorder = recorder
        self._written: dict[str, tuple[tuple[str, int], float]] = {}

    def report(self, names: Iterable[str]) -> None:
        """These rules have changed or made progress."""
        for name in sorted(names):
            self.queue.add_after(name, self._pause(name))

    async def reconcile(self, key: str) -> float | None:
        """Writes the condition of one rule, unless it is right, or was written a moment ago."""
        rule = self._rules.get("", key)
        if rule is None:
            self._written.pop(key, None)
            return None
        pause = self._pause(key)
        if pause > 0:
            return pause
        if not self._is_planned(rule):
            return None  # the planner reports the rule when it knows this spec
        now = as_time(self._clock.now())
        held = plan_held_condition(self._planner, rule, now)
        news = [one for one in (plan_condition(self._planner, rule, now), held) if one is not None]
        if news:
            told = reduce(with_condition, news, rule)
            self._rules.put(await self._client.update(told, subresource="status"))
            if held is not None and held.status == "True":
                await self._recorder.warning(rule, held.type, held.message)
            self._written[key] = (_spec_of(rule), self._clock.monotonic())
        return None

    def _is_planned(self, rule: DeviceTaintRule) -> bool:
        known = self._planner.rules.get(rule.metadata.name)
        return known is not None and known.metadata.uid == rule.metadata.uid and known.spec == rule.spec

    def _pause(self, name: str) -> float:
        """How long to wait before the next write. A changed spec is reported on at once, and so is a rule made anew."""
        rule = self._rules.get("", name)
        spec, written = self._written.get(name, (None, 0.0))
        if rule is None or _spec_of(rule) != spec:
            return 0.0
        return max(written + PERIOD - self._clock.monotonic(), 0.0)


def _spec_of(rule: DeviceTaintRule) -> tuple[str, int]:
    """Tells one spec of a rule from another, also if the rule was deleted and made anew under its name."""
    return rule.metadata.uid, rule.metadata.generation
