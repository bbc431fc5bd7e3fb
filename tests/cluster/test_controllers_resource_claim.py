"""Claims live and die with their pods: the claim controller on a real server, with only its own rights."""

import contextlib
from collections.abc import AsyncIterator
from typing import Any

import pytest

import builders
from controller_world import Manifest, World, controller_world, manifest, pod
from dray.api.extended_resources import CLAIM_ANNOTATION
from dray.api.resource.claim import FINALIZER
from local_server import local_server, typed

RESOURCE = "resource.k8s.io/v1"
NAME = "resourceclaim-controller"
DEVICES: Manifest = {"requests": [{"name": "r", "exactly": {"deviceClassName": "gpu"}}]}
ALLOCATION: Manifest = {
    "devices": {"results": [{"request": "r", "driver": "gpu.example.com", "pool": "p", "device": "d"}]}
}


def template(name: str = "gpu") -> Manifest:
    meta = {"labels": {"team": "ml"}, "annotations": {"note": "kept"}}
    return builders.claim_template(name, builders.request(), meta=meta)


def claim(name: str = "shared") -> Manifest:
    return builders.claim(name, builders.request(), meta={"finalizers": [FINALIZER]})


def with_template(name: str = "p", **more: Any) -> Manifest:
    return pod(name, resourceClaims=[{"name": "dev", "resourceClaimTemplateName": "gpu"}], **more)


def with_claim(name: str = "p", claim_name: str = "shared") -> Manifest:
    return pod(name, resourceClaims=[{"name": "dev", "resourceClaimName": claim_name}])


async def allocate(world: World, name: str, *pods: Any, **consumer: str) -> None:
    """Plays the scheduler."""
    users = [{"resource": "pods", "name": one.metadata.name, "uid": one.metadata.uid} for one in pods]
    if consumer:
        users.append({"name": "x", "uid": "x", **consumer})
    await world.patch("resourceclaims", name, {"metadata": {"finalizers": [FINALIZER]}})
    await world.patch("resourceclaims", name, {"status": {"allocation": ALLOCATION, "reservedFor": users}}, "status")


@contextlib.asynccontextmanager
async def resource_claim_world() -> AsyncIterator[World]:
    async with controller_world(NAME) as world:
        yield world


@pytest.mark.req("4381-71", "4381-75", "4381-78", "4381-133", "4381-143", "SVS-59", "5055-22", "4381-70")
async def test_a_claim_is_made_from_the_template() -> None:
    async with resource_claim_world() as world:
        made_from = template()
        toleration = {"key": "example.com/worn", "operator": "Exists"}
        exactly = {"deviceClassName": "gpu", "tolerations": [toleration]}
        made_from["spec"]["spec"] = {"devices": {"requests": [{"name": "r", "exactly": exactly}]}}
        await world.create(made_from, with_template())
        await world.settle()
        (made,) = await world.objects("resourceclaims")
        assert made.metadata.name.startswith("p-dev-")
        assert len(made.metadata.name) == len("p-dev-") + 5
        assert made.metadata.annotations == {"note": "kept", "resource.kubernetes.io/pod-claim-name": "dev"}
        assert made.metadata.labels == {"team": "ml"}
        wanted = made.spec.devices.requests[0].exactly
        assert (wanted.device_class_name, [one.key for one in wanted.tolerations]) == ("gpu", ["example.com/worn"])
        assert made.spec == (await world.get("resourceclaimtemplates", "gpu")).spec.spec
        stored = await world.get("pods", "p")
        (owner,) = made.metadata.owner_references
        assert (owner.kind, owner.uid, owner.controller) == ("Pod", stored.metadata.uid, True)
        (status,) = stored.status.resource_claim_statuses
        assert (status.name, status.resource_claim_name) == ("dev", made.metadata.name)


@pytest.mark.req("4381-237")
async def test_a_pod_costs_one_create_and_one_status_write() -> None:
    async with resource_claim_world() as world:
        await world.create(template())
        await world.settle()
        before = world.server.store.revision
        for number in range(20):
            await world.create(with_template(f"p{number}"))
        await world.settle()
        assert world.server.store.revision - before == 20 * 3
        assert len(await world.objects("resourceclaims")) == 20


@pytest.mark.req("4381-144")
async def test_a_missing_template_is_told_and_its_creation_unblocks() -> None:
    async with resource_claim_world() as world:
        await world.create(with_template())
        await world.settle()
        ((reason, message),) = await world.events("p")
        assert reason == "FailedResourceClaimCreation"
        assert "gpu" in message
        assert await world.objects("resourceclaims") == []
        await world.create(template())
        await world.settle()
        assert len(await world.objects("resourceclaims")) == 1


