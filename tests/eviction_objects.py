"""Short forms for tests of evictions: devices, claims that hold them, and pods that use the claims."""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

import builders
from builders import DRIVER, V1, Manifest, manifest, pod, typed
from controller_world import World
from dray.api.resource import ResourceClaim
from dray.api.status import ApiError
from dray.process.clock import as_time

KEY = "example.com/broken"

__all__ = (
    "DRIVER",
    "KEY",
    "V1",
    "ago",
    "device_slice",
    "ensure_namespace",
    "leaving",
    "rule",
    "run_pod",
    "taint",
    "toleration",
    "use_devices",
)


def device_slice(name: str, /, *devices: Manifest | str, driver: str = DRIVER, **spec: Any) -> Manifest:
    """A pool of one slice, unless the spec says something else about the `pool`."""
    about = {"pool": spec.pop("pool")} if "pool" in spec else {}
    made = builders.resource_slice(f"{name}-slice", *devices, driver=driver, pool=name, **spec)
    return {**made, "spec": {**made["spec"], **about}}


def toleration(seconds: int | None = None, *, effect: str = "NoExecute", key: str = KEY) -> Manifest:
    """A toleration of a key, with or without an end."""
    return builders.toleration(key, seconds, effect=effect)


def taint(effect: str = "NoExecute", **more: Any) -> Manifest:
    """A taint of the usual key."""
    return builders.taint(KEY, effect, **more)


def rule(name: str = "rule", effect: str = "NoExecute", selector: Manifest | None = None, **more: Any) -> Manifest:
    """A rule; without a selector for all devices of the driver. `more` are fields of the taint."""
    return builders.taint_rule(name, {"driver": DRIVER} if selector is None else selector, taint(effect, **more))


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
    wanted = builders.request("gpu", tolerations=list(tolerations))
    made = await world.create(builders.claim(claim, wanted, namespace=namespace))
    for name in pods:
        await run_pod(world, name, claim, namespace=namespace, **(pod_spec or {}))
    users = {name: (await world.get("pods", name, namespace)).metadata.uid for name in pods}
    status = builders.allocated(*devices, pool=pool, request="gpu", users=users, tolerations=list(tolerations))
    held = typed(manifest(V1, "ResourceClaim", claim, status=status), ResourceClaim)
    await world.admin.update(replace(made, status=held.status), subresource="status")


async def run_pod(world: World, name: str, claim: str = "", *, namespace: str = "default", **spec: Any) -> Any:
    """A running pod on node-1 (unless the spec says another), that uses a claim if one is named."""
    claims = [builders.pod_claim("gpu", claim=claim)] if claim else []
    await world.create(pod(name, namespace=namespace, claims=claims, **{"nodeName": "node-1", **spec}))
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
