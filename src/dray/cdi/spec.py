"""A CDI spec: devices of one kind, and the edits to a container that make it see them."""

from __future__ import annotations

from collections.abc import Iterable

from msgspec import field

from dray.api import codec, manifest
from dray.api.struct import Struct
from dray.cdi.errors import CdiError
from dray.cdi.rules import validate

MAX_SPEC_BYTES = 4 * 1024 * 1024


class DeviceNode(Struct):
    """A device file in the container; without `host_path` it has the same path on the host."""

    path: str = field(default_factory=str)
    host_path: str = ""
    type: str = ""
    major: int = 0
    minor: int = 0
    file_mode: int | None = None
    permissions: str = ""
    uid: int | None = None
    gid: int | None = None


class NetDevice(Struct):
    """A network interface of the host that moves into the container, under a name of its own."""

    host_interface_name: str = field(default_factory=str)
    name: str = field(default_factory=str)


class Mount(Struct):
    """A part of the host's file system in the container."""

    host_path: str = field(default_factory=str)
    container_path: str = field(default_factory=str)
    options: tuple[str, ...] = ()
    type: str = ""


class Hook(Struct):
    """A program that the runtime runs at a point of the container's life."""

    hook_name: str = field(default_factory=str)
    path: str = field(default_factory=str)
    args: tuple[str, ...] = ()
    env: tuple[str, ...] = ()
    timeout: int | None = None


class IntelRdt(Struct):
    """Cache and memory bandwidth control."""

    clos_id: str = field(default="", name="closID")
    l3_cache_schema: str = field(default="", name="l3CacheSchema")
    mem_bw_schema: str = field(default="", name="memBwSchema")
    schemata: tuple[str, ...] = ()
    enable_monitoring: bool = False


class ContainerEdits(Struct):
    """Changes to a container. `env` has entries `NAME=value`."""

    env: tuple[str, ...] = ()
    device_nodes: tuple[DeviceNode, ...] = ()
    net_devices: tuple[NetDevice, ...] = ()
    hooks: tuple[Hook, ...] = ()
    mounts: tuple[Mount, ...] = ()
    intel_rdt: IntelRdt | None = None
    additional_gids: tuple[int, ...] = ()

    def __bool__(self) -> bool:
        return self != ContainerEdits()

    @classmethod
    def merge(cls, parts: Iterable[ContainerEdits]) -> ContainerEdits:
        """All edits in order. Of the IntelRdt settings, of which a container has one, the last counts."""
        every = list(parts)
        return cls(
            env=tuple(entry for part in every for entry in part.env),
            device_nodes=tuple(entry for part in every for entry in part.device_nodes),
            net_devices=tuple(entry for part in every for entry in part.net_devices),
            hooks=tuple(entry for part in every for entry in part.hooks),
            mounts=tuple(entry for part in every for entry in part.mounts),
            intel_rdt=next((part.intel_rdt for part in reversed(every) if part.intel_rdt is not None), None),
            additional_gids=tuple(entry for part in every for entry in part.additional_gids),
        )


class CdiDevice(Struct):
    """One device and its edits."""

    name: str = field(default_factory=str)
    annotations: dict[str, str] = field(default_factory=dict)
    container_edits: ContainerEdits = field(default_factory=ContainerEdits)


class Spec(Struct):
    """The devices of a file. Its own edits count for a container that gets any of them."""

    cdi_version: str = field(default_factory=str)
    kind: str = field(default_factory=str)
    annotations: dict[str, str] = field(default_factory=dict)
    devices: tuple[CdiDevice, ...] = ()
    container_edits: ContainerEdits = ContainerEdits()


def parse(data: bytes, source: str = "CDI spec") -> Spec:
    """A spec from JSON or YAML, valid by all rules. Raises CdiError with every problem, named after `source`."""
    if len(data) > MAX_SPEC_BYTES:
        raise CdiError(f"{source}: larger than {MAX_SPEC_BYTES} bytes")
    try:
        value = manifest.parse_single(data, source, "must be one JSON object or YAML mapping")
    except manifest.ManifestError as error:
        raise CdiError(error.message) from None
    reading = codec.read(value, Spec)
    problems = reading.problems
    if reading.obj is not None:
        problems += [str(error) for error in validate(reading.obj)]
    if reading.obj is None or problems:
        raise CdiError(f"{source}: {'; '.join(problems)}")
    return reading.obj
