"""The client over HTTPS against a real server: verbs, watches, versions, identities."""

import asyncio
import contextlib
import datetime as dt
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from dray.api.generated.authentication import SelfSubjectReview
from dray.api.generated.core import ConfigMap
from dray.api.meta import DeleteOptions, ObjectMeta, Preconditions
from dray.api.registry import by_kind
from dray.api.resource import (
    Device,
    DeviceClaim,
    DeviceRequest,
    DeviceTaint,
    DeviceTaintRule,
    DeviceTaintRuleSpec,
    DeviceTaintSelector,
    ExactDeviceRequest,
    ResourceClaim,
    ResourceClaimSpec,
    ResourcePool,
    ResourceSlice,
    ResourceSliceSpec,
)
from dray.api.status import ApiError
from dray.client import Client, Informer, PatchFormat, WatchEvent
from dray.client.http import HttpClient
from dray.client.kubeconfig import Connection, load_kubeconfig
from dray.server.instance import Instance, ServerSettings
from dray.server.security.kubeconfig import client_kubeconfig
from patience import PATIENCE, eventually_async

CONFIG_MAPS = by_kind("v1", "ConfigMap")
CLAIMS = by_kind("resource.k8s.io/v1", "ResourceClaim")
SLICES = by_kind("resource.k8s.io/v1", "ResourceSlice")
RULES = by_kind("resource.k8s.io/v1beta2", "DeviceTaintRule")
CLUSTERS = by_kind("cluster.open-cluster-management.io/v1", "ManagedCluster")
PODS = by_kind("v1", "Pod")


@contextlib.asynccontextmanager
async def running_server(
    directory: Path, *, disabled: frozenset[str] = frozenset()
) -> AsyncIterator[tuple[Instance, HttpClient]]:
    instance = Instance(ServerSettings(directory=directory / "state", port=0, disabled_versions=disabled))
    try:
        await instance.start()
        async with HttpClient(load_kubeconfig([instance.kubeconfig])) as client:
            yield instance, client
    finally:
        await instance.stop(0.1)


def config_map(name: str, **data: str) -> ConfigMap:
    return ConfigMap(kind="ConfigMap", api_version="v1", metadata=ObjectMeta(name=name, namespace="default"), data=data)


def claim(name: str) -> ResourceClaim:
    request = DeviceRequest(name="gpu", exactly=ExactDeviceRequest(device_class_name="gpu.example.com"))
    return ResourceClaim(
        kind="ResourceClaim",
        api_version="resource.k8s.io/v1",
        metadata=ObjectMeta(name=name, namespace="default"),
        spec=ResourceClaimSpec(devices=DeviceClaim(requests=(request,))),
    )


def node_slice(name: str) -> ResourceSlice:
    spec = ResourceSliceSpec(
        driver="gpu.example.com",
        node_name="node-1",
        pool=ResourcePool(name="pool", generation=1, resource_slice_count=1),
        devices=(Device(name="gpu-0"),),
    )
    return ResourceSlice(
        kind="ResourceSlice", api_version="resource.k8s.io/v1", metadata=ObjectMeta(name=name), spec=spec
    )


async def test_the_verbs(tmp_path: Path) -> None:
    async with running_server(tmp_path) as (_, client):
        made = await client.create(config_map("a", x="1"))
        assert made.metadata.uid
        assert await client.get(CONFIG_MAPS, "default", "a") == made
        changed = await client.update(replace(made, data={"x": "2"}))
        assert changed.data == {"x": "2"}
        with pytest.raises(ApiError) as stale:
            await client.update(replace(made, data={"x": "3"}))
        assert (stale.value.code, stale.value.reason) == (409, "Conflict")
        patched = await client.patch(CONFIG_MAPS, "default", "a", {"data": {"y": "4"}})
        assert isinstance(patched, ConfigMap)
        assert patched.data == {"x": "2", "y": "4"}
        with pytest.raises(ApiError) as twice:
            await client.create(config_map("a"))
        assert twice.value.reason == "AlreadyExists"
        other_uid = DeleteOptions(preconditions=Preconditions(uid="somebody-else"))
        with pytest.raises(ApiError) as guarded:
            await client.delete(CONFIG_MAPS, "default", "a", other_uid)
        assert guarded.value.code == 409
        await client.delete(CONFIG_MAPS, "default", "a")
        with pytest.raises(ApiError) as gone:
            await client.get(CONFIG_MAPS, "default", "a")
        assert (gone.value.code, gone.value.reason) == (404, "NotFound")


