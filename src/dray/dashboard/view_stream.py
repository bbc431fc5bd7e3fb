"""Views that are sent whole, again whenever they are different."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from typing import Any, Final, TypeAlias

from dray.dashboard.answers import encode
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
    last = b""
    while not viewer.is_outdated:
        version = viewer.version
        began = time.perf_counter()
        try:
            line = encode({"type": "view", "view": await VIEWS[name](viewer, parameters)}) + b"\n"
        except NoSuchThing as error:
            line = encode({"type": "gone", "error": str(error)}) + b"\n"
        if line != last:
            last = line
            yield line
        await asyncio.sleep(max(CALM_SECONDS, SHARE * (time.perf_counter() - began)))
        pause = HUB_SECONDS if name == "hub" else HEARTBEAT_SECONDS
        if not await viewer.changed(version, pause):
            yield b'{"type":"alive"}\n'
    yield b'{"type":"again"}\n'
