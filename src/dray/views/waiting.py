"""Claims and pods in lists: who waits comes first, longest first."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from dray.api.conditions import POD_SCHEDULED, find_condition
from dray.api.generated.core import Pod
from dray.api.pods import is_finished
from dray.api.references import full_name
from dray.api.resource import ResourceClaim
from dray.api.resource.claim import ClaimState, claim_state
from dray.views.device import Document

MOST_CLAIMS: Final = 32
"""Claims of a pod that are named."""


class PodRow(Document, frozen=True, kw_only=True):
    """A pod that uses claims, or waits."""

    name: str
    state: str
    """`pending`, `gated`, `leaving`, or its phase in lower case."""
    node: str
    priority: int
    since: str | None
    message: str
    """Why it waits, as the scheduler wrote it down."""
    claims: tuple[str, ...]


class ClaimRow(Document, frozen=True, kw_only=True):
    """A claim."""

    name: str
    state: ClaimState
    since: str | None
    devices: tuple[str, ...]
    used_by: tuple[str, ...]
    asks: str


def pod_rows(pods: Iterable[Pod]) -> list[PodRow]:
    """Pods that wait for a node or use claims and are not finished."""
    rows = [_pod(pod) for pod in pods if not is_finished(pod) and (pod.spec.resource_claims or not pod.spec.node_name)]
    return sorted(rows, key=lambda row: (row.state not in ("pending", "gated"), row.since or "~", row.name))


def is_waiting(pod: Pod) -> bool:
    """Whether a pod has no node and wants one."""
    return not pod.spec.node_name and not is_finished(pod) and pod.metadata.deletion_timestamp is None


def _pod(pod: Pod) -> PodRow:
    told = find_condition(pod.status.conditions, POD_SCHEDULED)
    is_told = told is not None and told.status != "True"
    return PodRow(
        name=full_name(pod),
        state=_pod_state(pod),
        node=pod.spec.node_name,
        priority=pod.spec.priority or 0,
        since=str(pod.metadata.creation_timestamp) if pod.metadata.creation_timestamp else None,
        message=told.message if told is not None and is_told else "",
        claims=tuple(_some_claims(pod)),
    )


def _some_claims(pod: Pod) -> Iterator[str]:
    """A pod may have thousands: the first, and how many more."""
    claims = pod.spec.resource_claims
    for one in claims[:MOST_CLAIMS]:
        yield one.resource_claim_name or one.resource_claim_template_name or one.name
    if len(claims) > MOST_CLAIMS:
        yield f"and {len(claims) - MOST_CLAIMS} more"


def _pod_state(pod: Pod) -> str:
    if pod.metadata.deletion_timestamp is not None:
        return "leaving"
    if not pod.spec.node_name:
        return "gated" if pod.spec.scheduling_gates else "pending"
    return (pod.status.phase or "Pending").lower() if pod.status.phase != "Pending" else "starting"


def claim_rows(claims: Iterable[ResourceClaim]) -> list[ClaimRow]:
    """All claims."""
    return sorted((_claim(one) for one in claims), key=lambda row: (row.state != "pending", row.since or "~", row.name))


def claims_for(pod: str, claims: Iterable[ResourceClaim]) -> list[ResourceClaim]:
    """Those that are reserved for a pod (`namespace/name`)."""
    namespace, _, name = pod.partition("/")
    near = (one for one in claims if one.metadata.namespace == namespace)
    return [
        one for one in near if any(user.resource == "pods" and user.name == name for user in one.status.reserved_for)
    ]


def _claim(claim: ResourceClaim) -> ClaimRow:
    allocation = claim.status.allocation
    results = allocation.devices.results if allocation is not None else ()
    asks = []
    for request in claim.spec.devices.requests:
        exactly = request.exactly
        if exactly is None:
            asks.append(f"{request.name}: one of {len(request.first_available)}")
            continue
        number = "all" if exactly.allocation_mode == "All" else str(exactly.count or 1)
        asks.append(f"{number} × {exactly.device_class_name}")
    return ClaimRow(
        name=full_name(claim),
        state=claim_state(claim),
        since=str(claim.metadata.creation_timestamp) if claim.metadata.creation_timestamp else None,
        devices=tuple(f"{one.driver}/{one.pool}/{one.device}" for one in results),
        used_by=tuple(f"{claim.metadata.namespace}/{one.name}" for one in claim.status.reserved_for),
        asks=", ".join(asks),
    )
