"""What workloads want: how many pods, made from which template, and which pods are theirs. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from dray.api.generated.apps import DaemonSet, Deployment, ReplicaSet, StatefulSet
from dray.api.generated.batch import CronJob, Job
from dray.api.generated.core import Pod, PodSpec, PodTemplateSpec
from dray.api.labels import LabelSelector, SelectorError
from dray.api.meta import Object, ObjectMeta
from dray.api.pods import is_active
from dray.api.references import controller_of, full_name
from dray.api.registry import UnknownKind, by_kind
from dray.api.times import Time
from dray.api.well_known import JOB_NAME
from dray.snapshot.snapshot import Snapshot
from dray.validation.pod_defaults import default_pod

Workload = Deployment | ReplicaSet | StatefulSet | Job
"""What wants a number of pods, wherever they are."""
WORKLOADS = (Deployment, ReplicaSet, StatefulSet, Job)
Maker = Workload | DaemonSet | CronJob
"""What makes pods, now or at some time."""
MAKERS = (*WORKLOADS, DaemonSet, CronJob)
TAKES = (ReplicaSet, DaemonSet)
"""What takes pods as its own that are nobody's and labelled as its are, whatever they are called."""


def title(workload: Object) -> str:
    """`Deployment ml/web`."""
    return f"{workload.kind} {full_name(workload)}"


def wanted_pods(workload: Workload) -> int:
    """How many pods it wants now."""
    if isinstance(workload, Job):
        spec = workload.spec
        if spec.suspend:
            return 0
        left = spec.completions - workload.status.succeeded if spec.completions is not None else None
        parallel = 1 if spec.parallelism is None else spec.parallelism
        return parallel if left is None else max(min(parallel, left), 0)
    return 1 if workload.spec.replicas is None else workload.spec.replicas


def template_of(maker: Maker) -> PodTemplateSpec:
    """What its pods are made from."""
    return maker.spec.job_template.spec.template if isinstance(maker, CronJob) else maker.spec.template


def pod_of(maker: Maker, number: int | str, spec: PodSpec | None = None) -> Pod:
    """A pod as it would make one; of a DaemonSet, with the `spec` for a node."""
    template = template_of(maker)
    name, namespace = f"{maker.metadata.name}/{number}", maker.metadata.namespace
    meta = ObjectMeta(
        name=name,  # no stored pod can be called like this
        namespace=namespace,
        uid=f"{namespace}/{name}",
        labels=template.metadata.labels if template.metadata is not None else {},
    )
    pod = Pod(kind="Pod", api_version="v1", metadata=meta, spec=template.spec if spec is None else spec)
    return default_pod(pod, Time(""))  # more than those of a template: what is limited is asked for


def is_of(pod: Pod, maker: Maker) -> bool:
    """Whether it counts a pod as its own, by its selector."""
    if pod.metadata.namespace != maker.metadata.namespace or isinstance(maker, CronJob):
        return False
    if isinstance(maker, Job) and maker.spec.selector is None:
        labels = pod.metadata.labels
        return maker.metadata.name in (labels.get(JOB_NAME), labels.get("job-name"))
    try:
        return LabelSelector.of(maker.spec.selector).matches(pod.metadata.labels)
    except SelectorError:
        return False


class ActivePods:
    """The pods of a snapshot that run or may still run, by namespace."""

    def __init__(self, snapshot: Snapshot) -> None:
        self._by_namespace: dict[str, list[Pod]] = {}
        for pod in snapshot.objects(Pod):
            if is_active(pod):
                self._by_namespace.setdefault(pod.metadata.namespace, []).append(pod)

    def of(self, maker: Maker) -> list[Pod]:
        """Those of a workload."""
        return [pod for pod in self.near(maker) if is_of(pod, maker)]

    def near(self, obj: Object) -> Sequence[Pod]:
        """Those in the namespace of an object."""
        return self._by_namespace.get(obj.metadata.namespace, ())


def owner_of(pod: Pod, snapshot: Snapshot, makers: Iterable[Maker]) -> Maker | None:
    """What makes another pod when this one is gone; without a word of the pod itself, what selects it."""
    reference = controller_of(pod)
    if reference is not None:
        try:
            kind = by_kind(reference.api_version, reference.kind)
        except UnknownKind:
            return None
        found = snapshot.get(kind.storage.resource, pod.metadata.namespace, reference.name)
        if isinstance(found, MAKERS) and reference.uid in ("", found.metadata.uid or reference.uid):
            return found
    return next((one for one in makers if controller_of(one) is None and is_of(pod, one)), None)
