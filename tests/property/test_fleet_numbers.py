"""What `dray get clusters` and the page say of a hub's clusters, counted again from their objects alone."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from dray.api import codec
from dray.api.cluster import ManagedCluster, PlacementDecision
from dray.api.kinds import CLUSTERS, DECISIONS
from dray.api.registry import Kind
from dray.cli.get import Wanted, What, items_of, table_of
from dray.live.fleet_view import FleetView
from dray.views.hub import hub

NOW = datetime(2026, 6, 1, 12, 0, tzinfo=UTC)
NAMES = ("a", "b", "c")
CLASSES = ("gpu.example.com", "nic.example.com")
PLACEMENT = "cluster.open-cluster-management.io/placement"

_counts = st.dictionaries(st.sampled_from(CLASSES), st.tuples(st.integers(0, 9), st.integers(0, 9)))
_fleets = st.dictionaries(st.sampled_from(NAMES), _counts)
_decisions = st.lists(
    st.tuples(st.sampled_from("xy"), st.sampled_from("pq"), st.lists(st.sampled_from(NAMES), max_size=3))
)


class Given(FleetView):
    """A fleet that does not change."""

    def __init__(self, objects: dict[Kind, list[Any]]) -> None:
        self._given = objects

    def in_order(self, kind: Kind) -> list[Any]:
        return self._given[kind]


def cluster(name: str, counts: dict[str, tuple[int, int]]) -> ManagedCluster:
    claims = [
        {"name": f"{what}.devices.dray.dev/{kind}", "value": str(number)}
        for kind, numbers in counts.items()
        for what, number in zip(("free", "total"), numbers, strict=True)
    ]
    found = codec.read({"metadata": {"name": name}, "status": {"clusterClaims": claims}}, ManagedCluster).obj
    assert found is not None
    return found


def decision(number: int, namespace: str, placement: str, clusters: list[str]) -> PlacementDecision:
    meta = {"name": f"part-{number}", "namespace": namespace, "labels": {PLACEMENT: placement}}
    status = {"decisions": [{"clusterName": name, "reason": ""} for name in clusters]}
    found = codec.read({"metadata": meta, "status": status}, PlacementDecision).obj
    assert found is not None
    return found


@given(_fleets, _decisions)
def test_every_number_of_a_fleet_is_what_its_objects_say(
    fleet: dict[str, dict[str, tuple[int, int]]], decided: list[tuple[str, str, list[str]]]
) -> None:
    view = Given(
        {
            CLUSTERS: [cluster(name, counts) for name, counts in sorted(fleet.items())],
            DECISIONS: [decision(number, *one) for number, one in enumerate(decided)],
        }
    )
    wanted = Wanted(What.CLUSTERS)
    rows = {row[0]: row for row in table_of(view, wanted).rows}
    items: dict[str, Any] = {item.name: item for item in items_of(view, wanted)}  # type: ignore[attr-defined]  # each kind has one
    page = {row.name: row for row in hub([*view.in_order(CLUSTERS), *view.in_order(DECISIONS)], NOW).clusters}
    assert rows.keys() == items.keys() == page.keys() == fleet.keys()
    for name, counts in fleet.items():
        placements = len({(namespace, placement) for namespace, placement, chosen in decided if name in chosen})
        free = ", ".join(f"{kind} {free}/{total}" for kind, (free, total) in counts.items())
        assert (rows[name][3], rows[name][5]) == (free or "–", str(placements))
        assert (page[name].devices, page[name].placements) == (counts, placements)
        item = items[name]
        assert item.placements == placements
        assert item.free_devices == {kind: free for kind, (free, _) in counts.items()}
        assert item.total_devices == {kind: total for kind, (_, total) in counts.items()}
