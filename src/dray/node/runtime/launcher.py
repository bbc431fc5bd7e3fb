"""Turns a process into a container's: `python -I -S launcher.py FD`, where FD has a `launch.Launch`, marshalled.

    control group ─▶ namespaces ─▶ a child in them ─▶ host name, mounts, limits ─▶ groups, capabilities, user ─▶
        directory ─▶ exec

A program of its own, and not a function of the agent, because what it does to itself must not happen to the agent, and
because an agent with threads cannot fork. It starts with every container, so it loads nothing but what the kernel needs
to be asked. What happens is told through `report`: `pid N`, then nothing, or why it failed.
"""

from __future__ import annotations

import ctypes
import errno
import marshal
import os
import stat
import sys

TYPE_CHECKING = False  # the module that has it takes longer to load than all of this
if TYPE_CHECKING:
    from typing import Any

    Plan = dict[str, Any]

NEW_MOUNTS, NEW_HOST_NAME, NEW_IPC, NEW_PROCESSES, NEW_NETWORK = 0x20000, 0x4000000, 0x8000000, 0x20000000, 0x40000000
SAME_PARENT = 0x8000
END_SIGNAL = 17
CLONE = {"x86_64": 56, "aarch64": 220}
KEYS = {"x86_64": 250, "aarch64": 219}
SIGNAL_ACTION = {"x86_64": 13, "aarch64": 134}
JOIN_SESSION = 1
OPEN_TREE, MOVE_MOUNT, MOUNT_SETATTR = 428, 429, 442
CLONE_TREE, HERE, EVERYTHING_BELOW = 1, 0x1000, 0x8000
FROM_HERE, TO_HERE = 0x4, 0x40
READ_ONLY, PRIVATE = 1, 1 << 18
NO_SUID, NO_DEVICES, NO_EXEC = 2, 4, 8
SET_NO_NEW_PRIVILEGES, SET_SECCOMP, DROP_BOUND, AMBIENT, CLEAR_AMBIENT = 38, 22, 24, 47, 4
FILTER = 2
HIGHEST_CAPABILITY = 63
CAPABILITY_VERSION = 0x20080522
SIGNALS = range(1, 65)
SET_MASK = 2
LIMIT_PROCESSES, LIMIT_OPEN_FILES = 6, 7
CONTROLLING_TERMINAL, UNLOCK_TERMINAL, OTHER_END = 0x540E, 0x40045431, 0x5441
TERMINALS = (5, 2)
"""The device that makes terminals."""
LINKS_AT_MOST = 40
SHORTAGES = (errno.EAGAIN, errno.EIO, errno.EMFILE, errno.ENFILE, errno.ENOMEM)
HELD_DESCRIPTOR, EXIT_DESCRIPTOR = 8, 9
MASKED = (
    "/proc/acpi",
    "/proc/asound",
    "/proc/interrupts",
    "/proc/kcore",
    "/proc/keys",
    "/proc/latency_stats",
    "/proc/sched_debug",
    "/proc/scsi",
    "/proc/timer_list",
    "/proc/timer_stats",
    "/sys/devices/virtual/powercap",
    "/sys/firmware",
)
READ_ONLY_PATHS = ("/proc/bus", "/proc/fs", "/proc/irq", "/proc/sys", "/proc/sysrq-trigger")

libc = ctypes.CDLL(None, use_errno=True)
libc.syscall.restype = ctypes.c_long
libc.prctl.argtypes = [ctypes.c_int, *[ctypes.c_ulong] * 4]


class Failed(Exception):
    """What could not be done; the text says what and why, the number is the system's for it, if it has one."""

    def __init__(self, text: str, number: int | None = 0) -> None:
        super().__init__(text)
        self.number = number or 0


def main() -> None:
    """Becomes what the plan says. Never returns if that works."""
    if sys.argv[1:] == ["probe"]:
        probe()
        return
    with open(int(sys.argv[1]), "rb") as file:
        plan = marshal.load(file)
    report = plan["report"] = high(plan["report"])
    for descriptor in plan["hidden"]:
        os.set_inheritable(descriptor, False)
    try:
        launch(plan)
    except Failed as error:
        os.write(report, f"{error.number} {error}".encode())
    except OSError as error:
        where = f"{error.filename}: " if error.filename else ""
        os.write(report, f"{error.errno} {where}{error.strerror}".encode())
    except ValueError as error:  # a zero in a word, for one
        os.write(report, f"0 its command, environment or working directory: {error}".encode())
    os._exit(128)


