"""Who of many selects a pod: selectors of workloads, jobs and budgets, each read once.

pod changed ─▶ `tell`: those that ask for one of its labels ─┬─ a few ──▶ those that select it, at once
                                                             └─ many ──▶ `run`: a part at a time, for all pods
                                                                         that changed meanwhile; then a rest

Whoever may make pods and budgets in a namespace can make thousands of both, and each pod is about each budget.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping
from itertools import chain
from typing import Any, Final

from dray.api.labels import LabelSelector, Requirement
from dray.api.references import ObjectName
from dray.process.clock import Clock
from dray.reconcile.effort import LONGEST_REST, REST

FEW: Final = 50
"""Selectors that may select a pod and are asked within the event."""
FEW_VALUES: Final = 8
"""A selector that is content with more values of each label is asked about every pod."""
AT_ONCE: Final = 500
"""How often selectors are asked before others get a turn of the loop."""
MOST_LABELS: Final = 20
"""Pods with different labels that are told apart. When more wait, all are looked at whom any pod may be about."""

Read = Callable[[Any], LabelSelector | None]
Labels = Mapping[str, str]
Label = tuple[str, str]


class _Namespace:
    """The selectors of a namespace, by a label that pods need."""

    def __init__(self) -> None:
        self.selectors: dict[ObjectName, LabelSelector] = {}
        self._needs: dict[ObjectName, tuple[Label | None, ...]] = {}
        self._by_label: dict[Label | None, dict[ObjectName, None]] = {}
        """By None those that need none of a few."""

    def put(self, name: ObjectName, selector: LabelSelector) -> None:
        self.drop(name)
        self.selectors[name] = selector
        self._needs[name] = needs = self._best(selector.requirements)
        for label in needs:
            self._by_label.setdefault(label, {})[name] = None

    def drop(self, name: ObjectName) -> None:
        if self.selectors.pop(name, None) is None:
            return
        for label in self._needs.pop(name):
            del self._by_label[label][name]
            if not self._by_label[label]:
                del self._by_label[label]

    def asking_for(self, labels: Iterable[Labels], limit: int | None = None) -> list[ObjectName] | None:
        """Those that may select pods with any of these labels, each once; None if they are more than a limit."""
        wanted = dict.fromkeys(chain((None,), *(one.items() for one in labels)))
        found = [there for label in wanted if (there := self._by_label.get(label))]
        if limit is not None and sum(map(len, found)) > limit:
            return None
        return list(dict.fromkeys(chain.from_iterable(found)))

    def _best(self, requirements: Iterable[Requirement]) -> tuple[Label | None, ...]:
        """The labels of which a pod needs one, of those that tell pods apart best: few others ask for them."""
        choices = [
            tuple((one.key, value) for value in dict.fromkeys(one.values))
            for one in requirements
            if one.operator == "In" and len(one.values) <= FEW_VALUES
        ]
        return min(choices, key=self._commonness, default=(None,))

    def _commonness(self, labels: tuple[Label, ...]) -> int:
        return sum(1 + len(self._by_label.get(label, ())) for label in labels)


class Selectors:
    """The selectors of objects of a kind that have them as `spec.selector`; `add` is told who has to be looked at."""

    def __init__(self, read: Read, add: Callable[[ObjectName], None], clock: Clock) -> None:
        """`read` gives the selector of an object; None if it selects nothing."""
        self._read = read
        self._add = add
        self._clock = clock
        self._by_namespace: dict[str, _Namespace] = {}
        self._waiting: dict[str, dict[frozenset[tuple[str, str]], Labels]] = {}
        self._news = asyncio.Event()

    def follow(self, old: Any, new: Any) -> None:
        """An object came, changed or went."""
        if old is not None and new is not None and old.spec.selector == new.spec.selector:
            return
        name = ObjectName.of(old if new is None else new)
        selector = None if new is None else self._read(new)
        there = self._by_namespace.setdefault(name.namespace, _Namespace())
        if selector is not None and not selector.matches_nothing:
            there.put(name, selector)
        else:
            there.drop(name)
        if not there.selectors:
            del self._by_namespace[name.namespace]

    def tell(self, namespace: str, *labels: Labels) -> None:
        """A pod with these labels, now or before, came, changed or went."""
        known = self._by_namespace.get(namespace)
        if known is None:
            return
        few = known.asking_for(labels, FEW)
        if few is not None:
            for name in few:
                if any(map(known.selectors[name].matches, labels)):
                    self._add(name)
            return
        waiting = self._waiting.setdefault(namespace, {})
        if len(waiting) <= MOST_LABELS:
            waiting.update((frozenset(one.items()), one) for one in labels)
        self._news.set()

    async def run(self) -> None:
        """Looks for those that select the pods that wait, until cancelled."""
        while True:
            await self._news.wait()
            self._news.clear()
            for namespace in list(self._waiting):
                began = self._clock.monotonic()
                await self._ask(namespace, list(self._waiting.pop(namespace).values()))
                await self._clock.sleep(min(REST * (self._clock.monotonic() - began), LONGEST_REST))

    async def _ask(self, namespace: str, labels: list[Labels]) -> None:
        known = self._by_namespace.get(namespace)
        if known is None:
            return
        are_all = len(labels) > MOST_LABELS
        asked = 0
        for name in list(known.selectors) if are_all else known.asking_for(labels) or ():
            selector = known.selectors.get(name)
            if selector is None:
                continue  # it is gone meanwhile
            if are_all or any(map(selector.matches, labels)):
                self._add(name)
            asked += 1 if are_all else len(labels)
            if asked >= AT_ONCE:
                asked = 0
                await asyncio.sleep(0)
