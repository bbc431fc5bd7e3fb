"""What is fuzzed: each target takes bytes of strangers to the code that reads them, and complains of what must not be.

    framing    bytes of a connection          ─▶ requests, answers, or its end
    json, yaml, protobuf   a body             ─▶ an object, defaults, validation, bytes that read back as the same
    patch      a patch in each of the formats ─▶ an object
    cel        an expression                  ─▶ a selector, its result on a device
    grpc       what a driver answers          ─▶ what the agent makes of it

A refusal is an answer: `ApiError` and the typed errors of each room are expected, everything else is a finding.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import Callable
from functools import cache
from typing import Any

from google.protobuf.message import DecodeError as GrpcDecodeError

from dray import cel
from dray.api import codec, schema
from dray.api.kinds import CLAIMS, PODS
from dray.api.meta import Object
from dray.api.registry import Kind, by_kind
from dray.api.status import ApiError
from dray.api.times import Time
from dray.cel.view import DeviceView
from dray.node.answers import ClaimAnswer, judge_prepare
from dray.node.claim_record import ClaimRecord, DriverPart
from dray.node.driver_calls import _devices
from dray.plugins.generated import dra_v1_pb2
from dray.process.http import Answer, Limits, Request, Response, Server
from dray.process.http.connection import Connection
from dray.server.bodies import body
from dray.server.bodies.options import WriteOptions
from dray.server.patch import json_patch, managed, merge_patch, strategic
from dray.server.patch.apply import apply
from dray.server.patch.errors import PatchError
from dray.server.patch.formats import FORMATS, JSON_PATCH, MERGE_PATCH, STRATEGIC_PATCH
from dray.server.routes import Route
from dray.validation import Context
from dray.validation.table import rules_of

Target = Callable[[bytes], None]

NOW = Time.parse("2026-01-01T00:00:00Z")
MAPS = by_kind("v1", "ConfigMap")
KINDS = (PODS, CLAIMS, MAPS, by_kind("resource.k8s.io/v1", "ResourceSlice"), by_kind("apps/v1", "Deployment"))
PROTOBUF = "application/vnd.kubernetes.protobuf"

_POD = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "a", "labels": {"a": "b"}, "finalizers": ["x.y/z"]},
    "spec": {"containers": [{"name": "c", "image": "i", "env": [{"name": "A", "value": "b"}]}], "nodeName": "n"},
}


class _Transport(asyncio.Transport):
    """Takes what is written to it."""

    def __init__(self) -> None:
        super().__init__()
        self.is_over = False
        self.is_paused = False

    def pause_reading(self) -> None:
        self.is_paused = True

    def resume_reading(self) -> None:
        self.is_paused = False

    def write(self, data: bytes | bytearray | memoryview) -> None:
        assert bytes(data[:9]) in (b"HTTP/1.1 ", b"") or data

    def get_extra_info(self, name: str, default: Any = None) -> Any:  # noqa: ARG002
        return default

    def is_closing(self) -> bool:
        return self.is_over

    def close(self) -> None:
        self.is_over = True

    def abort(self) -> None:
        self.is_over = True

    def write_eof(self) -> None:
        pass


async def _answer(request: Request) -> Answer:
    return Response(200, request.body)


def _admit(request: Request) -> Response | None:
    return None if len(request.path) % 2 else Response(401, b"{}")


@cache
def _loop() -> asyncio.AbstractEventLoop:
    return asyncio.new_event_loop()


@cache
def _server() -> Server:
    async def make() -> Server:
        return Server(_answer, Limits(), _admit)

    return _loop().run_until_complete(make())


def framing(data: bytes) -> None:
    """A connection on which these bytes arrive, in pieces that the first byte tells the length of."""

    server = _server()

    async def talk() -> None:
        connection, transport = Connection(server), _Transport()
        connection.connection_made(transport)
        size = data[0] * 7 + 1 if data else 1
        for start in range(1, len(data), size):
            connection.data_received(data[start : start + size])
            while transport.is_paused and not transport.is_over:
                await asyncio.sleep(0)
        for _ in range(4):
            await asyncio.sleep(0)
        connection.connection_lost(None)
        await asyncio.sleep(0)

    _loop().run_until_complete(talk())


def _route(kind: Kind) -> Route:
    return Route("create", kind, kind.versions[0], "default" if kind.namespaced else "")


def _judge(kind: Kind, obj: Object) -> None:
    """Defaults, what the server decides, validation; what is stored reads back as the same."""
    rules, context = rules_of(kind), Context(now=NOW, version=kind.versions[0])
    made: Object = rules.prepare_create(rules.default(obj, NOW), context)
    rules.validate_create(made, context)
    rules.warnings(made)
    data = codec.encode(made)
    assert codec.encode(codec.decode(data, kind.hub)) == data


def _body(content_type: str) -> Target:
    def target(data: bytes) -> None:
        if not data:
            return
        kind = KINDS[data[0] % len(KINDS)]
        for validation in ("Strict", "Warn", "Ignore"):
            options = WriteOptions(field_validation=validation)
            try:
                obj = body.decode(data[1:], content_type, _route(kind), options, [])
            except ApiError as error:
                assert error.code < 500
            else:
                _judge(kind, obj)

    return target


def patch(data: bytes) -> None:
    """A patch of a pod in the format that the first byte tells."""
    if not data:
        return
    form = list(FORMATS)[data[0] % len(FORMATS)]
    definition = schema.for_kind("", "v1", "Pod")
    document = json.loads(json.dumps(_POD))
    try:
        wanted = body.read_patch(data[1:], form)
        if form == JSON_PATCH:
            made = json_patch.apply(document, wanted.value)
        elif form == MERGE_PATCH:
            made = merge_patch.apply(document, wanted.value)
        elif form == STRATEGIC_PATCH:
            made = strategic.apply(document, wanted.value, definition)
        else:
            made, _ = apply(document, wanted.value, managed.Write(definition, "m", str(NOW), ""), force=True)
        assert document == _POD or made is document
        if isinstance(made, dict):
            _judge(PODS, body.from_value(made, _route(PODS), WriteOptions(), []))
    except ApiError as error:
        assert error.code < 500
    except PatchError:
        return  # some are a 500 in Kubernetes, too


def selector(data: bytes) -> None:
    """An expression of at most what the API takes, on a device."""
    try:
        found = cel.compile(data[:2000].decode(errors="replace"))
    except cel.CompileError:
        return
    with contextlib.suppress(cel.SelectorError):
        found.matches_now(_device())


@cache
def _device() -> DeviceView:
    return DeviceView("gpu.example.com", {"gpu.example.com": {"model": "a", "index": 3}}, {})


def answer_of_a_driver(data: bytes) -> None:
    """What comes over the driver's socket, and whether it is believed."""
    driver = "gpu.example.com"
    record = ClaimRecord("default", "claim", "uid", {driver: DriverPart((("pool", "gpu-0"),))})
    try:
        answer = dra_v1_pb2.NodePrepareResourcesResponse.FromString(data)
    except GrpcDecodeError:
        return
    answers = {uid: ClaimAnswer(_devices(one.devices), one.error) for uid, one in answer.claims.items()}
    verdict = judge_prepare(driver, [record], answers)
    assert set(verdict.accepted) | set(verdict.problems) >= {"uid"}


