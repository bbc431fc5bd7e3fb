"""Which version of a kind a server has: dray prefers the newest that both know (4381-214).

A kind that a server does not have may be there as a custom resource in dray's own group, and is used in that form.
"""

from __future__ import annotations

import msgspec

from dray.api.registry import Kind, faces, other_face
from dray.api.status import ApiError
from dray.client.documents import Form
from dray.client.transport import Transport


class _Resource(msgspec.Struct):
    name: str


class _ResourceList(msgspec.Struct):
    resources: list[_Resource] = []


class ServedVersions:
    """Asks the server once per group and version, and again after `forget`."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport
        self._resources: dict[str, frozenset[str]] = {}

    async def form_of(self, kind: Kind) -> Form:
        """The form to use for a kind. Raises ApiError (404) if the server has none that dray knows."""
        kind = kind.storage if other_face(kind.storage) is kind else kind
        if len(kind.versions) == 1 and other_face(kind) is None:
            return Form(kind, kind.versions[0])
        found = await self._find(kind)
        if found is None:
            raise _missing(kind)
        return found

    async def check(self, kind: Kind) -> None:
        """Raises ApiError (404) if the server says that it has no such kind. Whoever gets in may ask that."""
        if kind.group and await self._find(kind) is None:
            raise _missing(kind)

    async def _find(self, kind: Kind) -> Form | None:
        """The newest version that both know; None if there is none, which is asked anew the next time."""
        for face in faces(kind):
            for version in face.versions:
                if face.plural in await self.served(face.api_version_of(version)):
                    return Form(face, version)
        self.forget(kind)
        return None

    def forget(self, kind: Kind) -> None:
        """What was found for a kind no longer holds: the server may have been replaced."""
        for face in faces(kind.storage):
            for version in face.versions:
                self._resources.pop(face.api_version_of(version), None)

    async def served(self, api_version: str) -> frozenset[str]:
        """The names of the resources in a version of a group; none if the server does not have it."""
        found = self._resources.get(api_version)
        if found is None:
            found = self._resources[api_version] = await self._discover(api_version)
        return found

    async def _discover(self, api_version: str) -> frozenset[str]:
        try:
            data = await self._transport.request("GET", f"/apis/{api_version}")
            listed = msgspec.json.decode(data, type=_ResourceList)
        except ApiError as error:
            if error.code == 404:
                return frozenset()
            raise
        except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
            raise ApiError(500, "InternalError", f"/apis/{api_version} is not a list of resources: {error}") from None
        return frozenset(resource.name for resource in listed.resources)


def _missing(kind: Kind) -> ApiError:
    known = ", ".join(face.api_version_of(version) for face in faces(kind) for version in face.versions)
    brought = "; dray install can bring it, and dray doctor says how" if other_face(kind) is not None else ""
    return ApiError(404, "NotFound", f"the server has no {kind.kind} in a version that dray knows ({known}){brought}")
