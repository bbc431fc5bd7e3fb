"""Security contexts of processes that really run, as the kernel tells of them in /proc/PID/status."""

from __future__ import annotations

import asyncio
import ctypes
import os
import signal
import stat
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from dray.api.generated.core import Pod
from dray.cdi import ContainerEdits, Mount
from dray.node.endpoints import ports
from dray.node.runtime import capabilities
from dray.node.runtime.launcher import JOIN_SESSION, KEYS
from node_world import NodeWorld
from ports import free_port
from process_world import MACHINE, SLEEP, group, log, pid_is_noted, process_world, publish, shell

needs_root = pytest.mark.skipif(not MACHINE.is_root, reason="only root can become others")
needs_namespaces = pytest.mark.skipif(not MACHINE.namespaces, reason="no namespaces can be made here")

RESTRICTED = {
    "runAsNonRoot": True,
    "runAsUser": 4711,
    "allowPrivilegeEscalation": False,
    "capabilities": {"drop": ["ALL"]},
    "seccompProfile": {"type": "RuntimeDefault"},
    "readOnlyRootFilesystem": True,
}
"""What the strictest Pod Security Standard asks for, and read-only files."""


async def run(world: NodeWorld, context: dict[str, Any], script: str = SLEEP, **spec: Any) -> Pod:
    """A pod whose container has a security context."""
    pod = await world.pod("p", containers=shell(script, securityContext=context), **spec)
    await world.phase("p", "Running")
    await world.until(lambda: pid_is_noted(world, pod))
    return pod


