"""What starts a container waits for the launcher, and for nobody who may hinder it on its way (issue 14)."""

from __future__ import annotations

import asyncio
import fcntl
import os
import signal
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from dray.node.runtime import launch
from dray.node.runtime.launch import Around, Launch, LaunchFailed, Standard, Traces
from dray.node.runtime.rights import Rights
from process_world import MACHINE, SLEEP, alive, process_runtime, process_world, shell

HINDERED = """
import marshal, os, signal, sys, time
plan = marshal.load(open(int(sys.argv[1]), "rb"))
open({numbers!r}, "a").write(str(os.getpid()) + " ")
{told}
{happens}
"""
STOPS = "os.kill(os.getpid(), signal.SIGSTOP)"
WAITS = "time.sleep(1000)"
TELLS = 'os.write(plan["report"], b"pid %d\\n" % os.getpid())'


MANY = 12
"""As many threads as there are for all that the agent does beside its loop, and more."""


@pytest.mark.parametrize("told", ["", TELLS], ids=["before", "after"])
@pytest.mark.parametrize(("happens", "why"), [(STOPS, "stopped it"), (WAITS, "more than a minute")])
def test_a_launcher_that_is_hindered_is_ended_and_holds_nobody_up(
    told: str, happens: str, why: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A process of the container has its user, sees who is started beside it, and has files that it needs."""
    program, numbers = tmp_path / "launcher.py", tmp_path / "numbers"
    program.write_text(HINDERED.format(numbers=str(numbers), told=told, happens=happens))
    monkeypatch.setattr(launch, "LAUNCHER", program)
    monkeypatch.setattr(launch, "MOST_LOOKS", 20)
    wanted = Launch(command=("true",), environment={}, rights=Rights(user=0, group=0))
    with pytest.raises(LaunchFailed, match=why):
        launch.start(wanted, MACHINE, Standard(), Around("x", Traces(-1, -1, -1), "boot"))
    assert not alive(int(numbers.read_text()))


@pytest.fixture
def held_program() -> Iterator[str]:
    """Whoever wants to run it waits until the kernel takes the lease away, 45 seconds later."""
    with tempfile.NamedTemporaryFile(prefix="held-") as file:
        os.chmod(file.fileno(), 0o755)
        handled = signal.signal(signal.SIGIO, signal.SIG_IGN)
        fcntl.fcntl(file, fcntl.F_SETLEASE, fcntl.F_WRLCK)
        try:
            yield file.name
        finally:
            fcntl.fcntl(file, fcntl.F_SETLEASE, fcntl.F_UNLCK)
            signal.signal(signal.SIGIO, handled)


async def test_commands_that_a_container_holds_up_keep_no_thread_from_others(held_program: str) -> None:
    async with process_world() as world:
        pod = await world.pod("holder", containers=shell(SLEEP))
        await world.phase("holder", "Running")
        console, uid = process_runtime(world).console, pod.metadata.uid
        assert console is not None
        asked = [
            asyncio.ensure_future(console.execute(uid, "main", (held_program,), terminal=False, has_input=False))
            for _ in range(MANY)
        ]
        await asyncio.sleep(0)
        await world.pod("other", containers=shell("echo up"))
        await world.phase("other", "Succeeded")
        assert not any(one.done() for one in asked)
        await world.delete("holder", grace=0)
        await asyncio.gather(*asked, return_exceptions=True)


@pytest.mark.parametrize("full", ["pid", "born"])
def test_what_cannot_be_noted_does_not_run(full: str, tmp_path: Path) -> None:
    """On a full disk: nobody would find it again, and it would be started once more."""
    rights = Rights(user=0, group=0, own_processes=MACHINE.namespaces)
    wanted = Launch(command=("sleep", "100"), environment={}, rights=rights)
    name = str(tmp_path / "container")
    with open("/dev/full", "wb") as none, (tmp_path / "trace").open("wb") as trace:
        traces = Traces(trace.fileno(), trace.fileno(), -1)
        traces = replace(traces, **{full: none.fileno()})
        with pytest.raises(LaunchFailed, match="No space left on device"):
            launch.start(wanted, MACHINE, Standard(), Around(name, traces, "boot"))
    assert not [path for path in Path("/proc").iterdir() if path.name.isdigit() and name in command_of(path)]


def command_of(process: Path) -> str:
    try:
        return (process / "cmdline").read_text()
    except OSError:
        return ""


@pytest.mark.parametrize(
    "odd",
    [
        {"command": ("echo", "a\0b")},
        {"environment": {"A": "a\0b"}},
        {"environment": {"A\0B": "a"}},
        {"environment": {"A=B": "a"}},
        {"directory": "/tmp\0/x"},
    ],
    ids=str,
)
def test_what_no_program_can_be_given_is_said(odd: dict[str, Any], tmp_path: Path) -> None:
    """And not left to a traceback in the container's log."""
    given: dict[str, Any] = {"command": ("true",), "environment": {}, **odd}
    said = tmp_path / "said"
    wanted = Launch(rights=Rights(user=MACHINE.user, group=MACHINE.group), **given)
    with said.open("wb") as log:
        standard = Standard(output=log.fileno(), errors=log.fileno())
        with pytest.raises(LaunchFailed, match="command, environment or working directory"):
            launch.start(wanted, MACHINE, standard, Around("x", Traces(-1, -1, -1), "boot"))
    assert said.read_bytes() == b""
