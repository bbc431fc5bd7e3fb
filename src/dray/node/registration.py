"""How a plugin gets registered: it is asked who it is, checked, and told what came of it.

dial ─▶ GetInfo ─▶ check type, name, endpoint, versions ─▶ drivers.add ─▶ NotifyRegistrationStatus(true)
                        └── no: NotifyRegistrationStatus(false, why), and again later and later
"""

from __future__ import annotations

import stat
from pathlib import Path
from typing import Final

import grpc
import grpc.aio

from dray.api import names
from dray.files import Directory
from dray.node.drivers import DriverIdentity, Drivers, Instance, RegistrationRefused
from dray.plugins import contracts, unix
from dray.plugins.generated import registration_pb2 as messages

INFO_SECONDS: Final = 5.0
NOTIFY_SECONDS: Final = 5.0
LONGEST_DETAILS: Final = 512


class RegistrationFailed(Exception):
    """The plugin could not be asked. It is tried again later."""


async def register(socket: Path, drivers: Drivers) -> Instance:
    """Registers the plugin that listens on a socket. Raises RegistrationRefused or RegistrationFailed."""
    channel = unix.channel(socket)
    try:
        info = await _call(channel, contracts.GET_INFO, messages.InfoRequest(), INFO_SECONDS)
        try:
            identity = check_info(info, socket)
            check_endpoint(identity.endpoint)
            instance = drivers.add(identity)
        except RegistrationRefused as error:
            await _tell(channel, messages.RegistrationStatus(plugin_registered=False, error=str(error)))
            raise
        try:
            await _tell(channel, messages.RegistrationStatus(plugin_registered=True))
        except BaseException:  # also when the socket goes away meanwhile, which cancels this
            await drivers.remove(instance)
            raise
        return instance
    finally:
        await channel.close()


def check_info(info: messages.PluginInfo, socket: Path) -> DriverIdentity:
    """What a plugin says of itself, if a node can work with it. Raises RegistrationRefused."""
    if info.type not in contracts.PLUGIN_TYPES:
        raise RegistrationRefused(f"plugin type {info.type[:64]!r} is not one of {', '.join(contracts.PLUGIN_TYPES)}")
    problems = names.validate_driver_name(info.name)
    if problems:
        raise RegistrationRefused(f"driver name {info.name[:64]!r}: {problems[0]}")
    endpoint = Path(info.endpoint) if info.endpoint else socket
    if not endpoint.is_absolute() or ".." in endpoint.parts or "\0" in info.endpoint:
        raise RegistrationRefused(f"endpoint {info.endpoint[:128]!r} of driver {info.name} is not an absolute path")
    supported = tuple(info.supported_versions)
    version = contracts.choose_dra_version(supported)
    if version is None:
        known = ", ".join(contracts.DRA_SERVICES)
        offered = ", ".join(repr(one[:64]) for one in supported[:8]) or "none"
        raise RegistrationRefused(f"driver {info.name} offers {offered}; the node needs one of {known}")
    return DriverIdentity(info.name, endpoint, version, contracts.choose_health_version(supported))


def check_endpoint(path: Path) -> None:
    """Raises RegistrationRefused for a path where something else than a socket of a trusted user is, or could come."""
    try:
        with Directory.open(path.parent) as directory:
            found = directory.status(path.name)
    except OSError as error:
        raise RegistrationRefused(f"endpoint {path}: {error.filename}: {error.strerror}") from None
    if found is not None and not stat.S_ISSOCK(found.st_mode):
        raise RegistrationRefused(f"endpoint {path} is not a socket")


async def _tell(channel: grpc.aio.Channel, status: messages.RegistrationStatus) -> None:
    """A plugin that was refused may answer with an error of its own: that is no news."""
    try:
        await _call(channel, contracts.NOTIFY, status, NOTIFY_SECONDS)
    except RegistrationFailed:
        if status.plugin_registered:
            raise


async def _call(
    channel: grpc.aio.Channel, method: contracts.Method[contracts.Q, contracts.A], request: contracts.Q, seconds: float
) -> contracts.A:
    try:
        answer: contracts.A | None = await contracts.call(channel, method, request, timeout=seconds)
    except grpc.aio.AioRpcError as error:
        details = (error.details() or "")[:LONGEST_DETAILS]
        raise RegistrationFailed(f"{method.name}: {error.code().name}: {details}") from None
    if answer is None:  # which is how gRPC hands on what it could not decode
        raise RegistrationFailed(f"{method.name}: the answer is not what the protocol says")
    return answer
