"""Running controllers: health, crashes, restarts, failing handlers."""

import asyncio
import contextlib
from typing import Any, ClassVar

import pytest

from controller_world import controller_world, pod
from dray.api.generated.core import Pod
from dray.api.kinds import PODS
from dray.api.registry import by_kind
from dray.controllers import Context, Manager, catalog
from dray.controllers.catalog import Entry
from dray.controllers.queue_controller import QueueController
from local_server import local_server


class Breaking(QueueController[str]):
    """Fails on some keys, and stops once."""

    name: ClassVar[str] = "breaking-controller"

    def __init__(self, context: Context) -> None:
        self._pods = context.informers.of(PODS, Pod)
        super().__init__(context, self._pods, workers=1)
        self._pods.on_change(self._on_pod)
        self.done: list[str] = []
        self.runs = 0

    def _on_pod(self, _old: Pod | None, new: Pod | None) -> None:
        if new is not None:
            self.queue.add(new.metadata.name)

    async def reconcile(self, key: str) -> None:
        if key == "bad" and self.done.count("bad") < 2:
            self.done.append(key)
            raise KeyError("a bug")
        self.done.append(key)

    async def run(self) -> None:
        self.runs += 1
        if self.runs == 1:
            raise RuntimeError("it stopped")
        await super().run()


@pytest.fixture
def breaking(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(catalog.CATALOG, Breaking.name, Entry("job-controller", Breaking))


@pytest.mark.req("3902-31")
@pytest.mark.usefixtures("breaking")
async def test_a_controller_that_stops_is_unhealthy_until_it_runs_again() -> None:
    async with controller_world(Breaking.name, "job-controller") as world:
        assert world.manager.health() == {Breaking.name: "RuntimeError: it stopped", "job-controller": ""}
        await world.settle(5)
        assert world.manager.health() == {Breaking.name: "", "job-controller": ""}


@pytest.mark.usefixtures("breaking")
async def test_one_object_that_cannot_be_handled_does_not_stop_the_others() -> None:
    async with controller_world(Breaking.name) as world:
        await world.settle(5)
        await world.create(pod("bad"), pod("good"))
        await world.settle(5)
        controller: Any = world.manager.controllers[Breaking.name]
        assert controller.done.count("bad") == 3
        assert controller.done.count("good") == 1
        assert world.metric("workqueue_retries_total", name=Breaking.name) == 2


async def test_a_handler_that_fails_does_not_end_the_news() -> None:
    async with controller_world("job-controller") as world:
        seen = []

        def handler(_old: Pod | None, new: Pod | None) -> None:
            assert new is not None
            seen.append(new.metadata.name)
            if seen == ["first"]:
                raise KeyError("a bug")

        world.manager.informers.of(PODS, Pod).on_change(handler)
        await world.create(pod("first"), pod("second"))
        await world.settle(5)
        assert seen == ["first", "second"]


async def test_health_says_what_a_controller_waits_for() -> None:
    async with local_server() as server:
        nobody = server.component("job-controller")  # may not list everything
        manager = Manager(nobody, server.clock, wanted=["resourceclaim-controller"])
        task = asyncio.get_running_loop().create_task(manager.run())
        await server.clock.advance(1)
        problem = manager.health()["resourceclaim-controller"]
        assert problem.startswith("waiting for resourceclaims.resource.k8s.io: ")
        assert "forbidden" in problem
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task


async def test_a_kind_is_only_watched_once() -> None:
    async with controller_world("job-controller", "replicaset-controller", "disruption-controller") as world:
        watched = [informer.kind for informer in world.manager.informers]
        assert len(watched) == len(set(watched))
        with pytest.raises(TypeError, match="objects of kind ConfigMap are no Pod"):
            world.manager.informers.of(by_kind("v1", "ConfigMap"), Pod)
