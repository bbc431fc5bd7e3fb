"""`dray cel`: try a device selector: does it compile, what does it cost and read, which devices does it select."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any, NamedTuple

import typer

from dray.cli import output


class Candidate(NamedTuple):
    """A device to try the expression on."""

    name: str
    driver: str
    device: dict[str, Any]


def run(
    expression: Annotated[str, typer.Argument(metavar="EXPR", help="A CEL expression over `device`.")],
    device: Annotated[
        list[str] | None,
        typer.Option("--device", metavar="FILE", help="A file with one device, as in spec.devices[] of a slice."),
    ] = None,
    files: Annotated[
        list[str] | None,
        typer.Option("--file", "-f", metavar="FILE", help="Manifests with ResourceSlices; - for stdin."),
    ] = None,
    driver: Annotated[str, typer.Option(help="The driver of the --device files.")] = "driver.example.com",
    stored: Annotated[bool, typer.Option("--stored", help="Judge it as an expression that is stored already.")] = False,
    format_: Annotated[output.Format, typer.Option("--output", "-o", help="How to print.")] = output.Format.TEXT,
) -> None:
    """Check a device selector and try it on devices.

    Exit code 0: it compiles and, where devices are given, selects at least one; 1: it selects none, or fails on one;
    2: it does not compile, or input cannot be read.
    """
    from dray import cel
    from dray.snapshot import files as sources

    try:
        selector = cel.compile(expression, mode="stored" if stored else "new")
    except cel.CompileError as error:
        output.fail(f"the expression does not compile\n{error.render(expression)}")
    try:
        candidates = [*_single_devices(device or [], driver), *_published_devices(files or [])]
    except sources.InputError as error:
        output.fail(str(error))
    if files and not candidates:
        output.fail(f"no device in {', '.join(files)}. Give ResourceSlices with -f, or a device with --device.")
    results = [_try(selector, candidate) for candidate in candidates]
    if format_ is output.Format.JSON:
        value = {"estimatedCost": selector.estimated_cost, "reads": _reads(selector), "devices": results}
        output.print_json(value, "SelectorTrial")
    else:
        _print_text(selector, results)
    failed = any("error" in result for result in results)
    selected = any(result.get("selected") for result in results)
    raise typer.Exit(output.NO if results and (failed or not selected) else output.YES)


def _single_devices(paths: list[str], driver: str) -> Iterator[Candidate]:
    from dray.snapshot import files as sources

    for item in sources.read(paths):
        if not isinstance(item.value, dict) or "kind" in item.value:
            raise sources.InputError(item.source, "is not a single device; give slices with -f")
        yield Candidate(str(item.value.get("name", item.source)), driver, item.value)


def _published_devices(paths: list[str]) -> Iterator[Candidate]:
    from dray import validation
    from dray.snapshot import files as sources

    for item in sources.read(paths):
        if not isinstance(item.value, dict) or item.value.get("kind") != "ResourceSlice":
            continue
        try:
            spec = validation.convert(item.value, "resource.k8s.io/v1")["spec"]
        except validation.InvalidObjectError as error:
            raise sources.InputError(item.source, str(error), item.line_of(error.errors[0].field)) from None
        for device in spec.get("devices", ()):
            yield Candidate(f"{spec['pool']['name']}/{device['name']}", spec["driver"], device)


def _try(selector: Any, candidate: Candidate) -> dict[str, Any]:
    from dray import cel

    result: dict[str, Any] = {"device": candidate.name, "driver": candidate.driver}
    try:
        selected, cost = selector.evaluate_with_cost(candidate.device, driver=candidate.driver)
    except cel.EvaluationError as error:
        return {**result, "error": error.message, "cost": error.cost}
    return {**result, "selected": selected, "cost": cost}


def _reads(selector: Any) -> list[str]:
    reads = selector.reads
    if reads.everything:
        return ["everything"]
    named = [f"{kind} {domain}/{name}" for kind, domain, name in sorted(reads.values)]
    flags = [name for name in ("driver", "allow_multiple_allocations") if getattr(reads, name)]
    return [*flags, *named]


def _print_text(selector: Any, results: list[dict[str, Any]]) -> None:
    reads = ", ".join(_reads(selector)) or "nothing"
    print(f"compiles; estimated cost {selector.estimated_cost}; reads {reads}")
    for result in results:
        if "error" in result:
            verdict = f"error: {result['error']}"
        else:
            verdict = "selected" if result["selected"] else "not selected"
        print(f"{result['driver']} {result['device']}: {verdict} (cost {result['cost']})")
