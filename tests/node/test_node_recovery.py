"""What an agent finds of the one before it, when the machine has no file to spare or its disk fails (issue 14)."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from dray.api.generated.core import Pod
from dray.node.runtime import machine
from dray.node.runtime.process import ProcessRuntime
from node_world import DRIVER, LocalWorld, local_world
from process_world import SLEEP, alive, group, log, process_runtime, process_world, shell

CALLS: tuple[tuple[Any, str], ...] = (
    (os, "open"),
    (os, "stat"),
    (os, "listdir"),
    (os, "pidfd_open"),
    (Path, "read_text"),
)
"""By which an agent looks for what there is."""
PROBLEMS = (errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.EIO)


class Failing:
    """Some of these calls, by number, fail."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self.first, self.last, self.seen, self.number = -1, -1, 0, errno.EMFILE
        for place, name in CALLS:
            patch.setattr(place, name, self._call(getattr(place, name)))

    def _call(self, real: Callable[..., Any]) -> Callable[..., Any]:
        def call(*arguments: Any, **named: Any) -> Any:
            if self.first >= 0:
                self.seen += 1
                if self.first <= self.seen - 1 <= self.last:
                    raise OSError(self.number, os.strerror(self.number))
            return real(*arguments, **named)

        return call

    def between(self, first: int, last: int) -> None:
        """From now on, these calls fail."""
        self.first, self.last, self.seen = first, last, 0

    def no_more(self) -> None:
        self.first = -1


@pytest.fixture
def failing(monkeypatch: pytest.MonkeyPatch) -> Iterator[Failing]:
    made = Failing(monkeypatch)
    yield made
    made.no_more()


@pytest.mark.parametrize("number", PROBLEMS, ids=errno.errorcode.get)
async def test_what_runs_is_found_or_nobody_can_tell(failing: Failing, number: int) -> None:
    """Whichever of the calls fails, nobody is told that a container has ended, or was never started."""
    failing.number = number
    async with process_world() as world:
        pod = await two_containers(world)
        await world.stop()
        for number in range(1000):
            runtime = process_runtime(world)
            failing.between(number, number)
            found = seen_by(runtime, pod)
            calls = failing.seen
            failing.no_more()
            assert found in (None, {"main": None, "done": 3}), number
            assert found is not None or not runtime._watched
            await runtime.close()
            if calls <= number:
                return
        raise AssertionError("recovering never ends")


async def two_containers(world: LocalWorld) -> Pod:
    """A pod of which one container runs, and one has ended well enough to be remembered."""
    ended = {**shell("exit 3")[0], "name": "done"}
    pod = await world.pod("p", containers=[*shell(f"echo up; {SLEEP}"), ended], restartPolicy="Never")
    await world.phase("p", "Running")
    await world.until(lambda: log(world, pod) == "up\n")
    done = world.root / "pods" / pod.metadata.uid / "done"
    await world.until(lambda: (done / "0.exit").exists() and not (done / "0.launch").exists())
    return pod


def seen_by(runtime: ProcessRuntime, pod: Pod) -> dict[str, int | None] | None:
    """The exit codes that are found, None for what runs; None if nobody can tell."""
    try:
        found = runtime.recover(pod, lambda: None)
    except OSError:
        return None
    return {name: running.exit.code if running.exit is not None else None for name, running in found.items()}


async def test_a_container_is_not_started_twice_by_an_agent_that_finds_nothing_at_first(failing: Failing) -> None:
    async with process_world() as world:
        pod = await world.pod("p", containers=shell(f"echo up; {SLEEP}"))
        await world.phase("p", "Running")
        await world.until(lambda: log(world, pod) == "up\n")
        number = group(world, pod)
        await world.stop()
        world.runtime = troubled = Troubled(process_runtime(world), failing)
        await world.start()
        await world.until(lambda: troubled.looks > 3)
        await world.pod("q", containers=shell("exit 0"))
        await world.phase("q", "Succeeded")
        assert [path.name for path in (world.root / "pods" / pod.metadata.uid / "main").glob("*.pid")] == ["0.pid"]
        assert group(world, pod) == number
        await world.delete("p", grace=0)
        await world.until(lambda: not alive(number))


class Troubled:
    """A runtime that cannot look at what there is the first few times."""

    def __init__(self, runtime: ProcessRuntime, failing: Failing) -> None:
        self._runtime = runtime
        self._failing = failing
        self.looks = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._runtime, name)

    def recover(self, pod: Pod, on_exit: Callable[[], None]) -> Any:
        self.looks += 1
        self._failing.between(0, 1000 if self.looks <= 3 else -1)
        try:
            return self._runtime.recover(pod, on_exit)
        finally:
            self._failing.no_more()


async def test_drivers_are_not_gone_because_nobody_can_look(failing: Failing, caplog: pytest.LogCaptureFixture) -> None:
    async with local_world() as world:
        await world.driver()
        [instance] = world.agent.drivers._instances[DRIVER]
        failing.between(0, 10**6)
        await world.agent._plugins.look()
        failing.no_more()
        assert "cannot look for plugins" in caplog.text
        await world.agent._plugins.look()
        assert world.agent.drivers._instances[DRIVER] == [instance]


@pytest.mark.parametrize("code", [2, 137, -9])
def test_what_containers_can_have_is_not_little_because_nobody_can_tell(
    code: int, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """A machine that is short of something when the agent begins is not one that cannot make namespaces."""
    program = tmp_path / "launcher.py"
    end = f"os.kill(os.getpid(), {-code})" if code < 0 else f"os._exit({code})"
    program.write_text(f"import os\n{end}\n")
    monkeypatch.setattr(machine, "LAUNCHER", program)
    with pytest.raises(OSError, match="too short of memory or files"):
        machine._can_make_namespaces()


@pytest.mark.parametrize(("number", "code"), [(errno.EPERM, 1), (errno.ENOSPC, 1), (errno.ENOMEM, 2)])
def test_what_is_not_permitted_is_told_from_what_is_short(number: int, code: int) -> None:
    fails = f"launcher.call = lambda *_: (_ for _ in ()).throw(launcher.Failed('no', {number}))"
    where = f"import sys; sys.path.insert(0, {str(machine.LAUNCHER.parent)!r})"
    done = subprocess.run([sys.executable, "-c", f"{where}; import launcher; {fails}; launcher.probe()"], check=False)
    assert done.returncode == code
