"""How many pods each rule still has to evict, in which namespaces, and how many it has evicted."""

from __future__ import annotations

from collections import Counter
from typing import NamedTuple

from dray.api.references import ObjectRef
from dray.eviction.causes import Causes, TaintKey


class Progress(NamedTuple):
    """How far the eviction for one rule is, since this process started."""

    pending: int = 0
    namespaces: int = 0
    evicted: int = 0
    waiting: int = 0
    """Of the pending ones, those that a policy puts off."""
    kept: int = 0
    """Not pending, because a policy keeps them."""


class Tally:
    """Counts by rule name, kept up to date so that asking costs nothing. `changed` collects rules to report on."""

    def __init__(self) -> None:
        self._rules: dict[str, TaintKey] = {}
        self._pending: dict[str, Counter[str]] = {}
        self._evicted: Counter[str] = Counter()
        self.changed: set[str] = set()

    def set_rule(self, name: str, key: TaintKey | None) -> None:
        """The rule of a name, as causes know it; None if it is gone. One of the same name starts from zero."""
        if self._rules.get(name) != key:
            self._evicted.pop(name, None)
        if key is None:
            self._rules.pop(name, None)
            self.changed.discard(name)
        else:
            self._rules[name] = key

    def progress(self, rule: str) -> Progress:
        """The counts of a rule."""
        pending = self._pending.get(rule, Counter())
        return Progress(pending.total(), len(pending), self._evicted[rule])

    def move(self, pod: ObjectRef, before: Causes, after: Causes) -> None:
        """The causes for a pod to leave have changed, from or to none if it is new or gone."""
        old, new = _rules(before), _rules(after)
        for rule in old - new:
            counts = self._pending[rule]
            counts[pod.namespace] -= 1
            if not counts[pod.namespace]:
                del counts[pod.namespace]
            if not counts:
                del self._pending[rule]
        for rule in new - old:
            self._pending.setdefault(rule, Counter())[pod.namespace] += 1
        self.changed |= old ^ new

    def evicted(self, causes: Causes) -> None:
        """A pod was deleted that had to leave for these causes."""
        rules = {cause.rule for cause in causes.values() if cause.rule and self._rules.get(cause.rule) == cause.taint}
        self._evicted.update(rules)
        self.changed |= rules

    def touch(self, causes: Causes) -> None:
        """Something else is to be said about the rules of these causes."""
        self.changed |= _rules(causes)


def _rules(causes: Causes) -> set[str]:
    return {cause.rule for cause in causes.values() if cause.rule is not None}