TARGETS: dict[str, Target] = {
    "framing": framing,
    "json": _body("application/json"),
    "yaml": _body("application/yaml"),
    "protobuf": _body(PROTOBUF),
    "patch": patch,
    "cel": selector,
    "grpc": answer_of_a_driver,
}

_DOCUMENT = json.dumps(_POD).encode()
SEEDS: dict[str, list[bytes]] = {
    "framing": [
        b"\xffGET /api HTTP/1.1\r\nHost: x\r\n\r\n",
        b"\xffPOST /apis HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\nhello",
        b"\x02POST /abc HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\nA: b\r\n\r\n",
        b"\x05PUT / HTTP/1.1\r\nExpect: 100-continue\r\nContent-Length: 3\r\n\r\nabcGET / HTTP/1.1\r\n\r\n",
    ],
    "json": [bytes([number]) + _DOCUMENT for number in range(len(KINDS))],
    "yaml": [
        b"\x02kind: ConfigMap\napiVersion: v1\nmetadata: {name: a}\ndata: &x\n  a: 'b'\n  <<: *x\n",
        b"\x00" + _DOCUMENT,
    ],
    "protobuf": [b"\x00k8s\x00\n\t\n\x02v1\x12\x03Pod\x12\x05\n\x03\n\x01a\x1a\x00"],
    "patch": [
        bytes([number]) + text
        for number in range(len(FORMATS))
        for text in (
            b'[{"op":"replace","path":"/spec/containers/0/image","value":"j"},{"op":"test","path":"/kind","value":"Pod"}]',
            b'{"metadata":{"labels":{"a":null}},"spec":{"containers":[{"name":"c","$patch":"delete"}]}}',
            b'{"apiVersion":"v1","kind":"Pod","metadata":{"name":"a"},"spec":{"$setElementOrder/containers":[]}}',
        )
    ],
    "cel": [
        b'device.attributes["gpu.example.com"].model == "a" && device.driver in ["x", "gpu.example.com"]',
        b"[1,2,3].all(x, x > 0) || device.capacity['a'].b.compareTo(quantity('1Gi')) >= 0",
    ],
    "grpc": [
        dra_v1_pb2.NodePrepareResourcesResponse(
            claims={"uid": dra_v1_pb2.NodePrepareResourceResponse(error="no")}
        ).SerializeToString()
    ],
}
