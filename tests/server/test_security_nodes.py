"""What a node may do on a running server: write what is its own, read what its pods need, and nothing else."""

import contextlib
import datetime as dt
import ssl
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from msgspec.structs import replace

from dray.api.generated.core import Pod
from dray.api.meta import DeleteOptions
from dray.api.registry import by_kind
from dray.api.resource import ResourceSlice
from dray.client.interface import PatchFormat
from dray.server.instance import Instance, ServerSettings
from dray.server.local import LocalClient
from dray.server.security.identity import NODES, authenticated
from local_server import LocalServer, local_server, refused, typed
from server_objects import binding, claim, node, node_slice, pod, role, rule, service_account

PODS = by_kind("v1", "Pod")
NODE_KIND = by_kind("v1", "Node")
SECRETS = by_kind("v1", "Secret")
ACCOUNTS = by_kind("v1", "ServiceAccount")
CLAIMS = by_kind("resource.k8s.io/v1", "ResourceClaim")
SLICES = by_kind("resource.k8s.io/v1", "ResourceSlice")
LEASES = by_kind("coordination.k8s.io/v1", "Lease")

OWN = authenticated("system:node:n1", (NODES,))


@contextlib.asynccontextmanager
async def server_with_nodes() -> AsyncIterator[tuple[LocalServer, LocalClient, LocalClient]]:
    """With an admin, and as node `n1`; there is a node `n2`, too, and a pod on each."""
    async with local_server() as server:
        admin = server.client()
        for name in ("n1", "n2"):
            await admin.create(node(name))
            await admin.create(pod(f"on-{name}", name))
        yield server, admin, server.client(OWN)


def lease(name: str, namespace: str = "kube-node-lease") -> Any:
    metadata = {"name": name, "namespace": namespace}
    return typed({"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": metadata})


async def test_a_node_writes_itself_and_its_pods_status() -> None:
    async with server_with_nodes() as (_, admin, n1):
        ready = {"status": {"conditions": [{"type": "Ready", "status": "True"}]}}
        await n1.patch(NODE_KIND, "", "n1", ready, subresource="status", format=PatchFormat.STRATEGIC)
        await refused(n1.patch(NODE_KIND, "", "n2", ready, subresource="status"), 'not allowed to modify node "n2"')
        await refused(n1.patch(NODE_KIND, "", "n1", {"spec": {"taints": None}}), "not allowed to modify taints")
        label = {"metadata": {"labels": {"node-restriction.kubernetes.io/x": "y"}}}
        await refused(n1.patch(NODE_KIND, "", "n1", label), "not allowed to modify labels")
        await refused(n1.create(node("n3")), 'not allowed to modify node "n3"')
        await refused(n1.delete(NODE_KIND, "", "n1"), "cannot delete")
        running = {"status": {"phase": "Running"}}
        await n1.patch(PODS, "default", "on-n1", running, subresource="status")
        await refused(n1.patch(PODS, "default", "on-n2", running, subresource="status"), "no relationship")
        await n1.delete(PODS, "default", "on-n1")
        await refused(n1.delete(PODS, "default", "on-n2"), "no relationship")
        await refused(n1.create(pod("mine", "n1")), "can only create mirror pods")
        assert isinstance(await admin.get(PODS, "default", "on-n2"), Pod)


async def test_a_node_evicts_its_own_pods_and_spends_no_budget_for_others() -> None:
    async with server_with_nodes() as (_, admin, n1):
        budgets = by_kind("policy/v1", "PodDisruptionBudget")
        metadata = {"name": "all", "namespace": "default"}
        budget = {"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": metadata}
        await admin.create(typed(budget | {"spec": {"selector": {}, "minAvailable": 1}}))
        allowed = {"status": {"disruptionsAllowed": 1, "observedGeneration": 1}}
        await admin.patch(budgets, "default", "all", allowed, subresource="status")
        for name in ("on-n1", "on-n2"):
            await admin.patch(PODS, "default", name, {"status": {"phase": "Running"}}, subresource="status")
        eviction: dict[str, Any] = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": "on-n2"}}
        await refused(n1.post(PODS, "default", "on-n2", "eviction", eviction), "can only evict pods")
        stored: Any = await admin.get(budgets, "default", "all")
        assert stored.status.disruptions_allowed == 1
        await n1.post(PODS, "default", "on-n1", "eviction", eviction | {"metadata": {"name": "on-n1"}})
        stored = await admin.get(budgets, "default", "all")
        assert stored.status.disruptions_allowed == 0


@pytest.mark.req("4381-178", "4381-123")
async def test_claims_are_read_only_for_nodes_even_with_a_role_for_them() -> None:
    async with server_with_nodes() as (_, admin, n1):
        await admin.create(claim("c"))
        await admin.create(pod("user", "n1", resourceClaims=[{"name": "r", "resourceClaimName": "c"}]))
        everything = rule("get update patch delete", "resourceclaims resourceclaims/status", "resource.k8s.io")
        for extra in (False, True):
            if extra:
                await admin.create(role("claims", everything))
                await admin.create(binding("claims", "claims", OWN.user))
            for patch, subresource in (({"metadata": {"labels": {"a": "b"}}}, ""), ({"status": {}}, "status")):
                why = "can only read ResourceClaims" if extra else "cannot patch"
                await refused(n1.patch(CLAIMS, "default", "c", patch, subresource=subresource), why)
            await refused(n1.delete(CLAIMS, "default", "c"), "can only read" if extra else "cannot delete")


