"""Placements on a hub in memory: what is decided is written, kept right, explained, and stays as it is."""

from __future__ import annotations

import pytest

from controller_world import manifest
from dray.api.cluster import Placement, PlacementDecision
from dray.reconcile import VirtualClock
from hub_world import binding, cluster, cluster_set, hub_world, placement, taint
from local_server import local_server


@pytest.mark.req("OCM-15", "OCM-19", "OCM-28", "SVS-80")
async def test_a_cluster_leaves_when_it_is_tainted_and_comes_back() -> None:
    async with hub_world() as hub:
        await hub.fleet("a", "b")
        await hub.create(placement())
        await hub.settle()
        assert await hub.decisions() == ["a", "b"]
        assert (await hub.conditions())["PlacementSatisfied"] == ("True", "AllDecisionsScheduled")
        await hub.taint("a", taint("maintaining=true:NoSelect"))
        await hub.settle()
        assert await hub.decisions() == ["b"]
        await hub.taint("a")
        await hub.settle()
        assert await hub.decisions() == ["a", "b"]


@pytest.mark.req("OCM-20", "OCM-22", "OCM-23")
async def test_the_first_toleration_to_run_out_decides_when_to_look_again() -> None:
    async with hub_world() as hub:
        await hub.fleet("a", "b", "c")
        tolerations = [
            {"key": "short", "operator": "Exists", "tolerationSeconds": 30},
            {"key": "long", "operator": "Exists", "tolerationSeconds": 90},
        ]
        await hub.create(placement(tolerations=tolerations))
        await hub.settle()
        await hub.taint("a", taint("long:NoSelect"))
        await hub.taint("b", taint("short:NoSelect"), taint("long:NoSelect"))
        await hub.settle(28)
        assert await hub.decisions() == ["a", "b", "c"]
        await hub.settle(3)
        assert await hub.decisions() == ["a", "c"]
        await hub.settle(58)
        assert await hub.decisions() == ["a", "c"]
        await hub.settle(3)
        assert await hub.decisions() == ["c"]


@pytest.mark.req("SVS-80")
async def test_many_decisions_take_several_objects_and_the_surplus_goes() -> None:
    async with hub_world("placement-controller") as hub:
        names = [f"c{number:03}" for number in range(150)]
        await hub.create(cluster_set(), binding(), *map(cluster, names), placement())
        await hub.settle()
        assert await hub.decisions() == names
        found = await hub.get("placements", "placement1")
        assert found.status.number_of_selected_clusters == 150
        assert [group.decisions for group in found.status.decision_groups] == [
            ("placement1-decision-1", "placement1-decision-2")
        ]
        assert [len(one.status.decisions) for one in await hub.objects("placementdecisions")] == [100, 50]
        await hub.patch("placements", "placement1", {"spec": {"numberOfClusters": 7}})
        await hub.settle()
        assert [one.metadata.name for one in await hub.objects("placementdecisions")] == ["placement1-decision-1"]
        assert len(await hub.decisions()) == 7
        reasons = [reason for reason, _ in await hub.events("placement1")]
        assert {"DecisionCreate", "DecisionUpdate", "DecisionDelete", "ScoreUpdate"} <= set(reasons)


async def test_what_others_write_into_decisions_is_put_right() -> None:
    async with hub_world() as hub:
        await hub.fleet("a", "b")
        await hub.create(placement(numberOfClusters=1))
        await hub.settle()
        name = "placement1-decision-1"
        wrong = {"status": {"decisions": [{"clusterName": "nobody", "reason": ""}]}}
        await hub.patch("placementdecisions", name, wrong, "status")
        await hub.settle()
        assert await hub.decisions() == ["a"]
        await hub.delete("placementdecisions", name)
        await hub.settle()
        assert await hub.decisions() == ["a"]
        await hub.patch("placements", "placement1", {"status": {"numberOfSelectedClusters": 77}}, "status")
        await hub.settle()
        assert (await hub.get("placements", "placement1")).status.number_of_selected_clusters == 1


async def test_an_object_of_somebody_else_with_the_name_of_a_decision_is_taken_over() -> None:
    async with hub_world() as hub:
        await hub.fleet("a")
        stranger = manifest("cluster.open-cluster-management.io/v1beta1", "PlacementDecision", "placement1-decision-1")
        await hub.create(stranger)
        await hub.create(placement())
        await hub.settle()
        assert await hub.decisions() == ["a"]


async def test_a_changed_spec_shows_in_the_status_even_if_it_decides_the_same() -> None:
    async with hub_world() as hub:
        await hub.fleet("a")
        await hub.create(placement())
        await hub.settle()
        await hub.patch("placements", "placement1", {"spec": {"numberOfClusters": 1}})
        await hub.settle()
        found = await hub.get("placements", "placement1")
        assert {one.observed_generation for one in found.status.conditions} == {found.metadata.generation} == {2}


@pytest.mark.req("OCM-08", "SVS-77")
async def test_a_misconfigured_placement_says_so_and_has_nothing() -> None:
    async with hub_world() as hub:
        await hub.fleet("a")
        await hub.create(placement())
        await hub.settle()
        await hub.patch("placements", "placement1", {"spec": {"tolerations": [{"operator": "Equal", "value": "x"}]}})
        await hub.settle()
        assert await hub.decisions() == []
        assert (await hub.conditions())["PlacementMisconfigured"] == ("True", "Misconfigured")


