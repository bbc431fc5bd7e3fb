"""Which pods of a StatefulSet to make and which to delete. Pure.

OrderedReady:  0 ─▶ 1 ─▶ 2 …   one after the other, each when all before it work; too many go from the highest
Parallel:      all at once

Only when every number has its pod, a new template spreads on (`rollout`).
"""

from __future__ import annotations

from collections.abc import Collection, Container, Mapping, Sequence
from itertools import islice
from typing import NamedTuple

from dray.api.generated.apps import StatefulSet
from dray.api.generated.core import Pod
from dray.api.pods import PENDING, RUNNING, available_at, is_finished, is_ready
from dray.api.times import Time
from dray.controllers.stateful_set.members import identity, ordinal_of, ordinals

MAX_AT_ONCE = 500
PARALLEL = "Parallel"


class StatefulSetState(NamedTuple):
    """What decisions are made from: a StatefulSet, its pods by number, and the revision of its current template."""

    stateful_set: StatefulSet
    pods: Mapping[int, Pod]
    update: str
    """The name of the newest revision."""
    now: Time
    stale: Container[int] = ()
    """Numbers whose volume claims are about to go, so that nobody may be made to use them."""
    patient: Collection[int] = ()
    """Numbers whose failed pod stays for now, because there were failures before."""

    def is_available(self, pod: Pod) -> bool:
        """Whether a pod has been ready for long enough."""
        at = available_at(pod, self.stateful_set.spec.min_ready_seconds)
        return at is not None and at <= self.now

    def works(self, pod: Pod | None) -> bool:
        """Whether a pod is there to stay, and has been ready for long enough."""
        return pod is not None and pod.metadata.deletion_timestamp is None and self.is_available(pod)


class StatefulSetPlan(NamedTuple):
    """What to do now: numbers that get a pod, pods that go, and pods whose labels do not tell their number."""

    create: tuple[int, ...] = ()
    delete: tuple[Pod, ...] = ()
    mend: tuple[Pod, ...] = ()
    lacking: tuple[int, ...] = ()
    """Numbers whose pod waits, perhaps for a volume claim that somebody deleted."""
    is_complete: bool = False
    """Whether every number has its pod and nobody is waited for, so that an update may go on."""


def observe(
    stateful_set: StatefulSet, pods: Sequence[Pod], update: str, now: Time, stale: Container[int] = ()
) -> StatefulSetState:
    """Sorts pods by their numbers."""
    numbered = {ordinal_of(stateful_set, pod): pod for pod in pods}
    members = {number: pod for number, pod in numbered.items() if number is not None}
    return StatefulSetState(stateful_set, members, update, now, stale)


def surplus(state: StatefulSetState) -> list[Pod]:
    """The pods of numbers that there should not be, highest first."""
    wanted = ordinals(state.stateful_set)
    return [state.pods[number] for number in sorted(state.pods, reverse=True) if number not in wanted]


def plan(state: StatefulSetState) -> StatefulSetPlan:
    """What brings the pods to the numbers that there should be."""
    if state.stateful_set.metadata.deletion_timestamp is not None:
        return StatefulSetPlan()
    if state.stateful_set.spec.pod_management_policy == PARALLEL:
        return _plan_all(state)
    return _plan_in_order(state)


def _plan_all(state: StatefulSetState) -> StatefulSetPlan:
    delete: list[Pod] = []
    mend: list[Pod] = []
    lacking: list[int] = []
    wanted = ordinals(state.stateful_set)
    # Somebody may want two thousand million pods: what is looked at is what is there, and what is done next.
    missing = (number for number in wanted if number not in state.pods and number not in state.stale)
    for number, pod in sorted(state.pods.items()):
        if number not in wanted:
            continue
        if is_finished(pod):
            delete += [pod] if _is_to_go(state, pod, number) else []
        else:
            lacking += [number] if pod.status.phase == PENDING else []
            mend += [pod] if _needs_mending(pod, number) else []
    delete += [pod for pod in surplus(state) if pod.metadata.deletion_timestamp is None]
    return StatefulSetPlan(
        tuple(islice(missing, MAX_AT_ONCE)), tuple(delete[:MAX_AT_ONCE]), tuple(mend), tuple(lacking), is_complete=True
    )


def _plan_in_order(state: StatefulSetState) -> StatefulSetPlan:
    mend: list[Pod] = []
    for number in ordinals(state.stateful_set):
        pod = state.pods.get(number)
        if pod is None:
            return StatefulSetPlan(create=() if number in state.stale else (number,), mend=tuple(mend))
        if is_finished(pod):
            gone = (pod,) if _is_to_go(state, pod, number) else ()
            return StatefulSetPlan(delete=gone, mend=tuple(mend))
        if not state.works(pod) or pod.status.phase != RUNNING:
            lacking = (number,) if pod.status.phase == PENDING else ()
            return StatefulSetPlan(mend=tuple(mend), lacking=lacking)
        mend += [pod] if _needs_mending(pod, number) else []
    too_many = surplus(state)
    if not too_many:
        return StatefulSetPlan(mend=tuple(mend), is_complete=True)
    last = too_many[0]
    if last.metadata.deletion_timestamp is not None or not _may_go(state, last, too_many):
        return StatefulSetPlan(mend=tuple(mend))
    return StatefulSetPlan(delete=(last,), mend=tuple(mend))


def _is_to_go(state: StatefulSetState, pod: Pod, number: int) -> bool:
    """Whether a pod that ended is to be deleted now."""
    return pod.metadata.deletion_timestamp is None and number not in state.patient


def _may_go(state: StatefulSetState, last: Pod, too_many: Sequence[Pod]) -> bool:
    """The highest goes if it works, or if it is the only thing that does not: so one at a time is away."""
    if is_ready(last) and last.status.phase == RUNNING and state.is_available(last):
        return True
    first_ill = next((pod for pod in reversed(too_many) if not state.works(pod)), None)
    return last is first_ill


def _needs_mending(pod: Pod, number: int) -> bool:
    return not identity(pod.metadata.name, number).items() <= pod.metadata.labels.items()
