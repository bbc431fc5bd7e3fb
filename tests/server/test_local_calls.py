"""Calls inside the process: the same strategies, formats and refusals as over HTTP, with typed values."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

import builders
from dray.api.generated.authentication import TokenRequest
from dray.api.generated.core import Binding, ConfigMap, Container, ObjectReference, Pod, PodSpec
from dray.api.kinds import CONFIG_MAPS, DEPLOYMENTS, PODS, QUOTAS, SERVICE_ACCOUNTS
from dray.api.meta import ObjectMeta
from dray.api.quantity import Quantity
from dray.api.status import ApiError
from dray.client import PatchFormat
from local_server import LocalServer, local_server, typed


def pod(name: str = "p") -> Pod:
    return builders.typed(builders.pod(name), Pod)


async def stored(server: LocalServer) -> Pod:
    found = await server.client().get(PODS, "default", "p")
    assert isinstance(found, Pod)
    return found


async def test_a_typed_binding_and_plain_values_do_the_same() -> None:
    async with local_server(with_roles=False) as server:
        client = server.client()
        for name in ("p", "q"):
            await client.create(pod(name))
        target = ObjectReference(kind="Node", name="n")
        typed_one = Binding(api_version="v1", kind="Binding", metadata=ObjectMeta(name="p"), target=target)
        answer = await client.post(PODS, "default", "p", "binding", typed_one)
        plain = {"metadata": {"name": "q"}, "target": {"kind": "Node", "name": "n"}}
        assert answer == await client.post(PODS, "default", "q", "binding", plain)
        assert (answer["status"], answer["code"]) == ("Success", 201)
        assert (await stored(server)).spec.node_name == "n"


async def test_what_is_posted_must_be_readable_and_about_the_object_of_the_path() -> None:
    async with local_server(with_roles=False) as server:
        client = server.client()
        await client.create(pod())
        for body, why in (
            ({"target": "n"}, "target"),
            ({"metadata": {"name": "other"}, "target": {"name": "n"}}, "name in URL does not match name in Binding"),
        ):
            with pytest.raises(ApiError, match=why) as failure:
                await client.post(PODS, "default", "p", "binding", body)
            assert failure.value.code == 400


async def test_tokens_are_issued_without_http() -> None:
    async with local_server(with_roles=False) as server:
        client = server.client()
        await client.create(
            typed({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "a", "namespace": "default"}})
        )
        answer = await client.post(SERVICE_ACCOUNTS, "default", "a", "token", TokenRequest())
        assert answer["status"]["token"].count(".") == 2


async def test_a_patch_may_hold_typed_values_and_leaves_them_alone() -> None:
    async with local_server(with_roles=False) as server:
        client = server.client()
        quota = {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "q", "namespace": "default"}}
        await client.create(typed(quota))
        patch = {"spec": {"hard": {"cpu": Quantity.parse("1500m")}}}
        changed = await client.patch(QUOTAS, "default", "q", patch)
        assert changed.spec.hard["cpu"] == Quantity.parse("1500m")  # type: ignore[attr-defined]
        assert patch == {"spec": {"hard": {"cpu": Quantity.parse("1500m")}}}


async def test_numbers_that_do_not_fit_are_refused_in_the_process_too() -> None:
    async with local_server(with_roles=False) as server:
        client = server.client()
        labels = {"app": "a"}
        spec = {
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "c", "image": "i"}]}},
        }
        await client.create(
            typed(
                {
                    "apiVersion": "apps/v1",
                    "kind": "Deployment",
                    "metadata": {"name": "d", "namespace": "default"},
                    "spec": spec,
                }
            )
        )
        with pytest.raises(ApiError, match="does not fit into 32 bits") as failure:
            await client.patch(DEPLOYMENTS, "default", "d", {"spec": {"replicas": 2**31}})
        assert failure.value.code == 422


async def test_an_apply_in_the_process_creates_and_forces() -> None:
    async with local_server(with_roles=False) as server:
        client = server.client()

        async def apply(value: str, manager: str, *, force: bool = False) -> ConfigMap:
            wanted = {"apiVersion": "v1", "kind": "ConfigMap", "data": {"a": value}}
            made = await client.patch(
                CONFIG_MAPS, "default", "m", wanted, format=PatchFormat.APPLY, field_manager=manager, force=force
            )
            assert isinstance(made, ConfigMap)
            return made

        assert (await apply("1", "one")).data == {"a": "1"}
        with pytest.raises(ApiError, match="conflict") as failure:
            await apply("2", "two")
        assert failure.value.code == 409
        assert (await apply("2", "two", force=True)).data == {"a": "2"}


async def test_what_controllers_make_of_large_templates_is_worked_on_beside_the_loop() -> None:
    """A template of a user is as large as they like, and each pod of it is looked at again."""
    async with local_server(with_roles=False) as server:
        beside: list[str] = []
        run = server.engine.workers.run

        async def counted(caller: str, function: Any, /, *args: Any, **options: Any) -> Any:
            beside.append(caller)
            return await run(caller, function, *args, **options)

        server.engine.workers.run = counted  # type: ignore[method-assign]
        await server.client().create(pod("small"))
        assert beside == []
        containers = tuple(Container(name=f"c-{number}", image="image") for number in range(2000))
        made = await server.client().create(replace(pod("large"), spec=PodSpec(containers=containers)))
        assert len(made.spec.containers) == 2000
        assert set(beside) == {"admin"}
        server.engine.workers.close()
