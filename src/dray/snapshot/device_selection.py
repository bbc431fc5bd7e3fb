"""Which devices an admin means, and the selectors of DeviceTaintRules that say it.

    node, driver, pool, device, class, CEL ─▶ check ─▶ find_devices (for people to see)
                                                    └▶ resolve (for the server): one selector, or several

A rule cannot select by node: the pools of the node stand for it. A Kubernetes server does not select by class or CEL
either (SVS-10): there the devices that match now are named one by one, or by pool where all of a pool match.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Final

import msgspec
from msgspec.structs import replace

from dray import cel
from dray.api.meta import ObjectMeta
from dray.api.resource import (
    CELDeviceSelector,
    DeviceSelector,
    DeviceTaint,
    DeviceTaintRule,
    DeviceTaintRuleSpec,
    DeviceTaintSelector,
    ResourceClaim,
)
from dray.api.resource.taint import EFFECT_NONE
from dray.eviction.allocations import devices_of
from dray.eviction.causes import names_device
from dray.prose.wording import count, there_is
from dray.snapshot.snapshot import Snapshot
from dray.tracker import DeviceId, EffectiveDevice

MAX_RULES: Final = 64
MAX_ERRORS: Final = 3
_TRIAL: Final = "dray-trial"


class SelectionError(Exception):
    """A selection that means nothing in this cluster. The message says what there is instead."""


class DeviceSelection(msgspec.Struct, frozen=True, omit_defaults=True, rename={"device_class": "class"}):
    """What a device must have; everything that is given must hold, nothing given means every device."""

    node: str = ""
    driver: str = ""
    pool: str = ""
    device: str = ""
    device_class: str = ""
    cel: tuple[str, ...] = ()

    @property
    def is_broad(self) -> bool:
        """Whether it may reach devices all over the cluster: no node, pool or device is named."""
        return not (self.node or self.pool or self.device)

    def __str__(self) -> str:
        told = [f"node {self.node}"] if self.node else []
        told += [f"{field} {value}" for field, value in (("driver", self.driver), ("pool", self.pool)) if value]
        told += [f"device {self.device}"] if self.device else []
        told += [f"class {self.device_class}"] if self.device_class else []
        told += [f"CEL {expression}" for expression in self.cel]
        return ", ".join(told) or "every device"

    def selector(self) -> DeviceTaintSelector:
        """All of it that a rule can say: everything but the node."""
        return DeviceTaintSelector(
            device_class_name=self.device_class or None,
            driver=self.driver or None,
            pool=self.pool or None,
            device=self.device or None,
            selectors=tuple(DeviceSelector(cel=CELDeviceSelector(expression=text)) for text in self.cel),
        )


def check(snapshot: Snapshot, selection: DeviceSelection) -> None:
    """That everything that is named exists. Raises SelectionError."""
    if selection.node and selection.node not in snapshot.nodes():
        raise SelectionError(f"no node {selection.node}; {there_is(snapshot.nodes())}")
    if selection.device_class and selection.device_class not in snapshot.classes():
        raise SelectionError(f"no device class {selection.device_class}; {there_is(snapshot.classes())}")
    for expression in selection.cel:
        try:
            cel.compile(expression)
        except cel.CompileError as error:
            raise SelectionError(f"CEL: {error.message} (line {error.line}, column {error.column})") from None
    _check_names(snapshot, selection)


def check_key(snapshot: Snapshot, selection: DeviceSelection, key: str) -> None:
    """That who means every device did not mean the one that the key of the taint names. Raises SelectionError."""
    if selection != DeviceSelection():
        return
    for device in snapshot.devices():
        _, pool, name = one = device.id
        node = device.access.node_name
        for told, options in (
            ({name, f"{pool}/{name}", "/".join(one)}, f"--pool {pool} --device {name}"),
            ({pool}, f"--pool {pool}"),
            ({node}, f"--node {node}"),
        ):
            if key in told:
                raise SelectionError(f"{key} would be the taint, on every device; for that one say {options}")


def _check_names(snapshot: Snapshot, selection: DeviceSelection) -> None:
    """Looks where the names first lead nowhere. Devices that claims hold need not be published (SVS-23)."""
    left = [device.id for device in snapshot.devices() if selection.node in ("", device.access.node_name)]
    if not selection.node:
        left += [device for claim in snapshot.objects(ResourceClaim) for device in devices_of(claim)]
    where = f" on node {selection.node}" if selection.node else ""
    if selection.node and not left:
        raise SelectionError(f"node {selection.node} has no devices of its own")
    for field in ("driver", "pool", "device"):
        wanted = getattr(selection, field)
        if not wanted:
            continue
        known = [getattr(device, field) for device in left]
        left = [device for device in left if getattr(device, field) == wanted]
        if not left:
            raise SelectionError(f"no {field} {wanted}{where}; {there_is(known)}")
        where = f" of {field} {wanted}{where}"


def find_devices(snapshot: Snapshot, selection: DeviceSelection) -> tuple[EffectiveDevice, ...]:
    """The published devices that are meant now."""
    found = _with_trial(snapshot, selection).selected_devices(_TRIAL)
    return tuple(device for device in found if _is_there(device, selection))


def _is_there(device: EffectiveDevice, selection: DeviceSelection) -> bool:
    return selection.node in ("", device.access.node_name)


def tell_passed_over(snapshot: Snapshot, selection: DeviceSelection) -> tuple[str, ...]:
    """On how many devices an expression fails, so that rules pass them over, whether they are meant or not."""
    return tuple(
        f"{count(number, 'device')} {'is' if number == 1 else 'are'} passed over, meant or not, because the selection "
        f"fails there: {why}"
        for why, number in _failures(snapshot, selection)
    )


def tell_nothing(snapshot: Snapshot, selection: DeviceSelection) -> str:
    """That no device is meant, and which expressions fail on how many devices, with an error."""
    told = [f"it fails on {count(number, 'device')}: {why}" for why, number in _failures(snapshot, selection)]
    useless = [one for one in _with_trial(snapshot, selection).problems() if one.name == _TRIAL and not one.count]
    why = "; ".join((*told, *(f"it fails on every device: {one.message}" for one in useless)))
    return f"no device matches ({selection}){f': {why}' if why else ''}"


def _failures(snapshot: Snapshot, selection: DeviceSelection) -> list[tuple[str, int]]:
    """Errors of expressions, and on how many of the devices that could be meant, the most first."""
    if not (selection.cel or selection.device_class):
        return []
    failed = Counter(
        why
        for device, why in _with_trial(snapshot, selection).tracker().passed_over(_TRIAL)
        if _is_there(device, selection)
    )
    told = failed.most_common(MAX_ERRORS)
    others = failed.total() - sum(number for _, number in told)
    return [*told, *([("other errors", others)] if others else [])]


def _with_trial(snapshot: Snapshot, selection: DeviceSelection) -> Snapshot:
    """The snapshot with a rule that selects what is meant, by driver, pool, device, class and CEL, and does nothing."""
    spec = DeviceTaintRuleSpec(device_selector=selection.selector(), taint=DeviceTaint(key=_TRIAL, effect=EFFECT_NONE))
    rule = DeviceTaintRule(
        kind="DeviceTaintRule", api_version="resource.k8s.io/v1", metadata=ObjectMeta(name=_TRIAL), spec=spec
    )
    return snapshot.with_typed([rule])


def find_unpublished(snapshot: Snapshot, selection: DeviceSelection) -> tuple[DeviceId, ...]:
    """Devices that claims hold and no slice has, as far as the selection names them."""
    if selection.node:
        return ()
    rule = DeviceTaintRule(spec=DeviceTaintRuleSpec(device_selector=selection.selector()))
    published = {device.id for device in snapshot.devices()}
    held = (device for claim in snapshot.objects(ResourceClaim) for device in devices_of(claim))
    return tuple(dict.fromkeys(one for one in held if one not in published and names_device(rule, one)))


def resolve(
    snapshot: Snapshot, selection: DeviceSelection, *, by_names: bool = False
) -> tuple[DeviceTaintSelector, ...]:
    """The selectors of rules that reach these devices; with `by_names` only by driver, pool and device.

    Raises SelectionError if that takes too many rules.
    """
    base = selection.selector()
    needs_names = by_names and bool(selection.device_class or selection.cel)
    if not selection.node and not needs_names:
        return (base,)
    selectors = tuple(_spell_out(snapshot, selection, base, by_names=needs_names))
    if len(selectors) > MAX_RULES:
        raise SelectionError(
            f"{len(selectors)} rules would be needed to name all devices, and {MAX_RULES} is the limit; "
            "select by driver, pool or node"
        )
    return selectors


def _spell_out(
    snapshot: Snapshot, selection: DeviceSelection, base: DeviceTaintSelector, *, by_names: bool
) -> Iterator[DeviceTaintSelector]:
    chosen: dict[tuple[str, str], list[EffectiveDevice]] = {}
    for device in find_devices(snapshot, selection):
        chosen.setdefault((device.id.driver, device.id.pool), []).append(device)
    pools: dict[tuple[str, str], list[EffectiveDevice]] = {}
    for part in snapshot.pools():
        pools.setdefault((part.driver, part.name), []).extend(part.devices)
    for (driver, pool), devices in chosen.items():
        everything = pools[driver, pool]
        is_local = selection.node and all(one.access.node_name == selection.node for one in everything)
        if is_local and not by_names:
            yield replace(base, driver=driver, pool=pool)
        elif len(devices) == len(everything) and not selection.device:
            yield DeviceTaintSelector(driver=driver, pool=pool)
        else:
            for name in dict.fromkeys(device.id.device for device in devices):
                yield DeviceTaintSelector(driver=driver, pool=pool, device=name)
