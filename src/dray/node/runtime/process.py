"""Containers as local processes: no images, no isolation but a process group; the CDI edits of their devices applied.

    ROOT/pods/UID/CONTAINER/ATTEMPT.log    what the container writes
    ROOT/pods/UID/CONTAINER/ATTEMPT.pid    its process group
    ROOT/pods/UID/CONTAINER/ATTEMPT.exit   its exit code, once it has ended

Processes go on when the agent ends. The shell around each one has the path of its exit file in its command line, which
tells it apart from another process that got the same number later.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import shutil
import signal
import subprocess
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Final

from dray.api.generated.core import Pod
from dray.cdi import Cache, CdiError, ContainerEdits, Hook
from dray.node.environment import expand
from dray.node.runtime import edits as cdi_edits
from dray.node.runtime.edits import Applied
from dray.node.runtime.hooks import AFTER, BEFORE, END, ContainerInfo, run_hooks
from dray.node.runtime.interface import Exit, OnExit, Order, Running, StartFailed
from dray.reconcile import Clock

KILLED: Final = 128 + signal.SIGKILL


class ProcessRuntime:
    """Implements `Runtime`."""

    name = "process"

    def __init__(self, root: Path, cdi: Cache, clock: Clock) -> None:
        self._pods = root / "pods"
        self._cdi = cdi
        self._clock = clock
        self._may_mount = cdi_edits.may_mount()
        self._watched: dict[Running, _Process] = {}
        self._hooks: set[asyncio.Task[None]] = set()

    async def start(self, order: Order, on_exit: OnExit) -> Running:
        """Starts a container. Raises StartFailed, with nothing left running."""
        files = _Files(self._pods, order.pod.metadata.uid, order.container.name, order.attempt)
        changes = self._edits(order)
        applied = cdi_edits.apply(changes, order.environment, may_mount=self._may_mount)
        command = _command(order, applied)
        identity = f"process://{order.pod.metadata.uid}/{order.container.name}/{order.attempt}"
        await run_hooks(changes.hooks, BEFORE, ContainerInfo(identity, "creating", str(files.directory)))
        child = await _spawned(asyncio.to_thread(_spawn, order, command, applied, files))
        running = Running(identity, order.attempt, self._clock.now(), applied.warnings)
        try:
            self._watch(running, _Process(child.pid, files, child, changes.hooks), on_exit)
        except OSError as error:  # no more file descriptors, for one: what cannot be watched must not run
            os.killpg(child.pid, signal.SIGKILL)
            child.wait()
            raise StartFailed("RunContainerError", f"container {order.container.name}: {error}") from None
        try:
            await run_hooks(changes.hooks, AFTER, ContainerInfo(identity, "running", str(files.directory), child.pid))
        except StartFailed:
            self.kill(running)
            raise
        return running

    def terminate(self, container: Running) -> None:
        """SIGTERM to the whole process group."""
        self._signal(container, signal.SIGTERM)

    def kill(self, container: Running) -> None:
        """SIGKILL to the whole process group."""
        process = self._watched.get(container)
        if process is not None:
            process.killed = True
        self._signal(container, signal.SIGKILL)

    def recover(self, pod: Pod, on_exit: OnExit, /) -> dict[str, Running]:
        """The last containers of a pod by name, running or ended."""
        uid = pod.metadata.uid
        found = {}
        for name, attempts in self._attempts(uid).items():
            running = self._recover(_Files(self._pods, uid, name, max(attempts)), on_exit)
            if running is not None:
                found[name] = running
        return found

    def known_pods(self) -> set[str]:
        """The pods that have a directory."""
        with contextlib.suppress(FileNotFoundError):
            return set(os.listdir(self._pods))
        return set()

    def recover_stray(self, uid: str, on_exit: OnExit) -> list[Running]:
        """The containers of a pod that is gone which still run."""
        every = [
            self._recover(_Files(self._pods, uid, name, attempt), on_exit)
            for name, attempts in self._attempts(uid).items()
            for attempt in attempts
        ]
        return [one for one in every if one is not None and one.exit is None]

    def clean(self, uid: str) -> None:
        """Removes the pod's directory, logs and all."""
        shutil.rmtree(self._pods / uid, ignore_errors=True)

    async def close(self) -> None:
        """Looks at no process any more; they go on."""
        for process in self._watched.values():
            process.release()
        self._watched.clear()
        await asyncio.gather(*self._hooks, return_exceptions=True)

    def _edits(self, order: Order) -> ContainerEdits:
        try:
            return self._cdi.edits(order.cdi_ids) if order.cdi_ids else ContainerEdits()
        except CdiError as error:
            raise StartFailed("CreateContainerError", str(error)) from None

    def _attempts(self, uid: str) -> dict[str, list[int]]:
        """The attempts that were made to run each container of a pod."""
        found: dict[str, list[int]] = {}
        for path in (self._pods / uid).glob("*/*.pid"):
            if path.stem.isdigit():
                found.setdefault(path.parent.name, []).append(int(path.stem))
        return found

    def _recover(self, files: _Files, on_exit: OnExit) -> Running | None:
        started = files.started()
        if started is None:
            return None
        pid, at = started
        running = Running(f"process://{files.identity}", files.attempt, at)
        running.exit = files.exit()
        if running.exit is None and _is_ours(pid, files):
            with contextlib.suppress(ProcessLookupError):
                self._watch(running, _Process(pid, files, None, ()), on_exit)
                return running
        # It has ended, maybe this very moment.
        running.exit = running.exit or files.exit() or Exit(None, self._clock.now())
        return running

    def _watch(self, running: Running, process: _Process, on_exit: OnExit) -> None:
        self._watched[running] = process

        def ended() -> None:
            del self._watched[running]
            code = process.finish()
            running.exit = Exit(code, self._clock.now())
            self._after(running, process)
            on_exit()

        process.watch(ended)

    def _after(self, running: Running, process: _Process) -> None:
        if any(hook.hook_name in END for hook in process.hooks):
            info = ContainerInfo(running.identity, "stopped", str(process.files.directory))
            task = asyncio.get_running_loop().create_task(_quietly(run_hooks(process.hooks, END, info)))
            self._hooks.add(task)
            task.add_done_callback(self._hooks.discard)

    def _signal(self, container: Running, number: signal.Signals) -> None:
        process = self._watched.get(container)
        if process is not None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, number)


