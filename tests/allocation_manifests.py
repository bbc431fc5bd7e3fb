"""Short ways to write the manifests that allocator tests need."""

from __future__ import annotations

from typing import Any

from allocation_cluster import Cluster
from dray.allocator import Allocated, Options, Outcome, allocate

Json = dict[str, Any]
DRIVER = "gpu.example.com"


def node(name: str = "node-1", **labels: str) -> Json:
    return {"kind": "Node", "metadata": {"name": name, "labels": labels}}


def device_class(name: str = "gpu", *expressions: str, config: list[Json] | None = None) -> Json:
    spec: Json = {"selectors": [{"cel": {"expression": e}} for e in expressions]}
    if config:
        spec["config"] = config
    return {"kind": "DeviceClass", "metadata": {"name": name}, "spec": spec}


def device(name: str, **fields: Any) -> Json:
    """`attributes` may be plain values: integers, booleans, strings and lists of them."""
    attributes = {key: attribute(value) for key, value in fields.pop("attributes", {}).items()}
    return {"name": name, "attributes": attributes, **fields}


def attribute(value: Any) -> Json:
    if isinstance(value, dict):
        return value
    if isinstance(value, list):
        return {"strings" if isinstance(value[0], str) else "ints": value}
    kinds = {bool: "bool", int: "int", str: "string"}
    return {kinds[type(value)]: value}


def resource_slice(*devices: Json, **fields: Any) -> Json:
    """A slice of pool `p` on node-1, complete by itself, unless `fields` say otherwise."""
    pool = {
        "name": fields.pop("pool", "p"),
        "generation": fields.pop("generation", 1),
        "resourceSliceCount": fields.pop("count", 1),
    }
    name = fields.pop("name", f"slice-{pool['name']}")
    spec = {"driver": fields.pop("driver", DRIVER), "pool": pool, "devices": list(devices), **fields}
    if not {"nodeName", "allNodes", "nodeSelector", "perDeviceNodeSelection"} & set(fields):
        spec["nodeName"] = "node-1"
    return {"kind": "ResourceSlice", "metadata": {"name": name}, "spec": spec}


def request(name: str = "r", **exactly: Any) -> Json:
    return {"name": name, "exactly": {"deviceClassName": "gpu", **exactly}}


def one_of(name: str, *alternatives: Json) -> Json:
    """A prioritized list; alternatives are named s0, s1 …"""
    subs = [{"name": f"s{n}", "deviceClassName": "gpu", **a} for n, a in enumerate(alternatives)]
    return {"name": name, "firstAvailable": subs}


def cel(*expressions: str) -> list[Json]:
    return [{"cel": {"expression": expression}} for expression in expressions]


def claim(name: str, *requests: Json, **devices: Any) -> Json:
    return {
        "kind": "ResourceClaim",
        "metadata": {"name": name, "namespace": "ns"},
        "spec": {"devices": {"requests": list(requests), **devices}},
    }


def held(name: str, device_name: str, **fields: Any) -> Json:
    """A claim that holds a device of pool `p`."""
    result = {"request": "r", "driver": DRIVER, "pool": "p", "device": device_name, **fields}
    allocation = {"devices": {"results": [result]}}
    return {**claim(name, request()), "status": {"allocation": allocation}}


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