def kernel_says(pid: int) -> dict[str, str]:
    """What the kernel tells of a process, by name."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return {name: " ".join(value.split()) for name, _, value in (line.partition(":") for line in lines)}


def family(pid: int) -> list[int]:
    """A process and all that came of it."""
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return [pid, *(one for child in children for one in family(int(child)))]


def bits(mask: int) -> str:
    return f"{mask:016x}"


DEFAULT = bits(capabilities.DEFAULT & MACHINE.capabilities)
CASES: list[tuple[dict[str, Any], dict[str, Any], dict[str, str]]] = [
    (
        {},
        {},
        {"Uid": "0 0 0 0", "Gid": "0 0 0 0", "Groups": "", "CapEff": DEFAULT, "CapBnd": DEFAULT, "CapInh": bits(0)},
    ),
    (
        {"runAsUser": 4711},
        {},
        {
            "Uid": "4711 4711 4711 4711",
            "Gid": "65534 65534 65534 65534",
            "Groups": "",
            "CapEff": bits(0),
            "CapPrm": bits(0),
            "CapBnd": DEFAULT,
            "NoNewPrivs": "0",
            "Seccomp": "0",
        },
    ),
    (
        {"runAsUser": 4711, "runAsGroup": 4712},
        {"supplementalGroups": [50, 51], "fsGroup": 52},
        {"Gid": "4712 4712 4712 4712", "Groups": "50 51 52"},
    ),
    (
        RESTRICTED,
        {},
        {"CapEff": bits(0), "CapBnd": bits(0), "CapAmb": bits(0), "NoNewPrivs": "1", "Seccomp": "2"},
    ),
    (
        {"capabilities": {"drop": ["ALL"], "add": ["NET_BIND_SERVICE"]}},
        {},
        {"CapEff": bits(capabilities.mask(["NET_BIND_SERVICE"])), "CapBnd": bits(1 << 10)},
    ),
    ({"privileged": True}, {}, {"CapEff": bits(MACHINE.capabilities), "CapBnd": bits(MACHINE.capabilities)}),
    ({"seccompProfile": {"type": "RuntimeDefault"}, "runAsUser": 4711}, {}, {"Seccomp": "2", "NoNewPrivs": "0"}),
]


@needs_root
@pytest.mark.parametrize(("own", "shared", "expected"), CASES)
async def test_the_kernel_knows_what_was_asked_for(
    own: dict[str, Any], shared: dict[str, Any], expected: dict[str, str]
) -> None:
    async with process_world() as world:
        pod = await run(world, own, securityContext=shared)
        await world.until(lambda: len(family(group(world, pod))) >= 2)
        for pid in family(group(world, pod))[:2]:  # the shell around it has no more rights than the container
            told = kernel_says(pid)
            assert {name: told[name] for name in expected} == expected


@pytest.mark.parametrize(
    ("own", "spec", "why"),
    [
        ({"runAsNonRoot": True}, {}, "must not run as root"),
        ({"seLinuxOptions": {"level": "s0"}}, {}, "not labelled for SELinux"),
        ({}, {"securityContext": {"sysctls": [{"name": "net.core.somaxconn", "value": "9"}]}}, "sysctls"),
        ({}, {"hostUsers": False}, "spec.hostUsers"),
    ],
)
@needs_root
async def test_a_pod_that_asks_for_what_cannot_be_had_is_refused_with_the_reason(
    own: dict[str, Any], spec: dict[str, Any], why: str
) -> None:
    async with process_world() as world:
        trace = world.root / "ran"
        init = {"name": "first", "image": "none", "command": ["/bin/sh", "-c", f"touch {trace}"]}
        pod = await world.pod("p", containers=shell(SLEEP, securityContext=own), initContainers=[init], **spec)
        assert why in await world.event("Failed", why)
        while not (stored := await world.phase("p", "Pending")).status.container_statuses:
            await asyncio.sleep(0.02)
        states = (*stored.status.init_container_statuses, *stored.status.container_statuses)
        assert {status.state.waiting.reason for status in states if status.state.waiting} == {
            "CreateContainerConfigError"
        }
        assert all(why in status.state.waiting.message for status in states if status.state.waiting)
        assert not trace.exists()
        assert not (world.root / "pods" / pod.metadata.uid).exists()
        await world.delete("p")
        await world.gone("p")


@needs_namespaces
async def test_a_container_sees_its_own_processes_and_no_others() -> None:
    async with process_world() as world:
        pod = await run(world, {}, f"echo $$$$; ls /proc | grep -c '^[0-9]'; hostname; {SLEEP}", hostname="in-here")
        await world.until(lambda: log(world, pod).count("\n") == 3)
        number, count, name = log(world, pod).split()
        assert int(number) < 10
        assert int(count) < 10
        assert name == "in-here"


MORE_TERMINALS = "import os; print(os.ttyname(os.openpty()[1]))"
KEYRING = """
import ctypes, os, platform
add, ask = {"x86_64": (248, 250), "aarch64": (217, 219)}[platform.machine()]
call = ctypes.CDLL(None, use_errno=True).syscall
call.restype = ctypes.c_long
added = call(add, b"user", os.environ["HOSTNAME"].encode(), b"secret", 6, -3)
print(added > 0, call(ask, 11, call(ask, 0, -3, 0), ctypes.create_string_buffer(64), 64))
"""
"""Adds a key to the keyring of the session, and says how many bytes its keys take in there: four each."""


async def test_what_processes_hand_down_is_not_handed_to_containers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Keys, files, variables, and a place in the line of those that end when memory is short."""
    monkeypatch.setenv("AGENTS_OWN", "x")
    libc = ctypes.CDLL(None)
    libc.syscall(ctypes.c_long(KEYS[os.uname().machine]), ctypes.c_long(JOIN_SESSION), None)  # as a login has one
    script = f"python3 -c '{KEYRING}'; cat /proc/self/oom_score_adj; echo $(ls /proc/self/fd); env | cut -d= -f1"
    async with process_world() as world:
        for name in ("one", "two"):
            pod = await world.pod(name, containers=shell(script))
            await world.phase(name, "Succeeded")
            keys, score, files, *variables = log(world, pod).splitlines()
            assert keys in ("True 4", "False -1"), "each container has a keyring of its own, where there are any"
            assert score == "1000", "whoever asks for no memory goes first"
            assert files == "0 1 2 3", "the last is of the listing itself"
            assert "AGENTS_OWN" not in variables


@needs_namespaces
async def test_the_terminals_of_a_container_are_out_of_sight_of_others_of_the_same_user() -> None:
    async with process_world() as world:
        for name in ("one", "two"):
            script = f"echo {name} of a container; tty; ls /dev/pts; python3 -c '{MORE_TERMINALS}'; {SLEEP}"
            containers = shell(script, tty=True, stdin=True, securityContext={"runAsUser": 4711})
            pod = await world.pod(name, containers=containers)
            await world.phase(name, "Running")
            await world.until(lambda pod=pod: log(world, pod).count("\n") >= 4)  # type: ignore[misc]
            assert log(world, pod).splitlines()[1:4] == ["/dev/pts/0", "0  ptmx", "/dev/pts/1"]
            assert world.runtime.console is not None
            command = ("sh", "-c", "tty; for it in /dev/pts/[0-9]*; do echo $it; done")
            beside = await world.runtime.console.execute(
                pod.metadata.uid, "main", command, terminal=True, has_input=False
            )
            assert await beside.wait() == 0
            assert beside.output is not None
            shown = b""
            while part := await beside.output.read():
                shown += part
            assert shown.split() == [b"/dev/pts/1", b"/dev/pts/0", b"/dev/pts/1"]
            beside.close()


