"""Taints and tolerations: every taint of a cluster must be tolerated (OCM-15..18)."""

from __future__ import annotations

from collections.abc import Set as AbstractSet

from dray.placement.case import PlacementCase
from dray.placement.filters import Filtered
from dray.placement.member import ClusterTaint
from dray.placement.moments import Moment, earliest
from dray.placement.policy import Policy
from dray.placement.tolerations import judge


class Taints:
    """Looks only at clusters that have taints; equal taints are judged once."""

    name = "TaintToleration"

    def filter(self, case: PlacementCase, policy: Policy, clusters: AbstractSet[str]) -> Filtered:
        """Those whose taints are tolerated, and when the first toleration of any of them runs out (OCM-20, SVS-78)."""
        if policy.toleration_problem is not None:
            return Filtered(frozenset(), policy.toleration_problem)
        repelled: set[str] = set()
        shunned: dict[str, ClusterTaint] = {}
        requeue_at: Moment | None = None
        for taints, tainted in case.fleet.tainted.items():
            names = tainted & clusters
            decided = names & case.decided if names else names
            for concerned, is_decided in ((decided, True), (names - decided if decided else names, False)):
                if not concerned:
                    continue
                standing = judge(taints, policy.tolerations, is_decided, case.now)
                if standing.repelled_by is not None:
                    repelled |= concerned
                    continue
                if standing.shunned_for is not None:
                    shunned.update(dict.fromkeys(concerned, standing.shunned_for))
                requeue_at = earliest(requeue_at, standing.until)
        return Filtered(clusters - repelled if repelled else clusters, None, shunned, requeue_at)
