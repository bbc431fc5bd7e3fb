"""Makes the API show the machines of a profile: creates what is missing, brings up to date what differs.

Registering again, after a restart or with another profile, changes only what is different; nothing is made twice.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Iterable, Sequence
from typing import Final, TypeVar

import msgspec
from msgspec.structs import replace

from dray.api.generated.core import Node
from dray.api.kinds import NODES, SLICES
from dray.api.meta import Object
from dray.api.nodes import SIMULATED, is_simulated
from dray.api.resource import Device, ResourceSlice, ResourceSliceSpec
from dray.api.resource.pool import PoolKey, pool_of
from dray.api.status import ApiError
from dray.api.times import Time
from dray.client import Client
from dray.simulation import names, publication
from dray.simulation.node_status import with_good_conditions
from dray.simulation.profile import Profile

AT_ONCE: Final = 256

T = TypeVar("T")


class RegistrationError(Exception):
    """The machines cannot be simulated in this cluster; the message says why and what to do."""


class Registration(msgspec.Struct, frozen=True):
    """What the profile stands for now."""

    nodes: tuple[str, ...] = ()
    devices: int = 0
    slices: int = 0


async def register(client: Client, profile: Profile, count: int, now: Time) -> Registration:
    """Machines 1 to `count` of a profile. Raises RegistrationError, ApiError or OSError."""
    await _all(_create_missing(client, obj) for obj in profile.typed_objects())
    stored = {node.metadata.name: node for node in (await client.list(NODES)).items if isinstance(node, Node)}
    wanted = [with_good_conditions(publication.node(profile, number), now) for number in range(1, count + 1)]
    nodes = await _all(_put_node(client, node, stored.get(node.metadata.name)) for node in wanted)
    slices = [made for node in nodes for made in publication.slices(profile, node)]
    slices += publication.shared_slices(profile) if count else ()
    registered = tuple(node.metadata.name for node in nodes)
    await _put_slices(client, slices, frozenset(registered))
    return Registration(registered, sum(len(made.spec.devices) for made in slices), len(slices))


async def _all(work: Iterable[Awaitable[T]]) -> list[T]:
    """The results of everything, some hundreds at a time."""
    pending = list(work)
    done: list[T] = []
    for start in range(0, len(pending), AT_ONCE):
        done += await asyncio.gather(*pending[start : start + AT_ONCE])
    return done


async def _create_missing(client: Client, obj: Object) -> None:
    try:
        await client.create(obj)
    except ApiError as error:
        if error.code != 409:
            raise


async def _put_node(client: Client, wanted: Node, stored: Node | None) -> Node:
    if stored is None:
        return await client.create(wanted)
    name = wanted.metadata.name
    if not is_simulated(stored):
        raise RegistrationError(
            f"there is a node {name} that is not simulated. Delete it, or give node.name in a profile of your own."
        )
    labels = {**stored.metadata.labels, **wanted.metadata.labels}
    meta = replace(stored.metadata, labels=labels, annotations=_annotations(stored, wanted))
    if meta != stored.metadata:
        stored = await client.update(replace(stored, metadata=meta))
    given = wanted.status
    status = replace(stored.status, capacity=given.capacity, allocatable=given.allocatable, addresses=given.addresses)
    if status != stored.status:
        stored = await client.update(replace(stored, status=status), "status")
    return stored


def _annotations(stored: Node, wanted: Node) -> dict[str, str]:
    """The profile decides how pods behave; everything else that people wrote stays, `stopped` among it."""
    behaviour = (names.START_SECONDS, names.RUN_SECONDS, names.STOP_SECONDS, names.EXIT_CODE)
    kept = {name: value for name, value in stored.metadata.annotations.items() if name not in behaviour}
    return {**kept, **wanted.metadata.annotations}


async def _put_slices(client: Client, wanted: Sequence[ResourceSlice], nodes: frozenset[str]) -> None:
    """Publishes pools that differ from what is stored, as a new generation, and removes what is no longer there."""
    listed = (await client.list(SLICES, labels=f"{SIMULATED}=true")).items
    stored = {found.metadata.name: found for found in listed if isinstance(found, ResourceSlice)}
    named = {made.metadata.name for made in wanted}
    gone = [
        found
        for found in stored.values()
        if found.metadata.name not in named and (found.spec.node_name is None or found.spec.node_name in nodes)
    ]
    before = _by_pool(stored.values())
    shrunk = _by_pool(gone)
    writes: list[Awaitable[None]] = []
    for key, pool in _by_pool(wanted).items():
        if key not in shrunk and all(_is_published(made, stored.get(made.metadata.name)) for made in pool):
            continue
        generation = max((found.spec.pool.generation for found in before.get(key, ())), default=0) + 1
        writes += [_put_slice(client, made, stored.get(made.metadata.name), generation) for made in pool]
    await _all(writes)
    await _all(client.delete(SLICES, "", found.metadata.name) for found in gone)


def _by_pool(slices: Iterable[ResourceSlice]) -> dict[PoolKey, list[ResourceSlice]]:
    pools: dict[PoolKey, list[ResourceSlice]] = {}
    for found in slices:
        pools.setdefault(pool_of(found), []).append(found)
    return pools


def _is_published(wanted: ResourceSlice, stored: ResourceSlice | None) -> bool:
    if stored is None or wanted.metadata.owner_references != stored.metadata.owner_references:
        return False
    return _essence(wanted.spec) == _essence(stored.spec)


def _essence(spec: ResourceSliceSpec) -> ResourceSliceSpec:
    """A spec without what differs from one publication to the next: the generation, and since when taints are there."""
    return replace(
        spec,
        pool=replace(spec.pool, generation=0),
        devices=tuple(_untimed(device) if device.taints else device for device in spec.devices),
        taints=tuple(replace(entry, taint=replace(entry.taint, time_added=None)) for entry in spec.taints),
    )


def _untimed(device: Device) -> Device:
    return replace(device, taints=tuple(replace(taint, time_added=None) for taint in device.taints))


async def _put_slice(client: Client, wanted: ResourceSlice, stored: ResourceSlice | None, generation: int) -> None:
    pool = replace(wanted.spec.pool, generation=generation)
    spec = replace(wanted.spec, pool=pool)
    if stored is None:
        await client.create(replace(wanted, spec=spec))
        return
    meta = replace(stored.metadata, owner_references=wanted.metadata.owner_references)
    await client.update(replace(stored, metadata=meta, spec=spec))
