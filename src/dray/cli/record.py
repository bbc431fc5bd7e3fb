"""`dray record`: follows a cluster and keeps what happens to its devices, claims and pods in a file."""

from __future__ import annotations

import asyncio
import signal
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dray.cli import live, names, output
from dray.cli.running_cluster import RunningCluster
from dray.cli.taint_options import read_duration
from dray.prose.wording import count

if TYPE_CHECKING:
    from dray.client.http import HttpClient
    from dray.recording import Recorder


def run(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="Where to write; must not exist.")],
    *,
    cluster: RunningCluster,
    _all_namespaces: names.AlwaysAll = False,
    duration: Annotated[
        str, typer.Option("--for", metavar="DURATION", help="How long, such as 10m or 2d; until Ctrl-C unless given.")
    ] = "",
    hash_names: Annotated[
        bool, typer.Option("--hash-names", help="Write hashes instead of names and of the values of labels.")
    ] = False,
) -> None:
    """Follow a cluster, dray's or any other, and keep what happens to devices, claims and pods in a compressed file.

    Kept is what scheduling and evictions depend on, and nothing else: no environment, commands, images, volumes,
    messages or opaque parameters. Nothing is changed in the cluster, and view rights are enough. `dray replay` runs
    the file against other rules.

    Exit code 0: the file is whole; 2: the cluster cannot be read, or the file not written.
    """
    length = read_duration(duration, "--for")
    seconds = None if length is None else length.total_seconds()

    async def work(client: HttpClient) -> None:
        await _record(client, file, seconds, hash_names=hash_names)

    live.call(work, "record", cluster)


async def _record(client: HttpClient, file: Path, seconds: float | None, *, hash_names: bool) -> None:
    from dray.api.status import ApiError
    from dray.reconcile import RealClock
    from dray.recording import Header, Recorder, RecordingError, RecordingWriter
    from dray.recording.entries import FORMAT, VERSION
    from dray.recording.hashed_names import HashedNames

    clock = RealClock()
    recorder = Recorder(client, clock, report=_say)
    kinds, forbidden = await recorder.readable()
    live.note_left_out(forbidden)
    header = Header(
        format=FORMAT,
        version=VERSION,
        started=clock.now(),
        server=await client.server_version(),
        hashed=hash_names,
        left_out=tuple(kind.plural for kind in forbidden),
    )
    try:
        writer = RecordingWriter(file, header, HashedNames() if hash_names else None)
        try:
            await recorder.start(kinds, writer)
        except (ApiError, OSError, TimeoutError):
            file.unlink()
            raise
        until = f"for {seconds:g} s" if seconds is not None else "until Ctrl-C"
        print(f"recording to {file}, {until}", flush=True)
        await _until_told(recorder, seconds)
        writer.close(clock.now())
    except RecordingError as error:
        output.fail(str(error))
    took = clock.now() - header.started
    print(f"{count(recorder.changes, 'change')} in {took:.0f} s, {file.stat().st_size:,} bytes in {file}")


async def _until_told(recorder: Recorder, seconds: float | None) -> None:
    """Records until a signal comes, or until the time is over."""
    from dray.process.tasks import end

    loop = asyncio.get_running_loop()
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    work = loop.create_task(recorder.run())
    told = loop.create_task(stop.wait())
    try:
        await asyncio.wait({work, told}, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
    finally:
        told.cancel()
        await end([work])


def _say(trouble: str) -> None:
    print(f"dray: {trouble}", file=sys.stderr, flush=True)
