"""Waiting for an eviction to end, with something to look at."""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import msgspec

from dray.api.references import ObjectRef
from dray.cli import output, tables
from dray.cli.eviction_display import Display
from dray.cli.taint_options import GOES_ON, Manner
from dray.controllers.eviction.progress import Progress, Standing, follow
from dray.prose.wording import count, names, rest

if TYPE_CHECKING:
    from dray.client import Client
    from dray.what_if.taint_preview import TaintPreview

MAX_REFUSALS = 10
PATIENCE_SECONDS = 15.0
"""After this long without a single eviction, somebody should look whether a controller is there to evict."""


def moving_pods(preview: TaintPreview) -> list[ObjectRef]:
    """The pods that have to leave."""
    if not preview.evicts:
        return []
    places = [(pod.pod.partition("/"), pod.uid) for pod in preview.pods]
    return [ObjectRef(namespace, name, uid) for (namespace, _, name), uid in places]


class Ending(msgspec.Struct, frozen=True):
    """How the wait ended."""

    standing: Standing
    seconds: float
    is_done: bool
    refusals: Mapping[str, str] = {}
    """What the eviction API says of pods that it does not let go, if this drains."""
    drains: bool = False

    @property
    def goes_on(self) -> str:
        """What becomes of those who are left."""
        if self.drains:
            hold = self.standing.hold
            told = f"{hold[0].upper()}{hold[1:]}; then go on" if hold else "Nobody else leaves; go on"
            return f"{told} with the same command, or put back with"
        return "Nobody leaves while it is held; to take it back" if self.standing.hold else GOES_ON

    def tell_others(self) -> str:
        """Who could not leave, and why; and what somebody else changed meanwhile, so that it was not done."""
        told = [f"  {pod}: {why}" for pod, why in sorted(self.refusals.items())[:MAX_REFUSALS]]
        told.extend(rest(len(self.refusals) - MAX_REFUSALS, "pod", tables.REST))
        staying, untainted = self.standing.staying, self.standing.untainted
        if staying:
            word = "stays" if staying == 1 else "stay"
            told.append(f"  {count(staying, 'pod')} {word}: tolerated by now, or not reached by the taint any more.")
        deleted = self.standing.deleted
        if left := [name for name in untainted if name not in deleted]:
            told.append(f"  Called off for {names(left, 5)}: the taint is gone there.")
        if gone := [name for name in untainted if name in deleted]:
            told.append(
                f"  Called off for {names(gone, 5)}: {'the node is' if len(gone) == 1 else 'the nodes are'} gone."
            )
        return "\n".join(told)

    @property
    def code(self) -> int:
        """The exit code."""
        changed = self.standing.untainted or self.standing.staying
        return output.YES if self.is_done and not changed else output.NO

    def tell_rest(self, protected: int, left_alone: int = 0) -> str:
        """Who is still on what is idle; those on nodes that have lost the taint are on none of these."""
        staying = 0 if self.standing.untainted else self.standing.staying
        stay = f"{count(staying, 'pod')} that {'stays' if staying == 1 else 'stay'}" if staying else ""
        tolerate = f"{count(protected, 'pod')} with a toleration" if protected else ""
        belong = f"{count(left_alone, 'DaemonSet or static pod')}" if left_alone else ""
        told = " and ".join(filter(None, (tolerate, belong, stay)))
        return f", but for {told}" if told else ""

    def to_dict(self) -> dict[str, Any]:
        """For programs."""
        standing = self.standing
        return {
            "done": self.code == output.YES,
            "calledOff": standing.is_called_off,
            "pods": standing.total,
            "evicted": standing.evicted,
            "gone": standing.gone,
            "staying": standing.staying,
            "untainted": list(standing.untainted),
            "deletedNodes": list(standing.deleted),
            "heldBy": list(standing.held),
            "refused": dict(self.refusals),
            "atDeadline": standing.forced,
            "seconds": round(self.seconds, 1),
        }


async def wait_for(progress: Progress, manner: Manner, client: Client) -> Ending:
    """Waits until all pods are evicted, or until all is idle, or until the time that the user gives it is over.

    A drain that keeps budgets is carried out meanwhile. Raises ApiError or OSError if that fails.
    """
    from dray.api.status import ApiError
    from dray.controllers.eviction.drainer import Drainer, draining
    from dray.eviction.drain import Drain
    from dray.reconcile import RealClock

    def is_done(standing: Standing) -> bool:
        return standing.is_idle if manner.until_idle else standing.is_evicted

    began = time.monotonic()
    drain = Drain(manner.drain) if manner.drain is not None else None
    drainer = Drainer(client, RealClock(), progress, drain) if drain is not None else None
    hint = asyncio.get_running_loop().create_task(_hint(progress))
    try:
        with Display(quiet=manner.is_json) as display:
            async with asyncio.timeout(manner.timeout), draining(drainer):
                standing = await follow(progress, is_done, display.show)
    except TimeoutError:
        standing = progress.standing()
    except (asyncio.CancelledError, ApiError, OSError):
        told = progress.standing()
        after = "Nobody else leaves, and the taint stays" if drain is not None else "The eviction goes on without it"
        print(f"dray: stopped at {told.evicted} of {count(told.total, 'pod')}. {after}.", file=sys.stderr)
        raise
    finally:
        hint.cancel()
        await progress.stop()
    is_over = is_done(standing) and not standing.is_called_off
    left = set() if drain is None else {ObjectRef.of(pod) for pod, _ in progress.due()}
    refusals = {} if drain is None else {str(ref): why for ref, why in drain.refusals.items() if ref in left}
    return Ending(standing, time.monotonic() - began, is_over, refusals, drains=drain is not None)


async def _hint(progress: Progress) -> None:
    await asyncio.sleep(PATIENCE_SECONDS)
    standing = progress.standing()
    if standing.total and not standing.evicted and not standing.hold and progress.drain is None:
        said = progress.explanation() or "Is the eviction controller running?"
        print(f"dray: nobody was evicted so far. {said}", file=sys.stderr)
