"""What a profile looks like in the API: the Node of each machine, and the ResourceSlices of its pools. Pure."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, TypeVar

from msgspec.structs import replace

from dray.api import codec
from dray.api.generated.core import Node, NodeAddress, NodeSpec, NodeStatus, NodeSystemInfo
from dray.api.meta import ObjectMeta, OwnerReference
from dray.api.nodes import SIMULATED
from dray.api.quantity import Quantity
from dray.api.resource import (
    CounterSet,
    Device,
    ResourcePool,
    ResourceSlice,
    ResourceSliceSpec,
    SliceDeviceTaint,
)
from dray.api.resource.slice import DEVICES_PER_SLICE_WITH_TAINTS_OR_COUNTERS
from dray.api.resource.taint import TAINTS_PER_SLICE
from dray.api.struct import Struct
from dray.simulation import names
from dray.simulation.profile import PodBehaviour, PoolTemplate, Profile
from dray.simulation.templates import TemplateError, Values, fill, repeat
from dray.validation.resource_slice import COUNTER_SETS_PER_SLICE

T = TypeVar("T", bound=Struct)

KUBELET_VERSION: Final = "v1.37.0"
CAPACITY: Final = {
    name: Quantity.parse(amount)
    for name, amount in {"cpu": "64", "memory": "512Gi", "pods": "110", "ephemeral-storage": "1Ti"}.items()
}
LARGEST_NUMBER: Final = 1_000_000


class PublicationError(ValueError):
    """An entry of a profile that cannot stand in the API; the message names the pool and the entry."""


def node(profile: Profile, number: int) -> Node:
    """The Node of machine `number` (from 1). Raises TemplateError."""
    if not 1 <= number <= LARGEST_NUMBER:
        raise TemplateError(f"nodes are numbered from 1 to {LARGEST_NUMBER}, not {number}")
    template = profile.node
    name = fill(template.name, {"number": number})
    values: Values = {"node": name, "number": number}
    labels = {
        "kubernetes.io/hostname": name,
        "kubernetes.io/os": "linux",
        "kubernetes.io/arch": "amd64",
        **fill(template.labels, values),
        SIMULATED: "true",
    }
    annotations = {**_behaviour(profile.pods), **fill(template.annotations, values), names.PROFILE: profile.name}
    capacity = {**CAPACITY, **template.capacity}
    return Node(
        kind="Node",
        api_version="v1",
        metadata=ObjectMeta(name=name, labels=labels, annotations=annotations),
        spec=NodeSpec(taints=template.taints),
        status=NodeStatus(
            capacity=capacity, allocatable=capacity, addresses=_addresses(name, number), node_info=_system(name)
        ),
    )


def _addresses(name: str, number: int) -> tuple[NodeAddress, ...]:
    address = f"172.{16 + number // 65536}.{number // 256 % 256}.{number % 256}"
    return NodeAddress(type="InternalIP", address=address), NodeAddress(type="Hostname", address=name)


def _system(name: str) -> NodeSystemInfo:
    return NodeSystemInfo(
        architecture="amd64",
        operating_system="linux",
        os_image="Simulated",
        kernel_version="simulated",
        container_runtime_version="simulated://1.0",
        kubelet_version=KUBELET_VERSION,
        kube_proxy_version=KUBELET_VERSION,
        machine_id=name,
        system_uuid=name,
    )


def _behaviour(pods: PodBehaviour) -> dict[str, str]:
    """Only what differs from what pods do anyway."""
    given = {
        names.START_SECONDS: pods.start_seconds,
        names.RUN_SECONDS: pods.run_seconds,
        names.STOP_SECONDS: pods.stop_seconds,
        names.EXIT_CODE: pods.exit_code,
    }
    return {name: f"{value:g}" for name, value in given.items() if value}


def slices(profile: Profile, owner: Node) -> tuple[ResourceSlice, ...]:
    """The slices of one machine's pools, owned by its Node. Raises TemplateError or PublicationError."""
    name = owner.metadata.name
    values: Values = {"node": name, "number": _number(owner)}
    reference = OwnerReference(api_version="v1", kind="Node", name=name, uid=owner.metadata.uid, controller=True)
    return tuple(
        replace(made, metadata=replace(made.metadata, owner_references=(reference,) if owner.metadata.uid else ()))
        for pool in profile.pools
        if not pool.is_shared
        for made in _pool_slices(pool, values, ResourceSliceSpec(driver=pool.driver, node_name=name))
    )


