"""Taints and tolerations: every taint of a cluster must be tolerated (OCM-15..18)."""

from __future__ import annotations

from collections.abc import Set as AbstractSet

from dray.placement.filters import Filtered
from dray.placement.member import Mark
from dray.placement.moments import Moment
from dray.placement.policy import Policy
from dray.placement.scene import Scene
from dray.placement.tolerations import Standing, judge


class Taints:
    """Looks only at clusters that have taints; equal taints are judged once."""

    name = "TaintToleration"

    def filter(self, scene: Scene, policy: Policy, clusters: AbstractSet[str]) -> Filtered:
        """Those whose taints are tolerated, and when the first toleration of any of them runs out (OCM-20, SVS-78)."""
        if policy.toleration_problem is not None:
            return Filtered(frozenset(), policy.toleration_problem)
        members = scene.fleet.members
        judged: dict[tuple[tuple[Mark, ...], bool], Standing] = {}
        repelled: list[str] = []
        shunned: dict[str, Mark] = {}
        requeue_at: Moment | None = None
        for name in clusters & scene.fleet.tainted:
            key = (members[name].marks, name in scene.decided)
            standing = judged.get(key)
            if standing is None:
                standing = judged[key] = judge(key[0], policy.tolerations, key[1], scene.now)
            if standing.repelled_by is not None:
                repelled.append(name)
                continue
            if standing.shunned_for is not None:
                shunned[name] = standing.shunned_for
            if standing.until is not None and (requeue_at is None or standing.until < requeue_at):
                requeue_at = standing.until
        kept = clusters - frozenset(repelled) if repelled else clusters
        return Filtered(kept, None, shunned, requeue_at)
