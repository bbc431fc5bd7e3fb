"""The drivers that are registered on this node, each with one instance or, during an upgrade, two (4381-153).

The newest instance that is connected is used; when it goes, the one before it is used again. A driver without any
connected instance is away: after a while its ResourceSlices are (`slices.SliceWiper`).
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

import grpc
import grpc.aio
import msgspec

from dray.api.backoff import Backoff
from dray.plugins import unix

log = logging.getLogger(__name__)

STOP_SECONDS: Final = 1.0
RECONNECT: Final = Backoff(first=0.1, longest=10.0)
LASTING_SECONDS: Final = 10.0
"""After a connection that lasted longer, the next one is not put off."""


class DriverMissing(Exception):
    """No instance of the driver is registered."""


class RegistrationRefused(Exception):
    """A plugin cannot be registered as it presents itself; the message is what it is told."""


class DriverIdentity(msgspec.Struct, frozen=True):
    """What a plugin said of itself that was found to be good."""

    driver: str
    endpoint: Path
    version: str
    health_version: str | None


class Instance:
    """One registered process of a driver, and the channel to it."""

    def __init__(self, identity: DriverIdentity, on_change: Callable[[Instance], None]) -> None:
        self.identity = identity
        self.driver = identity.driver
        self.channel = unix.channel(identity.endpoint)
        self.connected = False
        self._on_change = on_change
        self._watch = asyncio.get_running_loop().create_task(self._follow())

    async def _follow(self) -> None:
        """Keeps the channel connected and notes whether it is. Who hangs up again and again is called back later."""
        loop, pauses, since = asyncio.get_running_loop(), RECONNECT.pauses(), 0.0
        while True:
            state = self.channel.get_state(try_to_connect=True)
            connected = state is grpc.ChannelConnectivity.READY
            if connected != self.connected:
                self.connected = connected
                self._on_change(self)
                if connected:
                    since = loop.time()
                else:
                    if loop.time() - since > LASTING_SECONDS:
                        pauses.reset()
                    await asyncio.sleep(pauses.next())
                    continue
            await self.channel.wait_for_state_change(state)

    async def close(self) -> None:
        """Ends the connection; calls under way fail."""
        self._watch.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await self._watch
        await self.channel.close(STOP_SECONDS)


class Drivers:
    """All registered instances by driver, the newest last. `on_change` hears the name of a driver that came or went."""

    def __init__(self) -> None:
        self._instances: dict[str, list[Instance]] = {}
        self._listeners: list[Callable[[str], None]] = []

    def on_change(self, listener: Callable[[str], None]) -> None:
        """Registers a listener. It is called on every change of a driver's instances or their connections."""
        self._listeners.append(listener)

    def __iter__(self) -> Iterator[str]:
        return iter(list(self._instances))

    def instance(self, driver: str) -> Instance:
        """The instance to call. Raises DriverMissing."""
        instances = self._instances.get(driver)
        if not instances:
            raise DriverMissing(f"DRA driver {driver} is not registered")
        return next((one for one in reversed(instances) if one.connected), instances[-1])

    def is_connected(self, driver: str) -> bool:
        """Whether some instance of a driver can be reached."""
        return any(one.connected for one in self._instances.get(driver, ()))

    def check(self, identity: DriverIdentity) -> None:
        """Raises RegistrationRefused for an endpoint that is taken: one process cannot be two drivers, or one twice."""
        for instances in self._instances.values():
            for one in instances:
                if one.identity.endpoint == identity.endpoint:
                    raise RegistrationRefused(
                        f"endpoint {identity.endpoint} already registered for DRA driver plugin {one.driver}"
                    )

    def add(self, identity: DriverIdentity) -> Instance:
        """Registers a checked instance: from now on it is the one to use, once it is connected."""
        self.check(identity)
        instance = Instance(identity, self._connection_changed)
        self._instances.setdefault(identity.driver, []).append(instance)
        log.info("DRA driver %s registered at %s (%s)", identity.driver, identity.endpoint, identity.version)
        self._tell(identity.driver)
        return instance

    async def remove(self, instance: Instance) -> None:
        """An instance is gone, or about to be."""
        instances = self._instances.get(instance.driver, [])
        if instance in instances:
            instances.remove(instance)
            if not instances:
                del self._instances[instance.driver]
            log.info("DRA driver %s unregistered from %s", instance.driver, instance.identity.endpoint)
            self._tell(instance.driver)
        await instance.close()

    async def close(self) -> None:
        """Ends all connections, as the agent ends; the drivers stay registered in their own eyes."""
        instances = [one for many in self._instances.values() for one in many]
        self._instances.clear()
        await asyncio.gather(*(one.close() for one in instances))

    def _connection_changed(self, instance: Instance) -> None:
        log.info("DRA driver %s %s", instance.driver, "connected" if instance.connected else "lost its connection")
        self._tell(instance.driver)

    def _tell(self, driver: str) -> None:
        for listener in self._listeners:
            listener(driver)
