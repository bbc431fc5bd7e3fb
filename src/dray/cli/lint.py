"""`dray lint`: what is valid and yet probably not meant, in files or in a running cluster."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import typer

from dray.cli import component, live, output
from dray.cli.findings import LINT, WARNING, Finding, FindingFormat, Report, print_report
from dray.cli.validate import Files, Form, Skip, Sources

if TYPE_CHECKING:
    from dray.snapshot import Snapshot
    from dray.snapshot.files import Item


def run(
    sources: Sources = None,
    files: Files = None,
    skip: Skip = None,
    format_: Form = FindingFormat.TEXT,
    kubeconfig: component.Kubeconfig = None,
    context: component.Context = "",
) -> None:
    """Say what is valid and yet probably not meant, in manifests and dumps, or without files in the running cluster.

    A class that nobody publishes, a class that is not there, a toleration that matches nothing, a selector that fails
    on devices without an attribute, a rule that selects nothing or everything, and, with NodeGroups in the files, a pod
    that fits no node group. Exit code 0: nothing; 1: there are findings; 2: input cannot be read.
    """
    from dray.api.meta import Object
    from dray.what_if.lint import lint

    given = [*(sources or ()), *(files or ())]
    if given:
        items = _read(given, skip or [])
        snapshot = _snapshot(items)
        objects = len(items)
    else:
        items = []
        snapshot = live.call(live.load_snapshot, "lint", kubeconfig=kubeconfig, context=context)
        objects = sum(1 for _ in snapshot.objects(Object))
    places = {_place(item.value): item for item in items}
    findings = []
    for one in lint(snapshot):
        item = places.get((one.kind, one.namespace, one.name))
        line = item.line_of(one.field) if item is not None else None
        name = f"{one.kind} {f'{one.namespace}/' if one.namespace else ''}{one.name}"
        file = item.source if item is not None else ""
        findings.append(Finding(file, line, name, one.reason, one.field, one.message, WARNING))
    findings.extend(_homeless(snapshot, items))
    print_report(Report(findings, objects, LINT), format_, "LintReport")
    raise typer.Exit(output.NO if findings else output.YES)


def _homeless(snapshot: Snapshot, items: list[Item]) -> Iterator[Finding]:
    """Pods that wait, and would wait with as many nodes as one likes."""
    from dray.scale_up import NodeGroupError, load_groups, plan

    try:
        groups = load_groups(items, snapshot)
    except NodeGroupError as error:
        output.fail(f"{error}.")
    if groups:
        for pod in plan(snapshot, groups).unplaced:
            yield Finding("", None, f"Pod {pod.pod}", "FitsNowhere", "", f"fits no node group: {pod.message}", WARNING)


def _read(given: list[str], skip: list[str]) -> list[Item]:
    from dray.snapshot.files import InputError
    from dray.snapshot.repository import PassedOver, read_each

    found: list[Item] = []
    for one in read_each(given, skip):
        if isinstance(one, InputError):
            output.fail(str(one))
        if not isinstance(one, PassedOver):
            found.append(one)
    return found


def _snapshot(items: list[Item]) -> Snapshot:
    from dray.scale_up.node_group_files import is_group
    from dray.snapshot import InputError, from_objects
    from dray.snapshot.objects import current_time, load_items

    try:
        loaded = load_items([item for item in items if not is_group(item)], current_time())
    except InputError as error:
        output.fail(str(error))
    return from_objects(loaded.objects.values())


def _place(value: Any) -> tuple[str, str, str]:
    if not isinstance(value, dict):
        return "", "", ""
    metadata = value.get("metadata") or {}
    namespaced = str(value.get("kind", "")) in ("ResourceClaim", "ResourceClaimTemplate", "Pod")
    namespace = metadata.get("namespace") or ("default" if namespaced else "")
    return str(value.get("kind")), str(namespace), str(metadata.get("name"))
