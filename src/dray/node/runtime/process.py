"""Containers as local processes: no images; the rights that they ask for and the CDI edits of their devices applied.

    Order ─▶ rights (or refused) ─▶ CDI edits ─▶ hooks ─▶ attempt (files) ─▶ launch ─▶ watched until it ends

Processes go on when the agent ends. The next one knows them by number and birth.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import shutil
import signal
from collections.abc import Callable, Coroutine, Iterable
from pathlib import Path
from typing import Final

from msgspec.structs import replace

from dray.api.generated.core import Pod
from dray.cdi import Cache, CdiError, ContainerEdits, Hook
from dray.node.environment import Room, host_name
from dray.node.runtime import edits as cdi_edits
from dray.node.runtime import launch, terminals
from dray.node.runtime.attempt import Attempt, Attempts, boot_id
from dray.node.runtime.console import Console
from dray.node.runtime.control_groups import end_pod, end_processes, group_of, remove_groups
from dray.node.runtime.edits import Applied
from dray.node.runtime.held_inputs import HeldInputs
from dray.node.runtime.hooks import AFTER, BEFORE, END, ContainerInfo, run_hooks
from dray.node.runtime.interface import CONFIG_ERROR, Exit, OnExit, Order, Running, StartFailed
from dray.node.runtime.launch import Around, Launch, LaunchFailed, Standard
from dray.node.runtime.log_times import LogTimes
from dray.node.runtime.machine import Machine, find_machine, process_facts
from dray.node.runtime.memory_score import memory_score
from dray.node.runtime.rights import Refusal, Rights, plan_rights, refusal
from dray.process.own_thread import on_own_thread
from dray.reconcile import Clock

KILLED: Final = 128 + signal.SIGKILL
STARTS_AT_ONCE: Final = 8
MOST_PLACES: Final = 1000
"""In which a program is looked for. There is room for half a million in a variable, and few threads for that."""


class ProcessRuntime:
    """Implements `Runtime`."""

    name = "process"

    def __init__(self, root: Path, cdi: Cache, clock: Clock, machine: Machine | None = None) -> None:
        """Raises OSError if `root` cannot be used."""
        self._attempts = Attempts(root)
        self._cdi = cdi
        self._clock = clock
        self._machine = machine or find_machine()
        self._times = LogTimes(clock)
        self._inputs = HeldInputs()
        self.console: Console | None = Console(self._attempts, self._machine, self._inputs, clock.now)
        self._starts = asyncio.Semaphore(STARTS_AT_ONCE)
        self._watched: dict[Running, _Process] = {}
        self._hooks: set[asyncio.Task[None]] = set()

    def refusal(self, pod: Pod) -> str:
        """Why a pod must not run here, if it asks for what cannot be enforced."""
        return refusal(pod, self._machine)

    async def start(self, order: Order, on_exit: OnExit) -> Running:
        """Starts a container. Raises StartFailed, with nothing left running."""
        rights = plan_rights(order.pod, order.container, self._machine)
        if isinstance(rights, Refusal):
            raise StartFailed(CONFIG_ERROR, f"container {order.container.name}: {rights}")
        attempt = self._attempts.of(order.pod.metadata.uid, order.container.name, order.attempt)
        changes = self._edits(order)
        # Looks for programs and files in places that the pod names, and there may be many.
        applied = await asyncio.to_thread(cdi_edits.apply, changes, order.environment, self._machine)
        wanted = await asyncio.to_thread(_launch, order, applied, rights, self._machine)
        identity = f"process://{attempt.identity}"
        await run_hooks(changes.hooks, BEFORE, ContainerInfo(identity, "creating", str(attempt.directory)))
        async with self._starts:
            pid = await _spawned(on_own_thread(_spawn, order, wanted, self._machine, attempt, self._inputs))
        running = Running(identity, order.attempt, self._clock.now(), applied.warnings)
        try:
            self._watch(running, _Process(pid, attempt, changes.hooks, is_child=True), on_exit)
        except OSError as error:  # no more file descriptors, for one: what cannot be watched must not run
            os.killpg(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
            attempt.forget()
            raise StartFailed("RunContainerError", f"container {order.container.name}: {error}") from None
        try:
            await run_hooks(changes.hooks, AFTER, ContainerInfo(identity, "running", str(attempt.directory), pid))
        except StartFailed:
            self.kill(running)
            raise
        return running

    def terminate(self, container: Running) -> None:
        """SIGTERM to the whole process group."""
        self._signal(container, signal.SIGTERM)

    def kill(self, container: Running) -> None:
        """SIGKILL to the whole process group, and with its first process to all that came of it."""
        process = self._watched.get(container)
        if process is not None:
            process.killed = True
        self._signal(container, signal.SIGKILL)

    def recover(self, pod: Pod, on_exit: OnExit, /) -> dict[str, Running]:
        """The last containers of a pod by name, running or ended. Raises OSError if nobody can tell now."""
        made = self._attempts.of_pod(pod.metadata.uid).values()
        return {one.container: running for one, running in self._recover((each[-1] for each in made), on_exit)}

    def known_pods(self) -> set[str]:
        """The pods that have a directory."""
        return self._attempts.pods()

    def recover_stray(self, uid: str, on_exit: OnExit) -> list[Running]:
        """The containers of a pod that is gone which still run. Raises OSError if nobody can tell now."""
        made = self._attempts.of_pod(uid).values()
        every = self._recover((attempt for attempts in made for attempt in attempts), on_exit)
        return [running for _, running in every if running.exit is None]

    def clean(self, uid: str) -> None:
        """Removes the pod's directory, logs and all."""
        end_pod(self._machine.control_groups, uid)
        self._attempts.clean(uid)
        remove_groups(self._machine.control_groups, self._attempts.pods())

    async def close(self) -> None:
        """Looks at no process any more; they go on."""
        for process in self._watched.values():
            process.release()
        self._watched.clear()
        self._times.close()
        await asyncio.gather(*self._hooks, return_exceptions=True)

    def _edits(self, order: Order) -> ContainerEdits:
        try:
            return self._cdi.edits(order.cdi_ids) if order.cdi_ids else ContainerEdits()
        except CdiError as error:
            raise StartFailed("CreateContainerError", str(error)) from None

    def _recover(self, attempts: Iterable[Attempt], on_exit: OnExit) -> list[tuple[Attempt, Running]]:
        """What there is of each attempt that was begun. Raises OSError, and then none of them is watched."""
        found: list[tuple[Attempt, Running]] = []
        try:
            for attempt in attempts:
                running = self._recover_one(attempt, on_exit)
                if running is not None:
                    found.append((attempt, running))
        except OSError:
            for attempt, running in found:
                process = self._watched.pop(running, None)
                if process is not None:
                    process.release()
                    self._times.stop(attempt)
            raise
        return found

    def _recover_one(self, attempt: Attempt, on_exit: OnExit) -> Running | None:
        started = attempt.started()
        if started is None:
            return None
        pid, at = started
        running = Running(f"process://{attempt.identity}", attempt.number, at)
        if attempt.is_of(pid):  # whatever stands in the file for its exit code, which its own processes may write to
            with contextlib.suppress(ProcessLookupError):
                self._watch(running, _Process(pid, attempt, (), is_child=False), on_exit)
                return running
        # It has ended, maybe this very moment.
        running.exit = attempt.exit() or Exit(None, self._clock.now())
        attempt.forget_launch()
        return running

    def _watch(self, running: Running, process: _Process, on_exit: OnExit) -> None:
        def ended() -> None:
            del self._watched[running]
            self._times.stop(process.attempt)
            self._inputs.release(process.attempt.identity)
            code = process.finish()
            process.attempt.forget_launch()
            end_processes(self._machine.control_groups, group_of(process.attempt.uid, process.attempt.container))
            running.exit = Exit(code, self._clock.now())
            self._after(running, process)
            on_exit()

        process.watch(ended)
        self._watched[running] = process
        self._times.follow(process.attempt)

    def _after(self, running: Running, process: _Process) -> None:
        if any(hook.hook_name in END for hook in process.hooks):
            info = ContainerInfo(running.identity, "stopped", str(process.attempt.directory))
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


