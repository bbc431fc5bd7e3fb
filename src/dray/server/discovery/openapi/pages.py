"""Serves the OpenAPI documents: made when first asked for, then kept as bytes until what they tell of changes."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Callable

import msgspec

from dray.api.registry import Kind
from dray.process.http import JSON, Answer, Request, Response
from dray.server import errors
from dray.server.discovery.openapi import documents
from dray.server.discovery.openapi.operations import base_path
from dray.server.discovery.openapi.v2_protobuf import encode_document
from dray.server.routes import Table
from dray.server.security.identity import Identity

INDEX = "/openapi/v3"
OLD = "/openapi/v2"
OLD_PROTOBUF = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf"
OLD_PROTOBUF_TYPES = (OLD_PROTOBUF, "application/com.github.proto-openapi.spec.v2@v1.0+protobuf")
"""What clients ask for has an `@`, which is no legal media type: the answer is named without."""
_FOREVER = "public, max-age=31536000, immutable"


class Kept(msgspec.Struct, frozen=True):
    """A document as it goes over the wire."""

    body: bytes
    content_type: str
    hash: str

    @property
    def etag(self) -> str:
        """The tag by which a client recognises what it has already."""
        return f'"{self.hash}"'


def _keep(body: bytes, content_type: str = JSON) -> Kept:
    return Kept(body, content_type, hashlib.sha512(body).hexdigest().upper())


class OpenApi:
    """The documents of one server. Each is made once, and again when a definition has changed what it tells of."""

    def __init__(self, table: Table) -> None:
        self._table = table
        self._making = asyncio.Lock()
        self._kept: dict[str, Kept] = {}
        self._served: dict[tuple[str, str], list[Kind]] = {}
        self._generation = -1
        self._makers: dict[str, Callable[[], Kept]] = {}

    def _catch_up(self) -> None:
        """Forgets the documents that are not true any more: those of everything, and those of groups that changed."""
        if self._generation == self._table.generation:
            return
        self._generation = self._table.generation
        before, self._served = self._served, dict(documents.served_kinds(self._table))
        for name in (INDEX, OLD, OLD_PROTOBUF):
            self._kept.pop(name, None)
        served = self._served
        self._makers = {
            INDEX: self._index,
            OLD: lambda: _keep(msgspec.json.encode(documents.version_2(served))),
            OLD_PROTOBUF: lambda: _keep(encode_document(documents.version_2(served)), OLD_PROTOBUF),
        }
        for place in {*before, *served}:
            if before.get(place) != served.get(place):
                self._kept.pop(INDEX + base_path(*place), None)
        for place, kinds in served.items():
            self._makers[INDEX + base_path(*place)] = self._maker(kinds, *place)

    @staticmethod
    def _maker(kinds: list[Kind], group: str, version: str) -> Callable[[], Kept]:
        return lambda: _keep(msgspec.json.encode(documents.version_3(kinds, group, version)))

    def _index(self) -> Kept:
        """Every document with its hash, so that clients fetch only what changed."""
        paths = {}
        for path in list(self._makers):
            if path.startswith(f"{INDEX}/"):
                paths[path.removeprefix(f"{INDEX}/")] = {"serverRelativeURL": f"{path}?hash={self._get(path).hash}"}
        return _keep(msgspec.json.encode({"paths": paths}))

    def _get(self, name: str) -> Kept:
        if name not in self._kept:
            self._kept[name] = self._makers[name]()
        return self._kept[name]

    async def page(self, request: Request, _caller: Identity) -> Answer:
        """Answers everything below `/openapi`. Raises ApiError."""
        async with self._making:  # one thread at a time makes documents, while the loop serves others
            self._catch_up()
            name = self._choose(request)
            if name not in self._kept:
                await asyncio.to_thread(self._get, name)
            found = self._kept[name]
        headers: tuple[tuple[str, str], ...] = (("ETag", found.etag), ("Vary", "Accept"))
        asked = request.query.get("hash", "")
        if asked and asked != found.hash:
            location = f"{request.path}?hash={found.hash}"
            return Response(301, b"", found.content_type, (*headers, ("Location", location)))
        headers = (*headers, ("Cache-Control", _FOREVER if asked else "public, no-cache"))
        if request.header("if-none-match") == found.etag:
            return Response(304, b"", found.content_type, headers)
        return Response(200, found.body, found.content_type, headers)

    def _choose(self, request: Request) -> str:
        """The name of the document that a request is about."""
        path = request.path.rstrip("/")
        if path not in self._makers or path == OLD_PROTOBUF:
            raise errors.page_not_found()
        media = [part.partition(";")[0].strip().lower() for part in request.header("accept").split(",")]
        for wanted in media:
            if path == OLD and wanted in OLD_PROTOBUF_TYPES:
                return OLD_PROTOBUF
            if wanted in ("", JSON, "*/*", "application/*"):
                return path
        raise errors.not_acceptable((JSON, OLD_PROTOBUF) if path == OLD else (JSON,))
