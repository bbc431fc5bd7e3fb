"""What is different for the pods of workloads: how many more, fewer or new ones there are, and whether these fit.

Deployments, ReplicaSets, StatefulSets and Jobs: their pods are made from the template and scheduled in memory, one
after the other, next to those that are there; where all are made anew, those make way as the workload says.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from dray.allocator.reasons import Report
from dray.api.generated.apps import Deployment, ReplicaSet, StatefulSet
from dray.api.generated.batch import Job
from dray.api.generated.core import Pod, PodTemplateSpec
from dray.api.labels import LabelSelector, SelectorError
from dray.api.meta import Object, ObjectMeta
from dray.api.pods import is_active
from dray.api.references import full_name
from dray.scheduling.judgeable import cannot_judge
from dray.scheduling.text import tell_pod
from dray.snapshot.pending_pods import pending_pods
from dray.snapshot.snapshot import Snapshot
from dray.what_if.rollout import Bounds, Rollout, bounds_of

Workload = Deployment | ReplicaSet | StatefulSet | Job
WORKLOADS = (Deployment, ReplicaSet, StatefulSet, Job)
MAX_TRIED = 100
"""Pods of one workload for which a place is looked for."""
JOB_NAME = "batch.kubernetes.io/job-name"


class WorkloadChange(Report, frozen=True, kw_only=True):
    """A workload whose pods are others than before."""

    workload: str
    pods: int
    """How many it has now."""
    wanted: int
    replaced: bool = False
    """Its template is another one, so that its pods are made anew, but for those that are `kept`."""
    kept: int = 0
    """Pods of a StatefulSet below its partition stay as they are."""
    fitting: int = 0
    """How many of those that are to be made find a place."""
    tried: int = 0
    why_not: str = ""
    """Why the first that finds none does not."""

    @property
    def loses(self) -> bool:
        """Whether somebody loses something by it: a pod goes, or one that is wanted finds no place."""
        return self.wanted < self.pods or self.fitting < self.tried


def compare_workloads(
    differing: Iterable[tuple[Object | None, Object | None]], after: Snapshot
) -> Iterator[WorkloadChange]:
    """Workloads that are new, gone, or want other pods than they have."""
    for here, there in differing:
        old = here if isinstance(here, WORKLOADS) else None
        new = there if isinstance(there, WORKLOADS) else None
        workload = new if new is not None else old
        if workload is None:
            continue
        there_are = [pod for pod in after.objects(Pod) if is_active(pod) and _is_of(pod, workload)]
        wanted = _wanted(new) if new is not None else 0
        replaced = old is not None and new is not None and old.spec.template != new.spec.template and _makes_anew(new)
        leave = [pod for pod in there_are if not _is_kept(pod, workload)] if replaced else []
        replaced, stay = bool(leave), len(there_are) - len(leave)
        missing = max(wanted - stay, 0)
        if not missing and wanted == len(there_are):
            continue
        told = _try(after, workload, missing, leave) if new else _Tried()
        yield WorkloadChange(
            workload=f"{workload.kind} {full_name(workload)}",
            pods=len(there_are),
            wanted=wanted,
            replaced=replaced,
            kept=stay if replaced else 0,
            fitting=told.fitting,
            tried=told.tried,
            why_not=told.why_not,
        )


def _makes_anew(workload: Workload) -> bool:
    """Whether pods that are there make way when the template is another one; else they stay as they are."""
    if isinstance(workload, Deployment):
        return not workload.spec.paused
    return isinstance(workload, StatefulSet) and workload.spec.update_strategy.type != "OnDelete"


def _is_kept(pod: Pod, workload: Workload) -> bool:
    """Whether a StatefulSet leaves a pod as it is although its template is another one: below the partition."""
    update = workload.spec.update_strategy.rolling_update if isinstance(workload, StatefulSet) else None
    ordinal = pod.metadata.name.removeprefix(f"{workload.metadata.name}-")
    if not isinstance(workload, StatefulSet) or update is None or not ordinal.isdecimal():
        return False
    first = workload.spec.ordinals.start if workload.spec.ordinals is not None else 0
    return int(ordinal) < (first or 0) + (update.partition or 0)


def _wanted(workload: Workload) -> int:
    if isinstance(workload, Job):
        spec = workload.spec
        if spec.suspend:
            return 0
        left = spec.completions - workload.status.succeeded if spec.completions is not None else None
        parallel = 1 if spec.parallelism is None else spec.parallelism
        return parallel if left is None else max(min(parallel, left), 0)
    return 1 if workload.spec.replicas is None else workload.spec.replicas


def _is_of(pod: Pod, workload: Workload) -> bool:
    if pod.metadata.namespace != workload.metadata.namespace:
        return False
    if isinstance(workload, Job) and workload.spec.selector is None:
        labels = pod.metadata.labels
        return workload.metadata.name in (labels.get(JOB_NAME), labels.get("job-name"))
    try:
        return LabelSelector.of(workload.spec.selector).matches(pod.metadata.labels)
    except SelectorError:
        return False


class _Tried(NamedTuple):
    """How many pods were tried, how many found a place, and why the first of the others did not."""

    tried: int = 0
    fitting: int = 0
    why_not: str = ""


def _try(after: Snapshot, workload: Workload, missing: int, old: Sequence[Pod]) -> _Tried:
    """Whether so many new pods fit, or the first of them, while old ones go for them as the workload says."""
    count = min(missing, MAX_TRIED)
    made = [_pod_of(workload, number) for number in range(count)]
    names = {full_name(pod) for pod in made}
    waiting = pending_pods(after.with_typed(made))
    problem = next((why for name, why in waiting.problems.items() if name in names), None)
    if problem is not None:
        return _Tried(count, 0, tell_pod(problem))
    with after.rehearsal() as rehearsal:
        rehearsal.expect([pod for pod in waiting.pods if full_name(pod) in names], waiting.claims)
        volumes = rehearsal.cluster.volumes
        unknown = next((why for pod in rehearsal.pending if (why := cannot_judge(pod, volumes)) is not None), None)
        if unknown is not None:
            return _Tried(why_not=f"cannot be judged: {tell_pod(unknown)}")
        bounds = bounds_of(workload, missing) if old else Bounds(count)
        rollout = Rollout(rehearsal, old, rehearsal.pending, bounds)
        rollout.play()
        return _Tried(count, rollout.fitting, rollout.why_not)


def _pod_of(workload: Workload, number: int) -> Pod:
    template: PodTemplateSpec = workload.spec.template
    name, namespace = f"{workload.metadata.name}/{number}", workload.metadata.namespace
    meta = ObjectMeta(
        name=name,  # no stored pod can be called like this
        namespace=namespace,
        uid=f"{namespace}/{name}",
        labels=template.metadata.labels if template.metadata is not None else {},
    )
    return Pod(kind="Pod", api_version="v1", metadata=meta, spec=template.spec)
