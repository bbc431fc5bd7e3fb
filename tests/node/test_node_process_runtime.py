"""Containers as local processes: the CDI edits of their devices, restarts, exit codes, logs, and a graceful end."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import signal
import threading
import time
import tracemalloc
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from dray.api.generated.core import Pod
from dray.cdi import ContainerEdits, DeviceNode, Hook, Mount
from dray.node.runtime import process
from dray.node.runtime.edits import apply
from dray.node.runtime.hooks import ContainerInfo, run_hooks
from dray.node.runtime.interface import StartFailed
from dray.node.runtime.machine import Machine
from local_server import typed
from patience import PATIENCE, eventually_async
from process_world import (
    MACHINE,
    SLEEP,
    alive,
    group,
    group_lives,
    log,
    pid_is_noted,
    process_runtime,
    process_world,
    publish,
    shell,
    shells_of,
)


@pytest.mark.req("4381-161", "4381-162", "4381-238")
async def test_a_container_sees_what_its_device_injects() -> None:
    async with process_world() as world:
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


async def test_config_maps_and_secrets_reach_the_environment() -> None:
    async with process_world() as world:
        meta = {"name": "conf", "namespace": "default"}
        await world.admin.create(typed({"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, "data": {"A": "1"}}))
        await world.admin.create(typed({"apiVersion": "v1", "kind": "Secret", "metadata": meta, "data": {"B": "Mg=="}}))
        sources = [{"configMapRef": {"name": "conf"}}, {"prefix": "S_", "secretRef": {"name": "conf"}}]
        variables = [{"name": "K", "valueFrom": {"secretKeyRef": {"name": "conf", "key": "B"}}}]
        script = 'echo "$A $S_B $K"'
        pod = await world.pod("p", containers=shell(script, envFrom=sources, env=variables))
        await world.phase("p", "Succeeded")
        assert log(world, pod) == "1 2 2\n"


@pytest.mark.parametrize(
    ("policy", "script", "phase", "code"),
    [
        ("Never", "exit 0", "Succeeded", 0),
        ("Never", "exit 3", "Failed", 3),
        ("Never", "kill -9 $$$$", "Failed", 137),
        ("OnFailure", "exit 0", "Succeeded", 0),
    ],
)
async def test_exit_codes_and_phases(policy: str, script: str, phase: str, code: int) -> None:
    async with process_world() as world:
        await world.pod("p", containers=shell(script), restartPolicy=policy)
        pod = await world.phase("p", phase)
        ended = pod.status.container_statuses[0].state.terminated
        assert ended is not None
        assert (ended.exit_code, ended.reason) == (code, "Error" if code else "Completed")


async def test_a_container_that_fails_is_restarted_at_once_and_then_later() -> None:
    async with process_world() as world:
        pod = await world.pod("p", containers=shell("echo run; exit 1"), restartPolicy="Always")
        deadline = time.monotonic() + PATIENCE
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


async def test_init_containers_come_first_and_sidecars_go_on() -> None:
    async with process_world() as world:
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
        await world.pod(
            "p",
            initContainers=init,
            containers=shell(f"until grep side {order}; do sleep 0.1; done; echo main >>{order}"),
        )
        await world.phase("p", "Succeeded")
        assert order.read_text().split() == ["first", "side", "main"]


async def test_deletion_asks_first_and_kills_when_the_grace_period_is_over() -> None:
    async with process_world() as world:
        polite = f"trap 'echo bye; exit 0' TERM; echo up; {SLEEP}"
        forever = int(10 * PATIENCE)
        stubborn = f"trap '' TERM; echo up; {SLEEP}"
        first = await world.pod("polite", containers=shell(polite), terminationGracePeriodSeconds=forever)
        second = await world.pod("stubborn", containers=shell(stubborn), terminationGracePeriodSeconds=1)
        for pod in (first, second):
            await world.phase(pod.metadata.name, "Running")
            await world.until(lambda pod=pod: log(world, pod) == "up\n")  # type: ignore[misc]
        groups = {pod.metadata.name: group(world, pod) for pod in (first, second)}
        began = time.monotonic()
        await world.delete("stubborn")
        await world.delete("polite")
        await world.gone("polite")
        await world.gone("stubborn")
        assert time.monotonic() - began >= 1
        await world.until(lambda: not any(map(group_lives, groups.values())))
        await world.until(lambda: not list((world.root / "pods").iterdir()))


async def test_children_of_a_container_end_with_it() -> None:
    async with process_world() as world:
        pod = await world.pod("p", containers=shell("sleep 1000 & echo $!; exit 0"), hostPID=True)
        await world.phase("p", "Succeeded")
        child = int(log(world, pod))
        await world.until(lambda: not alive(child))


@pytest.mark.parametrize(
    ("container", "why"),
    [
        ({"name": "main", "image": "nginx"}, "has no command: the process runtime has no images"),
        ({"name": "main", "image": "x", "command": ["no-such-program"]}, "no such program on this machine"),
        (
            {"name": "main", "image": "x", "command": ["true"], "env": [{"name": "PATH", "value": "/a:" * 1000}]},
            "PATH has more than 1000 directories",
        ),
        ({"name": "main", "image": "x", "command": ["/bin/true"], "workingDir": "/no/such"}, "/no/such"),
        (
            {"name": "main", "image": "x", "command": ["/bin/true"], "envFrom": [{"configMapRef": {"name": "none"}}]},
            "ConfigMap none",
        ),
    ],
)
async def test_a_container_that_cannot_start_says_why(container: dict[str, Any], why: str) -> None:
    async with process_world() as world:
        await world.pod("p", containers=[container])
        assert why in await world.event("Failed", why)
        pod = await world.get("p")
        assert pod is not None
        assert pod.status.phase == "Pending"
        assert "kubelet_started_containers_errors_total" in world.metrics()


@pytest.mark.req("4381-197")
async def test_a_missing_cdi_device_keeps_the_container_from_starting_until_it_is_there() -> None:
    async with process_world() as world:
        await world.driver()
        await world.claim("c", "gpu-0")
        claims = {"claims": [{"name": "c"}]}
        await world.pod("p", claims=["c"], containers=shell("exit 0", resources=claims))
        await world.event("Failed", 'CDI device "example.com/gpu=gpu-0" is not defined')
        assert 'kubelet_started_containers_errors_total{code="CreateContainerError"' in world.metrics()
        publish(world, ContainerEdits(env=("X=1",)))
        await world.phase("p", "Succeeded")


async def test_hooks_run_with_the_state_of_the_container() -> None:
    async with process_world() as world:
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


async def test_a_hook_that_fails_keeps_the_container_from_starting() -> None:
    async with process_world() as world:
        await world.driver()
        bad = Hook(hook_name="createRuntime", path="/bin/sh", args=("sh", "-c", "echo no way; exit 4"))
        publish(world, ContainerEdits(hooks=(bad,)))
        await world.claim("c", "gpu-0")
        claims = {"claims": [{"name": "c"}]}
        await world.pod("p", claims=["c"], containers=shell("exit 0", resources=claims))
        assert "ended with 4: no way" in await world.event("Failed", "createRuntime hook")


async def test_many_hooks_that_wait_need_no_thread_and_what_they_say_is_not_kept(tmp_path: Path) -> None:
    """The agent has few threads, and other things to do with them. `yes` says more than there is memory for."""
    info = ContainerInfo("id", "creating", str(tmp_path))
    gate = tmp_path / "gate"
    os.mkfifo(gate)
    waiting = Hook(
        hook_name="createRuntime", path="/bin/sh", args=("sh", "-c", f"echo >>{tmp_path}/began; read x <{gate}")
    )
    hooks = [asyncio.create_task(run_hooks((waiting,), ("createRuntime",), info)) for _ in range(40)]
    while not (tmp_path / "began").exists() or (tmp_path / "began").read_text().count("\n") < 40:
        await asyncio.sleep(0.01)
    assert await asyncio.wait_for(asyncio.to_thread(lambda: "still there"), PATIENCE) == "still there"
    loud = Hook(
        hook_name="createRuntime", path="/bin/sh", args=("sh", "-c", "yes | head -c 50000000; echo; echo over; exit 3")
    )
    tracemalloc.start()
    try:
        with pytest.raises(StartFailed, match=r"ended with 3: (y\s+)*over"):
            await run_hooks((loud,), ("createRuntime",), info)
        assert tracemalloc.get_traced_memory()[1] < 5_000_000
    finally:
        tracemalloc.stop()
    with gate.open("w") as opened:
        opened.write("\n" * 40)
        opened.flush()
        await asyncio.gather(*hooks)


async def test_a_hook_that_takes_too_long_ends_with_all_that_it_started(tmp_path: Path) -> None:
    info = ContainerInfo("id", "creating", str(tmp_path))
    pids = tmp_path / "pids"
    script = f"sleep 600 & echo $! >{pids}; wait"
    slow = Hook(hook_name="createRuntime", path="/bin/sh", args=("sh", "-c", script), timeout=1)
    while not pids.exists():  # a second may be too short for a shell to get there
        with pytest.raises(StartFailed, match="did not end in 1 s"):
            await run_hooks((slow,), ("createRuntime",), info)
    child = int(pids.read_text())
    while alive(child):
        await asyncio.sleep(0.01)


async def test_mounts_are_seen_by_the_container_alone_or_named_where_only_root_may_mount() -> None:
    async with process_world() as world:
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
        if MACHINE.namespaces:
            assert log(world, pod) == "from the host\nread-only\n"
            assert inside.read_text() == "before\n"
        else:
            await world.event("NotApplied", "only root may do that")


async def test_containers_outlive_the_agent_and_are_found_again() -> None:
    async with process_world() as world:
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


async def test_what_was_written_of_containers_stays_so_when_the_agent_is_started_again() -> None:
    """However long it took from the start of a process until the agent heard of it: its files have other times."""
    async with process_world() as world:
        flag, tried = world.root / "flag", world.root / "tried"
        wait = f"while [ ! -e {flag} ]; do sleep 0.05; done"
        scripts = {"on": wait, "done": "exit 0", "again": f"[ -e {tried} ] || {{ touch {tried}; exit 4; }}; {wait}"}
        listed = [one for name, script in scripts.items() for one in shell(script, name=name)]
        init = shell("exit 0", name="init")
        await world.pod("p", initContainers=init, containers=listed, restartPolicy="OnFailure")

        async def settled() -> Pod | None:
            pod = await world.phase("p", "Running")
            on, done, again = pod.status.container_statuses
            well = on.state.running and done.state.terminated and again.state.running and again.restart_count
            return pod if well else None

        before = await eventually_async(settled)
        await world.stop()
        for suffix, seconds in ((".pid", -5), (".exit", 5)):
            for path in world.root.glob(f"pods/*/*/*{suffix}"):
                at = path.stat().st_mtime + seconds
                os.utime(path, (at, at))
        world.runtime = process_runtime(world)
        await world.start()
        flag.touch()
        after = await world.phase("p", "Succeeded")
        assert after.status.init_container_statuses == before.status.init_container_statuses
        was, now = before.status.container_statuses, after.status.container_statuses
        assert now[1] == was[1]
        assert was[2].last_state.terminated is not None
        assert was[2].last_state.terminated.exit_code == 4
        assert now[2].last_state == was[2].last_state
        for old, new in ((was[0], now[0]), (was[2], now[2])):
            assert old.state.running is not None
            assert new.state.terminated is not None
            assert new.state.terminated.started_at == old.state.running.started_at


async def test_a_container_that_says_it_has_ended_and_goes_on_is_watched_by_the_next_agent() -> None:
    """The shell around it, which is to say so, has the same user: with a debugger its processes may do that for it."""
    async with process_world() as world:
        pod = await world.pod("p", containers=shell(SLEEP))
        await world.phase("p", "Running")
        await world.stop()
        (world.root / "pods" / pod.metadata.uid / "main" / "0.exit").write_text("0\n")
        runtime = process_runtime(world)
        found = runtime.recover(pod, lambda: None)["main"]
        assert found.exit is None
        runtime.kill(found)
        await world.until(lambda: found.exit is not None)


async def test_children_of_a_container_that_outlived_the_agent_end_with_it() -> None:
    async with process_world() as world:
        flag = world.root / "flag"
        script = f"({SLEEP}) & echo $!; while [ ! -e {flag} ]; do sleep 0.05; done; exit 0"
        pod = await world.pod("p", containers=shell(script), hostPID=True)
        await world.phase("p", "Running")
        await world.until(lambda: log(world, pod).endswith("\n"))
        child = int(log(world, pod))
        await world.stop()
        world.runtime = process_runtime(world)
        await world.start()
        assert alive(child)
        flag.touch()
        await world.phase("p", "Succeeded")
        await world.until(lambda: not alive(child))


async def test_a_container_that_is_being_started_when_the_agent_ends_is_found_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    begun, go_on = threading.Event(), threading.Event()
    spawn = process._spawn

    def slowly(*arguments: Any) -> Any:
        begun.set()
        go_on.wait(PATIENCE)
        return spawn(*arguments)

    async with process_world() as world:
        monkeypatch.setattr(process, "_spawn", slowly)
        pod = await world.pod("p", containers=shell(f"echo up; {SLEEP}"))
        await world.until(begun.is_set)
        stopping = asyncio.ensure_future(world.stop())
        await asyncio.sleep(0.05)
        assert not stopping.done()
        go_on.set()
        await stopping
        monkeypatch.undo()
        await world.until(lambda: pid_is_noted(world, pod))
        number = group(world, pod)
        world.runtime = process_runtime(world)
        await world.start()
        await world.phase("p", "Running")
        assert group(world, pod) == number
        await world.until(lambda: log(world, pod) == "up\n")  # and not twice


async def test_processes_of_pods_that_are_gone_are_ended_at_start() -> None:
    async with process_world() as world:
        pod = await world.pod("p", containers=shell(SLEEP))
        await world.phase("p", "Running")
        pid = group(world, pod)
        await world.stop()
        await world.delete("p", grace=0)
        world.runtime = process_runtime(world)
        await world.start()
        await world.until(lambda: not alive(pid))
        await world.until(lambda: not list((world.root / "pods").iterdir()))


async def test_features_that_a_process_cannot_have_are_named() -> None:
    async with process_world() as world:
        probe = {"exec": {"command": ["true"]}}
        volume = {"name": "data", "emptyDir": {}}
        container = shell("exit 0", livenessProbe=probe, volumeMounts=[{"name": "data", "mountPath": "/data"}])
        await world.pod("p", containers=container, volumes=[volume], shareProcessNamespace=True)
        message = await world.event("NotApplied", "container main")
        assert "shareProcessNamespace" in message
        assert "volumes are not mounted (data)" in message
        assert "livenessProbe not run" in message


async def test_a_pod_past_its_deadline_is_ended() -> None:
    async with process_world() as world:
        await world.pod("p", containers=shell(SLEEP), activeDeadlineSeconds=1, terminationGracePeriodSeconds=1)
        pod = await world.phase("p", "Failed")
        assert pod.status.reason == "DeadlineExceeded"


def test_edits_that_cannot_be_applied_are_named_and_missing_devices_refused(tmp_path: Path) -> None:
    there = tmp_path / "device"
    there.touch()
    same = ContainerEdits(device_nodes=(DeviceNode(path=str(there)),))
    assert apply(same, {}, Machine()).warnings == ()
    other = ContainerEdits(device_nodes=(DeviceNode(path="/dev/elsewhere", host_path=str(there)),))
    assert "only root" in apply(other, {}, Machine()).warnings[0]
    assert "does not exist" in apply(other, {}, Machine(namespaces=True)).warnings[0]
    with pytest.raises(StartFailed, match="/dev/nothing-here is not there"):
        apply(ContainerEdits(device_nodes=(DeviceNode(path="/dev/nothing-here"),)), {}, Machine())


async def test_a_process_that_ends_while_it_is_looked_for_has_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    async with process_world() as world:
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
        os.killpg(group(world, pod), signal.SIGKILL)


async def test_a_process_that_cannot_be_watched_does_not_run(monkeypatch: pytest.MonkeyPatch) -> None:
    async with process_world() as world:

        def full(_pid: int) -> int:
            raise OSError(24, "Too many open files")

        monkeypatch.setattr(os, "pidfd_open", full)
        await world.pod("p", containers=shell(SLEEP))
        await world.event("Failed", "Too many open files")
        await world.until(lambda: not shells_of(world))
        monkeypatch.undo()
        await world.phase("p", "Running")
        await world.until(lambda: bool(shells_of(world)))


async def test_programs_are_looked_for_beside_the_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    """A pod may name a thousand places for them (PATH)."""
    threads = []
    which = shutil.which

    def noting(*arguments: Any, **more: Any) -> str | None:
        threads.append(threading.current_thread())
        found: str | None = which(*arguments, **more)
        return found

    monkeypatch.setattr(shutil, "which", noting)
    async with process_world() as world:
        await world.pod("p", containers=shell("true", env=[{"name": "PATH", "value": "/nowhere:" * 999 + "/bin"}]))
        await world.phase("p", "Succeeded")
    assert threads
    assert threading.main_thread() not in threads


async def test_a_deadline_that_a_pod_gets_while_it_runs_is_kept() -> None:
    async with process_world() as world:
        await world.pod("p", containers=shell(SLEEP))
        running = await world.phase("p", "Running")
        await world.admin.update(replace(running, spec=replace(running.spec, active_deadline_seconds=1)))
        assert (await world.phase("p", "Failed")).status.reason == "DeadlineExceeded"
