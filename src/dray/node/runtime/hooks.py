"""CDI hooks: programs that run at points of a container's life, with its state on standard input, as OCI has it."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
from asyncio.subprocess import Process
from collections.abc import Iterable
from typing import Final

import msgspec

from dray.cdi import Hook
from dray.node.runtime.interface import StartFailed

BEFORE: Final = ("prestart", "createRuntime", "createContainer", "startContainer")
AFTER: Final = ("poststart",)
END: Final = ("poststop",)
SECONDS: Final = 30.0
SHOWN: Final = 300
LINGER: Final = 0.5
"""Seconds for which the end of what was said is waited for, after the program has ended."""


class ContainerInfo(msgspec.Struct, frozen=True, rename="camel"):
    """The state that a hook reads."""

    id: str
    status: str
    bundle: str
    pid: int = 0
    oci_version: str = "1.0.2"


async def run_hooks(hooks: Iterable[Hook], names: tuple[str, ...], info: ContainerInfo) -> None:
    """Runs the hooks of some points of time, one after the other. Raises StartFailed at the first that fails."""
    state = msgspec.json.encode(info)
    for hook in hooks:
        if hook.hook_name in names:
            await _run(hook, state)


async def _run(hook: Hook, state: bytes) -> None:
    """Waits on the event loop, however long it takes, and keeps the end of what the hook says. One that takes too long
    ends with all that it started."""
    name = f"{hook.hook_name} hook {hook.path}"
    seconds = hook.timeout or SECONDS
    said, output = await _listen()
    try:
        process = await _start(hook, state, output)
    except OSError as error:
        said.close()
        raise StartFailed("CreateContainerError", f"{name}: {error.strerror}") from None
    finally:
        os.close(output)
    try:
        code = await asyncio.wait_for(process.wait(), seconds)
        if code:
            await said.ended()
            last = said.last.decode(errors="replace").strip()
            raise StartFailed("CreateContainerError", f"{name} ended with {code}: {last}")
    except TimeoutError:
        raise StartFailed("CreateContainerError", f"{name} did not end in {seconds:g} s") from None
    finally:
        said.close()
        if process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            await process.wait()


async def _start(hook: Hook, state: bytes, output: int) -> Process:
    """The state is less than a pipe holds."""
    source, target = os.pipe()
    try:
        os.write(target, state)
        os.close(target)
        return await asyncio.create_subprocess_exec(
            *(hook.args or (hook.path,)),
            executable=hook.path,
            env=dict(entry.partition("=")[::2] for entry in hook.env),
            stdin=source,
            stdout=output,
            stderr=output,
            start_new_session=True,
        )
    finally:
        os.close(source)


class _Said(asyncio.Protocol):
    """The end of what a program says."""

    def __init__(self) -> None:
        self.last = b""
        self._transport: asyncio.BaseTransport | None = None
        self._ended = asyncio.Event()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        self.last = (self.last + data)[-SHOWN:]

    def connection_lost(self, _error: Exception | None) -> None:
        self._ended.set()

    async def ended(self) -> None:
        """Everything was said, or somebody whom the program left behind goes on."""
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._ended.wait(), LINGER)

    def close(self) -> None:
        """Nobody listens any more."""
        if self._transport is not None:
            self._transport.close()


async def _listen() -> tuple[_Said, int]:
    """What a program says, and the descriptor to which it says it."""
    source, target = os.pipe()
    try:
        _, said = await asyncio.get_running_loop().connect_read_pipe(_Said, os.fdopen(source, "rb", 0))
    except BaseException:
        os.close(target)
        raise
    return said, target
