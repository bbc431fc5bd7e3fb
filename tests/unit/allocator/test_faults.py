"""Pools are judged once, and again when they change; a limit spreads the work."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from dray.allocator import Allocated, Failed, Inventory, Options, allocate, find_fault
from dray.allocator import pools as judged_pools
from dray.allocator.selection import Criteria, Examined, examine
from dray.tracker import Remove, Tracker, Upsert
from scheduler_objects import DRIVER, claim, device_class, resource_slice

CLASSES = {"gpu": device_class()}
GOOD = {"name": "gpu-0", "attributes": {"fast": {"bool": True}}}
BAD = {"name": "gpu-1"}
WANTED = [claim(selectors=[{"cel": {"expression": f'device.attributes["{DRIVER}"].fast'}}])]


class Pools:
    """An inventory, and how many devices were looked at."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, **nodes: list[dict[str, Any]]) -> None:
        self.inventory = Inventory()
        self.judged = 0
        self._tracker = Tracker()
        for name, devices in nodes.items():
            self.publish(name, *devices)

        def counted(criteria: Criteria, devices: Sequence[Any], begun: Examined | None = None) -> Examined:
            self.judged += len(devices)
            return examine(criteria, devices, begun)

        monkeypatch.setattr(judged_pools, "examine", counted)

    def publish(self, node: str, *devices: dict[str, Any]) -> None:
        self.inventory.set_node(node, {})
        self._apply(Upsert(resource_slice(node, *devices)))

    def withdraw(self, node: str) -> None:
        self._apply(Remove.of(resource_slice(node)))

    def _apply(self, event: Any) -> None:
        changed = self._tracker.apply(event).pools
        self.inventory.apply_pools(self._tracker.pools.get(key, key) for key in changed)

    def fails(self, options: Options = Options()) -> bool:  # noqa: B008 - immutable
        shape = self.inventory.shape(WANTED, CLASSES)
        return find_fault(self.inventory, shape, WANTED, options) is not None

    def suspects(self) -> list[str]:
        return list(self.inventory.suspects(self.inventory.shape(WANTED, CLASSES)))


def test_a_pool_that_was_judged_for_faults_is_not_judged_again_for_its_node(monkeypatch: pytest.MonkeyPatch) -> None:
    pools = Pools(monkeypatch, a=[GOOD], b=[GOOD])
    assert not pools.fails()
    assert isinstance(allocate(pools.inventory, CLASSES, WANTED, "a"), Allocated)
    assert pools.judged == 2


def test_a_device_is_judged_once_until_its_pool_changes(monkeypatch: pytest.MonkeyPatch) -> None:
    pools = Pools(monkeypatch, a=[GOOD], b=[GOOD], c=[GOOD])
    assert not pools.fails()
    assert not pools.fails()
    assert pools.judged == 3
    pools.publish("b", BAD)
    assert pools.suspects() == ["b"]
    assert pools.fails()
    assert pools.judged == 4
    pools.publish("b", GOOD)
    assert pools.suspects() == []
    pools.publish("b", BAD)
    pools.withdraw("b")
    assert pools.suspects() == []
    assert not pools.fails()


def test_a_limit_spreads_the_work(monkeypatch: pytest.MonkeyPatch) -> None:
    pools = Pools(monkeypatch, **{f"n{number}": [GOOD, GOOD | {"name": "gpu-2"}] for number in range(9)}, z=[BAD])
    few = Options(devices_judged=4)
    found = [(pools.fails(few), pools.judged) for _ in range(7)]
    assert found == [(False, 4), (False, 8), (False, 12), (False, 16), (True, 19), (True, 19), (True, 19)]


def test_a_device_that_the_search_does_not_get_to_is_no_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    pools = Pools(monkeypatch, a=[GOOD, BAD], b=[GOOD])
    assert pools.suspects() == ["a"]
    assert not pools.fails()
    outcome = allocate(pools.inventory, CLASSES, WANTED)
    assert not isinstance(outcome, Failed)
    pools.inventory.hold("ns/other", outcome.allocations["ns/c"])  # type: ignore[union-attr]
    failed = allocate(pools.inventory, CLASSES, WANTED)
    assert isinstance(failed, Failed), "now it does, and b, where the claim fits, does not help"
    assert failed.node == "a"


def test_a_limit_for_nodes_that_are_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    pools = Pools(monkeypatch, a=[GOOD, BAD], b=[GOOD, BAD], c=[BAD])
    assert pools.fails(Options(suspects_asked=3))
    assert not pools.fails(Options(suspects_asked=2))


def test_many_changes_of_few_pools_are_not_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    pools = Pools(monkeypatch, a=[GOOD], b=[GOOD], c=[BAD])
    assert pools.fails()
    for _ in range(3000):
        pools.publish("a", GOOD)
    assert len(pools.inventory._faults._log) < 1100
    assert pools.fails()
    judged = pools.judged
    pools.publish("b", BAD)
    assert pools.suspects() == ["b", "c"]
    assert pools.judged == judged + 1