def probe() -> None:
    """Ends with 0 if a container can have namespaces of its own here, with 1 if not, with 2 if nobody can tell now."""
    try:
        call("unshare", libc.unshare(NEW_MOUNTS | NEW_HOST_NAME | NEW_IPC | NEW_PROCESSES))
        child = os.fork()
        if child:
            os._exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) & 0xFF)
        set_attributes(-100, "/", EVERYTHING_BELOW, propagation=PRIVATE)
        mount("proc", "/proc", "proc", NO_SUID | NO_DEVICES | NO_EXEC)
    except (Failed, OSError) as error:
        number = error.number if isinstance(error, Failed) else error.errno
        os._exit(2 if number in SHORTAGES else 1)
    os._exit(0)


def launch(plan: Plan) -> None:
    inherit_nothing(plan)
    if plan["control_group"]:
        join(plan["control_group"], plan["processes"])
    if plan["enter"] >= 0:
        if plan["namespaces"]:
            call("enter the container's namespaces", libc.setns(plan["enter"], plan["namespaces"]))
    elif plan["namespaces"]:
        call("make namespaces", libc.unshare(plan["namespaces"]))
    if plan["namespaces"] & NEW_PROCESSES:
        # Only children are in the new namespace. The agent is to be the parent, so that it sees how this one ends.
        ready, go = os.pipe()
        child = system_call("fork", CLONE[os.uname().machine], SAME_PARENT | END_SIGNAL, 0, 0, 0, 0)
        if child:
            note(plan, child)
            os.write(go, b"x")
            os._exit(0)
        os.close(go)
        if not os.read(ready, 1):  # not before the agent could find it again; if that cannot be, not at all
            os._exit(128)
    else:
        note(plan, os.getpid())
    os.setsid()
    if plan["enter"] < 0:
        set_scene(plan)
    if plan["terminal"] >= 0:
        open_terminal(plan)
    drop_rights(plan)
    try:
        os.chdir(plan["directory"])
    except OSError as error:
        raise Failed(f"workingDir {plan['directory']}: {error.strerror}", error.errno) from None
    keep({HELD_DESCRIPTOR: plan["held"], EXIT_DESCRIPTOR: plan["exit"]})
    execute(plan["command"], plan["environment"])


def join(group: str, processes: int) -> None:
    """Counts among the processes of a container from here on, of which there can be so many."""
    if not os.path.isdir(group):
        os.mkdir(group)
    for name, value in (("pids.max", processes), ("cgroup.procs", 0)):
        with open(f"{group}/{name}", "wb", buffering=0) as file:
            file.write(b"%d" % value)


def keep(descriptors: dict[int, int]) -> None:
    """Gives descriptors the numbers under which the shell around the container finds them."""
    moved = {number: high(found) for number, found in descriptors.items() if found >= 0}
    for number, found in moved.items():
        os.dup2(found, number)


def high(descriptor: int) -> int:
    """The same under a number that nobody needs."""
    import fcntl

    return fcntl.fcntl(descriptor, fcntl.F_DUPFD_CLOEXEC, 64)


def note(plan: Plan, child: int) -> None:
    """Writes down who the container is, for this agent and for the next."""
    os.write(plan["report"], b"pid %d\n" % child)
    if plan["pid"] >= 0:
        with open(f"/proc/{child}/stat", "rb") as file:
            born = file.read().rpartition(b")")[2].split()[19]
        os.write(plan["born"], born + b" " + plan["boot"].encode() + b"\n")
        os.write(plan["pid"], b"%d\n" % child)


def set_scene(plan: Plan) -> None:
    """What the container sees around it."""
    namespaces = plan["namespaces"]
    if namespaces & NEW_HOST_NAME:
        name = plan["host_name"].encode()
        call("set the host name", libc.sethostname(name, len(name)))
    if namespaces & NEW_NETWORK:
        start_loopback()
    if namespaces & NEW_MOUNTS:
        set_attributes(-100, "/", EVERYTHING_BELOW, propagation=PRIVATE)
        if plan["read_only_files"]:
            set_attributes(-100, "/", EVERYTHING_BELOW, add=READ_ONLY)
        if namespaces & NEW_PROCESSES:
            mount("proc", "/proc", "proc", NO_SUID | NO_DEVICES | NO_EXEC)
        if namespaces & NEW_IPC and os.path.isdir("/dev/shm"):
            mount("shm", "/dev/shm", "tmpfs", NO_SUID | NO_DEVICES | NO_EXEC, "mode=1777")
        if os.path.isdir("/dev/pts"):
            mount("terminals", "/dev/pts", "devpts", NO_SUID | NO_EXEC, "newinstance,ptmxmode=0666,mode=0600")
        if plan["masked"]:
            mask()
        for source, target, read_only in plan["binds"]:
            bind(source, target, read_only)


