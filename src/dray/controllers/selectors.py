"""Who of many selects a pod: selectors of workloads, jobs and budgets, each read once.

pod changed ─▶ `tell` ─┬─ a few in its namespace ──▶ those that select it, at once
                       └─ many ──▶ `run`: a part at a time, for all pods that changed meanwhile; then a rest

Whoever may make pods and budgets in a namespace can make thousands of both, and each pod is about each budget.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import Any, Final

from dray.api.labels import LabelSelector
from dray.api.references import ObjectName
from dray.process.clock import Clock
from dray.reconcile.effort import LONGEST_REST, REST

FEW: Final = 50
"""Selectors of a namespace that are asked within the event."""
AT_ONCE: Final = 500
"""How often selectors are asked before others get a turn of the loop."""
MOST_LABELS: Final = 20
"""Pods with different labels that are told apart. When more wait, all are looked at whom any pod may be about."""

Read = Callable[[Any], LabelSelector | None]
Labels = Mapping[str, str]


class Selectors:
    """The selectors of objects of a kind that have them as `spec.selector`; `add` is told who has to be looked at."""

    def __init__(self, read: Read, add: Callable[[ObjectName], None], clock: Clock) -> None:
        """`read` gives the selector of an object; None if it selects nothing."""
        self._read = read
        self._add = add
        self._clock = clock
        self._by_namespace: dict[str, dict[ObjectName, LabelSelector]] = {}
        self._waiting: dict[str, dict[frozenset[tuple[str, str]], Labels]] = {}
        self._news = asyncio.Event()

    def follow(self, old: Any, new: Any) -> None:
        """An object came, changed or went."""
        if old is not None and new is not None and old.spec.selector == new.spec.selector:
            return
        name = ObjectName.of(old if new is None else new)
        selector = None if new is None else self._read(new)
        there = self._by_namespace.setdefault(name.namespace, {})
        if selector is not None and not selector.matches_nothing:
            there[name] = selector
        else:
            there.pop(name, None)
        if not there:
            del self._by_namespace[name.namespace]

    def tell(self, namespace: str, *labels: Labels) -> None:
        """A pod with these labels, now or before, came, changed or went."""
        known = self._by_namespace.get(namespace)
        if known is None:
            return
        if len(known) <= FEW:
            for name, selector in known.items():
                if any(map(selector.matches, labels)):
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
        are_all = len(labels) > MOST_LABELS
        asked = 0
        for name, selector in list(self._by_namespace.get(namespace, {}).items()):
            if are_all or any(map(selector.matches, labels)):
                self._add(name)
            asked += 1 if are_all else len(labels)
            if asked >= AT_ONCE:
                asked = 0
                await asyncio.sleep(0)
