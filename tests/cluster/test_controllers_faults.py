"""Calls fail, answers get lost, controllers are killed and started again: the outcome is the same."""

import asyncio
import random
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any, cast

import pytest

from controller_world import Manifest, World, manifest, node, pod
from dray.api.pods import is_active
from dray.api.status import ApiError
from dray.controllers import Manager
from dray.controllers.catalog import CATALOG
from local_server import LocalServer, local_server

WRITES = ("create", "update", "patch", "delete")
CONTROLLERS = (
    "resourceclaim-controller",
    "garbage-collector-controller",
    "replicaset-controller",
    "job-controller",
    "resourcequota-controller",
)
DEVICES: Manifest = {"requests": [{"name": "r", "exactly": {"deviceClassName": "gpu"}}]}
TEMPLATE_SPEC: Manifest = {
    "restartPolicy": "Never",
    "containers": [{"name": "main", "image": "busybox"}],
    "resourceClaims": [{"name": "dev", "resourceClaimTemplateName": "gpu"}],
}


OBJECTS = (
    manifest("v1", "ResourceQuota", "q", spec={"hard": {"count/resourceclaims.resource.k8s.io": "1000"}}),
    manifest("resource.k8s.io/v1", "ResourceClaimTemplate", "gpu", spec={"spec": {"devices": DEVICES}}),
    manifest(
        "apps/v1",
        "ReplicaSet",
        "rs",
        spec={
            "replicas": 3,
            "selector": {"matchLabels": {"app": "web"}},
            "template": {"metadata": {"labels": {"app": "web"}}, "spec": {**TEMPLATE_SPEC, "restartPolicy": "Always"}},
        },
    ),
    manifest(
        "batch/v1",
        "Job",
        "j",
        spec={"parallelism": 2, "completions": 50, "backoffLimit": 50, "template": {"spec": TEMPLATE_SPEC}},
    ),
)


class Flaky:
    """A client whose writes fail now and then: before they are carried out, or after, when only the answer is lost."""

    def __init__(self, client: Any, randomness: random.Random, share: float) -> None:
        self._client = client
        self._random = randomness
        self._share = share

    def __getattr__(self, name: str) -> Any:
        call = getattr(self._client, name)
        if name not in WRITES:
            return call

        async def flaky(*arguments: Any, **options: Any) -> Any:
            fate = self._random.random()
            if fate < self._share / 2:
                raise OSError("connection refused")
            answer = await call(*arguments, **options)
            if fate < self._share:
                raise TimeoutError("no answer")
            return answer

        return flaky


class Late:
    """A client whose news comes late, by up to a second, but in order."""

    def __init__(self, client: Any, server: LocalServer, randomness: random.Random) -> None:
        self._client = client
        self._clock = server.clock
        self._random = randomness

    def __getattr__(self, name: str) -> Any:
        return getattr(self._client, name)

    async def watch(self, *arguments: Any, **options: Any) -> AsyncIterator[Any]:
        async for event in self._client.watch(*arguments, **options):
            await self._clock.sleep(self._random.random())
            yield event


def start(
    server: LocalServer, randomness: random.Random, share: float, *, late: bool = False
) -> tuple[Manager, asyncio.Task[None]]:
    watcher: Any = server.component("kube-controller-manager")
    manager = Manager(
        Late(watcher, server, randomness) if late else watcher,
        server.clock,
        wanted=CONTROLLERS,
        client_for=lambda account: Flaky(server.component(account), randomness, share),
    )
    return manager, asyncio.get_running_loop().create_task(manager.run())


async def stop(task: asyncio.Task[None]) -> None:
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


async def act(world: World, randomness: random.Random, step: int) -> None:
    """Does what users and nodes do."""
    pods = [one for one in await world.objects("pods") if is_active(one)]
    choice = randomness.randrange(4)
    try:
        if choice == 0:
            await world.create(pod(f"single-{step}", resourceClaims=TEMPLATE_SPEC["resourceClaims"]))
        elif pods:
            victim = randomness.choice(pods).metadata.name
            if choice == 1:
                await world.delete("pods", victim)
            else:
                phase = randomness.choice(["Running", "Succeeded", "Failed"])
                await world.patch("pods", victim, {"status": {"phase": phase}}, "status")
    except ApiError as error:
        assert error.code == 404, error


