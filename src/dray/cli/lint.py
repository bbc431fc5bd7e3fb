"""`dray lint`: what is valid and yet probably not meant, in files or in a running cluster."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import typer

from dray.cli import live, names, output
from dray.cli.findings import LINT, WARNING, Finding, FindingFormat, Report, print_report
from dray.cli.running_cluster import RunningCluster
from dray.cli.validate import Files, Form, Skip, Sources, read_all

if TYPE_CHECKING:
    from dray.api.meta import Object
    from dray.api.registry import Kind
    from dray.snapshot import Snapshot
    from dray.snapshot.files import InputError, Item


def run(
    sources: Sources = None,
    files: Files = None,
    skip: Skip = None,
    format_: Form = FindingFormat.TEXT,
    *,
    cluster: RunningCluster,
    namespace: names.OnlyNamespace = "",
    all_namespaces: names.AllNamespaces = False,
) -> None:
    """Say what is valid and yet probably not meant, in manifests and dumps, or without files in the running cluster.

    A class that nobody publishes, a class, claim, template or group that is not there, a toleration that matches
    nothing, a selector that fails on devices without an attribute, a rule that selects nothing or everything, and, with
    NodeGroups in the files, a pod that fits no node group. Exit code 0: nothing; 1: there are findings; 2: something
    could not be read; the rest is looked at.
    """
    from dray.api.meta import Object
    from dray.what_if.lint import lint

    namespace = names.one_of(namespace, all_namespaces=all_namespaces)
    given = [*(sources or ()), *(files or ())]
    if given:
        items, snapshot, unreadable = _read(given, skip or [])
        whole: set[type[Object]] = set()
        objects = len(items)
    else:
        items, unreadable = [], []
        snapshot, whole = _read_running(cluster)
        objects = sum(1 for _ in snapshot.objects(Object))
    if namespace and all(one.metadata.namespace != namespace for one in snapshot.objects(Object)):
        print(f"dray: there is nothing in namespace {namespace}, so nothing was looked at.", file=sys.stderr)
    places = {_place(item.value): item for item in items}
    findings = []
    for error in unreadable:
        print(f"dray: {error}", file=sys.stderr)
        if format_ is not FindingFormat.TEXT:  # what reads these does not read standard error
            findings.append(Finding(error.source, error.line, "", "Unreadable", "", error.message))
    for one in (one for one in lint(snapshot, whole) if namespace in ("", one.namespace)):
        item = places.get((one.kind, one.namespace, one.name))
        line = item.line_of(one.field) if item is not None else None
        name = f"{one.kind} {f'{one.namespace}/' if one.namespace else ''}{one.name}"
        file = item.source if item is not None else ""
        findings.append(Finding(file, line, name, one.reason, one.field, one.message, WARNING))
    homeless, problem = _homeless(snapshot, items, namespace)
    findings.extend(homeless)
    print_report(Report(findings, objects, LINT, unreadable=len(unreadable)), format_, "LintReport")
    if problem:
        print(f"dray: {problem}. What fits no node group was not looked at.", file=sys.stderr)
    raise typer.Exit(output.CANNOT if unreadable or problem else output.NO if findings else output.YES)


def _read_running(cluster: RunningCluster) -> tuple[Snapshot, set[type[Object]]]:
    """The running cluster, and the kinds that pods refer to and of which everything was read."""
    from dray.api.resource import DeviceClass
    from dray.what_if.missing import REFERRED

    left_out: list[Kind] = []
    snapshot = live.call(
        lambda client: live.load_snapshot_with_workloads(client, left_out),
        "lint",
        cluster,
    )
    return snapshot, {DeviceClass, *(one for one, (kind, _) in REFERRED.items() if kind not in left_out)}


def _homeless(snapshot: Snapshot, items: list[Item], namespace: str) -> tuple[list[Finding], str]:
    """Pods that would wait with as many nodes as one likes; and why that cannot be said, of groups that are wrong.

    Who waits for something else than nodes is not among them.
    """
    from dray.scale_up import NodeGroupError, load_groups, plan

    try:
        groups = load_groups(items, snapshot)
    except NodeGroupError as error:
        return [], str(error)
    unplaced = plan(snapshot, groups).unplaced if groups else ()
    return [
        Finding("", None, f"Pod {pod.pod}", "FitsNowhere", "", f"fits no node group: {pod.message}", WARNING)
        for pod in unplaced
        if pod.groups and (not namespace or pod.pod.startswith(f"{namespace}/"))
    ], ""


def _read(given: list[str], skip: list[str]) -> tuple[list[Item], Snapshot, list[InputError]]:
    """What is in files, the cluster that it makes, and what could not be read: that does not hide the rest."""
    from dray.scale_up.node_group_files import is_group
    from dray.snapshot import InputError, from_objects
    from dray.snapshot.objects import current_time, load_items
    from dray.snapshot.repository import PassedOver

    items: list[Item] = []
    objects: list[Object] = []
    unreadable: list[InputError] = []
    now = current_time()
    for one in read_all(given, skip):
        if isinstance(one, InputError):
            unreadable.append(one)
        elif not isinstance(one, PassedOver):
            try:
                objects.extend(() if is_group(one) else load_items([one], now).objects.values())
            except InputError as error:
                unreadable.append(error)
            else:
                items.append(one)
    return items, from_objects(objects), unreadable


def _place(value: Any) -> tuple[str, str, str]:
    from dray.api.registry import UnknownKind, by_kind

    if not isinstance(value, dict):
        return "", "", ""
    metadata = value.get("metadata") or {}
    try:
        is_namespaced = by_kind(str(value.get("apiVersion")), str(value.get("kind"))).namespaced
    except UnknownKind:
        is_namespaced = False
    namespace = metadata.get("namespace") or ("default" if is_namespaced else "")
    return str(value.get("kind")), str(namespace), str(metadata.get("name"))
