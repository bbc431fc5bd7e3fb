"""How many processes a container can have: a fork bomb ends at a limit of its own, and others go on (issue 14)."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
from pathlib import Path

import pytest
from msgspec.structs import replace

from dray.node.runtime.control_groups import end_pod, find_control_groups, group_of, remove_groups
from dray.node.runtime.machine import Machine
from patience import PATIENCE, eventually_async
from process_world import MACHINE, SLEEP, log, process_world, shell

LIMIT = 24
FORKS = "n=0; while [ $n -lt 60 ]; do sleep 60 & n=$((n+1)); done; echo all"
"""A shell that cannot fork says so, and ends."""
STRANGER = {"securityContext": {"runAsUser": 64321, "runAsGroup": 64321}}

needs_groups = pytest.mark.skipif(not MACHINE.control_groups, reason="no control groups can be made here")
needs_root = pytest.mark.skipif(not MACHINE.is_root, reason="only root can start containers as somebody else")


@needs_groups
async def test_a_container_has_a_limit_of_processes_and_others_have_theirs() -> None:
    async with process_world(replace(MACHINE, most_processes=LIMIT)) as world:
        bomb = await world.pod("bomb", containers=shell(FORKS))
        await world.phase("bomb", "Failed")
        assert "all" not in log(world, bomb).split()
        many = await world.pod("many", containers=shell("for n in 1 2 3 4 5 6 7 8; do sleep 0 & done; wait; echo all"))
        await world.phase("many", "Succeeded")
        assert log(world, many).split() == ["all"]
        place = Path(MACHINE.control_groups)
        still = await world.pod("still", containers=shell(SLEEP))
        await world.phase("still", "Running")
        assert (place / f"{still.metadata.uid}.main" / "pids.max").read_text().split() == [str(LIMIT)]
        remove_groups(str(place), {bomb.metadata.uid})
        assert (place / f"{bomb.metadata.uid}.main").exists()
        assert not (place / f"{many.metadata.uid}.main").exists()
    remove_groups(str(place), ())


@needs_groups
async def test_a_process_that_leaves_its_group_and_sees_the_machine_ends_with_its_container() -> None:
    """It would go on with devices that somebody else has by then."""
    async with process_world() as world:
        leaves = "setsid sleep 1200 & left=$!; sleep 0.5; echo $left"
        pod = await world.pod("p", containers=shell(leaves), hostPID=True)
        await world.phase("p", "Succeeded")
        left = int(log(world, pod))
        try:
            await eventually_async(lambda: _is_over(left), "the process goes on without its container")
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.kill(left, signal.SIGKILL)


@needs_groups
async def test_what_is_left_of_a_pod_ends_with_it_and_nothing_of_others() -> None:
    place = Path(MACHINE.control_groups)
    groups = [place / group_of(uid, "main") for uid in ("uid-1", "uid-10")]
    sleepers = [subprocess.Popen(["sleep", "60"]) for _ in groups]
    try:
        for group, sleeper in zip(groups, sleepers, strict=True):
            group.mkdir()
            (group / "cgroup.procs").write_text(str(sleeper.pid))
        end_pod(str(place), "uid-1")
        assert sleepers[0].wait(PATIENCE) == -signal.SIGKILL
        assert sleepers[1].poll() is None
    finally:
        for group, sleeper in zip(groups, sleepers, strict=True):
            sleeper.kill()
            sleeper.wait()
            group.rmdir()


def _is_over(pid: int) -> bool:
    """Whether a process has ended, and waits to be noticed."""
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    return True


@needs_root
async def test_where_no_groups_can_be_made_a_user_has_a_limit() -> None:
    async with process_world(replace(MACHINE, most_processes=LIMIT, control_groups="")) as world:
        bomb = await world.pod("bomb", containers=shell(FORKS, **STRANGER))
        await world.phase("bomb", "Failed")
        assert "all" not in log(world, bomb).split()


def test_that_there_is_no_limit_is_said() -> None:
    assert "no limit of processes" in " ".join(Machine().shortcomings())
    assert "no limit of processes" not in " ".join(Machine(control_groups="/x").shortcomings())


@pytest.mark.parametrize(
    ("own", "mounted"),
    [
        ("8:pids:/", "30 23 0:26 / {place} rw,relatime - cgroup cgroup rw,pids"),
        ("0::/", "30 23 0:26 / {place} rw,relatime - cgroup2 cgroup2 rw"),
        ("0::/agent", "30 23 0:26 /agent {place} rw,relatime - cgroup2 cgroup2 rw"),
        ("4:memory,pids:/a/b", "30 23 0:26 /a {place} rw,relatime - cgroup cgroup rw,memory,pids"),
    ],
)
def test_a_place_without_limits_is_none(own: str, mounted: str, tmp_path: Path) -> None:
    """It is tried: a directory alone does not limit anything."""
    groups, mounts, place = tmp_path / "cgroup", tmp_path / "mountinfo", tmp_path / "place"
    (place / "b").mkdir(parents=True)
    groups.write_text(f"{own}\n")
    mounts.write_text(f"{mounted.format(place=place)}\n")
    assert find_control_groups(groups, mounts) == ""
    assert [entry.name for entry in os.scandir(place / "b" if own.endswith("b") else place) if entry.name != "b"] == [
        "dray"
    ]
