"""The client against servers that misbehave, are newer, or cannot serve just now."""

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from dray.api.generated.core import ConfigMap, Pod
from dray.api.registry import by_kind
from dray.api.status import ApiError
from dray.api.wire import MAGIC, MEDIA_TYPE, bytes_field
from dray.client import Informer, WatchExpired
from dray.client.http import HttpClient
from dray.client.kubeconfig import Connection
from dray.process.http import Answer, Request, Response, Stream
from patience import PATIENCE
from scripted_http import Script, scripted_http

CONFIG_MAPS = by_kind("v1", "ConfigMap")
PODS = by_kind("v1", "Pod")
CLAIMS = by_kind("resource.k8s.io/v1", "ResourceClaim")
PATCHES = by_kind("resource.k8s.io/v1alpha3", "ResourceSlicePatch")
SLICES = by_kind("resource.k8s.io/v1", "ResourceSlice")


@contextlib.asynccontextmanager
async def scripted_client(script: Script, **options: Any) -> AsyncIterator[HttpClient]:
    async with scripted_http(script) as url, HttpClient(Connection(server=url), **options) as client:
        yield client


def as_json(value: Any, code: int = 200, **headers: str) -> Response:
    named = tuple((name.replace("_", "-"), text) for name, text in headers.items())
    return Response(code, json.dumps(value).encode(), headers=named)


def status(code: int, reason: str, message: str = "") -> dict[str, Any]:
    return {"kind": "Status", "apiVersion": "v1", "code": code, "reason": reason, "message": message}


def config_map(name: str = "a", revision: str = "7", **more: Any) -> dict[str, Any]:
    meta = {"name": name, "namespace": "default", "resourceVersion": revision, "uid": "u"}
    return {"kind": "ConfigMap", "apiVersion": "v1", "metadata": meta, **more}


def events(*lines: Any) -> Stream:
    async def chunks() -> AsyncIterator[bytes]:
        for line in lines:
            yield line if isinstance(line, bytes) else json.dumps(line).encode() + b"\n"

    return Stream(chunks())


class Pauses:
    """Sleeps that are noted instead of slept."""

    def __init__(self) -> None:
        self.seconds: list[float] = []

    async def __call__(self, seconds: float) -> None:
        self.seconds.append(seconds)


@pytest.mark.parametrize("code", [429, 503])
async def test_a_busy_server_is_asked_again_when_it_says_also_for_writes(code: int) -> None:
    asked: list[str] = []

    def script(request: Request) -> Answer:
        asked.append(request.method)
        if len(asked) < 3:
            return as_json(status(code, "TooManyRequests"), code, Retry_After="4")
        return as_json(config_map())

    pauses = Pauses()
    async with scripted_client(script, sleep=pauses) as client:
        made = ConfigMap(kind="ConfigMap", api_version="v1")
        assert (await client.create(made)).metadata.name == "a"
    assert asked == ["POST"] * 3
    assert pauses.seconds == [4, 4]


async def test_trouble_without_a_hint_is_retried_for_reads_alone_and_not_forever() -> None:
    asked: list[str] = []

    def script(request: Request) -> Answer:
        asked.append(request.method)
        return Response(503, b"<html>upstream is gone</html>", "text/html")

    pauses = Pauses()
    async with scripted_client(script, sleep=pauses) as client:
        for call in (client.get(CONFIG_MAPS, "default", "a"), client.delete(CONFIG_MAPS, "default", "a")):
            with pytest.raises(ApiError, match="upstream is gone") as failed:
                await call
            assert failed.value.code == 503
    assert asked == ["GET"] * 6 + ["DELETE"]
    assert pauses.seconds == sorted(pauses.seconds)


async def test_an_eviction_that_a_budget_forbids_is_for_the_caller_to_repeat() -> None:
    asked: list[str] = []

    def script(request: Request) -> Answer:
        asked.append(request.path)
        return as_json(status(429, "TooManyRequests", "budget"), 429, Retry_After="10")

    async with scripted_client(script) as client:
        with pytest.raises(ApiError) as refused:
            await client.post(PODS, "default", "p", "eviction", {"metadata": {"name": "p"}})
        assert refused.value.reason == "TooManyRequests"
    assert asked == ["/api/v1/namespaces/default/pods/p/eviction"]


