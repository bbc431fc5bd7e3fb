"""Warnings about selectors of rules and patches that fail on devices (SVS-12, 5027-33)."""

from __future__ import annotations

import asyncio
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
        self._current: set[tuple[str, str, str, str]] = set()
        self._news = asyncio.Event()

    def note(self, problems: Iterable[Problem]) -> None:
        """These are the problems now. `run` tells of them: nobody waits until it has."""
        self._current = {(each.kind, each.name, each.reason, each.message) for each in problems}
        self._news.set()

    async def run(self) -> None:
        """Tells until cancelled."""
        while True:
            await self._news.wait()
            self._news.clear()
            await self._tell(self._current)

    async def _tell(self, current: set[tuple[str, str, str, str]]) -> None:
        self._told &= current
        for kind, name, reason, message in sorted(current - self._told):
            self._told.add((kind, name, reason, message))
            obj = self._informers[kind].get("", name)
            if obj is not None:
                await self._recorder.warning(obj, reason, message)
            if self._news.is_set():
                break  # what is left may be no problem any more
