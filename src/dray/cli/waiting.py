"""Waiting for an eviction to end, with something to look at."""

from __future__ import annotations

import asyncio
import sys
import time
from typing import TYPE_CHECKING, Any

import msgspec

from dray.cli import output
from dray.cli.eviction_display import Display
from dray.cli.eviction_watch import DeviceWatch, NodeWatch, Standing, follow
from dray.cli.taint_options import Manner
from dray.eviction import PodRef

if TYPE_CHECKING:
    from dray.snapshot.taint_preview import TaintPreview

PATIENCE_SECONDS = 15.0
"""After this long without a single eviction, somebody should look whether a controller is there to evict."""


def moving_pods(preview: TaintPreview) -> list[PodRef]:
    """The pods that have to leave."""
    if not preview.evicts:
        return []
    places = [(pod.pod.partition("/"), pod.uid) for pod in preview.pods]
    return [PodRef(namespace, name, uid) for (namespace, _, name), uid in places]


class Ending(msgspec.Struct, frozen=True):
    """How the wait ended."""

    standing: Standing
    seconds: float
    is_done: bool

    @property
    def code(self) -> int:
        """The exit code."""
        return output.YES if self.is_done else output.NO

    def to_dict(self) -> dict[str, Any]:
        """For programs."""
        standing = self.standing
        return {
            "done": self.is_done,
            "calledOff": standing.is_called_off,
            "pods": standing.total,
            "evicted": standing.evicted,
            "gone": standing.gone,
            "heldBy": list(standing.held),
            "seconds": round(self.seconds, 1),
        }


async def wait_for(watch: DeviceWatch | NodeWatch, manner: Manner) -> Ending:
    """Waits until all pods are evicted, or until all is idle, or until the time that the user gives it is over."""

    def is_done(standing: Standing) -> bool:
        return standing.is_idle if manner.until_idle else standing.is_evicted

    began = time.monotonic()
    hint = asyncio.get_running_loop().create_task(_hint(watch))
    try:
        with Display(quiet=manner.is_json) as display:
            async with asyncio.timeout(manner.timeout):
                standing = await follow(watch, is_done, display.show)
    except TimeoutError:
        standing = watch.standing()
    finally:
        hint.cancel()
        await watch.stop()
    return Ending(standing, time.monotonic() - began, is_done(standing) and not standing.is_called_off)


async def _hint(watch: DeviceWatch | NodeWatch) -> None:
    await asyncio.sleep(PATIENCE_SECONDS)
    standing = watch.standing()
    if standing.total and not standing.evicted and not standing.hold:
        said = watch.explanation() or "Is the eviction controller running?"
        print(f"dray: nobody was evicted so far. {said}", file=sys.stderr)
