"""The conditions PlacementSatisfied and PlacementMisconfigured (SVS-77, SVS-80)."""

from __future__ import annotations

from dray.api.cluster.placement import CONDITION_MISCONFIGURED, CONDITION_SATISFIED
from dray.placement.result import ConditionResult
from dray.placement.summary import summarize
from dray.placement.trace import Trace


def derive_conditions(trace: Trace) -> dict[str, ConditionResult]:
    """Both conditions; none if the placement was left as it is."""
    if trace.held is not None:
        return {}
    return {CONDITION_MISCONFIGURED: _misconfigured(trace), CONDITION_SATISFIED: _satisfied(trace)}


def _misconfigured(trace: Trace) -> ConditionResult:
    if trace.problem is not None:
        return ConditionResult("True", "Misconfigured", str(trace.problem))
    return ConditionResult("False", "Succeedconfigured", "The spec can be used")


def _satisfied(trace: Trace) -> ConditionResult:
    namespace = trace.policy.placement.namespace
    if not trace.bound:
        return _no("NoManagedClusterSetBindings", f"No existing ManagedClusterSet is bound to namespace {namespace}")
    if not trace.eligible:
        wanted = ", ".join(sorted(trace.policy.cluster_sets))
        return _no("NoIntersection", f"None of the ManagedClusterSets {wanted} is bound to namespace {namespace}")
    if not trace.available:
        return _no("AllManagedClusterSetsEmpty", f"The ManagedClusterSets {', '.join(trace.eligible)} have no clusters")
    # By what was picked, as upstream: if only the groups are wrong there are no decisions, but clusters enough.
    if not trace.chosen:
        return _no("NoManagedClusterMatched", _sentence(trace))
    if trace.policy.count is not None and len(trace.chosen) < trace.policy.count:
        return _no("NotAllDecisionsScheduled", _sentence(trace))
    return ConditionResult("True", "AllDecisionsScheduled", "All wanted clusters are selected")


def _no(reason: str, message: str) -> ConditionResult:
    return ConditionResult("False", reason, message)


def _sentence(trace: Trace) -> str:
    text = summarize(trace)
    return text[0].upper() + text[1:]
