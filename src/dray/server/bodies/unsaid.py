"""What a body in protobuf has no words for: dray's additions to kinds of Kubernetes, which have no field numbers there.

A client that reads an object in protobuf and writes it back does not know that they are there. They stay as they are
stored: a rule without its selectors would taint every device of its driver.
"""

from __future__ import annotations

from msgspec.structs import replace

from dray.api.meta import Object
from dray.api.resource import Device, DeviceTaint, DeviceTaintRule, DeviceTaintSelector, ResourceSlice

TAINT_FIELDS = ("data", "description", "evictions_per_second")
SELECTOR_FIELDS = ("device_class_name", "selectors")


def with_unsaid(old: Object, new: Object) -> Object:
    """The new object, which came in protobuf, with what only the old one can have."""
    if isinstance(old, DeviceTaintRule) and isinstance(new, DeviceTaintRule):
        selector = _selector(old.spec.device_selector, new.spec.device_selector)
        return replace(
            new, spec=replace(new.spec, device_selector=selector, taint=_taint(old.spec.taint, new.spec.taint))
        )
    if isinstance(old, ResourceSlice) and isinstance(new, ResourceSlice):
        before = {device.name: device for device in old.spec.devices}
        devices = tuple(_device(before.get(device.name), device) for device in new.spec.devices)
        has_others = bool(devices or new.spec.shared_counters)
        return replace(new, spec=replace(new.spec, devices=devices, taints=() if has_others else old.spec.taints))
    return new


def _selector(old: DeviceTaintSelector | None, new: DeviceTaintSelector | None) -> DeviceTaintSelector | None:
    if old is None or new is None:
        return new
    return replace(new, **{name: getattr(old, name) for name in SELECTOR_FIELDS})


def _taint(old: DeviceTaint, new: DeviceTaint) -> DeviceTaint:
    return replace(new, **{name: getattr(old, name) for name in TAINT_FIELDS})


def _device(old: Device | None, new: Device) -> Device:
    if old is None or not old.taints or not new.taints:
        return new
    before = {(taint.key, taint.value, taint.effect): taint for taint in old.taints}
    taints = tuple(_taint(before.get((one.key, one.value, one.effect), one), one) for one in new.taints)
    return replace(new, taints=taints)
