"""Removing a pod: it is marked, then deleted, and never another pod of the same name."""

from __future__ import annotations

from typing import Final

from dray.api.generated.core import Pod
from dray.api.kinds import PODS
from dray.api.meta import DeleteOptions, Preconditions
from dray.api.status import ApiError
from dray.client import Client, PatchFormat
from dray.controllers.eviction.identity import DisruptionTarget
from dray.eviction import disruption_patch
from dray.process.clock import as_time
from dray.reconcile import Clock

REFUSALS: Final = (429, 500)
"""How the eviction API says no to a pod: a budget does not allow it now; several budgets are about it (500)."""
TRIES: Final = 5
PAUSE: Final = 0.01


async def remove_pod(client: Client, clock: Clock, pod: Pod, target: DisruptionTarget, *, force: bool = False) -> bool:
    """Marks a pod with DisruptionTarget and deletes it. False if it was gone already.

    Disruption budgets are not asked (3902-14). Only by `force` is the object removed without waiting for the node
    (3902-15). Tries a few times within a moment (SVS-69), then raises ApiError or OSError.
    """
    for attempt in range(1, TRIES + 1):
        try:
            return await _remove(client, clock, pod, target, force=force)
        except (ApiError, OSError):
            if attempt == TRIES:
                raise
            await clock.sleep(PAUSE)
    return False


async def _remove(client: Client, clock: Clock, pod: Pod, target: DisruptionTarget, *, force: bool) -> bool:
    meta = pod.metadata
    patch = disruption_patch(pod, target.reason, target.message, as_time(clock.now()))
    options = DeleteOptions(preconditions=Preconditions(uid=meta.uid), grace_period_seconds=0 if force else None)
    try:
        await client.patch(PODS, meta.namespace, meta.name, patch, format=PatchFormat.STRATEGIC, subresource="status")
        await client.delete(PODS, meta.namespace, meta.name, options)
    except ApiError as error:
        return await _was_gone(client, pod, error)
    return True


async def evict_pod(client: Client, pod: Pod) -> bool:
    """Asks the server to evict a pod, if disruption budgets allow it. False if it was gone already.

    The server marks the pod. Raises ApiError (see `refusal`) or OSError.
    """
    meta = pod.metadata
    body = {
        "apiVersion": "policy/v1",
        "kind": "Eviction",
        "metadata": {"name": meta.name, "namespace": meta.namespace},
        "deleteOptions": {"preconditions": {"uid": meta.uid}},
    }
    try:
        await client.post(PODS, meta.namespace, meta.name, "eviction", body)
    except ApiError as error:
        return await _was_gone(client, pod, error)
    return True


def refusal(error: ApiError) -> str:
    """Why the server does not let this one pod go now; empty if something else failed, of which others suffer, too."""
    if error.code not in REFUSALS:
        return ""
    details = error.status.details
    told = "; ".join(cause.message for cause in details.causes) if details is not None else ""
    return told or str(error)


async def _was_gone(client: Client, pod: Pod, error: ApiError) -> bool:
    """False if that is why something failed; raises the failure if not.

    A conflict may mean that the name belongs to another pod now, or that somebody else was writing; a patch that names
    the uid of another pod is invalid.
    """
    if error.code == 404:
        return False
    if error.code not in (409, 422):
        raise error
    try:
        current = await client.get(PODS, pod.metadata.namespace, pod.metadata.name)
    except ApiError as gone:
        if gone.code == 404:
            return False
        raise
    if current.metadata.uid == pod.metadata.uid:
        raise error
    return False