@pytest.mark.req("4381-126")
async def test_writes_for_a_claim_that_was_replaced_meanwhile_are_refused(tmp_path: Path) -> None:
    async with running_server(tmp_path) as (_, client):
        first = await client.create(claim("c"))
        await client.delete(CLAIMS, "default", "c")
        second = await client.create(claim("c"))
        held = ("resource.kubernetes.io/delete-protection",)
        for revision in ("", first.metadata.resource_version, second.metadata.resource_version):
            meta = replace(first.metadata, finalizers=held, resource_version=revision)
            with pytest.raises(ApiError) as refused:
                await client.update(replace(first, metadata=meta))
            assert refused.value.code == 409
        stale = {"uid": (first.metadata.uid, 422), "resourceVersion": (first.metadata.resource_version, 409)}
        for name, (value, code) in stale.items():
            patch = {"metadata": {name: value, "finalizers": list(held)}}
            with pytest.raises(ApiError) as refused:
                await client.patch(CLAIMS, "default", "c", patch)
            assert refused.value.code == code
        assert await client.get(CLAIMS, "default", "c") == second


async def test_server_side_apply_and_subresources(tmp_path: Path) -> None:
    async with running_server(tmp_path) as (_, client):
        applied = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "b"}, "data": {"k": "v"}}
        made = await client.patch(
            CONFIG_MAPS, "default", "b", applied, format=PatchFormat.APPLY, field_manager="tests", force=True
        )
        assert [entry.manager for entry in made.metadata.managed_fields] == ["tests"]
        pod = {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": "p"},
            "spec": {"containers": [{"name": "c", "image": "i"}]},
        }
        await client.patch(PODS, "default", "p", pod, format=PatchFormat.APPLY, field_manager="tests")
        answer = await client.post(PODS, "default", "p", "binding", {"target": {"kind": "Node", "name": "node-1"}})
        assert answer["status"] == "Success"
        running = await client.patch(PODS, "default", "p", {"status": {"phase": "Running"}}, subresource="status")
        assert running.metadata.name == "p"


