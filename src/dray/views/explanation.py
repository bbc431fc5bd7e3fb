"""Why something is pending, as a picture: node by node, device by device, what is in the way, and what would help.

The same explanation that `dray explain` tells; here in pieces that can be drawn.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import datetime
from typing import Final

from dray.allocator.reasons import ClaimReport, DeviceReport, NodeReport, RequestReport
from dray.api.references import full_name
from dray.api.resource import ResourceClaim
from dray.prose.device_reasons import blocked_by, is_match, tell_device
from dray.prose.explanations import tell_totals, tell_wish
from dray.prose.remedies import Trials, find_advice, find_closest, tell_hopeless
from dray.prose.remedy import tell_remedy
from dray.scheduling.text import tell_preemption
from dray.snapshot.explanation import ClaimExplanation
from dray.snapshot.pod_explanation import PodExplanation
from dray.views.device import Document
from dray.views.waiting import ClaimRow, claim_rows

MOST_NODES: Final = 60
"""Nodes that are drawn, the nearest to fitting first; the rest is counted."""
MOST_DEVICES: Final = 128


class DeviceCell(Document, frozen=True, kw_only=True):
    """A device of a node; `check` is the kind of check that it failed, empty if it could be taken."""

    name: str
    check: str
    why: str


class NodeStrip(Document, frozen=True, kw_only=True):
    """A node and its devices, for one request."""

    node: str
    fits: bool
    matching: int
    free: int
    missing: int
    """How many devices fewer would have to be asked for."""
    blocked_by: str
    devices: tuple[DeviceCell, ...]


class RequestPicture(Document, frozen=True, kw_only=True):
    """A request of a claim."""

    name: str
    wish: str
    totals: str
    closest: str | None
    remedies: tuple[str, ...]
    """Each continues "It would fit …", and was tried."""
    hopeless: str = ""
    """Said if nothing that was tried helps."""
    nodes: tuple[NodeStrip, ...]
    more_nodes: int


class ClaimPicture(Document, frozen=True, kw_only=True):
    """A claim."""

    claim: str
    error: str | None
    requests: tuple[RequestPicture, ...]


class Picture(Document, frozen=True, kw_only=True):
    """A pod or a claim that waits, or not."""

    subject: str
    status: str
    node: str = ""
    message: str = ""
    notes: tuple[str, ...] = ()
    preemption: str | None = None
    unsuitable: dict[str, tuple[str, ...]] = {}
    """By reason, the nodes that do not take the pod, devices aside."""
    claims: tuple[ClaimPicture, ...] = ()
    passed_over: dict[str, str] = {}
    has: tuple[ClaimRow, ...] = ()
    """The claims that it has devices by."""


def pod_picture(explanation: PodExplanation, holding: Iterable[ResourceClaim], now: datetime) -> Picture:
    """Why a pod is where it is, or nowhere; `holding` are the claims that are reserved for it."""
    unsuitable: dict[str, list[str]] = {}
    for node, why in explanation.unsuitable.items():
        unsuitable.setdefault(why, []).append(node)
    claims = explanation.claims
    return Picture(
        subject=explanation.pod,
        status=explanation.status,
        node=explanation.node,
        message=explanation.message,
        notes=explanation.notes,
        preemption=tell_preemption(explanation.preemption) if explanation.preemption is not None else None,
        unsuitable={why: tuple(nodes) for why, nodes in unsuitable.items()},
        claims=tuple(_claims(claims, now)) if claims is not None else (),
        passed_over=claims.passed_over if claims is not None else {},
        has=tuple(claim_rows(holding)),
    )


def allocated_picture(claim: ResourceClaim) -> Picture:
    """A claim that has what it asks for."""
    return Picture(subject=full_name(claim), status="allocated", has=tuple(claim_rows([claim])))


def claim_picture(name: str, explanation: ClaimExplanation, now: datetime) -> Picture:
    """Why a claim fits or not."""
    fits = [verdict.node for verdict in explanation.report.nodes if verdict.status == "allocated"]
    return Picture(
        subject=name,
        status="fits" if fits else "pending",
        node=fits[0] if fits else "",
        message=explanation.report.error or explanation.brief(),
        claims=tuple(_claims(explanation, now)),
        passed_over=explanation.passed_over,
    )


def _claims(explanation: ClaimExplanation, now: datetime) -> Iterator[ClaimPicture]:
    for claim in explanation.report.claims:
        requests = tuple(_request(claim, request, explanation.trials, now) for request in claim.requests)
        yield ClaimPicture(claim=claim.claim, error=claim.error, requests=requests)


def _request(claim: ClaimReport, request: RequestReport, trials: Trials | None, now: datetime) -> RequestPicture:
    closest = None if any(node.fits for node in request.nodes) else find_closest(request)
    advice = None if closest is None or trials is None else find_advice(claim.claim, request, trials)
    is_hopeless = closest is not None and trials is not None and advice is None
    if closest is not None and not closest.matching:
        closest = None
    nodes = sorted(request.nodes, key=lambda one: (not one.fits, not one.matching, one.missing, -one.free))
    return RequestPicture(
        name=request.name,
        wish=tell_wish(request),
        totals=tell_totals(request),
        closest=advice.node.node if advice is not None else closest.node if closest is not None else None,
        remedies=() if advice is None else tuple(map(tell_remedy, advice.remedies)),
        hopeless=tell_hopeless(request) if is_hopeless else "",
        nodes=tuple(_node(node, now) for node in nodes[:MOST_NODES]),
        more_nodes=max(0, len(nodes) - MOST_NODES),
    )


def _node(node: NodeReport, now: datetime) -> NodeStrip:
    return NodeStrip(
        node=node.node,
        fits=node.fits,
        matching=node.matching,
        free=node.free,
        missing=node.missing,
        blocked_by="" if node.fits else blocked_by(node, now),
        devices=tuple(_cell(device, now) for device in node.devices[:MOST_DEVICES]),
    )


def _cell(device: DeviceReport, now: datetime) -> DeviceCell:
    kind = "" if device.check is None else str(device.check.__struct_config__.tag)
    if kind and not is_match(device):
        kind = "selector"
    return DeviceCell(name=device.device, check=kind, why=tell_device(device, now))