async def check(world: World) -> None:
    pods = {one.metadata.uid: one for one in await world.objects("pods")}
    live = {uid: one for uid, one in pods.items() if one.status.phase not in ("Succeeded", "Failed")}
    claims = await world.objects("resourceclaims")
    owners = Counter(one.metadata.owner_references[0].uid for one in claims)
    assert owners == dict.fromkeys(live, 1), "one claim for every pod that may run, and for no other"
    for one in live.values():
        (status,) = one.status.resource_claim_statuses
        assert any(status.resource_claim_name == claim.metadata.name for claim in claims)
    replicas = [one for one in live.values() if one.metadata.labels.get("app") == "web"]
    assert len(replicas) == 3
    job = await world.get("jobs", "j")
    over = {one.type for one in job.status.conditions if one.status == "True"} & {"Complete", "Failed"}
    running = [one for one in live.values() if one.metadata.labels.get("job-name") == "j"]
    assert len(running) == (0 if over else 2)
    quota = await world.get("resourcequotas", "q")
    assert str(quota.status.used["count/resourceclaims.resource.k8s.io"]) == str(len(claims))


@pytest.mark.req("4381-124", "4381-126", "4381-133", "4381-136", "4381-149")
@pytest.mark.parametrize("seed", range(6))
async def test_whatever_fails_the_outcome_is_right(seed: int) -> None:
    randomness = random.Random(seed)
    async with local_server(seed=seed) as server:
        manager, task = start(server, randomness, 0.2)
        world = World(server, manager)
        await world.settle(1)
        await world.create(*OBJECTS)
        for step in range(40):
            await act(world, randomness, step)
            await world.settle(randomness.choice([0, 0.01, 2]))
            if step % 13 == 12:
                await stop(task)
                manager, task = start(server, randomness, 0.2)
                world = World(server, manager)
        await stop(task)
        manager, task = start(server, randomness, 0)
        world = World(server, manager)
        await world.settle(900)
        await check(world)
        await stop(task)


@pytest.mark.parametrize("seed", range(4))
async def test_nothing_is_made_twice_because_news_is_late(seed: int) -> None:
    randomness = random.Random(seed)
    async with local_server(seed=seed) as server:
        manager, task = start(server, randomness, 0, late=True)
        world = World(server, manager)
        await world.settle(1)
        await world.create(*OBJECTS)
        for step in range(40):
            await act(world, randomness, step)
            await world.settle(randomness.choice([0, 0.1, 2]))
            live = [one for one in await world.objects("pods") if is_active(one)]
            assert sum(one.metadata.labels.get("app") == "web" for one in live) <= 3
            assert sum(one.metadata.labels.get("job-name") == "j" for one in live) <= 2
            owners = Counter(one.metadata.owner_references[0].uid for one in await world.objects("resourceclaims"))
            assert max(owners.values(), default=0) <= 1
        await world.settle(900)
        await check(world)
        await stop(task)


class Unanswered:
    """A client that gets no answer when it makes a pod, or a ReplicaSet for pods."""

    def __init__(self, client: Any, begun: list[str]) -> None:
        self._client = client
        self._begun = begun

    def __getattr__(self, name: str) -> Any:
        call = getattr(self._client, name)
        if name not in WRITES:
            return call

        async def noted(*arguments: Any, **options: Any) -> Any:
            self._begun.append(name)
            if name == "create" and arguments[0].kind in ("Pod", "ReplicaSet"):
                await asyncio.Event().wait()
            return await call(*arguments, **options)

        return noted


