"""A claim as a driver sees it: its own devices in the allocation, with the configuration that is meant for each."""

from __future__ import annotations

from typing import Any

import msgspec
from msgspec import field

from dray.api.resource import (
    AllocationResult,
    DeviceAllocationConfiguration,
    DeviceRequestAllocationResult,
    ResourceClaim,
)
from dray.api.resource.claim import SOURCE_CLASS, request_parts


class Config(msgspec.Struct, frozen=True):
    """Opaque parameters for the driver. Only an admin can write those of a class (4381-182)."""

    source: str
    parameters: Any = None

    @property
    def from_class(self) -> bool:
        """Whether an admin chose them, rather than the user."""
        return self.source == SOURCE_CLASS


class ClaimDevice(msgspec.Struct, frozen=True):
    """One device of a claim. `request` is the request it is for, `config` what applies to it, in order.

    `attributes` are those that the driver published, so that `prepare` need not look the device up.
    """

    name: str
    pool: str
    request: str
    subrequest: str = ""
    admin_access: bool = False
    share_id: str = ""
    config: tuple[Config, ...] = ()
    attributes: dict[str, Any] = field(default_factory=dict)


class Claim(msgspec.Struct, frozen=True):
    """A claim, with those of its devices that are this driver's."""

    namespace: str
    name: str
    uid: str
    devices: tuple[ClaimDevice, ...] = ()

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}"

    def allocates_the_same(self, other: Claim) -> bool:
        """Whether both stand for the same devices, for the same requests, configured in the same way."""
        return [_identity(device) for device in self.devices] == [_identity(device) for device in other.devices]


def of_driver(claim: ResourceClaim, allocation: AllocationResult, driver: str) -> Claim:
    """The claim as a driver sees it."""
    meta = claim.metadata
    devices = tuple(
        _device(result, allocation.devices.config, driver)
        for result in allocation.devices.results
        if result.driver == driver
    )
    return Claim(meta.namespace, meta.name, meta.uid, devices)


def _device(
    result: DeviceRequestAllocationResult, config: tuple[DeviceAllocationConfiguration, ...], driver: str
) -> ClaimDevice:
    request, subrequest = request_parts(result.request)
    return ClaimDevice(
        name=result.device,
        pool=result.pool,
        request=request,
        subrequest=subrequest,
        admin_access=bool(result.admin_access),
        share_id=result.share_id or "",
        config=tuple(_config(entry) for entry in config if _applies(entry, result.request, driver)),
    )


def _config(entry: DeviceAllocationConfiguration) -> Config:
    return Config(entry.source, entry.opaque.parameters if entry.opaque is not None else None)


def _applies(entry: DeviceAllocationConfiguration, request: str, driver: str) -> bool:
    """Whether a configuration is for this driver and this request; naming a request names its alternatives too."""
    if entry.opaque is None or entry.opaque.driver != driver:
        return False
    return not entry.requests or request in entry.requests or request_parts(request)[0] in entry.requests


def _identity(device: ClaimDevice) -> tuple[Any, ...]:
    return (
        device.name,
        device.pool,
        device.request,
        device.subrequest,
        device.admin_access,
        device.share_id,
        device.config,
    )