async def test_lists_are_read_in_pages_and_selected(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dray.client.http.PAGE", 3)

    async with running_server(tmp_path) as (_, client):
        for number in range(8):
            made = config_map(f"m{number}")
            await client.create(replace(made, metadata=replace(made.metadata, labels={"even": str(number % 2 == 0)})))
        listing = await client.list(CONFIG_MAPS, "default", labels="even")
        assert [obj.metadata.name for obj in listing.items] == [f"m{number}" for number in range(8)]
        assert {(obj.kind, obj.api_version) for obj in listing.items} == {("ConfigMap", "v1")}
        assert int(listing.revision) >= int(listing.items[-1].metadata.resource_version)
        assert len((await client.list(CONFIG_MAPS, labels="even=True")).items) == 4
        assert len((await client.list(CONFIG_MAPS, "default", fields="metadata.name=m3")).items) == 1


async def test_a_watch_tells_changes(tmp_path: Path) -> None:
    async with running_server(tmp_path) as (_, client):
        start = (await client.list(CONFIG_MAPS, "default")).revision
        seen: list[tuple[str, str]] = []

        async def follow() -> None:
            async for event in client.watch(CONFIG_MAPS, "default", revision=start):
                seen.append((event.type, event.object.metadata.name))
                if event.type == "DELETED":
                    return

        task = asyncio.get_running_loop().create_task(follow())
        made = await client.create(config_map("w"))
        await client.update(replace(made, data={"x": "y" * 100_000}))
        await client.delete(CONFIG_MAPS, "default", "w")
        await asyncio.wait_for(task, PATIENCE)
        assert seen == [("ADDED", "w"), ("MODIFIED", "w"), ("DELETED", "w")]


@pytest.mark.parametrize("bind", ["127.0.0.1", "0.0.0.0"])
async def test_a_server_is_trusted_at_every_address_of_this_machine(tmp_path: Path, bind: str) -> None:
    """What it writes into its kubeconfig first of all, wherever it listens."""
    instance = Instance(ServerSettings(directory=tmp_path / "state", port=0, bind=bind))
    await instance.start()
    try:
        connection = load_kubeconfig([instance.kubeconfig])
        port = instance.url.rpartition(":")[2]
        for server in (connection.server, f"https://127.0.0.1:{port}", f"https://localhost:{port}"):
            async with HttpClient(replace(connection, server=server)) as client:
                assert await client.server_version()
    finally:
        await instance.stop(0.1)


async def test_an_informer_survives_a_restart_of_the_server(tmp_path: Path) -> None:
    first = Instance(ServerSettings(directory=tmp_path / "state", port=0))
    await first.start()
    port = int(first.url.rsplit(":", 1)[1])
    async with HttpClient(load_kubeconfig([first.kubeconfig])) as client:
        await client.create(config_map("before"))
        informer: Informer[ConfigMap] = Informer(client, CONFIG_MAPS, namespace="default", sleep=asyncio.sleep)
        task = asyncio.get_running_loop().create_task(informer.run())
        await asyncio.wait_for(informer.synced(), PATIENCE)
        await first.stop(0.1)
        second = Instance(ServerSettings(directory=tmp_path / "state", port=port))
        await second.start()
        await client.create(config_map("after"))
        await eventually_async(lambda: informer.get("default", "after"))
        assert {obj.metadata.name for obj in informer} == {"before", "after"}
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
    await second.stop(0.1)


@pytest.mark.req("4381-214")
@pytest.mark.parametrize("served", ["v1", "v1beta2", "v1beta1"])
async def test_the_newest_version_that_both_sides_know_is_used(tmp_path: Path, served: str) -> None:
    disabled = frozenset(f"resource.k8s.io/{version}" for version in ("v1", "v1beta2", "v1beta1") if version != served)

    async with running_server(tmp_path, disabled=disabled) as (_, client):
        made = await client.create(node_slice("s"))
        assert made.spec.devices == (Device(name="gpu-0"),)
        assert made.api_version == "resource.k8s.io/v1"
        two = (Device(name="gpu-0"), Device(name="gpu-1"))
        await client.update(replace(made, spec=replace(made.spec, devices=two)))
        listing = await client.list(SLICES)
        assert [obj.spec.devices for obj in listing.items if isinstance(obj, ResourceSlice)] == [two]
        asked = await client.create(claim("c"))
        assert asked.spec.devices.requests[0].exactly is not None
        patched = await client.patch(CLAIMS, "default", "c", {"metadata": {"labels": {"a": "b"}}})
        assert patched.metadata.labels == {"a": "b"}
        event: WatchEvent | None = None
        async for found in client.watch(CLAIMS, revision=asked.metadata.resource_version):
            event = found
            break
        assert event is not None
        assert isinstance(event.object, ResourceClaim)
        assert event.object.spec == asked.spec


@pytest.mark.req("4381-214")
async def test_a_version_with_another_shape_refuses_patches_of_the_spec(tmp_path: Path) -> None:
    disabled = frozenset({"resource.k8s.io/v1", "resource.k8s.io/v1beta2"})

    async with running_server(tmp_path, disabled=disabled) as (_, client):
        await client.create(node_slice("s"))
        patches: list[Any] = [{"spec": {"devices": []}}, [{"op": "remove", "path": "/spec/devices/0"}]]
        for patch in patches:
            with pytest.raises(ApiError, match="update the object instead"):
                await client.patch(SLICES, "", "s", patch)


async def test_a_kind_in_no_known_version_is_said(tmp_path: Path) -> None:
    disabled = frozenset(f"resource.k8s.io/{version}" for version in RULES.versions) | {"dray.dev/v1alpha1"}

    async with running_server(tmp_path, disabled=disabled) as (_, client):
        with pytest.raises(ApiError, match="no DeviceTaintRule in a version that dray knows") as missing:
            await client.list(RULES)
        assert missing.value.code == 404
        assert str(missing.value).endswith("dray install can bring it, and dray doctor says how")


async def test_a_kind_of_one_version_that_is_not_there_is_said(tmp_path: Path) -> None:
    async with running_server(tmp_path, disabled=frozenset({CLUSTERS.api_version})) as (_, client):
        with pytest.raises(ApiError, match="the server has no ManagedCluster in a version that dray knows"):
            await client.list(CLUSTERS)


async def test_a_kind_that_is_only_there_in_our_own_group_is_used_as_itself(tmp_path: Path) -> None:
    taint = DeviceTaint(key="k", effect="NoSchedule", evictions_per_second=3)
    rule = DeviceTaintRule(
        kind="DeviceTaintRule",
        api_version=RULES.api_version,
        metadata=ObjectMeta(name="r"),
        spec=DeviceTaintRuleSpec(device_selector=DeviceTaintSelector(device_class_name="gpu"), taint=taint),
    )
    disabled = frozenset(f"resource.k8s.io/{version}" for version in RULES.versions)
    async with running_server(tmp_path, disabled=disabled) as (_, client):
        made = await client.create(rule)
        assert (made.api_version, made.spec.device_selector) == (RULES.api_version, rule.spec.device_selector)
        await client.patch(RULES, "", "r", {"spec": {"taint": {"value": "v"}}})
        (found,) = (await client.list(RULES)).items
        assert isinstance(found, DeviceTaintRule)
        assert (found.api_version, found.spec.taint.value) == (RULES.api_version, "v")
        data = await client._transport.request("GET", "/apis/dray.dev/v1alpha1/devicetaintrules/r")
        assert b'"apiVersion":"dray.dev/v1alpha1"' in data


async def test_client_certificates_and_impersonation(tmp_path: Path) -> None:
    async with running_server(tmp_path) as (instance, _):
        now = dt.datetime.now(dt.UTC)
        config = tmp_path / "node.kubeconfig"
        data = client_kubeconfig(instance.credentials.authority, instance.url, "system:node:n1", ("system:nodes",), now)
        config.write_bytes(data)
        who = SelfSubjectReview(kind="SelfSubjectReview", api_version="authentication.k8s.io/v1")
        async with HttpClient(load_kubeconfig([config])) as node:
            asked = await node.create(who)
            assert asked.status.user_info.username == "system:node:n1"
            with pytest.raises(ApiError) as refused:
                await node.create(config_map("mine"))
            assert (refused.value.code, refused.value.reason) == (403, "Forbidden")
        admin = load_kubeconfig([instance.kubeconfig])
        headers = (("Impersonate-User", "jane"), ("Impersonate-Group", "a"), ("Impersonate-Group", "b"))
        async with HttpClient(replace(admin, headers=headers)) as jane:
            info = (await jane.create(who)).status.user_info
            assert (info.username, set(info.groups)) == ("jane", {"a", "b", "system:authenticated"})
        async with HttpClient(replace(admin, token="wrong")) as nobody:
            with pytest.raises(ApiError) as unknown:
                await nobody.create(who)
            assert unknown.value.code == 401


async def test_a_server_by_another_authority_is_not_trusted(tmp_path: Path) -> None:
    async with running_server(tmp_path) as (instance, _):
        admin = load_kubeconfig([instance.kubeconfig])
        async with HttpClient(replace(admin, authority=None)) as careful:
            with pytest.raises(OSError, match="certificate"):
                await careful.list(CONFIG_MAPS)
        async with HttpClient(replace(admin, authority=None, verify=False)) as careless:
            found = await careless.list(CONFIG_MAPS, "default")
            assert not found.items


async def test_an_unreachable_server_is_an_oserror() -> None:
    async with HttpClient(Connection(server="http://127.0.0.1:1")) as client:
        with pytest.raises(OSError, match=r"127\.0\.0\.1:1"):
            await client.list(CONFIG_MAPS)
        with pytest.raises(OSError, match=r"127\.0\.0\.1:1"):
            async for _ in client.watch(CONFIG_MAPS, revision="1"):
                pass


def _is_client(client: HttpClient) -> Client:
    """mypy checks that the protocol is implemented."""
    return client
