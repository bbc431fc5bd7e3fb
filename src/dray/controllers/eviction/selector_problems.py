"""Warnings about selectors of rules and patches that fail on devices (SVS-12, 5027-33)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from dray.client import Informer
from dray.reconcile import EventRecorder
from dray.tracker import Problem


class SelectorProblems:
    """Tells of each problem once, on the object that has it."""

    def __init__(self, recorder: EventRecorder, *informers: Informer[Any]) -> None:
        """`informers` have the objects."""
        self._recorder = recorder
        self._informers: Mapping[str, Informer[Any]] = {informer.kind.kind: informer for informer in informers}
        self._told: set[tuple[str, str, str, str]] = set()

    async def tell(self, problems: Iterable[Problem]) -> None:
        """These are the problems now."""
        current = {(each.kind, each.name, each.reason, each.message) for each in problems}
        new, self._told = current - self._told, current
        for kind, name, reason, message in sorted(new):
            obj = self._informers[kind].get("", name)
            if obj is not None:
                await self._recorder.warning(obj, reason, message)
