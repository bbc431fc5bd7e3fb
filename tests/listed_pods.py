"""Pods, and who lists and watches them without a server."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

from dray.api.generated.core import Pod
from dray.api.meta import ObjectMeta
from dray.api.registry import by_kind
from dray.client import ObjectList, WatchEvent

PODS = by_kind("v1", "Pod")


def pod(number: int, revision: int = 1, name: str = "") -> Pod:
    meta = ObjectMeta(name=name or f"pod-{number}", namespace="ns", uid=f"u{number}", resource_version=str(revision))
    return Pod(kind="Pod", api_version="v1", metadata=meta)


class Much:
    """A list and a watch that have everything ready at once."""

    def __init__(self, listed: list[Pod], watched: list[Pod]) -> None:
        self.listed, self.watched = listed, watched

    async def list(self, *_: Any, **__: Any) -> ObjectList:
        return ObjectList(tuple(self.listed), "100")

    async def watch(self, *_: Any, **__: Any) -> AsyncIterator[WatchEvent]:
        for one in self.watched:
            yield WatchEvent("MODIFIED", one)
        await asyncio.Event().wait()
