"""Whether a placement tolerates a cluster's taints, and for how long (OCM-12..18).

A time limit counts from the taint's `timeAdded` (OCM-12, X-06) and only for the effects NoSelect and
PreferNoSelect; a toleration without effect takes the taint's (OCM-13, OCM-44).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from dray.api.cluster import Toleration
from dray.api.cluster.managed_cluster import EFFECT_NO_SELECT_IF_NEW, EFFECT_PREFER_NO_SELECT
from dray.api.cluster.placement import OPERATOR_EQUAL, OPERATOR_EXISTS
from dray.placement.member import ClusterTaint
from dray.placement.moments import MICROS_PER_SECOND, Moment


class Tolerance(NamedTuple):
    """How a list of tolerations takes one taint at one moment."""

    tolerated: bool
    until: Moment | None = None
    """The first time limit to run out, None if none will."""
    expired: Moment | None = None
    """When the last matching toleration ran out, if one did and the taint is not tolerated."""


def find_fault(toleration: Toleration) -> str | None:
    """Why a toleration means nothing (OCM-08, OCM-10, SVS-77), or None."""
    if toleration.operator not in ("", OPERATOR_EQUAL, OPERATOR_EXISTS):
        return f"unknown operator {toleration.operator!r}; known are {OPERATOR_EQUAL} and {OPERATOR_EXISTS}"
    if not toleration.key and toleration.operator != OPERATOR_EXISTS:
        return f"an empty key matches all keys and needs operator {OPERATOR_EXISTS}"
    if toleration.value and toleration.operator == OPERATOR_EXISTS:
        return f"operator {OPERATOR_EXISTS} matches all values, so value must be empty"
    return None


def matches(toleration: Toleration, taint: ClusterTaint) -> bool:
    """Whether a toleration is about this taint, no matter for how long."""
    if toleration.effect and toleration.effect != taint.effect:
        return False
    if toleration.key and toleration.key != taint.key:
        return False
    return toleration.operator == OPERATOR_EXISTS or toleration.value == taint.value


def tolerate(taint: ClusterTaint, tolerations: Iterable[Toleration], now: Moment) -> Tolerance:
    """Try every toleration. One that still holds is enough; the first limit to run out is the one to wake for."""
    tolerated = False
    until: Moment | None = None
    expired: Moment | None = None
    for toleration in tolerations:
        if not matches(toleration, taint):
            continue
        limit = toleration.toleration_seconds
        if limit is None or taint.effect == EFFECT_NO_SELECT_IF_NEW:
            tolerated = True
            continue
        # A taint that does not say since when it is there has used up every limit.
        end = None if taint.added is None else taint.added + limit * MICROS_PER_SECOND
        if end is not None and now < end:
            tolerated = True
            until = end if until is None else min(until, end)
        elif end is not None:
            expired = end if expired is None else max(expired, end)
    return Tolerance(tolerated, until, None if tolerated else expired)


class Standing(NamedTuple):
    """How a placement stands to a cluster's taints."""

    repelled_by: ClusterTaint | None = None
    """The taint that keeps the cluster out: the first NoSelect one, else the first NoSelectIfNew one."""
    shunned_for: ClusterTaint | None = None
    """A taint for which the cluster is taken only if no other is left (OCM-16, SVS-75)."""
    until: Moment | None = None
    """When the first toleration that keeps the cluster in runs out."""


UNTAINTED = Standing()


def judge(
    taints: tuple[ClusterTaint, ...], tolerations: tuple[Toleration, ...], decided: bool, now: Moment
) -> Standing:
    """Every taint must be tolerated (OCM-18). `decided`: the cluster is in the placement's decisions already.

    Decided clusters are safe from NoSelectIfNew (OCM-17), and from PreferNoSelect, which evicts nobody (OCM-47).
    """
    barred_by: ClusterTaint | None = None
    shunned_for: ClusterTaint | None = None
    first: Moment | None = None
    for taint in taints:
        if decided and taint.effect in (EFFECT_NO_SELECT_IF_NEW, EFFECT_PREFER_NO_SELECT):
            continue
        tolerated, until, _ = tolerate(taint, tolerations, now)
        if taint.effect == EFFECT_PREFER_NO_SELECT:
            shunned_for = shunned_for if tolerated else shunned_for or taint
        elif not tolerated and taint.effect == EFFECT_NO_SELECT_IF_NEW:
            # A NoSelect further on is the better reason: it stands whether the cluster is decided or not.
            barred_by = barred_by or taint
        elif not tolerated:
            return Standing(repelled_by=taint)
        elif until is not None:
            first = until if first is None else min(first, until)
    return Standing(None, shunned_for, first) if barred_by is None else Standing(repelled_by=barred_by)
