"""Views that are sent whole, again whenever they are different."""

from __future__ import annotations

import asyncio
import hashlib
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from typing import Any, Final, TypeAlias

from dray.dashboard.answers import encode_in_parts
from dray.live import documents
from dray.live.documents import NoSuchThing, Parameters
from dray.live.viewer import Viewer

HEARTBEAT_SECONDS: Final = 15.0
CALM_SECONDS: Final = 0.5
SHARE: Final = 30
HUB_SECONDS: Final = 5.0

Make: TypeAlias = Callable[[Viewer, Parameters], Awaitable[Any]]

VIEWS: Final[Mapping[str, Make]] = {
    "waiting": documents.claims_and_pods,
    "rules": documents.rules,
    "timeline": documents.history,
    "device": documents.device,
    "hub": documents.fleet_of_clusters,
}


async def follow(viewer: Viewer, name: str, parameters: Parameters) -> AsyncIterator[bytes]:
    """A view as lines of JSON, one whenever it is different; `again` when the viewer's rights have changed."""
    last: object = None
    while not viewer.is_outdated:
        version = viewer.version
        began = time.perf_counter()
        try:
            told = {"type": "view", "view": await VIEWS[name](viewer, parameters)}
        except NoSuchThing as error:
            told = {"type": "gone", "error": str(error)}
        line, digest = await asyncio.to_thread(_line, told)
        del told
        if digest != last:
            last = digest
            yield line
        del line
        await asyncio.sleep(max(CALM_SECONDS, SHARE * (time.perf_counter() - began)))
        pause = HUB_SECONDS if name == "hub" else HEARTBEAT_SECONDS
        if not await viewer.changed(version, pause):
            yield b'{"type":"alive"}\n'
    yield b'{"type":"again"}\n'


def _line(told: dict[str, Any]) -> tuple[bytes, bytes]:
    """A line, and what it is known by: it is not kept for as long as nothing changes."""
    line = encode_in_parts(told) + b"\n"
    return line, hashlib.sha256(line).digest()
