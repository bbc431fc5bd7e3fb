"""The objects that tests are made of, each kind written in one place.

Builders make manifests as people write them, with the usual fields filled in. Options are keywords; what a builder does
not know goes into the spec. `typed` makes an object of a manifest. Modules such as `scheduler_objects` choose the names
and amounts that suit their tests, and build with these.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, TypeAlias, TypeVar, overload

from dray.api import codec
from dray.api.meta import Object
from dray.api.registry import by_kind

Manifest: TypeAlias = dict[str, Any]
T = TypeVar("T", bound=Object)

V1 = "resource.k8s.io/v1"
V1ALPHA3 = "resource.k8s.io/v1alpha3"
DRIVER = "gpu.example.com"
PLACES = frozenset({"nodeName", "nodeSelector", "allNodes", "perDeviceNodeSelection"})


@overload
def typed(document: Mapping[str, Any]) -> Any: ...
@overload
def typed(document: Mapping[str, Any], kind: type[T]) -> T: ...
def typed(document: Mapping[str, Any], kind: type[Any] = Object) -> Any:
    """A manifest in a hub version as the object of that kind. What it cannot hold is a mistake of the test."""
    reading = codec.read(dict(document), by_kind(document["apiVersion"], document["kind"]).hub)
    assert isinstance(reading.obj, kind), reading.errors
    assert not reading.unknown, reading.unknown
    return reading.obj


def manifest(api_version: str, kind: str, name: str, namespace: str = "default", **fields: Any) -> Manifest:
    """A manifest; `meta` goes into the metadata, everything else next to it."""
    scope = {"namespace": namespace} if namespace and by_kind(api_version, kind).namespaced else {}
    meta = {"name": name, **scope, **(fields.pop("meta", None) or {})}
    return {"apiVersion": api_version, "kind": kind, "metadata": meta, **given(fields)}


def given(fields: Mapping[str, Any]) -> Manifest:
    """Those that are not None."""
    return {name: value for name, value in fields.items() if value is not None}


def container(name: str = "main", *, cpu: str = "", **more: Any) -> Manifest:
    """A container, which asks for `cpu` if that is said."""
    resources = {"resources": {"requests": {"cpu": cpu}}} if cpu else {}
    return {"name": name, "image": "image", **resources, **more}


def pod_claim(name: str, *, claim: str = "", template: str = "") -> Manifest:
    """How a pod refers to a claim, or to the template of one."""
    return {"name": name, **({"resourceClaimName": claim} if claim else {"resourceClaimTemplateName": template})}


def pod(
    name: str = "p",
    *,
    namespace: str = "default",
    cpu: str = "",
    node: str = "",
    claims: Iterable[Manifest] = (),
    meta: Manifest | None = None,
    status: Manifest | None = None,
    **spec: Any,
) -> Manifest:
    """A pod with one container, on a node if one is named."""
    placed = {"nodeName": node} if node else {}
    used = {"resourceClaims": list(claims)} if claims else {}
    full = {"containers": [container(cpu=cpu)], **placed, **used, **spec}
    return manifest("v1", "Pod", name, namespace, meta=meta, spec=full, status=status)


def node(
    name: str = "node-1",
    *,
    labels: Mapping[str, str] | None = None,
    resources: Mapping[str, str] | None = None,
    status: Manifest | None = None,
    **spec: Any,
) -> Manifest:
    """A node that has so much of everything."""
    amounts = {} if resources is None else {"capacity": dict(resources), "allocatable": dict(resources)}
    meta = {} if labels is None else {"labels": dict(labels)}
    return manifest("v1", "Node", name, meta=meta, spec=spec, status={**amounts, **(status or {})})


def attribute(value: Any) -> Manifest:
    """The value of an attribute: an integer, a boolean, a text, a list of them, or written out."""
    if isinstance(value, dict):
        return value
    if isinstance(value, list):
        return {"strings" if isinstance(value[0], str) else "ints": value}
    return {{bool: "bool", int: "int", str: "string"}[type(value)]: value}


def device(name: str, attributes: Mapping[str, Any] | None = None, *, memory: str = "", **more: Any) -> Manifest:
    """A device with attributes that may be plain values."""
    values = {key: attribute(value) for key, value in (attributes or {}).items()}
    capacity = {"capacity": {"memory": {"value": memory}}} if memory else {}
    return {"name": name, **({"attributes": values} if values else {}), **capacity, **more}


def resource_slice(
    name: str,
    *devices: Manifest | str,
    driver: str = DRIVER,
    pool: str = "",
    generation: int = 1,
    count: int = 1,
    **spec: Any,
) -> Manifest:
    """A slice of the pool of its name, complete by itself and for node-1, unless something else is said."""
    place = {} if PLACES & spec.keys() else {"nodeName": "node-1"}
    listed = [device(one) if isinstance(one, str) else one for one in devices]
    about = {"name": pool or name, "generation": generation, "resourceSliceCount": count}
    content = {"devices": listed} if listed else {}
    return manifest(V1, "ResourceSlice", name, spec={"driver": driver, "pool": about, **place, **content, **spec})


def cel(*expressions: str) -> list[Manifest]:
    """Selectors."""
    return [{"cel": {"expression": expression}} for expression in expressions]


def device_class(name: str = "gpu", *expressions: str, **spec: Any) -> Manifest:
    """A class of the devices for which all expressions hold."""
    selectors = {"selectors": cel(*expressions)} if expressions else {}
    return manifest(V1, "DeviceClass", name, spec={**selectors, **spec})


def request(name: str = "r", **exactly: Any) -> Manifest:
    """A request for a device of class gpu, unless something else is said."""
    return {"name": name, "exactly": {"deviceClassName": "gpu", **exactly}}


def claim(
    name: str = "c",
    *requests: Manifest,
    namespace: str = "default",
    meta: Manifest | None = None,
    status: Manifest | None = None,
    **devices: Any,
) -> Manifest:
    """A claim with these requests; what else is said stands next to them."""
    spec = {"devices": {"requests": list(requests), **devices}}
    return manifest(V1, "ResourceClaim", name, namespace, meta=meta, spec=spec, status=status)


def claim_template(
    name: str, *requests: Manifest, namespace: str = "default", meta: Manifest | None = None, **devices: Any
) -> Manifest:
    """A template of claims with these requests; `meta` is for the claims."""
    spec = given({"metadata": meta, "spec": {"devices": {"requests": list(requests), **devices}}})
    return manifest(V1, "ResourceClaimTemplate", name, namespace, spec=spec)


def allocated(
    *devices: str, pool: str, request: str = "r", on: str = "", users: Mapping[str, str] | None = None, **result: Any
) -> Manifest:
    """The status of a claim that holds devices, on one node if it is named, for users (uids of pods by name)."""
    results = [{"request": request, "driver": DRIVER, "pool": pool, "device": name, **result} for name in devices]
    allocation: Manifest = {"devices": {"results": results}}
    if on:
        term = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": [on]}]}
        allocation["nodeSelector"] = {"nodeSelectorTerms": [term]}
    reserved = [{"resource": "pods", "name": name, "uid": uid} for name, uid in (users or {}).items()]
    return {"allocation": allocation, **({"reservedFor": reserved} if reserved else {})}


def taint(key: str, effect: str, **more: Any) -> Manifest:
    """A taint of a device or a node."""
    return {"key": key, "effect": effect, **given(more)}


def toleration(key: str, seconds: int | None = None, *, effect: str = "NoExecute", **more: Any) -> Manifest:
    """A toleration of a key, with or without an end."""
    return {"key": key, "operator": "Exists", "effect": effect, **given({"tolerationSeconds": seconds}), **more}


def taint_rule(name: str, selector: Manifest | None, tainted: Manifest, *, api_version: str = V1) -> Manifest:
    """A rule that puts a taint on what it selects; without a selector on nothing."""
    return manifest(api_version, "DeviceTaintRule", name, spec=given({"deviceSelector": selector, "taint": tainted}))


def slice_patch(name: str, attributes: Manifest, **criteria: Any) -> Manifest:
    """A patch of the attributes of the devices that meet all criteria."""
    devices = {"filter": criteria, "attributes": attributes}
    return manifest(V1ALPHA3, "ResourceSlicePatch", name, spec={"devices": devices})


def pod_template(labels: Mapping[str, str], **spec: Any) -> Manifest:
    """What pods with labels and one container are made from."""
    return {"metadata": {"labels": dict(labels)}, "spec": {"containers": [container()], **spec}}


def workload(
    name: str = "web",
    replicas: Any = None,
    *,
    kind: str = "Deployment",
    namespace: str = "default",
    meta: Manifest | None = None,
    containers: list[Manifest] | None = None,
    **spec: Any,
) -> Manifest:
    """A Deployment, or something like it, of pods with one container."""
    labels = {"app": name}
    template = pod_template(labels, **({"containers": containers} if containers else {}))
    full = given({"replicas": replicas, "selector": {"matchLabels": labels}, "template": template, **spec})
    return manifest("apps/v1", kind, name, namespace, meta=meta, spec=full)
