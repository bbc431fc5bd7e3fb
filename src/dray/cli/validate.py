"""`dray validate`: what a Kubernetes API server would say of manifests, with the file and line of every finding."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Annotated, Any

import msgspec
import typer

from dray.cli import output


class Finding(msgspec.Struct, omit_defaults=True):
    """One problem with one object, as `-o json` prints it."""

    file: str
    line: int | None
    object: str
    reason: str
    field: str
    message: str
    severity: str = "error"
    excerpt: str = ""


def run(
    files: Annotated[
        list[str],
        typer.Argument(metavar="FILE|DIR|-...", help="Manifests: files, directories, or - for standard input."),
    ],
    format_: Annotated[output.Format, typer.Option("--output", "-o", help="How to print.")] = output.Format.TEXT,
    strict: Annotated[bool, typer.Option("--strict", help="Unknown fields are errors, not warnings.")] = False,
) -> None:
    """Check manifests as a Kubernetes 1.37 API server would, without a cluster.

    Reads YAML and JSON, several documents in a file, and lists. Exit code 0: all valid; 1: there are findings; 2: input
    could not be read.
    """
    from dray.snapshot import files as sources

    findings: list[Finding] = []
    count = 0
    try:
        for item in sources.read(files):
            count += 1
            findings.extend(check(item, strict=strict))
    except sources.InputError as error:
        output.fail(str(error))
    errors = sum(finding.severity == "error" for finding in findings)
    if format_ is output.Format.JSON:
        output.print_json({"objects": count, "problems": errors, "findings": msgspec.to_builtins(findings)})
    else:
        _print_text(findings, errors, count)
    raise typer.Exit(output.NO if errors else output.YES)


def check(item: Any, *, strict: bool) -> Iterator[Finding]:
    """All findings of one object. Node groups are not part of the API, but people write them beside what is."""
    from dray import validation

    name = _describe(item.value)
    if isinstance(item.value, dict) and item.value.get("kind") == "NodeGroup":
        from dray.scale_up.node_group_files import check_group

        problem = check_group(item)
        if problem:
            yield Finding(item.source, item.line_of("spec"), name, "FieldValueInvalid", "spec", problem)
        return
    if isinstance(item.value, dict) and item.value.get("kind") == "ControllersConfiguration":
        from dray.controllers.configuration import check_configuration

        problem = check_configuration(item.value)
        if problem:
            yield Finding(item.source, item.line_of("kind"), name, "FieldValueInvalid", "", problem)
        return
    for error in validation.validate(item.value):
        line = item.line_of(error.field)
        excerpt = _excerpt(item.value, error.field)
        yield Finding(item.source, line, name, str(error.reason), error.field, error.message, excerpt=excerpt)
    for warning in validation.review(item.value):
        severity = "error" if strict and warning.field else "warning"
        line = item.line_of(warning.field)
        yield Finding(item.source, line, name, str(warning.reason), warning.field, warning.message, severity)


def _describe(value: Any) -> str:
    """`ResourceClaim ml/train`, or as much of it as is there."""
    if not isinstance(value, dict):
        return "(not an object)"
    metadata = value.get("metadata")
    metadata = metadata if isinstance(metadata, dict) else {}
    name = metadata.get("name") or f"{metadata.get('generateName') or ''}*"
    namespace = metadata.get("namespace")
    return f"{value.get('kind') or '(no kind)'} {f'{namespace}/' if namespace else ''}{name}"


def _excerpt(value: Any, field: str) -> str:
    """For a selector that does not compile: the line of it, with a caret under the position."""
    if not field.endswith(".cel.expression"):
        return ""
    from dray import cel
    from dray.api import manifest

    expression = manifest.look_up(value, field)
    if not isinstance(expression, str):
        return ""
    try:
        cel.compile(expression)
    except cel.CompileError as error:
        return error.render(expression)
    return ""


def _print_text(findings: Iterable[Finding], errors: int, count: int) -> None:
    console = output.console()
    for finding in findings:
        place = f"{finding.file}:{finding.line}" if finding.line else finding.file
        console.print(f"[bold]{_plain(place)}[/]  {_plain(finding.object)}  [cyan]{_plain(finding.field)}[/]")
        style = "yellow" if finding.severity == "warning" else "red"
        label = "warning: " if finding.severity == "warning" else ""
        text = finding.excerpt or finding.message
        for line in text.splitlines():
            console.print(f"    [{style}]{label}{_plain(line)}[/]")
            label = ""
    verdict = output.plural(errors, "problem") if errors else "no problems"
    console.print(f"{verdict} in {output.plural(count, 'object')}.")


def _plain(text: str) -> str:
    from rich.markup import escape

    return escape(text)
