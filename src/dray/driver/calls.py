"""Calling a driver's methods, plain or async, so that a slow or broken one harms nobody else."""

from __future__ import annotations

import asyncio
import inspect
import logging
from collections.abc import Callable
from typing import Any

from dray.driver.claims import Claim, ClaimDevice
from dray.driver.devices import CounterSet, Device
from dray.driver.driver import Driver, Edits, Health
from dray.driver.errors import DriverError
from dray.process.own_thread import on_own_thread

log = logging.getLogger(__name__)


class Calls:
    """The methods of a driver as coroutines. Whatever they raise comes out as DriverError."""

    def __init__(self, driver: Driver) -> None:
        self._driver = driver
        self._slots = asyncio.Semaphore(max(driver.concurrency, 1))

    async def discover(self) -> tuple[list[Device], list[CounterSet]]:
        """The devices and shared counters that are there now."""
        devices = await self._collect(self._driver.discover, Device)
        return devices, await self._collect(self._driver.counters, CounterSet)

    async def health(self) -> list[Health]:
        """How the devices are doing."""
        return await self._collect(self._driver.health, Health)

    async def prepare(self, claim: Claim, device: ClaimDevice) -> Edits | None:
        """Makes a device ready."""
        edits = await self._call(self._driver.prepare, claim, device)
        if edits is not None and not isinstance(edits, Edits):
            raise DriverError(f"prepare returned {type(edits).__name__}; it must return Edits or None")
        return edits

    async def unprepare(self, claim: Claim) -> None:
        """Undoes that."""
        await self._call(self._driver.unprepare, claim)

    async def _collect(self, method: Callable[[], Any], kind: type) -> list[Any]:
        if inspect.isasyncgenfunction(method):

            async def collect() -> list[Any]:
                return [item async for item in method()]

            items = await self._call(collect)
        elif inspect.iscoroutinefunction(method):
            items = list(await self._call(method))
        else:
            # A generator does its work when it is read; that must happen on the thread.
            items = await self._call(lambda: list(method()))
        found: list[Any] = items
        for item in found:
            if not isinstance(item, kind):
                raise DriverError(f"{method.__name__} gave {item!r}, which is no {kind.__name__}")
        return found

    async def _call(self, method: Callable[..., Any], *arguments: Any) -> Any:
        try:
            if inspect.iscoroutinefunction(method):
                return await method(*arguments)
            async with self._slots:
                return await on_own_thread(method, *arguments)
        except DriverError:
            raise
        except Exception as error:
            log.exception("%s failed", getattr(method, "__qualname__", method))
            raise DriverError(f"{type(error).__name__}: {error}") from error
