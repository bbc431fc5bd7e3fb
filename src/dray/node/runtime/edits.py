"""What CDI edits mean for a local process: its environment, and what is bound over what in a mount namespace.

A process sees the host's files, so a device node or mount with the same path on both sides is there already. Where the
paths differ, the process gets a mount namespace in which the host's path is bound over the container's, if that path
exists and the agent may make one; else the edit is left out, and that is said.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Final

import msgspec

from dray.cdi import ContainerEdits
from dray.node.runtime.interface import StartFailed
from dray.node.runtime.machine import Machine

CANNOT_MOUNT: Final = "only root may do that, where namespaces can be made"


class Bind(msgspec.Struct, frozen=True):
    """One path of the host over another."""

    source: str
    target: str
    read_only: bool = False


class Applied(msgspec.Struct, frozen=True):
    """What is to be done for a container, and what cannot be."""

    environment: dict[str, str]
    binds: tuple[Bind, ...]
    groups: tuple[int, ...]
    warnings: tuple[str, ...]


def apply(edits: ContainerEdits, environment: Mapping[str, str], machine: Machine) -> Applied:
    """What the edits of a container's devices come to. Raises StartFailed for a device that is not there."""
    changed = dict(environment)
    for entry in edits.env:
        name, _, value = entry.partition("=")
        changed[name] = value
    wanted = [*_device_binds(edits), *_mount_binds(edits, machine)]
    binds, warnings = [], []
    for bind in wanted:
        if machine.namespaces and Path(bind.target).exists():
            binds.append(bind)
        else:
            why = f"{bind.target} does not exist on this machine" if machine.namespaces else CANNOT_MOUNT
            warnings.append(f"{bind.source} is not mounted at {bind.target}: {why}")
    warnings += [f"network interface {one.host_interface_name} stays in the host" for one in edits.net_devices]
    if edits.intel_rdt is not None:
        warnings.append("intelRdt is not applied to processes")
    groups = edits.additional_gids
    if not machine.is_root:
        others = [group for group in groups if group not in (machine.group, *machine.groups)]
        warnings += [f"group {group} is not added: only root may do that" for group in others]
    return Applied(changed, tuple(binds), groups, tuple(warnings))


def _device_binds(edits: ContainerEdits) -> Iterable[Bind]:
    for node in edits.device_nodes:
        source = node.host_path or node.path
        if not Path(source).exists():
            raise StartFailed("CreateContainerError", f"device {source} is not there")
        if source != node.path:
            yield Bind(source, node.path)


def _mount_binds(edits: ContainerEdits, machine: Machine) -> Iterable[Bind]:
    for mount in edits.mounts:
        if not Path(mount.host_path).exists():
            raise StartFailed("CreateContainerError", f"mount: {mount.host_path} is not there")
        read_only = "ro" in mount.options
        # In its own place, too, so that it can be written to where all else is read-only.
        if mount.host_path != mount.container_path or read_only or machine.namespaces:
            yield Bind(mount.host_path, mount.container_path, read_only)
