"""Why a pod is pending: what keeps it away from nodes, and what is wrong with its claims on those that suit it."""

from __future__ import annotations

from collections import Counter
from datetime import datetime
from typing import Any

import msgspec

from dray.api.generated.core import Pod
from dray.rehearsal.rehearsal import Rehearsal
from dray.scheduler.decide import Chosen
from dray.snapshot import Snapshot, SnapshotError
from dray.snapshot.explanation import ClaimExplanation
from dray.snapshot.text_table import lay_out, wrap
from dray.snapshot.wording import names

MAX_ROWS = 12


class PodExplanation(msgspec.Struct, frozen=True):
    """`status` is "scheduled", "fits" or "pending"; `node` is where it is, or would go."""

    pod: str
    status: str
    node: str = ""
    message: str = ""
    unsuitable: dict[str, str] = {}
    """By node, what keeps the pod away, devices aside."""
    claims: ClaimExplanation | None = None
    """The claims that have nothing yet, on the nodes that suit the pod."""

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        plain: dict[str, Any] = {"pod": self.pod, "status": self.status, "node": self.node, "message": self.message}
        plain["unsuitableNodes"] = self.unsuitable
        return plain if self.claims is None else {**plain, "claims": self.claims.to_dict()}

    def text(self, *, now: datetime | None = None, width: int | None = None) -> str:
        """For people, in lines of at most `width`."""
        if self.status == "scheduled":
            return f"{self.pod} is on {self.node}."
        if self.status == "fits":
            return f"{self.pod} fits on {self.node}."
        parts = [wrap(f"{self.pod} is pending: {self.message}", width)]
        if self.unsuitable:
            parts.append("\n".join(self._nodes(width)))
        if self.claims is not None:
            parts.append(self.claims.text(now=now, width=width))
        return "\n\n".join(parts)

    def _nodes(self, width: int | None) -> list[str]:
        """Nodes with the same reason share a row, the commonest reason first."""
        rows = [("nodes", "why not")]
        for reason, _ in Counter(self.unsuitable.values()).most_common(MAX_ROWS):
            rows.append((names([node for node, why in self.unsuitable.items() if why == reason]), reason))
        return lay_out(rows, width)


def explain_pod(snapshot: Snapshot, name: str, *, nodes: list[str] | None = None) -> PodExplanation:
    """Why a pod (`namespace/name`) is where it is, or nowhere; on some nodes only, if given. Raises SnapshotError."""
    pod = _find(snapshot, name)
    key = f"{pod.metadata.namespace}/{pod.metadata.name}"
    if pod.spec.node_name:
        return PodExplanation(key, "scheduled", pod.spec.node_name)
    rehearsal = Rehearsal(snapshot)
    info = next((one for one in rehearsal.pending if "/".join(one.key) == key), None)
    if info is None:
        return PodExplanation(key, "pending", message=rehearsal.problems.get(key, f"its phase is {pod.status.phase}"))
    answer = rehearsal.decide(info)
    if isinstance(answer, Chosen):
        return PodExplanation(key, "fits", answer.node)
    looked_at = nodes if nodes is not None else snapshot.nodes()
    unsuitable = {node: why for node, why in rehearsal.unsuitable(info).items() if node in looked_at}
    suitable = [node for node in looked_at if node not in unsuitable]
    told = rehearsal.explain(info, suitable) if info.pod.spec.resource_claims and suitable else ""
    claims = None if isinstance(told, str) else ClaimExplanation(told)
    return PodExplanation(key, "pending", message=answer.message, unsuitable=unsuitable, claims=claims)


def _find(snapshot: Snapshot, name: str) -> Pod:
    namespace, _, short = name.rpartition("/")
    found = snapshot.get("pods", namespace or "default", short)
    if isinstance(found, Pod):
        return found
    there = sorted(f"{pod.metadata.namespace}/{pod.metadata.name}" for pod in snapshot.objects(Pod))
    known = f"there is {names(there, 5)}" if there else "there is none at all"
    raise SnapshotError(f"no Pod {namespace or 'default'}/{short} in the snapshot; {known}")
