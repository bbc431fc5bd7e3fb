"""What the offline commands read: manifests and dumps, given as arguments or with -f."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from typing import TYPE_CHECKING, Annotated, TypeAlias

import typer

from dray.cli import output

if TYPE_CHECKING:
    from dray.snapshot import Snapshot
    from dray.snapshot.objects import Ignored

Files: TypeAlias = Annotated[
    list[str] | None,
    typer.Option("--file", "-f", metavar="FILE|DIR|-", help="Manifests or dumps of a cluster; may be repeated."),
]
Sources: TypeAlias = Annotated[
    list[str] | None,
    typer.Argument(metavar="FILE|DIR|-", help="Manifests or dumps of a cluster, as with -f."),
]
Now: TypeAlias = Annotated[
    str | None, typer.Option("--now", metavar="TIME", help="The current time, RFC 3339; by default the clock's.")
]


def load(files: Sequence[str]) -> Snapshot:
    """The cluster in files, directories or standard input. Ends with exit code 2 if it cannot be read."""
    from dray.snapshot import InputError
    from dray.snapshot import load as load_snapshot

    if not files:
        output.fail("nothing to read. Give files, directories, or - for standard input, with -f.")
    try:
        with busy("Reading"):
            snapshot = load_snapshot(*files)
    except InputError as error:
        output.fail(str(error))
    note_ignored(snapshot.ignored)
    return snapshot


def check_node(snapshot: Snapshot, node: str | None, *, is_live: bool = False) -> None:
    """Ends with exit code 2 if a node is named that there is not."""
    if node is None or node in (there := snapshot.nodes()):
        return
    from dray.prose.wording import names

    where = "cluster" if is_live else "input"
    output.fail(f"no node {node} in the {where}. There is {names(there, 5) or 'none at all'}.")


def note_ignored(ignored: Sequence[Ignored]) -> None:
    """Says once on standard error what was passed over, so that nothing is missed silently."""
    if ignored:
        more = f" (and {len(ignored) - 1} more)" if len(ignored) > 1 else ""
        print(f"dray: passed over: {ignored[0].why}{more}", file=sys.stderr)


def read_time(text: str | None) -> datetime:
    """The time that a user gave, or that of the clock. Ends with exit code 2 for what is not a time."""
    from dray.api.times import Time, TimeError
    from dray.snapshot.objects import current_time

    try:
        return (Time.parse(text) if text is not None else current_time()).datetime()
    except TimeError as error:
        output.fail(f"--now: {error}.")


@contextmanager
def busy(what: str) -> Iterator[None]:
    """Shows on a terminal that something is going on."""
    if not sys.stderr.isatty():
        yield
        return
    with output.console_on(sys.stderr).status(f"{what} …"):
        yield


def track(names: Sequence[str], what: str) -> Iterator[str]:
    """The names one by one, with a progress bar if it takes long and standard error is a terminal."""
    if not sys.stderr.isatty() or len(names) < 50:
        yield from names
        return
    from rich.progress import track as show

    yield from show(names, description=what, console=output.console_on(sys.stderr), transient=True)
