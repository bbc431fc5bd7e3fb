"""The allocator against a plain exhaustive search, on small random clusters."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings

from allocation_cluster import Cluster
from allocation_strategies import NODES, clusters
from allocation_twin import Twin
from dray.allocator import Allocated, BudgetExceeded, Failed, Outcome, Unsatisfiable, allocate
from dray.api import codec

Picks = list[tuple[str, str, str, str, str]]


def outcome_of(result: Outcome) -> str:
    names = {Allocated: "allocated", Unsatisfiable: "unsatisfiable", Failed: "error", BudgetExceeded: "budget"}
    return names[type(result)]


def picks_of(result: Outcome) -> Picks:
    if not isinstance(result, Allocated):
        return []
    return [
        (claim, device.request, device.driver, device.pool, device.device)
        for claim, allocation in result.allocations.items()
        for device in allocation.devices.results
    ]


def encoded_inputs(cluster: Cluster) -> list[bytes]:
    return [codec.encode(obj) for obj in (*cluster.claims.values(), *cluster.classes.values())]


def check_against_twin(manifests: list[dict[str, Any]]) -> None:
    cluster = Cluster(manifests)
    names = sorted(name for name in cluster.claims if name.startswith("default/c"))
    wanted = [cluster.claims[name] for name in names]
    held = [claim for claim in cluster.claims.values() if claim.status.allocation is not None]
    before = encoded_inputs(cluster)
    for node in NODES:
        pools = [part for view in cluster.tracker.pools.values() if (part := view.for_node(node)) is not None]
        twin = Twin(pools, cluster.classes, wanted, held, (node, cluster.nodes[node]))
        expected = twin.run()
        result = allocate(cluster.inventory, cluster.classes, wanted, node)
        assert outcome_of(result) == expected, result
        if expected == "allocated":
            expected_picks = [(names[p.claim], p.request, *p.device.id) for p in twin.picked]
            assert picks_of(result) == expected_picks
        assert allocate(cluster.inventory, cluster.classes, wanted, node) == result
    assert encoded_inputs(cluster) == before


@pytest.mark.req("4381-89", "4381-91", "4381-92", "4381-93", "5055-50", "SVS-40", "SVS-47", "SVS-50")
@settings(max_examples=250, suppress_health_check=list(HealthCheck))
@given(clusters())
def test_same_outcome_and_same_first_solution_as_an_exhaustive_search(manifests: list[dict[str, Any]]) -> None:
    check_against_twin(manifests)


@pytest.mark.soak
@settings(max_examples=20_000, suppress_health_check=list(HealthCheck))
@given(clusters())
def test_same_outcome_on_many_clusters(manifests: list[dict[str, Any]]) -> None:
    check_against_twin(manifests)


@pytest.mark.req("4381-108")
@settings(max_examples=100, suppress_health_check=list(HealthCheck))
@given(clusters())
def test_without_a_node_the_first_that_decides_is_taken(manifests: list[dict[str, Any]]) -> None:
    cluster = Cluster(manifests)
    wanted = [claim for name, claim in sorted(cluster.claims.items()) if name.startswith("default/c")]
    one_by_one = [allocate(cluster.inventory, cluster.classes, wanted, node) for node in NODES]
    decisive = next((o for o in one_by_one if not isinstance(o, Unsatisfiable)), None)
    for _ in range(2):
        anywhere = allocate(cluster.inventory, cluster.classes, wanted)
        assert outcome_of(anywhere) == ("unsatisfiable" if decisive is None else outcome_of(decisive))
        assert picks_of(anywhere) == (picks_of(decisive) if decisive is not None else [])
