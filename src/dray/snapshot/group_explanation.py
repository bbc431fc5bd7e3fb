"""What a PodGroup lacks: how many of its pods are there, how many fit at once, and what stops the next one."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import msgspec

from dray.api.generated.scheduling import PodGroup
from dray.api.kinds import POD_GROUPS
from dray.api.pod_groups import min_count
from dray.api.references import ObjectName
from dray.prose.tables import lay_out, wrap
from dray.prose.wording import count, rest
from dray.scheduling.gangs import Together
from dray.scheduling.text import tell
from dray.snapshot.pending_pods import pending_pods
from dray.snapshot.pod_explanation import PodExplanation, explain_pod
from dray.snapshot.snapshot import Snapshot, find

MAX_ROWS = 20


class GroupExplanation(msgspec.Struct, frozen=True):
    """`status` is "scheduled" if enough pods have nodes and none waits, "fits" if those that wait fit, or "pending"."""

    group: str
    status: str
    there: int
    """How many of its pods run or wait."""
    needed: int
    placed: int
    """How many have nodes."""
    message: str = ""
    nodes: dict[str, str] = {}
    """By pod, where those that wait would go."""
    pod: PodExplanation | None = None
    """What stops one that does not fit."""

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        plain: dict[str, Any] = {
            "podGroup": self.group,
            "status": self.status,
            "pods": self.there,
            "needed": self.needed,
            "placed": self.placed,
            "message": self.message,
            "nodes": self.nodes,
        }
        return plain if self.pod is None else {**plain, "pod": self.pod.to_dict()}

    def text(self, *, now: datetime | None = None, width: int | None = None) -> str:
        """For people, in lines of at most `width`."""
        counts = f"{count(self.there, 'pod')}, {self.placed} with a node, {self.needed} needed at once"
        if self.status == "scheduled":
            return f"{self.group} is scheduled: {counts}."
        if self.status == "fits":
            rows = [("pod", "node"), *list(self.nodes.items())[:MAX_ROWS]]
            more = rest(len(self.nodes) - MAX_ROWS, "pod", "-o json has them all")
            return "\n".join([f"{self.group} fits: {counts}.", "", *lay_out(rows, width), *more])
        parts = [wrap(f"{self.group} is pending ({counts}): {self.message}", width)]
        if self.pod is not None:
            parts.append(self.pod.text(now=now, width=width))
        return "\n\n".join(parts)


def explain_group(snapshot: Snapshot, name: str) -> GroupExplanation:
    """Why the pods of a group (`namespace/name`) have nodes, or would get some, or not. Raises SnapshotError."""
    group: PodGroup = find(snapshot, POD_GROUPS, name)
    place = ObjectName.of(group)
    waiting = pending_pods(snapshot)
    with snapshot.rehearsal() as rehearsal:
        rehearsal.expect(waiting.pods, waiting.claims)
        pods = [pod for pod in rehearsal.pending if pod.group == place]
        there = len(rehearsal.cluster.groups.members(place))
        placed, needed = len(rehearsal.cluster.nodes_of_group(place)), min_count(group)
        if not pods and placed >= needed:
            return GroupExplanation(str(place), "scheduled", there, needed, placed)
        answer = rehearsal.decide_group(place, pods)
    if isinstance(answer, Together):
        nodes = {str(pod.name): chosen.node for pod, chosen in answer.chosen}
        return GroupExplanation(str(place), "fits", there, needed, placed, nodes=nodes)
    details = explain_pod(snapshot, str(pods[-1].name)) if pods and answer.group is not None else None
    return GroupExplanation(str(place), "pending", there, needed, placed, tell(answer), pod=details)
