"""Every number that explain prints, found again by trying."""

from __future__ import annotations

from collections.abc import Iterator
from copy import deepcopy
from typing import Any

from hypothesis import HealthCheck, given, settings

import dray
from allocation_strategies import clusters
from dray.allocator.reasons import RequestReport
from dray.prose.explanations import tell_totals
from dray.snapshot import Snapshot
from snapshot_objects import node

Json = dict[str, Any]


def load(manifests: list[Json]) -> Snapshot:
    nodes = [node(one["metadata"]["name"], labels=one["metadata"]["labels"]) for one in manifests if is_a(one, "Node")]
    others = [{"apiVersion": "resource.k8s.io/v1", **one} for one in manifests if not is_a(one, "Node")]
    return dray.load(*nodes, *others)


def is_a(manifest: Json, kind: str) -> bool:
    return bool(manifest["kind"] == kind)


def with_marks(manifests: list[Json]) -> list[Json]:
    """Every device has an attribute that tells it from the others."""
    for one in manifests:
        for device in one["spec"].get("devices", ()) if is_a(one, "ResourceSlice") else ():
            device["attributes"]["mark"] = {"string": device["name"]}
    return manifests


def laid_bare(manifests: list[Json]) -> list[Json]:
    """The same devices with nothing in their way: nobody holds them, no taints, no counters."""
    bare = [one for one in deepcopy(manifests) if not one["metadata"]["name"].startswith("held")]
    for one in bare:
        for device in one["spec"].get("devices", ()) if is_a(one, "ResourceSlice") else ():
            for field in ("taints", "consumesCounters"):
                device.pop(field, None)
    return bare


def asked_for(manifests: list[Json], claim: str, request: str) -> tuple[str, Json, list[Json]]:
    """The request or alternative of a report: its name, what it asks for, and the constraints that it is under."""
    (found,) = [one for one in manifests if is_a(one, "ResourceClaim") and one["metadata"]["name"] == claim]
    devices = found["spec"]["devices"]
    name, _, sub = request.partition("/")
    (asked,) = [one for one in devices["requests"] if one["name"] == name]
    exactly = asked["exactly"] if not sub else next(one for one in asked["firstAvailable"] if one["name"] == sub)
    mine = [
        {**one, "requests": []}
        for one in devices.get("constraints", ())
        if not one.get("requests") or {name, request} & set(one["requests"])
    ]
    return name, {key: value for key, value in exactly.items() if key != "name"}, mine


def gets(
    snapshot: Snapshot, where: str, asked: Json, constraints: list[Json], *, count: int = 1, mark: str = ""
) -> bool:
    """Whether a claim for so many of these devices, or for the one of this name, fits on a node."""
    only = f'device.attributes[device.driver].?mark.orValue("") == "{mark}"'
    selectors = [*asked.get("selectors", ()), *([{"cel": {"expression": only}}] if mark else ())]
    exactly = {**asked, "allocationMode": "ExactCount", "count": count, "selectors": selectors}
    devices = {"requests": [{"name": "r", "exactly": exactly}], "constraints": constraints}
    probe = {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaim", "spec": {"devices": devices}}
    made = snapshot.with_objects({**probe, "metadata": {"name": "probe", "namespace": "default"}})
    return made.allocate("default/probe", node=where).status == "allocated"


def check_request(manifests: list[Json], snapshot: Snapshot, bare: Snapshot, claim: str, report: RequestReport) -> None:
    _, asked, constraints = asked_for(manifests, claim, report.name)
    wanted = {key: value for key, value in asked.items() if key != "capacity"}
    seen: set[tuple[str, str, str]] = set()
    matching: set[tuple[str, str, str]] = set()
    free: set[tuple[str, str, str]] = set()
    for told in report.nodes:
        here = {(one.driver, one.pool, one.device) for one in told.devices}
        matches = {one for one in here if gets(bare, told.node, wanted, [], mark=one[2])}
        can_be_had = {one for one in here if gets(snapshot, told.node, asked, constraints, mark=one[2])}
        assert told.matching == len(matches), told
        assert told.free == len(can_be_had), told
        if report.count is not None and not told.fits:
            most = max(
                (n for n in range(1, report.count) if gets(snapshot, told.node, asked, constraints, count=n)), default=0
            )
            assert told.missing == report.count - most, told
        seen |= here
        matching |= matches
        free |= can_be_had
    totals = tell_totals(report)
    assert totals.startswith(f"{len(matching)} of {len(seen)} device"), totals
    assert sum(int(part.split()[0]) for part in totals.partition("; ")[2].split(", ") if part[:1].isdigit()) in (
        len(matching),
        0,
    ), totals


def judged(snapshot: Snapshot) -> Iterator[tuple[str, RequestReport]]:
    """The requests of claims that wait, where nothing fails."""
    for claim in snapshot.pending():
        report = snapshot.explain(claim).report
        if report.error or any(one.error for one in report.claims):
            continue
        for one in report.claims:
            for request in one.requests:
                if not any(told.error for told in request.nodes):
                    yield claim.partition("/")[2], request


@settings(max_examples=40, suppress_health_check=list(HealthCheck), deadline=None)
@given(clusters())
def test_how_many_match_are_free_and_are_missing(manifests: list[Json]) -> None:
    marked = with_marks(manifests)
    snapshot, bare = load(marked), load(laid_bare(marked))
    for claim, request in judged(snapshot):
        check_request(marked, snapshot, bare, claim, request)