class _Process:
    """A process group that is watched through its leader, be it a child of this agent or of one before it."""

    def __init__(self, pid: int, attempt: Attempt, hooks: tuple[Hook, ...], *, is_child: bool) -> None:
        self.pid = pid
        self.attempt = attempt
        self.hooks = hooks
        self.killed = False
        self._is_child = is_child
        self._handle = os.pidfd_open(pid)

    def watch(self, ended: Callable[[], None]) -> None:
        """Calls `ended` when the process has."""
        try:
            asyncio.get_running_loop().add_reader(self._handle, ended)
        except OSError:
            os.close(self._handle)
            raise

    def finish(self) -> int | None:
        """Its exit code; what is left of its group is killed."""
        self.release()
        code = KILLED if self.killed else None
        if self._is_child:  # it is still there to be waited for, so the number cannot be another's yet
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self.pid, signal.SIGKILL)
            ended = os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])
            code = 128 - ended if ended < 0 else ended
        elif not _lives(self.pid):  # else the number is another's already, and nothing of the group is left
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self.pid, signal.SIGKILL)
        with contextlib.suppress(OSError):
            said = self.attempt.exit()
            return said.code if said is not None else code
        return code

    def release(self) -> None:
        """Stops watching."""
        asyncio.get_running_loop().remove_reader(self._handle)
        os.close(self._handle)