@pytest.mark.parametrize("how", ["answer", "event"])
async def test_a_watch_from_too_long_ago_expires(how: str) -> None:
    def script(_: Request) -> Answer:
        gone = status(410, "Expired", "too old resource version")
        return as_json(gone, 410) if how == "answer" else events({"type": "ERROR", "object": gone})

    async with scripted_client(script) as client:
        with pytest.raises(WatchExpired, match="too old"):
            async for _ in client.watch(CONFIG_MAPS, revision="1"):
                pass


async def test_a_watch_passes_bookmarks_errors_and_broken_lines_on() -> None:
    bookmark = {"kind": "Pod", "apiVersion": "v1", "metadata": {"resourceVersion": "9"}, "spec": {"containers": None}}

    def script(request: Request) -> Answer:
        assert request.query["allowWatchBookmarks"] == "true"
        assert 300 <= int(request.query["timeoutSeconds"]) <= 600
        if request.query["resourceVersion"] == "1":
            return events({"type": "BOOKMARK", "object": bookmark})
        if request.query["resourceVersion"] == "2":
            return events({"type": "ERROR", "object": status(500, "InternalError", "broken")})
        return events({"type": "ADDED", "object": {"metadata": {"name": "p"}}}, b'{"type": "ADD')

    async with scripted_client(script) as client:
        async for event in client.watch(PODS, revision="1"):
            assert (event.type, event.revision, event.object.kind) == ("BOOKMARK", "9", "Pod")
        with pytest.raises(ApiError, match="broken"):
            async for _ in client.watch(PODS, revision="2"):
                pass
        watch = client.watch(PODS, revision="3")
        assert (await anext(watch)).object.metadata.name == "p"
        with pytest.raises(OSError, match="cut off"):
            await anext(watch)


async def test_events_may_arrive_in_pieces() -> None:
    line = json.dumps({"type": "ADDED", "object": config_map("long", data={"x": "y" * 300_000})}).encode() + b"\n"

    def script(_: Request) -> Answer:
        return events(line[:10], line[10:90_000], line[90_000:] + line[:50], line[50:])

    async with scripted_client(script) as client:
        assert [event.object.metadata.name async for event in client.watch(CONFIG_MAPS, revision="1")] == ["long"] * 2


async def test_pages_that_expire_are_read_again_at_once() -> None:
    limits: list[str] = []

    def script(request: Request) -> Answer:
        limits.append(request.query.get("limit", ""))
        if "continue" in request.query:
            return as_json(status(410, "Expired"), 410)
        meta = {"resourceVersion": "5"} | ({"continue": "more"} if "limit" in request.query else {})
        return as_json({"kind": "ConfigMapList", "metadata": meta, "items": [config_map()]})

    async with scripted_client(script) as client:
        listing = await client.list(CONFIG_MAPS)
        assert (len(listing.items), listing.revision) == (1, "5")
    assert limits == ["1000", "1000", ""]


class NewerServer:
    """Serves one pod with fields that dray does not know, and takes what is sent as it is."""

    def __init__(self) -> None:
        self.writes: list[str] = []
        self.race = 0
        meta = {"name": "p", "namespace": "default", "uid": "u", "resourceVersion": "1", "newMeta": {"a": 1}}
        containers = [
            {"name": "one", "image": "i", "newField": 1},
            {"name": "two", "image": "i", "resources": {"newList": [1, 2]}},
        ]
        self.pod: dict[str, Any] = {
            "kind": "Pod",
            "apiVersion": "v1",
            "metadata": meta,
            "spec": {"containers": containers, "newSpec": ["x"], "restartPolicy": "Brand-New-Policy"},
        }

    def __call__(self, request: Request) -> Answer:
        if request.method == "PUT":
            sent = json.loads(request.body)
            self.writes.append(sent["metadata"].get("resourceVersion", ""))
            if sent["metadata"].get("resourceVersion") != self.pod["metadata"]["resourceVersion"] or self.race:
                self.race = 0
                self._count()
                return as_json(status(409, "Conflict"), 409)
            self.pod = sent
            self._count()
        if request.path.endswith("/pods"):
            return as_json({"metadata": {"resourceVersion": "1"}, "items": [self.pod], "newListField": 1})
        return as_json(self.pod)

    def _count(self) -> None:
        self.pod["metadata"]["resourceVersion"] = str(int(self.pod["metadata"]["resourceVersion"]) + 1)


