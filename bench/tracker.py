"""The tracker over a large cluster: from scratch, one change, and memory. `python -m bench.tracker` prints.

100,000 devices (12,500 nodes with one slice of 8) and 100 rules, half of them with CEL; single patches on top.
"""

from __future__ import annotations

import gc
import statistics
import time
import tracemalloc
from collections.abc import Callable, Sequence

from dray.api.meta import ObjectMeta
from dray.api.quantity import Quantity
from dray.api.resource import (
    CELDeviceSelector,
    Device,
    DeviceAttribute,
    DeviceCapacity,
    DevicePatch,
    DevicePatchFilter,
    DeviceSelector,
    DeviceTaint,
    DeviceTaintRule,
    DeviceTaintRuleSpec,
    DeviceTaintSelector,
    NullableDeviceAttribute,
    ResourcePool,
    ResourceSlice,
    ResourceSlicePatch,
    ResourceSlicePatchSpec,
    ResourceSliceSpec,
)
from dray.tracker import Event, Tracker, Upsert

NODES = 12_500
DEVICES_PER_NODE = 8
DRIVER = "gpu.example.com"
MODELS = ("H100", "A100", "L40S", "T4")


def run() -> dict[str, float]:
    """Measure; the names carry the units. The targets: 3 s from scratch, 5 ms for one change, 1.2 KiB per device."""
    events = [*map(Upsert, slices()), *map(Upsert, rules())]
    gc.collect()
    tracker = Tracker()
    start = time.perf_counter()
    tracker.apply_all(events)
    results = {"from_scratch_s": time.perf_counter() - start}
    gc.collect()
    gc.freeze()  # as a server does once it has loaded
    for name, changes in _changes().items():
        results[f"{name}_ms"] = _median(tracker, changes) * 1000
    gc.unfreeze()
    results["bytes_per_device"] = _memory(events) / (NODES * DEVICES_PER_NODE)
    return results


def _changes() -> dict[str, list[Event]]:
    """Single events, several of each kind; each really changes something."""
    models = [_model_is(f"{MODELS[0]}-{step}") for step in range(9)]
    devices = [f'{_ATTRIBUTES}.uuid == "{_uuid(step, 3)}"' for step in range(9)]
    unread = [f'{_ATTRIBUTES}.slot{step} == "x"' for step in range(9)]
    pools = [DeviceTaintSelector(driver=DRIVER, pool=f"node-{step}") for step in range(9)]
    return {
        "rule_on_pool": [Upsert(_rule("plain-0", selector)) for selector in pools],
        "rule_with_cel": [Upsert(_rule("cel-0", _cel_selector(expression))) for expression in models],
        "rule_on_unique_value": [Upsert(_rule("cel-1", _cel_selector(expression))) for expression in devices],
        "rule_that_reads_what_no_other_does": [Upsert(_rule("cel-2", _cel_selector(text))) for text in unread],
        "patch_of_pool": [Upsert(_patch(DevicePatchFilter(pool=f"node-{node}"), step=node)) for node in range(9)],
        "patch_with_cel": [
            Upsert(_patch(DevicePatchFilter(selectors=_selectors(expression)), step=step))
            for step, expression in enumerate(devices)
        ],
        "slice_generation": [Upsert(_slice(node, generation=2)) for node in range(50, 60)],
        "slice_with_other_devices": [Upsert(_slice(node, model=f"B{node}")) for node in range(60, 70)],
    }


def slices() -> list[ResourceSlice]:
    """12,500 nodes with one slice of 8 devices each."""
    return [_slice(node) for node in range(NODES)]


def rules() -> list[DeviceTaintRule]:
    """A hundred rules, half of them with CEL, that select few devices or none."""
    plain = [_rule(f"plain-{number}", _plain_selector(number)) for number in range(50)]
    return plain + [_rule(f"cel-{number}", _cel_selector(text)) for number, text in enumerate(_expressions())]


_ATTRIBUTES = f'device.attributes["{DRIVER}"]'