@pytest.mark.parametrize(
    ("workload", "account"),
    [
        ("DaemonSet", "daemon-set-controller"),
        ("Deployment", "deployment-controller"),
        ("Job", "job-controller"),
        ("ReplicaSet", "replicaset-controller"),
        ("StatefulSet", "statefulset-controller"),
    ],
)
async def test_who_has_to_stop_begins_no_other_write(workload: str, account: str) -> None:
    """Somebody else may have the lease by now."""
    template = {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": TEMPLATE_SPEC["containers"]}}
    version, spec = "apps/v1", {"selector": {"matchLabels": {"app": "web"}}, "template": template}
    if workload == "Job":
        version, spec = "batch/v1", {"template": {"spec": {**template["spec"], "restartPolicy": "Never"}}}
    begun: list[str] = []
    async with local_server() as server:
        manager = Manager(
            server.component("kube-controller-manager"),
            server.clock,
            wanted=(next(name for name, entry in CATALOG.items() if entry.account == account),),
            client_for=lambda name: cast(Any, Unanswered(server.component(name), begun)),
        )
        task = asyncio.get_running_loop().create_task(manager.run())
        world = World(server, manager)
        await world.create(node("n1"), manifest(version, workload, "w", spec=spec))
        await world.settle(5)
        assert "create" in begun
        begun.clear()
        task.cancel()
        await world.settle(0.1)
        assert task.done()
        assert begun == []


class Overtaken:
    """A client whose first update of a pod comes too late: somebody else has written before."""

    def __init__(self, client: Any, overtake: Callable[[Any], Awaitable[None]]) -> None:
        self._client = client
        self._overtake: Callable[[Any], Awaitable[None]] | None = overtake
        self.recorded: list[str] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(self._client, name)

    async def create_claims(self, _pod: Any, _claims: Any) -> None:
        """As over HTTP: the claim is written first, then the pod."""

    async def update(self, obj: Any, subresource: str = "") -> Any:
        if obj.kind == "Pod" and self._overtake is not None:
            overtake, self._overtake = self._overtake, None
            await overtake(obj)
        stored = await self._client.update(obj, subresource)
        if obj.kind == "Pod":
            self.recorded += [status.resource_claim_name for status in stored.status.resource_claim_statuses]
        return stored


@pytest.mark.req("4381-124", "4381-133")
@pytest.mark.parametrize("recorded", [True, False])
async def test_a_claim_that_was_recorded_meanwhile_is_not_replaced(recorded: bool) -> None:
    async with local_server() as server:
        admin = World(server, Manager(server.client(), server.clock, wanted=()))

        async def overtake(stale: Any) -> None:
            meta = stale.metadata
            owner = {"apiVersion": "v1", "kind": "Pod", "name": meta.name, "uid": meta.uid, "controller": True}
            marks = {"annotations": {"resource.kubernetes.io/pod-claim-name": "dev"}, "ownerReferences": [owner]}
            await admin.create(
                manifest("resource.k8s.io/v1", "ResourceClaim", "first", meta=marks, spec={"devices": DEVICES})
            )
            names = [{"name": "dev", "resourceClaimName": "first"}] if recorded else []
            status = {"resourceClaimStatuses": names, "message": "somebody was here"}
            await admin.patch("pods", meta.name, {"status": status}, "status")

        client = Overtaken(server.component("resource-claim-controller"), overtake)
        watcher = server.component("kube-controller-manager")
        wanted = ("resourceclaim-controller",)
        manager = Manager(watcher, server.clock, wanted=wanted, client_for=lambda _account: client)
        task = asyncio.get_running_loop().create_task(manager.run())
        world = World(server, manager)
        await world.create(OBJECTS[1], pod("p", **TEMPLATE_SPEC))
        await world.settle(60)
        (status,) = (await world.get("pods", "p")).status.resource_claim_statuses
        (left,) = await world.objects("resourceclaims")
        assert status.resource_claim_name == left.metadata.name
        # A pod may run with what was recorded already; for one that has nothing, the claim is recorded after all.
        assert client.recorded == ([] if recorded else [left.metadata.name])
        await stop(task)


class Deaf:
    """A client that hears nothing of pods."""

    def __init__(self, client: Any, clock: Any) -> None:
        self._client = client
        self._clock = clock

    def __getattr__(self, name: str) -> Any:
        return getattr(self._client, name)

    async def watch(self, kind: Any, *arguments: Any, **options: Any) -> AsyncIterator[Any]:
        async for event in self._client.watch(kind, *arguments, **options):
            if kind.resource == "pods":
                await self._clock.sleep(1e6)
            yield event


@pytest.mark.req("4381-133")
async def test_an_owner_that_goes_before_it_was_heard_of_leaves_nothing_behind() -> None:
    async with local_server() as server:
        watcher: Any = Deaf(server.component("kube-controller-manager"), server.clock)
        manager = Manager(watcher, server.clock, wanted=("garbage-collector-controller",), client_for=server.component)
        task = asyncio.get_running_loop().create_task(manager.run())
        world = World(server, manager)
        await world.settle(1)
        made = await world.create(pod("owner"))
        owner = {"apiVersion": "v1", "kind": "Pod", "name": "owner", "uid": made.metadata.uid}
        await world.create(manifest("v1", "ConfigMap", "left", meta={"ownerReferences": [owner]}))
        await world.settle(5)
        assert len(await world.objects("configmaps")) == 1
        await world.delete("pods", "owner")
        await world.settle(60)
        assert await world.objects("configmaps") == []
        await stop(task)
