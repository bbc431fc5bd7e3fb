"""A node agent with real processes, and what tests look at of them."""

from __future__ import annotations

import contextlib
import os
import signal
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

from dray.api.generated.core import Pod
from dray.cdi import Cache, CdiDevice, ContainerEdits, Spec, write_spec
from dray.node.runtime.machine import Machine, find_machine
from dray.node.runtime.process import ProcessRuntime
from node_world import LocalWorld, NodeWorld, local_world

SLEEP = "n=0; while [ $n -lt 1200 ]; do sleep 0.1; n=$((n+1)); done"
"""Longer than any test waits, and no longer, even if the tests are killed."""
MACHINE = find_machine()


@contextlib.asynccontextmanager
async def process_world(machine: Machine = MACHINE) -> AsyncIterator[LocalWorld]:
    """A world with real processes; whatever a test leaves running is ended."""
    async with local_world(started=False) as world:
        world.runtime = process_runtime(world, machine)
        await world.start()
        try:
            yield world
        finally:
            await world.stop()  # before that, it might start more
            for pid in shells_of(world):
                kill_group(pid)


def process_runtime(world: NodeWorld, machine: Machine = MACHINE) -> ProcessRuntime:
    return ProcessRuntime(world.root, Cache((world.root / "cdi",)), world.clock, machine)


def kill_group(pid: int) -> None:
    try:
        os.killpg(pid, signal.SIGKILL)
    except ProcessLookupError:
        return


def shell(script: str, **more: Any) -> list[dict[str, Any]]:
    """The containers of a pod that runs a script."""
    return [{"name": "main", "image": "none", "command": ["/bin/sh", "-c", script], **more}]


def log(world: NodeWorld, pod: Pod, container: str = "main", attempt: int = 0) -> str:
    return (world.root / "pods" / pod.metadata.uid / container / f"{attempt}.log").read_text()


def publish(world: NodeWorld, edits: ContainerEdits) -> None:
    """A CDI spec for device gpu-0, as a driver writes it."""
    directory = world.root / "cdi"
    directory.mkdir(exist_ok=True)
    spec = Spec(cdi_version="0.6.0", kind="example.com/gpu", devices=(CdiDevice(name="gpu-0", container_edits=edits),))
    write_spec(directory, "gpu", spec)


def alive(pid: int) -> bool:
    return state(Path(f"/proc/{pid}"))[0] not in ("", "Z")


def group_lives(group: int) -> bool:
    """Whether a process of a group does anything; one that nobody has waited for does not."""
    states = [state(path) for path in Path("/proc").iterdir() if path.name.isdigit()]
    return any(found == group and state not in ("", "Z") for state, found in states)


def shells_of(world: NodeWorld) -> list[int]:
    """The processes around the containers of a node."""
    found = []
    for path in Path("/proc").iterdir():
        if path.name.isdigit() and alive(int(path.name)):
            try:
                words = (path / "cmdline").read_bytes()
            except OSError:
                continue
            if os.fsencode(world.root) in words:
                found.append(int(path.name))
    return found


def state(process: Path) -> tuple[str, int]:
    """State and group of a process; empty if it is gone."""
    try:
        fields = (process / "stat").read_text().rpartition(")")[2].split()
    except OSError:
        return "", 0
    return fields[0], int(fields[2])


def group(world: NodeWorld, pod: Pod) -> int:
    return int((world.root / "pods" / pod.metadata.uid / "main" / "0.pid").read_text())


def pid_is_noted(world: NodeWorld, pod: Pod) -> bool:
    path = world.root / "pods" / pod.metadata.uid / "main" / "0.pid"
    return path.exists() and path.read_text().endswith("\n")
