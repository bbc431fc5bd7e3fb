"""Short forms for tests of evictions: devices, claims that hold them, and pods that use the claims."""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from controller_world import Manifest, World, manifest, pod, typed
from dray.api.resource import ResourceClaim
from dray.api.status import ApiError
from dray.process.clock import as_time

DRIVER = "gpu.example.com"
V1 = "resource.k8s.io/v1"
KEY = "example.com/broken"


def device_slice(name: str, /, *devices: str, driver: str = DRIVER, **spec: Any) -> Manifest:
    """A pool of one slice, unless the spec says something else about the `pool`."""
    entries = [{"name": device} for device in devices]
    full = {
        "driver": driver,
        "nodeName": "node-1",
        "pool": {"name": name, "generation": 1, "resourceSliceCount": 1},
        "devices": entries,
        **spec,
    }
    return manifest(V1, "ResourceSlice", f"{name}-slice", spec={k: v for k, v in full.items() if v != []})


def toleration(seconds: int | None = None, *, effect: str = "NoExecute", key: str = KEY) -> Manifest:
    """A toleration of a key, with or without an end."""
    found: Manifest = {"key": key, "operator": "Exists", "effect": effect}
    return found if seconds is None else {**found, "tolerationSeconds": seconds}


def taint(effect: str = "NoExecute", **more: Any) -> Manifest:
    """A taint of the usual key."""
    return {"key": KEY, "effect": effect, **more}


def rule(name: str = "rule", effect: str = "NoExecute", selector: Manifest | None = None, **more: Any) -> Manifest:
    """A rule; without a selector for all devices of the driver. `more` are fields of the taint."""
    spec = {"deviceSelector": {"driver": DRIVER} if selector is None else selector, "taint": taint(effect, **more)}
    return manifest(V1, "DeviceTaintRule", name, spec=spec)


async def use_devices(
    world: World,
    claim: str,
    *devices: str,
    pods: tuple[str, ...],
    pool: str = "pool",
    namespace: str = "default",
    tolerations: tuple[Manifest, ...] = (),
    pod_spec: Manifest | None = None,
) -> None:
    """Running pods that share a claim that holds devices, as the scheduler and a node would leave them."""
    request = {"name": "gpu", "exactly": {"deviceClassName": "gpu", "tolerations": list(tolerations)}}
    made = await world.create(
        manifest(V1, "ResourceClaim", claim, namespace, spec={"devices": {"requests": [request]}})
    )
    for name in pods:
        await run_pod(world, name, claim, namespace=namespace, **(pod_spec or {}))
    result = {"request": "gpu", "driver": DRIVER, "pool": pool, "tolerations": list(tolerations)}
    allocation = {"devices": {"results": [{**result, "device": device} for device in devices]}}
    uids = {name: (await world.get("pods", name, namespace)).metadata.uid for name in pods}
    reserved = [{"resource": "pods", "name": name, "uid": uid} for name, uid in uids.items()]
    held: ResourceClaim = typed(
        manifest(V1, "ResourceClaim", claim, status={"allocation": allocation, "reservedFor": reserved})
    )
    await world.admin.update(replace(made, status=held.status), subresource="status")


async def run_pod(world: World, name: str, claim: str = "", *, namespace: str = "default", **spec: Any) -> Any:
    """A running pod on node-1 (unless the spec says another), that uses a claim if one is named."""
    claims = {"resourceClaims": [{"name": "gpu", "resourceClaimName": claim}]} if claim else {}
    await world.create(pod(name, namespace=namespace, **{"nodeName": "node-1", **claims, **spec}))
    return await world.patch("pods", name, {"status": {"phase": "Running"}}, "status", namespace)


async def leaving(world: World, namespace: str = "default") -> set[str]:
    """The names of pods that are gone from the running ones: marked as being deleted."""
    return {one.metadata.name for one in await world.objects("pods", namespace) if one.metadata.deletion_timestamp}


async def ensure_namespace(world: World, name: str) -> None:
    """A namespace that may be there already."""
    try:
        await world.create(manifest("v1", "Namespace", name))
    except ApiError as error:
        assert error.code == 409, error


def ago(world: World, seconds: float) -> str:
    """A moment in the past, as the API writes it."""
    return str(as_time(world.clock.now() - seconds))
