"""Failures counted by index: each index may fail so often, and the pod that follows a failed one carries the count.

pod of an index failed ─▶ it keeps the finalizer ─▶ its successor is made, with the count + 1 ─▶ finalizer dropped

So the count is never lost: it is always on a pod that is there. Pure.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Final

from msgspec.structs import replace

from dray.api.backoff import Backoff
from dray.api.conditions import READY, find_condition
from dray.api.generated.batch import Job
from dray.api.generated.core import Pod
from dray.api.times import Time
from dray.controllers.job import indexes
from dray.controllers.job.failure_policy import FailureEffect, judge

COUNTED: Final = "batch.kubernetes.io/job-index-failure-count"
IGNORED: Final = "batch.kubernetes.io/job-index-ignored-failure-count"
REPLACEMENT: Final = Backoff(first=10.0, longest=360.0)
"""How long the next pod waits after failed ones."""


def counts_by_index(job: Job) -> bool:
    """Whether each index has a limit of its own."""
    return job.spec.backoff_limit_per_index is not None


def failures_before(pod: Pod) -> int:
    """How many failures of its index a pod carries, those that do not count included."""
    return _read(pod, COUNTED) + _read(pod, IGNORED)


def _read(pod: Pod, name: str) -> int:
    text = pod.metadata.annotations.get(name, "")
    return int(text) if text.isdecimal() and len(text) <= 10 else 0


def has_used_up(job: Job, pod: Pod) -> bool:
    """Whether the failure of a pod means that its index failed for good."""
    verdict = judge(job, pod)
    if verdict is FailureEffect.FAIL_INDEX:
        return True
    return verdict is not FailureEffect.IGNORE and _read(pod, COUNTED) >= (job.spec.backoff_limit_per_index or 0)


def predecessors(failed: Iterable[Pod], others: Iterable[Pod], settled: Collection[int]) -> dict[int, Pod]:
    """By index that is not settled, the failed pod that waits for a successor; `others` may be that."""
    latest: dict[int, Pod] = {}
    for pod in failed:
        index = indexes.index_of(pod)
        if index is None or index in settled:
            continue
        known = latest.get(index)
        if known is None or failures_before(pod) > failures_before(known):
            latest[index] = pod
    for pod in others:
        index = indexes.index_of(pod)
        known = latest.get(index) if index is not None else None
        if index is not None and known is not None and failures_before(pod) > failures_before(known):
            del latest[index]
    return latest


def successor(job: Job, pod: Pod, index: int, before: Mapping[int, Pod]) -> Pod:
    """The pod for an index with the failures before it written on it."""
    known = before.get(index)
    counted, ignored = (_read(known, COUNTED), _read(known, IGNORED)) if known is not None else (0, 0)
    if known is not None:
        is_ignored = judge(job, known) is FailureEffect.IGNORE
        counted, ignored = counted + (not is_ignored), ignored + is_ignored
    marks = {COUNTED: str(counted), **({IGNORED: str(ignored)} if ignored else {})}
    meta = replace(pod.metadata, annotations={**pod.metadata.annotations, **marks})
    return replace(pod, metadata=meta)


def ready_at(pod: Pod) -> Time:
    """When the successor of a failed pod may come."""
    return _ended_at(pod).after(REPLACEMENT.after(failures_before(pod) + 1))


def _ended_at(pod: Pod) -> Time:
    ended = [
        status.state.terminated.finished_at
        for status in pod.status.container_statuses
        if status.state is not None and status.state.terminated is not None
    ]
    times = [at for at in ended if at is not None]
    ready = find_condition(pod.status.conditions, READY)
    not_ready = ready.last_transition_time if ready is not None and ready.status == "False" else None
    found = max(times, default=None) or not_ready or pod.metadata.deletion_timestamp or pod.metadata.creation_timestamp
    assert found is not None, "the server gives every pod a creation time"
    return found
