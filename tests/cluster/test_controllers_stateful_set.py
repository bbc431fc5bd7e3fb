"""A StatefulSet has numbered pods with names and volume claims of their own, made, renewed and deleted in order."""

import contextlib
from collections.abc import AsyncIterator
from typing import Any

import pytest

from controller_world import Manifest, World, controller_world, manifest, pod


@contextlib.asynccontextmanager
async def stateful_world() -> AsyncIterator[World]:
    wanted = ("statefulset-controller", "garbage-collector-controller", "persistentvolumeclaim-protection-controller")
    async with controller_world(*wanted) as world:
        yield world


def stateful_set(replicas: int = 3, **spec: Any) -> Manifest:
    template = {"metadata": {"labels": {"app": "db"}}, "spec": {"containers": [{"name": "main", "image": "v1"}]}}
    selector = {"matchLabels": {"app": "db"}}
    full = {"replicas": replicas, "serviceName": "db", "selector": selector, "template": template, **spec}
    return manifest("apps/v1", "StatefulSet", "db", spec=full)


async def images(world: World) -> dict[str, str]:
    return {one.metadata.name: one.spec.containers[0].image for one in await world.objects("pods")}


async def make_ready(world: World, *names: str) -> None:
    for name in names:
        ready = {"type": "Ready", "status": "True", "lastTransitionTime": str(world.server.engine.clock())}
        await world.patch("pods", name, {"status": {"phase": "Running", "conditions": [ready]}}, "status")
    await world.settle()


async def run(world: World, replicas: int = 3, **spec: Any) -> None:
    """A set whose pods are all ready."""
    await world.create(stateful_set(replicas, **spec))
    for _ in range(replicas + 1):
        await world.settle()
        await make_ready(
            world, *[one.metadata.name for one in await world.objects("pods") if not one.status.conditions]
        )


async def set_image(world: World, image: str) -> None:
    containers = [{"name": "main", "image": image}]
    await world.patch("statefulsets", "db", {"spec": {"template": {"spec": {"containers": containers}}}})
    await world.settle()


async def test_pods_come_one_after_the_other_and_know_who_they_are() -> None:
    async with stateful_world() as world:
        await world.create(stateful_set(2, ordinals={"start": 5}))
        await world.settle(5)
        (first,) = await world.objects("pods")
        assert (first.metadata.name, first.spec.hostname, first.spec.subdomain) == ("db-5", "db-5", "db")
        (revision,) = await world.objects("controllerrevisions")
        assert first.metadata.labels == {
            "app": "db",
            "controller-revision-hash": revision.metadata.name,
            "statefulset.kubernetes.io/pod-name": "db-5",
            "apps.kubernetes.io/pod-index": "5",
        }
        await make_ready(world, "db-5")
        assert list(await images(world)) == ["db-5", "db-6"]
        await make_ready(world, "db-6")
        status = (await world.get("statefulsets", "db")).status
        assert (status.replicas, status.ready_replicas, status.available_replicas) == (2, 2, 2)
        assert (status.current_revision, status.update_revision) == (revision.metadata.name,) * 2
        assert ("SuccessfulCreate", "Create Pod db-5 in StatefulSet db successful") in await world.events("db")


async def test_parallel_pods_come_and_go_at_once() -> None:
    async with stateful_world() as world:
        await world.create(stateful_set(3, podManagementPolicy="Parallel"))
        await world.settle()
        assert list(await images(world)) == ["db-0", "db-1", "db-2"]
        await world.patch("statefulsets", "db", {"spec": {"replicas": 1}})
        await world.settle()
        assert list(await images(world)) == ["db-0"]


async def test_scaling_down_starts_at_the_highest_and_waits_for_ill_ones() -> None:
    async with stateful_world() as world:
        await run(world)
        ready = {"type": "Ready", "status": "False"}
        await world.patch("pods", "db-0", {"status": {"conditions": [ready]}}, "status")
        await world.patch("statefulsets", "db", {"spec": {"replicas": 1}})
        await world.settle(3)
        assert len(await images(world)) == 3
        await make_ready(world, "db-0")
        await world.settle(3)
        assert list(await images(world)) == ["db-0"]