def _expressions() -> list[str]:
    """Fifty expressions over ten different sets of values."""
    memory = f'device.capacity["{DRIVER}"].memory.compareTo(quantity("%dGi"))'
    patterns: tuple[Callable[[int], str], ...] = (
        lambda step: _model_is(f"X{step}"),
        lambda step: f'{_ATTRIBUTES}.numaNode == {step} && device.driver == "{DRIVER}"',
        lambda step: f'{_ATTRIBUTES}.driverVersion.isLessThan(semver("{step}.0.0"))',
        lambda step: f"{memory % (step * 10)} < 0",
        lambda step: f'{_ATTRIBUTES}.model == "{MODELS[step % 4]}" && {memory % (40 + step)} == 0',
        lambda step: f"{_ATTRIBUTES}.index == {step + 8}",
        lambda step: f'has({_ATTRIBUTES}.rack) && {_ATTRIBUTES}.rack == "rack-{step}"',
        lambda step: f'{_ATTRIBUTES}.brand == "none-{step}"',
        lambda step: f'{_ATTRIBUTES}.architecture == "Hopper" && {_ATTRIBUTES}.index == {step}',
        lambda step: f'device.driver == "other-{step}.example.com"',
    )
    return [pattern(step) for step in range(5) for pattern in patterns]


def _model_is(model: str) -> str:
    return f'{_ATTRIBUTES}.model == "{model}"'


def _plain_selector(number: int) -> DeviceTaintSelector:
    kinds = (
        DeviceTaintSelector(driver=DRIVER, pool=f"node-{number}", device="gpu-0"),
        DeviceTaintSelector(pool=f"node-{number}"),
        DeviceTaintSelector(driver=f"driver-{number}.example.com"),
        DeviceTaintSelector(device=f"gpu-{number}"),
        DeviceTaintSelector(driver=DRIVER, device=f"nic-{number}"),
    )
    return kinds[number % len(kinds)]


def _selectors(expression: str) -> tuple[DeviceSelector, ...]:
    return (DeviceSelector(cel=CELDeviceSelector(expression=expression)),)


def _cel_selector(expression: str) -> DeviceTaintSelector:
    return DeviceTaintSelector(selectors=_selectors(expression))


def _patch(wanted: DevicePatchFilter, *, step: int) -> ResourceSlicePatch:
    rack = NullableDeviceAttribute(int_value=step)
    devices = DevicePatch(filter=wanted, attributes={f"{DRIVER}/rack": rack})
    return ResourceSlicePatch(metadata=ObjectMeta(name="patch"), spec=ResourceSlicePatchSpec(devices=devices))


def _rule(name: str, selector: DeviceTaintSelector) -> DeviceTaintRule:
    taint = DeviceTaint(key="example.com/maintenance", effect="NoSchedule")
    spec = DeviceTaintRuleSpec(device_selector=selector, taint=taint)
    return DeviceTaintRule(metadata=ObjectMeta(name=name), spec=spec)


def _slice(node: int, *, generation: int = 1, model: str | None = None) -> ResourceSlice:
    pool = ResourcePool(name=f"node-{node}", generation=generation, resource_slice_count=1)
    devices = tuple([_device(node, index, model) for index in range(DEVICES_PER_NODE)])
    spec = ResourceSliceSpec(driver=DRIVER, pool=pool, node_name=f"node-{node}", devices=devices)
    return ResourceSlice(metadata=ObjectMeta(name=f"slice-{node}"), spec=spec)


def _device(node: int, index: int, model: str | None) -> Device:
    return Device(
        name=f"gpu-{index}",
        attributes={
            "model": DeviceAttribute(string=model or MODELS[node % 4]),
            "brand": DeviceAttribute(string="Example"),
            "architecture": DeviceAttribute(string="Hopper" if node % 2 else "Ampere"),
            "driverVersion": DeviceAttribute(version=f"{530 + node % 5}.0.1"),
            "index": DeviceAttribute(int_value=index),
            "numaNode": DeviceAttribute(int_value=index // 4),
            "uuid": DeviceAttribute(string=_uuid(node, index)),
            "resource.kubernetes.io/pcieRoot": DeviceAttribute(string=f"pci{node % 7:04d}:{index // 2:02d}"),
        },
        capacity={"memory": DeviceCapacity(value=Quantity.parse(f"{40 + node % 3 * 20}Gi"))},
    )


def _uuid(node: int, index: int) -> str:
    return f"GPU-{node:08d}-{index}"


def _median(tracker: Tracker, events: list[Event]) -> float:
    times: list[float] = []
    for event in events:
        start = time.perf_counter()
        tracker.apply(event)
        times.append(time.perf_counter() - start)
    return statistics.median(times)


def _memory(events: Sequence[Event]) -> float:
    """What a tracker holds on top of the objects that it was given."""
    gc.collect()
    tracemalloc.start()
    tracker = Tracker()
    tracker.apply_all(events)
    gc.collect()
    held, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert len(tracker.pools) == NODES
    return held


if __name__ == "__main__":
    for name, value in run().items():
        print(f"{name:40} {value:12.3f}")