def open_terminal(plan: Plan) -> None:
    """A terminal as the standard streams, of the container's own where it has mounts of its own: those of others, who
    may be the same user, are not in sight. The other end goes to whoever holds it, through a socket.
    """
    import fcntl
    import socket

    # What is there may be somebody else's doing, in a container that may mount.
    maker = os.open("/dev/ptmx", os.O_RDWR | os.O_NOCTTY | os.O_NONBLOCK | os.O_CLOEXEC)
    device = os.fstat(maker).st_rdev
    if (os.major(device), os.minor(device)) != TERMINALS:
        raise Failed("/dev/ptmx makes no terminals")
    fcntl.ioctl(maker, UNLOCK_TERMINAL, bytes(4))
    terminal = fcntl.ioctl(maker, OTHER_END, os.O_RDWR | os.O_NOCTTY)
    if plan["changes_user"]:
        os.fchown(terminal, plan["user"], -1)
    with socket.socket(fileno=plan["terminal"]) as holder:
        socket.send_fds(holder, [b"t"], [maker])
    for stream in range(3):
        os.dup2(terminal, stream)
    for descriptor in (maker, terminal):
        os.close(descriptor)
    call("take the terminal", libc.ioctl(0, CONTROLLING_TERMINAL, 0))


def mask() -> None:
    """Covers what tells of the kernel, and makes what changes it read-only."""
    for path in MASKED:
        if os.path.isdir(path):
            mount("tmpfs", path, "tmpfs", READ_ONLY | NO_SUID | NO_DEVICES | NO_EXEC, "size=0")
        elif os.path.exists(path):
            bind("/dev/null", path, True)
    for path in READ_ONLY_PATHS:
        if os.path.exists(path):
            bind(path, path, True)
    if os.path.ismount("/sys"):
        set_attributes(-100, "/sys", EVERYTHING_BELOW, add=READ_ONLY)


def bind(source: str, target: str, read_only: bool) -> None:
    """One path over another. Both are found once, so that nobody can change what they mean in between."""
    where, onto = find(source), find(target)
    tree = system_call(f"bind {source}", OPEN_TREE, where, b"", CLONE_TREE | HERE | os.O_CLOEXEC)
    set_attributes(tree, "", HERE, add=READ_ONLY if read_only else 0, clear=0 if read_only else READ_ONLY)
    system_call(f"mount {source} at {target}", MOVE_MOUNT, tree, b"", onto, b"", FROM_HERE | TO_HERE)
    for descriptor in (where, onto, tree):
        os.close(descriptor)


def find(path: str) -> int:
    """A descriptor of what is at a path. Links are followed only if root made them, or who runs the agent."""
    steps = path.split("/")[::-1]
    at = os.open("/", os.O_PATH | os.O_CLOEXEC)
    links = 0
    while steps:
        name = steps.pop()
        if name in ("", "."):
            continue
        found = os.open(name, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=at)
        status = os.fstat(found)
        if not stat.S_ISLNK(status.st_mode):
            os.close(at)
            at = found
            continue
        links += 1
        if status.st_uid not in (0, os.geteuid()) or links > LINKS_AT_MOST:
            raise Failed(f"{path}: {name} is a symbolic link of user {status.st_uid}, which is not followed")
        goal = os.readlink("", dir_fd=found)
        os.close(found)
        if goal.startswith("/"):
            os.close(at)
            at = os.open("/", os.O_PATH | os.O_CLOEXEC)
        steps += goal.split("/")[::-1]
    return at


def start_loopback() -> None:
    import fcntl
    import socket

    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as control:
        request = b"lo".ljust(16, b"\0") + (1).to_bytes(2, "little").ljust(24, b"\0")
        fcntl.ioctl(control, 0x8914, request)


def inherit_nothing(plan: Plan) -> None:
    """What goes from a process to its children without being asked for: the agent's keys, which its containers would
    share, how much it matters to the machine, and the signals that it, or who started it, does not want to hear."""
    usual = ctypes.c_long(SIGNAL_ACTION.get(os.uname().machine, -1))
    for number in SIGNALS:  # not by the C library, which keeps some for itself; two cannot be set
        libc.syscall(usual, ctypes.c_long(number), bytes(32), None, ctypes.c_long(8))
    libc.sigprocmask(SET_MASK, bytes(128), None)
    # Where there are no keys, or none for the agent, there is nothing to share.
    libc.syscall(ctypes.c_long(KEYS.get(os.uname().machine, -1)), ctypes.c_long(JOIN_SESSION), None)
    with open("/proc/self/oom_score_adj", "r+b", buffering=0) as file:
        if plan["memory_score"] > int(file.read()):
            file.write(b"%d" % plan["memory_score"])


