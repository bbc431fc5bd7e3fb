"""Objects for tests of the tracker, in short forms, and what a tracker made of them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, TypeAlias

from dray.api.meta import ObjectMeta
from dray.api.quantity import Quantity
from dray.api.resource import (
    CELDeviceSelector,
    Device,
    DeviceAttribute,
    DeviceCapacity,
    DeviceClass,
    DeviceClassSpec,
    DevicePatch,
    DevicePatchFilter,
    DeviceSelector,
    DeviceTaint,
    DeviceTaintRule,
    DeviceTaintRuleSpec,
    DeviceTaintSelector,
    NullableDeviceAttribute,
    NullValue,
    ResourcePool,
    ResourceSlice,
    ResourceSlicePatch,
    ResourceSlicePatchSpec,
    ResourceSliceSpec,
    SliceDeviceTaint,
)
from dray.api.times import Time
from dray.tracker import EffectiveDevice, TrackedObject, Tracker, Upsert

DRIVER = "gpu.example.com"
POOL = "node-1"

Value: TypeAlias = bool | int | str | None
"""Of an attribute; a text that starts with `v` and a digit is a version, None removes."""


def attribute(value: bool | int | str) -> DeviceAttribute:
    """An attribute of the type of the value."""
    if isinstance(value, bool):
        return DeviceAttribute(bool_value=value)
    if isinstance(value, int):
        return DeviceAttribute(int_value=value)
    if value[:1] == "v" and value[1:2].isdigit():
        return DeviceAttribute(version=value[1:])
    return DeviceAttribute(string=value)


def capacities(amounts: Mapping[str, str]) -> dict[str, DeviceCapacity]:
    """Capacities from quantities."""
    return {name: DeviceCapacity(value=Quantity.parse(amount)) for name, amount in amounts.items()}


def device(name: str, attributes: Mapping[str, Any] | None = None, *, memory: str = "", **more: Any) -> Device:
    """A device; `more` are fields of Device."""
    return Device(
        name=name,
        attributes={key: attribute(value) for key, value in (attributes or {}).items()},
        capacity=capacities({"memory": memory} if memory else {}),
        **more,
    )


def slice_(
    name: str,
    *devices: Device | str,
    pool: str = POOL,
    driver: str = DRIVER,
    generation: int = 1,
    count: int = 1,
    **more: Any,
) -> ResourceSlice:
    """A slice for `node-1`, unless `more`, which are fields of its spec, say something else."""
    if not more.keys() & {"node_name", "node_selector", "all_nodes", "per_device_node_selection"}:
        more["node_name"] = "node-1"
    spec = ResourceSliceSpec(
        driver=driver,
        pool=ResourcePool(name=pool, generation=generation, resource_slice_count=count),
        devices=tuple([device(entry) if isinstance(entry, str) else entry for entry in devices]),
        **more,
    )
    return ResourceSlice(metadata=ObjectMeta(name=name), spec=spec)


def taint(key: str = "example.com/broken", effect: str = "NoSchedule", **more: Any) -> DeviceTaint:
    """A taint."""
    return DeviceTaint(key=key, effect=effect, **more)


def on(device_name: str, on_it: DeviceTaint) -> SliceDeviceTaint:
    """A taint published apart from its device."""
    return SliceDeviceTaint(device=device_name, taint=on_it)


def cel(*expressions: str) -> tuple[DeviceSelector, ...]:
    """Selectors."""
    return tuple([DeviceSelector(cel=CELDeviceSelector(expression=expression)) for expression in expressions])


def model_is(model: str, driver: str = DRIVER) -> str:
    """An expression that fails for devices without a model."""
    return f'device.attributes["{driver}"].model == "{model}"'


def rule(
    name: str,
    *expressions: str,
    everything: bool = False,
    taint: DeviceTaint | None = None,
    uid: str = "",
    **criteria: Any,
) -> DeviceTaintRule:
    """A rule with the given criteria; with none, it has no selector, or an empty one for `everything`."""
    selector = DeviceTaintSelector(**{"selectors": cel(*expressions), **criteria})
    has_selector = everything or selector != DeviceTaintSelector()
    spec = DeviceTaintRuleSpec(
        device_selector=selector if has_selector else None,
        taint=taint or DeviceTaint(key=f"example.com/{name}", effect="NoSchedule"),
    )
    return DeviceTaintRule(metadata=ObjectMeta(name=name, uid=uid), spec=spec)


def patch(
    name: str,
    attributes: Mapping[str, Value] | None = None,
    *expressions: str,
    capacity: Mapping[str, str] | None = None,
    priority: int | None = None,
    created: str | None = None,
    **criteria: Any,
) -> ResourceSlicePatch:
    """A patch; with no criteria it has no filter. Names without a domain are the driver's."""
    wanted = DevicePatchFilter(selectors=cel(*expressions), **criteria)
    devices = DevicePatch(
        filter=wanted if wanted != DevicePatchFilter() else None,
        priority=priority,
        attributes={_qualified(key): _nullable(value) for key, value in (attributes or {}).items()},
        capacity={_qualified(key): value for key, value in capacities(capacity or {}).items()},
    )
    meta = ObjectMeta(name=name, creation_timestamp=None if created is None else Time.parse(created))
    return ResourceSlicePatch(metadata=meta, spec=ResourceSlicePatchSpec(devices=devices))


def _qualified(name: str) -> str:
    return name if "/" in name else f"{DRIVER}/{name}"


def _nullable(value: Value) -> NullableDeviceAttribute:
    if value is None:
        return NullableDeviceAttribute(null=NullValue())
    plain = attribute(value)
    return NullableDeviceAttribute(
        int_value=plain.int_value, bool_value=plain.bool_value, string=plain.string, version=plain.version
    )


def device_class(name: str, *expressions: str) -> DeviceClass:
    """A class."""
    return DeviceClass(metadata=ObjectMeta(name=name), spec=DeviceClassSpec(selectors=cel(*expressions)))


def tracking(*objects: TrackedObject, **switches: bool) -> Tracker:
    """A tracker that was given these objects one by one."""
    tracker = Tracker(**switches)  # type: ignore[arg-type]  # mypy takes `backlog` for a switch
    for obj in objects:
        tracker.apply(Upsert(obj))
    return tracker


def find(tracker: Tracker, name: str, pool: str = POOL, driver: str = DRIVER) -> EffectiveDevice:
    """The one device of that name in the pool."""
    view = tracker.pool(driver, pool)
    assert view is not None
    (found,) = [found for found in view.devices if found.id.device == name]
    return found


def taint_keys(found: EffectiveDevice) -> list[str]:
    """What the device is tainted with, without the domain."""
    return [tracked.taint.key.partition("/")[2] for tracked in found.taints]


def tainted(tracker: Tracker) -> list[str]:
    """All devices with a taint, as pool/device."""
    return [f"{found.id.pool}/{found.id.device}" for found in tracker.devices() if found.taints]


def values(found: EffectiveDevice) -> dict[str, Any]:
    """The attributes and capacities of a device as plain values."""
    shown: dict[str, Any] = {}
    for name, value in found.device.attributes.items():
        scalars = (value.int_value, value.bool_value, value.string, value.version)
        shown[name] = next(scalar for scalar in scalars if scalar is not None)
    return shown | {name: str(amount.value) for name, amount in found.device.capacity.items()}


def names(found: Iterable[EffectiveDevice]) -> list[str]:
    """The names of devices."""
    return [one.id.device for one in found]
