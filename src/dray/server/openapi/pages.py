"""Serves the OpenAPI documents: made when first asked for, then kept as bytes."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Callable

import msgspec

from dray.server import errors
from dray.server.http import JSON, Answer, Request, Response
from dray.server.openapi import documents
from dray.server.openapi.operations import base_path
from dray.server.openapi.v2_protobuf import encode_document
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
    """The documents of one server. The table does not change while it runs, so each is made at most once."""

    def __init__(self, table: Table) -> None:
        self._table = table
        self._kept: dict[str, Kept] = {}
        self._making = asyncio.Lock()
        self._makers: dict[str, Callable[[], Kept]] = {
            INDEX: self._index,
            OLD: lambda: _keep(msgspec.json.encode(documents.version_2(table))),
            OLD_PROTOBUF: lambda: _keep(encode_document(documents.version_2(table)), OLD_PROTOBUF),
        }
        for group, versions in table.versions.items():
            for version in versions:
                self._makers[INDEX + base_path(group, version)] = self._maker(group, version)

    def _maker(self, group: str, version: str) -> Callable[[], Kept]:
        return lambda: _keep(msgspec.json.encode(documents.version_3(self._table, group, version)))

    def _index(self) -> Kept:
        """Every document with its hash, so that clients fetch only what changed."""
        paths = {}
        for path in self._makers:
            if path.startswith(f"{INDEX}/"):
                paths[path.removeprefix(f"{INDEX}/")] = {"serverRelativeURL": f"{path}?hash={self._get(path).hash}"}
        return _keep(msgspec.json.encode({"paths": paths}))

    def _get(self, name: str) -> Kept:
        if name not in self._kept:
            self._kept[name] = self._makers[name]()
        return self._kept[name]

    async def page(self, request: Request, _caller: Identity) -> Answer:
        """Answers everything below `/openapi`. Raises ApiError."""
        name = self._choose(request)
        if name not in self._kept:
            async with self._making:  # one thread at a time makes documents, while the loop serves others
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
