"""Why a placement chose what it chose: for each cluster of the fleet the stage at which it fell out, and the reason."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final

from dray.placement.member import ClusterTaint, Member
from dray.placement.moments import in_words, seconds_between
from dray.placement.tolerations import judge, tolerate
from dray.placement.trace import Trace

ROWS: Final = 100
"""Clusters that the text for people lists; `to_dict` has them all."""


class Stage(StrEnum):
    """Where a cluster's way through the pipeline ended."""

    SELECTED = "selected"
    DELETING = "deleting"
    CLUSTER_SET = "clusterSet"
    PREDICATE = "predicate"
    TAINT = "taint"
    SCORE = "score"
    MISCONFIGURED = "misconfigured"
    HELD = "held"


@dataclass(frozen=True, slots=True)
class Reason:
    """One cluster's lot."""

    cluster: str
    stage: Stage
    text: str
    score: int | None = None
    taint: str | None = None
    """The taint that keeps the cluster out, or that is tolerated for a limited time."""
    tolerated_seconds: float | None = None
    """How long that taint is still tolerated; negative: how long ago the toleration ran out."""

    def to_dict(self) -> dict[str, Any]:
        """For programs; what does not apply is left out."""
        extra = {"score": self.score, "taint": self.taint, "toleratedSeconds": self.tolerated_seconds}
        return {"cluster": self.cluster, "stage": self.stage.value, "reason": self.text} | {
            key: value for key, value in extra.items() if value is not None
        }


@dataclass(frozen=True, slots=True)
class Explanation:
    """All clusters of the fleet by name, the selected ones first. `str()` is for people."""

    placement: str
    summary: str
    clusters: tuple[Reason, ...]
    problem: str | None = None

    def of(self, cluster: str) -> Reason | None:
        """One cluster's lot."""
        return next((reason for reason in self.clusters if reason.cluster == cluster), None)

    def to_dict(self) -> dict[str, Any]:
        """For programs."""
        shown: dict[str, Any] = {"placement": self.placement, "summary": self.summary}
        if self.problem is not None:
            shown["problem"] = self.problem
        return shown | {"clusters": [reason.to_dict() for reason in self.clusters]}

    def __str__(self) -> str:
        lines = [f"{self.placement}: {self.summary}"]
        if self.problem is not None:
            lines.append(f"Misconfigured: {self.problem}")
        if self.clusters:
            lines += ["", *_table(self.clusters[:ROWS])]
        if len(self.clusters) > ROWS:
            lines.append(f"  … and {len(self.clusters) - ROWS} more")
        return "\n".join(lines)


def explain(trace: Trace, summary: str) -> Explanation:
    """Explain a decision, from its trace and as long as the fleet has not changed since."""
    selected = frozenset(trace.selected)
    places = {name: place for place, name in enumerate(trace.ranking, 1)}
    reasons = [_explain_cluster(trace, member, selected, places) for member in trace.case.fleet.members.values()]
    reasons.sort(key=lambda reason: (reason.stage is not Stage.SELECTED, reason.cluster))
    problem = str(trace.problem) if trace.problem is not None else None
    return Explanation(str(trace.policy.placement), summary, tuple(reasons), problem)


def _explain_cluster(trace: Trace, member: Member, selected: frozenset[str], places: Mapping[str, int]) -> Reason:
    name = member.name
    if trace.held is not None:
        lot = "selected earlier" if name in selected else "not looked at"
        return Reason(name, Stage.SELECTED if name in selected else Stage.HELD, f"{lot}: {trace.held}")
    if name in selected:
        return _explain_selected(trace, member)
    if name not in trace.available:
        return _explain_unavailable(trace, member)
    if trace.problem is not None:
        return Reason(name, Stage.MISCONFIGURED, "not looked at: the placement is misconfigured")
    if name not in trace.matched:
        return Reason(name, Stage.PREDICATE, explain_mismatch(trace, member))
    if name not in trace.feasible:
        return _explain_taint(trace, member)
    return _explain_rank(trace, name, places[name])


