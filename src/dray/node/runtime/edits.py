"""What CDI edits mean for a local process: its environment, and what is bound over what in a mount namespace.

A process sees the host's files, so a device node or mount with the same path on both sides is there already. Where the
paths differ, the process gets a mount namespace in which the host's path is bound over the container's, if that path
exists and the agent may do so (as root); else the edit is left out, and that is said.
"""

from __future__ import annotations

import os
import shlex
import shutil
from collections.abc import Iterable, Mapping
from pathlib import Path

import msgspec

from dray.cdi import ContainerEdits
from dray.node.runtime.interface import StartFailed

SHELL = "/bin/sh"

_RUN = (
    'echo $$ >"$1" || exit 128; exit_file=$2; shift 2; '
    'trap : TERM INT HUP QUIT; "$@"; code=$?; echo $code >"$exit_file"; exit $code'
)
"""Stays around the container's process to note its number and its exit code, even if nobody else is there to see."""


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


def apply(edits: ContainerEdits, environment: Mapping[str, str], *, may_mount: bool) -> Applied:
    """What the edits of a container's devices come to. Raises StartFailed for a device that is not there."""
    changed = dict(environment)
    for entry in edits.env:
        name, _, value = entry.partition("=")
        changed[name] = value
    wanted = [*_device_binds(edits), *_mount_binds(edits)]
    binds, warnings = [], []
    for bind in wanted:
        if may_mount and Path(bind.target).exists():
            binds.append(bind)
        else:
            why = "only root may do that" if not may_mount else f"{bind.target} does not exist on this machine"
            warnings.append(f"{bind.source} is not mounted at {bind.target}: {why}")
    warnings += [f"network interface {one.host_interface_name} stays in the host" for one in edits.net_devices]
    if edits.intel_rdt is not None:
        warnings.append("intelRdt is not applied to processes")
    return Applied(changed, tuple(binds), edits.additional_gids, tuple(warnings))


def _device_binds(edits: ContainerEdits) -> Iterable[Bind]:
    for node in edits.device_nodes:
        source = node.host_path or node.path
        if not Path(source).exists():
            raise StartFailed("CreateContainerError", f"device {source} is not there")
        if source != node.path:
            yield Bind(source, node.path)


def _mount_binds(edits: ContainerEdits) -> Iterable[Bind]:
    for mount in edits.mounts:
        if not Path(mount.host_path).exists():
            raise StartFailed("CreateContainerError", f"mount: {mount.host_path} is not there")
        if mount.host_path != mount.container_path or "ro" in mount.options:
            yield Bind(mount.host_path, mount.container_path, "ro" in mount.options)


def may_mount() -> bool:
    """Whether mount namespaces can be made here."""
    return os.geteuid() == 0 and shutil.which("unshare") is not None and shutil.which("mount") is not None


def command_line(command: Iterable[str], binds: Iterable[Bind], pid_file: Path, exit_file: Path) -> list[str]:
    """What to execute: the command, in a shell that waits for it and notes its exit code in a file."""
    mounts = "".join(
        f"mount --bind {shlex.quote(bind.source)} {shlex.quote(bind.target)} || exit 128; "
        + (f"mount -o remount,bind,ro {shlex.quote(bind.target)} || exit 128; " if bind.read_only else "")
        for bind in binds
    )
    shell = [SHELL, "-c", f"{mounts}{_RUN}", "dray", str(pid_file), str(exit_file), *command]
    return ["unshare", "--mount", "--propagation", "private", *shell] if mounts else shell
