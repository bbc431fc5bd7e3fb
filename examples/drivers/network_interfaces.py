"""A DRA driver for the network interfaces of a node, as the kernel shows them in sysfs.

    python examples/drivers/network_interfaces.py --node-name $(hostname) --kubeconfig state/kubeconfig …

It works on any Linux machine. Interfaces on the PCI bus have the standard attributes `pciBusID`, `pcieRoot` and
`numaNode`, so that a claim can ask for an interface next to a GPU (`matchAttribute: resource.kubernetes.io/pcieRoot`).
An interface whose link is down has a NoSchedule taint. Parameters of a claim:

    {"name": "net0"}      move the interface into the container under this name (needs a runtime with CDI 1.1)
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path

from dray import driver
from dray.driver.devices import Value

STANDARD = "resource.kubernetes.io"
PCI_BUS_ID = re.compile(r"[0-9a-f]{4,}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]")
PCIE_ROOT = re.compile(r"pci[0-9a-f]{4,}:[0-9a-f]{2}")
INTERFACE_NAME = re.compile(r"[A-Za-z0-9._-]{1,15}")


class NetworkInterfaces(driver.Driver):
    """Everything in /sys/class/net but the loopback."""

    name = "net.example.com"
    publishes_taints = True

    def __init__(self, sysfs: Path = Path("/sys")) -> None:
        self.sysfs = sysfs

    def discover(self) -> Iterator[driver.Device]:
        """One device per interface."""
        for path in sorted((self.sysfs / "class" / "net").iterdir()):
            # Other things live there too, such as the file of the bonding driver.
            if path.is_dir() and path.name != "lo":
                yield self._device(path)

    def prepare(self, claim: driver.Claim, device: driver.ClaimDevice) -> driver.Edits:
        """Names the interface in the environment, and moves it if the claim asks for that."""
        del claim
        interface = str(device.attributes["interface"])
        moves = []
        for config in device.config:
            inside = (config.parameters or {}).get("name")
            if not isinstance(inside, str) or not INTERFACE_NAME.fullmatch(inside):
                raise driver.DriverError(f"parameter name is {inside!r}; it must be the name of a network interface")
            moves = [driver.NetDevice(host_interface_name=interface, name=inside)]
        variable = f"NET_{re.sub('[^A-Z0-9]', '_', device.request.upper())}"
        return driver.Edits(env={variable: interface}, net_devices=moves)

    def _device(self, path: Path) -> driver.Device:
        state = _read(path / "operstate")
        attributes: dict[str, Value] = {
            "interface": path.name,
            "mac": _read(path / "address"),
            "mtu": int(_read(path / "mtu") or 0),
            "virtual": not (path / "device").exists(),
            **_pci_attributes(path / "device"),
        }
        speed = _read(path / "speed")  # reading fails while the link is down, and is -1 where nobody knows
        if speed.isdigit():
            attributes["mbitPerSecond"] = int(speed)
        down = driver.Taint(key=f"{self.name}/link-down", effect="NoSchedule")
        return driver.Device(
            _device_name(path.name), attributes=attributes, taints=[down] if state in ("down", "lowerlayerdown") else ()
        )


def _pci_attributes(device: Path) -> dict[str, Value]:
    """Where the device sits: read from the path that sysfs resolves to, …/pci0000:00/0000:00:01.0/0000:01:00.0."""
    if not device.exists():
        return {}
    parts = device.resolve().parts
    addresses = [part for part in parts if PCI_BUS_ID.fullmatch(part)]
    roots = [part for part in parts if PCIE_ROOT.fullmatch(part)]
    found: dict[str, Value] = {}
    if addresses and roots:
        found[f"{STANDARD}/pciBusID"] = addresses[-1]
        found[f"{STANDARD}/pcieRoot"] = roots[0]
    numa_node = _read(device / "numa_node")
    if numa_node.isdigit():  # -1 on machines without NUMA
        found[f"{STANDARD}/numaNode"] = int(numa_node)
    return found


def _device_name(interface: str) -> str:
    """A DNS label for an interface, whose name may have other characters; different interfaces get different names."""
    label = re.sub("[^a-z0-9-]", "-", interface.lower()).strip("-") or "interface"
    return label if label == interface else f"{label}-{interface.encode().hex()}"


def _read(path: Path) -> str:
    try:
        return path.read_text().strip()
    except OSError:
        return ""


if __name__ == "__main__":
    driver.run(NetworkInterfaces(Path(os.environ.get("SYSFS", "/sys"))))
