"""What is different for who waits: claims and pods that fit now, or no longer, each looked at by itself.

A pod is judged by what the scheduler would decide; a claim by what it would get for a pod without any wishes, but it
fits nowhere if no pod that waits with it does.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from msgspec.structs import replace

from dray.allocator.reasons import Report
from dray.api.kinds import CLAIMS, PODS
from dray.api.meta import Object
from dray.api.references import full_name
from dray.api.registry import Kind
from dray.api.resource import ResourceClaim
from dray.scheduling.judgeable import cannot_judge
from dray.scheduling.pod_info import PodInfo
from dray.scheduling.refusal import GroupPreempts, Preempts, Refused
from dray.scheduling.rehearsal import Rehearsal
from dray.scheduling.text import tell, tell_pod
from dray.snapshot.pending_pods import pending_pods
from dray.snapshot.snapshot import Snapshot
from dray.what_if.making_room import MAX_PREEMPTING

MAX_PENDING = 200


class PendingChange(Report, frozen=True, kw_only=True):
    """A claim without devices, or a pod without a node, whose chances are others than before."""

    claim: str = ""
    pod: str = ""
    fits: bool | None
    """Null for a pod that nobody here can judge."""
    node: str | None = None
    fitted_before: bool | None = None
    """Absent for one that did not wait before, and for one that nobody could judge."""
    is_new: bool = False
    was_allocated: bool = False
    """A claim that had devices."""
    message: str = ""
    victims: tuple[str, ...] = ()
    """Pods of lower priority that the scheduler makes go for it."""


class Chance(NamedTuple):
    """Whether somebody who waits fits now, and where; neither yes nor no of a pod that nobody here can judge."""

    fits: bool | None
    node: str | None
    message: str


class Chances(NamedTuple):
    """By `namespace/name`. `skipped` counts those that were not looked at, because there are too many."""

    claims: dict[str, Chance]
    pods: dict[str, Chance]
    skipped: int = 0


def assess_pending(snapshot: Snapshot) -> Chances:
    """Each pending claim and pod by itself, MAX_PENDING of each at most."""
    waiting = pending_pods(snapshot)
    pods = {name: Chance(fits=False, node=None, message=tell_pod(why)) for name, why in waiting.problems.items()}
    with snapshot.rehearsal() as rehearsal:
        rehearsal.expect(waiting.pods, waiting.claims)
        with_pods: dict[str, Chance] = {}
        for pod in rehearsal.pending[:MAX_PENDING]:
            chance = pods[full_name(pod.pod)] = _assess(rehearsal, pod)
            for claim in map(str, pod.claims if chance.fits is not None else ()):
                if claim not in with_pods or chance.fits:
                    with_pods[claim] = chance
    claims: dict[str, Chance] = {}
    pending = snapshot.pending()
    for name in pending[:MAX_PENDING]:
        outcome = snapshot.allocate(name)
        claims[name] = Chance(outcome.status == "allocated", outcome.node, outcome.message)
        if claims[name].fits and name in with_pods and not with_pods[name].fits:
            claims[name] = with_pods[name]
    skipped = max(len(pending) - MAX_PENDING, 0) + max(len(waiting.pods) - MAX_PENDING, 0)
    return Chances(claims, pods, skipped)


def _assess(rehearsal: Rehearsal, pod: PodInfo) -> Chance:
    unknown = cannot_judge(pod, rehearsal.cluster.volumes)
    if unknown is not None:
        return Chance(fits=None, node=None, message=tell_pod(unknown))
    answer = rehearsal.decide(pod)
    if isinstance(answer, Refused):
        return Chance(fits=False, node=None, message=tell(answer))
    return Chance(fits=True, node=answer.node, message="")


def compare_pending(before: Chances, after: Chances, there_was: Snapshot) -> Iterator[PendingChange]:
    """Who fits now, no longer fits, or is new."""

    def find(kind: Kind, name: str) -> Object | None:
        return there_was.get(kind.resource, *name.split("/", 1))

    for name, chance, fitted in _differing(before.claims, after.claims):
        here = find(CLAIMS, name)
        had = isinstance(here, ResourceClaim) and here.status.allocation is not None
        told = chance._asdict()
        yield PendingChange(claim=name, fitted_before=fitted, is_new=here is None, was_allocated=had, **told)
    for name, chance, fitted in _differing(before.pods, after.pods):
        yield PendingChange(pod=name, fitted_before=fitted, is_new=find(PODS, name) is None, **chance._asdict())


def with_victims(after: Snapshot, changes: tuple[PendingChange, ...]) -> tuple[PendingChange, ...]:
    """The same, with who has to go for pods that do not fit otherwise."""
    lacking = [change.pod for change in changes if change.pod and change.fits is False][:MAX_PREEMPTING]
    if not lacking:
        return changes
    waiting = pending_pods(after)
    victims: dict[str, tuple[str, ...]] = {}
    with after.rehearsal() as rehearsal:
        rehearsal.expect(waiting.pods, waiting.claims)
        for pod in rehearsal.pending:
            answer = rehearsal.decide(pod) if str(pod.name) in lacking else None
            preemption = rehearsal.find_victims(pod, answer).preemption if isinstance(answer, Refused) else None
            if isinstance(preemption, Preempts | GroupPreempts):
                victims[str(pod.name)] = tuple(str(one.name) for one in preemption.victims)
    return tuple(replace(change, victims=victims.get(change.pod, ())) for change in changes)


def _differing(before: Mapping[str, Chance], after: Mapping[str, Chance]) -> Iterator[tuple[str, Chance, bool | None]]:
    for name, chance in after.items():
        fitted = before[name].fits if name in before else None
        if name not in before or fitted != chance.fits:
            yield name, chance, fitted
