"""The default filter of system calls (`seccompProfile: RuntimeDefault`), as the program that the kernel runs. Pure.

A call is refused if it reaches around the limits of a container (mounts, namespaces, other processes' files), changes
the machine (modules, clocks, swap, reboot) or is a doorway that attacks like (keys, io_uring, userfaultfd), unless a
capability that the container was given is there for just that. Calls that are newer than this list do not exist.
"""

from __future__ import annotations

import errno
import struct
from typing import Final

from dray.node.runtime import capabilities

NEWEST_CALL: Final = 462
NEW_NAMESPACES: Final = 0x7E020000
"""The flags of clone that make namespaces."""

_ARCHITECTURES: Final = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
_COLUMN: Final = {"x86_64": 0, "aarch64": 1}

Numbers = tuple[int | None, int | None]
_GUARDED: Final[dict[str, dict[str, Numbers]]] = {
    "SYS_ADMIN": {
        "mount": (165, 40),
        "umount2": (166, 39),
        "pivot_root": (155, 41),
        "unshare": (272, 97),
        "setns": (308, 268),
        "quotactl": (179, 60),
        "quotactl_fd": (443, 443),
        "lookup_dcookie": (212, 18),
        "fanotify_init": (300, 262),
        "sethostname": (170, 161),
        "setdomainname": (171, 162),
        "fsopen": (430, 430),
        "fsconfig": (431, 431),
        "fsmount": (432, 432),
        "fspick": (433, 433),
        "move_mount": (429, 429),
        "open_tree": (428, 428),
        "mount_setattr": (442, 442),
    },
    "SYS_ADMIN BPF": {"bpf": (321, 280)},
    "SYS_ADMIN PERFMON": {"perf_event_open": (298, 241)},
    "SYS_CHROOT": {"chroot": (161, 51)},
    "SYS_BOOT": {"reboot": (169, 142), "kexec_load": (246, 104), "kexec_file_load": (320, 294)},
    "SYS_MODULE": {
        "create_module": (174, None),
        "init_module": (175, 105),
        "finit_module": (313, 273),
        "delete_module": (176, 106),
        "get_kernel_syms": (177, None),
        "query_module": (178, None),
    },
    "SYS_PACCT": {"acct": (163, 89)},
    "SYS_PTRACE": {
        "process_madvise": (440, 440),
        "kcmp": (312, 272),
        "pidfd_getfd": (438, 438),
    },
    "SYS_RAWIO": {"iopl": (172, None), "ioperm": (173, None)},
    "SYS_TIME": {"settimeofday": (164, 170), "clock_settime": (227, 112)},
    "SYS_TTY_CONFIG": {"vhangup": (153, 58)},
    "SYS_NICE": {"move_pages": (279, 239), "migrate_pages": (256, 238)},
    "SYSLOG": {"syslog": (103, 116)},
    "DAC_READ_SEARCH": {"open_by_handle_at": (304, 265)},
    "": {
        "add_key": (248, 217),
        "request_key": (249, 218),
        "keyctl": (250, 219),
        "userfaultfd": (323, 282),
        "io_uring_setup": (425, 425),
        "io_uring_enter": (426, 426),
        "io_uring_register": (427, 427),
        "swapon": (167, 224),
        "swapoff": (168, 225),
        "nfsservctl": (180, 42),
        "uselib": (134, None),
        "ustat": (136, None),
        "sysfs": (139, None),
        "_sysctl": (156, None),
    },
}
"""By the capabilities of which one opens them, with none for never: system calls, with their numbers on x86_64 and
aarch64."""
_CLONE: Final[Numbers] = (56, 220)
_CLONE3: Final[Numbers] = (435, 435)

_LOAD, _EQUAL, _ABOVE, _ANY, _RETURN = 0x20, 0x15, 0x25, 0x45, 0x06
_ALLOW, _ERROR = 0x7FFF0000, 0x00050000
_CALL, _ARCHITECTURE, _FIRST_ARGUMENT = 0, 4, 16


def refused_calls(architecture: str, allowed: int) -> dict[str, int]:
    """The system calls that are refused to whoever has these capabilities, with their numbers."""
    column = _COLUMN[architecture]
    given = set(capabilities.names(allowed))
    return {
        name: number
        for keys, calls in _GUARDED.items()
        if given.isdisjoint(keys.split())
        for name, numbers in calls.items()
        if (number := numbers[column]) is not None
    }


def default_filter(architecture: str, allowed: int) -> bytes:
    """The filter as the kernel takes it. Raises KeyError for an architecture that is not known."""
    column = _COLUMN[architecture]
    clone, clone3 = _CLONE[column], _CLONE3[column]
    assert clone is not None
    assert clone3 is not None
    program = [
        _load(_ARCHITECTURE),
        _jump(_EQUAL, _ARCHITECTURES[architecture], 1, 0),
        _refuse(errno.ENOSYS),  # programs for another architecture, whose calls have other numbers
        _load(_CALL),
        _jump(_ABOVE, NEWEST_CALL, 0, 1),
        _refuse(errno.ENOSYS),  # new calls, and x86_64's other way of numbering them
    ]
    for number in sorted(refused_calls(architecture, allowed).values()):
        program += [_jump(_EQUAL, number, 0, 1), _refuse(errno.EPERM)]
    if not allowed & capabilities.mask(["SYS_ADMIN"]):
        # What clone3 is asked for cannot be seen from here; told that there is none, libraries use clone.
        program += [_jump(_EQUAL, clone3, 0, 1), _refuse(errno.ENOSYS)]
        program += [
            _jump(_EQUAL, clone, 0, 3),
            _load(_FIRST_ARGUMENT),
            _jump(_ANY, NEW_NAMESPACES, 0, 1),
            _refuse(errno.EPERM),
        ]
    program.append(_instruction(_RETURN, 0, 0, _ALLOW))
    return b"".join(program)


def _load(offset: int) -> bytes:
    return _instruction(_LOAD, 0, 0, offset)


def _jump(code: int, value: int, if_so: int, if_not: int) -> bytes:
    """Skips so many instructions."""
    return _instruction(code, if_so, if_not, value)


def _refuse(error: int) -> bytes:
    return _instruction(_RETURN, 0, 0, _ERROR | error)


def _instruction(code: int, if_so: int, if_not: int, value: int) -> bytes:
    return struct.pack("HBBI", code, if_so, if_not, value)
