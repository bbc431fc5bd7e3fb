"""The driver SDK: a DRA driver in Python is one small class.

    from dray import driver

    class Fans(driver.Driver):
        name = "fans.example.com"

        def discover(self):
            yield driver.Device("fan-0", attributes={"rpm": 3000})

        def prepare(self, claim, device):
            return driver.Edits(env={"FAN": device.name}, device_nodes=[f"/dev/{device.name}"])

    driver.run(Fans())

What happens around it:

    discover ─▶ inventory ─▶ pools ─▶ slice_plan ─▶ publisher ─▶ ResourceSlices, only what differs
    node ─▶ plugin (gRPC) ─▶ preparation ─▶ prepare / unprepare ─▶ CDI file, checkpoint ─▶ answer
    prepared, health ─▶ claim_status ─▶ status_writer ─▶ status.devices of claims

`pools`, `slice_plan`, `stored_slices` and `claim_status` are pure. May import `dray.reconcile`, `dray.client`,
`dray.plugins`, `dray.cdi` and below. Files, sockets and network are touched by `publisher`, `status_writer`,
`preparation`, `checkpoint` and `listener`.
"""

from dray import extras

extras.need("driver", "the SDK for drivers")

from dray.api.resource import NetworkDeviceData
from dray.cdi import DeviceNode, Hook, Mount, NetDevice
from dray.driver.claims import Claim, ClaimDevice, Config
from dray.driver.devices import CounterSet, Device, Taint, Version
from dray.driver.driver import Driver, Edits, Health
from dray.driver.errors import DriverError
from dray.driver.program import run
from dray.driver.runner import Runner, Settings

__all__ = [
    "Claim",
    "ClaimDevice",
    "Config",
    "CounterSet",
    "Device",
    "DeviceNode",
    "Driver",
    "DriverError",
    "Edits",
    "Health",
    "Hook",
    "Mount",
    "NetDevice",
    "NetworkDeviceData",
    "Runner",
    "Settings",
    "Taint",
    "Version",
    "run",
]
