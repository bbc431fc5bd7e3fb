"""Linux capabilities by name, and sets of them as the kernel has them: one bit each. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

NAMES: Final = (
    "CHOWN",
    "DAC_OVERRIDE",
    "DAC_READ_SEARCH",
    "FOWNER",
    "FSETID",
    "KILL",
    "SETGID",
    "SETUID",
    "SETPCAP",
    "LINUX_IMMUTABLE",
    "NET_BIND_SERVICE",
    "NET_BROADCAST",
    "NET_ADMIN",
    "NET_RAW",
    "IPC_LOCK",
    "IPC_OWNER",
    "SYS_MODULE",
    "SYS_RAWIO",
    "SYS_CHROOT",
    "SYS_PTRACE",
    "SYS_PACCT",
    "SYS_ADMIN",
    "SYS_BOOT",
    "SYS_NICE",
    "SYS_RESOURCE",
    "SYS_TIME",
    "SYS_TTY_CONFIG",
    "MKNOD",
    "LEASE",
    "AUDIT_WRITE",
    "AUDIT_CONTROL",
    "SETFCAP",
    "MAC_OVERRIDE",
    "MAC_ADMIN",
    "SYSLOG",
    "WAKE_ALARM",
    "BLOCK_SUSPEND",
    "AUDIT_READ",
    "PERFMON",
    "BPF",
    "CHECKPOINT_RESTORE",
)
"""In the kernel's order: the place is the number."""
ALL: Final = "ALL"


def mask(names: Iterable[str]) -> int:
    """A set of capabilities as the kernel has it. Raises KeyError with a name that is not known."""
    bits = 0
    for name in names:
        bits |= 1 << _NUMBERS[_plain(name)]
    return bits


def names(bits: int) -> tuple[str, ...]:
    """The names in a set."""
    return tuple(name for number, name in enumerate(NAMES) if bits >> number & 1)


def is_all(name: str) -> bool:
    """Whether a name stands for all capabilities."""
    return _plain(name) == ALL


def _plain(name: str) -> str:
    """Kubernetes leaves the prefix out; what other tools show has it."""
    return name.upper().removeprefix("CAP_")


_NUMBERS: Final = {name: number for number, name in enumerate(NAMES)}

DEFAULT: Final = mask(
    ("CHOWN", "DAC_OVERRIDE", "FSETID", "FOWNER", "SETGID", "SETUID", "SETPCAP", "NET_BIND_SERVICE", "KILL")
)
"""What a container of user 0 has that asks for nothing else. Some runtimes also give MKNOD and NET_RAW; here nothing
else keeps devices and the network of the machine apart from a container, so these must be asked for."""