def drop_rights(plan: Plan) -> None:
    """From here on the process can do no more than its container."""
    if plan["no_new_privileges"]:
        call("set no_new_privs", libc.prctl(SET_NO_NEW_PRIVILEGES, 1, 0, 0, 0))
    filter_calls(plan["seccomp"])  # while the process may still do that; nothing below needs what is refused
    limit(LIMIT_OPEN_FILES, *plan["open_files"])
    if not plan["control_group"] and plan["user"] not in (0, os.getuid()):
        limit(LIMIT_PROCESSES, plan["processes"], plan["processes"])
    os.umask(0o022)
    allowed = plan["capabilities"]
    if plan["changes_user"]:
        for number in range(HIGHEST_CAPABILITY + 1):
            if not allowed >> number & 1 and libc.prctl(DROP_BOUND, number, 0, 0, 0) and number == 0:
                raise Failed("the agent may not take capabilities away")
        os.setgroups(plan["groups"])
        os.setresgid(plan["group"], plan["group"], plan["group"])
        libc.prctl(AMBIENT, CLEAR_AMBIENT, 0, 0, 0)
        os.setresuid(plan["user"], plan["user"], plan["user"])
        set_capabilities(allowed if plan["user"] == 0 else 0)


def limit(what: int, soft: int, hard: int) -> None:
    limits = (ctypes.c_ulong * 2)(soft, hard)
    name = "open files" if what == LIMIT_OPEN_FILES else "processes"
    call(f"set the limit of {name}", libc.setrlimit(what, limits))


def set_capabilities(allowed: int) -> None:
    """Permitted and effective as given, nothing inheritable."""
    header = (ctypes.c_uint32 * 2)(CAPABILITY_VERSION, 0)
    low, high = allowed & 0xFFFFFFFF, allowed >> 32
    data = (ctypes.c_uint32 * 6)(low, low, 0, high, high, 0)
    call("set capabilities", libc.capset(ctypes.byref(header), ctypes.byref(data)))


def filter_calls(program: bytes) -> None:
    if not program:
        return

    class Filter(ctypes.Structure):
        _fields_ = (("length", ctypes.c_ushort), ("instructions", ctypes.c_char_p))

    wanted = Filter(len(program) // 8, program)
    call("set the filter of system calls", libc.prctl(SET_SECCOMP, FILTER, ctypes.addressof(wanted), 0, 0))


def execute(command: list[str], environment: dict[str, str]) -> None:
    """The command, found as a shell would find it."""
    name = command[0]
    places = [""] if "/" in name else environment.get("PATH", os.defpath).split(":")
    problem: OSError | None = None
    for place in places:
        try:
            os.execve(os.path.join(place, name), command, environment)
        except (FileNotFoundError, NotADirectoryError) as error:
            problem = problem or error
        except OSError as error:
            problem = error
    raise Failed(f"{name}: {problem.strerror if problem else 'not found'}", problem.errno if problem else errno.ENOENT)


def mount(source: str, target: str, kind: str, flags: int, data: str = "") -> None:
    call(
        f"mount {kind} at {target}",
        libc.mount(source.encode(), target.encode(), kind.encode(), ctypes.c_ulong(flags), data.encode() or None),
    )


def set_attributes(at: int, path: str, flags: int, add: int = 0, clear: int = 0, propagation: int = 0) -> None:
    """Changes mounts: one, or all below it."""
    wanted = (ctypes.c_uint64 * 4)(add, clear, propagation, 0)
    system_call(f"change mount {path}", MOUNT_SETATTR, at, path.encode(), flags, ctypes.addressof(wanted), 32)


def system_call(what: str, number: int, *arguments: int | bytes) -> int:
    """A system call that the C library has no function for."""
    plain = [ctypes.c_char_p(one) if isinstance(one, bytes) else ctypes.c_long(one) for one in arguments]
    return call(what, libc.syscall(ctypes.c_long(number), *plain))


def call(what: str, result: int) -> int:
    """The result of a system call. Raises Failed if it has none."""
    if result < 0:
        number = ctypes.get_errno()
        raise Failed(f"{what}: {os.strerror(number)}", number)
    return result


if __name__ == "__main__":
    main()