async def test_a_placement_that_is_switched_off_keeps_what_it_has() -> None:
    async with hub_world() as hub:
        await hub.fleet("a", "b")
        await hub.create(placement())
        await hub.settle()
        off = {"cluster.open-cluster-management.io/experimental-scheduling-disable": "true"}
        await hub.patch("placements", "placement1", {"metadata": {"annotations": off}})
        await hub.taint("a", taint("x:NoSelect"))
        await hub.settle()
        assert await hub.decisions() == ["a", "b"]
        assert any("scheduling is switched off" in message for _, message in await hub.events("placement1"))
        on = dict.fromkeys(off)
        await hub.patch("placements", "placement1", {"metadata": {"annotations": on}})
        await hub.settle()
        assert await hub.decisions() == ["b"]


async def test_decisions_go_with_their_placement() -> None:
    async with hub_world() as hub:
        await hub.fleet("a")
        await hub.create(placement())
        await hub.settle()
        await hub.delete("placements", "placement1")
        await hub.settle(5)
        assert await hub.objects("placementdecisions") == []


async def test_a_restart_moves_nobody() -> None:
    """The second of two equal clusters was selected; a controller that knew nothing of that would take the first."""

    async with local_server(VirtualClock()) as server:
        async with hub_world("placement-controller", server=server) as hub:
            await hub.create(cluster_set(), binding(), cluster("b"), placement(numberOfClusters=1))
            await hub.settle()
            await hub.create(cluster("a"))
            await hub.settle(10)
            assert await hub.decisions() == ["b"]
        before = await hub.get("placements", "placement1")
        async with hub_world("placement-controller", server=server) as hub:
            await hub.settle(20)
            assert await hub.decisions() == ["b"]
            assert await hub.get("placements", "placement1") == before


async def test_what_changes_nothing_writes_nothing() -> None:
    async with hub_world("placement-controller") as hub:
        await hub.fleet("a", "b")
        await hub.create(placement(numberOfClusters=1))
        await hub.settle(10)
        before = [await hub.objects("placementdecisions"), await hub.objects("placements")]
        for number in range(5):
            await hub.patch("managedclusters", "a", {"metadata": {"annotations": {"beat": str(number)}}})
            await hub.settle(10)
        assert [await hub.objects("placementdecisions"), await hub.objects("placements")] == before


def message_of(found: Placement) -> str:
    return next(one.message for one in found.status.conditions if one.type == "PlacementSatisfied")


async def test_the_status_explains_within_bounds_and_keeps_up_with_the_fleet() -> None:
    async with hub_world("placement-controller") as hub:
        names = [f"c{number:03}" for number in range(60)]
        out = [cluster(name, taint(f"key{name}:NoSelect")) for name in names]
        await hub.create(cluster_set(), binding(), cluster("good"), cluster("spare"), *out)
        await hub.create(placement(numberOfClusters=1))
        await hub.settle()
        said = message_of(await hub.get("placements", "placement1"))
        assert said == (
            "Selected 1 of 1 wanted cluster; 62 available; 60 kept out by taints (c000: keyc000:NoSelect, "
            "c001: keyc001:NoSelect, c002: keyc002:NoSelect, …); 1 not needed (spare)"
        )
        await hub.taint("c000", taint("other:NoSelect"))
        await hub.settle(1)
        assert message_of(await hub.get("placements", "placement1")) == said
        await hub.settle(10)
        assert "(c000: other:NoSelect," in message_of(await hub.get("placements", "placement1"))


async def test_the_status_says_until_when_a_cluster_is_tolerated() -> None:
    async with hub_world() as hub:
        await hub.fleet("a")
        tolerated = {"key": "x", "operator": "Exists", "tolerationSeconds": 600}
        predicate = {"requiredClusterSelector": {"labelSelector": {"matchLabels": {"region": "eu"}}}}
        await hub.patch("managedclusters", "a", {"metadata": {"labels": {"region": "eu"}}})
        await hub.create(cluster("b", labels={"region": "us"}))
        await hub.create(placement(tolerations=[tolerated], predicates=[predicate]))
        await hub.taint("a", taint("x:NoSelect", timeAdded="2025-06-15T15:06:40Z"))
        await hub.settle()
        assert message_of(await hub.get("placements", "placement1")) == (
            "Selected 1 cluster; 2 available; 1 match no predicate (b: label region is 'us', needs region=eu); "
            "1 tolerated for a time (a: until 2025-06-15T15:16:40Z)"
        )


async def test_decision_groups_are_written_with_their_labels() -> None:
    async with hub_world() as hub:
        await hub.fleet("a", "b", "c")
        await hub.patch("managedclusters", "b", {"metadata": {"labels": {"canary": "true"}}})
        canary = {"groupName": "canary", "groupClusterSelector": {"labelSelector": {"matchLabels": {"canary": "true"}}}}
        strategy = {"groupStrategy": {"decisionGroups": [canary], "clustersPerDecisionGroup": 1}}
        await hub.create(placement(decisionStrategy=strategy))
        await hub.settle()
        found: list[PlacementDecision] = await hub.objects("placementdecisions")
        prefix = "cluster.open-cluster-management.io/decision-group"
        shown = [
            (one.metadata.labels[f"{prefix}-index"], one.metadata.labels[f"{prefix}-name"], len(one.status.decisions))
            for one in found
        ]
        assert shown == [("0", "canary", 1), ("1", "", 1), ("2", "", 1)]
        assert await hub.decisions() == ["b", "a", "c"]
