"""What the node says of itself: its Node object, labels, capacity, addresses and conditions. Reads /proc and /sys."""

from __future__ import annotations

import os
import platform
import socket
from pathlib import Path
from typing import Final

import msgspec
from msgspec.structs import replace

from dray import __version__
from dray.api.conditions import with_conditions
from dray.api.generated.core import (
    DaemonEndpoint,
    Node,
    NodeAddress,
    NodeCondition,
    NodeDaemonEndpoints,
    NodeStatus,
    NodeSystemInfo,
)
from dray.api.meta import ObjectMeta
from dray.api.nodes import SERVING_CERTIFICATE, WEBSOCKETS
from dray.api.quantity import Quantity
from dray.api.times import Time

MAX_PODS: Final = 500
_ARCHITECTURES: Final = {"x86_64": "amd64", "aarch64": "arm64"}
_GOOD: Final = (
    ("MemoryPressure", "False", "KubeletHasSufficientMemory", "kubelet has sufficient memory available"),
    ("DiskPressure", "False", "KubeletHasNoDiskPressure", "kubelet has no disk pressure"),
    ("PIDPressure", "False", "KubeletHasSufficientPID", "kubelet has sufficient PID available"),
    ("Ready", "True", "KubeletReady", "kubelet is posting ready status"),
)


def boot_id() -> str:
    """Another one after every start of the machine."""
    return _text("/proc/sys/kernel/random/boot_id")


def local_address() -> str:
    """The address by which this machine reaches others; the loopback address if it reaches none."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(("192.0.2.1", 9))  # sends nothing: only asks which way it would go
        except OSError:
            return "127.0.0.1"
        return str(probe.getsockname()[0])


class Serving(msgspec.Struct, frozen=True):
    """Where the node serves what a kubelet does, and the fingerprint of its certificate."""

    port: int
    fingerprint: str


def new_node(name: str, address: str, runtime: str, now: Time, serving: Serving | None) -> Node:
    """The node as it registers for the first time."""
    architecture = _ARCHITECTURES.get(platform.machine(), platform.machine())
    labels = {
        "kubernetes.io/hostname": name,
        "kubernetes.io/os": "linux",
        "kubernetes.io/arch": architecture,
    }
    notes = {SERVING_CERTIFICATE: serving.fingerprint} if serving is not None else {}
    node = Node(kind="Node", api_version="v1", metadata=ObjectMeta(name=name, labels=labels, annotations=notes))
    return with_status(node, address, runtime, now, serving)


def with_status(node: Node, address: str, runtime: str, now: Time, serving: Serving | None) -> Node:
    """The node with all that the agent reports; everything else in its status stays."""
    has = capacity()
    status = replace(
        node.status,
        capacity={**node.status.capacity, **has},
        allocatable={**node.status.allocatable, **has},
        addresses=(
            NodeAddress(type="InternalIP", address=address),
            NodeAddress(type="Hostname", address=node.metadata.name),
        ),
        daemon_endpoints=NodeDaemonEndpoints(kubelet_endpoint=DaemonEndpoint(port=serving.port if serving else 0)),
        declared_features=(WEBSOCKETS,) if serving is not None else (),
        node_info=_info(runtime),
        conditions=_conditions(node.status, now),
    )
    return replace(node, status=status)


def _conditions(status: NodeStatus, now: Time) -> tuple[NodeCondition, ...]:
    own = (
        NodeCondition(
            type=name,
            status=value,
            reason=reason,
            message=message,
            last_heartbeat_time=now,
            last_transition_time=now,
        )
        for name, value, reason, message in _GOOD
    )
    return with_conditions(status.conditions, own)


def capacity() -> dict[str, Quantity]:
    """What the machine has."""
    disk = os.statvfs("/")
    return {
        "cpu": Quantity.parse(str(os.cpu_count() or 1)),
        "memory": Quantity.parse(f"{os.sysconf('SC_PAGE_SIZE') * os.sysconf('SC_PHYS_PAGES') // 1024}Ki"),
        "ephemeral-storage": Quantity.parse(f"{disk.f_blocks * disk.f_frsize // 1024}Ki"),
        "pods": Quantity.parse(str(MAX_PODS)),
    }


def _info(runtime: str) -> NodeSystemInfo:
    system = os.uname()
    return NodeSystemInfo(
        architecture=_ARCHITECTURES.get(system.machine, system.machine),
        boot_id=boot_id(),
        container_runtime_version=f"{runtime}://{__version__}",
        kernel_version=system.release,
        kube_proxy_version="",
        kubelet_version=f"v{__version__}-dray",
        machine_id=_text("/etc/machine-id"),
        operating_system="linux",
        os_image=_os_name(),
        system_uuid=_text("/etc/machine-id"),
    )


def _os_name() -> str:
    for line in _text("/etc/os-release").splitlines():
        name, _, value = line.partition("=")
        if name == "PRETTY_NAME":
            return value.strip('"')
    return "Linux"


def _text(path: str) -> str:
    try:
        return Path(path).read_text().strip()
    except OSError:
        return ""
