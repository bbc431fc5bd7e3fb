"""Whoever binds a pod and whoever lets go of its claim, or its group, at the same moment, at whichever server.

One of them does.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from typing import Any

import pytest
from msgspec.structs import replace

from builders import DRIVER, manifest, resource_slice
from dray.api.kinds import CLAIMS, POD_GROUPS, PODS
from dray.api.meta import DeleteOptions
from dray.api.pod_claims import consumer
from dray.api.pod_groups import owner_reference
from dray.api.pods import binding_of
from dray.api.resource import ResourceClaimConsumerReference
from dray.api.status import ApiError
from dray.server.indexes.pod_index import PodIndex
from dray.server.local import LocalClient
from dray.server.security.identity import MASTERS, authenticated
from dray.store import Key
from etcd_world import Etcd, etcd_servers, hears_late
from local_server import ADMIN, local_server, typed

SCHEDULER = authenticated("system:kube-scheduler", (MASTERS,))
ROUNDS = 12
GROUP = "gang"


@contextlib.asynccontextmanager
async def schedulers(etcd: Etcd | None) -> AsyncIterator[tuple[LocalClient, LocalClient]]:
    """Two, each at another server if there are several."""
    async with contextlib.AsyncExitStack() as stack:
        servers: list[Any]
        if etcd is not None:
            servers = await stack.enter_async_context(etcd_servers(etcd.urls, 2))
        else:
            servers = [await stack.enter_async_context(local_server(with_roles=False))] * 2
        one, other = servers
        yield one.client_of(SCHEDULER), other.client_of(SCHEDULER)


async def make_group(client: LocalClient, name: str) -> None:
    spec = {"schedulingPolicy": {"gang": {"minCount": 1}}}
    await client.create(typed(manifest("scheduling.k8s.io/v1beta1", "PodGroup", name, spec=spec)))


async def leaving(client: LocalClient, name: str) -> Any:
    """A group that is being deleted."""
    await make_group(client, name)
    await client.delete(POD_GROUPS, "default", name)
    return await client.get(POD_GROUPS, "default", name)


async def member(client: LocalClient, name: str, group: str) -> Any:
    spec = {"containers": [{"name": "main", "image": "pause"}], "schedulingGroup": {"podGroupName": group}}
    return await client.create(typed(manifest("v1", "Pod", name, spec=spec)))


async def dissolve(client: LocalClient, group: Any) -> None:
    await client.update(replace(group, metadata=replace(group.metadata, finalizers=())))


async def reserved(client: LocalClient, name: str, group: str = "") -> tuple[Any, Any]:
    """A pod without a node, and a claim that is reserved for it, or for its group."""
    requests = [{"name": "gpu", "exactly": {"deviceClassName": "gpu"}}]
    claim: Any = await client.create(
        typed(manifest("resource.k8s.io/v1", "ResourceClaim", name, spec={"devices": {"requests": requests}}))
    )
    spec: dict[str, Any] = {
        "containers": [{"name": "main", "image": "pause"}],
        "resourceClaims": [{"name": "gpu", "resourceClaimName": name}],
    }
    if group:
        spec["schedulingGroup"] = {"podGroupName": group}
    pod: Any = await client.create(typed(manifest("v1", "Pod", name, spec=spec)))
    user = consumer(pod)
    if group:
        user = ResourceClaimConsumerReference(
            api_group="scheduling.k8s.io", resource="podgroups", name=group, uid="7d8f8b1e-7d0c-4a3f-8b57-0d7a6c1c2f10"
        )
    await client.create(typed(resource_slice(name, "gpu-0")))
    result = {"request": "gpu", "driver": DRIVER, "pool": name, "device": "gpu-0"}
    allocated = typed(
        manifest("resource.k8s.io/v1", "ResourceClaim", name, status={"allocation": {"devices": {"results": [result]}}})
    )
    status = replace(allocated.status, reserved_for=(user,))  # type: ignore[attr-defined]
    return pod, await client.update(replace(claim, status=status), subresource="status")


async def bind(client: LocalClient, pod: Any, group: Any = None) -> None:
    owners = () if group is None else (owner_reference(group),)
    await client.post(PODS, "default", pod.metadata.name, "binding", binding_of(pod, "node", owners))


async def let_go(client: LocalClient, claim: Any) -> None:
    await client.update(replace(claim, status=replace(claim.status, reserved_for=())), subresource="status")


async def conflicts(call: Any, why: str) -> None:
    with pytest.raises(ApiError, match=why) as failure:
        await call
    assert failure.value.code == 409


@pytest.mark.parametrize("group", ["", GROUP])
async def test_of_binding_and_letting_go_one_is_done(place: Etcd | None, group: str) -> None:
    async with schedulers(place) as (one, other):
        for number in range(ROUNDS):
            pod, claim = await reserved(one, f"p{number}", group)
            await other.get(CLAIMS, "default", claim.metadata.name)  # both have seen it
            binding = bind(other if number % 2 else one, pod)
            releasing = let_go(one if number % 2 else other, claim)
            outcomes = await asyncio.gather(binding, releasing, return_exceptions=True)
            refusals = [each for each in outcomes if isinstance(each, BaseException)]
            assert len(refusals) == 1, outcomes
            assert isinstance(refusals[0], ApiError)
            assert refusals[0].code == 409
            bound: Any = await one.get(PODS, "default", pod.metadata.name)
            found: Any = await other.get(CLAIMS, "default", claim.metadata.name)
            assert bool(bound.spec.node_name) == bool(found.status.reserved_for)


async def test_whoever_is_second_is_told_why(place: Etcd | None) -> None:
    async with schedulers(place) as (one, other):
        pod, claim = await reserved(one, "first")
        await bind(one, pod)
        await conflicts(let_go(other, claim), "pod first has a node and uses it")
        pod, claim = await reserved(one, "second")
        await let_go(one, claim)
        await conflicts(bind(other, pod), "ResourceClaim second is not reserved for it")


async def test_a_pod_that_is_finished_or_gone_keeps_nothing(place: Etcd | None) -> None:
    async with schedulers(place) as (one, other):
        pod, claim = await reserved(one, "finished")
        await bind(one, pod)
        await one.patch(PODS, "default", "finished", {"status": {"phase": "Succeeded"}}, subresource="status")
        await let_go(other, claim)
        pod, claim = await reserved(one, "gone")
        await one.delete(PODS, "default", "gone")
        await let_go(other, claim)


async def test_a_group_stays_for_the_pod_that_got_its_node(place: Etcd | None) -> None:
    async with schedulers(place) as (one, other):
        group = await leaving(one, GROUP)
        pod = await member(one, "p", GROUP)
        await bind(one, pod, group)
        await conflicts(dissolve(other, group), "pod p is of it")
        await one.patch(PODS, "default", "p", {"status": {"phase": "Succeeded"}}, subresource="status")
        await dissolve(other, group)
        assert not await is_there(one, GROUP)


async def test_no_pod_of_a_group_that_is_gone_gets_a_node(place: Etcd | None) -> None:
    async with schedulers(place) as (one, other):
        group = await leaving(one, GROUP)
        await dissolve(one, group)
        pod = await member(one, "p", GROUP)
        await conflicts(bind(other, pod, group), "PodGroup gang is not there; schedule it anew")
        await make_group(one, GROUP)
        await conflicts(bind(other, pod, group), "PodGroup gang is not there")  # but another one of its name
        await bind(other, pod)  # for whoever does not ask for groups they are nothing


async def test_letting_go_of_a_group_looks_at_its_own_pods_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    looked_at: list[str] = []
    apply = PodIndex._apply

    def counted(self: PodIndex[Any], key: Key, pod: Any) -> None:
        looked_at.append(key.name)
        apply(self, key, pod)

    monkeypatch.setattr(PodIndex, "_apply", counted)
    async with schedulers(None) as (one, _):
        for number in range(30):
            await member(one, f"other-{number}", "others")
        await dissolve(one, await leaving(one, "first"))
        assert len(looked_at) == 30
        second = await leaving(one, "second")
        await member(one, "mine", "second")
        await conflicts(dissolve(one, second), "pod mine is of it")
        await one.delete(PODS, "default", "mine", DeleteOptions(grace_period_seconds=0))
        await dissolve(one, second)
        assert set(looked_at[30:]) == {"mine"}
        assert not await is_there(one, "second")


async def test_who_hears_late_neither_binds_nor_lets_go(etcd: Etcd, monkeypatch: pytest.MonkeyPatch) -> None:
    async with etcd_servers(etcd.urls, 2) as (one, other):
        scheduler, late = one.client_of(SCHEDULER), other.client_of(SCHEDULER)
        kept, lost = await leaving(scheduler, "kept"), await leaving(scheduler, "lost")
        pod = await member(scheduler, "of-lost", "lost")
        await late.get(PODS, "default", "of-lost")
        hears_late(other, monkeypatch)
        await bind(scheduler, await member(scheduler, "of-kept", "kept"), kept)
        await conflicts(dissolve(late, kept), "pod of-kept is of it")
        await dissolve(one.client_of(ADMIN), lost)
        await conflicts(bind(late, pod, lost), "PodGroup lost is not there")


async def is_there(client: LocalClient, group: str) -> bool:
    try:
        await client.get(POD_GROUPS, "default", group)
    except ApiError as error:
        assert error.code == 404
        return False
    return True


async def test_people_may_do_as_they_like_as_with_kubernetes() -> None:
    async with local_server(with_roles=False) as server:
        admin = server.client_of(ADMIN)
        pod, claim = await reserved(admin, "p")
        await bind(admin, pod)
        await let_go(admin, claim)
        group = await leaving(admin, GROUP)
        pod = await member(admin, "q", GROUP)
        await dissolve(admin, group)
        await bind(admin, pod, group)