async def test_a_new_template_spreads_from_the_highest_number_down_to_the_partition() -> None:
    async with stateful_world() as world:
        rolling = {"type": "RollingUpdate", "rollingUpdate": {"partition": 1}}
        await run(world, updateStrategy=rolling)
        await set_image(world, "v2")
        await world.settle()
        assert await images(world) == {"db-0": "v1", "db-1": "v1", "db-2": "v2"}
        status = (await world.get("statefulsets", "db")).status
        assert status.current_revision != status.update_revision
        await make_ready(world, "db-2")
        await make_ready(world, "db-1")
        assert await images(world) == {"db-0": "v1", "db-1": "v2", "db-2": "v2"}
        # Below the partition even a pod that has to be made anew is made from the template before.
        await world.delete("pods", "db-0")
        await world.settle()
        assert (await images(world))["db-0"] == "v1"
        await make_ready(world, "db-0")
        await world.patch("statefulsets", "db", {"spec": {"updateStrategy": {"rollingUpdate": {"partition": 0}}}})
        await world.settle()
        await make_ready(world, "db-0")
        assert set((await images(world)).values()) == {"v2"}
        status = (await world.get("statefulsets", "db")).status
        assert (status.current_revision, status.current_replicas) == (status.update_revision, 3)


@pytest.mark.parametrize(("limit", "away"), [(2, 2), ("67%", 2), ("1%", 1)])
async def test_as_many_pods_are_renewed_at_once_as_may_be_away(limit: int | str, away: int) -> None:
    async with stateful_world() as world:
        rolling = {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": limit}}
        await run(world, podManagementPolicy="Parallel", updateStrategy=rolling)
        await set_image(world, "v2")
        await world.settle()
        assert list((await images(world)).values()) == ["v1"] * (3 - away) + ["v2"] * away


async def test_on_delete_waits_for_somebody() -> None:
    async with stateful_world() as world:
        await run(world, 2, updateStrategy={"type": "OnDelete"})
        await set_image(world, "v2")
        assert await images(world) == {"db-0": "v1", "db-1": "v1"}
        await world.delete("pods", "db-0")
        await world.settle()
        assert await images(world) == {"db-0": "v2", "db-1": "v1"}


async def test_a_failed_pod_is_made_anew_and_others_of_the_labels_are_left_alone() -> None:
    async with stateful_world() as world:
        await world.create(pod("stranger", meta={"labels": {"app": "db"}}))
        await run(world, 1)
        before = (await world.get("pods", "db-0")).metadata.uid
        await world.patch("pods", "db-0", {"status": {"phase": "Failed"}}, "status")
        await world.settle()
        assert (await world.get("pods", "db-0")).metadata.uid != before
        assert not (await world.get("pods", "stranger")).metadata.owner_references


@pytest.mark.parametrize("policy", ["OrderedReady", "Parallel"])
async def test_a_pod_that_fails_again_and_again_is_made_anew_later_and_later(policy: str) -> None:
    async with stateful_world() as world:
        await world.create(stateful_set(1, podManagementPolicy=policy))
        seen = set()
        for _ in range(64):
            await world.settle(1)
            for one in await world.objects("pods"):
                seen.add(one.metadata.uid)
                if one.status.phase != "Failed":
                    await world.patch("pods", one.metadata.name, {"status": {"phase": "Failed"}}, "status")
        assert 4 <= len(seen) <= 9


async def test_ready_for_long_enough_counts() -> None:
    async with stateful_world() as world:
        await world.create(stateful_set(2, minReadySeconds=30))
        await world.settle()
        await make_ready(world, "db-0")
        await world.settle(20)
        assert list(await images(world)) == ["db-0"]
        await world.settle(20)
        assert list(await images(world)) == ["db-0", "db-1"]


@pytest.mark.parametrize(
    ("policy", "scaled", "deleted"),
    [
        ({}, ["data-db-0", "data-db-1"], ["data-db-0", "data-db-1"]),
        ({"whenScaled": "Delete"}, ["data-db-0"], ["data-db-0"]),
        ({"whenDeleted": "Delete"}, ["data-db-0", "data-db-1"], []),
        ({"whenScaled": "Delete", "whenDeleted": "Delete"}, ["data-db-0"], []),
    ],
)
async def test_volume_claims_stay_or_go_as_the_policy_says(
    policy: Manifest, scaled: list[str], deleted: list[str]
) -> None:
    claim = {
        "metadata": {"name": "data"},
        "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
    }
    async with stateful_world() as world:
        await run(world, 2, volumeClaimTemplates=[claim], persistentVolumeClaimRetentionPolicy=policy)
        claims = await world.objects("persistentvolumeclaims")
        assert [one.metadata.name for one in claims] == ["data-db-0", "data-db-1"]
        (volume,) = [one for one in (await world.get("pods", "db-0")).spec.volumes if one.name == "data"]
        assert volume.persistent_volume_claim.claim_name == "data-db-0"
        await world.patch("statefulsets", "db", {"spec": {"replicas": 1}})
        await world.settle(3)
        assert [one.metadata.name for one in await world.objects("persistentvolumeclaims")] == scaled
        await world.delete("statefulsets", "db")
        await world.settle(3)
        assert [one.metadata.name for one in await world.objects("persistentvolumeclaims")] == deleted
