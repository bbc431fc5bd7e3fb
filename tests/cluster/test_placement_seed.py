"""The seed's examples and its list of end-to-end cases, on a whole hub with a clock that tests move."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator

import pytest
import yaml

from hub_world import UNAVAILABLE, UNREACHABLE, Hub, hub_world, placement, taint

GPU = taint("gpu=true:NoSelectIfNew", timeAdded="2021-07-06T15:00:00+08:00")
TOLERATES_GPU = {"key": "gpu", "value": "true", "operator": "Equal"}

EXAMPLE_1 = """
apiVersion: cluster.open-cluster-management.io/v1alpha1
kind: Placement
metadata:
  name: placement1
  namespace: default
spec: ~
"""


@contextlib.asynccontextmanager
async def seeded_hub() -> AsyncIterator[Hub]:
    async with hub_world() as hub:
        await hub.fleet("cluster1", "cluster2")
        yield hub


@pytest.mark.req("OCM-14", "OCM-35", "OCM-46")
async def test_example_1_maintenance_evicts_and_blocks_but_not_who_tolerates_it() -> None:
    async with seeded_hub() as hub:
        await hub.create(yaml.safe_load(EXAMPLE_1))
        await hub.create(placement("security", tolerations=[{"key": "maintaining", "operator": "Exists"}]))
        await hub.settle()
        assert await hub.decisions() == await hub.decisions("security") == ["cluster1", "cluster2"]
        await hub.taint("cluster1", taint("maintaining=true:NoSelect", timeAdded="2021-07-06T15:00:00+08:00"))
        await hub.create(placement("later"))
        await hub.settle()
        assert await hub.decisions() == await hub.decisions("later") == ["cluster2"]
        assert await hub.decisions("security") == ["cluster1", "cluster2"]
        assert (await hub.get("placements", "placement1")).spec.tolerations == ()


@pytest.mark.req("OCM-17", "OCM-34")
async def test_example_2_dedicated_clusters() -> None:
    async with seeded_hub() as hub:
        await hub.create(placement("before"))
        await hub.settle()
        await hub.taint("cluster1", GPU)
        await hub.create(placement(tolerations=[TOLERATES_GPU]), placement("others"))
        await hub.settle()
        assert await hub.decisions() == ["cluster1", "cluster2"]
        assert await hub.decisions("others") == ["cluster2"]
        assert await hub.decisions("before") == ["cluster1", "cluster2"]


@pytest.mark.req("OCM-36")
async def test_example_3_1_immediate_eviction() -> None:
    async with seeded_hub() as hub:
        await hub.taint("cluster1", GPU)
        await hub.create(placement(tolerations=[TOLERATES_GPU]))
        await hub.settle()
        assert await hub.decisions() == ["cluster1", "cluster2"]
        await hub.taint("cluster1", GPU, taint("unhealthy:NoSelect", timeAdded="2021-07-06T15:00:00+08:00"))
        await hub.settle()
        assert await hub.decisions() == ["cluster2"]


@pytest.mark.req("OCM-12", "OCM-37", "OCM-43", "OCM-44")
async def test_example_3_2_eviction_after_toleration_seconds() -> None:
    async with seeded_hub() as hub:
        await hub.taint("cluster1", GPU)
        ninety = {"key": "unreachable", "operator": "Exists", "tolerationSeconds": 90}
        await hub.create(placement(tolerations=[TOLERATES_GPU, ninety]))
        await hub.settle()
        await hub.taint("cluster1", GPU, taint("unreachable:NoSelect"))
        for _ in range(11):
            await hub.settle(8)
            await hub.renew("cluster1", "cluster2")
        assert await hub.decisions() == ["cluster1", "cluster2"]
        await hub.settle(3)
        assert await hub.decisions() == ["cluster2"]
        await hub.taint("cluster1", GPU, taint("unreachable:NoSelect", timeAdded="2021-07-06T15:00:00+08:00"))
        await hub.create(placement("old", tolerations=[TOLERATES_GPU, ninety]))
        await hub.settle()
        assert await hub.decisions("old") == ["cluster2"]


@pytest.mark.req("OCM-25", "OCM-38")
@pytest.mark.parametrize("tolerated", [True, False])
async def test_e2e_a_taint_with_or_without_toleration(tolerated: bool) -> None:
    async with seeded_hub() as hub:
        await hub.taint("cluster1", taint("team=a:NoSelect"))
        tolerations = [{"key": "team", "value": "a"}] if tolerated else [{"key": "team", "value": "b"}]
        await hub.create(placement(tolerations=tolerations))
        await hub.settle()
        assert await hub.decisions() == (["cluster1", "cluster2"] if tolerated else ["cluster2"])


@pytest.mark.req("OCM-29", "OCM-30", "OCM-38", "OCM-42")
@pytest.mark.parametrize(("said", "key"), [("False", UNAVAILABLE), ("Unknown", UNREACHABLE)])
async def test_e2e_taints_are_added_automatically(said: str, key: str) -> None:
    async with seeded_hub() as hub:
        await hub.report("cluster1", said)
        await hub.settle()
        assert await hub.taints("cluster1") == [f"{key}:NoSelect"]


@pytest.mark.req("OCM-24", "OCM-26", "OCM-38", "OCM-41")
@pytest.mark.parametrize(("said", "key"), [("False", UNAVAILABLE), ("Unknown", UNREACHABLE)])
@pytest.mark.parametrize("seconds", [None, 0, -1])
async def test_e2e_immediate_eviction(said: str, key: str, seconds: int | None) -> None:
    """Not set, in the seed's list, means that nothing tolerates the taint; a toleration without seconds always does."""

    async with seeded_hub() as hub:
        tolerations = [] if seconds is None else [{"key": key, "operator": "Exists", "tolerationSeconds": seconds}]
        await hub.create(placement(numberOfClusters=1, tolerations=tolerations))
        await hub.create(placement("patient", tolerations=[{"key": key, "operator": "Exists"}]))
        await hub.settle()
        assert await hub.decisions() == ["cluster1"]
        await hub.report("cluster1", said)
        await hub.settle()
        assert await hub.decisions() == ["cluster2"]
        assert await hub.decisions("patient") == ["cluster1", "cluster2"]


@pytest.mark.req("OCM-23", "OCM-38")
@pytest.mark.parametrize(("said", "key"), [("False", UNAVAILABLE), ("Unknown", UNREACHABLE)])
async def test_e2e_eviction_after_a_while(said: str, key: str) -> None:
    async with seeded_hub() as hub:
        tolerations = [{"key": key, "operator": "Exists", "tolerationSeconds": 120}]
        await hub.create(placement(numberOfClusters=1, tolerations=tolerations))
        await hub.settle()
        await hub.report("cluster1", said)
        await hub.settle(117)
        assert await hub.decisions() == ["cluster1"]
        await hub.settle(4)
        assert await hub.decisions() == ["cluster2"]
