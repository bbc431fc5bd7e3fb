"""`dray report`: files to send around, of a running cluster or of files: a page with pictures, or the map alone."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final, TypeAlias

import typer

from dray.cli import inputs, live, names, output, scale_up, what_if

if TYPE_CHECKING:
    from dray.reports.documents import Fleet
    from dray.reports.html import Document
    from dray.reports.shapes import Picture
    from dray.snapshot import Snapshot

app = typer.Typer(
    help="Make a report to send around: one HTML file with pictures, or the map of the fleet as SVG or PNG.",
    no_args_is_help=True,
    rich_markup_mode=None,
)

PAGE: Final = ".html"
PICTURES: Final = (".svg", ".png")
Output: TypeAlias = Annotated[
    Path, typer.Option("--output", "-o", metavar="FILE", help="Where to write it: NAME.html, NAME.svg or NAME.png.")
]
By: TypeAlias = Annotated[
    str,
    typer.Option(
        metavar="driver|pool|class|node|label:NAME|attribute:DOMAIN/NAME", help="How to group devices on the map."
    ),
]


@app.command("fleet")
def fleet(
    to: Output,
    *,
    source: live.NamedSource,
    by: By = "none",
    _all_namespaces: names.AlwaysAll = False,
    now: inputs.Now = None,
) -> None:
    """Draw the fleet: every device by its state, in numbers, what is out of service, who waits.

    Without files of the running cluster. Exit code 0: written; 2: cannot.
    """
    from dray.reports import documents

    _check(to, PAGE, *PICTURES)
    moment = inputs.read_time(now)
    snapshot = source.read("report")
    found = _look(snapshot, by)
    if to.suffix == PAGE:
        _write_page(to, documents.fleet_report(snapshot, found, moment, _tell_source(source)))
    else:
        _write_picture(to, documents.fleet_picture(found))


@app.command("what-if")
def what_if_report(
    to: Output,
    *,
    source: live.NamedSource,
    apply: what_if.Apply = None,
    delete: what_if.Delete = None,
    namespace: names.Namespace = "",
    by: By = "none",
    _all_namespaces: names.AlwaysAll = False,
    now: inputs.Now = None,
) -> None:
    """Draw what a change would do: who is hit, and the fleet before and after it, devices that change framed.

    As SVG or PNG, the fleet after it. Without files of the running cluster. Exit code 0: written; 2: cannot.
    """
    from dray.reports import documents

    _check(to, PAGE, *PICTURES)
    change = what_if.read_change(apply, delete, namespace)
    before, after, difference = what_if.look(change, source, now)
    marked = documents.changed_devices(difference)
    later = _look(after, by, marked)
    if to.suffix == PAGE:
        document = documents.what_if_report(_look(before, by, marked), later, difference, _tell_source(source))
        _write_page(to, document)
    else:
        _write_picture(to, documents.fleet_picture(later, "After"))


@app.command("scale-up")
def scale_up_report(
    to: Output,
    *,
    source: scale_up.GroupSource,
    _all_namespaces: names.AlwaysAll = False,
    max_nodes: scale_up.MaxNodes = 1000,
    by: By = "none",
    now: inputs.Now = None,
) -> None:
    """Draw which nodes the pending pods need, and where they would go.

    Files are those of `dray scale-up`: node groups, and a cluster if it is not the running one. Exit code 0: written;
    2: cannot.
    """
    from dray.reports import documents

    _check(to, PAGE)
    moment = inputs.read_time(now)
    snapshot, plan = scale_up.look(source, max_nodes)
    _write_page(to, documents.scale_up_report(_look(snapshot, by), plan, moment, _tell_source(source)))


def _check(to: Path, *known: str) -> None:
    if to.suffix not in known:
        output.fail(f"-o {to}: what to write is told by the end of the name. Give NAME{' or NAME'.join(known)}.")


def _look(snapshot: Snapshot, by: str, marked: frozenset[str] = frozenset()) -> Fleet:
    from dray.reports import documents
    from dray.views.grouping import GroupingError

    try:
        return documents.look(snapshot, by, marked)
    except GroupingError as error:
        output.fail(f"--by: {error}.")


def _tell_source(source: live.Source) -> str:
    return ", ".join(source.given) or source.connect().server


def _write_page(to: Path, document: Document) -> None:
    from dray.reports import html

    _write(to, html.page(document).encode())


def _write_picture(to: Path, picture: Picture) -> None:
    from dray.reports import png, svg

    _write(to, png.draw(picture) if to.suffix == ".png" else svg.draw(picture).encode() + b"\n")


def _write(to: Path, data: bytes) -> None:
    try:
        to.write_bytes(data)
    except OSError as error:
        output.fail(f"cannot write {to}: {error.strerror or error}.")
    print(f"Written: {to} ({len(data) // 1024 + 1} KiB).")