async def _quietly(work: Coroutine[None, None, None]) -> None:
    """A container that has ended has ended, whatever its hooks say."""
    with contextlib.suppress(StartFailed):
        await work


class _Files:
    """Where the traces of one attempt are."""

    def __init__(self, pods: Path, uid: str, container: str, attempt: int) -> None:
        self.identity = f"{uid}/{container}/{attempt}"
        self.attempt = attempt
        self.directory = pods / uid / container
        self.log = self.directory / f"{attempt}.log"
        self.pid = self.directory / f"{attempt}.pid"
        self.exit_code = self.directory / f"{attempt}.exit"

    def started(self) -> tuple[int, float] | None:
        """The process group and when it began; None if it did not."""
        with contextlib.suppress(OSError, ValueError):
            return int(self.pid.read_text()), self.pid.stat().st_mtime
        return None

    def exit(self) -> Exit | None:
        """How it ended, if the shell around it got to say so."""
        with contextlib.suppress(OSError, ValueError):
            return Exit(int(self.exit_code.read_text()), self.exit_code.stat().st_mtime)
        return None


class _Process:
    """A process group that is watched through its leader, be it a child of this agent or of one before it."""

    def __init__(self, pid: int, files: _Files, child: subprocess.Popen[bytes] | None, hooks: tuple[Hook, ...]) -> None:
        self.pid = pid
        self.files = files
        self.hooks = hooks
        self.killed = False
        self._child = child
        self._handle = os.pidfd_open(pid)

    def watch(self, ended: Callable[[], None]) -> None:
        """Calls `ended` when the process has."""
        asyncio.get_running_loop().add_reader(self._handle, ended)

    def finish(self) -> int | None:
        """Its exit code; what is left of its group is killed."""
        asyncio.get_running_loop().remove_reader(self._handle)
        os.close(self._handle)
        if self._child is not None:  # it is still there to be waited for, so the number cannot be another's yet
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self.pid, signal.SIGKILL)
            code = self._child.wait()
        elif not _lives(self.pid):  # else the number is another's already, and nothing of the group is left
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self.pid, signal.SIGKILL)
        said = self.files.exit()
        if said is not None:
            return said.code
        if self._child is None:
            return KILLED if self.killed else None
        return 128 - code if code < 0 else code

    def release(self) -> None:
        """Stops watching."""
        asyncio.get_running_loop().remove_reader(self._handle)
        os.close(self._handle)
        if self._child is not None:
            _let_go(self._child)


def _command(order: Order, applied: Applied) -> list[str]:
    container = order.container
    command = [expand(word, applied.environment) for word in (*container.command, *container.args)]
    if not container.command:
        raise StartFailed(
            "CreateContainerConfigError",
            f"container {container.name} has no command: the process runtime has no images, so the command must say "
            "what to run",
        )
    if shutil.which(command[0], path=applied.environment.get("PATH")) is None:
        raise StartFailed("RunContainerError", f"{command[0]}: no such program on this machine")
    return command


def _spawn(order: Order, command: list[str], applied: Applied, files: _Files) -> subprocess.Popen[bytes]:
    user, group = _user(order)
    try:
        files.directory.mkdir(parents=True, exist_ok=True)
        files.exit_code.unlink(missing_ok=True)
        if user is not None or group is not None:  # the shell around the container writes there as that user
            os.chown(files.directory, -1 if user is None else user, -1 if group is None else group)
        with files.log.open("ab") as log:
            child = subprocess.Popen(
                cdi_edits.command_line(command, applied.binds, files.pid, files.exit_code),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                env=applied.environment,
                cwd=order.container.working_dir or "/",
                start_new_session=True,
                user=user,
                group=group,
                extra_groups=applied.groups or None,
            )
    except (OSError, ValueError, subprocess.SubprocessError) as error:
        raise StartFailed("RunContainerError", f"container {order.container.name}: {error}") from None
    return child


async def _spawned(spawning: Coroutine[None, None, subprocess.Popen[bytes]]) -> subprocess.Popen[bytes]:
    """The process. An agent that ends meanwhile waits for it: what was begun is there for the next agent to find."""
    task = asyncio.ensure_future(spawning)
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        with contextlib.suppress(StartFailed):
            _let_go(await task)
        raise


def _let_go(child: subprocess.Popen[bytes]) -> None:
    """It goes on without us: Python shall not ask for its end."""
    if child.returncode is None:
        child.returncode = 0


def _user(order: Order) -> tuple[int | None, int | None]:
    """Who the container runs as: what it says, else what its pod says, else the agent's own user."""
    own, pod = order.container.security_context, order.pod.spec.security_context
    user = own.run_as_user if own is not None else None
    group = own.run_as_group if own is not None else None
    if pod is not None:
        user = pod.run_as_user if user is None else user
        group = pod.run_as_group if group is None else group
    return user, group


def _lives(pid: int) -> bool:
    """Whether there is such a process, other than one that has ended and waits to be noticed."""
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in ("Z", "X")
    return False


def _is_ours(pid: int, files: _Files) -> bool:
    with contextlib.suppress(OSError):
        words = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
        return os.fsencode(files.exit_code) in words
    return False
