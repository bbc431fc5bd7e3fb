"""Exec and attach: a client's session tied to a command in a container, or to the container itself."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Coroutine
from typing import Any, Final

from dray.node.runtime.console import Console, Execution, NotThere
from dray.node.runtime.descriptor import Descriptor
from dray.node.runtime.launch import LaunchFailed
from dray.node.runtime.log_reader import LogOptions
from dray.process.tasks import cancel_all, run_until_first
from dray.streams import remote_command
from dray.streams.sessions import ERRORS, OUTPUT, Session, WantedStreams

LIVELY: Final = 0.02
"""How often one looks for what comes, where somebody types and waits for it."""
DRAIN_SECONDS: Final = 2.0
"""A command that has ended may have left children that hold its output open; so long they are listened to."""


async def execute(
    console: Console, uid: str, container: str, command: tuple[str, ...], wanted: WantedStreams, session: Session
) -> None:
    """Runs a command for a client; it ends when the client goes."""
    try:
        execution = await console.execute(uid, container, command, terminal=wanted.tty, has_input=wanted.stdin)
    except (NotThere, LaunchFailed, OSError) as error:
        await session.finish(_not_started(error, command))
        return
    try:
        code = await _run(execution, wanted, session)
    finally:
        execution.kill()
        execution.close()
    await session.finish(remote_command.exited(code))


async def attach(console: Console, uid: str, container: str, wanted: WantedStreams, session: Session) -> None:
    """Shows a client what a container writes from now on, and gives it what the client types."""

    async def type_in(target: Descriptor) -> None:
        await _type(session, target)
        console.end_input(uid, container)

    async def resize() -> None:
        while (size := await session.read_size()) is not None:
            console.resize(uid, container, size.width, size.height)

    try:
        start = console.log_size(uid, container)  # before anything is typed: what is answered to it comes after this
        log = console.log(uid, container, LogOptions(follow=True, start=start, look_seconds=LIVELY))
        target = console.open_input(uid, container) if wanted.stdin else None
    except (NotThere, OSError) as error:
        await session.finish(remote_command.failed(str(error)))
        return
    work = [type_in(target)] if target is not None else []
    if wanted.tty:
        work.append(resize())

    async def show() -> None:
        async for data in log:
            if wanted.stdout:
                await session.write(OUTPUT, data)

    async with _beside(*work):
        await run_until_first(show(), session.gone())
    if wanted.stdin:
        console.end_input(uid, container)
    await session.finish(remote_command.success())


async def _run(execution: Execution, wanted: WantedStreams, session: Session) -> int:
    """The exit code. Raises OSError if the client goes first."""
    outputs = [_show(session, OUTPUT if wanted.stdout else None, execution.output)]
    outputs.append(_show(session, ERRORS if wanted.stderr else None, execution.errors))
    inputs = [_resize(session, execution)] if wanted.tty else []
    if wanted.stdin and execution.input is not None:
        inputs.append(_type(session, execution.input, keep_open=wanted.tty))
    ended = asyncio.ensure_future(execution.wait())
    try:
        async with _beside(*inputs):
            shown = asyncio.gather(*outputs)
            gone = asyncio.ensure_future(session.gone())
            try:
                await asyncio.wait({ended, gone}, return_when=asyncio.FIRST_COMPLETED)
                if not ended.done():
                    execution.kill()
                    await ended
                    raise ConnectionResetError(104, "the client is gone")
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(DRAIN_SECONDS):
                        await asyncio.shield(shown)
                return ended.result()
            finally:
                for task in (shown, gone):
                    task.cancel()
                await asyncio.gather(shown, gone, return_exceptions=True)
    finally:
        if not ended.done():  # nobody may be left behind that nobody waits for
            execution.kill()
            await asyncio.shield(ended)


async def _show(session: Session, channel: int | None, source: Descriptor | None) -> None:
    while source is not None and (data := await source.read()):
        if channel is not None:
            await session.write(channel, data)


async def _type(session: Session, target: Descriptor, *, keep_open: bool = False) -> None:
    """What the client types; a terminal stays open when there is no more of it."""
    with contextlib.suppress(OSError):
        while data := await session.read_input():
            await target.write(data)
    if not keep_open:
        target.close()


async def _resize(session: Session, execution: Execution) -> None:
    while (size := await session.read_size()) is not None:
        execution.resize(size.width, size.height)


@contextlib.asynccontextmanager
async def _beside(*work: Coroutine[Any, Any, None]) -> Any:
    """Lets work go on beside what is done meanwhile, and no longer."""
    tasks = [asyncio.ensure_future(one) for one in work]
    try:
        yield
    finally:
        await cancel_all(tasks)


def _not_started(error: Exception, command: tuple[str, ...]) -> dict[str, Any]:
    """Why a command did not start: as a shell has it if there is none, with the code that shells have for it."""
    if isinstance(error, LaunchFailed):
        outcome = remote_command.exited(127 if error.is_missing else 126)
        return {**outcome, "message": f'exec failed: unable to start "{command[0]}": {error}'}
    return remote_command.failed(str(error))
