"""One device in full: what its driver says and what patches make of it, taints with their rules, who shares it, who
holds it, and how it is."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

import msgspec

from dray.api.conditions import find_condition
from dray.api.generated.core import Pod
from dray.api.names import qualified
from dray.api.references import full_name
from dray.api.resource import CounterSet, Device, DeviceTaintRule, ResourceClaim, ResourceSlice, ResourceSlicePatch
from dray.api.resource.rule_annotations import EXPIRES_AT
from dray.api.taints import taint_text
from dray.eviction.rule_condition import EVICTION_IN_PROGRESS
from dray.scheduling.device_state_text import tell_block
from dray.scheduling.device_states import DeviceState
from dray.tracker.view import DeviceId
from dray.views.partitions import Partitions, partitions
from dray.what_if.device_changes import attribute_text


class Document(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """Something to look at."""


class Value(Document, frozen=True, kw_only=True):
    """An attribute or a capacity, as published and as it counts; null where there is none."""

    name: str
    kind: str
    """`attribute` or `capacity`."""
    published: str | None
    effective: str | None
    patch: str | None
    """The ResourceSlicePatch that decides, if one does."""
    author: str | None
    """Who last wrote that patch, as far as it says."""


class Taint(Document, frozen=True, kw_only=True):
    """A taint, and where it comes from."""

    taint: str
    effect: str
    rule: str | None
    """Null if the driver publishes it."""
    since: str | None
    until: str | None
    progress: str
    """What the eviction controller says of the rule."""


class CounterUse(Document, frozen=True, kw_only=True):
    """A counter that the device draws on."""

    counter_set: str
    counter: str
    draws: str
    of: str


class Holder(Document, frozen=True, kw_only=True):
    """A claim that has the device, the pods that use it, and what is said of the device there."""

    claim: str
    since: str | None
    pods: tuple[str, ...]
    conditions: tuple[str, ...]
    health: tuple[str, ...]


class DevicePage(Document, frozen=True, kw_only=True):
    """Everything about a device, but for its history."""

    id: str
    driver: str
    pool: str
    name: str
    node: str | None
    slice: str
    state: tuple[str, ...]
    blocked_by: str | None
    values: tuple[Value, ...]
    taints: tuple[Taint, ...]
    counters: tuple[CounterUse, ...]
    partitions: Partitions
    holders: tuple[Holder, ...]


class Surroundings(msgspec.Struct, frozen=True, kw_only=True):
    """What a device is looked at with; what the viewer may not read is missing."""

    slices: Mapping[str, ResourceSlice] = {}
    patches: Mapping[str, ResourceSlicePatch] = {}
    rules: Mapping[str, DeviceTaintRule] = {}
    claims: Mapping[str, ResourceClaim] = {}
    """By `namespace/name`."""
    pods: Mapping[str, Pod] = {}
    """By uid."""
    counter_sets: Sequence[CounterSet] = ()
    neighbours: Sequence[DeviceState] = ()
    """The devices of its pool, itself among them."""


def device_page(state: DeviceState, around: Surroundings) -> DevicePage:
    """The page of a device."""
    device = state.device
    return DevicePage(
        id=str(device.id),
        driver=device.id.driver,
        pool=device.id.pool,
        name=device.id.device,
        node=device.access.node_name,
        slice=device.slice_name,
        state=state.words,
        blocked_by=tell_block(state.block) if state.block is not None else None,
        values=tuple(_values(state, around)),
        taints=tuple(_taints(state, around.rules)),
        counters=tuple(_counters(device.device, around.counter_sets)),
        partitions=partitions(device.device, around.neighbours, around.counter_sets),
        holders=tuple(_holder(name, device.id, around) for name in state.holders),
    )


def _values(state: DeviceState, around: Surroundings) -> Iterator[Value]:
    device = state.device
    slice_ = around.slices.get(device.slice_name)
    entries = slice_.spec.devices if slice_ is not None else ()
    published = next((one for one in entries if one.name == device.id.device), None)
    before = _texts(published, device.id.driver) if published is not None else None
    after = _texts(device.device, device.id.driver)
    for key in sorted({*after, *(before or {})}):
        kind, name = key
        old = before.get(key) if before is not None else None
        patch = (
            _patch_of(name, kind, device.patches, around.patches) if before is None or old != after.get(key) else None
        )
        author = _author(around.patches.get(patch)) if patch is not None else None
        yield Value(name=name, kind=kind, published=old, effective=after.get(key), patch=patch, author=author)


def _texts(device: Device, driver: str) -> dict[tuple[str, str], str]:
    found = {("attribute", qualified(name, driver)): attribute_text(value) for name, value in device.attributes.items()}
    return found | {("capacity", qualified(name, driver)): str(entry.value) for name, entry in device.capacity.items()}


def _patch_of(name: str, kind: str, order: Iterable[str], patches: Mapping[str, ResourceSlicePatch]) -> str | None:
    """The strongest patch that says something of a value; the strongest of all if none can be read."""
    known = list(order)
    for each in known:
        patch = patches.get(each)
        if patch is not None:
            said = patch.spec.devices.attributes if kind == "attribute" else patch.spec.devices.capacity
            if name in said:
                return each
    return known[0] if known and not any(each in patches for each in known) else None


def _author(patch: ResourceSlicePatch | None) -> str | None:
    entries = patch.metadata.managed_fields if patch is not None else ()
    latest = max(entries, key=lambda one: str(one.time or ""), default=None)
    return latest.manager or None if latest is not None else None


def _taints(state: DeviceState, rules: Mapping[str, DeviceTaintRule]) -> Iterator[Taint]:
    for tracked in state.device.taints:
        rule = rules.get(tracked.rule) if tracked.rule is not None else None
        told = find_condition(rule.status.conditions, EVICTION_IN_PROGRESS) if rule is not None else None
        yield Taint(
            taint=taint_text(tracked.taint),
            effect=tracked.taint.effect,
            rule=tracked.rule,
            since=str(tracked.taint.time_added) if tracked.taint.time_added else None,
            until=rule.metadata.annotations.get(EXPIRES_AT) if rule is not None else None,
            progress=told.message if told is not None else "",
        )


def _counters(device: Device, sets: Sequence[CounterSet]) -> Iterator[CounterUse]:
    sizes = {(one.name, name): str(counter.value) for one in sets for name, counter in one.counters.items()}
    for use in device.consumes_counters:
        for name, counter in use.counters.items():
            of = sizes.get((use.counter_set, name), "?")
            yield CounterUse(counter_set=use.counter_set, counter=name, draws=str(counter.value), of=of)


def _holder(name: str, device: DeviceId, around: Surroundings) -> Holder:
    claim = around.claims.get(name)
    if claim is None:
        return Holder(claim=name, since=None, pods=(), conditions=(), health=())
    allocation = claim.status.allocation
    stamp = allocation.allocation_timestamp if allocation is not None else None
    entries = [one for one in claim.status.devices if (one.driver, one.pool, one.device) == tuple(device)]
    conditions = tuple(
        f"{told.type} is {told.status}" + (f": {told.message}" if told.message else "")
        for entry in entries
        for told in entry.conditions
    )
    users = [around.pods[one.uid] for one in claim.status.reserved_for if one.uid in around.pods]
    return Holder(
        claim=full_name(claim),
        since=str(stamp) if stamp is not None else None,
        pods=tuple(f"{claim.metadata.namespace}/{one.name}" for one in claim.status.reserved_for),
        conditions=conditions,
        health=tuple(dict.fromkeys(line for pod in users for line in _health(pod, device))),
    )


def _health(pod: Pod, device: DeviceId) -> Iterator[str]:
    """What the node says of the device in the pod's status."""
    for container in pod.status.container_statuses:
        for resource in container.allocated_resources_status:
            for one in resource.resources:
                if one.resource_id.endswith(f"/{device.device}") or device.device in one.resource_id.split("="):
                    yield f"{one.health} in {container.name}" + (f": {one.message}" if one.message else "")
