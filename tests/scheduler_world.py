"""A scheduler on a real (in-memory) server, with its own rights and a clock that the test moves."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable
from typing import Any

from msgspec.structs import replace

from dray.api.generated.core import Pod
from dray.api.registry import by_kind
from dray.api.resource import ResourceClaim
from dray.api.status import ApiError
from dray.scheduler.scheduler import FILTER_SECONDS, Scheduler
from local_server import LocalServer, local_server, typed

PODS = by_kind("v1", "Pod")
NODES = by_kind("v1", "Node")
CLAIMS = by_kind("resource.k8s.io/v1", "ResourceClaim")
EVENTS = by_kind("v1", "Event")
RULES = by_kind("resource.k8s.io/v1", "DeviceTaintRule")
DRIVER = "gpu.example.com"


class Recorder:
    """A client that remembers writes and can be told to fail them."""

    def __init__(self, client: Any) -> None:
        self._client = client
        self.writes: list[str] = []
        self.fail: Callable[[str], ApiError | None] = lambda _write: None

    def __getattr__(self, name: str) -> Any:
        return getattr(self._client, name)

    def _note(self, write: str) -> None:
        self.writes.append(write)
        error = self.fail(write)
        if error is not None:
            raise error

    async def update(self, obj: Any, subresource: str = "") -> Any:
        self._note(f"update {obj.kind}/{subresource}" if subresource else f"update {obj.kind}")
        return await self._client.update(obj, subresource)

    async def update_with_status(self, obj: Any) -> Any:
        """With two writes, as over HTTP."""
        stored = await self.update(obj)
        return await self.update(replace(stored, status=obj.status), "status")

    async def bind_with_claims(self, _pod: Any, _node: str, _claims: Any) -> None:
        """Nothing: one by one, as over HTTP."""

    async def post(self, kind: Any, namespace: str, name: str, subresource: str, body: Any) -> Any:
        self._note(f"post {subresource}")
        return await self._client.post(kind, namespace, name, subresource, body)


class World:
    """A server, a scheduler and what tests ask about them."""

    def __init__(
        self, server: LocalServer, disabled_gates: frozenset[str] = frozenset(), filter_seconds: float = FILTER_SECONDS
    ) -> None:
        self.server = server
        self.clock = server.clock
        self.admin = server.client()
        self.client = Recorder(server.component("kube-scheduler"))
        self.scheduler = Scheduler(
            self.client, server.clock, disabled_gates=disabled_gates, filter_seconds=filter_seconds
        )

    async def add(self, api_version: str, kind: str, name: str, namespace: str = "", **fields: Any) -> Any:
        meta = {"name": name, "namespace": namespace} if namespace else {"name": name}
        return await self.create({"apiVersion": api_version, "kind": kind, "metadata": meta, **fields})

    async def create(self, manifest: dict[str, Any]) -> Any:
        return await self.admin.create(typed(manifest))

    async def add_node(
        self, name: str, *devices: Any, taints: Any = None, labels: dict[str, str] | None = None
    ) -> None:
        await self.create({"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "labels": labels or {}}})
        await self.admin.patch(NODES, "", name, {"spec": {"taints": taints}})
        status = {"allocatable": {"cpu": "4", "memory": "8Gi", "pods": "20"}}
        await self.admin.patch(NODES, "", name, {"status": status}, subresource="status")
        if devices:
            pool = {"name": name, "generation": 1, "resourceSliceCount": 1}
            entries = [{"name": device} if isinstance(device, str) else device for device in devices]
            spec = {"driver": DRIVER, "nodeName": name, "pool": pool, "devices": entries}
            await self.add("resource.k8s.io/v1", "ResourceSlice", f"{name}-gpus", spec=spec)

    async def add_class(self) -> None:
        selector = {"cel": {"expression": f'device.driver == "{DRIVER}"'}}
        await self.add("resource.k8s.io/v1", "DeviceClass", "gpu", spec={"selectors": [selector]})

    async def add_claim(self, name: str, **exactly: Any) -> None:
        wanted = {"deviceClassName": "gpu", "allocationMode": "ExactCount", "count": 1, **exactly}
        spec = {"devices": {"requests": [{"name": "r", "exactly": wanted}]}}
        await self.add("resource.k8s.io/v1", "ResourceClaim", name, "default", spec=spec)

    async def add_pod(self, name: str, *claims: str, **spec: Any) -> None:
        references = [{"name": claim, "resourceClaimName": claim} for claim in claims]
        containers = [{"name": "c", "image": "i"}]
        await self.add(
            "v1", "Pod", name, "default", spec={"containers": containers, "resourceClaims": references, **spec}
        )

    async def pod(self, name: str) -> Pod:
        found = await self.admin.get(PODS, "default", name)
        assert isinstance(found, Pod)
        return found

    async def claim(self, name: str) -> ResourceClaim:
        found = await self.admin.get(CLAIMS, "default", name)
        assert isinstance(found, ResourceClaim)
        return found

    async def release(self, claim: ResourceClaim) -> None:
        """As the claim controller does when the last pod that used a claim is gone."""
        status = replace(claim.status, allocation=None, reserved_for=(), devices=())
        await self.admin.update(replace(claim, status=status), "status")

    async def patch_claim(self, name: str, status: dict[str, Any]) -> None:
        await self.admin.patch(CLAIMS, "default", name, {"status": status}, subresource="status")

    async def label_node(self, name: str, labels: dict[str, str]) -> None:
        await self.admin.patch(NODES, "", name, {"metadata": {"labels": labels}})

    async def message(self, name: str) -> str:
        conditions = (await self.pod(name)).status.conditions
        return next((found.message for found in conditions if found.type == "PodScheduled"), "")

    async def settle(self, seconds: float = 0.5) -> None:
        await self.clock.advance(seconds, turns=80)


@contextlib.asynccontextmanager
async def scheduler_world(*disabled_gates: str, filter_seconds: float = FILTER_SECONDS) -> AsyncIterator[World]:
    """A running scheduler, which is ended afterwards."""
    async with local_server() as server:
        made = World(server, frozenset(disabled_gates), filter_seconds)
        task = asyncio.get_running_loop().create_task(made.scheduler.run())
        try:
            yield made
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
