"""What every client can do. Failures are `dray.api.status.ApiError`, whatever the transport."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from enum import StrEnum
from typing import Any, Protocol, TypeVar

import msgspec

from dray.api.generated.core import Event, Pod
from dray.api.meta import DeleteOptions, Object
from dray.api.registry import Kind
from dray.api.resource import ResourceClaim

T = TypeVar("T", bound=Object)


class PatchFormat(StrEnum):
    """The patch formats, by media type."""

    JSON = "application/json-patch+json"
    MERGE = "application/merge-patch+json"
    STRATEGIC = "application/strategic-merge-patch+json"
    APPLY = "application/apply-patch+yaml"


class ObjectList(msgspec.Struct, frozen=True):
    """Objects as of one revision, which a watch can go on from."""

    items: tuple[Object, ...]
    revision: str


class WatchEvent(msgspec.Struct, frozen=True):
    """One change. `type` is ADDED, MODIFIED, DELETED or BOOKMARK (which only moves the revision on)."""

    type: str
    object: Object

    @property
    def revision(self) -> str:
        """Where a watch that broke after this event goes on."""
        return self.object.metadata.resource_version


class WatchExpired(Exception):
    """The revision is too old, or the server was restored: list again."""


class Client(Protocol):
    """The verbs. Types: the hub struct of the kind goes in and comes out."""

    async def get(self, kind: Kind, namespace: str, name: str) -> Object:
        """One object. Raises ApiError (404)."""
        ...

    async def list(self, kind: Kind, namespace: str = "", *, labels: str = "", fields: str = "") -> ObjectList:
        """All objects, in one namespace or everywhere, that selectors select."""
        ...

    def watch(
        self, kind: Kind, namespace: str = "", *, revision: str, labels: str = "", fields: str = ""
    ) -> AsyncIterator[WatchEvent]:
        """Changes after a revision; ends when the server ends it. Raises WatchExpired, ApiError, or OSError."""
        ...

    async def create(self, obj: T) -> T:
        """Stores a new object. Raises ApiError (409 if it exists)."""
        ...

    async def update(self, obj: T, subresource: str = "") -> T:
        """Replaces an object; with a resourceVersion only that version of it. Raises ApiError (409)."""
        ...

    async def update_with_status(self, obj: T) -> T:
        """Replaces an object, then its status: in one write if that can be, else in two. Raises ApiError."""
        ...

    async def bind_with_claims(
        self, pod: Pod, node: str, claims: Sequence[ResourceClaim], /
    ) -> Sequence[ResourceClaim] | None:
        """Gives a pod its node, and claims that had none their devices and the pod as user, in one write.

        The claims as they are stored; None, and nothing was written, if each has to be written by itself. Raises
        ApiError, and then nothing was written either.
        """
        ...

    async def create_events(self, events: Sequence[Event], /) -> Sequence[Event] | None:
        """Stores events in one write; None, and nothing was written, if that cannot be. Raises ApiError for all."""
        ...

    async def create_claims(self, pod: Pod, claims: Mapping[str, ResourceClaim], /) -> Sequence[ResourceClaim] | None:
        """Stores claims for entries of a pod, and their names in the pod's status, in one write.

        The claims as they are stored; None, and nothing was written, if each has to be written by itself. Raises
        ApiError, 409 if the pod has other claims by now, and then nothing was written either.
        """
        ...

    async def patch(
        self,
        kind: Kind,
        namespace: str,
        name: str,
        patch: Any,
        *,
        format: PatchFormat = PatchFormat.MERGE,
        subresource: str = "",
        field_manager: str = "",
        force: bool = False,
    ) -> Object:
        """Changes an object by a patch (plain values). Raises ApiError."""
        ...

    async def delete(self, kind: Kind, namespace: str, name: str, options: DeleteOptions | None = None) -> None:
        """Deletes an object. Raises ApiError (404, 409 for preconditions)."""
        ...

    async def post(
        self, kind: Kind, namespace: str, name: str, subresource: str, body: Mapping[str, Any] | Object
    ) -> dict[str, Any]:
        """Posts to a subresource such as pods/binding or pods/eviction; answers with what comes back."""
        ...
