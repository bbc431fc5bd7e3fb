"""Budgets say how many pods may be evicted, and evictions obey."""

import contextlib
from collections.abc import AsyncIterator
from typing import Any

import pytest

from controller_world import Manifest, World, controller_world, find_kind, manifest, pod, typed
from dray.api.references import ObjectName
from dray.api.status import ApiError
from dray.controllers import disruption
from dray.eviction.budget_status import plan
from dray.process.clock import as_time
from work import Counts, growing_faster, lines_run

READY = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}


@contextlib.asynccontextmanager
async def disruption_world(*more: str) -> AsyncIterator[World]:
    async with controller_world("disruption-controller", *more) as world:
        yield world


def budget(**spec: Any) -> Manifest:
    selector = {"matchLabels": {"app": "web"}}
    return manifest("policy/v1", "PodDisruptionBudget", "b", spec={"selector": selector, **spec})


def web(name: str) -> Manifest:
    return pod(name, nodeName="node-1", meta={"labels": {"app": "web"}})


async def numbers(world: World) -> tuple[int, int, int, int]:
    status = (await world.get("poddisruptionbudgets", "b")).status
    return status.expected_pods, status.current_healthy, status.desired_healthy, status.disruptions_allowed


async def evict(world: World, name: str) -> None:
    body = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": name, "namespace": "default"}}
    await world.admin.post(find_kind("pods"), "default", name, "eviction", body)


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ({"minAvailable": 2}, (3, 2, 2, 0)),
        ({"minAvailable": 1}, (3, 2, 1, 1)),
        ({"minAvailable": "50%"}, (4, 2, 2, 0)),
        ({"maxUnavailable": 1}, (4, 2, 3, 0)),
        ({"maxUnavailable": 3}, (4, 2, 1, 1)),
        ({"maxUnavailable": "75%"}, (4, 2, 1, 1)),
    ],
)
async def test_the_status_follows_the_pods(spec: Manifest, expected: tuple[int, int, int, int]) -> None:
    async with disruption_world() as world:
        template = {
            "metadata": {"labels": {"app": "web"}},
            "spec": {"containers": [{"name": "main", "image": "busybox"}]},
        }
        selector = {"matchLabels": {"app": "web"}}
        owner = await world.create(
            manifest("apps/v1", "ReplicaSet", "rs", spec={"replicas": 4, "selector": selector, "template": template})
        )
        reference = {
            "apiVersion": "apps/v1",
            "kind": "ReplicaSet",
            "name": "rs",
            "uid": owner.metadata.uid,
            "controller": True,
        }
        await world.create(budget(**spec))
        for name in ("a", "b", "c"):
            one = web(name)
            one["metadata"]["ownerReferences"] = [reference]
            await world.create(one)
            if name != "c":
                await world.patch("pods", name, {"status": READY}, "status")
        await world.create(pod("unrelated"))
        await world.settle()
        assert await numbers(world) == expected
        stored = await world.get("poddisruptionbudgets", "b")
        assert stored.status.observed_generation == stored.metadata.generation
        (condition,) = stored.status.conditions
        assert (condition.type, condition.status) == ("DisruptionAllowed", "True" if expected[3] else "False")


