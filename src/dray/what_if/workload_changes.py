"""What is different for the pods of workloads: how many more, fewer or new ones there are, and whether these fit.

Deployments, ReplicaSets, StatefulSets and Jobs: who looks after them is not played through; their pods are made from
the template and scheduled in memory, one after the other, next to those that are there.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from dray.allocator.reasons import Report
from dray.api.generated.apps import Deployment, ReplicaSet, StatefulSet
from dray.api.generated.batch import Job
from dray.api.generated.core import Pod, PodTemplateSpec
from dray.api.labels import LabelSelector, SelectorError
from dray.api.meta import Object, ObjectMeta
from dray.api.pods import is_active
from dray.api.references import full_name
from dray.scheduling.refusal import Refused
from dray.scheduling.text import tell, tell_pod
from dray.snapshot.pending_pods import pending_pods
from dray.snapshot.snapshot import Snapshot

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
    """Its template is another one, so that all its pods are made anew."""
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
        replaced = old is not None and new is not None and old.spec.template != new.spec.template
        if replaced and isinstance(new, Job | ReplicaSet):
            replaced = False  # pods that are there stay as they are
        missing = wanted if replaced else max(wanted - len(there_are), 0)
        if not missing and wanted == len(there_are):
            continue
        tried = min(missing, MAX_TRIED)
        fitting, why_not = _try(after, workload, tried, gone=there_are if replaced else ()) if new else (0, "")
        yield WorkloadChange(
            workload=f"{workload.kind} {full_name(workload)}",
            pods=len(there_are),
            wanted=wanted,
            replaced=replaced,
            fitting=fitting,
            tried=tried,
            why_not=why_not,
        )


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


def _try(after: Snapshot, workload: Workload, count: int, *, gone: Iterable[Pod]) -> tuple[int, str]:
    """How many of so many new pods fit, once those that are `gone` have left, and why the first other one does not."""
    made = [_pod_of(workload, number) for number in range(count)]
    names = {full_name(pod) for pod in made}
    waiting = pending_pods(after.with_typed(made))
    problem = next((why for name, why in waiting.problems.items() if name in names), None)
    if problem is not None:
        return 0, tell_pod(problem)
    with after.rehearsal() as rehearsal:
        for pod in gone:
            if pod.spec.node_name:
                rehearsal.remove_pod(pod)
        mine = [pod for pod in waiting.pods if full_name(pod) in names]
        rehearsal.expect(mine, waiting.claims)
        fitting, why_not = 0, ""
        for info in rehearsal.pending:
            answer = rehearsal.find_places(info)
            if isinstance(answer, Refused):
                why_not = why_not or tell(answer)
            else:
                rehearsal.bind(info, answer[0])
                fitting += 1
    return fitting, why_not


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
