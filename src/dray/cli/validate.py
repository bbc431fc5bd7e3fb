"""`dray validate`: what a Kubernetes API server would say of manifests, with the file and line of every finding."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from dray.cli import output
from dray.cli.findings import NOTE, WARNING, Finding, FindingFormat, Report, print_report

if TYPE_CHECKING:
    from dray.api.field import FieldError
    from dray.custom.kinds import CustomKind
    from dray.custom.manifests import Kinds
    from dray.snapshot.files import InputError, Item
    from dray.snapshot.repository import PassedOver

DEFINITION: Final = ("apiextensions.k8s.io/v1", "CustomResourceDefinition")

Sources = Annotated[
    list[str] | None,
    typer.Argument(metavar="FILE|DIR|-", help="Manifests: files, directories, or - for standard input."),
]
Files = Annotated[list[str] | None, typer.Option("--file", "-f", metavar="FILE|DIR|-", help="The same.")]
Skip = Annotated[
    list[str] | None,
    typer.Option("--skip", metavar="PATTERN", help="Pass over files or directories such as charts; may be repeated."),
]
Form = Annotated[
    FindingFormat, typer.Option("--output", "-o", help="How to print; github, junit and sarif are for pipelines.")
]


def run(
    *,
    sources: Sources = None,
    files: Files = None,
    skip: Skip = None,
    crd: Annotated[
        list[str] | None,
        typer.Option(
            "--crd",
            metavar="FILE|DIR",
            help="CustomResourceDefinitions, beside those in the manifests.",
        ),
    ] = None,
    ignore_missing_schemas: Annotated[
        bool, typer.Option("--ignore-missing-schemas", help="Objects of unknown kinds are noted, not errors.")
    ] = False,
    format_: Form = FindingFormat.TEXT,
    strict: Annotated[bool, typer.Option("--strict", help="Unknown fields are errors, not warnings.")] = False,
) -> None:
    """Check manifests as a Kubernetes 1.37 API server would, without a cluster.

    Reads YAML and JSON, several documents in a file, and lists. Helm templates, values and Kustomizations are named and
    passed over. Exit code 0: all valid; 1: there are findings; 2: a file could not be read; the others are checked.
    """
    from dray.snapshot.files import InputError, Item
    from dray.snapshot.repository import PassedOver

    given = [*(sources or ()), *(files or ())]
    if not given:
        output.fail("nothing to read. Give files, directories, or - for standard input.")
    read = list(read_all(given, skip or ()))
    customs = _read_customs(crd or (), [item for item in read if isinstance(item, Item)])
    findings: list[Finding] = []
    count, unreadable = 0, 0
    for item in read:
        if isinstance(item, InputError):
            unreadable += 1
            print(f"dray: {item}", file=sys.stderr)
            if format_ is not FindingFormat.TEXT:  # what reads these does not read standard error
                findings.append(Finding(item.source, item.line, "", "Unreadable", "", item.message))
        elif isinstance(item, PassedOver):
            findings.append(Finding(item.source, None, "", "NoManifest", "", f"passed over: {item.why}", NOTE))
        else:
            count += 1
            found = list(check(item, strict=strict, customs=customs))
            if ignore_missing_schemas and not is_known(item.value, customs):
                found = [
                    Finding(item.source, item.line_of("kind"), _describe(item.value), "UnknownKind", "", _UNKNOWN, NOTE)
                ]
            findings.extend(found)
    if unreadable and not count and not findings:
        raise typer.Exit(output.CANNOT)
    report = Report(findings, count, unreadable=unreadable)
    print_report(report, format_, "ValidationReport")
    raise typer.Exit(output.CANNOT if unreadable else output.NO if report.errors else output.YES)


def read_all(sources: Sequence[str], patterns: Sequence[str]) -> Iterator[Item | InputError | PassedOver]:
    """Everything in files, without what patterns skip. Says at the end on standard error which of those did nothing."""
    from dray.snapshot.repository import Skip, read_each

    skip = Skip(patterns)
    yield from read_each(sources, skip)
    for pattern in skip.unmatched:
        print(f"dray: --skip {pattern!r} matches none of the files, so it skips nothing.", file=sys.stderr)


_UNKNOWN = "not checked: nobody here knows this kind; give its definition, among the files or with --crd"


def check(item: Any, *, strict: bool, customs: Kinds | None = None) -> Iterator[Finding]:
    """All findings of one object. Node groups are not part of the API, but people write them beside what is."""
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
    errors, remarks = _judge(item.value, _custom_of(item.value, customs or {}))
    for error in errors:
        line = item.line_of(error.field)
        excerpt = _excerpt(item.value, error.field)
        yield Finding(item.source, line, name, str(error.reason), error.field, error.message, excerpt=excerpt)
    for warning in remarks:
        severity = "error" if strict and warning.field else WARNING
        line = item.line_of(warning.field)
        yield Finding(item.source, line, name, str(warning.reason), warning.field, warning.message, severity)


def _judge(value: Any, custom: CustomKind | None) -> tuple[list[FieldError], list[FieldError]]:
    """What is wrong with an object, and what a server would remark on."""
    from dray import validation

    if custom is None and not _is_definition(value):
        return validation.validate(value), validation.review(value)
    from dray.custom import manifests
    from dray.snapshot.objects import current_time

    if custom is None:
        return manifests.judge_definition(value, current_time()), validation.review(value)
    judgement = manifests.judge(value, custom, current_time())
    return judgement.errors, judgement.remarks


def _read_customs(paths: list[str] | tuple[()], given: list[Item]) -> Kinds:
    """What definitions in files define: those among the manifests, and those of --crd, which count before others.

    Ends with exit code 2 for files of --crd that cannot be read, or have no definition.
    """
    definitions = [item.value for item in given if _is_definition(item.value)]
    if not paths and not definitions:
        return {}
    from dray.custom.manifests import judge_definition, kinds_in
    from dray.snapshot.files import InputError, read
    from dray.snapshot.objects import current_time

    now = current_time()
    try:
        extra = [item for item in read(paths) if _is_definition(item.value)]
    except InputError as error:
        output.fail(f"--crd: {error}")
    if paths and not extra:
        output.fail(f"--crd: no CustomResourceDefinition in {', '.join(paths)}.")
    for item in extra:
        for problem in judge_definition(item.value, now):
            output.fail(f"--crd: {item.source}: {_describe(item.value)}: {problem}")
    return kinds_in([*definitions, *(item.value for item in extra)], now)


def _is_definition(value: Any) -> bool:
    """Told without bringing in what judges definitions, which most manifests do not need."""
    return isinstance(value, dict) and (value.get("apiVersion"), value.get("kind")) == DEFINITION


def _custom_of(value: Any, customs: Kinds) -> CustomKind | None:
    return customs.get((str(value.get("apiVersion")), str(value.get("kind")))) if isinstance(value, dict) else None


def is_known(value: Any, customs: Kinds | None = None) -> bool:
    """Whether somebody could tell what is right for an object: dray itself, or a definition that was given."""
    from dray.api import registry

    if not isinstance(value, dict) or not isinstance(value.get("kind"), str) or not value.get("apiVersion"):
        return True  # what is not even an object is told as that
    if value["kind"] in ("NodeGroup", "ControllersConfiguration") or _custom_of(value, customs or {}) is not None:
        return True
    try:
        registry.by_kind(str(value["apiVersion"]), value["kind"])
    except registry.UnknownKind:
        return False
    return True


def _describe(value: Any) -> str:
    """`ResourceClaim ml/train`, or as much of it as is there."""
    if not isinstance(value, dict):
        return "(not an object)"
    metadata = value.get("metadata")
    metadata = metadata if isinstance(metadata, dict) else {}
    kind, namespace = value.get("kind") or "(no kind)", metadata.get("namespace")
    name = metadata.get("name") or (f"{metadata['generateName']}*" if metadata.get("generateName") else "")
    return f"{kind} {f'{namespace}/' if namespace else ''}{name or '(no name)'}"


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
