"""Containers as local processes: the CDI edits of their devices, restarts, exit codes, logs, and a graceful end."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import threading
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from dray.api.generated.core import Pod
from dray.cdi import Cache, ContainerEdits, Device, DeviceNode, Hook, Mount, Spec, write_spec
from dray.node.runtime import process
from dray.node.runtime.edits import apply, may_mount
from dray.node.runtime.interface import StartFailed
from dray.node.runtime.process import ProcessRuntime
from local_server import typed
from node_world import NodeWorld, play

SLEEP = f"while kill -0 {os.getpid()} 2>/dev/null; do sleep 0.1; done"
"""As long as the tests run, and no longer, even if they are killed."""


def with_processes(scenario: Callable[[NodeWorld], Awaitable[None]]) -> None:
    """Runs a scenario with real processes; whatever it leaves running is ended."""

    async def whole(world: NodeWorld) -> None:
        world.runtime = process_runtime(world)
        await world.start()
        try:
            await scenario(world)
        finally:
            await world.stop()  # before that, it might start more
            for pid in _shells_of(world):
                _kill_group(pid)

    play(whole, started=False)


def process_runtime(world: NodeWorld) -> ProcessRuntime:
    return ProcessRuntime(world.root, Cache((world.root / "cdi",)), world.clock)


def _kill_group(pid: int) -> None:
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
    spec = Spec(cdi_version="0.6.0", kind="example.com/gpu", devices=(Device(name="gpu-0", container_edits=edits),))
    write_spec(directory, "gpu", spec)


@pytest.mark.req("4381-161", "4381-162", "4381-238")
def test_a_container_sees_what_its_device_injects() -> None:
    async def scenario(world: NodeWorld) -> None:
        await world.driver()
        publish(world, ContainerEdits(env=("GPU=gpu-0", "LEVEL=9")))
        await world.claim("c", "gpu-0")
        script = 'echo "GPU=$GPU LEVEL=$LEVEL OWN=$OWN WHO=$WHO REF=$REF"'
        environment = [
            {"name": "OWN", "value": "x"},
            {"name": "REF", "value": "$(OWN)-$(OTHER)-$$(OWN)"},
            {"name": "WHO", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}},
        ]
        claims = {"claims": [{"name": "c"}]}
        pod = await world.pod("p", claims=["c"], containers=shell(script, env=environment, resources=claims))
        await world.phase("p", "Succeeded")
        assert log(world, pod) == "GPU=gpu-0 LEVEL=9 OWN=x WHO=p REF=x-$(OTHER)-$(OWN)\n"

    with_processes(scenario)


def test_config_maps_and_secrets_reach_the_environment() -> None:
    async def scenario(world: NodeWorld) -> None:
        meta = {"name": "conf", "namespace": "default"}
        await world.admin.create(typed({"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, "data": {"A": "1"}}))
        await world.admin.create(typed({"apiVersion": "v1", "kind": "Secret", "metadata": meta, "data": {"B": "Mg=="}}))
        sources = [{"configMapRef": {"name": "conf"}}, {"prefix": "S_", "secretRef": {"name": "conf"}}]
        variables = [{"name": "K", "valueFrom": {"secretKeyRef": {"name": "conf", "key": "B"}}}]
        script = 'echo "$A $S_B $K"'
        pod = await world.pod("p", containers=shell(script, envFrom=sources, env=variables))
        await world.phase("p", "Succeeded")
        assert log(world, pod) == "1 2 2\n"

    with_processes(scenario)


@pytest.mark.parametrize(
    ("policy", "script", "phase", "code"),
    [
        ("Never", "exit 0", "Succeeded", 0),
        ("Never", "exit 3", "Failed", 3),
        ("Never", "kill -9 $$$$", "Failed", 137),
        ("OnFailure", "exit 0", "Succeeded", 0),
    ],
)
def test_exit_codes_and_phases(policy: str, script: str, phase: str, code: int) -> None:
    async def scenario(world: NodeWorld) -> None:
        await world.pod("p", containers=shell(script), restartPolicy=policy)
        pod = await world.phase("p", phase)
        ended = pod.status.container_statuses[0].state.terminated
        assert ended is not None
        assert (ended.exit_code, ended.reason) == (code, "Error" if code else "Completed")

    with_processes(scenario)


def test_a_container_that_fails_is_restarted_at_once_and_then_later() -> None:
    async def scenario(world: NodeWorld) -> None:
        pod = await world.pod("p", containers=shell("echo run; exit 1"), restartPolicy="Always")
        deadline = time.monotonic() + 30
        while True:
            stored = await world.get("p")
            assert stored is not None
            assert time.monotonic() < deadline, stored.status
            status = stored.status.container_statuses[0] if stored.status.container_statuses else None
            waiting = status.state.waiting if status is not None else None
            if status is not None and waiting is not None and waiting.reason == "CrashLoopBackOff":
                break
            await asyncio.sleep(0.05)
        assert status.restart_count == 1
        assert status.last_state.terminated is not None
        assert (log(world, pod), log(world, pod, attempt=1)) == ("run\n", "run\n")
        assert stored.status.phase == "Running"

    with_processes(scenario)


def test_init_containers_come_first_and_sidecars_go_on() -> None:
    async def scenario(world: NodeWorld) -> None:
        order = world.root / "order"
        init = [
            {"name": "first", "image": "none", "command": ["/bin/sh", "-c", f"sleep 0.2; echo first >>{order}"]},
            {
                "name": "side",
                "image": "none",
                "command": ["/bin/sh", "-c", f"echo side >>{order}; {SLEEP}"],
                "restartPolicy": "Always",
            },
        ]
        await world.pod("p", initContainers=init, containers=shell(f"sleep 0.3; echo main >>{order}"))
        await world.phase("p", "Succeeded")
        assert order.read_text().split() == ["first", "side", "main"]

    with_processes(scenario)


def test_deletion_asks_first_and_kills_when_the_grace_period_is_over() -> None:
    async def scenario(world: NodeWorld) -> None:
        polite = f"trap 'echo bye; exit 0' TERM; echo up; {SLEEP}"
        stubborn = f"trap '' TERM; echo up; {SLEEP}"
        first = await world.pod("polite", containers=shell(polite))
        second = await world.pod("stubborn", containers=shell(stubborn), terminationGracePeriodSeconds=1)
        for pod in (first, second):
            await world.phase(pod.metadata.name, "Running")
            await world.until(lambda pod=pod: log(world, pod) == "up\n")  # type: ignore[misc]
        groups = {pod.metadata.name: _group(world, pod) for pod in (first, second)}
        began = time.monotonic()
        await world.delete("stubborn")
        await world.delete("polite")
        await world.gone("polite")
        assert time.monotonic() - began < 30
        await world.gone("stubborn")
        assert time.monotonic() - began >= 1
        await world.until(lambda: not any(map(_group_lives, groups.values())))
        await world.until(lambda: not list((world.root / "pods").iterdir()))

    with_processes(scenario)


def _group(world: NodeWorld, pod: Pod) -> int:
    return int((world.root / "pods" / pod.metadata.uid / "main" / "0.pid").read_text())


def test_children_of_a_container_end_with_it() -> None:
    async def scenario(world: NodeWorld) -> None:
        pod = await world.pod("p", containers=shell("sleep 1000 & echo $!; exit 0"))
        await world.phase("p", "Succeeded")
        child = int(log(world, pod))
        await world.until(lambda: not _alive(child))

    with_processes(scenario)


def _alive(pid: int) -> bool:
    return _state(Path(f"/proc/{pid}"))[0] not in ("", "Z")


def _group_lives(group: int) -> bool:
    """Whether a process of a group does anything; one that nobody has waited for does not."""
    states = [_state(path) for path in Path("/proc").iterdir() if path.name.isdigit()]
    return any(found == group and state not in ("", "Z") for state, found in states)


def _shells_of(world: NodeWorld) -> list[int]:
    """The processes around the containers of a node."""
    found = []
    for path in Path("/proc").iterdir():
        if path.name.isdigit() and _alive(int(path.name)):
            try:
                words = (path / "cmdline").read_bytes()
            except OSError:
                continue
            if os.fsencode(world.root) in words:
                found.append(int(path.name))
    return found


def _state(process: Path) -> tuple[str, int]:
    """State and group of a process; empty if it is gone."""
    try:
        fields = (process / "stat").read_text().rpartition(")")[2].split()
    except OSError:
        return "", 0
    return fields[0], int(fields[2])


@pytest.mark.parametrize(
    ("container", "why"),
    [
        ({"name": "main", "image": "nginx"}, "has no command: the process runtime has no images"),
        ({"name": "main", "image": "x", "command": ["no-such-program"]}, "no such program on this machine"),
        ({"name": "main", "image": "x", "command": ["/bin/true"], "workingDir": "/no/such"}, "/no/such"),
        (
            {"name": "main", "image": "x", "command": ["/bin/true"], "envFrom": [{"configMapRef": {"name": "none"}}]},
            "ConfigMap none",
        ),
    ],
)
def test_a_container_that_cannot_start_says_why(container: dict[str, Any], why: str) -> None:
    async def scenario(world: NodeWorld) -> None:
        await world.pod("p", containers=[container])
        assert why in await world.event("Failed", why)
        pod = await world.get("p")
        assert pod is not None
        assert pod.status.phase == "Pending"
        assert "kubelet_started_containers_errors_total" in world.metrics()

    with_processes(scenario)


@pytest.mark.req("4381-197")
def test_a_missing_cdi_device_keeps_the_container_from_starting_until_it_is_there() -> None:
    async def scenario(world: NodeWorld) -> None:
        await world.driver()
        await world.claim("c", "gpu-0")
        claims = {"claims": [{"name": "c"}]}
        await world.pod("p", claims=["c"], containers=shell("exit 0", resources=claims))
        await world.event("Failed", 'CDI device "example.com/gpu=gpu-0" is not defined')
        assert 'kubelet_started_containers_errors_total{code="CreateContainerError"' in world.metrics()
        publish(world, ContainerEdits(env=("X=1",)))
        await world.phase("p", "Succeeded")

    with_processes(scenario)


def test_hooks_run_with_the_state_of_the_container() -> None:
    async def scenario(world: NodeWorld) -> None:
        await world.driver()
        seen = world.root / "hooks"

        def hook(name: str) -> Hook:
            script = f"(echo {name}; cat; echo) >>{seen}"
            return Hook(hook_name=name, path="/bin/sh", args=("sh", "-c", script), env=("PATH=/bin:/usr/bin",))

        publish(world, ContainerEdits(hooks=tuple(map(hook, ("createRuntime", "poststart", "poststop")))))
        await world.claim("c", "gpu-0")
        claims = {"claims": [{"name": "c"}]}
        pod = await world.pod("p", claims=["c"], containers=shell("sleep 0.3", resources=claims))
        await world.phase("p", "Succeeded")
        await world.until(lambda: seen.read_text().count("\n") == 6)
        names, states = seen.read_text().splitlines()[::2], map(json.loads, seen.read_text().splitlines()[1::2])
        assert names == ["createRuntime", "poststart", "poststop"]
        assert {state["id"] for state in states} == {f"process://{pod.metadata.uid}/main/0"}

    with_processes(scenario)


def test_a_hook_that_fails_keeps_the_container_from_starting() -> None:
    async def scenario(world: NodeWorld) -> None:
        await world.driver()
        bad = Hook(hook_name="createRuntime", path="/bin/sh", args=("sh", "-c", "echo no way; exit 4"))
        publish(world, ContainerEdits(hooks=(bad,)))
        await world.claim("c", "gpu-0")
        claims = {"claims": [{"name": "c"}]}
        await world.pod("p", claims=["c"], containers=shell("exit 0", resources=claims))
        assert "ended with 4: no way" in await world.event("Failed", "createRuntime hook")

    with_processes(scenario)


def test_mounts_are_seen_by_the_container_alone_or_named_where_only_root_may_mount() -> None:
    async def scenario(world: NodeWorld) -> None:
        await world.driver()
        host, inside = world.root / "host.txt", world.root / "inside.txt"
        host.write_text("from the host\n")
        inside.write_text("before\n")
        mount = Mount(host_path=str(host), container_path=str(inside), options=("ro",))
        publish(world, ContainerEdits(mounts=(mount,)))
        await world.claim("c", "gpu-0")
        claims = {"claims": [{"name": "c"}]}
        script = f"cat {inside}; echo x 2>/dev/null >{inside} || echo read-only"
        pod = await world.pod("p", claims=["c"], containers=shell(script, resources=claims))
        await world.phase("p", "Succeeded")
        if may_mount():
            assert log(world, pod) == "from the host\nread-only\n"
            assert inside.read_text() == "before\n"
        else:
            await world.event("NotApplied", "only root may do that")

    with_processes(scenario)


def test_containers_outlive_the_agent_and_are_found_again() -> None:
    async def scenario(world: NodeWorld) -> None:
        flag = world.root / "flag"
        on = await world.pod("on", containers=shell(f"while [ ! -e {flag} ]; do sleep 0.05; done; exit 7"))
        await world.pod("off", containers=shell(f"while [ ! -e {flag}.off ]; do sleep 0.05; done; exit 8"))
        before = [(await world.phase(name, "Running")).status.container_statuses for name in ("on", "off")]
        await world.stop()
        Path(f"{flag}.off").touch()  # this one ends while nobody is looking
        exit_file = world.root / "pods"
        await world.until(lambda: any(exit_file.glob("*/main/0.exit")))
        world.runtime = process_runtime(world)
        await world.start()
        off = await world.phase("off", "Failed")
        assert off.status.container_statuses[0].state.terminated is not None
        assert off.status.container_statuses[0].state.terminated.exit_code == 8
        stored = await world.get("on")
        assert stored is not None
        assert stored.status.container_statuses == before[0]
        flag.touch()
        ended = await world.phase("on", "Failed")
        assert ended.metadata.uid == on.metadata.uid
        assert ended.status.container_statuses[0].state.terminated is not None
        assert ended.status.container_statuses[0].state.terminated.exit_code == 7

    with_processes(scenario)


def test_children_of_a_container_that_outlived_the_agent_end_with_it() -> None:
    async def scenario(world: NodeWorld) -> None:
        flag = world.root / "flag"
        script = f"({SLEEP}) & echo $!; while [ ! -e {flag} ]; do sleep 0.05; done; exit 0"
        pod = await world.pod("p", containers=shell(script))
        await world.phase("p", "Running")
        await world.until(lambda: log(world, pod).endswith("\n"))
        child = int(log(world, pod))
        await world.stop()
        world.runtime = process_runtime(world)
        await world.start()
        assert _alive(child)
        flag.touch()
        await world.phase("p", "Succeeded")
        await world.until(lambda: not _alive(child))

    with_processes(scenario)


def test_a_container_that_is_being_started_when_the_agent_ends_is_found_again(monkeypatch: pytest.MonkeyPatch) -> None:
    begun, go_on = threading.Event(), threading.Event()
    spawn = process._spawn

    def slowly(*arguments: Any) -> Any:
        begun.set()
        go_on.wait(30)
        return spawn(*arguments)

    async def scenario(world: NodeWorld) -> None:
        monkeypatch.setattr(process, "_spawn", slowly)
        pod = await world.pod("p", containers=shell(f"echo up; {SLEEP}"))
        await world.until(begun.is_set)
        stopping = asyncio.ensure_future(world.stop())
        await asyncio.sleep(0.05)
        assert not stopping.done()
        go_on.set()
        await stopping
        monkeypatch.undo()
        await world.until(lambda: _pid_is_noted(world, pod))
        group = _group(world, pod)
        world.runtime = process_runtime(world)
        await world.start()
        await world.phase("p", "Running")
        assert _group(world, pod) == group
        await world.until(lambda: log(world, pod) == "up\n")  # and not twice

    with_processes(scenario)


def _pid_is_noted(world: NodeWorld, pod: Pod) -> bool:
    path = world.root / "pods" / pod.metadata.uid / "main" / "0.pid"
    return path.exists() and path.read_text().endswith("\n")


def test_processes_of_pods_that_are_gone_are_ended_at_start() -> None:
    async def scenario(world: NodeWorld) -> None:
        pod = await world.pod("p", containers=shell(SLEEP))
        await world.phase("p", "Running")
        pid = _group(world, pod)
        await world.stop()
        await world.delete("p", grace=0)
        world.runtime = process_runtime(world)
        await world.start()
        await world.until(lambda: not _alive(pid))
        await world.until(lambda: not list((world.root / "pods").iterdir()))

    with_processes(scenario)


def test_features_that_a_process_cannot_have_are_named() -> None:
    async def scenario(world: NodeWorld) -> None:
        probe = {"exec": {"command": ["true"]}}
        volume = {"name": "data", "emptyDir": {}}
        container = shell("exit 0", livenessProbe=probe, volumeMounts=[{"name": "data", "mountPath": "/data"}])
        await world.pod("p", containers=container, volumes=[volume])
        message = await world.event("NotApplied", "container main")
        assert "volumes are not mounted (data)" in message
        assert "livenessProbe not run" in message

    with_processes(scenario)


def test_a_pod_past_its_deadline_is_ended() -> None:
    async def scenario(world: NodeWorld) -> None:
        await world.pod("p", containers=shell(SLEEP), activeDeadlineSeconds=1, terminationGracePeriodSeconds=1)
        pod = await world.phase("p", "Failed")
        assert pod.status.reason == "DeadlineExceeded"

    with_processes(scenario)


def test_edits_that_cannot_be_applied_are_named_and_missing_devices_refused(tmp_path: Path) -> None:
    there = tmp_path / "device"
    there.touch()
    same = ContainerEdits(device_nodes=(DeviceNode(path=str(there)),))
    assert apply(same, {}, may_mount=False).warnings == ()
    other = ContainerEdits(device_nodes=(DeviceNode(path="/dev/elsewhere", host_path=str(there)),))
    assert "only root" in apply(other, {}, may_mount=False).warnings[0]
    assert "does not exist" in apply(other, {}, may_mount=True).warnings[0]
    with pytest.raises(StartFailed, match="/dev/nothing-here is not there"):
        apply(ContainerEdits(device_nodes=(DeviceNode(path="/dev/nothing-here"),)), {}, may_mount=True)


def test_a_process_that_ends_while_it_is_looked_for_has_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario(world: NodeWorld) -> None:
        pod = await world.pod("p", containers=shell(SLEEP))
        running = await world.phase("p", "Running")
        await world.stop()
        runtime = process_runtime(world)

        def gone(pid: int) -> int:
            raise ProcessLookupError(pid)

        monkeypatch.setattr(os, "pidfd_open", gone)
        found = runtime.recover(running, lambda: None)
        assert found["main"].exit is not None
        assert found["main"].exit.code is None
        monkeypatch.undo()
        os.killpg(_group(world, pod), signal.SIGKILL)

    with_processes(scenario)


def test_a_process_that_cannot_be_watched_does_not_run(monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario(world: NodeWorld) -> None:
        def full(_pid: int) -> int:
            raise OSError(24, "Too many open files")

        monkeypatch.setattr(os, "pidfd_open", full)
        await world.pod("p", containers=shell(SLEEP))
        await world.event("Failed", "Too many open files")
        await world.until(lambda: not _shells_of(world))
        monkeypatch.undo()
        await world.phase("p", "Running")
        assert _shells_of(world)

    with_processes(scenario)
