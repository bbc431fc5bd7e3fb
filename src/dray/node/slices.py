"""ResourceSlices of drivers that are not here are removed, so that nobody gets devices which nobody can prepare.

All slices of the node go when the agent starts (4381-154), those of a driver when it has been away for a while
(4381-155, SVS-56): unregistered, or registered and not connected. Whoever is there publishes again.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from typing import Final, Protocol

from dray.api.backoff import Backoff
from dray.api.kinds import SLICES
from dray.api.registry import Kind
from dray.api.status import ApiError
from dray.client import Client
from dray.node.drivers import Drivers
from dray.process.tasks import cancel_all
from dray.reconcile import Clock

log = logging.getLogger(__name__)

DEFAULT_DELAY: Final = 30.0
RETRY: Final = Backoff(first=0.5, longest=30.0)


class NodeClient(Client, Protocol):
    """A client that can delete collections, too."""

    async def delete_collection(self, kind: Kind, namespace: str = "", *, labels: str = "", fields: str = "") -> None:
        """Deletes all objects that selectors select. Raises ApiError."""
        ...


class SliceWiper:
    """Follows drivers as they come and go. Deletes until it succeeds, through errors and restarts of the server."""

    def __init__(
        self, client: NodeClient, node: str, drivers: Drivers, clock: Clock, delay: float = DEFAULT_DELAY
    ) -> None:
        self._client = client
        self._node = node
        self._drivers = drivers
        self._clock = clock
        self._delay = delay
        self._pending: dict[str, asyncio.Task[None]] = {}
        drivers.on_change(self._driver_changed)

    async def run(self) -> None:
        """Wipes all slices of the node, then waits for drivers to stay away, until cancelled."""
        try:
            await self._wipe("")
            await asyncio.get_running_loop().create_future()
        finally:
            await cancel_all(self._pending.values())

    def _driver_changed(self, driver: str) -> None:
        away = not self._drivers.is_connected(driver)
        pending = self._pending.get(driver)
        if away and pending is None:
            self._pending[driver] = asyncio.get_running_loop().create_task(self._wipe_later(driver))
        elif not away and pending is not None:
            pending.cancel()
            del self._pending[driver]

    async def _wipe_later(self, driver: str) -> None:
        await self._clock.sleep(self._delay)
        await self._wipe(driver)
        self._pending.pop(driver, None)

    async def _wipe(self, driver: str) -> None:
        fields = f"spec.nodeName={self._node}" + (f",spec.driver={driver}" if driver else "")
        pauses = RETRY.pauses()
        while True:
            try:
                await self._client.delete_collection(SLICES, fields=fields)
            except (ApiError, OSError, TimeoutError) as error:
                log.warning("cannot delete ResourceSlices with %s: %s; trying again", fields, error)
            else:
                log.info("deleted ResourceSlices with %s", fields)
                return
            with contextlib.suppress(TimeoutError):
                await self._clock.sleep(pauses.next())