@pytest.mark.req("SVS-63", "4381-179")
async def test_a_node_writes_slices_of_its_own() -> None:
    async with server_with_nodes() as (_, admin, n1):
        made = await n1.create(node_slice("a", "n1"))
        await n1.update(replace(made, spec=replace(made.spec, pool=replace(made.spec.pool, generation=2))))
        await refused(n1.create(node_slice("b", "n2")), "can only create ResourceSlice")
        await refused(n1.create(node_slice("c")), "can only create ResourceSlice")
        await admin.create(node_slice("d", "n2"))
        await refused(n1.delete(SLICES, "", "d"), "no relationship")
        patch = {"metadata": {"labels": {"a": "b"}}}
        await refused(n1.patch(SLICES, "", "d", patch), "no relationship")
        await n1.delete(SLICES, "", "a")


@pytest.mark.req("SVS-63", "4381-179")
async def test_a_node_does_not_speak_for_the_devices_of_another() -> None:
    """A slice of a higher generation in the pool of another node would make that node's devices obsolete."""

    def in_pool(name: str, place: str, pool: str, generation: int = 1) -> ResourceSlice:
        made = node_slice(name, place)
        wanted = replace(made.spec.pool, name=pool, generation=generation)
        return replace(made, spec=replace(made.spec, pool=wanted))

    async with server_with_nodes() as (_, admin, n1):
        await admin.create(in_pool("theirs", "n2", "second"))
        await refused(n1.create(in_pool("a", "n1", "n2", 9)), "has the name of another node")
        await refused(n1.create(in_pool("a", "n1", "second", 9)), 'ResourceSlice "theirs" in it is of node "n2"')
        await n1.create(in_pool("a", "n1", "first"))


async def test_a_node_reads_itself_its_pods_and_its_slices() -> None:
    async with server_with_nodes() as (_, admin, n1):
        for name in ("n1", "n2"):
            await admin.create(node_slice(f"of-{name}", name))
        await n1.get(NODE_KIND, "", "n1")
        await refused(n1.get(NODE_KIND, "", "n2"), 'cannot read "n2", only its own')
        await refused(n1.list(NODE_KIND), "cannot read all nodes, only its own")
        await n1.get(PODS, "default", "on-n1")
        await refused(n1.get(PODS, "default", "on-n2"), "no relationship")
        for selector in ("", "spec.nodeName=n2", "spec.nodeName!=n2"):
            await refused(n1.list(PODS, fields=selector), "with the field selector spec.nodeName=n1")
            await refused(n1.list(SLICES, fields=selector), "with the field selector spec.nodeName=n1")
        assert [pod.metadata.name for pod in (await n1.list(PODS, fields="spec.nodeName=n1")).items] == ["on-n1"]
        assert [one.metadata.name for one in (await n1.list(SLICES, fields="spec.nodeName=n1")).items] == ["of-n1"]
        await n1.get(SLICES, "", "of-n1")
        await refused(n1.get(SLICES, "", "of-n2"), "no relationship")
        await refused(n1.delete_collection(SLICES), "field selector")


async def test_a_node_learns_nothing_by_trying_to_change_what_is_not_its_own() -> None:
    """Whether a patch fits, or which field it may not change, would tell what is in an object."""
    async with server_with_nodes() as (_, admin, n1):
        await admin.create(node_slice("of-n2", "n2"))
        for kind, namespace, name, part in (
            (PODS, "default", "on-n2", "status"),
            (SLICES, "", "of-n2", ""),
            (NODE_KIND, "", "n2", "status"),
            (NODE_KIND, "", "n2", ""),
        ):
            for guess in ("right", "wrong"):
                test = [{"op": "test", "path": "/metadata/name", "value": name if guess == "right" else "x"}]
                patch = n1.patch(kind, namespace, name, test, subresource=part, format=PatchFormat.JSON)
                await refused(patch, "no relationship found|is not allowed to modify node")
        moved = node_slice("of-n2", "n1")
        await refused(n1.update(moved), "no relationship found")


