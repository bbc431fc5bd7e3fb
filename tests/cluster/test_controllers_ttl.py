"""Jobs that are to go after they have finished do so: then, not before, and not if somebody changes their mind."""

import contextlib
from collections.abc import AsyncIterator
from typing import Any

from controller_world import Manifest, World, controller_world, manifest

TTL = "ttl-after-finished-controller"


@contextlib.asynccontextmanager
async def ttl_world() -> AsyncIterator[World]:
    async with controller_world("job-controller", TTL, "garbage-collector-controller") as world:
        yield world


def job(name: str, **spec: Any) -> Manifest:
    template = {"spec": {"restartPolicy": "Never", "containers": [{"name": "main", "image": "busybox"}]}}
    return manifest("batch/v1", "Job", name, spec={"template": template, **spec})


async def finish(world: World, phase: str = "Succeeded") -> None:
    """Ends all pods, as nodes would."""
    for pod in await world.objects("pods"):
        await world.patch("pods", pod.metadata.name, {"status": {"phase": phase}}, "status")
    await world.settle()


async def jobs(world: World) -> set[str]:
    return {one.metadata.name for one in await world.objects("jobs")}


async def test_a_job_goes_when_its_time_is_over_and_its_pods_with_it() -> None:
    async with ttl_world() as world:
        await world.create(job("short", ttlSecondsAfterFinished=60), job("kept"))
        await world.settle()
        await world.settle(300)
        assert await jobs(world) == {"short", "kept"}  # it has not finished
        await finish(world)
        await world.settle(50)
        assert await jobs(world) == {"short", "kept"}
        await world.settle(15)
        assert await jobs(world) == {"kept"}
        assert [pod.metadata.owner_references[0].name for pod in await world.objects("pods")] == ["kept"]


async def test_a_failed_job_goes_too_and_at_once_if_it_says_so() -> None:
    async with ttl_world() as world:
        await world.create(job("now", ttlSecondsAfterFinished=0, backoffLimit=0))
        await world.settle()
        await finish(world, "Failed")
        await world.settle(5)
        assert await jobs(world) == set()


async def test_more_time_is_more_time() -> None:
    async with ttl_world() as world:
        await world.create(job("longer", ttlSecondsAfterFinished=60))
        await world.settle()
        await finish(world)
        await world.patch("jobs", "longer", {"spec": {"ttlSecondsAfterFinished": 600}})
        await world.settle(300)
        assert await jobs(world) == {"longer"}
        await world.settle(310)
        assert await jobs(world) == set()
