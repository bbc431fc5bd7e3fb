"""Shares serve several requests: a test for dead ends that counts devices must not count a shared one only once."""

from typing import Any

import pytest

import builders
import dray

DRIVER = "gpu.example.com"


def resource_slice(name: str, pool: str, count: int, **spec: Any) -> dict[str, Any]:
    return builders.resource_slice(name, driver=DRIVER, pool=pool, count=count, **spec)


def metered(name: str, amount: str) -> dict[str, Any]:
    return {"name": name, "consumesCounters": [{"counterSet": "cs", "counters": {"m": {"value": amount}}}]}


def claim(name: str, count: int) -> dict[str, Any]:
    return builders.claim(name, builders.request(deviceClassName="any", allocationMode="ExactCount", count=count))


@pytest.mark.req("4381-92", "4381-93")
def test_a_shared_device_serves_two_claims_where_counters_leave_too_few_others() -> None:
    """Two claims for two devices each: one metered device fits, one is plain, and one is shared by both."""
    counters = [{"name": "cs", "counters": {"m": {"value": "3"}}}]
    snapshot = dray.load(
        {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "node-1"}},
        {"apiVersion": "resource.k8s.io/v1", "kind": "DeviceClass", "metadata": {"name": "any"}, "spec": {}},
        resource_slice("metered", "p0", 2, nodeName="node-1", devices=[metered("d0", "1"), metered("d1", "3")]),
        resource_slice("counters", "p0", 2, nodeName="node-1", sharedCounters=counters),
        resource_slice(
            "others",
            "p1",
            1,
            nodeName="node-1",
            devices=[{"name": "d2"}, {"name": "d3", "allowMultipleAllocations": True}],
        ),
        claim("c0", 2),
        claim("c1", 2),
    )
    outcome = snapshot.allocate("default/c0", "default/c1", node="node-1")
    assert outcome.status == "allocated", outcome.message
    picked = [
        [result["device"] for result in outcome.allocations[f"default/{name}"]["devices"]["results"]]
        for name in ("c0", "c1")
    ]
    assert picked == [["d0", "d3"], ["d2", "d3"]]