async def test_a_node_resizes_the_volumes_of_its_own_pods() -> None:
    async with server_with_nodes() as (_, admin, n1):
        kind = by_kind("v1", "PersistentVolumeClaim")
        for name in ("n1", "n2"):
            metadata = {"name": f"disk-{name}", "namespace": "default"}
            wanted = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
            disk = {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": metadata, "spec": wanted}
            await admin.create(typed(disk))
            volume = {"name": "v", "persistentVolumeClaim": {"claimName": f"disk-{name}"}}
            await admin.create(pod(f"user-{name}", name, volumes=[volume]))
        grown = {"status": {"capacity": {"storage": "5Gi"}}}
        await n1.patch(kind, "default", "disk-n1", grown, subresource="status")
        await refused(n1.patch(kind, "default", "disk-n2", grown, subresource="status"), "no relationship found")


async def test_a_node_has_its_lease_and_no_other() -> None:
    async with server_with_nodes() as (_, admin, n1):
        made = await n1.create(lease("n1"))
        await n1.update(made)
        assert (await n1.get(LEASES, "kube-node-lease", "n1")).metadata.name == "n1"
        await refused(n1.create(lease("n2")), "same name as the requesting node")
        await refused(n1.create(lease("n1", "default")), "kube-node-lease")
        await admin.create(lease("n2"))
        await refused(n1.get(LEASES, "kube-node-lease", "n2"), "same name as the requesting node")


async def test_a_node_reads_what_its_pods_use() -> None:
    async with server_with_nodes() as (_, admin, n1):
        for name in ("used", "unused"):
            metadata = {"name": name, "namespace": "default"}
            await admin.create(typed({"apiVersion": "v1", "kind": "Secret", "metadata": metadata}))
            await admin.create(claim(name))
        why = "no relationship found"
        await refused(n1.get(SECRETS, "default", "used"), why)
        volume = {"name": "v", "secret": {"secretName": "used"}}
        user = pod("user", "n1", volumes=[volume], resourceClaims=[{"name": "r", "resourceClaimName": "used"}])
        await admin.create(user)
        await n1.get(SECRETS, "default", "used")
        await n1.get(CLAIMS, "default", "used")
        await n1.list(SECRETS, "default", fields="metadata.name=used")
        await refused(n1.get(SECRETS, "default", "unused"), why)
        await refused(n1.get(CLAIMS, "default", "unused"), why)
        await refused(n1.list(SECRETS, "default"), "individual resource")
        await admin.delete(PODS, "default", "user", DeleteOptions(grace_period_seconds=0))
        await refused(n1.get(SECRETS, "default", "used"), why)


async def test_a_node_gets_tokens_for_its_pods_only() -> None:
    async with server_with_nodes() as (_, admin, n1):
        await admin.create(service_account("sa"))
        tokens = {}
        for name in ("n1", "n2"):
            made = await admin.create(pod(f"with-{name}", name, serviceAccountName="sa"))
            bound = {"apiVersion": "v1", "kind": "Pod", "name": made.metadata.name, "uid": made.metadata.uid}
            tokens[name] = {"spec": {"boundObjectRef": bound}}
        issued = await n1.post(ACCOUNTS, "default", "sa", "token", tokens["n1"])
        assert issued["status"]["token"]
        await refused(n1.post(ACCOUNTS, "default", "sa", "token", tokens["n2"]), "different node")
        await refused(n1.post(ACCOUNTS, "default", "sa", "token", {"spec": {}}), "not bound to a pod")


async def test_a_node_without_a_name_may_do_nothing() -> None:
    async with server_with_nodes() as (server, _, _):
        nameless = server.client(authenticated("somebody", (NODES,)))
        await refused(nameless.create(node_slice("a", "n1")), "could not determine node")


@pytest.mark.req("SVS-63")
async def test_the_selector_of_a_collection_over_https_is_what_counts(tmp_path: Path) -> None:
    """With the node's own client certificate."""

    instance = Instance(ServerSettings(directory=tmp_path / "state", port=0))
    await instance.start()
    admin = instance.client_of(authenticated("root", ("system:masters",)))
    for name, place in (("a", "n1"), ("b", "n1"), ("c", "n2")):
        await admin.create(node_slice(name, place))
    tls = _node_tls(instance, tmp_path)
    url = f"{instance.url}/apis/resource.k8s.io/v1/resourceslices"
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(ssl=tls)) as session:
        async with session.delete(url, params={"fieldSelector": "spec.nodeName=n2"}) as answer:
            assert answer.status == 403
            assert "with the field selector spec.nodeName=n1" in (await answer.json())["message"]
        pod = f"{instance.url}/api/v1/namespaces/default/pods/elsewhere"
        async with session.get(pod, params={"fieldSelector": "spec.nodeName=n1"}) as answer:
            assert answer.status == 403, "a selector says nothing about a single object"
        async with session.delete(url, params={"fieldSelector": "spec.nodeName=n1"}) as answer:
            assert answer.status == 200
    left: list[Any] = list((await admin.list(SLICES)).items)
    assert [found.metadata.name for found in left if isinstance(found, ResourceSlice)] == ["c"]
    await instance.stop(0.1)


def _node_tls(instance: Instance, directory: Path) -> ssl.SSLContext:
    pair = instance.credentials.authority.issue_client_certificate(OWN.user, (NODES,), dt.datetime.now(dt.UTC))
    file = directory / "node.pem"
    file.write_bytes(pair.certificate + pair.key)
    context = ssl.create_default_context(cadata=instance.credentials.authority.pair.certificate.decode())
    context.load_cert_chain(file)
    return context
