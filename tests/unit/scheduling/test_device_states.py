"""Devices are counted some at a time: no step looks at more than a few nodes and pools, however many there are."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from allocation_cluster import typed
from dray.allocator.reasons import CapacityShort
from dray.api.generated.core import Node
from dray.api.resource import ResourceSlice
from dray.scheduling import device_states
from dray.scheduling.cluster import Cluster
from dray.scheduling.device_state_text import tell_block
from dray.scheduling.device_states import DeviceStates
from dray.scheduling.node_table import NodeTable
from dray.tracker import Remove, Upsert

MANY = 300
AT_ONCE = 20


def node(number: int) -> Node:
    return typed({"apiVersion": "v1", "kind": "Node", "metadata": {"name": f"node-{number}"}}, Node)


def published(number: int) -> ResourceSlice:
    spec = {
        "driver": "gpu.example.com",
        "nodeName": f"node-{number}",
        "pool": {"name": f"node-{number}", "generation": 1, "resourceSliceCount": 1},
        "devices": [{"name": "gpu-0"}, {"name": "gpu-1"}],
    }
    manifest = {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceSlice", "metadata": {"name": f"slice-{number}"}}
    return typed({**manifest, "spec": spec}, ResourceSlice)


def cluster_of(count: int) -> Cluster:
    cluster = Cluster()
    for number in range(count):
        cluster.set_node(None, node(number))
        cluster.track(Upsert(published(number)))
    return cluster


@pytest.mark.parametrize(
    ("left", "told"),
    [
        ("-20", "no bandwidth left (shared with ml/a)"),
        ("0", "no bandwidth left (shared with ml/a)"),
        ("5", "bandwidth 5 left, less than the least share (shared with ml/a)"),
    ],
)
def test_a_device_of_which_no_share_is_left(left: str, told: str) -> None:
    """Without a policy the least share is a billionth, which is no number for people."""
    short = CapacityShort(
        capacity="nic.example.com/bandwidth", needed="1n", left=left, short_by="20000000001n", claims=("ml/a",)
    )
    assert tell_block(short) == told


def test_no_step_looks_at_more_than_some_nodes_and_pools(monkeypatch: pytest.MonkeyPatch) -> None:
    cluster, states = cluster_of(MANY), DeviceStates()
    looked = 0

    def counting(function: Callable[..., Any]) -> Callable[..., Any]:
        def counted(*arguments: Any) -> Any:
            nonlocal looked
            looked += 1
            return function(*arguments)

        return counted

    monkeypatch.setattr(device_states, "_judge", counting(device_states._judge))
    monkeypatch.setattr(NodeTable, "get", counting(NodeTable.get))
    found = 0
    for differences in states.differences(cluster, AT_ONCE):
        assert looked <= AT_ONCE
        looked, found = 0, found + sum(len(pool.view.devices) for one in differences for pool in one.after)
    assert found == 2 * MANY


def test_nothing_is_looked_at_again_that_has_not_changed() -> None:
    """Who asks every few seconds would else look at each of a hundred thousand nodes and pools each time."""
    cluster, states = cluster_of(MANY), DeviceStates()
    assert sum(map(len, states.differences(cluster, AT_ONCE))) == MANY
    assert [*states.differences(cluster, AT_ONCE)] == [[]]
    cluster.set_node(node(1), None)
    cluster.track(Remove.of(published(2)))
    (differences,) = states.differences(cluster, AT_ONCE)
    assert [len(one.after) for one in differences] == [0, 1]
    assert len([*states.pools(cluster_of(3))]) == 3, "another cluster"


def test_what_somebody_stopped_before_is_for_the_next_time() -> None:
    cluster, states = cluster_of(MANY), DeviceStates()
    told = 0
    for step in range(2 * MANY // AT_ONCE + 1):
        steps = states.differences(cluster, AT_ONCE)
        told += len(next(steps))
        assert step or not told, "nodes come first"
    assert told == MANY


def test_the_cluster_may_change_between_two_steps() -> None:
    cluster, states = cluster_of(MANY), DeviceStates()
    for _ in range(2):
        for step, _ in enumerate(states.differences(cluster, AT_ONCE)):
            number = MANY - 1 - step
            cluster.set_node(node(number), None)
            cluster.track(Remove.of(published(number)))
            cluster.set_node(None, node(MANY + step))
            cluster.track(Upsert(published(MANY + step)))
        views = [pool.view for pool in states.pools(cluster)]
        assert len(views) == MANY
        assert {id(view) for view in views} == {id(one.view) for one in DeviceStates().pools(cluster)}
        cluster = cluster_of(MANY)


def test_a_node_that_has_gone_takes_its_devices_with_it() -> None:
    cluster, states = cluster_of(3), DeviceStates()
    assert sum(pool.free.bit_count() for pool in states.pools(cluster)) == 6
    cluster.set_node(node(1), None)
    assert sum(pool.free.bit_count() for pool in states.pools(cluster)) == 4
    cluster.set_node(None, node(1))
    assert sum(pool.free.bit_count() for pool in states.pools(cluster)) == 6