@pytest.mark.req("4381-77", "4381-69")
async def test_a_later_template_of_that_name_changes_nothing() -> None:
    async with resource_claim_world() as world:
        await world.create(template(), with_template())
        await world.settle()
        await world.delete("resourceclaimtemplates", "gpu")
        other = template()
        other["spec"]["spec"] = {"devices": {"requests": [{"name": "r", "exactly": {"deviceClassName": "fpga"}}]}}
        await world.create(other)
        await world.settle()
        (made,) = await world.objects("resourceclaims")
        assert made.spec.devices.requests[0].exactly.device_class_name == "gpu"


async def test_a_generated_claim_that_somebody_deletes_is_made_again() -> None:
    async with resource_claim_world() as world:
        await world.create(template(), with_template())
        await world.settle()
        (first,) = await world.objects("resourceclaims")
        await world.delete("resourceclaims", first.metadata.name)
        await world.settle()
        (second,) = await world.objects("resourceclaims")
        assert second.metadata.uid != first.metadata.uid
        stored = await world.get("pods", "p")
        assert stored.status.resource_claim_statuses[0].resource_claim_name == second.metadata.name


@pytest.mark.req("4381-135")
@pytest.mark.parametrize("is_bound", [False, True])
async def test_a_claim_that_is_not_the_pods_own_is_a_conflict(is_bound: bool) -> None:
    """It is told, and a pod that waits for a node gets a claim of its own as soon as its template is there."""
    async with resource_claim_world() as world:
        await world.create(claim("foreign"), with_template(**({"nodeName": "n"} if is_bound else {})))
        statuses = {"resourceClaimStatuses": [{"name": "dev", "resourceClaimName": "foreign"}]}
        await world.patch("pods", "p", {"status": statuses}, "status")
        await world.settle()
        reasons = await world.events("p")
        assert any("was not created for Pod default/p" in message for _, message in reasons)
        await world.create(template())
        await world.settle()
        stored = await world.get("pods", "p")
        name = stored.status.resource_claim_statuses[0].resource_claim_name
        if is_bound:
            assert [one.metadata.name for one in await world.objects("resourceclaims")] == ["foreign"] == [name]
        else:
            assert (await world.get("resourceclaims", name)).metadata.owner_references[0].uid == stored.metadata.uid
            assert await world.get("resourceclaims", "foreign") is not None


@pytest.mark.req("4381-135", "4381-126")
async def test_an_earlier_pod_of_that_name_keeps_its_claim_to_itself() -> None:
    async with resource_claim_world() as world:
        await world.create(template(), with_template())
        await world.settle()
        (first,) = await world.objects("resourceclaims")
        await world.delete("pods", "p")
        await world.create(with_template())
        await world.settle()
        second = await world.get("pods", "p")
        name = second.status.resource_claim_statuses[0].resource_claim_name
        assert name != first.metadata.name
        (owner,) = (await world.get("resourceclaims", name)).metadata.owner_references
        assert owner.uid == second.metadata.uid


@pytest.mark.req("4381-136", "4381-138", "4381-139", "4381-234")
@pytest.mark.parametrize("phase", ["Succeeded", "Failed"])
async def test_a_finished_pod_releases_its_claim(phase: str) -> None:
    async with resource_claim_world() as world:
        user = await world.create(claim(), with_claim())
        await allocate(world, "shared", user)
        await world.settle()
        assert (await world.get("resourceclaims", "shared")).status.allocation is not None
        await world.patch("pods", "p", {"status": {"phase": phase}}, "status")
        await world.settle()
        released = await world.get("resourceclaims", "shared")
        assert released.status.allocation is None
        assert released.status.reserved_for == ()
        assert released.metadata.finalizers == ()


@pytest.mark.req("4381-134", "4381-136", "4381-138")
async def test_a_deleted_pod_releases_a_claim_that_stays() -> None:
    async with resource_claim_world() as world:
        user = await world.create(claim(), with_claim())
        await allocate(world, "shared", user)
        await world.delete("pods", "p")
        await world.settle()
        left = await world.get("resourceclaims", "shared")
        assert left.status.allocation is None


@pytest.mark.req("4381-234", "4381-136")
async def test_a_shared_claim_stays_allocated_for_the_others() -> None:
    async with resource_claim_world() as world:
        first = await world.create(claim(), with_claim("a"))
        second = await world.create(with_claim("b"))
        await allocate(world, "shared", first, second)
        await world.delete("pods", "a")
        await world.settle()
        left = await world.get("resourceclaims", "shared")
        assert [one.name for one in left.status.reserved_for] == ["b"]
        assert left.status.allocation is not None


