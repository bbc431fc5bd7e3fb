"""What a node does with a driver: finds its socket, asks who it is, accepts it, and calls it for claims."""

from __future__ import annotations

import stat
from collections.abc import Iterable
from pathlib import Path
from typing import TypeVar

import grpc
import grpc.aio
import msgspec
from google.protobuf.message import Message

from dray.api.references import ObjectRef
from dray.driver_test.rule import Broken
from dray.plugins import contracts, unix
from dray.plugins.generated import dra_v1_pb2 as dra
from dray.plugins.generated import registration_pb2 as registration

Q = TypeVar("Q", bound=Message)
A = TypeVar("A", bound=Message)


class PreparedDevice(msgspec.Struct, frozen=True):
    """A device in an answer."""

    requests: tuple[str, ...]
    pool: str
    device: str
    cdi_ids: tuple[str, ...]

    def __str__(self) -> str:
        """Pool and device, the requests it is for, and its CDI ids."""
        requests = f" for {', '.join(self.requests)}" if self.requests else ""
        ids = f" as {', '.join(self.cdi_ids)}" if self.cdi_ids else ""
        return f"{self.pool}/{self.device}{requests}{ids}"


class Answer(msgspec.Struct, frozen=True):
    """The answer for one claim: devices, or an error."""

    devices: tuple[PreparedDevice, ...] = ()
    error: str = ""

    def __str__(self) -> str:
        """The devices, or the error."""
        return self.error or "; ".join(map(str, self.devices)) or "no device"


class CallFailed(Exception):
    """A call ended with a status other than OK."""

    def __init__(self, error: grpc.aio.AioRpcError) -> None:
        super().__init__(f"{error.code().name}: {error.details()}")
        self.code: grpc.StatusCode = error.code()


def find_sockets(registry: Path) -> list[Path]:
    """Registration sockets, as a node looks for them: sockets whose name does not start with a dot."""
    return sorted(
        path for path in registry.rglob("*") if not path.name.startswith(".") and stat.S_ISSOCK(path.lstat().st_mode)
    )


class Registration:
    """A node's side of the registration socket."""

    def __init__(self, socket: Path, timeout: float) -> None:
        self.socket = socket
        self._timeout = timeout
        self._channel = unix.channel(socket)

    async def get_info(self) -> registration.PluginInfo:
        """Who the driver is. Raises CallFailed."""
        return await _call(self._channel, contracts.GET_INFO, registration.InfoRequest(), self._timeout)

    async def notify(self, error: str = "") -> None:
        """Tells the driver that it is registered, or why it is not. Raises CallFailed."""
        status = registration.RegistrationStatus(plugin_registered=not error, error=error)
        await _call(self._channel, contracts.NOTIFY, status, self._timeout)

    async def close(self) -> None:
        """Ends the connection."""
        await self._channel.close()


class PluginConnection:
    """A node's side of the DRA socket."""

    def __init__(self, info: registration.PluginInfo, socket: Path, timeout: float) -> None:
        self.driver = info.name
        self.endpoint = Path(info.endpoint) if info.endpoint else socket
        self.versions = tuple(info.supported_versions)
        self._timeout = timeout
        self.channel = unix.channel(self.endpoint)

    @property
    def version(self) -> str:
        """The version to call: the first one of the driver's that is known. Raises Broken if there is none."""
        found = contracts.choose_dra_version(self.versions)
        if found is None:
            known = ", ".join(contracts.DRA_SERVICES)
            raise Broken(f"supported_versions is [{', '.join(self.versions)}]; it must have one of {known}")
        return found

    async def prepare(self, claims: Iterable[ObjectRef], version: str = "") -> dict[str, Answer]:
        """The answers by uid. Raises CallFailed."""
        request = dra.NodePrepareResourcesRequest(claims=[_claim(claim) for claim in claims])
        method = contracts.PREPARE[version or self.version]
        answer = await _call(self.channel, method, request, self._timeout)
        return {uid: Answer(tuple(map(_device, entry.devices)), entry.error) for uid, entry in answer.claims.items()}

    async def unprepare(self, claims: Iterable[ObjectRef], version: str = "") -> dict[str, Answer]:
        """The answers by uid. Raises CallFailed."""
        request = dra.NodeUnprepareResourcesRequest(claims=[_claim(claim) for claim in claims])
        method = contracts.UNPREPARE[version or self.version]
        answer = await _call(self.channel, method, request, self._timeout)
        return {uid: Answer(error=entry.error) for uid, entry in answer.claims.items()}

    async def close(self) -> None:
        """Ends the connection."""
        await self.channel.close()


async def _call(channel: grpc.aio.Channel, method: contracts.Method[Q, A], request: Q, timeout: float) -> A:
    try:
        return await contracts.call(channel, method, request, timeout=timeout)
    except grpc.aio.AioRpcError as error:
        raise CallFailed(error) from None


def _claim(claim: ObjectRef) -> dra.Claim:
    return dra.Claim(namespace=claim.namespace, name=claim.name, uid=claim.uid)


def _device(device: dra.Device) -> PreparedDevice:
    return PreparedDevice(
        tuple(device.request_names), device.pool_name, device.device_name, tuple(device.cdi_device_ids)
    )
