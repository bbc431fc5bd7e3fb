"""`dray validate`: what a Kubernetes API server would say of manifests, with the file and line of every finding."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dray.cli import output
from dray.cli.findings import NOTE, WARNING, Finding, FindingFormat, Report, print_report

if TYPE_CHECKING:
    from dray.custom.definition import Version

Customs = Mapping[tuple[str, str], "Version"]
"""Versions of custom resources, by apiVersion and kind."""

Sources = Annotated[
    list[str] | None,
    typer.Argument(metavar="FILE|DIR|-...", help="Manifests: files, directories, or - for standard input."),
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
    sources: Sources = None,
    files: Files = None,
    skip: Skip = None,
    crd: Annotated[
        list[str] | None,
        typer.Option("--crd", metavar="FILE|DIR", help="CustomResourceDefinitions of kinds in the manifests."),
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
    from dray.snapshot.files import InputError
    from dray.snapshot.repository import PassedOver, read_each

    given = [*(sources or ()), *(files or ())]
    if not given:
        output.fail("nothing to read. Give files, directories, or - for standard input.")
    customs = _read_customs(crd or ())
    findings: list[Finding] = []
    count, unreadable = 0, 0
    for item in read_each(given, skip or ()):
        if isinstance(item, InputError):
            unreadable += 1
            print(f"dray: {item}", file=sys.stderr)
        elif isinstance(item, PassedOver):
            findings.append(Finding(item.source, None, "", "NoManifest", "", f"passed over: {item.why}", NOTE))
        else:
            count += 1
            found = list(check(item, strict=strict, customs=customs))
            if ignore_missing_schemas and not _is_known(item.value, customs):
                found = [
                    Finding(item.source, item.line_of("kind"), _describe(item.value), "UnknownKind", "", _UNKNOWN, NOTE)
                ]
            findings.extend(found)
    if unreadable and not count:
        raise typer.Exit(output.CANNOT)
    report = Report(findings, count)
    print_report(report, format_, "ValidationReport")
    raise typer.Exit(output.CANNOT if unreadable else output.NO if report.errors else output.YES)


_UNKNOWN = "not checked: nobody here knows this kind; give its definition with --crd"


def check(item: Any, *, strict: bool, customs: Customs | None = None) -> Iterator[Finding]:
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
    custom = _custom_of(item.value, customs or {})
    if custom is not None:
        content = {key: value for key, value in item.value.items() if key not in ("apiVersion", "kind", "metadata")}
        for judge in custom.checks:
            for problem_found in judge(content) or ():
                error = problem_found.error()
                line = item.line_of(error.field)
                yield Finding(item.source, line, name, str(error.reason), error.field, error.message)
        return
    for error in validation.validate(item.value):
        line = item.line_of(error.field)
        excerpt = _excerpt(item.value, error.field)
        yield Finding(item.source, line, name, str(error.reason), error.field, error.message, excerpt=excerpt)
    for warning in validation.review(item.value):
        severity = "error" if strict and warning.field else WARNING
        line = item.line_of(warning.field)
        yield Finding(item.source, line, name, str(warning.reason), warning.field, warning.message, severity)


def _read_customs(paths: list[str] | tuple[()]) -> Customs:
    """The versions that definitions in files define. Ends with exit code 2 for files that cannot be read."""
    if not paths:
        return {}
    from dray.api.generated.apiextensions import CustomResourceDefinition
    from dray.custom.definition import compile_version
    from dray.snapshot import InputError
    from dray.snapshot.objects import current_time, load_objects

    try:
        loaded = load_objects(paths, current_time())
    except InputError as error:
        output.fail(f"--crd: {error}")
    definitions = [one for one in loaded.objects.values() if isinstance(one, CustomResourceDefinition)]
    if not definitions:
        output.fail(f"--crd: no CustomResourceDefinition in {', '.join(paths)}.")
    return {
        (f"{one.spec.group}/{version.name}", one.spec.names.kind): compile_version(one, version)
        for one in definitions
        for version in one.spec.versions
    }


def _custom_of(value: Any, customs: Customs) -> Version | None:
    return customs.get((str(value.get("apiVersion")), str(value.get("kind")))) if isinstance(value, dict) else None


def _is_known(value: Any, customs: Customs) -> bool:
    """Whether somebody could tell what is right for an object: dray itself, or a definition that was given."""
    from dray.api import registry

    if not isinstance(value, dict) or not isinstance(value.get("kind"), str) or not value.get("apiVersion"):
        return True  # what is not even an object is told as that
    if value["kind"] in ("NodeGroup", "ControllersConfiguration") or _custom_of(value, customs) is not None:
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
