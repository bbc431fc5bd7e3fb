"""The environment of a container: what is said to a program is bounded before it is put together."""

from __future__ import annotations

from typing import Any

import pytest

from dray.api.generated.core import Pod
from dray.client import Client
from dray.node.environment import MOST, Environments, Room
from dray.node.runtime.interface import StartFailed
from local_server import local_server, typed

LARGE = "x" * 100_000


def pod(**container: Any) -> Pod:
    metadata = {"name": "p", "namespace": "default", "annotations": {"large": LARGE}}
    spec = {"containers": [{"name": "main", "image": "x"} | container]}
    made = typed({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec})
    assert isinstance(made, Pod)
    return made


def twice(count: int) -> list[dict[str, Any]]:
    """Variables of which each is twice as long as the one before."""
    first = {"name": "V0", "value": "x" * 64}
    return [first, *({"name": f"V{n}", "value": f"$(V{n - 1})$(V{n - 1})"} for n in range(1, count))]


async def environment(client: Client, **container: Any) -> dict[str, str]:
    wanted = pod(**container)
    return await Environments(client).of(wanted, wanted.spec.containers[0])


@pytest.mark.parametrize(
    "container",
    [
        {"env": twice(60)},
        {"env": [{"name": "A", "value": LARGE}, {"name": "B", "value": "$(A)" * 100_000}]},
        {"envFrom": [{"prefix": f"P{n}_", "configMapRef": {"name": "large"}} for n in range(100)]},
        {
            "env": [
                {"name": f"V{n}", "valueFrom": {"configMapKeyRef": {"name": "large", "key": "a"}}} for n in range(100)
            ]
        },
        {
            "env": [
                {"name": f"V{n}", "valueFrom": {"fieldRef": {"fieldPath": "metadata.annotations['large']"}}}
                for n in range(100)
            ]
        },
    ],
    ids=["doubled", "repeated", "all-of-a-map", "keys-of-a-map", "fields"],
)
async def test_variables_that_grow_without_end_are_refused(container: dict[str, Any]) -> None:
    async with local_server() as server:
        client = server.client()
        metadata = {"name": "large", "namespace": "default"}
        await client.create(
            typed({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"a": LARGE}})
        )
        with pytest.raises(StartFailed, match=f"more than {MOST} letters"):
            await environment(client, **container)
        few = await environment(client, env=twice(4))
        assert few["V3"] == "x" * 512


def test_words_share_their_room() -> None:
    room = Room()
    values = {"A": LARGE}
    assert room.expand("$(A)-$$(A)-$(B)", values) == f"{LARGE}-$(A)-$(B)"
    with pytest.raises(StartFailed):
        _ = [room.expand("$(A)", values) for _ in range(100)]
