"""The kinds that a server has and dray does not know: custom resources, other API servers, newer versions.

Of their objects dray reads the metadata, which is enough to list and delete them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

import msgspec

from dray.api.registry import Kind, by_resource
from dray.api.status import ApiError
from dray.client.transport import Transport

T = TypeVar("T")


class _Version(msgspec.Struct):
    version: str


class _Group(msgspec.Struct, rename="camel"):
    name: str
    versions: list[_Version] = []
    preferred_version: _Version | None = None


class _GroupList(msgspec.Struct):
    groups: list[_Group] = []


class _Resource(msgspec.Struct):
    name: str
    kind: str
    namespaced: bool
    verbs: list[str] = []


class _ResourceList(msgspec.Struct):
    resources: list[_Resource] = []


async def find_foreign_kinds(transport: Transport) -> Sequence[Kind]:
    """All of them, each in the version that the server prefers. Raises ApiError or OSError if any group is silent."""
    found = await _kinds_of(transport, "/api/v1", "", "v1")
    for group in (await _ask(transport, "/apis", _GroupList)).groups:
        preferred = group.preferred_version
        versions = dict.fromkeys(
            [*([preferred.version] if preferred else []), *(one.version for one in group.versions)]
        )
        for version in versions:
            for plural, kind in (
                await _kinds_of(transport, f"/apis/{group.name}/{version}", group.name, version)
            ).items():
                found.setdefault(plural, kind)
    return tuple(found.values())


async def _kinds_of(transport: Transport, path: str, group: str, version: str) -> dict[str, Kind]:
    """By resource name, the kinds of a group and version that dray does not know in any version."""
    listed = (await _ask(transport, path, _ResourceList)).resources
    kinds = (
        Kind(group, one.kind, one.name, one.kind.lower(), one.namespaced, (version,), verbs=tuple(one.verbs))
        for one in listed
        if "/" not in one.name and by_resource(group, one.name) is None
    )
    return {kind.resource: kind for kind in kinds}


async def _ask(transport: Transport, path: str, type_: type[T]) -> T:
    data = await transport.request("GET", path)
    try:
        return msgspec.json.decode(data, type=type_)
    except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
        raise ApiError(500, "InternalError", f"{path} does not say what the server has: {error}") from None
