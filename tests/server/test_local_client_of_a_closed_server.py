"""Components in the process of a server that ends: whatever they call is refused as over HTTP, and tried again."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from builders import manifest
from dray.api.generated.core import Event, Pod
from dray.api.kinds import PODS
from dray.api.meta import ObjectMeta
from dray.api.status import ApiError
from dray.server.local import LocalClient
from local_server import local_server, typed

POD: Any = typed(manifest("v1", "Pod", "a", spec={"containers": [{"name": "main", "image": "pause"}]}))
EVENT = Event(kind="Event", api_version="v1", metadata=ObjectMeta(name="a", namespace="default"))


async def first_of_watch(client: LocalClient) -> Any:
    return await anext(client.watch(PODS, "default", revision="1"))


CALLS: dict[str, Callable[[LocalClient], Awaitable[Any]]] = {
    "get": lambda client: client.get(PODS, "default", "a"),
    "list": lambda client: client.list(PODS),
    "watch": first_of_watch,
    "create": lambda client: client.create(POD),
    "update": lambda client: client.update(POD),
    "update_with_status": lambda client: client.update_with_status(POD),
    "bind_with_claims": lambda client: client.bind_with_claims(POD, "node", ()),
    "create_events": lambda client: client.create_events([EVENT]),
    "create_claims": lambda client: client.create_claims(POD, {}),
    "patch": lambda client: client.patch(PODS, "default", "a", {"metadata": {"labels": {"a": "b"}}}),
    "delete": lambda client: client.delete(PODS, "default", "a"),
    "delete_collection": lambda client: client.delete_collection(PODS, "default"),
    "post": lambda client: client.post(PODS, "default", "a", "eviction", {}),
}


def test_every_call_is_tried() -> None:
    others = {"make_claims_with_pods", "give_nodes_with_pods"}  # those make no call
    assert set(CALLS) == {name for name in vars(LocalClient) if not name.startswith("_")} - others


@pytest.mark.parametrize("name", CALLS)
async def test_a_server_that_ends_is_unavailable(name: str) -> None:
    async with local_server(with_roles=False) as server:
        client = server.client()
        assert isinstance(await client.create(POD), Pod)  # what admission follows is followed from now on
        await server.store.close()
        with pytest.raises(ApiError) as refusal:
            await CALLS[name](client)
        assert refusal.value.code == 503
