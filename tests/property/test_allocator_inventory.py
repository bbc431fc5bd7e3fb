"""The inventory kept up to date by events against one made from scratch."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from allocation_cluster import typed
from allocation_manifests import DRIVER, cel, claim, device_class, request
from dray.allocator import Inventory, Outcome, allocate
from dray.api.resource import AllocationResult, Device, DeviceClass, ResourceClaim
from dray.api.struct import decode_value
from dray.tracker import ALL_NODES, DeviceId, EffectiveDevice, NodeAccess, PoolView

NODES = ("node-a", "node-b", "node-c", "node-d")
POOLS = ("p0", "p1", "p2")
CLASSES = {"gpu": typed(device_class(), DeviceClass)}
WANTED = [
    typed(manifest, ResourceClaim)
    for manifest in (
        claim("one", request()),
        claim("two", request(count=2)),
        claim("all", request(allocationMode="All")),
        claim("picky", request(selectors=cel(f'device.attributes["{DRIVER}"].?x.orValue(0) == 1'))),
        claim("share", request(capacity={"requests": {"m": "2"}})),
    )
]

Event = tuple[str, Any]


def device(name: str, fields: dict[str, Any]) -> Device:
    return msgspec.convert({"name": name, **fields}, Device, dec_hook=lambda kind, value: decode_value(kind, value))


DEVICE_FIELDS: tuple[dict[str, Any], ...] = (
    {},
    {"attributes": {"x": {"int": 1}}},
    {"allowMultipleAllocations": True, "capacity": {"m": {"value": "4", "requestPolicy": {"default": "1"}}}},
)


@st.composite
def events(draw: st.DrawFn) -> list[Event]:
    """Pools, nodes and holdings come, change and go."""
    found: list[Event] = []
    for _ in range(draw(st.integers(1, 14))):
        kind = draw(st.sampled_from(("pool", "pool", "gone", "node", "node", "no-node", "hold", "hold", "release")))
        if kind == "pool":
            pool = draw(st.sampled_from(POOLS))
            access = draw(st.sampled_from((*(NodeAccess(node_name=n) for n in NODES), ALL_NODES)))
            fields = draw(st.lists(st.sampled_from(DEVICE_FIELDS), max_size=3))
            devices = tuple(
                EffectiveDevice(DeviceId(DRIVER, pool, f"d{n}"), device(f"d{n}", f), (), access, "s")
                for n, f in enumerate(fields)
            )
            problem = draw(st.sampled_from((None, None, None, None, "incomplete")))
            view = PoolView(
                DRIVER, pool, 1, devices, problem=problem, incomplete=problem is not None, accesses=(access,)
            )
            found.append((kind, view))
        elif kind == "gone":
            found.append((kind, (DRIVER, draw(st.sampled_from(POOLS)))))
        elif kind in ("node", "no-node"):
            found.append((kind, draw(st.sampled_from(NODES))))
        elif kind == "hold":
            result: dict[str, Any] = {"request": "r", "driver": DRIVER, "pool": draw(st.sampled_from(POOLS))}
            result["device"] = f"d{draw(st.integers(0, 2))}"
            if draw(st.booleans()):
                result |= {"shareID": "s", "consumedCapacity": {"m": "1"}}
            allocation = msgspec.convert({"devices": {"results": [result]}}, AllocationResult, dec_hook=decode_value)
            found.append((kind, (f"ns/held-{draw(st.integers(0, 3))}", allocation)))
        else:
            found.append((kind, f"ns/held-{draw(st.integers(0, 3))}"))
    return found


class World:
    """What is there after the events, to build an inventory from scratch."""

    def __init__(self) -> None:
        self.pools: dict[tuple[str, str], PoolView] = {}
        self.nodes: set[str] = set()
        self.held: dict[str, AllocationResult] = {}

    def apply(self, inventory: Inventory, event: Event) -> None:
        kind, value = event
        if kind == "pool":
            self.pools[value.driver, value.name] = value
            inventory.apply_pools([value])
        elif kind == "gone":
            self.pools.pop(value, None)
            inventory.apply_pools([value])
        elif kind == "node":
            self.nodes.add(value)
            inventory.set_node(value, {})
        elif kind == "no-node":
            self.nodes.discard(value)
            inventory.remove_node(value)
        elif kind == "hold":
            self.held[value[0]] = value[1]
            inventory.hold(*value)
        else:
            self.held.pop(value, None)
            inventory.release(value)

    def rebuild(self) -> Inventory:
        inventory = Inventory()
        for name, allocation in self.held.items():
            inventory.hold(name, allocation)
        for name in self.nodes:
            inventory.set_node(name, {})
        inventory.apply_pools(self.pools.values())
        return inventory


def answers(inventory: Inventory) -> list[Outcome]:
    """Outcomes on every node and anywhere."""
    found = []
    for wanted in WANTED:
        found.append(_without_steps(allocate(inventory, CLASSES, [wanted])))
        found += [_without_steps(allocate(inventory, CLASSES, [wanted], node)) for node in NODES]
    return found


def _without_steps(outcome: Outcome) -> Outcome:
    return msgspec.structs.replace(outcome, steps=0) if hasattr(outcome, "steps") else outcome


@pytest.mark.req("4381-62", "4381-101", "4381-102")
@settings(max_examples=120, suppress_health_check=list(HealthCheck))
@given(events())
def test_events_and_rebuilding_give_the_same_answers(sequence: list[Event]) -> None:
    inventory = Inventory()
    world = World()
    for event in sequence:
        world.apply(inventory, event)
        assert answers(inventory) == answers(world.rebuild())
