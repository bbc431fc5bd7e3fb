"""Simulated nodes on a real server in memory, on a clock that the tests move."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from typing import Any

import pytest

from controller_world import Manifest, find_kind, manifest, pod, typed
from dray.api.meta import DeleteOptions
from dray.api.status import ApiError
from dray.process.clock import as_time
from dray.reconcile.informers import Informers
from dray.simulation import Profile, Simulator, load_profile, register
from dray.simulation.profile_files import parse_profile
from dray.simulation.registration import RegistrationError
from local_server import LocalServer, local_server

RESOURCE = "resource.k8s.io/v1"


class Scene:
    """A server and the simulator on it."""

    def __init__(self, server: LocalServer) -> None:
        self.server = server
        self.client = server.client()
        self.informers = Informers(self.client, server.clock)
        self.simulator = Simulator(self.client, server.clock, self.informers)

    async def register(self, profile: Profile, count: int) -> None:
        """Machines of a profile, ready."""
        await register(self.client, profile, count, as_time(self.server.clock.now()))
        await self.pass_time(0.1)

    async def pass_time(self, seconds: float = 0.1) -> None:
        """Time goes by, and everybody works."""
        await self.server.clock.advance(seconds, turns=40)

    async def all(self, plural: str) -> list[Any]:
        """All objects of a kind."""
        return list((await self.client.list(find_kind(plural))).items)

    async def get(self, plural: str, name: str, namespace: str = "default") -> Any:
        """An object, None if there is none."""
        kind = find_kind(plural)
        try:
            return await self.client.get(kind, namespace if kind.namespaced else "", name)
        except ApiError as error:
            assert error.code == 404
            return None

    async def create(self, *manifests: Manifest) -> None:
        """Creates objects, and lets the simulator see them."""
        for one in manifests:
            await self.client.create(typed(one))
        await self.pass_time()

    async def patch(self, plural: str, name: str, patch: Any, subresource: str = "") -> None:
        """Merges a patch, and lets the simulator see it."""
        kind = find_kind(plural)
        await self.client.patch(kind, "default" if kind.namespaced else "", name, patch, subresource=subresource)
        await self.pass_time()


@contextlib.asynccontextmanager
async def running(server: LocalServer) -> AsyncIterator[Scene]:
    scene = Scene(server)
    tasks = [asyncio.create_task(work) for work in (scene.informers.run(), scene.simulator.run())]
    await scene.pass_time()
    try:
        yield scene
    finally:
        for task in tasks:
            task.cancel()
        for task in tasks:
            with contextlib.suppress(asyncio.CancelledError):
                await task


@contextlib.asynccontextmanager
async def running_simulator() -> AsyncIterator[Scene]:
    async with local_server(with_roles=False) as server, running(server) as scene:
        yield scene


def on_node(name: str = "p", node: str = "node-1", **more: Any) -> Manifest:
    return pod(name, nodeName=node, restartPolicy="Never", **more)


async def test_nodes_become_ready_without_taint_with_devices_and_heartbeats() -> None:
    async with running_simulator() as scene:
        await scene.register(load_profile("gpu-8"), 3)
        nodes = await scene.all("nodes")
        assert [node.metadata.name for node in nodes] == ["node-1", "node-2", "node-3"]
        assert [node.spec.taints for node in nodes] == [(), (), ()]
        ready = [{one.type: one.status for one in node.status.conditions}["Ready"] for node in nodes]
        assert ready == ["True"] * 3
        slices = await scene.all("resourceslices")
        assert {one.spec.node_name: len(one.spec.devices) for one in slices} == {f"node-{n}": 8 for n in (1, 2, 3)}
        assert {one.metadata.owner_references[0].uid for one in slices} == {node.metadata.uid for node in nodes}
        await scene.pass_time(2)
        before = {lease.metadata.name: lease.spec.renew_time for lease in await scene.all("leases")}
        assert set(before) == {"node-1", "node-2", "node-3"}
        await scene.pass_time(11)
        after = {lease.metadata.name: lease.spec.renew_time for lease in await scene.all("leases")}
        assert all(after[name] > renewed for name, renewed in before.items())


async def test_registering_again_changes_nothing() -> None:
    async with running_simulator() as scene:
        await scene.register(load_profile("network-fpga"), 2)
        before = [(one.metadata.name, one.metadata.resource_version) for one in await scene.all("resourceslices")]
        nodes = [(one.metadata.uid, one.metadata.resource_version) for one in await scene.all("nodes")]
        await scene.register(load_profile("network-fpga"), 2)
        assert [
            (one.metadata.name, one.metadata.resource_version) for one in await scene.all("resourceslices")
        ] == before
        assert [(one.metadata.uid, one.metadata.resource_version) for one in await scene.all("nodes")] == nodes


async def test_another_profile_replaces_the_devices_as_a_new_generation() -> None:
    async with running_simulator() as scene:
        await scene.register(load_profile("mig"), 1)
        await scene.register(load_profile("gpu-8"), 1)
        (made,) = await scene.all("resourceslices")
        assert (len(made.spec.devices), made.spec.pool.generation, made.spec.pool.resource_slice_count) == (8, 2, 1)
        await scene.register(load_profile("cpu-only"), 1)
        assert await scene.all("resourceslices") == []
        (node,) = await scene.all("nodes")
        assert node.metadata.annotations["dray.dev/profile"] == "cpu-only"


async def test_a_real_node_of_that_name_is_not_taken_over() -> None:
    async with running_simulator() as scene:
        await scene.create(manifest("v1", "Node", "node-1"))
        with pytest.raises(RegistrationError, match="node node-1 that is not simulated"):
            await scene.register(load_profile("cpu-only"), 1)


async def test_a_pod_runs_finishes_and_is_removed_when_deleted() -> None:
    async with running_simulator() as scene:
        await scene.register(load_profile("cpu-only"), 1)
        await scene.create(on_node(meta={"annotations": {"dray.dev/run-seconds": "60", "dray.dev/exit-code": "2"}}))
        assert (await scene.get("pods", "p")).status.phase == "Running"
        await scene.pass_time(61)
        assert (await scene.get("pods", "p")).status.phase == "Failed"
        await scene.client.delete(find_kind("pods"), "default", "p")
        await scene.pass_time()
        assert await scene.get("pods", "p") is None


async def test_a_running_pod_is_stopped_gracefully() -> None:
    async with running_simulator() as scene:
        await scene.register(load_profile("cpu-only"), 1)
        await scene.create(on_node(meta={"annotations": {"dray.dev/stop-seconds": "5"}}))
        await scene.client.delete(find_kind("pods"), "default", "p", DeleteOptions(grace_period_seconds=30))
        await scene.pass_time(2)
        assert (await scene.get("pods", "p")).metadata.deletion_timestamp is not None
        await scene.pass_time(5)
        assert await scene.get("pods", "p") is None


async def test_pods_have_addresses_of_their_own() -> None:
    async with running_simulator() as scene:
        await scene.register(load_profile("cpu-only"), 2)
        await scene.create(*(on_node(f"p-{n}", f"node-{n % 2 + 1}") for n in range(20)))
        pods = await scene.all("pods")
        assert len({one.status.pod_ip for one in pods}) == 20
        assert {one.status.host_ip for one in pods} == {"172.16.0.1", "172.16.0.2"}


async def test_a_pod_that_was_put_where_its_host_port_is_taken_is_rejected() -> None:
    async with running_simulator() as scene:
        await scene.register(load_profile("cpu-only"), 2)
        port: dict[str, Any] = {
            "containers": [{"name": "c", "image": "i", "ports": [{"containerPort": 1, "hostPort": 80}]}]
        }
        await scene.create(on_node("first", **port), on_node("second", **port), on_node("third", "node-2", **port))
        phases = {name: (await scene.get("pods", name)).status for name in ("first", "second", "third")}
        assert {name: status.phase for name, status in phases.items()} == {
            "first": "Running",
            "second": "Failed",
            "third": "Running",
        }
        assert phases["second"].reason == "NodePorts"


@pytest.mark.req("implied-14")
async def test_a_pod_waits_for_its_claim_and_says_so() -> None:
    async with running_simulator() as scene:
        await scene.register(load_profile("gpu-8"), 1)
        requests = [{"name": "gpu", "exactly": {"deviceClassName": "gpu.example.com"}}]
        await scene.create(
            manifest(RESOURCE, "ResourceClaim", "c", spec={"devices": {"requests": requests}}),
            on_node(resourceClaims=[{"name": "gpu", "resourceClaimName": "c"}]),
        )
        await scene.pass_time(5)
        waiting = await scene.get("pods", "p")
        assert waiting.status.phase == "Pending"
        (event,) = await scene.all("events")
        assert (event.reason, event.count) == ("FailedPrepareDynamicResources", 1)
        assert "ResourceClaim c is not allocated" in event.message
        device = {"request": "gpu", "driver": "gpu.example.com", "pool": "node-1", "device": "gpu-0"}
        user = {"resource": "pods", "name": "p", "uid": waiting.metadata.uid}
        status = {"allocation": {"devices": {"results": [device]}}, "reservedFor": [user]}
        await scene.patch(
            "resourceclaims", "c", {"metadata": {"finalizers": ["resource.kubernetes.io/delete-protection"]}}
        )
        await scene.patch("resourceclaims", "c", {"status": status}, "status")
        assert (await scene.get("pods", "p")).status.phase == "Running"


async def test_a_stopped_node_falls_silent_and_goes_on_when_started() -> None:
    async with running_simulator() as scene:
        await scene.register(load_profile("cpu-only"), 1)
        await scene.pass_time(2)
        await scene.patch("nodes", "node-1", {"metadata": {"annotations": {"dray.dev/simulated-state": "stopped"}}})
        (lease,) = await scene.all("leases")
        not_ready = [{"type": "Ready", "status": "Unknown"}]
        await scene.patch("nodes", "node-1", {"status": {"conditions": not_ready}}, "status")
        await scene.create(on_node())
        await scene.pass_time(60)
        assert (await scene.all("leases"))[0].spec.renew_time == lease.spec.renew_time
        assert (await scene.get("pods", "p")).status.phase == "Pending"
        await scene.patch("nodes", "node-1", {"metadata": {"annotations": {"dray.dev/simulated-state": None}}})
        await scene.pass_time(2)
        assert (await scene.all("leases"))[0].spec.renew_time > lease.spec.renew_time
        assert (await scene.get("pods", "p")).status.phase == "Running"
        (node,) = await scene.all("nodes")
        assert {one.type: one.status for one in node.status.conditions}["Ready"] == "True"


async def test_pods_of_other_nodes_are_left_alone() -> None:
    async with running_simulator() as scene:
        await scene.register(load_profile("cpu-only"), 1)
        await scene.create(manifest("v1", "Node", "real"), on_node(node="real"))
        await scene.pass_time(5)
        assert (await scene.get("pods", "p")).status.phase == "Pending"
        assert [taint.key for taint in (await scene.get("nodes", "real")).spec.taints] == [
            "node.kubernetes.io/not-ready"
        ]


async def test_a_bad_annotation_is_told_in_an_event() -> None:
    async with running_simulator() as scene:
        await scene.register(load_profile("cpu-only"), 1)
        await scene.create(on_node(meta={"annotations": {"dray.dev/run-seconds": "soon"}}))
        assert (await scene.get("pods", "p")).status.phase == "Running"
        (event,) = await scene.all("events")
        assert event.reason == "InvalidAnnotation"


async def test_nodes_and_pods_go_on_after_a_restart_without_the_profile() -> None:
    async with local_server(with_roles=False) as server:
        async with running(server) as scene:
            profile = parse_profile(b"pods: {runSeconds: 100}", "p", "p")
            await scene.register(profile, 2)
            await scene.create(on_node())
            await scene.pass_time(10)
        await server.clock.advance(200)
        async with running(server) as scene:
            await scene.pass_time(2)
            assert scene.simulator.count == 2
            assert (await scene.get("pods", "p")).status.phase == "Succeeded"
