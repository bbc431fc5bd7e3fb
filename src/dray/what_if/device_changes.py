"""What is different about the devices of two snapshots, and why some cannot be used any more, or again."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import NamedTuple, TypeAlias

from dray import cel
from dray.allocator.reasons import Report
from dray.api import codec
from dray.api.names import qualified
from dray.api.resource import DeviceAttribute, DeviceClass
from dray.api.taints import taint_text
from dray.scheduling.device_state_text import tell_block, tell_used_up
from dray.snapshot.snapshot import Snapshot
from dray.tracker import DeviceId, EffectiveDevice, TrackedTaint

ADDED, REMOVED, UNUSABLE, USABLE, CHANGED = "added", "removed", "unusable", "usable", "changed"

Place: TypeAlias = tuple[DeviceId, str | None]
"""A device and the node that it is local to: a pool may publish one name on several nodes."""


class ValueChange(Report, frozen=True, kw_only=True):
    """An attribute or capacity before and after; absent where there was or is none."""

    before: str | None = None
    after: str | None = None


class DeviceChange(Report, frozen=True, kw_only=True):
    """One device that is different. `change` is added, removed, unusable, usable or changed."""

    driver: str
    pool: str
    device: str
    node: str | None = None
    change: str
    reasons: tuple[str, ...] = ()
    """Why: what stands in the way now; for a device that is usable again, what no longer does."""
    is_tolerable: bool = False
    """Whether nothing but taints stands in the way now: claims that tolerate them can have it."""
    values: dict[str, ValueChange] = {}
    """Attributes and capacities that patches or drivers changed."""
    patches: tuple[str, ...] = ()
    classes_lost: tuple[str, ...] = ()
    classes_gained: tuple[str, ...] = ()


class JudgedDevice(NamedTuple):
    """A device of a snapshot, and what is wrong with its pool or its node, or used up by others."""

    device: EffectiveDevice
    problem: str | None
    node_problem: str = ""
    used_up: str = ""


class Inspection(NamedTuple):
    """All that the comparison needs to know of one snapshot, so that it is asked once."""

    devices: dict[Place, JudgedDevice]
    classes: dict[str, DeviceClass]


def inspect(snapshot: Snapshot) -> Inspection:
    """Devices by place, and classes."""
    blocks = {
        (state.device.id, state.device.access.node_name): (
            tell_block(state.node_block) if state.node_block is not None else "",
            tell_used_up(state.block) if state.block is not None else "",
        )
        for state in snapshot.device_states()
        if state.node_block is not None or state.block is not None
    }
    devices = {
        (device.id, device.access.node_name): JudgedDevice(
            device, pool.problem, *blocks.get((device.id, device.access.node_name), ("", ""))
        )
        for pool in snapshot.pools()
        for device in pool.devices
    }
    return Inspection(devices, snapshot.classes())


def compare_devices(before: Inspection, after: Inspection) -> list[DeviceChange]:
    """The devices that are different, by name."""
    names = {*before.classes, *after.classes}
    changed_classes = {name for name in names if before.classes.get(name) != after.classes.get(name)}
    changes: list[DeviceChange] = []
    for place, new in after.devices.items():
        old = before.devices.get(place)
        if old is None:
            changes.append(_describe(new, ADDED, reasons=tuple(_obstacles(new))))
        elif old.device is not new.device or old[1:] != new[1:] or changed_classes:
            change = _compare(old, new, before.classes, after.classes, changed_classes)
            changes += [change] if change is not None else []
    gone = [old for place, old in before.devices.items() if place not in after.devices]
    changes += [_describe(old, REMOVED, reasons=("no longer published",)) for old in gone]
    return sorted(changes, key=lambda change: (change.driver, change.pool, change.device, change.node or ""))


def new_taints(old: EffectiveDevice | None, new: EffectiveDevice) -> list[TrackedTaint]:
    """Taints that a device did not have before."""
    known = {_taint_key(taint) for taint in old.taints} if old is not None else set()
    return [taint for taint in new.taints if _taint_key(taint) not in known]


def tell_taint(taint: TrackedTaint) -> str:
    """`tainted key=value:NoExecute by rule x`."""
    source = f"rule {taint.rule}" if taint.rule else "the driver"
    return f"tainted {taint_text(taint.taint)} by {source}"


def values_of(device: EffectiveDevice) -> dict[str, str]:
    """Attributes and capacities as text, by qualified name."""
    driver = device.id.driver
    found = {qualified(name, driver): attribute_text(value) for name, value in device.device.attributes.items()}
    amounts = {qualified(name, driver): str(entry.value) for name, entry in device.device.capacity.items()}
    return {**found, **amounts}


def attribute_text(attribute: DeviceAttribute) -> str:
    """The value of an attribute, whatever its type."""
    plain = next(iter(codec.to_builtins(attribute).values()), "")
    if isinstance(plain, list):
        return f"[{', '.join(map(_scalar_text, plain))}]"
    return _scalar_text(plain)


def _scalar_text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _taint_key(taint: TrackedTaint) -> tuple[str | None, str, str, str]:
    return (taint.rule, taint.taint.key, taint.taint.value, taint.taint.effect)


def _taints(seen: JudgedDevice) -> list[str]:
    return [tell_taint(taint) for taint in seen.device.taints if taint.effect != "None"]


def _obstacles(seen: JudgedDevice) -> list[str]:
    """What keeps every claim without tolerations from a device."""
    return [*_taints(seen), *filter(None, (seen.problem, seen.node_problem, seen.used_up))]


def _describe(seen: JudgedDevice, change: str, reasons: tuple[str, ...]) -> DeviceChange:
    driver, pool, device = seen.device.id
    node = seen.device.access.node_name
    return DeviceChange(
        driver=driver,
        pool=pool,
        device=device,
        node=node,
        change=change,
        reasons=reasons,
        patches=seen.device.patches,
    )


def _compare(
    old: JudgedDevice,
    new: JudgedDevice,
    classes_before: Mapping[str, DeviceClass],
    classes_after: Mapping[str, DeviceClass],
    changed_classes: set[str],
) -> DeviceChange | None:
    values = {} if old.device.device is new.device.device else _compare_values(old.device, new.device)
    names = {*classes_before, *classes_after} if values else changed_classes
    matched = {name for name in names if _matches(old.device, classes_before.get(name))}
    matches = {name for name in names if _matches(new.device, classes_after.get(name))}
    was, is_ = _obstacles(old), _obstacles(new)
    if matched - matches and not any(_matches(new.device, class_) for class_ in classes_after.values()):
        is_.append("no device class matches any more")
    elif matches - matched and not any(_matches(old.device, class_) for class_ in classes_before.values()):
        was.append("no device class matched")
    if was == is_ and not values and matched == matches:
        return None
    change = UNUSABLE if is_ and not was else USABLE if was and not is_ else CHANGED
    reasons = was if change is USABLE else _news(was, is_)
    driver, pool, device = new.device.id
    return DeviceChange(
        driver=driver,
        pool=pool,
        device=device,
        node=new.device.access.node_name,
        change=change,
        reasons=tuple(reasons),
        is_tolerable=change == UNUSABLE and is_ == _taints(new),
        values=values,
        patches=new.device.patches,
        classes_lost=tuple(sorted(matched - matches)),
        classes_gained=tuple(sorted(matches - matched)),
    )


def _news(was: list[str], is_: list[str]) -> list[str]:
    """What stands in the way that did not; else what no longer does, and what does still."""
    new = [text for text in is_ if text not in was]
    gone = [f"no longer {text}" for text in was if text not in is_]
    return new or [*gone, *(is_ if gone else ())]


def _compare_values(old: EffectiveDevice, new: EffectiveDevice) -> dict[str, ValueChange]:
    before, after = values_of(old), values_of(new)
    return {
        name: ValueChange(before=before.get(name), after=after.get(name))
        for name in {**before, **after}
        if before.get(name) != after.get(name)
    }


def _matches(device: EffectiveDevice, device_class: DeviceClass | None) -> bool:
    """Whether a class selects a device; where a selector fails, it does not."""
    if device_class is None:
        return False
    view = device.view
    try:
        return all(
            selector.cel is not None and _selector(selector.cel.expression).matches(view)
            for selector in device_class.spec.selectors
        )
    except (cel.CompileError, cel.EvaluationError):
        return False


@lru_cache(maxsize=256)
def _selector(expression: str) -> cel.Selector:
    return cel.compile(expression, mode="stored")
