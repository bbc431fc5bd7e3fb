"""What the machine lets the agent give to containers, found out once when the agent starts."""

from __future__ import annotations

import errno
import os
import platform
import resource
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

import msgspec

from dray.node.options import MOST_PROCESSES
from dray.node.runtime.control_groups import find_control_groups

LAUNCHER: Final = Path(__file__).with_name("launcher.py")
"""Runs by itself, for every container, so it does without everything that takes time to load."""
INTERPRETER: Final = (sys.executable, "-I", "-S")
PROBE_SECONDS: Final = 60.0
CAN, CANNOT = 0, 1
"""What the launcher ends with that is asked; with anything else, nobody can tell."""
SECCOMP_MACHINES: Final = ("x86_64", "aarch64")


class Machine(msgspec.Struct, frozen=True, kw_only=True):
    """Who the agent is, and what it may do."""

    user: int = 0
    group: int = 0
    groups: tuple[int, ...] = ()
    capabilities: int = 0
    namespaces: bool = False
    """Whether processes, mounts, IPC and host names can be a container's own."""
    seccomp: bool = False
    architecture: str = ""
    groups_of_users: Mapping[int, int] = {}
    """The first group of each user of the machine."""
    default_user: int = 0
    default_group: int = 0
    """Who containers run as that do not say: the agent's own user, or another one for strangers."""
    container_ids: tuple[int, int] | None = None
    """The first and the last of the users and groups that pods may ask for; None for all."""
    pod_network: str = "host"
    """`host`: pods use the machine's. `none`: they have only a loopback device, unless they ask for the machine's."""
    memory: int = 0
    """Bytes."""
    open_files: tuple[int, int] = (1024, 4096)
    """The soft and hard limit that containers start with."""
    control_groups: str = ""
    """The directory for groups that bound how many processes a container has; empty if none can be made."""
    most_processes: int = MOST_PROCESSES
    """How many processes and threads a container can have."""

    @property
    def is_root(self) -> bool:
        """Whether the agent can become other users."""
        return self.user == 0

    def shortcomings(self) -> Iterator[str]:
        """What containers share that they should not, because of who and where the agent is."""
        if not self.is_root:
            yield f"the agent is not root: containers run as user {self.user}; pods that ask for another wait"
        if not self.namespaces:
            yield "no namespaces can be made: containers see all processes of this machine, hostPID or not"
        if not self.control_groups:
            who = "that run as root have" if self.is_root else "have"
            yield f"no control groups can be made: containers {who} no limit of processes of their own"


def find_machine(
    default_user: tuple[int, int] | None = None,
    container_ids: tuple[int, int] | None = None,
    pod_network: str = "host",
    most_processes: int = MOST_PROCESSES,
) -> Machine:
    """This machine, as it is for this process. Raises OSError if nobody can tell now."""
    user, group = os.geteuid(), os.getegid()
    run_as, run_as_group = default_user or (user, group)
    return Machine(
        user=user,
        group=group,
        groups=tuple(os.getgroups()),
        capabilities=_permitted(),
        namespaces=user == 0 and _can_make_namespaces(),
        seccomp=platform.machine() in SECCOMP_MACHINES and Path("/proc/sys/kernel/seccomp").is_dir(),
        architecture=platform.machine(),
        groups_of_users=_groups_of_users(),
        default_user=run_as,
        default_group=run_as_group,
        container_ids=container_ids,
        pod_network=pod_network,
        memory=os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"),
        open_files=resource.getrlimit(resource.RLIMIT_NOFILE),
        control_groups=find_control_groups(),
        most_processes=most_processes,
    )


def _permitted() -> int:
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("CapPrm:"):
            return int(line.split()[1], 16)
    return 0


def _groups_of_users() -> dict[int, int]:
    """From the machine's own file alone: asking for all users of a directory service may take minutes."""
    found: dict[int, int] = {}
    try:
        lines = Path("/etc/passwd").read_text(errors="replace").splitlines()
    except OSError:
        return {}
    for line in lines:
        fields = line.split(":")
        if len(fields) > 3 and fields[2].isdigit() and fields[3].isdigit():
            found.setdefault(int(fields[2]), int(fields[3]))
    return found


def _can_make_namespaces() -> bool:
    """Whether the launcher gets as far as a container's own /proc; asked of it, for there are many reasons why not.

    Raises OSError if that cannot be found out: containers must not share for months what they could have for
    themselves, because the machine was short of something when the agent began.
    """
    try:
        done = subprocess.run(
            [*INTERPRETER, str(LAUNCHER), "probe"],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            timeout=PROBE_SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise TimeoutError(errno.ETIMEDOUT, "it takes too long to find out which namespaces can be made") from None
    if done.returncode not in (CAN, CANNOT):
        raise OSError(errno.EAGAIN, "the machine is too short of memory or files to tell which namespaces can be made")
    return done.returncode == CAN


def process_facts(pid: int) -> list[str]:
    """What the machine tells of a process, from its state on. Raises OSError if there is none."""
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
