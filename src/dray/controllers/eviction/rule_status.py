"""Writes how far each rule is into its status: at once, then at most every ten seconds (SVS-27)."""

from __future__ import annotations

from collections.abc import Iterable
from functools import reduce

from msgspec.structs import replace

from dray.api.conditions import with_condition
from dray.api.meta import Condition
from dray.api.resource import DeviceTaintRule
from dray.api.status import ApiError
from dray.client import Informer
from dray.controllers.context import Context
from dray.controllers.queue_controller import QueueController
from dray.eviction import DevicePlanner
from dray.eviction.rule_condition import EVICTION_HELD, POLICY_FAILED, plan_conditions
from dray.process.clock import as_time
from dray.reconcile import EventRecorder

PERIOD = 10.0


class RuleStatus(QueueController[str]):
    """Looks at rules by name."""

    name = "device-taint-eviction-controller-rules"

    def __init__(
        self, context: Context, planner: DevicePlanner, rules: Informer[DeviceTaintRule], recorder: EventRecorder
    ) -> None:
        super().__init__(context, rules, workers=2)
        self._planner = planner
        self._rules = rules
        self._recorder = recorder
        self._written: dict[str, tuple[tuple[str, int], float]] = {}
        self._unkept: dict[str, tuple[str, tuple[Condition, ...]]] = {}
        """What was said of rules, by name with uid, that the server has no place for: Kubernetes 1.34 has no status."""
        self._judged: dict[str, tuple[Condition, ...]] = {}
        """What rules are to say, by name, as it was found last."""
        rules.on_change(self._rule_changed)

    def report(self, names: Iterable[str]) -> None:
        """These rules have changed or made progress."""
        for name in sorted(names):
            self.queue.add_after(name, self._pause(name))

    async def reconcile(self, key: str) -> float | None:
        """Writes the condition of one rule, unless it is right, or was written a moment ago."""
        rule = self._rules.get("", key)
        if rule is None:
            self._written.pop(key, None)
            self._unkept.pop(key, None)
            self._judged.pop(key, None)
            return None
        pause = self._pause(key)
        if pause > 0:
            return pause
        if not self._is_planned(rule):
            return None  # the planner reports the rule when it knows this spec
        now = as_time(self._clock.now())
        rule = self._with_unkept(rule)
        news = plan_conditions(self._planner, rule, now)
        self._judged[key] = conditions = reduce(with_condition, news, rule.status.conditions)
        if news:
            await self._tell(_with_conditions(rule, conditions))
            for one in news:
                if one.type in (EVICTION_HELD, POLICY_FAILED) and one.status == "True":
                    await self._recorder.warning(rule, one.type, one.message)
            self._written[key] = (_spec_of(rule), self._clock.monotonic())
        return None

    def _rule_changed(self, _old: DeviceTaintRule | None, new: DeviceTaintRule | None) -> None:
        """Looks again at a rule that says something else than it should.

        A write whose answer was lost is seen only here, maybe after it was found that there is nothing to write.
        """
        if new is not None and self._judged.get(new.metadata.name, new.status.conditions) != new.status.conditions:
            self.report([new.metadata.name])

    async def _tell(self, rule: DeviceTaintRule) -> None:
        try:
            self._rules.put(await self._client.update(rule, subresource="status"))
        except ApiError as error:
            if error.code != 404:
                raise
            self._unkept[rule.metadata.name] = (rule.metadata.uid, rule.status.conditions)
        else:
            self._unkept.pop(rule.metadata.name, None)

    def _with_unkept(self, rule: DeviceTaintRule) -> DeviceTaintRule:
        uid, conditions = self._unkept.get(rule.metadata.name, ("", ()))
        return _with_conditions(rule, conditions) if uid == rule.metadata.uid else rule

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


def _with_conditions(rule: DeviceTaintRule, conditions: tuple[Condition, ...]) -> DeviceTaintRule:
    return replace(rule, status=replace(rule.status, conditions=conditions))


def _spec_of(rule: DeviceTaintRule) -> tuple[str, int]:
    """Tells one spec of a rule from another, also if the rule was deleted and made anew under its name."""
    return rule.metadata.uid, rule.metadata.generation