@pytest.mark.req("4381-59", "4381-61", "4381-137")
async def test_consumers_that_are_no_pods_are_left_alone() -> None:
    async with resource_claim_world() as world:
        user = await world.create(claim(), with_claim())
        await allocate(world, "shared", user, resource="things", apiGroup="example.com")
        await world.delete("pods", "p")
        await world.settle()
        left = await world.get("resourceclaims", "shared")
        assert [one.resource for one in left.status.reserved_for] == ["things"]
        assert left.status.allocation is not None


@pytest.mark.req("4381-140", "4381-124", "4381-125", "4381-104")
async def test_a_deleted_claim_that_nobody_uses_goes() -> None:
    async with resource_claim_world() as world:
        await world.create(claim("plain"), claim("allocated"))
        await world.patch("resourceclaims", "allocated", {"status": {"allocation": ALLOCATION}}, "status")
        for name in ("plain", "allocated"):
            await world.delete("resourceclaims", name)
        await world.settle()
        assert await world.objects("resourceclaims") == []


@pytest.mark.req("4381-131", "4381-141")
async def test_a_deleted_claim_that_is_used_stays_until_its_pod_ends() -> None:
    async with resource_claim_world() as world:
        user = await world.create(claim(), with_claim())
        await allocate(world, "shared", user)
        await world.delete("resourceclaims", "shared")
        await world.settle()
        assert (await world.get("resourceclaims", "shared")).status.allocation is not None
        await world.patch("pods", "p", {"status": {"phase": "Succeeded"}}, "status")
        await world.settle()
        assert await world.get("resourceclaims", "shared") is None


@pytest.mark.req("4381-139")
async def test_the_generated_claim_of_a_finished_pod_is_deleted() -> None:
    async with resource_claim_world() as world:
        user = await world.create(template(), with_template())
        await world.settle()
        (made,) = await world.objects("resourceclaims")
        await allocate(world, made.metadata.name, user)
        await world.patch("pods", "p", {"status": {"phase": "Succeeded"}}, "status")
        await world.settle()
        assert await world.objects("resourceclaims") == []


async def test_a_pod_that_was_put_on_a_node_by_hand_is_reserved_what_is_allocated() -> None:
    async with resource_claim_world() as world:
        first = await world.create(claim(), with_claim("first"))
        await allocate(world, "shared", first)
        await world.create({**with_claim("second"), "spec": {**with_claim()["spec"], "nodeName": "node-1"}})
        await world.settle()
        users = (await world.get("resourceclaims", "shared")).status.reserved_for
        assert [one.name for one in users] == ["first", "second"]


async def test_a_controller_that_was_down_finds_what_it_missed() -> None:
    async with controller_world(NAME) as world:
        user = await world.create(claim(), with_claim())
        await allocate(world, "shared", user)
        await world.create(template(), with_template("q"))
        await world.settle()
        (made,) = [one for one in await world.objects("resourceclaims") if one.metadata.name != "shared"]
        world.manager.controllers.clear()
        server = world.server
        async with controller_world(server=server) as other:  # nobody runs
            await other.delete("pods", "p")
            await other.patch("pods", "q", {"status": {"resourceClaimStatuses": None}}, "status")
        async with controller_world(NAME, server=server) as again:
            await again.settle()
            assert (await again.get("resourceclaims", "shared")).status.allocation is None
            stored = await again.get("pods", "q")
            assert stored.status.resource_claim_statuses[0].resource_claim_name == made.metadata.name


@pytest.mark.req("4381-189", "4381-190", "4381-191", "4381-192", "SVS-58")
async def test_metrics() -> None:
    async with resource_claim_world() as world:
        user = await world.create(claim(), template(), with_template())
        await world.settle()
        await allocate(world, "shared", user)
        await world.settle()
        assert world.metric("resourceclaim_controller_resource_claims") == 2
        assert world.metric("resourceclaim_controller_allocated_resource_claims") == 1
        assert world.metric("resourceclaim_controller_create_total") == 1
        assert world.metric("resourceclaim_controller_create_failures_total") == 0
        assert world.metric("workqueue_depth", name="resource_claim") == 0
        assert (world.metric("workqueue_adds_total", name="resource_claim") or 0) > 0
        labels = {"allocated": "true", "admin_access": "false", "source": ""}
        assert world.metric("dynamic_resource_allocation_resource_claims", **labels) == 1
        made = {"status": "success", "admin_access": "false", "owner_api_group": "", "owner_api_kind": "Pod"}
        assert world.metric("dynamic_resource_allocation_resourceclaim_creates_total", **made) == 1


