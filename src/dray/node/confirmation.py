"""After a restart of the agent, drivers prepare again what they had prepared (4381-174).

A driver may have been restarted, too, or may have lost what it knew; preparing again costs it nothing if not. Running
pods are not held up by it.
"""

from __future__ import annotations

import asyncio
import logging
from typing import Final

from dray.api.backoff import Backoff
from dray.node.claim_record import PREPARE
from dray.node.claim_work import ClaimsNotReady, ClaimWork
from dray.node.drivers import Drivers
from dray.process.tasks import cancel_all
from dray.reconcile import Clock

log = logging.getLogger(__name__)

RETRY: Final = Backoff(first=1.0, longest=60.0)


class Confirmation:
    """Waits for each driver of the checkpoint to be connected, and has it prepare its claims once more."""

    def __init__(self, work: ClaimWork, drivers: Drivers, clock: Clock) -> None:
        """To be made before drivers register: what is in the book now is what there was before the restart."""
        self._work = work
        self._drivers = drivers
        self._clock = clock
        self._open: dict[str, set[str]] = {}
        for record in work.book:
            for driver, part in record.drivers.items():
                if part.prepared and part.needs(PREPARE) and not record.unpreparing:
                    self._open.setdefault(driver, set()).add(record.uid)
        self._tasks: dict[str, asyncio.Task[None]] = {}
        drivers.on_change(self._driver_changed)

    async def close(self) -> None:
        """Stops."""
        await cancel_all(self._tasks.values())

    def _driver_changed(self, driver: str) -> None:
        if driver in self._open and driver not in self._tasks and self._drivers.is_connected(driver):
            self._tasks[driver] = asyncio.get_running_loop().create_task(self._confirm(driver))

    async def _confirm(self, driver: str) -> None:
        pauses = RETRY.pauses()
        uids = self._open.pop(driver)
        while uids:
            records = [record for record in self._work.book if record.uid in uids]
            try:
                problems = await self._work.confirm(driver, records)
            except ClaimsNotReady as error:
                problems = dict.fromkeys(uids, str(error))
            for problem in dict.fromkeys(problems.values()):
                log.warning("after the restart: %s", problem)
            uids &= problems.keys()
            if uids:
                await self._clock.sleep(pauses.next())
