"""A ReplicationController seen as a ReplicaSet, and back. Pure."""

from __future__ import annotations

from msgspec.structs import replace

from dray.api.generated.apps import ReplicaSet, ReplicaSetCondition, ReplicaSetSpec, ReplicaSetStatus
from dray.api.generated.core import (
    PodTemplateSpec,
    ReplicationController,
    ReplicationControllerCondition,
    ReplicationControllerStatus,
)
from dray.api.meta import LabelSelector

_CONDITION = ReplicationControllerCondition.__struct_fields__
_COUNTS = tuple(name for name in ReplicationControllerStatus.__struct_fields__ if name != "conditions")


def as_replica_set(workload: ReplicationController) -> ReplicaSet:
    """The same number of the same pods; kind and metadata stay, so that pods name their real owner."""
    spec, status = workload.spec, workload.status
    conditions = (ReplicaSetCondition(**{name: getattr(one, name) for name in _CONDITION}) for one in status.conditions)
    return ReplicaSet(
        kind="ReplicationController",
        api_version="v1",
        metadata=workload.metadata,
        spec=ReplicaSetSpec(
            replicas=spec.replicas,
            min_ready_seconds=spec.min_ready_seconds,
            selector=LabelSelector(match_labels=spec.selector),
            template=spec.template or PodTemplateSpec(),
        ),
        status=ReplicaSetStatus(
            **{name: getattr(status, name) for name in _COUNTS}, conditions=tuple(conditions), terminating_replicas=None
        ),
    )


def with_status(workload: ReplicationController, status: ReplicaSetStatus) -> ReplicationController:
    """The ReplicationController with what its status can say of a ReplicaSet's."""
    conditions = (
        ReplicationControllerCondition(**{name: getattr(one, name) for name in _CONDITION}) for one in status.conditions
    )
    told = ReplicationControllerStatus(
        **{name: getattr(status, name) for name in _COUNTS}, conditions=tuple(conditions)
    )
    return replace(workload, status=told)
