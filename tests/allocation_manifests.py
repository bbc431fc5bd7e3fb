"""Short ways to write the manifests that allocator tests need."""

from __future__ import annotations

from typing import Any

import builders
from allocation_cluster import Cluster
from builders import DRIVER, Manifest, attribute, cel, request
from dray.allocator import Allocated, Options, Outcome, allocate

Json = Manifest

__all__ = (
    "DRIVER",
    "Json",
    "attribute",
    "cel",
    "claim",
    "cluster_of",
    "device",
    "device_class",
    "devices_of",
    "held",
    "node",
    "one_of",
    "request",
    "resource_slice",
    "run",
)


def node(name: str = "node-1", **labels: str) -> Json:
    return builders.node(name, labels=labels)


def device_class(name: str = "gpu", *expressions: str, config: list[Json] | None = None) -> Json:
    return builders.device_class(name, *expressions, **({"config": config} if config else {}))


def device(name: str, **fields: Any) -> Json:
    """`attributes` may be plain values: integers, booleans, strings and lists of them."""
    return builders.device(name, fields.pop("attributes", {}), **fields)


def resource_slice(*devices: Json, **fields: Any) -> Json:
    """A slice of pool `p` on node-1, complete by itself, unless `fields` say otherwise."""
    pool = fields.pop("pool", "p")
    return builders.resource_slice(fields.pop("name", f"slice-{pool}"), *devices, pool=pool, **fields)


def one_of(name: str, *alternatives: Json) -> Json:
    """A prioritized list; alternatives are named s0, s1 …"""
    subs = [{"name": f"s{n}", "deviceClassName": "gpu", **a} for n, a in enumerate(alternatives)]
    return {"name": name, "firstAvailable": subs}


def claim(name: str, *requests: Json, **devices: Any) -> Json:
    return builders.claim(name, *requests, namespace="ns", **devices)


def held(name: str, device_name: str, **fields: Any) -> Json:
    """A claim that holds a device of pool `p`."""
    return {**claim(name, request()), "status": builders.allocated(device_name, pool="p", **fields)}


def run(
    *objects: Json, wanted: tuple[str, ...] = ("c",), on: str | None = "node-1", options: Options | None = None
) -> Outcome:
    """Allocate the claims `wanted` of namespace ns; node-1 and class gpu are there by default."""
    cluster = cluster_of(*objects)
    claims = [cluster.claims[f"ns/{name}"] for name in wanted]
    return allocate(cluster.inventory, cluster.classes, claims, on, options or Options())


def cluster_of(*objects: Json) -> Cluster:
    defaults = [node(), device_class()]
    names = {(o["kind"], o["metadata"]["name"]) for o in objects}
    missing = [o for o in defaults if (o["kind"], o["metadata"]["name"]) not in names]
    return Cluster([*missing, *objects])


def devices_of(outcome: Outcome, name: str = "c") -> list[str]:
    """The device names that a claim got, as request:device where there are several requests."""
    assert isinstance(outcome, Allocated), outcome
    results = outcome.allocations[f"ns/{name}"].devices.results
    several = len({result.request for result in results}) > 1
    return [f"{r.request}:{r.device}" if several else r.device for r in results]