@needs_namespaces
async def test_nothing_is_left_of_a_container_whose_children_left_its_process_group() -> None:
    async with process_world() as world:
        pod = await run(world, {}, f"setsid sh -c '{SLEEP}' & echo up; {SLEEP}")
        await world.until(lambda: len(family(group(world, pod))) >= 4)
        pids = family(group(world, pod))
        await world.delete("p", grace=1)
        await world.gone("p")
        await world.until(lambda: not any(Path(f"/proc/{pid}/exe").exists() for pid in pids))


@needs_namespaces
async def test_read_only_files_are_read_only_but_for_mounts_that_are_not() -> None:
    async with process_world() as world:
        await world.driver()
        free = world.root / "free"
        free.mkdir()
        publish(world, ContainerEdits(mounts=(Mount(host_path=str(free), container_path=str(free)),)))
        await world.claim("c", "gpu-0")
        script = f"touch {world.root}/x || echo refused; touch {free}/y && echo written; echo z >/dev/null && echo sunk"
        container = shell(
            script, securityContext={"readOnlyRootFilesystem": True}, resources={"claims": [{"name": "c"}]}
        )
        pod = await world.pod("p", claims=["c"], containers=container)
        await world.phase("p", "Succeeded")
        assert [line for line in log(world, pod).splitlines() if "touch:" not in line] == ["refused", "written", "sunk"]
        assert (free / "y").exists()
        assert not (world.root / "x").exists()


@needs_namespaces
@pytest.mark.parametrize(("own", "may"), [({}, False), ({"privileged": True}, True)])
async def test_the_kernels_parameters_are_out_of_reach_unless_privileged(own: dict[str, Any], may: bool) -> None:
    async with process_world() as world:
        script = "[ -w /proc/sys/kernel/core_pattern ] && echo yes || echo no; mount -o remount,rw /proc/sys; true"
        pod = await world.pod("p", containers=shell(script, securityContext=own))
        await world.phase("p", "Succeeded")
        assert log(world, pod).splitlines()[0] == ("yes" if may else "no")


@needs_namespaces
async def test_the_default_filter_refuses_what_reaches_around_a_container() -> None:
    async with process_world() as world:
        script = (
            "unshare -U true && echo namespace; (echo fork) ; python3 -c 'import threading as t; t.Thread().start()'"
        )
        pod = await world.pod(
            "p", containers=shell(f"{script}; true", securityContext={"seccompProfile": {"type": "RuntimeDefault"}})
        )
        await world.phase("p", "Succeeded")
        said = log(world, pod)
        assert "Operation not permitted" in said
        assert "fork" in said
        assert "namespace\n" not in said
        assert "Error" not in said


@needs_root
async def test_a_working_directory_is_entered_with_the_rights_of_the_container() -> None:
    async with process_world() as world:
        private = world.root / "private"
        private.mkdir(mode=0o700)
        container = shell("pwd", securityContext={"runAsUser": 4711}, workingDir=str(private))
        await world.pod("p", containers=container)
        assert "Permission denied" in await world.event("Failed", "workingDir")


async def test_logs_are_for_the_agent_and_no_one_else() -> None:
    async with process_world() as world:
        pod = await run(world, {})
        directory = world.root / "pods" / pod.metadata.uid
        modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in (directory, *directory.rglob("*"))}
        assert modes.pop("0.log") == 0o640
        assert modes.pop("main") == modes.pop(pod.metadata.uid) == 0o700
        assert set(modes.values()) == {0o600}
        assert stat.S_IMODE((world.root / "pods").stat().st_mode) == 0o700
        assert {path.stat().st_uid for path in directory.rglob("*")} == {os.geteuid()}


LISTENER = (
    "import socket; s = socket.create_server(('127.0.0.1', {port})); print('up', flush=True)\nwhile 1: s.accept()"
)


