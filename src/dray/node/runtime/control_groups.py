"""Where the kernel lets the agent bound how many processes a container has: a directory for control groups.

A limit of a user (`RLIMIT_NPROC`) counts all that the user runs on the machine, and does not hold for root. So a
container gets a control group of its own, made by the launcher, and taken away when its pod is gone. Both versions of
control groups will do, where this process may make groups below its own.
"""

from __future__ import annotations

import contextlib
import os
import signal
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Final

OWN_GROUPS: Final = Path("/proc/self/cgroup")
MOUNTS: Final = Path("/proc/self/mountinfo")
NAME: Final = "dray"
LIMIT: Final = "pids.max"
KILL: Final = "cgroup.kill"
PROCESSES: Final = "cgroup.procs"


def find_control_groups(groups: Path = OWN_GROUPS, mounts: Path = MOUNTS) -> str:
    """A directory in which groups of limited processes can be made; empty if there is none."""
    for own in _own_directories(groups, mounts):
        place, tried = own / NAME, own / NAME / f"try-{os.getpid()}"
        try:
            _offer_limit(own)
            place.mkdir(exist_ok=True)
            _offer_limit(place)
            tried.mkdir()
            try:
                if os.access(tried / LIMIT, os.W_OK):
                    return str(place)
            finally:
                tried.rmdir()
        except OSError:
            continue
    return ""


def group_of(uid: str, container: str) -> str:
    """The name of the group of a container."""
    return f"{uid}.{container}".replace("/", "_")


def end_processes(place: str, group: str) -> None:
    """Ends all that is in a group: what has left its process group, and sees all of the machine, is still in this one.

    The first version of control groups has no order for that, but nothing in a group without room can fork meanwhile.
    """
    if not place:
        return
    directory = Path(place, group)
    with contextlib.suppress(OSError):
        if (directory / KILL).exists():
            (directory / KILL).write_text("1")
            return
        (directory / LIMIT).write_text("0")
        for number in (directory / PROCESSES).read_text().split():
            if number != "0":  # a process that cannot be seen from here; as a number for a signal it means oneself
                with contextlib.suppress(ProcessLookupError):
                    os.kill(int(number), signal.SIGKILL)


def end_pod(place: str, uid: str) -> None:
    """Ends all that is left of a pod. Groups of others, which another agent may have made, are left alone."""
    if not place:
        return
    with contextlib.suppress(OSError), os.scandir(place) as found:
        for entry in found:
            if entry.name.startswith(group_of(uid, "")):
                end_processes(place, entry.name)


def remove_groups(place: str, of_pods: Collection[str]) -> None:
    """Takes away the groups of all pods but these; those that still have processes stay."""
    if not place:
        return
    with contextlib.suppress(OSError), os.scandir(place) as found:
        for entry in found:
            uid = entry.name.rpartition(".")[0]
            if uid and uid not in of_pods:
                with contextlib.suppress(OSError):
                    os.rmdir(entry.path)


def _offer_limit(group: Path) -> None:
    """In the second version a group says what those below it can limit. Fails where the group has processes."""
    offered = group / "cgroup.subtree_control"
    if offered.exists() and "pids" not in offered.read_text().split():
        offered.write_text("+pids")


def _own_directories(groups: Path, mounts: Path) -> Iterator[Path]:
    """The groups that this process is in, which can limit processes, as directories."""
    try:
        own = [line.split(":", 2) for line in groups.read_text().splitlines()]
        mounted = [line.split(" - ", 1) for line in mounts.read_text().splitlines() if " - cgroup" in line]
    except OSError:
        return
    for _, controllers, path in own:
        if controllers and "pids" not in controllers.split(","):
            continue
        for where, what in mounted:
            version, _, options = what.split(" ")[:3]
            root, point = where.split(" ")[3:5]
            is_it = version == "cgroup2" if not controllers else "pids" in options.split(",")
            if is_it and (path == root or path.startswith(root.rstrip("/") + "/")):
                yield Path(point) / path[len(root) :].lstrip("/")
