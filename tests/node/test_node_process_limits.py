"""How many processes a container can have: a fork bomb ends at a limit of its own, and others go on (issue 14)."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from msgspec.structs import replace

from dray.node.runtime.control_groups import find_control_groups, remove_groups
from dray.node.runtime.machine import Machine
from process_world import MACHINE, log, process_world, shell

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
        assert (place / f"{bomb.metadata.uid}.main" / "pids.max").read_text().split() == [str(LIMIT)]
        remove_groups(str(place), {bomb.metadata.uid})
        assert (place / f"{bomb.metadata.uid}.main").exists()
        assert not (place / f"{many.metadata.uid}.main").exists()
    remove_groups(str(place), ())


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