@needs_namespaces
async def test_ports_of_a_pod_with_a_network_of_its_own_are_never_ports_of_the_machine() -> None:
    """Also when its containers have ended, or are about to start again."""
    port, reached = free_port(), asyncio.Event()
    async with process_world(replace(MACHINE, pod_network="none")) as world:
        container = shell(f'exec python3 -c "{LISTENER.format(port=port)}"')
        pod = await world.pod("p", containers=container, terminationGracePeriodSeconds=0)
        await world.phase("p", "Running")
        await world.until(lambda: "up" in log(world, pod))
        console = world.runtime.console
        assert console is not None
        inside = await ports.connect(console, pod.metadata.uid, port)
        inside.close()
        machine = await asyncio.start_server(lambda _reader, _writer: reached.set(), "127.0.0.1", port)
        async with machine:
            os.killpg(group(world, pod), 9)
            await world.phase("p", "Failed")
            with pytest.raises(ConnectionRefusedError, match="no container of the pod runs"):
                await ports.connect(console, pod.metadata.uid, port)
        assert not reached.is_set()


async def test_no_secret_of_a_container_is_on_disk_when_it_has_ended() -> None:
    async with process_world() as world:
        first = await world.pod("ended", containers=shell("true", env=[{"name": "KEY", "value": "S3CRET"}]))
        await world.phase("ended", "Succeeded")
        second = await run(world, {}, f"trap 'exit 0' TERM; {SLEEP}")
        kept = world.root / "pods" / second.metadata.uid / "main" / "0.launch"
        assert kept.exists(), "commands that run beside it are started like it"
        await world.stop()
        os.killpg(group(world, second), 9)
        await world.start()
        await world.phase("p", "Failed")
        for pod in (first, second):
            files = [path for path in (world.root / "pods" / pod.metadata.uid).rglob("*") if path.is_file()]
            assert files
            assert not [path for path in files if path.suffix == ".launch" or b"S3CRET" in path.read_bytes()]


@needs_root
@pytest.mark.parametrize(
    "how", ["ln -s {precious} {place}", "ln {precious} {place}", "mkfifo {place}", "mv {log} {place}"]
)
async def test_a_container_cannot_reach_the_files_that_the_agent_opens_for_it(how: str) -> None:
    """What an attacker did: a link in place of the next log, which the agent then opened as root."""

    async with process_world() as world:
        world.root.chmod(0o755)
        precious = world.root / "precious"
        precious.write_text("precious")
        script = """
            self=$(readlink /proc/self/fd/2); directory=$(dirname "$self"); umask 0
            for place in "$directory/1.log" "$directory/1.exit" "$directory/0.exit" "$directory/../evil"; do
                HOW && echo done
            done
            chmod 0777 "$directory" && echo done
            ls "$directory" && echo done
            echo evil; exit 3
        """.replace("HOW", how.format(precious=precious, place='"$place"', log='"$self"'))
        context = {"runAsUser": 4711, "runAsGroup": 4711}
        pod = await world.pod("p", containers=shell(script, securityContext=context), restartPolicy="OnFailure")
        directory = world.root / "pods" / pod.metadata.uid
        await world.until(lambda: (directory / "main" / "1.log").exists())
        assert "done" not in log(world, pod)
        assert precious.read_text() == "precious"
        assert {path.name for path in directory.iterdir()} == {"main"}


async def test_containers_hear_signals_that_nobody_wanted_the_agent_to_hear() -> None:
    """With `nohup`, or in the background of a script, a program is started so that it ignores some."""
    ignored, blocked = (signal.SIGHUP, signal.SIGQUIT, signal.SIGUSR1), (signal.SIGUSR2, signal.SIGRTMIN + 3)
    before = {number: signal.signal(number, signal.SIG_IGN) for number in ignored}
    masked = signal.pthread_sigmask(signal.SIG_BLOCK, blocked)
    try:
        async with process_world() as world:
            pod = await world.pod("p", containers=shell("grep ^Sig /proc/self/status"))
            await world.phase("p", "Succeeded")
            said = dict(line.split(":\t") for line in log(world, pod).splitlines())
            assert (said["SigIgn"], said["SigBlk"]) == ("0" * 16, "0" * 16)
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, masked)
        for number, handler in before.items():
            signal.signal(number, handler)
