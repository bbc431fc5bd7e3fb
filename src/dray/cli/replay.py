"""`dray replay`: runs a recording against dray's own scheduler and evictions, with other rules, and compares."""

from __future__ import annotations

import asyncio
import re
import signal
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dray.cli import inputs, output, tables

if TYPE_CHECKING:
    from dray.replay import Changes, Comparison, History

SHOWN_SPEED = 60.0


def run(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="What `dray record` wrote.")],
    changes: Annotated[
        list[str] | None,
        typer.Option(
            "--with",
            metavar="FILE|DIR|POLICY",
            help="Rules, patches, budgets, classes, nodes or slices; node groups; a ControllersConfiguration; "
            "or the name of an eviction policy. May be repeated.",
        ),
    ] = None,
    speed: Annotated[
        str,
        typer.Option(
            metavar="N",
            help="So many times as fast as it happened; 60 with --dashboard, else as fast as it goes.",
        ),
    ] = "",
    dashboard: Annotated[
        bool, typer.Option("--dashboard", help="Serve the dashboard of the replayed cluster, and print a link to it.")
    ] = False,
    port: Annotated[
        int, typer.Option(help="Where to serve the dashboard; 0 takes a free port.", min=0, max=65535)
    ] = 6480,
    format_: Annotated[output.Format, typer.Option("--output", "-o", help="How to print.")] = output.Format.TEXT,
) -> None:
    """Run a recorded history on dray's own scheduler and evictions, on virtual time, and compare what came of it.

    Nodes, devices, rules and the pods that arrived come from the history; who runs where and who is evicted is decided
    anew. With --with it runs once more with those changes. The same file gives the same answer.

    With --dashboard the history, with the changes, is played to a browser on this machine until Ctrl-C, and nothing is
    compared.

    Exit code 0: done; 2: the file or what is to be different cannot be used.
    """
    pace = read_speed(speed)
    history = load_history(file)
    different = load_changes(changes or [], history)
    if dashboard:
        import uvloop

        uvloop.run(_show(history, different, pace or SHOWN_SPEED, port))
        return
    with inputs.busy("Replaying"):
        answer = _compare(history, different, pace)
    if format_ is output.Format.JSON:
        output.print_json(answer.to_dict(), "Replay")
    else:
        _print(answer)


def read_speed(text: str) -> float | None:
    """How many times as fast, of `60`, `60x` or `60×`; None if nothing is said. Ends with exit code 2."""
    if not text:
        return None
    found = re.fullmatch(r"([0-9]{1,9}(?:\.[0-9]{1,9})?)[x×]?", text.strip())
    if found is None or not float(found[1]):
        output.fail(f"--speed: {text!r} is not how many times as fast; write for example 60.")
    return float(found[1])


def load_history(file: Path) -> History:
    """The history in a file. Ends with exit code 2 if there is none; says what is missing in it."""
    from dray.recording import RecordingError, read_recording
    from dray.replay import read_history

    try:
        with inputs.busy("Reading"):
            recording = read_recording(file)
    except RecordingError as error:
        output.fail(str(error))
    for problem in recording.problems:
        print(f"dray: {problem}.", file=sys.stderr)
    return read_history(recording)


def load_changes(given: list[str], history: History) -> Changes | None:
    """What is to be different; None if nothing is. Ends with exit code 2 if it cannot be used."""
    from dray.replay import ChangeError
    from dray.replay import load_changes as load

    try:
        return load(given, history) if given else None
    except ChangeError as error:
        output.fail(str(error))


def _compare(history: History, changes: Changes | None, pace: float | None) -> Comparison:
    from dray.replay import compare, measure, replay

    recorded = measure(history)
    replayed = replay(history, pace=pace)
    return compare(history, recorded, replayed, replay(history, changes, pace) if changes is not None else None)


async def _show(history: History, changes: Changes | None, speed: float, port: int) -> None:
    from dray.api.durations import describe_duration
    from dray.replay import Changes
    from dray.replay.stage import stage

    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    try:
        async with stage(history, changes or Changes(), speed, port) as playing:
            length = describe_duration(round(history.end - history.start))
            print(f"replaying {length} at {speed:g}×, until Ctrl-C")
            print(f"  {playing.link}   (logs you in once, within an hour)", flush=True)
            told, played = asyncio.ensure_future(stop.wait()), asyncio.ensure_future(playing.run())
            await asyncio.wait({told, played}, return_when=asyncio.FIRST_COMPLETED)
            if not told.done():
                played.result()
                print("the history is over; the dashboard stays as it is", flush=True)
                await told
            played.cancel()
    except OSError as error:
        output.fail(f"cannot listen on 127.0.0.1:{port}: {error.strerror or error}. Give another --port.")


def _print(answer: Comparison) -> None:
    header = ("", "RECORDED", "REPLAYED", "WITH CHANGES")
    rows = answer.rows()
    tables.print_table(header[: len(rows[0])], rows)
    for note in answer.notes():
        print(note)
