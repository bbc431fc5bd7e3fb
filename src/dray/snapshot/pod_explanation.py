"""Why a pod is pending or cannot start: what keeps it away from nodes, and what is wrong with its claims."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from typing import Any

import msgspec

from dray.allocator import Explanation
from dray.api.generated.core import Pod
from dray.api.kinds import PODS
from dray.api.pods import is_finished
from dray.api.resource import ResourceClaim
from dray.prose.remedies import tell_joint_release
from dray.prose.tables import lay_out, wrap
from dray.prose.wording import names, rest
from dray.scheduling.decide import Chosen
from dray.scheduling.judgeable import cannot_judge
from dray.scheduling.pod_info import PodInfo
from dray.scheduling.reasons import NodeReason
from dray.scheduling.refusal import GroupPreempts, Ineligible, NodesRefuse, Preempts, Refused
from dray.scheduling.rehearsal import Rehearsal
from dray.scheduling.text import tell, tell_pod, tell_preemption
from dray.scheduling.volumes import SELECTED_NODE, PodVolumes, Volumes
from dray.snapshot.advice import Advice
from dray.snapshot.device_troubles import tell_troubles
from dray.snapshot.explanation import ClaimExplanation
from dray.snapshot.pending_pods import pending_pods
from dray.snapshot.snapshot import Snapshot, find
from dray.snapshot.storage_limits import tell_storage_limits
from dray.snapshot.stuck_pods import what_is_wrong_with_node, what_keeps_from_starting
from dray.snapshot.unknown_nodes import tell_unknown_nodes

MAX_ROWS = 12


class PodExplanation(msgspec.Struct, frozen=True):
    """`status` is one of

    - "scheduled": it is on `node`;
    - "stuck": it is on `node` and cannot start there; `notes` say why;
    - "fits": it would go to `node`;
    - "pending": it fits nowhere;
    - "finished": it has run, on `node` if it ever had one;
    - "leaving": it is being deleted, from `node` if it has one;
    - "unjudged": nobody here can say, for what `message` says.
    """

    pod: str
    status: str
    node: str = ""
    message: str = ""
    unsuitable: dict[str, str] = {}
    """By node, what keeps the pod away, devices aside."""
    claims: ClaimExplanation | None = None
    """The claims that have nothing yet, on the nodes that suit the pod."""
    notes: tuple[str, ...] = ()
    """What else is in the way, a sentence each."""
    preemption: Preempts | GroupPreempts | None = None
    """Pods of lower priority that would have to go for it, or for its group, if that would help."""

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        plain: dict[str, Any] = {"pod": self.pod, "status": self.status, "node": self.node, "message": self.message}
        plain["unsuitableNodes"] = self.unsuitable
        plain["notes"] = list(self.notes)
        if self.preemption is not None:
            victims = [str(victim.name) for victim in self.preemption.victims]
            plain["preemption"] = {"node": self._room_is_on(self.preemption), "victims": victims}
        return plain if self.claims is None else {**plain, "claims": self.claims.to_dict()}

    def _room_is_on(self, preempts: Preempts | GroupPreempts) -> str:
        """The node that the pod gets then; of a group it may be one of those that get none."""
        if isinstance(preempts, Preempts):
            return preempts.node
        return next((node for pod, node in preempts.places if str(pod.name) == self.pod), "")

    def text(self, *, now: datetime | None = None, width: int | None = None) -> str:
        """For people, in lines of at most `width`."""
        if self.status in ("scheduled", "finished", "leaving"):
            return wrap(" ".join((f"{self.pod} {self._tell_place()}.", *self.notes)), width)
        if self.status == "fits":
            return wrap(" ".join((f"{self.pod} fits on {self.node}.", *self.notes)), width)
        if self.status == "unjudged":
            return wrap(f"{self.pod} cannot be judged: {self.message}.", width)
        if self.status == "stuck":
            return "\n".join([f"{self.pod} is on {self.node} and cannot start:", *self._listed(width)])
        parts = [wrap(f"{self.pod} is pending: {self.message}", width)]
        if self.notes:
            parts.append("\n".join(self._listed(width)))
        if self.preemption is not None:
            parts.append(wrap(tell_preemption(self.preemption), width))
        if self.unsuitable:
            parts.append("\n".join(self._nodes(width)))
        if self.claims is not None:
            parts.append(self.claims.text(now=now, width=width))
        return "\n\n".join(parts)

    def _tell_place(self) -> str:
        if self.status == "scheduled":
            return f"is on {self.node}"
        if self.status == "leaving":
            return f"is being deleted from {self.node}" if self.node else "is being deleted"
        return f"has finished on {self.node} ({self.message})" if self.node else f"has finished ({self.message})"

    def _listed(self, width: int | None) -> list[str]:
        return [wrap(f"- {note}", width) for note in self.notes]

    def _nodes(self, width: int | None) -> list[str]:
        """Nodes with the same reason share a row, the commonest reason first."""
        rows = [("nodes", "why not")]
        reasons = Counter(self.unsuitable.values())
        for reason, _ in reasons.most_common(MAX_ROWS):
            rows.append((names([node for node, why in self.unsuitable.items() if why == reason]), reason))
        return [*lay_out(rows, width), *rest(len(reasons) - MAX_ROWS, "reason")]


def explain_pod(snapshot: Snapshot, name: str, *, nodes: list[str] | None = None) -> PodExplanation:
    """Why a pod (`namespace/name`) is where it is, or nowhere; on some nodes only, if given. Raises SnapshotError."""
    pod: Pod = find(snapshot, PODS, name)
    key = f"{pod.metadata.namespace}/{pod.metadata.name}"
    if is_finished(pod):
        return PodExplanation(key, "finished", pod.spec.node_name, pod.status.phase)
    if pod.metadata.deletion_timestamp is not None:
        return PodExplanation(key, "leaving", pod.spec.node_name, notes=tuple(what_is_wrong_with_node(snapshot, pod)))
    if pod.spec.node_name:
        notes = tuple(what_keeps_from_starting(snapshot, pod))
        if notes:
            return PodExplanation(key, "stuck", pod.spec.node_name, notes=notes)
        return PodExplanation(key, "scheduled", pod.spec.node_name, notes=tuple(what_is_wrong_with_node(snapshot, pod)))
    waiting = pending_pods(snapshot)
    if key in waiting.problems:
        return PodExplanation(key, "pending", message=tell_pod(waiting.problems[key]))
    looked_at = nodes if nodes is not None else snapshot.nodes()
    with snapshot.rehearsal() as rehearsal:
        rehearsal.expect(waiting.pods, waiting.claims)
        info = next((one for one in rehearsal.pending if str(one.name) == key), None)
        if info is None:
            return PodExplanation(key, "pending", message=f"its phase is {pod.status.phase}")
        unknown = cannot_judge(info, rehearsal.cluster.volumes)
        if unknown is not None:
            return PodExplanation(key, "unjudged", message=tell_pod(unknown))
        answer = rehearsal.decide(info)
        if isinstance(answer, Refused):
            answer = rehearsal.find_victims(info, answer)
            expected = (*waiting.claims, *answer.unallocated)
            told = _explain_refusal(rehearsal, info, answer, looked_at)
        else:
            made = tuple(_volumes_in_the_making(info, rehearsal.cluster.volumes))
            told = PodExplanation(key, "fits", answer.node, notes=made)
            has = [rehearsal.cluster.find_claim(*name) for name in info.claims]
    if isinstance(answer, Refused):
        told = _with_advice(told, snapshot, expected, [str(claim) for claim in info.claims])
    else:
        told = msgspec.structs.replace(told, notes=(*told.notes, *_device_troubles(snapshot, has, answer)))
    return msgspec.structs.replace(told, notes=(*told.notes, *_unlooked(snapshot, key)))


def _device_troubles(snapshot: Snapshot, claims: Iterable[ResourceClaim | None], chosen: Chosen) -> Iterator[str]:
    """Why the pod would not keep the devices that its claims have, or would get."""
    for claim in claims:
        if claim is not None and claim.status.allocation is not None:
            yield from tell_troubles(snapshot, claim)
    for claim, allocation in chosen.allocations.values():
        status = msgspec.structs.replace(claim.status, allocation=allocation)
        yield from tell_troubles(snapshot, msgspec.structs.replace(claim, status=status))


def _volumes_in_the_making(pod: PodInfo, volumes: Volumes) -> Iterator[str]:
    """What a pod waits for though a scheduler chose its node already: the volumes that are to be made there."""
    found = volumes.of(pod) if pod.volume_claims else None
    for claim, kind in found.waiting if isinstance(found, PodVolumes) else ():
        node = claim.metadata.annotations.get(SELECTED_NODE)
        if node:
            yield (
                f"A scheduler chose {node} for it, and waits for the volume of PersistentVolumeClaim "
                f"{claim.metadata.name}, which provisioner {kind.provisioner} has to make."
            )


def _unlooked(snapshot: Snapshot, pod: str) -> Iterator[str]:
    for why in (*tell_unknown_nodes(snapshot), *tell_storage_limits(snapshot, [pod])):
        yield f"{why[0].upper()}{why[1:]}."


def _with_advice(
    told: PodExplanation, snapshot: Snapshot, expected: Iterable[ResourceClaim], used: list[str]
) -> PodExplanation:
    """What would help its claims, tried with all that it uses: the pod needs them together, those that it has, too.

    `expected` are claims that are to be made.
    """
    if told.claims is None:
        return told
    report = told.claims.report
    lacking = [claim.claim for claim in report.claims]
    advice = Advice(snapshot, expected, [*lacking, *used])
    if len(lacking) == 1:
        return msgspec.structs.replace(told, claims=ClaimExplanation(report, advice))
    if not lacking or report.error:
        return told
    return msgspec.structs.replace(told, notes=(*told.notes, tell_joint_release(report, advice)))


def _explain_refusal(rehearsal: Rehearsal, pod: PodInfo, refused: Refused, nodes: list[str]) -> PodExplanation:
    refusals = {node: rehearsal.unsuitable(pod, node) for node in nodes}
    unsuitable = {node: _tell(rehearsal, pod, node, refusal) for node, refusal in refusals.items() if refusal}
    suitable = [node for node in nodes if node not in unsuitable]
    told = rehearsal.explain(pod, suitable) if pod.wants_devices and suitable else None
    claims = ClaimExplanation(told) if isinstance(told, Explanation) else None
    return PodExplanation(
        str(pod.name),
        "pending",
        message=tell(refused),
        unsuitable=unsuitable,
        claims=claims,
        preemption=refused.preemption if isinstance(refused.preemption, Preempts | GroupPreempts) else None,
        notes=(
            *_leaving_for(rehearsal, pod, refused),
            *_claims_in_the_way(rehearsal, pod, refused, unsuitable, nodes),
        ),
    )


def _leaving_for(rehearsal: Rehearsal, pod: PodInfo, refused: Refused) -> Iterator[str]:
    """Whom a pod waits for that others were made to leave for."""
    cluster = rehearsal.cluster
    node = cluster.nodes.get(cluster.nominations.node_of(pod))
    if node is None or not isinstance(refused.preemption, Ineligible):
        return
    priority = pod.pod.spec.priority or 0
    below = [one for one in node.pods.values() if (one.pod.spec.priority or 0) < priority]
    leaving = sorted(str(one.name) for one in below if cluster.is_leaving(one))
    if leaving:
        yield f"It waits for node {node.name}, which {names(leaving)} must leave first."


def _claims_in_the_way(
    rehearsal: Rehearsal, pod: PodInfo, refused: Refused, unsuitable: Mapping[str, str], nodes: Iterable[str]
) -> Iterator[str]:
    """Claims that are going, and claims whose devices tie the pod to nodes that do not take it."""
    for name in pod.claims:
        claim = rehearsal.cluster.find_claim(*name)
        if claim is None:
            continue
        users = [f"{name.namespace}/{user.name}" for user in claim.status.reserved_for]
        if claim.metadata.deletion_timestamp is not None:
            until = f"{names(users)} no longer {'uses' if len(users) == 1 else 'use'} it" if users else "it is released"
            yield f"Claim {name} is being deleted and goes once {until}; the pod needs it to be made again after that."
        elif claim.status.allocation is not None and isinstance(refused.why, NodesRefuse):
            within = [node for node in nodes if rehearsal.is_in_reach(claim, node)]
            refusing = [f"{node} ({unsuitable[node]})" for node in within if node in unsuitable]
            if refusing and len(refusing) == len(within):
                yield f"Claim {name} has devices already, which can be used on {names(refusing)} only."


def _tell(rehearsal: Rehearsal, pod: PodInfo, node: str, refusal: tuple[NodeReason, ...]) -> str:
    """What a node has against the pod, with what is behind it."""
    return ", ".join(rehearsal.tell(pod, node, reason) for reason in refusal)