@pytest.mark.req("implied-17")
async def test_fields_of_a_newer_server_survive_read_modify_write() -> None:
    """Implied 17."""
    server = NewerServer()

    async with scripted_client(server) as client:
        (pod,) = (await client.list(PODS)).items
        assert isinstance(pod, Pod)
        assert pod.spec.restart_policy == "Brand-New-Policy"
        first, second = pod.spec.containers
        changed = replace(pod.spec, containers=(replace(second, image="j"), first))
        labelled = replace(pod.metadata, labels={"a": "b"})
        await client.update(replace(pod, metadata=labelled, spec=changed))
        with pytest.raises(ApiError) as stale:
            await client.update(pod)
        assert stale.value.code == 409
    assert server.pod["metadata"]["newMeta"] == {"a": 1}
    assert server.pod["metadata"]["labels"] == {"a": "b"}
    assert server.pod["spec"]["newSpec"] == ["x"]
    assert server.pod["spec"]["containers"] == [
        {"name": "two", "image": "j", "resources": {"newList": [1, 2]}},
        {"name": "one", "image": "i", "newField": 1},
    ]


async def test_an_update_without_a_version_wins_a_race_and_loses_nothing() -> None:
    server = NewerServer()

    async with scripted_client(server) as client:
        pod = await client.get(PODS, "default", "p")
        server.race = 1
        await client.update(replace(pod, metadata=replace(pod.metadata, resource_version="", labels={"a": "b"})))
    assert server.writes == ["1", "2"]
    assert server.pod["metadata"]["labels"] == {"a": "b"}
    assert server.pod["spec"]["newSpec"] == ["x"]


async def test_warnings_are_heard() -> None:
    heard: list[str] = []

    def script(_: Request) -> Answer:
        return as_json(config_map(), Warning='299 - "say \\"no\\" to this"')

    async with scripted_client(script, warn=heard.append) as client:
        await client.get(CONFIG_MAPS, "default", "a")
    assert heard == ['say "no" to this']


async def test_a_trial_wants_no_warnings_of_fields_that_are_dropped() -> None:
    asked: list[dict[str, str]] = []

    def script(request: Request) -> Answer:
        asked.append(dict(request.query))
        return as_json(config_map())

    async with scripted_client(script) as client:
        await client.try_create(msgspec.convert(config_map(), ConfigMap))
    assert {"dryRun": "All", "fieldValidation": "Ignore"}.items() <= asked[-1].items()


async def test_what_is_no_object_is_said() -> None:
    answers = iter(
        [
            as_json({"metadata": {"name": 7}}),
            Response(200, b"<html>"),
            as_json([1]),
            as_json({"metadata": {}, "items": [{"metadata": {"labels": 5}}]}),
        ]
    )

    async with scripted_client(lambda _: next(answers)) as client:
        for _ in range(2):
            with pytest.raises(ApiError, match="sent a ConfigMap that cannot be read"):
                await client.get(CONFIG_MAPS, "default", "a")
        for _ in range(2):
            with pytest.raises(ApiError, match="sent a ConfigMap that cannot be read"):
                await client.list(CONFIG_MAPS)


async def test_a_token_file_is_read_again_when_the_server_no_longer_takes_the_token(tmp_path: Path) -> None:
    token = tmp_path / "token"
    token.write_text("old\n")
    seen: list[str] = []

    def script(request: Request) -> Answer:
        seen.append(request.header("authorization"))
        if request.header("authorization") != "Bearer new":
            token.write_text("new\n")
            return as_json(status(401, "Unauthorized"), 401)
        return as_json(config_map())

    async with scripted_http(script) as url, HttpClient(Connection(server=url, token_file=token)) as client:
        await client.get(CONFIG_MAPS, "default", "a")
        token.write_text("other")
        await client.get(CONFIG_MAPS, "default", "a")
    assert seen == ["Bearer old", "Bearer new", "Bearer new"]


@pytest.mark.req("4381-214")
async def test_versions_are_found_again_after_the_server_was_replaced() -> None:
    served = {"v1beta1"}
    asked: list[str] = []

    def script(request: Request) -> Answer:
        _, _, _, version, *rest = request.path.split("/")
        asked.append(request.path)
        if version not in served:
            return as_json(status(404, "NotFound"), 404)
        if not rest:
            return as_json({"kind": "APIResourceList", "resources": [{"name": "resourceslices"}]})
        return as_json({"metadata": {"resourceVersion": "1"}, "items": []})

    async with scripted_client(script) as client:
        await client.list(SLICES)
        served.clear()
        served.add("v1")
        with pytest.raises(ApiError):
            await client.list(SLICES)
        await client.list(SLICES)
    assert asked[-2:] == ["/apis/resource.k8s.io/v1", "/apis/resource.k8s.io/v1/resourceslices"]


