"""A hub as a page shows it: what others chose, clusters' agents or whoever makes placements, makes it neither long nor
wrong (issue 14)."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest

import builders
from dray.api.meta import Object
from dray.cli.cluster_rows import row
from dray.placement import FleetObject
from dray.views import hub

NOW = datetime(2026, 6, 1, tzinfo=UTC)
GROUP = "cluster.open-cluster-management.io"


def _cluster(name: str, **claims: str) -> Any:
    status = {"clusterClaims": [{"name": key.replace("__", "/"), "value": value} for key, value in claims.items()]}
    spec = {"hubAcceptsClient": True}
    return builders.typed(builders.manifest(f"{GROUP}/v1", "ManagedCluster", name, spec=spec, status=status), Object)


def _placement(name: str, namespace: str) -> Any:
    return builders.typed(builders.manifest(f"{GROUP}/v1beta1", "Placement", name, namespace, spec={}), Object)


def test_placements_of_one_namespace_hide_none_of_another(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hub, "MOST_JUDGED", 40)
    clusters = [_cluster(f"c-{number}") for number in range(4)]
    fleet: list[FleetObject] = [*clusters, *(_placement(f"p-{n}", "crowd") for n in range(500)), _placement("p", "ml")]
    seen = hub.hub(fleet, NOW)
    assert [one.name for one in seen.placements if one.name.startswith("ml/")] == ["ml/p"]
    assert (len(seen.placements), seen.more_placements) == (10, 491)


@pytest.mark.parametrize("number", ["9" * 30, "9" * 1024, "١٢", "-1", "1e3", ""])
def test_what_is_no_number_of_devices_is_not_shown(number: str) -> None:
    """A number of thirty digits is none that JSON of the page has: nobody saw the hub any more."""
    cluster = _cluster(
        "c",
        **{"free.devices.dray.dev__odd": number, "total.devices.dray.dev__odd": number},
        **{"free.devices.dray.dev__gpu": "3", "total.devices.dray.dev__gpu": "8"},
    )
    seen = hub.hub([cluster], NOW)
    assert seen.clusters[0].devices == {"gpu": (3, 8)}
    assert msgspec.json.encode(seen)
    assert row(cluster, 0)[3] == "gpu 3/8"


def test_a_cluster_with_very_many_classes_is_told_with_some() -> None:
    claims = {f"{word}.devices.dray.dev__c{n}": "1" for n in range(5000) for word in ("free", "total")}
    assert len(hub.hub([_cluster("c", **claims)], NOW).clusters[0].devices) == 100
