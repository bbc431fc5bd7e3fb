"""The devices that a driver has found, as of the last look."""

from __future__ import annotations

import logging

from dray.driver.calls import Calls
from dray.driver.devices import Device
from dray.driver.errors import DriverError
from dray.driver.pools import Pool, group

log = logging.getLogger(__name__)


class Inventory:
    """What there is. A look that fails leaves it as it was."""

    def __init__(self, calls: Calls, default_pool: str) -> None:
        self._calls = calls
        self._default_pool = default_pool
        self._devices: dict[tuple[str, str], Device] = {}
        self._problem = ""
        self.pools: dict[str, Pool] | None = None
        """None until the first look has succeeded."""

    async def look(self) -> bool:
        """Asks the driver; whether it could say. A problem is logged when it starts, not each time."""
        try:
            devices, counters = await self._calls.discover()
            pools = group(devices, counters, self._default_pool)
        except DriverError as error:
            if str(error) != self._problem:
                log.error("cannot tell which devices there are: %s", error)
            self._problem = str(error)
            return False
        self._problem = ""
        self._devices = {(device.pool or self._default_pool, device.name): device for device in devices}
        self.pools = pools
        return True

    async def find(self, pool: str, name: str) -> Device:
        """A device that is there now. Raises DriverError if it is not: a pod must not start without it (4381-171)."""
        device = self._devices.get((pool, name))
        if device is None:
            await self.look()
            device = self._devices.get((pool, name))
        if device is None:
            raise DriverError(f'device "{name}" of pool "{pool}" is not there; try again when it is back')
        return device
