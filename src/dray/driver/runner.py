"""Runs a driver: looks at devices, publishes them, registers with the node and answers it, until told to stop."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Any, Final

import msgspec

from dray.api.names import validate_driver_name
from dray.client import Client
from dray.driver import sockets
from dray.driver.calls import Calls
from dray.driver.checkpoint import Checkpoint
from dray.driver.driver import Driver
from dray.driver.errors import DriverError
from dray.driver.health import HealthReports
from dray.driver.inventory import Inventory
from dray.driver.listener import Listener
from dray.driver.plugin import Plugin, Registration
from dray.driver.preparation import Preparation
from dray.driver.publisher import Publisher
from dray.driver.publishing_right import PublishingRight
from dray.driver.status_writer import StatusWriter
from dray.process.tasks import cancel_all
from dray.reconcile import Clock, RealClock

CDI_DIR: Final = Path("/var/run/cdi")
STOP_SECONDS: Final = 10.0
SOCKET_CHECK_SECONDS: Final = 1.0

log = logging.getLogger(__name__)


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """Where a driver runs. `instance` tells two instances apart that run at once during an update."""

    node: str
    plugin_dir: Path | None = None
    registry_dir: Path = sockets.REGISTRY_DIR
    cdi_dir: Path = CDI_DIR
    instance: str = ""


class Runner:
    """A running driver. Use it as `async with`, or `start`, `wait` and `stop`."""

    def __init__(self, driver: Driver, settings: Settings, client: Client, clock: Clock | None = None) -> None:
        """Raises DriverError for a driver without a usable name, or settings that cannot work."""
        problems = validate_driver_name(driver.name)
        if problems:
            raise DriverError(f'{type(driver).__name__}.name is "{driver.name}"; it {problems[0]}')
        if not settings.node:
            raise DriverError("the name of the node is needed: give --node-name, or set NODE_NAME")
        self._driver = driver
        self._settings = settings
        self._clock = clock or RealClock()
        self._plugin_dir = settings.plugin_dir or sockets.PLUGINS_DIR / driver.name
        self.endpoint = sockets.dra_socket(self._plugin_dir.absolute(), settings.instance)
        self.registration_socket = sockets.registration_socket(
            settings.registry_dir.absolute(), driver.name, settings.instance
        )
        self._calls = Calls(driver)
        self._inventory = Inventory(self._calls, settings.node)
        self._reports = HealthReports(settings.node, driver.interval) if driver.reports_health() else None
        self.publisher = Publisher(client, self._clock, driver.name, settings.node, dropped=driver.dropped_fields)
        self.publisher.with_taint_slice = driver.publishes_taints
        self._right = PublishingRight(self._plugin_dir)
        self.publisher.may_write = self._right.is_held
        self._client = client
        self._plugin: Plugin | None = None
        self._status: StatusWriter | None = None
        self._registration: Registration | None = None
        self._listeners: list[Listener] = []
        self._tasks: list[asyncio.Task[Any]] = []
        self._look_now = asyncio.Event()

    async def start(self) -> None:
        """Listens, and starts everything that goes on from there. Raises DriverError. `stop` must follow anyway."""
        loop = asyncio.get_running_loop()
        self._driver.wake = partial(_set_from_any_thread, loop, self._look_now)
        try:
            self._plugin_dir.mkdir(parents=True, exist_ok=True, mode=0o750)
        except OSError as error:
            raise DriverError(f"cannot use {self._plugin_dir} as plugin directory: {error.strerror}") from None
        try:
            self._right.take()
        except OSError as error:
            raise DriverError(f"cannot write to plugin directory {self._plugin_dir}: {error.strerror}") from None
        checkpoint = Checkpoint(self._plugin_dir / "claims")
        preparation = Preparation(
            self._driver, self._calls, self._inventory, self._client, checkpoint, self._settings.cdi_dir
        )
        status = self._status = StatusWriter(self._client, self._clock, self._driver.name, checkpoint, self._reports)
        status.may_write = self.publisher.may_write
        preparation.on_ready, preparation.on_released = status.prepared, status.released
        self._plugin = Plugin(preparation, self._reports)
        self._registration = Registration(self._driver.name, str(self.endpoint), self._plugin.versions)
        # The node may call as soon as it knows of the driver, so the socket that it calls comes first.
        self._listeners = [
            Listener(self.endpoint, self._plugin.handlers()),
            Listener(self.registration_socket, self._registration.handlers()),
        ]
        await self._listeners[0].ensure()
        self._tasks = [
            loop.create_task(self._keep_looking(), name="look"),
            loop.create_task(self.publisher.run(), name="publish"),
            loop.create_task(status.run(), name="claim status"),
            loop.create_task(self._keep_listening(), name="listen"),
        ]
        log.info("driver runs", extra={"fields": {"driver": self._driver.name, "node": self._settings.node}})

    async def wait(self) -> None:
        """Until something goes wrong that cannot be repaired. Raises DriverError."""
        done, _ = await asyncio.wait(self._tasks, return_when=asyncio.FIRST_COMPLETED)
        for task in done:
            task.result()

    async def registered(self) -> None:
        """Until a node has accepted the driver."""
        assert self._registration is not None
        await self._registration.registered.wait()

    async def stop(self) -> None:
        """Lets calls in progress finish, then closes and removes the sockets. Slices stay for the next start."""
        self._driver.wake = None
        await cancel_all(self._tasks)
        self._right.give_up()
        deadline = time.monotonic() + STOP_SECONDS
        # The registration goes first: the node sees that the driver leaves while calls are still answered.
        for listener in reversed(self._listeners):
            await listener.stop(max(deadline - time.monotonic(), 0))
        if self._plugin is not None:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._plugin.drain(), max(deadline - time.monotonic(), 0))

    async def __aenter__(self) -> Runner:
        try:
            await self.start()
        except BaseException:
            await self.stop()
            raise
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.stop()

    async def _keep_looking(self) -> None:
        while True:
            self._look_now.clear()
            if await self._inventory.look() and self._inventory.pools is not None:
                self.publisher.publish(self._inventory.pools)
            await self._look_at_health()
            await self._pause(self._driver.interval)

    async def _look_at_health(self) -> None:
        if self._reports is None:
            return
        try:
            reports = await self._calls.health()
        except DriverError as error:
            log.error("cannot tell how devices are doing: %s", error)
            reports = []
        changed = self._reports.put(reports)
        if self._status is not None:
            self._status.look(changed=changed)

    async def _pause(self, seconds: float) -> None:
        """Until the next look is due, or asked for."""
        sleeping = asyncio.ensure_future(self._clock.sleep(seconds))
        asked = asyncio.ensure_future(self._look_now.wait())
        try:
            await asyncio.wait({sleeping, asked}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            sleeping.cancel()
            asked.cancel()

    async def _keep_listening(self) -> None:
        """Listens in the registry directory once the node has made it, and again wherever a socket is gone."""
        registry = self.registration_socket.parent
        if not registry.is_dir():
            log.warning("waiting for the node to make %s", registry)
        while True:
            for listener in self._listeners:
                if listener.path.parent.is_dir():
                    await listener.ensure()
            await self._clock.sleep(SOCKET_CHECK_SECONDS)


def _set_from_any_thread(loop: asyncio.AbstractEventLoop, event: asyncio.Event) -> None:
    with contextlib.suppress(RuntimeError):  # the loop may have ended by now
        loop.call_soon_threadsafe(event.set)
