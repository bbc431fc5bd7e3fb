"""Allocation: one decision over whole clusters of growing size, filling a cluster, and searches that are hard.

Go's figures for the same work (Kubernetes' allocator, one thread, p50): one decision over 500 nodes costs 7 to 15 ms,
over 5,000 nodes 75 to 125 ms; the hard searches 4.4 ms and more, or exponential time.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Iterator, Sequence
from statistics import median
from typing import Any

from dray.allocator import Allocated, Inventory, Outcome, allocate
from dray.api.meta import ObjectMeta
from dray.api.quantity import Quantity
from dray.api.references import full_name
from dray.api.resource import (
    CELDeviceSelector,
    Counter,
    CounterSet,
    Device,
    DeviceAttribute,
    DeviceCapacity,
    DeviceClaim,
    DeviceClass,
    DeviceClassSpec,
    DeviceConstraint,
    DeviceCounterConsumption,
    DeviceRequest,
    DeviceSelector,
    ExactDeviceRequest,
    ResourceClaim,
    ResourceClaimSpec,
)
from dray.tracker.view import DeviceId, EffectiveDevice, NodeAccess, PoolView

DRIVER = "gpu.example.com"
GO_DECISION_SECONDS = 0.007
"""The lower end, for 500 nodes × 10 devices."""
PLAIN_LIMIT = 300_000


def run() -> dict[str, Any]:
    """All measurements, with the ratios that must be reached."""
    sizes = {500: 10, 5_000: 8, 50_000: 8}
    decisions = {nodes: measure_decision(nodes, devices) for nodes, devices in sizes.items()}
    return {
        "decision_us": {nodes: round(seconds * 1e6, 1) for nodes, seconds in decisions.items()},
        "decision_times_faster_than_go": round(GO_DECISION_SECONDS / decisions[500], 1),
        "growth_to_5000_nodes": round(decisions[5_000] / decisions[500], 2),
        "growth_to_50000_nodes": round(decisions[50_000] / decisions[500], 2),
        "fill_claims_per_second": round(measure_fill()),
        "hard": {name: measure_hard(*case) for name, case in hard_cases().items()},
    }


# Whole clusters


def measure_decision(nodes: int, devices: int) -> float:
    """Seconds for one claim for one device anywhere, prepared state, median."""
    inventory = make_cluster(nodes, devices)
    classes = {"gpu": gpu_class()}
    claims = [one_gpu(number) for number in range(400)]
    allocate(inventory, classes, claims[:1])
    gc.collect()
    times = []
    for claim in claims:
        start = time.perf_counter()
        outcome = allocate(inventory, classes, [claim])
        times.append(time.perf_counter() - start)
        assert isinstance(outcome, Allocated)
    return median(times)


def measure_fill() -> float:
    """Claims per second when 5,000 devices are given to 5,000 claims one by one."""
    inventory = make_cluster(500, 10)
    classes = {"gpu": gpu_class()}
    claims = [one_gpu(number) for number in range(5_000)]
    gc.collect()
    start = time.perf_counter()
    for claim in claims:
        outcome = allocate(inventory, classes, [claim])
        assert isinstance(outcome, Allocated)
        name = full_name(claim)
        inventory.hold(name, outcome.allocations[name])
    return len(claims) / (time.perf_counter() - start)


def make_cluster(nodes: int, devices: int) -> Inventory:
    """Nodes with a pool of equal devices each."""
    inventory = Inventory()
    memory = {"memory": DeviceCapacity(value=Quantity.parse("80Gi"))}
    for number in range(nodes):
        name = f"node-{number:05}"
        inventory.set_node(name, {})
        found = [
            Device(
                name=f"gpu-{n}",
                attributes={"model": DeviceAttribute(string="H100"), "numa": DeviceAttribute(int_value=n // 4)},
                capacity=memory,
            )
            for n in range(devices)
        ]
        inventory.apply_pools([make_pool(name, name, found)])
    return inventory


def make_pool(node: str, name: str, devices: Sequence[Device], counters: tuple[CounterSet, ...] = ()) -> PoolView:
    access = NodeAccess(node_name=node)
    effective = tuple(EffectiveDevice(DeviceId(DRIVER, name, d.name), d, (), access, "slice") for d in devices)
    return PoolView(DRIVER, name, 1, effective, counters, accesses=(access,))


def selector(expression: str) -> DeviceSelector:
    return DeviceSelector(cel=CELDeviceSelector(expression=expression))


def gpu_class() -> DeviceClass:
    spec = DeviceClassSpec(selectors=(selector(f'device.driver == "{DRIVER}"'),))
    return DeviceClass(metadata=ObjectMeta(name="gpu"), spec=spec)


def request(name: str, count: int, *expressions: str) -> DeviceRequest:
    selectors = tuple(selector(expression) for expression in expressions)
    exactly = ExactDeviceRequest(
        device_class_name="gpu", allocation_mode="ExactCount", count=count, selectors=selectors
    )
    return DeviceRequest(name=name, exactly=exactly)


def make_claim(name: str, *requests: DeviceRequest, match: str | None = None) -> ResourceClaim:
    constraints = (DeviceConstraint(match_attribute=match),) if match else ()
    devices = DeviceClaim(requests=requests, constraints=constraints)
    return ResourceClaim(metadata=ObjectMeta(name=name, namespace="bench"), spec=ResourceClaimSpec(devices=devices))


def one_gpu(number: int) -> ResourceClaim:
    return make_claim(f"claim-{number}", request("gpu", 1, f'device.attributes["{DRIVER}"].model == "H100"'))


# Hard searches


def hard_cases() -> dict[str, tuple[list[Device], tuple[CounterSet, ...], list[ResourceClaim], bool]]:
    """Devices, counters, claims and whether they fit."""
    last = [value_device(n, min(n // 3, 15)) for n in range(48)] + [value_device(n, 15) for n in range(48, 64)]
    none = [value_device(n, n // 3) for n in range(64)]
    match = f"{DRIVER}/value"
    four = [request(f"r{n}", 1) for n in range(4)]
    counters, slices = partitions()
    return {
        "match_last_count_4": (last, (), [make_claim("a", request("r", 4), match=match)], True),
        "match_last_4_requests": (last, (), [make_claim("a", *four, match=match)], True),
        "match_none_count_4": (none, (), [make_claim("a", request("r", 4), match=match)], False),
        "match_none_4_requests": (none, (), [make_claim("a", *four, match=match)], False),
        "two_requests_13_of_25": (
            [value_device(n, 0) for n in range(25)],
            (),
            [make_claim("a", request("r0", 13), request("r1", 13))],
            False,
        ),
        "two_claims_32_of_63": (
            [value_device(n, 0) for n in range(63)],
            (),
            [make_claim("a", request("r", 32)), make_claim("b", request("r", 32))],
            False,
        ),
        "nested_counters": (slices, counters, [make_claim("a", request("r", 13))], False),
        "nested_counters_compete": (
            slices,
            counters,
            [
                make_claim("a", request("r", 10)),
                make_claim("b", request("big", 1, f'device.attributes["{DRIVER}"].value == 4')),
            ],
            False,
        ),
    }


def value_device(number: int, value: int, *draws: DeviceCounterConsumption) -> Device:
    attributes = {"value": DeviceAttribute(int_value=value)}
    return Device(name=f"d{number:03}", attributes=attributes, consumes_counters=draws)


def partitions() -> tuple[tuple[CounterSet, ...], list[Device]]:
    """Three cards of seven slices, each cut into partitions of 4, 2 and 1 slices: twelve at most."""
    counters = tuple(
        CounterSet(name=f"card{n}", counters={"slices": Counter(value=Quantity.parse("4"))}) for n in range(3)
    )
    devices: list[Device] = []
    for card in range(3):
        for size, count in ((4, 1), (2, 2), (1, 4)):
            for _ in range(count):
                draw = DeviceCounterConsumption(
                    counter_set=f"card{card}", counters={"slices": Counter(value=Quantity.parse(size))}
                )
                devices.append(value_device(len(devices), size, draw))
    return counters, devices


def measure_hard(
    devices: list[Device], counters: tuple[CounterSet, ...], claims: list[ResourceClaim], fits: bool
) -> dict[str, Any]:
    inventory = Inventory()
    inventory.set_node("node", {})
    inventory.apply_pools([make_pool("node", "pool", devices, counters)])
    classes = {"gpu": gpu_class()}
    allocate(inventory, classes, claims, "node")
    seconds, outcome = _timed(lambda: allocate(inventory, classes, claims, "node"))
    assert isinstance(outcome, Allocated) == fits, outcome
    steps = getattr(outcome, "steps", 0)
    plain = PlainSearch(devices, counters, claims).count()
    return {
        "ms": round(seconds * 1e3, 3),
        "steps": steps,
        "plain_steps": f">{PLAIN_LIMIT}" if plain > PLAIN_LIMIT else plain,
        "times_fewer_steps": round(plain / max(steps, 1), 1),
    }


def _timed(work: Callable[[], Outcome]) -> tuple[float, Outcome]:
    start = time.perf_counter()
    outcome = work()
    return time.perf_counter() - start, outcome


class PlainSearch:
    """Counts the steps of plain backtracking: devices in order, constraints and counters checked as it goes."""

    def __init__(self, devices: list[Device], counters: tuple[CounterSet, ...], claims: list[ResourceClaim]) -> None:
        self.devices = devices
        self.left = {s.name: s.counters["slices"].value.nanos for s in counters}
        self.slots = list(_slots(claims))
        self.used: set[int] = set()
        self.values: list[int] = []
        self.steps = 0

    def count(self) -> int:
        try:
            self._search(0, 0)
        except RecursionError:
            return PLAIN_LIMIT + 1
        return self.steps

    def _search(self, slot: int, start: int) -> bool:
        self.steps += 1
        if slot == len(self.slots) or self.steps > PLAIN_LIMIT:
            return True
        name, value, match = self.slots[slot]
        for position in range(start, len(self.devices)):
            device = self.devices[position]
            own = device.attributes["value"].int_value
            if position in self.used or value not in (None, own) or (match and self.values and own != self.values[-1]):
                continue
            if not self._draw(device, 1):
                continue
            self.used.add(position)
            self.values.append(own or 0)
            is_same = slot + 1 < len(self.slots) and self.slots[slot + 1][0] == name
            if self._search(slot + 1, position + 1 if is_same else 0):
                return True
            self.values.pop()
            self.used.discard(position)
            self._draw(device, -1)
        return False

    def _draw(self, device: Device, sign: int) -> bool:
        for draw in device.consumes_counters:
            self.left[draw.counter_set] -= sign * draw.counters["slices"].value.nanos
            if self.left[draw.counter_set] < 0:
                self.left[draw.counter_set] += sign * draw.counters["slices"].value.nanos
                return False
        return True


def _slots(claims: list[ResourceClaim]) -> Iterator[tuple[str, int | None, bool]]:
    for claim in claims:
        for wanted in claim.spec.devices.requests:
            exactly = wanted.exactly
            assert exactly is not None
            value = 4 if wanted.name == "big" else None
            for _ in range(exactly.count):
                yield f"{claim.metadata.name}/{wanted.name}", value, bool(claim.spec.devices.constraints)


if __name__ == "__main__":
    import json

    print(json.dumps(run(), indent=2))