def _explain_selected(trace: Trace, member: Member) -> Reason:
    score = trace.totals.get(member.name)
    now = trace.case.now
    decided = member.name in trace.case.decided
    limits = [(tolerate(taint, trace.policy.tolerations, now).until, taint) for taint in member.taints]
    limited = [(until, taint) for until, taint in limits if until is not None]
    if limited:
        until, taint = min(limited)
        text = f"taint {taint} is tolerated for another {in_words(until - now)}"
        return Reason(member.name, Stage.SELECTED, text, score, str(taint), seconds_between(now, until))
    if member.name in trace.shunned:
        text = f"taint {trace.shunned[member.name]} asks to avoid it, but no other cluster is left"
    elif member.taints and decided:
        text = f"tolerated or selected before: taint {', '.join(map(str, member.taints))}"
    elif member.taints:
        text = f"tolerated: taint {', '.join(map(str, member.taints))}"
    else:
        text = "selected before" if decided else "newly selected"
    return Reason(member.name, Stage.SELECTED, text, score)


def _explain_unavailable(trace: Trace, member: Member) -> Reason:
    if member.deleting:
        return Reason(member.name, Stage.DELETING, "the cluster is being deleted")
    namespace = trace.policy.placement.namespace
    sets = sorted(trace.case.fleet.sets_of(member.name))
    if not sets:
        text = "belongs to no ManagedClusterSet"
    elif not set(sets) & set(trace.bound):
        text = f"belongs to {_names(sets)}, not bound to namespace {namespace}"
    else:
        text = f"belongs to {_names(sets)}, which spec.clusterSets does not ask for"
    return Reason(member.name, Stage.CLUSTER_SET, text)


def explain_mismatch(trace: Trace, member: Member, mismatches: int = 3) -> str:
    """What a cluster that matches no predicate has instead; at most so many mismatches, the others in number."""
    found = [predicate.find_mismatch(member) for predicate in trace.policy.predicates]
    texts = list(dict.fromkeys(str(mismatch) for mismatch in found if mismatch is not None))
    more = f"; and {len(texts) - mismatches} more" if len(texts) > mismatches else ""
    return "; ".join(texts[:mismatches]) + more


def _explain_taint(trace: Trace, member: Member) -> Reason:
    taint = find_repelling(trace, member)
    now = trace.case.now
    expired = tolerate(taint, trace.policy.tolerations, now).expired
    if expired is None:
        return Reason(member.name, Stage.TAINT, f"taint {taint} is not tolerated", taint=str(taint))
    text = f"the toleration of taint {taint} ran out {in_words(now - expired)} ago"
    return Reason(member.name, Stage.TAINT, text, taint=str(taint), tolerated_seconds=seconds_between(now, expired))


def find_repelling(trace: Trace, member: Member) -> ClusterTaint:
    """The taint that keeps a cluster out that did not pass the taint filter."""
    standing = judge(member.taints, trace.policy.tolerations, member.name in trace.case.decided, trace.case.now)
    assert standing.repelled_by is not None
    return standing.repelled_by


def _explain_rank(trace: Trace, name: str, place: int) -> Reason:
    score = trace.totals.get(name)
    text = f"ranks {place} of {len(trace.ranking)}, {len(trace.selected)} wanted"
    if name in trace.shunned:
        text += f"; taint {trace.shunned[name]} asks to avoid it"
    return Reason(name, Stage.SCORE, text, score)


def _names(names: Iterable[str]) -> str:
    return ", ".join(names)


def _table(reasons: tuple[Reason, ...]) -> list[str]:
    rows = [("cluster", "selected", "score", "why")]
    for reason in reasons:
        score = "–" if reason.score is None else str(reason.score)
        rows.append((reason.cluster, "yes" if reason.stage is Stage.SELECTED else "no", score, reason.text))
    widths = [max(len(row[column]) for row in rows) for column in range(3)]
    return [
        "  " + "  ".join([*(cell.ljust(width) for cell, width in zip(row, widths, strict=False)), row[3]])
        for row in rows
    ]
