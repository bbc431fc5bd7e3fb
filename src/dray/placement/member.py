"""What placement needs to know about one managed cluster."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import msgspec

from dray.api.cluster import ManagedCluster
from dray.api.taints import taint_text
from dray.placement.moments import Moment, moment_of


class ClusterTaint(NamedTuple):
    """A taint on a cluster. `added` is None if nobody said when: then no time limit has any of it left."""

    key: str
    value: str
    effect: str
    added: Moment | None

    def __str__(self) -> str:
        return taint_text(self)


class Member(msgspec.Struct, frozen=True):
    """A cluster as placements see it. Two equal members are interchangeable: nothing needs to be decided again."""

    name: str
    labels: Mapping[str, str]
    claims: Mapping[str, str]
    taints: tuple[ClusterTaint, ...]
    allocatable: Mapping[str, float]
    """Allocatable amounts of the resources whose capacity is known too."""
    deleting: bool

    @staticmethod
    def of(cluster: ManagedCluster) -> Member:
        """The part of a ManagedCluster that can change a decision."""
        status = cluster.status
        return Member(
            name=cluster.metadata.name,
            labels=cluster.metadata.labels,
            claims={claim.name: claim.value for claim in status.cluster_claims},
            taints=tuple(
                ClusterTaint(
                    taint.key, taint.value, taint.effect, moment_of(taint.time_added) if taint.time_added else None
                )
                for taint in cluster.spec.taints
            ),
            allocatable={
                name: quantity.approximate_float()
                for name, quantity in status.allocatable.items()
                if name in status.capacity
            },
            deleting=cluster.metadata.deletion_timestamp is not None,
        )