def shared_slices(profile: Profile) -> tuple[ResourceSlice, ...]:
    """The slices of pools that are reached over the network; there is one of each, however many machines."""
    return tuple(
        made
        for pool in profile.pools
        if pool.is_shared
        for made in _pool_slices(
            pool,
            {},
            ResourceSliceSpec(
                driver=pool.driver, all_nodes=True if pool.all_nodes else None, node_selector=pool.node_selector
            ),
        )
    )


def _number(owner: Node) -> int:
    """The number that the node was made from: its address carries it."""
    for address in owner.status.addresses:
        if address.type == "InternalIP":
            _, high, middle, low = map(int, address.address.split("."))
            return (high - 16) * 65536 + middle * 256 + low
    return 0


def _pool_slices(pool: PoolTemplate, values: Values, spec: ResourceSliceSpec) -> Iterator[ResourceSlice]:
    """Counters, then devices, then taints: a slice holds one of the three, and only so many."""
    name = fill(pool.name or ("" if pool.is_shared else "{node}"), values)
    where = f"pool {name or '?'} of driver {pool.driver or '?'}"
    if not name:
        raise PublicationError(f"{where}: name: a pool for several nodes needs a name")
    if pool.all_nodes and pool.node_selector is not None:
        raise PublicationError(f"{where}: allNodes and nodeSelector exclude each other")
    counters = _entries(pool.shared_counters, CounterSet, values, f"{where}: sharedCounters")
    devices = _entries(pool.devices, Device, values, f"{where}: devices")
    taints = _entries(pool.taints, SliceDeviceTaint, values, f"{where}: taints")
    parts: list[dict[str, Any]] = [
        *({"shared_counters": part} for part in _chunks(counters, COUNTER_SETS_PER_SLICE)),
        *({"devices": part} for part in _chunks(devices, DEVICES_PER_SLICE_WITH_TAINTS_OR_COUNTERS)),
        *({"taints": part} for part in _chunks(taints, TAINTS_PER_SLICE)),
    ] or [{}]
    prefix = f"{name}-{pool.driver}".replace("/", "-").lower()
    whole = ResourcePool(name=name, generation=1, resource_slice_count=len(parts))
    for index, part in enumerate(parts):
        meta = ObjectMeta(name=f"{prefix}-{index}", labels={SIMULATED: "true"})
        content = replace(spec, pool=whole, **part)
        yield ResourceSlice(kind="ResourceSlice", api_version="resource.k8s.io/v1", metadata=meta, spec=content)


def _entries(entries: Iterable[Mapping[str, Any]], kind: type[T], values: Values, where: str) -> list[T]:
    made = []
    for position, entry in enumerate(entries):
        try:
            filled = [_with_numbers(value) for value in repeat(entry, values)]
        except TemplateError as error:
            raise TemplateError(f"{where}[{position}]: {error}") from None
        for value in filled:
            reading = codec.read(value, kind)
            problems = reading.problems
            if reading.obj is None or problems:
                raise PublicationError(f"{where}[{position}]: {'; '.join(problems)}")
            made.append(reading.obj)
    return made


def _with_numbers(entry: dict[str, Any]) -> dict[str, Any]:
    """Placeholders leave text behind; where the API wants a number, `int: "{index}"` becomes one."""
    attributes = entry.get("attributes")
    if not isinstance(attributes, dict):
        return entry
    return {**entry, "attributes": {name: _numeric(attribute) for name, attribute in attributes.items()}}


def _numeric(attribute: Any) -> Any:
    if not isinstance(attribute, dict):
        return attribute
    changed = dict(attribute)
    if isinstance(changed.get("int"), str):
        changed["int"] = _as_number(changed["int"])
    if isinstance(changed.get("ints"), list):
        changed["ints"] = [_as_number(value) if isinstance(value, str) else value for value in changed["ints"]]
    return changed


def _as_number(text: str) -> int | str:
    return int(text) if text.lstrip("-").isdecimal() and len(text) <= 19 else text


def _chunks(entries: Sequence[T], size: int) -> list[tuple[T, ...]]:
    return [tuple(itertools.islice(entries, start, start + size)) for start in range(0, len(entries), size)]
