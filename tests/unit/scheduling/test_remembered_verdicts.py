"""What is remembered of pods is bounded in bytes, however many sorts of pods strangers make (issue 14)."""

from __future__ import annotations

from typing import Any

import pytest

import builders
from dray.allocator import inventory
from dray.allocator.inventory import Inventory
from dray.api import node_match
from dray.api.resource import DeviceClass
from dray.scheduling.node_table import NodeTable
from dray.scheduling.pod_info import PodInfo, read_pod
from local_server import typed


def wanting(label: str) -> PodInfo:
    pod: Any = builders.pod("p")
    pod["spec"]["nodeSelector"] = {"sort": label}
    made: Any = typed(pod)
    return read_pod(made)


def table_of(nodes: int) -> NodeTable:
    table = NodeTable()
    for number in range(nodes):
        made: Any = typed(builders.node(f"n{number}"))
        table.set(made)
    return table


def known(table: NodeTable) -> int:
    return sum(len(verdicts.by_node) for verdicts in table._verdicts.values())


def judge(table: NodeTable, pod: PodInfo) -> None:
    asked = table.filter(pod)
    for node in table:
        asked.refuses(node)


def test_verdicts_on_all_nodes_together_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(NodeTable, "MAX_VERDICTS", 100)
    table = table_of(30)
    for number in range(50):
        judge(table, wanting(f"v{number}"))
        assert known(table) <= 100
    assert known(table) == 90
    assert wanting("v49").placement_key in table._verdicts


def test_what_pods_say_is_bounded_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(NodeTable, "MAX_KEY_BYTES", 10_000)
    table = table_of(1)
    for number in range(50):
        judge(table, wanting(f"{number}" * 1000))
        assert sum(map(len, table._verdicts)) <= 10_000


def test_problems_that_claims_pose_are_bounded_by_what_they_say(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(inventory, "_CACHED_SHAPE_BYTES", 20_000)
    devices: Any = typed(builders.device_class("gpu"))
    assert isinstance(devices, DeviceClass)
    found = Inventory()
    for number in range(20):
        expression = f"device.driver == '{number}{'x' * 5000}'"
        claim: Any = typed(
            builders.claim(f"c{number}", builders.request(deviceClassName="gpu", selectors=builders.cel(expression)))
        )
        found.shape([claim], {"gpu": devices})
    assert 0 < found._shapes.size <= 20_000


def test_long_selectors_of_nodes_are_not_remembered() -> None:
    node_match._matcher_of.cache_clear()
    for values in (["a"], ["x" * 100_000]):
        term = {"matchExpressions": [{"key": "k", "operator": "In", "values": values}]}
        pod: Any = builders.pod("p")
        required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}}
        pod["spec"]["affinity"] = {"nodeAffinity": required}
        made: Any = typed(pod)
        selector = made.spec.affinity.node_affinity.required_during_scheduling_ignored_during_execution
        assert not node_match.matches_usable(selector, "n", {})
    assert node_match._matcher_of.cache_info().currsize == 1
