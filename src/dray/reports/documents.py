"""What reports say: the fleet, what a change would do, which nodes are missing."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from datetime import datetime
from typing import Final, NamedTuple

from dray import __version__
from dray.api.generated.core import Node, Pod
from dray.api.resource import DeviceClass, DeviceTaintRule
from dray.api.times import Time
from dray.prose.wording import count, names
from dray.reports import bars, fleet_map
from dray.reports.bars import Bar
from dray.reports.fleet_map import Block
from dray.reports.html import Document, Part, Section
from dray.reports.shapes import Picture
from dray.scale_up.answer import ScaleUpPlan
from dray.snapshot import Snapshot
from dray.tracker.view import PoolView
from dray.views import grouping, service, waiting
from dray.views.fleet import FleetRow, FleetTotals, look_at, shown_as, totals
from dray.what_if.difference import Difference
from dray.what_if.difference_text import Rows, headline, sections

ORDER: Final = ("held", "leaving", "tainted", "blocked", "free")


class Fleet(NamedTuple):
    """The devices of a snapshot."""

    rows: tuple[FleetRow, ...]
    views: dict[str, PoolView]
    totals: FleetTotals
    blocks: tuple[Block, ...]


def look(snapshot: Snapshot, by: str = "", marked: Collection[str] = ()) -> Fleet:
    """The devices, grouped. Raises GroupingError."""
    found = look_at(snapshot)
    labels = {node.metadata.name: node.metadata.labels for node in snapshot.objects(Node)}
    classes = {one.metadata.name: one for one in snapshot.objects(DeviceClass)}
    group = grouping.grouper(by, labels, classes)
    rows = tuple(sorted(found.rows.values(), key=lambda row: grouping.natural(row.node or row.pool)))
    return Fleet(rows, found.views, totals(rows), tuple(fleet_map.blocks(rows, found.views, group, marked)))


def fleet_picture(fleet: Fleet, title: str = "Fleet") -> Picture:
    """The map."""
    return fleet_map.draw(fleet.blocks, title)


def fleet_report(snapshot: Snapshot, fleet: Fleet, now: datetime, source: str) -> Document:
    """What there is, what is out of service, who waits."""
    numbers = fleet.totals
    used = f"{100 * numbers.held / numbers.devices:.0f} %" if numbers.devices else "–"
    scattered = f"{100 * (numbers.free - numbers.whole) / numbers.free:.0f} %" if numbers.free else "–"
    waits = [row for row in waiting.pod_rows(snapshot.objects(Pod)) if row.state in ("pending", "gated")]
    lead = f"{fleet_map.tell(numbers)}. {used} are held; {scattered} of the free ones are on nodes that others use. "
    lead += f"{count(len(waits), 'pod')} {'waits' if len(waits) == 1 else 'wait'}."
    groups = [block.group for block in fleet.blocks]
    by_group = groups if any(groups) else None
    return Document(
        "Fleet",
        lead,
        (
            Section("Map", (fleet_picture(fleet),)),
            Section("In numbers", tuple(_numbers(fleet, is_grouped=by_group is not None))),
            Section("Out of service", (_rules(snapshot),)),
            Section("Waiting", (_waiting(waits),)),
        ),
        _made(source, now),
    )


def _numbers(fleet: Fleet, *, is_grouped: bool) -> Iterator[Rows | Picture]:
    counts: dict[str, dict[str, int]] = {}
    if is_grouped:
        for block in fleet.blocks:
            for word in block.words:
                of = counts.setdefault(block.group, dict.fromkeys(ORDER, 0))
                of[word] += 1
    else:
        for row in fleet.rows:
            of = counts.setdefault(row.driver, dict.fromkeys(ORDER, 0))
            for letter in row.states:
                of[shown_as(letter)] += 1
    them = [
        Bar(name or "(none)", tuple(of.items()), sum(of.values()), f"{of['free']} of {sum(of.values())} free")
        for name, of in counts.items()
    ]
    yield bars.draw(them, "Devices")
    header = ("group" if is_grouped else "driver", *ORDER, "all")
    rows = [(name or "(none)", *map(str, of.values()), str(sum(of.values()))) for name, of in counts.items()]
    yield Rows("Devices by what is shown on the map", header, rows)


def _rules(snapshot: Snapshot) -> Rows | str:
    found = list(snapshot.objects(DeviceTaintRule))
    with snapshot.rehearsal() as rehearsal:
        inventory = rehearsal.cluster.inventory
        rows = service.rule_rows(found, lambda name: service.Reach.of(snapshot.selected_devices(name), inventory))
    if not rows:
        return "No rule taints a device."
    cells = [
        (one.name, one.taint, str(one.devices), str(one.in_use), one.since or "–", one.held or one.progress or "–")
        for one in rows
    ]
    return Rows("Rules", ("rule", "taint", "devices", "in use", "since", "progress"), cells)


def _waiting(waits: list[waiting.PodRow]) -> Rows | str:
    if not waits:
        return "No pod waits for a node."
    rows = [(one.name, one.since or "–", str(one.priority), one.message or "not tried yet") for one in waits]
    return Rows("Pods without a node, the longest waiting first", ("pod", "since", "priority", "why"), rows)


def what_if_report(before: Fleet, after: Fleet, difference: Difference, source: str) -> Document:
    """What a change would do, with the map before and after it."""
    verdict = "Somebody loses something by it." if difference.is_disruptive else "Nobody loses anything by it."
    parts = tuple(sections(difference))
    pictures = (fleet_picture(before, "Before"), fleet_picture(after, "After"))
    return Document(
        "What if",
        f"{headline(difference)} {verdict}",
        (Section("What comes of it", parts), Section("The fleet, devices that change framed", pictures)),
        _made(source, Time.parse(difference.now).datetime()),
    )


def changed_devices(difference: Difference) -> frozenset[str]:
    """As `driver/pool/device`."""
    return frozenset(f"{one.driver}/{one.pool}/{one.device}" for one in difference.devices)


def scale_up_report(fleet: Fleet, plan: ScaleUpPlan, now: datetime, source: str) -> Document:
    """Which nodes the pending pods need."""
    shown = [
        Bar(one.name, (("held", one.nodes),), max(1, one.limit), f"add {one.nodes} of {one.limit}")
        for one in plan.groups
    ]
    rows = [
        (one.name, str(one.nodes), str(one.limit), f"{one.nodes * one.price:g}", names(one.pods, 20) or "–")
        for one in plan.groups
    ]
    told = f"{count(plan.nodes, 'more node')}, at a price of {plan.cost:g}."
    groups: list[Part] = [told] if plan.nodes else []
    if shown:
        groups += [bars.draw(shown, "Nodes to add"), Rows("Node groups", ("group", "add", "of", "price", "pods"), rows)]
    placed = [(pod, node) for pod, node in plan.placements.items()]
    refused = [
        (one.pod, f"{group}: {why}" if group else why)
        for one in plan.unplaced
        for group, why in (one.groups or {"": one.message}).items()
    ]
    pods: list[Part] = []
    pods += [Rows("Where pods would go", ("pod", "node"), placed)] if placed else []
    pods += [Rows("Pods that no group helps", ("pod", "why not"), refused)] if refused else []
    pods += [f"Note: {note}." for note in plan.notes]
    return Document(
        "Scale up",
        plan.headline() if plan.pending else "No pod is pending.",
        (
            Section("Nodes to add", tuple(groups) or ("None.",)),
            Section("Pods", tuple(pods) or ("None waits.",)),
            Section("The fleet as it is", (fleet_picture(fleet),)),
        ),
        _made(source, now),
    )


def _made(source: str, now: datetime) -> str:
    return f"dray {__version__}, of {source}, {Time.of(now)}"
