"""Custom resources in several versions: a webhook converts objects where their definition has one."""

from __future__ import annotations

import contextlib
import json
import threading
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest

from dray.api import codec
from dray.api.custom import CustomObject
from dray.api.meta import ObjectMeta
from dray.api.registry import by_kind
from dray.api.status import ApiError
from dray.custom import conversion
from dray.process.http import Peer, Request, Response
from dray.server import handlers
from dray.server.custom import conversions
from dray.server.engine import Call
from local_server import ADMIN, LocalServer, local_server, typed
from webhook_server import WebhookServer, webhook_server

DEFINITIONS = by_kind("apiextensions.k8s.io/v1", "CustomResourceDefinition")
BASE = "/apis/example.com/{version}/namespaces/default/hosts"


def definition(client: dict[str, Any]) -> dict[str, Any]:
    def version(name: str, field: str, *, storage: bool) -> dict[str, Any]:
        spec = {"type": "object", "properties": {field: {"type": "string"}}}
        schema = {"type": "object", "properties": {"spec": spec}}
        return {"name": name, "served": True, "storage": storage, "schema": {"openAPIV3Schema": schema}}

    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "hosts.example.com"},
        "spec": {
            "group": "example.com",
            "scope": "Namespaced",
            "names": {"plural": "hosts", "kind": "Host"},
            "versions": [version("v1", "host", storage=True), version("v2", "address", storage=False)],
            "conversion": {
                "strategy": "Webhook",
                "webhook": {"clientConfig": client, "conversionReviewVersions": ["v1"]},
            },
        },
    }


def renamed(obj: dict[str, Any], api_version: str) -> dict[str, Any]:
    """`host` of v1 is `address` in v2."""
    spec = obj.get("spec", {})
    value = spec.get("host", spec.get("address"))
    name = "address" if api_version.endswith("v2") else "host"
    return {**obj, "apiVersion": api_version, "spec": {name: value}}


class Http:
    """Requests to the verbs, as HTTP brings them."""

    def __init__(self, server: LocalServer) -> None:
        self._engine = server.engine

    async def __call__(self, method: str, version: str, name: str = "", body: Any = None, **more: str) -> Any:
        path = BASE.format(version=version) + (f"/{name}" if name else "")
        headers = {"content-type": more.get("type", "application/json"), "accept": "application/json"}
        data = b"" if body is None else json.dumps(body).encode()
        request = Request(method, path, {}, headers, data, Peer("127.0.0.1"))
        route = self._engine.kinds.find(method, path, {})
        call = Call(route, ADMIN, self._engine.clock(), warnings=[])
        answer = await handlers.VERBS[route.verb](self._engine, request, call)
        assert isinstance(answer, Response)
        return json.loads(answer.body)


@contextlib.asynccontextmanager
async def world(path: str = "/rename") -> AsyncIterator[tuple[LocalServer, Http, WebhookServer]]:
    async with local_server(with_roles=False) as server, webhook_server() as hooks:
        hooks.converters["/rename"] = renamed
        hooks.converters["/thief"] = lambda obj, version: {**renamed(obj, version), "metadata": {"name": "other"}}
        hooks.converters["/labels"] = lambda obj, version: {
            **renamed(obj, version),
            "metadata": {**obj["metadata"], "labels": {"not a label": "x" * 100_000}},
        }
        hooks.converters["/lazy"] = lambda obj, _: obj
        await server.client().create(typed(definition(hooks.client(path))))
        try:
            yield server, Http(server), hooks
        finally:
            await server.stop()


def host(version: str, **spec: str) -> dict[str, Any]:
    return {"apiVersion": f"example.com/{version}", "kind": "Host", "metadata": {"name": "a"}, "spec": spec}


async def test_objects_are_stored_in_one_version_and_shown_in_all() -> None:
    async with world() as (server, http, hooks):
        made = await http("POST", "v2", body=host("v2", address="x"))
        assert (made["apiVersion"], made["spec"]) == ("example.com/v2", {"address": "x"})
        stored = server.engine.get("hosts.example.com", "default", "a")
        assert isinstance(stored, CustomObject)
        assert (stored.api_version, stored.content["spec"]) == ("example.com/v1", {"host": "x"})
        assert (await http("GET", "v2", "a"))["spec"] == {"address": "x"}
        assert (await http("GET", "v1", "a"))["spec"] == {"host": "x"}
        assert [one["spec"] for one in (await http("GET", "v2"))["items"]] == [{"address": "x"}]
        patch = {"spec": {"address": "y"}}
        changed = await http("PATCH", "v2", "a", patch, type="application/merge-patch+json")
        assert (changed["spec"], changed["metadata"]["generation"]) == ({"address": "y"}, 2)
        assert (await http("GET", "v1", "a"))["spec"] == {"host": "y"}
        before = len(hooks.asked)
        await http("PUT", "v1", "a", {**(await http("GET", "v1", "a")), "spec": {"host": "z"}})
        assert len(hooks.asked) == before, "nobody is asked where nothing is converted"