class Guarded:
    """A server that asks for rights before anything else, as Kubernetes does: what is not there is forbidden, too."""

    def __init__(self, *resources: str) -> None:
        self.resources = resources

    def __call__(self, request: Request) -> Answer:
        if request.path == "/apis/resource.k8s.io/v1alpha3":
            return as_json({"kind": "APIResourceList", "resources": [{"name": name} for name in self.resources]})
        if request.path == "/apis/dray.dev/v1alpha1":
            return as_json(status(404, "NotFound"), 404)
        return as_json(status(403, "Forbidden", "you cannot list that"), 403)


async def test_a_kind_that_the_server_has_not_is_missing_even_for_those_who_may_not_read_it() -> None:
    server = Guarded("devicetaintrules")

    async with scripted_client(server) as client:
        with pytest.raises(ApiError, match="the server has no ResourceSlicePatch") as missing:
            await client.list(PATCHES)
        assert missing.value.code == 404
        server.resources = ("devicetaintrules", "resourceslicepatches")  # it was upgraded
        with pytest.raises(ApiError, match="you cannot list that") as forbidden:
            await client.list(PATCHES)
        assert forbidden.value.code == 403


async def test_an_informer_goes_on_without_a_kind_that_is_missing_and_says_what_is_forbidden(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async with scripted_client(Guarded()) as client:
        for kind, expected in ((PATCHES, True), (PODS, False)):
            paused = asyncio.Event()

            async def pause(_seconds: float, paused: asyncio.Event = paused) -> None:
                paused.set()
                await asyncio.get_running_loop().create_future()

            informer: Informer[Any] = Informer(client, kind, sleep=pause)
            task = asyncio.create_task(informer.run())
            await asyncio.wait_for(paused.wait(), PATIENCE)
            assert informer.has_synced is expected
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await task
    assert [record.getMessage() for record in caplog.records if record.name == "dray.client.informer"] == [
        "cannot list pods: you cannot list that; it is tried again"
    ]


class ByteByByte:
    """A server that compares a claim's parameters with what was written, which it tells in JSON without its spaces."""

    def __init__(self) -> None:
        self.written = b'{"kind": "Config",  "mode" : 1}'
        self.finalizers = ["old"]

    @property
    def document(self) -> dict[str, Any]:
        meta = {"name": "c", "namespace": "default", "resourceVersion": "7", "uid": "u", "finalizers": self.finalizers}
        opaque = {"driver": "d.example.com", "parameters": json.loads(self.written)}
        spec = {"devices": {"config": [{"opaque": opaque}]}}
        return {"kind": "ResourceClaim", "apiVersion": "resource.k8s.io/v1", "metadata": meta, "spec": spec}

    @property
    def message(self) -> bytes:
        named = b"".join(bytes_field(14, name.encode()) for name in self.finalizers)
        return MAGIC + bytes_field(2, bytes_field(1, named) + bytes_field(2, self.written))

    def __call__(self, request: Request) -> Answer:
        if request.path == "/apis/resource.k8s.io/v1":
            return as_json({"kind": "APIResourceList", "resources": [{"name": "resourceclaims"}]})
        if request.method == "GET":
            in_protobuf = request.header("accept") == MEDIA_TYPE
            return Response(200, self.message, MEDIA_TYPE) if in_protobuf else as_json(self.document)
        if request.header("content-type") != MEDIA_TYPE or self.written not in request.body:
            return as_json(status(422, "Invalid", "field is immutable"), 422)
        self.finalizers = ["new"] if b"new" in request.body else []
        return as_json(self.document)


async def test_finalizers_of_claims_are_written_where_a_server_compares_bytes() -> None:
    server = ByteByByte()
    async with scripted_client(server) as client:
        found = await client.get(CLAIMS, "default", "c")
        for wanted in (("new",), ()):
            changed = replace(found, metadata=replace(found.metadata, finalizers=wanted))
            assert (await client.update(changed)).metadata.finalizers == wanted == tuple(server.finalizers)
        other = replace(found, metadata=replace(found.metadata, labels={"a": "b"}))
        with pytest.raises(ApiError, match="immutable"):
            await client.update(other)
