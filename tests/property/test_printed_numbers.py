"""Every number of devices that get, metrics, the hub and previews print, counted again from the manifests alone."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any, NamedTuple

import msgspec
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from prometheus_client import CollectorRegistry

import dray
from allocation_strategies import DRIVERS, NODES, clusters
from dray.api.resource import DeviceTaintRule
from dray.cli.file_view import FileView
from dray.cli.get import Wanted, What, items_of, table_of
from dray.cli.node_rows import tell_shared
from dray.hub_agent.device_counts import DeviceCounts
from dray.hub_agent.report import describe_devices
from dray.live.counted_devices import CountedDevices
from dray.live.device_metrics import DeviceMetrics
from dray.prose.wording import count
from dray.snapshot import Snapshot
from dray.views.fleet import look_at, words_of
from dray.views.fleet import totals as fleet_totals
from dray.what_if.taint_preview import preview_rules
from snapshot_objects import node, pod, rule

Json = dict[str, Any]
NOW = datetime(2026, 6, 1, 12, 0, tzinfo=UTC)
KEEPING = ("NoSchedule", "NoExecute")


CLOSED: dict[str, Json] = {
    "cordoned": {"unschedulable": True},
    "evicting": {"taints": [{"key": "repair", "effect": "NoExecute"}]},
}
"""Nodes that take no pods: nothing on them is free."""
OPEN: dict[str, Json] = {"open": {}, "set aside": {"taints": [{"key": "dedicated", "effect": "NoSchedule"}]}}


class Counted(NamedTuple):
    """A device as the manifests have it."""

    id: tuple[str, str, str]
    node: str
    held: bool
    tainted: bool


def count_by_hand(manifests: list[Json]) -> Iterator[Counted]:
    held = set(held_by_hand(manifests))
    for manifest in manifests:
        spec = manifest["spec"] if manifest["kind"] == "ResourceSlice" else {}
        for device in spec.get("devices", ()):
            place = (spec["driver"], spec["pool"]["name"], device["name"])
            where = device.get("nodeName", "") if spec.get("perDeviceNodeSelection") else spec.get("nodeName", "")
            tainted = any(taint["effect"] in KEEPING for taint in device.get("taints", ()))
            yield Counted(place, where, place in held, tainted)


def held_by_hand(manifests: list[Json]) -> Iterator[tuple[str, str, str]]:
    for manifest in manifests:
        allocation = manifest.get("status", {}).get("allocation", {})
        for result in allocation.get("devices", {}).get("results", ()):
            if not result.get("adminAccess"):
                yield result["driver"], result["pool"], result["device"]


@settings(max_examples=100, suppress_health_check=list(HealthCheck))
@given(clusters(), st.sampled_from(DRIVERS), st.sampled_from([*CLOSED, *OPEN]), st.integers(0, 3))
def test_every_number_is_what_the_manifests_say(manifests: list[Json], driver: str, state: str, pods: int) -> None:
    spec = {**CLOSED, **OPEN}[state]
    nodes = [node(name, spec=spec, labels={"rack": f"r{name[-1]}"}) for name in NODES]
    nodes += [pod(f"p{number}", NODES[0], phase="Running") for number in range(pods)]
    others = [{"apiVersion": "resource.k8s.io/v1", **one} for one in manifests if one["kind"] != "Node"]
    snapshot = dray.load(*nodes, *others)
    devices = list(count_by_hand(manifests))
    check_get(snapshot, devices)
    check_rest_of_get(snapshot, pods, leave=state == "evicting")
    if state in CLOSED:
        assert not any(one.is_free for one in snapshot.device_states())
    check_metrics_and_hub(snapshot, devices)
    check_page_and_devices(snapshot, devices)
    check_preview(snapshot, driver, devices, set(held_by_hand(manifests)))


def check_get(snapshot: Snapshot, devices: list[Counted]) -> None:
    table = table_of(FileView(snapshot), Wanted(What.NODES))
    states = list(snapshot.device_states())
    for cells in table.rows:
        row = dict(zip(table.header, map(str, cells), strict=True))
        own = [one for one in devices if one.node == row["NODE"]]
        assert row["DEVICES"] == str(len(own))
        assert row["HELD"] == str(sum(one.held for one in own))
        assert row["TAINTED"] == str(sum(one.tainted for one in own))
        free, blocked = int(row["FREE"]), int(row["BLOCKED"])
        here = [state for state in states if state.device.access.node_name == row["NODE"]]
        assert free == sum(state.is_free for state in here), "and those can be had (test_device_states)"
        assert blocked == sum(state.is_blocked for state in here)
        neither = sum(not one.held and not one.tainted for one in own)
        assert neither <= free + blocked <= neither + sum(one.held for one in own), "and shares of held ones"
    left = [one for one in devices if not one.node]
    told = tell_shared(states)
    assert bool(told) == bool(left)
    assert not left or told.startswith(f"Besides, {count(len(left), 'device')} that")
    assert not left or f" {sum(one.held for one in left)} held" in told
    assert not left or f" {sum(one.tainted for one in left)} tainted" in told


def check_rest_of_get(snapshot: Snapshot, pods: int, *, leave: bool) -> None:
    """For programs the same numbers as for people; pods, those that leave, and what blocks devices add up."""
    view = FileView(snapshot)
    table = table_of(view, Wanted(What.NODES))
    for cells, item in zip(table.rows, items_of(view, Wanted(What.NODES)), strict=True):
        row, plain = dict(zip(table.header, cells, strict=True)), msgspec.to_builtins(item)
        for column in ("DEVICES", "FREE", "HELD", "BLOCKED", "TAINTED", "PODS"):
            assert row[column] == str(plain[column.lower()])
        here = pods if row["NODE"] == NODES[0] else 0
        assert (plain["pods"], plain["leaving"]) == (here, here if leave else 0)
        assert row.get("LEAVING", "–").startswith(count(here, "pod") if leave and here else "–")
        reasons = [part for part in row.get("BLOCKED BY", "–").split(", ") if part[0].isdigit()]
        assert sum(int(part.split()[0]) for part in reasons) == plain["blocked"] or "more" in row["BLOCKED BY"]
        assert sum(plain["blockedBy"].values()) == plain["blocked"]
        assert not leave or set(plain["blockedBy"]) <= {"nodeTainted"}
    states = list(snapshot.device_states())
    shared = [one for one in states if one.device.access.node_name is None]
    told = tell_shared(states)
    assert not shared or f" {sum(one.is_free for one in shared)} free" in told
    assert not shared or f" {sum(one.is_blocked for one in shared)} blocked" in told


def check_page_and_devices(snapshot: Snapshot, devices: list[Counted]) -> None:
    """The page, and the table of devices, count what they show."""
    rows = list(look_at(snapshot).rows.values())
    shown = fleet_totals(rows)
    states = list(snapshot.device_states())
    assert (shown.devices, shown.held) == (len(devices), sum(one.held for one in devices))
    assert shown.tainted == sum(one.tainted for one in devices)
    assert (shown.free, shown.blocked) == tuple(
        sum(getattr(one, name) for one in states) for name in ("is_free", "is_blocked")
    )
    whole = [row for row in rows if all(words_of(letter) == ["free"] for letter in row.states)]
    assert shown.whole == sum(len(row.names) for row in whole)
    table = table_of(FileView(snapshot), Wanted(What.DEVICES))
    words = [dict(zip(table.header, cells, strict=True))["STATE"].split(", ") for cells in table.rows]
    for word in ("free", "held", "tainted", "blocked"):
        assert sum(word in row for row in words) == sum(word in one.words for one in states)


def check_metrics_and_hub(snapshot: Snapshot, devices: list[Counted]) -> None:
    snapshot.nodes()
    cluster = snapshot._world.cluster
    registry = CollectorRegistry()
    known = CountedDevices()
    registry.register(DeviceMetrics(known))
    asyncio.run(known.look(cluster))

    def metric(state: str) -> int:
        values = [registry.get_sample_value("dray_devices", {"driver": one, "state": state}) for one in DRIVERS]
        return int(sum(value or 0 for value in values))

    assert metric("all") == len(devices)
    assert metric("held") == sum(one.held for one in devices)
    assert metric("tainted") == sum(one.tainted for one in devices)
    counts = DeviceCounts().count(cluster, cluster.classes.values())
    assert counts["any"].total == len(devices)
    assert counts["any"].tainted == metric("tainted")
    assert (counts["any"].free, counts["any"].blocked) == (metric("free"), metric("blocked"))
    told = {claim.name.partition(".")[0]: claim.value for claim in describe_devices({"any": counts["any"]})}
    assert told == {what: str(number) for what, number in counts["any"]._asdict().items()}
    assert counts["gpu"].total == sum(one.id[0] == "gpu.example.com" for one in devices)


def check_preview(snapshot: Snapshot, driver: str, devices: list[Counted], held: set[tuple[str, str, str]]) -> None:
    made = snapshot.with_objects(rule("r", driver=driver))
    (typed,) = [one for one in made.objects(DeviceTaintRule) if one.metadata.name == "r"]
    preview = preview_rules(snapshot, [typed], NOW)
    published = {one.id for one in devices if one.id[0] == driver}
    of_driver = {one for one in held if one[0] == driver}
    assert set(preview.devices) == {"/".join(one) for one in published | of_driver}
    assert preview.held == len(of_driver)