def _launch(order: Order, applied: Applied, rights: Rights, machine: Machine) -> Launch:
    container, meta = order.container, order.pod.metadata
    room = Room()
    command = [room.expand(word, applied.environment) for word in (*container.command, *container.args)]
    if not container.command:
        raise StartFailed(
            CONFIG_ERROR,
            f"container {container.name} has no command: the process runtime has no images, so the command must say "
            "what to run",
        )
    path = applied.environment.get("PATH", os.defpath)
    if path.count(os.pathsep) >= MOST_PLACES:
        raise StartFailed(CONFIG_ERROR, f"container {container.name}: PATH has more than {MOST_PLACES} directories")
    if shutil.which(command[0], path=path) is None:
        raise StartFailed("RunContainerError", f"{command[0]}: no such program on this machine")
    return Launch(
        command=tuple(command),
        environment=applied.environment,
        rights=replace(rights, groups=tuple(dict.fromkeys((*rights.groups, *applied.groups)))),
        directory=container.working_dir or "/",
        host_name=host_name(order.pod),
        binds=applied.binds,
        memory_score=memory_score(order.pod.spec, container, machine.memory),
        control_group=group_of(meta.uid, container.name),
    )


def _spawn(order: Order, wanted: Launch, machine: Machine, attempt: Attempt, inputs: HeldInputs) -> int:
    container = order.container
    try:
        with attempt.fresh(wanted, has_input=container.stdin) as (standard, traces):
            around = Around(f"{attempt.directory}/{attempt.number}", traces, boot_id())
            if container.tty:
                with terminals.kept(standard) as terminal:
                    return launch.start(wanted, machine, Standard(), replace(around, terminal=terminal))
            if container.stdin and container.stdin_once:
                inputs.hold(attempt.identity, standard.held)
                standard = replace(standard, held=-1)
            return launch.start(wanted, machine, standard, around)
    except (OSError, ValueError, LaunchFailed) as error:
        attempt.forget()
        inputs.release(attempt.identity)
        raise StartFailed("RunContainerError", f"container {container.name}: {error}") from None


async def _spawned(spawning: Coroutine[None, None, int]) -> int:
    """The process. An agent that ends meanwhile waits for it: what was begun is there for the next agent to find."""
    task = asyncio.ensure_future(spawning)
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        with contextlib.suppress(StartFailed):
            await task
        raise


def _lives(pid: int) -> bool:
    """Whether there is such a process, other than one that has ended and waits to be noticed."""
    with contextlib.suppress(OSError):
        return process_facts(pid)[0] not in ("Z", "X")
    return False
