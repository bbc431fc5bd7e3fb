"""Judging pools as a consumer does, and their history. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator

from msgspec.structs import replace

from dray.api.resource import ResourcePool, ResourceSlice, ResourceSliceSpec
from dray.driver_test.stage import SliceChange


def newest(slices: Iterable[ResourceSlice]) -> list[ResourceSlice]:
    """The slices of the highest generation of each pool; only those count."""
    found = list(slices)
    highest: dict[str, int] = {}
    for it in found:
        pool = it.spec.pool
        highest[pool.name] = max(pool.generation, highest.get(pool.name, pool.generation))
    return [it for it in found if it.spec.pool.generation == highest[it.spec.pool.name]]


def incomplete(slices: Iterable[ResourceSlice]) -> list[str]:
    """Why pools cannot be used, one sentence for each problem; nothing if all can."""
    pools: dict[str, list[ResourceSlice]] = {}
    for found in newest(slices):
        pools.setdefault(found.spec.pool.name, []).append(found)
    return [problem for name, found in sorted(pools.items()) for problem in _problems(name, found)]


def _problems(name: str, slices: list[ResourceSlice]) -> Iterator[str]:
    counts = {found.spec.pool.resource_slice_count for found in slices}
    if counts != {len(slices)}:
        said = " and ".join(map(str, sorted(counts)))
        yield f"pool {name} has {len(slices)} slices of the newest generation, and resourceSliceCount says {said}"
    names: set[str] = set()
    for found in slices:
        for device in found.spec.devices:
            if device.name in names:
                yield f"pool {name} has device {device.name} twice"
            names.add(device.name)


def generation_problems(changes: Iterable[SliceChange], tampered: Collection[str] = ()) -> list[str]:
    """What in the history of slices a consumer could have misunderstood.

    Devices and counters change with the generation, or in one slice only; taints may change without it, in one slice at
    a time (5055-76). A generation never falls while slices of the pool with a higher one are there. Versions that were
    not written by the driver (`tampered`) are not held against it.
    """
    problems: list[str] = []
    first: dict[ResourcePool, str] = {}
    for old, new, others in _writes(changes, tampered):
        problems += _judge(old, new, others)
        if _kept_generation(old, new):
            pool, name = new.spec.pool, new.metadata.name
            before = first.setdefault(pool, name)
            if before != name:
                what = f"slices {before} and {name} got other devices or counters"
                problems.append(f"{what}, but pool {pool.name} kept its generation")
    return problems


def kept_generations(changes: Iterable[SliceChange], tampered: Collection[str]) -> list[str]:
    """The changes of devices or counters that kept the generation of the pool."""
    return [
        f"slice {new.metadata.name} got other devices or counters, but pool {new.spec.pool.name} kept its generation"
        for old, new, _ in _writes(changes, tampered)
        if _kept_generation(old, new)
    ]


def _writes(
    changes: Iterable[SliceChange], tampered: Collection[str]
) -> Iterator[tuple[ResourceSlice | None, ResourceSlice, list[ResourceSlice]]]:
    """What the driver wrote: a slice before and after, and the other slices of its pool."""
    there: dict[str, ResourceSlice] = {}
    for old, new in changes:
        if new is None:
            if old is not None:
                there.pop(old.metadata.name, None)
            continue
        name, spec = new.metadata.name, new.spec
        if new.metadata.resource_version not in tampered:
            others = [
                it
                for it in there.values()
                if it.spec.driver == spec.driver and it.spec.pool.name == spec.pool.name and it.metadata.name != name
            ]
            yield there.get(name), new, others
        there[name] = new


def _kept_generation(old: ResourceSlice | None, new: ResourceSlice) -> bool:
    if old is None or old.spec.pool.generation != new.spec.pool.generation:
        return False
    return _content(old.spec) != _content(new.spec)


def _judge(old: ResourceSlice | None, new: ResourceSlice, others: list[ResourceSlice]) -> Iterator[str]:
    pool = new.spec.pool
    if old is not None and pool.generation < old.spec.pool.generation and others:
        above = max(it.spec.pool.generation for it in others)
        if above > pool.generation:
            yield f"slice {new.metadata.name} went back to generation {pool.generation} while {above} is in use"
    same = [it for it in others if it.spec.pool.generation == pool.generation]
    if len(same) + 1 > pool.resource_slice_count:
        yield f"pool {pool.name} got {len(same) + 1} slices, and resourceSliceCount says {pool.resource_slice_count}"


def _content(spec: ResourceSliceSpec) -> ResourceSliceSpec:
    """A slice without its taints and its place in the pool."""
    devices = tuple(replace(device, taints=()) for device in spec.devices)
    return replace(spec, pool=ResourcePool(), taints=(), devices=devices)