@pytest.mark.req("4381-191")
async def test_a_claim_that_cannot_be_made_is_counted_and_told() -> None:
    async with resource_claim_world() as world:
        quota = manifest("v1", "ResourceQuota", "q", spec={"hard": {"count/resourceclaims.resource.k8s.io": "0"}})
        await world.create(quota, template())
        status = {
            "hard": {"count/resourceclaims.resource.k8s.io": "0"},
            "used": {"count/resourceclaims.resource.k8s.io": "0"},
        }
        await world.patch("resourcequotas", "q", {"status": status}, "status")
        await world.create(with_template())
        await world.settle(0.5)
        assert (world.metric("resourceclaim_controller_create_failures_total") or 0) > 1
        assert any("exceeded quota" in message for _, message in await world.events("p"))


def asking(name: str = "p") -> Manifest:
    amounts = {"example.com/gpu": "1"}
    return pod(name, containers=[{"name": "c", "image": "i", "resources": {"requests": amounts, "limits": amounts}}])


async def made_for(world: World, owner: Any, name: str) -> None:
    """As a scheduler makes them for extended resources."""
    reference = {"apiVersion": "v1", "kind": "Pod", "name": owner.metadata.name, "uid": owner.metadata.uid}
    annotations = {"resource.kubernetes.io/extended-resource-claim": "true"}
    meta = {"annotations": annotations, "ownerReferences": [{**reference, "controller": True}]}
    await world.create({**claim(name), "metadata": {**claim(name)["metadata"], **meta}})


async def name_extended(world: World, name: str) -> None:
    mapping = {"containerName": "c", "resourceName": "example.com/gpu", "requestName": "r"}
    status = {"extendedResourceClaimStatus": {"resourceClaimName": name, "requestMappings": [mapping]}}
    await world.patch("pods", "p", {"status": status}, "status")


async def test_the_claim_for_extended_resources_goes_when_its_pod_has_finished() -> None:
    async with resource_claim_world() as world:
        await world.create(asking())
        owner = await world.get("pods", "p")
        await made_for(world, owner, "made")
        await allocate(world, "made", owner)
        await name_extended(world, "made")
        await world.settle()
        assert [one.metadata.name for one in await world.objects("resourceclaims")] == ["made"]
        await world.patch("pods", "p", {"status": {"phase": "Succeeded"}}, "status")
        await world.settle()
        assert await world.objects("resourceclaims") == []


async def test_a_second_claim_for_extended_resources_goes() -> None:
    async with resource_claim_world() as world:
        await world.create(asking())
        owner = await world.get("pods", "p")
        await made_for(world, owner, "first")
        await made_for(world, owner, "second")
        await world.settle()
        assert len(await world.objects("resourceclaims")) == 2  # nobody knows which one the scheduler means
        await allocate(world, "second", owner)
        await name_extended(world, "second")
        await world.settle()
        assert [one.metadata.name for one in await world.objects("resourceclaims")] == ["second"]


async def test_what_a_pod_got_for_extended_resources_is_free_when_it_goes_before_its_status_names_it() -> None:
    async with resource_claim_world() as world:
        owner = await world.create(pod("p"))
        made = claim("p-extended-resources-x")
        made["metadata"] |= {
            "annotations": {CLAIM_ANNOTATION: "true"},
            "ownerReferences": [
                {"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": owner.metadata.uid, "controller": True}
            ],
        }
        await world.create(made)
        await allocate(world, "p-extended-resources-x", owner)
        await world.settle()
        assert (await world.get("resourceclaims", "p-extended-resources-x")).status.reserved_for
        await world.delete("pods", "p")
        await world.settle()
        left = (await world.get("resourceclaims", "p-extended-resources-x")).status
        assert (left.reserved_for, left.allocation) == ((), None)


async def test_after_a_start_nothing_is_looked_at_twice_for_which_nothing_is_to_do() -> None:
    async with local_server() as server:
        async with controller_world(NAME, server=server) as world:
            await world.create(template(), *(with_template(f"p{number}") for number in range(5)))
            await world.settle()
            for number in range(5):
                owner = await world.get("pods", f"p{number}")
                (status,) = owner.status.resource_claim_statuses
                await allocate(world, status.resource_claim_name, owner)
            await world.settle()
        await server.client().create(typed(with_template("late")))
        async with controller_world(NAME, server=server) as world:
            await world.settle()
            controller: Any = world.manager.controllers[NAME]
            assert controller.queue.adds == 1, "the pod that came meanwhile"
            assert len(await world.objects("resourceclaims")) == 6
            assert world.metric("resourceclaim_controller_resource_claims") == 6
