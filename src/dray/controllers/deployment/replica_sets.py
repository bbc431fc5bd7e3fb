"""The ReplicaSets of a deployment: which is the new one, what a new one looks like, how they are numbered. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from msgspec.structs import replace

from dray.api.generated.apps import Deployment, ReplicaSet, ReplicaSetSpec
from dray.api.generated.core import PodTemplateSpec
from dray.api.meta import LabelSelector, ObjectMeta
from dray.controllers.pod_templates import reference_to, template_hash

HASH = "pod-template-hash"
REVISION = "deployment.kubernetes.io/revision"
DESIRED = "deployment.kubernetes.io/desired-replicas"
MAX = "deployment.kubernetes.io/max-replicas"
LARGEST_REVISION = 2**63 - 1
NOT_INHERITED = frozenset((REVISION, DESIRED, MAX, "kubectl.kubernetes.io/last-applied-configuration"))


def is_for(replica_set: ReplicaSet, template: PodTemplateSpec) -> bool:
    """Whether a ReplicaSet makes pods from a template; the hash that it adds does not count."""
    own = replica_set.spec.template
    labels = {key: value for key, value in own.metadata.labels.items() if key != HASH}
    return replace(own, metadata=replace(own.metadata, labels=labels)) == template


def by_age(sets: Iterable[ReplicaSet]) -> list[ReplicaSet]:
    """Oldest first."""
    return sorted(sets, key=lambda one: (one.metadata.creation_timestamp or "", one.metadata.name))


def find_new(deployment: Deployment, sets: Iterable[ReplicaSet]) -> ReplicaSet | None:
    """The ReplicaSet of the current template; of several the oldest."""
    return next((one for one in by_age(sets) if is_for(one, deployment.spec.template)), None)


def revision_of(replica_set: ReplicaSet) -> int:
    """The number of the rollout that a ReplicaSet belongs to."""
    text = replica_set.metadata.annotations.get(REVISION, "")
    number = int(text) if text.isascii() and text.isdecimal() and len(text) < 20 else 0
    return number if number < LARGEST_REVISION else 0


def next_revision(old: Sequence[ReplicaSet]) -> int:
    """The number of the newest rollout."""
    return max((revision_of(one) for one in old), default=0) + 1


def marks_of(deployment: Deployment, revision: int, surge: int) -> dict[str, str]:
    """What the ReplicaSet of the newest rollout carries."""
    inherited = {key: value for key, value in deployment.metadata.annotations.items() if key not in NOT_INHERITED}
    return {**inherited, REVISION: str(revision), **size_marks_of(deployment, surge)}


def size(workload: Deployment | ReplicaSet) -> int:
    """How many pods it is asked for."""
    return 1 if workload.spec.replicas is None else workload.spec.replicas


def size_marks_of(deployment: Deployment, surge: int) -> dict[str, str]:
    """What every ReplicaSet in use carries: for which size of the deployment it got its own."""
    wanted = size(deployment)
    return {DESIRED: str(wanted), MAX: str(wanted + surge)}


def make(deployment: Deployment, replicas: int, marks: dict[str, str]) -> ReplicaSet:
    """The ReplicaSet for the current template."""
    spec = deployment.spec
    digest = template_hash(spec.template, deployment.status.collision_count or 0)
    labels = {**spec.template.metadata.labels, HASH: digest}
    selector = spec.selector or LabelSelector()
    return ReplicaSet(
        kind="ReplicaSet",
        api_version="apps/v1",
        metadata=ObjectMeta(
            name=f"{deployment.metadata.name[:240]}-{digest}",
            namespace=deployment.metadata.namespace,
            labels=labels,
            annotations=marks,
            owner_references=(reference_to(deployment),),
        ),
        spec=ReplicaSetSpec(
            replicas=replicas,
            min_ready_seconds=spec.min_ready_seconds,
            selector=replace(selector, match_labels={**selector.match_labels, HASH: digest}),
            template=replace(spec.template, metadata=replace(spec.template.metadata, labels=labels)),
        ),
    )