@pytest.mark.parametrize("most", [100, 0])
async def test_a_workload_that_changes_concerns_budgets_of_its_pods(monkeypatch: pytest.MonkeyPatch, most: int) -> None:
    """Others of the namespace may be thousands. Of a budget with very many workloads any may be meant."""
    monkeypatch.setattr(disruption, "MOST_WORKLOADS", most)
    looked: list[str] = []
    reconcile = disruption.DisruptionController.reconcile

    async def noted(self: disruption.DisruptionController, key: ObjectName) -> float | None:
        looked.append(key.name)
        return await reconcile(self, key)

    monkeypatch.setattr(disruption.DisruptionController, "reconcile", noted)
    more = ("deployment-controller", "replicaset-controller")
    async with disruption_world(*more) as world:
        for app in ("web", "other"):
            labels = {"app": app}
            template = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
            spec = {"replicas": 2, "selector": {"matchLabels": labels}, "template": template}
            await world.create(manifest("apps/v1", "Deployment", app, spec=spec))
            spec = {"selector": {"matchLabels": labels}, "maxUnavailable": 1}
            await world.create(manifest("policy/v1", "PodDisruptionBudget", app, spec=spec))
        await world.settle(2)
        looked.clear()
        patch = {"spec": {"replicas": 5}}
        await world.admin.patch(find_kind("deployments"), "default", "web", patch)
        await world.settle(2)
        assert set(looked) == ({"web"} if most else {"web", "other"})
        assert (await world.get("poddisruptionbudgets", "web")).status.expected_pods == 5
        await world.admin.delete(find_kind("poddisruptionbudgets"), "default", "web")
        await world.settle(2)
        looked.clear()
        await world.admin.patch(find_kind("deployments"), "default", "web", {"spec": {"replicas": 1}})
        await world.settle(2)
        assert "web" not in looked


async def test_evictions_obey_the_budget() -> None:
    async with disruption_world() as world:
        await world.create(budget(minAvailable=1))
        for name in ("a", "b"):
            await world.create(web(name))
            await world.patch("pods", name, {"status": READY}, "status")
        await world.settle()
        assert await numbers(world) == (2, 2, 1, 1)
        await evict(world, "a")
        with pytest.raises(ApiError) as refused:
            await evict(world, "b")
        assert refused.value.code == 429
        await world.settle()
        assert await numbers(world) == (2, 1, 1, 0)
        with pytest.raises(ApiError):
            await evict(world, "b")
        await world.delete("pods", "a", grace_period_seconds=0)
        await world.create(web("c"))
        await world.patch("pods", "c", {"status": READY}, "status")
        await world.settle()
        assert await numbers(world) == (2, 2, 1, 1)


@pytest.mark.parametrize(("policy", "others", "may"), [("AlwaysAllow", 0, True), (None, 1, True), (None, 0, False)])
async def test_pods_that_are_not_ready_may_go_for_nothing(policy: str | None, others: int, may: bool) -> None:
    async with disruption_world() as world:
        await world.create(budget(minAvailable=1, **({"unhealthyPodEvictionPolicy": policy} if policy else {})))
        await world.create(web("sick"))
        await world.patch("pods", "sick", {"status": {"phase": "Running"}}, "status")
        for name in range(others):
            await world.create(web(f"well-{name}"))
            await world.patch("pods", f"well-{name}", {"status": READY}, "status")
        await world.settle()
        before = await world.get("poddisruptionbudgets", "b")
        if may:
            await evict(world, "sick")
        else:
            with pytest.raises(ApiError):
                await evict(world, "sick")
        after = await world.get("poddisruptionbudgets", "b")
        assert after.status.disrupted_pods == {} == before.status.disrupted_pods


async def test_nothing_may_go_while_there_is_nothing() -> None:
    async with disruption_world() as world:
        await world.create(budget(maxUnavailable=5))
        await world.settle()
        assert await numbers(world) == (0, 0, 0, 0)


def test_what_a_budget_expects_is_counted_once_for_each_pod() -> None:
    """A pod with an owner of its own that nobody knows costs as much as any other."""

    def counts(number: int) -> Counts:
        wanted = typed(budget(maxUnavailable=1))
        owner = {"apiVersion": "batch/v1", "kind": "Job", "name": "j", "controller": True}
        pods = [typed(pod(f"p-{n}", meta={"ownerReferences": [owner | {"uid": str(n)}]})) for n in range(number)]
        return lines_run(lambda: plan(wanted, pods, lambda _namespace, _owner: None, as_time(0)))

    assert not growing_faster(counts(100), counts(200))
