"""What a driver author writes: a class with a name, `discover` and `prepare`, and whatever else the devices need."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from dray import cdi
from dray.api.resource import NetworkDeviceData
from dray.driver.devices import CounterSet, Device
from dray.driver.errors import DriverError

if TYPE_CHECKING:
    from dray.driver.claims import Claim, ClaimDevice


@dataclass(frozen=True)
class Edits:
    """What a container must get to use a device.

    `device_nodes` are paths, or `cdi.DeviceNode` for more; `mounts` are `cdi.Mount`, `hooks` `cdi.Hook`. `cdi_ids` are
    devices of specs that exist already, for drivers whose hardware comes with some.

    `data` (a JSON object of at most 10 KiB) and `network_data` are no edits: they tell people and other programs about
    the device, in the status of the claim.
    """

    env: Mapping[str, str] = field(default_factory=dict)
    device_nodes: Iterable[str | cdi.DeviceNode] = ()
    mounts: Iterable[cdi.Mount] = ()
    hooks: Iterable[cdi.Hook] = ()
    net_devices: Iterable[cdi.NetDevice] = ()
    additional_gids: Iterable[int] = ()
    cdi_ids: Iterable[str] = ()
    data: Mapping[str, Any] | None = None
    network_data: NetworkDeviceData | None = None

    def to_cdi(self) -> cdi.ContainerEdits:
        """The edits as a CDI spec has them, without `cdi_ids` and what is for the claim."""
        nodes = (cdi.DeviceNode(path=node) if isinstance(node, str) else node for node in self.device_nodes)
        return cdi.ContainerEdits(
            env=tuple(f"{name}={value}" for name, value in self.env.items()),
            device_nodes=tuple(nodes),
            mounts=tuple(self.mounts),
            hooks=tuple(self.hooks),
            net_devices=tuple(self.net_devices),
            additional_gids=tuple(self.additional_gids),
        )


@dataclass(frozen=True)
class Health:
    """How a device is doing: `healthy` is None if nobody knows. A report counts for `timeout` seconds."""

    device: str
    healthy: bool | None
    message: str = ""
    pool: str = ""
    timeout: float = 0


class Driver:
    """Derive from it, set `name`, and write `discover` and `prepare`.

    Methods may be plain or `async`. Plain ones run on a thread, at most `concurrency` at a time: with 1, no two of them
    ever overlap. Async ones run on the event loop. Calls for one claim never overlap. Raise `DriverError` to say why
    something cannot be done.
    """

    name: str = ""
    """The driver's name, a DNS subdomain that ends in a domain of the vendor's: `gpu.example.com`."""
    interval: float = 5.0
    """Seconds between two looks at the devices and their health. `changed` asks for one at once."""
    publishes_taints: bool = False
    """Whether the pool always has a slice for taints, even while there are none, so that the first taint touches that
    slice only (5055-78). Taints are published either way."""
    concurrency: int = 1
    """How many plain methods may run at the same time, each on a thread."""
    wake: Callable[[], None] | None = None
    """Set by whoever runs the driver; `changed` calls it."""

    def discover(self) -> Iterable[Device]:
        """The devices that are there now. Only what has changed is published."""
        raise DriverError(f"{type(self).__name__} has no discover method")

    def counters(self) -> Iterable[CounterSet]:
        """Counters that devices share, for devices that can be partitioned."""
        return ()

    def prepare(self, claim: Claim, device: ClaimDevice) -> Edits | None:
        """Makes one device of a claim ready; None if a container needs nothing special. Repeated after a failure."""
        del claim, device
        return None

    def unprepare(self, claim: Claim) -> None:
        """Undoes `prepare` for all devices of a claim, also after it failed half-way. May be called more than once."""
        del claim

    def health(self) -> Iterable[Health]:
        """How devices are doing, for the status of pods and claims. Nothing is reported without it."""
        return ()

    def dropped_fields(self, fields: Mapping[str, tuple[str, ...]]) -> None:
        """The API server did not keep fields of slices, by slice: it is older, or a feature is off (5055-120).

        Ends the driver, because devices would be used in ways that it does not mean. Override it to go on.
        """
        listed = "; ".join(f"{name}: {', '.join(paths)}" for name, paths in fields.items())
        raise DriverError(f"the API server drops fields that this driver needs: {listed}")

    def changed(self) -> None:
        """Asks for a look at the devices now. May be called from any thread."""
        if self.wake is not None:
            self.wake()

    @property
    def cdi_kind(self) -> str:
        """Vendor and class of the CDI devices that are written for claims."""
        # A vendor starts with a letter in CDI; the name of a driver need not.
        return f"{self.name if self.name[:1].isalpha() else f'dra.{self.name}'}/claim"

    def reports_health(self) -> bool:
        """Whether the driver has health to report."""
        return type(self).health is not Driver.health

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.name}>"
