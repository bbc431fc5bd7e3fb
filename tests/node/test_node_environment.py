"""The environment of a container: what is said to a program is bounded before it is put together."""

from __future__ import annotations

from typing import Any

import pytest

from dray.api.generated.core import Pod
from dray.api.registry import Kind
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


def config_map(name: str, data: dict[str, str]) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": name, "namespace": "default"},
        "data": data,
    }


async def environment(client: Client, **container: Any) -> dict[str, str]:
    wanted = pod(**container)
    return await Environments(client).of(wanted, wanted.spec.containers[0])


@pytest.mark.parametrize(
    "container",
    [
        {"env": twice(60)},
        {"env": [{"name": "A", "value": LARGE}, {"name": "B", "value": "$(A)" * 100_000}]},
        {"envFrom": [{"prefix": f"P{n}_", "configMapRef": {"name": "large"}} for n in range(100)]},
        {"envFrom": [{"prefix": LARGE, "configMapRef": {"name": "many"}}]},
        {"env": [{"name": f"{LARGE}{n}", "value": ""} for n in range(30)]},
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
    ids=["doubled", "repeated", "all-of-a-map", "prefix-of-a-map", "names", "keys-of-a-map", "fields"],
)
async def test_variables_that_grow_without_end_are_refused(container: dict[str, Any]) -> None:
    async with local_server() as server:
        client = server.client()
        await client.create(typed(config_map("large", {"a": LARGE})))
        await client.create(typed(config_map("many", {f"k{n}": "" for n in range(1000)})))
        with pytest.raises(StartFailed, match=f"more than {MOST} letters"):
            await environment(client, **container)
        few = await environment(client, env=twice(4))
        assert few["V3"] == "x" * 512


async def test_a_map_that_many_variables_name_is_read_once_for_all_of_them() -> None:
    def key(name: str, key: str, **more: Any) -> dict[str, Any]:
        return {"valueFrom": {"configMapKeyRef": {"name": name, "key": key, **more}}}

    async with local_server() as server:
        client = server.client()
        await client.create(typed(config_map("one", {f"k{n}": str(n) for n in range(50)})))
        secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "keys", "namespace": "default"}}
        await client.create(typed({**secret, "data": {"binary": "/w==", "text": "dGV4dA=="}}))
        reads: list[str] = []
        get = client.get

        async def counted(kind: Kind, namespace: str, name: str) -> Any:
            reads.append(name)
            return await get(kind, namespace, name)

        client.get = counted  # type: ignore[method-assign]
        env = [{"name": f"V{n}", **key("one", f"k{n}")} for n in range(50)]
        env += [{"name": f"N_{n}", **key("none", "k", optional=True)} for n in range(50)]
        env += [{"name": "S", "valueFrom": {"secretKeyRef": {"name": "keys", "key": "text"}}}]
        found = await environment(client, env=env)
        assert found["V49"] == "49"
        assert found["S"] == "text", "what nobody asked for need not be a text"
        assert not [name for name in found if name.startswith("N_")]
        assert reads == ["one", "none", "keys"]
        with pytest.raises(StartFailed, match="there is no key k99"):
            await environment(client, env=[{"name": "V", **key("one", "k99")}])
        with pytest.raises(StartFailed, match="ConfigMap none"):
            await environment(client, env=[{"name": "V", **key("none", "k")}])


def test_words_share_their_room() -> None:
    room = Room()
    values = {"A": LARGE}
    assert room.expand("$(A)-$$(A)-$(B)", values) == f"{LARGE}-$(A)-$(B)"
    with pytest.raises(StartFailed):
        _ = [room.expand("$(A)", values) for _ in range(100)]
