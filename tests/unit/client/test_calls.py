"""Calls that many make in the same way, against the real verbs."""

from __future__ import annotations

import pytest

from dray.api.generated.core import Pod
from dray.api.kinds import NODES, PODS
from dray.api.registry import Kind
from dray.api.status import ApiError
from dray.client.calls import delete_exactly, find, list_if_served, patch_pod_status
from dray.controllers.eviction.identity import DisruptionTarget
from dray.controllers.eviction.removal import remove_pod
from dray.reconcile import RealClock
from local_server import local_server, typed

MANIFEST = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "a", "namespace": "default"},
    "spec": {"containers": [{"name": "main", "image": "i"}]},
}


async def test_find_gives_none_for_what_is_not_there() -> None:
    async with local_server() as server:
        client = server.client()
        assert await find(client, PODS, "default", "a", Pod) is None
        made = await client.create(typed(MANIFEST))
        assert await find(client, PODS, "default", "a", Pod) == made


async def test_delete_takes_exactly_this_object() -> None:
    async with local_server() as server:
        client = server.client()
        first = await client.create(typed(MANIFEST))
        assert await delete_exactly(client, PODS, first, grace_seconds=0)
        assert not await delete_exactly(client, PODS, first, grace_seconds=0)
        second = await client.create(typed(MANIFEST))
        assert not await delete_exactly(client, PODS, first, grace_seconds=0)
        assert await find(client, PODS, "default", "a", Pod) == second


async def test_the_status_of_exactly_this_object_is_patched() -> None:
    async with local_server() as server:
        client = server.client()
        first = await client.create(typed(MANIFEST))
        assert isinstance(first, Pod)
        assert await patch_pod_status(client, first, {"nominatedNodeName": "n"})
        with pytest.raises(ApiError, match="resourceClaimStatuses"):
            await patch_pod_status(client, first, {"resourceClaimStatuses": [{"name": "none"}]})
        await delete_exactly(client, PODS, first, grace_seconds=0)
        assert not await patch_pod_status(client, first, {"nominatedNodeName": "n"})
        second = await client.create(typed(MANIFEST))
        assert not await patch_pod_status(client, first, {"nominatedNodeName": "n"})
        assert not await remove_pod(client, RealClock(), first, DisruptionTarget("Reason", "message"))
        assert await find(client, PODS, "default", "a", Pod) == second


async def test_a_conflict_over_the_object_itself_is_no_absence(monkeypatch: pytest.MonkeyPatch) -> None:
    async with local_server() as server:
        client = server.client()
        made = await client.create(typed(MANIFEST))

        async def busy(*_: object) -> None:
            raise ApiError(409, "Conflict", "too many others are writing the object")

        monkeypatch.setattr(client, "delete", busy)
        with pytest.raises(ApiError, match="too many"):
            await delete_exactly(client, PODS, made)


async def test_a_kind_that_is_not_served_is_told_from_none_of_it() -> None:
    async with local_server() as server:
        client = server.client()
        assert await list_if_served(client, NODES) == ()

        async def unknown(_kind: Kind, *_: object) -> None:
            raise ApiError(404, "NotFound", "the server could not find the requested resource")

        client.list = unknown  # type: ignore[method-assign, assignment]
        assert await list_if_served(client, NODES) is None
