"""Removing a pod: it is marked, then deleted gracefully, and never another pod of the same name."""

from __future__ import annotations

from dray.api.generated.core import Pod
from dray.api.meta import DeleteOptions, Preconditions
from dray.api.status import ApiError
from dray.api.times import Time
from dray.client import Client, PatchFormat
from dray.controllers.kinds import PODS
from dray.eviction import disruption_patch


async def remove_pod(client: Client, pod: Pod, reason: str, message: str, now: Time) -> bool:
    """Marks a pod with DisruptionTarget and deletes it. False if it was gone already.

    Disruption budgets are not asked (3902-14), and nothing is forced (3902-15). Raises ApiError or OSError.
    """
    meta = pod.metadata
    patch = disruption_patch(pod, reason, message, now)
    options = DeleteOptions(preconditions=Preconditions(uid=meta.uid))
    try:
        await client.patch(PODS, meta.namespace, meta.name, patch, format=PatchFormat.STRATEGIC, subresource="status")
        await client.delete(PODS, meta.namespace, meta.name, options)
    except ApiError as error:
        if error.code == 404 or (error.code == 409 and await _is_gone(client, pod)):
            return False
        raise
    return True


async def _is_gone(client: Client, pod: Pod) -> bool:
    """Whether a conflict means that the name belongs to another pod now, and not that somebody else was writing."""
    try:
        current = await client.get(PODS, pod.metadata.namespace, pod.metadata.name)
    except ApiError as error:
        if error.code == 404:
            return True
        raise
    return current.metadata.uid != pod.metadata.uid