@pytest.mark.parametrize(
    ("path", "why"),
    [
        ("/thief", "it came back with another name, namespace or uid"),
        ("/lazy", "it came back as something else than Host in example.com/v1"),
        ("/500", "the webhook answered 500, not 200"),
        ("/garbage", "the answer is no ConversionReview"),
        ("/redirect", "the webhook answered 307, not 200"),
        ("/huge", "the answer is larger than 8388608 bytes"),
        ("/labels", "default/a: it came back with metadata.labels: Invalid value"),
    ],
)
async def test_an_answer_that_cannot_be_used_fails_the_request(path: str, why: str) -> None:
    async with world(path) as (server, http, _):
        with pytest.raises(ApiError, match=why) as failure:
            await http("POST", "v2", body=host("v2", address="x"))
        assert failure.value.code == 500
        assert server.engine.get("hosts.example.com", "default", "a") is None


async def test_a_service_leads_to_its_endpoints() -> None:
    async with world() as (server, http, hooks):
        admin = server.client()
        metadata = {"name": "hook", "namespace": "default"}
        ports = {"ports": [{"port": 443, "name": "https"}]}
        await admin.create(typed({"apiVersion": "v1", "kind": "Service", "metadata": metadata, "spec": ports}))
        labelled = {**metadata, "labels": {"kubernetes.io/service-name": "hook"}}
        where = {"addressType": "IPv4", "endpoints": [{"addresses": ["127.0.0.1"]}]}
        listens = {"ports": [{"port": hooks.port, "name": "https"}]}
        version = {"apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice"}
        await admin.create(typed({**version, "metadata": labelled, **where, **listens}))
        reference = {"namespace": "default", "name": "hook", "path": "/rename"}
        client = {"url": None, "service": reference, "caBundle": hooks.bundle}
        change = {"spec": {"conversion": {"webhook": {"clientConfig": client}}}}
        await admin.patch(DEFINITIONS, "", "hosts.example.com", change)
        await http("POST", "v1", body=host("v1", host="x"))
        assert (await http("GET", "v2", "a"))["spec"] == {"address": "x"}


async def test_questions_and_answers_are_written_and_read_beside_the_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    """A list of thousands is one question."""
    where: list[str] = []

    def noting(function: Callable[..., Any]) -> Callable[..., Any]:
        def noted(*args: Any) -> Any:
            where.append(threading.current_thread().name)
            return function(*args)

        return noted

    for name in ("question", "answer"):
        monkeypatch.setattr(conversion, name, noting(getattr(conversion, name)))
    async with world() as (_, http, _):
        await http("POST", "v1", body=host("v1", host="x"))
        assert (await http("GET", "v2"))["items"][0]["spec"] == {"address": "x"}
    assert len(where) == 2
    assert all(name.startswith("beside") for name in where)


async def test_a_long_list_is_asked_for_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(conversions, "MOST_OBJECTS", 10)
    monkeypatch.setattr(conversions, "MOST_ASKED", 20_000)
    async with world() as (_, http, hooks):
        for number in range(25):
            await http("POST", "v1", body={**host("v1", host=str(number)), "metadata": {"name": f"a{number:02}"}})
        large = {**host("v1", host="x" * 19_000), "metadata": {"name": "z"}}
        await http("POST", "v1", body=large)
        items = (await http("GET", "v2"))["items"]
        assert [one["spec"]["address"] for one in items[:25]] == [str(number) for number in range(25)]
        assert len(items) == 26
        assert [len(review["request"]["objects"]) for _, review in hooks.asked] == [10, 10, 5, 1]


async def test_what_a_webhook_has_made_large_is_put_into_bytes_beside_the_loop() -> None:
    async with world("/inflate") as (server, http, hooks):
        hooks.converters["/inflate"] = lambda obj, version: {**renamed(obj, version), "spec": {"host": "x" * 4_000_000}}
        first = {**host("v2", address="x"), "metadata": {"name": "first"}}
        await http("POST", "v2", body=first)  # compiles the definition, beside the loop
        codec_encode = codec.encode
        on_loop: list[int] = []

        def noting(obj: Any) -> bytes:
            data = codec_encode(obj)
            if threading.current_thread() is threading.main_thread():
                on_loop.append(len(data))
            return data

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(codec, "encode", noting)
            await http("POST", "v2", body=host("v2", address="x"))
        assert max(on_loop) < 100_000
        assert server.engine.get("hosts.example.com", "default", "a") is not None


def test_what_a_webhook_says_of_its_failure_is_repeated_in_short() -> None:
    sent = CustomObject(api_version="example.com/v1", kind="Host", metadata=ObjectMeta(name="a"))
    for response in (
        {"uid": "u", "result": {"status": "Failure", "message": "no\x1b" * 1_000_000}},
        {"uid": "v" * 1_000_000, "result": {"status": "Success"}},
    ):
        with pytest.raises(conversion.ConversionFailed) as failure:
            conversion.answer(json.dumps({"response": response}).encode(), "u", "example.com/v2", [sent])
        assert len(str(failure.value)) < 10_000
        assert "\x1b" not in str(failure.value)
