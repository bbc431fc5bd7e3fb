"""Calls that many make in the same way, through any client: look whether something is there or may be done,
change or delete exactly this, and no other of its name."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, TypeVar

from dray.api.generated.authorization import ResourceAttributes, SelfSubjectAccessReview, SelfSubjectAccessReviewSpec
from dray.api.generated.core import Pod
from dray.api.kinds import PODS
from dray.api.meta import DeleteOptions, Object, Preconditions
from dray.api.registry import Kind
from dray.api.status import ApiError
from dray.client.interface import Client, PatchFormat

T = TypeVar("T", bound=Object)

ATTEMPTS: Final = 10


async def find(client: Client, kind: Kind, namespace: str, name: str, type_: type[T]) -> T | None:
    """An object as the server has it now; None if it is not there. Raises ApiError for anything else."""
    try:
        found = await client.get(kind, namespace, name)
    except ApiError as error:
        if error.code != 404:
            raise
        return None
    assert isinstance(found, type_)
    return found


async def may(client: Client, asked: ResourceAttributes) -> bool:
    """Whether the client's user may do something. Raises ApiError or OSError if the server does not tell."""
    review = SelfSubjectAccessReview(
        kind="SelfSubjectAccessReview",
        api_version="authorization.k8s.io/v1",
        spec=SelfSubjectAccessReviewSpec(resource_attributes=asked),
    )
    return (await client.create(review)).status.allowed


async def list_if_served(client: Client, kind: Kind, namespace: str = "") -> tuple[Object, ...] | None:
    """All objects of a kind; None if the server does not know the kind, or cannot list it."""
    try:
        return (await client.list(kind, namespace)).items
    except ApiError as error:
        if error.code not in (404, 405):
            raise
        return None


async def list_if_allowed(
    client: Client, kind: Kind, left_out: list[Kind], namespace: str = ""
) -> tuple[Object, ...] | None:
    """The same; None also for a kind that we may not list, which is then in `left_out`, for somebody to say so."""
    try:
        return await list_if_served(client, kind, namespace)
    except ApiError as error:
        if error.code != 403:
            raise
        left_out.append(kind)
        return None


async def delete_exactly(
    client: Client, kind: Kind, obj: Object, *, grace_seconds: int | None = None, propagation: str | None = None
) -> bool:
    """Deletes this object and no other of its name. False if it was gone already, or another has its name by now."""
    meta = obj.metadata
    options = DeleteOptions(
        grace_period_seconds=grace_seconds,
        preconditions=Preconditions(uid=meta.uid),
        propagation_policy=propagation,
    )
    try:
        await client.delete(kind, meta.namespace, meta.name, options)
    except ApiError as error:
        if error.code not in (404, 409) or (error.code == 409 and await _is_there(client, kind, obj)):
            raise
        return False
    return True


async def patch_as_it_is(
    client: Client, kind: Kind, name: str, type_: type[T], patch_of: Callable[[T], dict[str, Any]]
) -> None:
    """Patches an object without a namespace with what follows from how it is: of what others write meanwhile nothing is
    lost, for it is read again then. Raises ApiError."""
    for attempt in range(ATTEMPTS):
        found = await client.get(kind, "", name)
        assert isinstance(found, type_)
        patch = patch_of(found)
        metadata = {**patch.get("metadata", {}), "resourceVersion": found.metadata.resource_version}
        try:
            await client.patch(kind, "", name, {**patch, "metadata": metadata})
            return
        except ApiError as error:
            if error.code != 409 or attempt == ATTEMPTS - 1:
                raise


async def patch_pod_status(client: Client, pod: Pod, status: dict[str, Any]) -> bool:
    """Patches the status of this pod and of no other of its name; conditions are merged by their type.

    False if it was gone already, or another has its name by now: servers refuse another uid as invalid.
    """
    meta = pod.metadata
    patch = {"metadata": {"uid": meta.uid}, "status": status}
    try:
        await client.patch(PODS, meta.namespace, meta.name, patch, format=PatchFormat.STRATEGIC, subresource="status")
    except ApiError as error:
        if error.code not in (404, 409, 422) or (error.code != 404 and await _is_there(client, PODS, pod)):
            raise
        return False
    return True


async def _is_there(client: Client, kind: Kind, obj: Object) -> bool:
    """Whether a conflict was about something else than the name being another's by now."""
    found = await find(client, kind, obj.metadata.namespace, obj.metadata.name, Object)
    return found is not None and found.metadata.uid == obj.metadata.uid
