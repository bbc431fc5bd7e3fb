"""All controllers by name, in the order in which they are started and listed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Protocol

from dray.client import Informer
from dray.controllers.cluster_set import ClusterSetController
from dray.controllers.context import Context
from dray.controllers.cron_job import CronJobController
from dray.controllers.daemon_set import DaemonSetController
from dray.controllers.deployment import DeploymentController
from dray.controllers.disruption import DisruptionController
from dray.controllers.endpoints import EndpointsController, EndpointSliceController
from dray.controllers.eviction import DeviceTaintEvictionController, TaintEvictionController
from dray.controllers.garbage_collector import GarbageCollector
from dray.controllers.job import JobController
from dray.controllers.managed_cluster import ManagedClusterController
from dray.controllers.namespace import NamespaceController
from dray.controllers.node_lifecycle import NodeLifecycleController
from dray.controllers.placement import PlacementController
from dray.controllers.pod_garbage_collector import PodGarbageCollector
from dray.controllers.pod_group_protection import PodGroupProtectionController
from dray.controllers.replica_set import ReplicaSetController, ReplicationControllerController
from dray.controllers.resource_claim import ResourceClaimController
from dray.controllers.resource_pool_status import ResourcePoolStatusController
from dray.controllers.resource_quota import ResourceQuotaController
from dray.controllers.role_aggregation import RoleAggregationController
from dray.controllers.root_certificate import RootCertificatePublisher
from dray.controllers.service_account import ServiceAccountController
from dray.controllers.stateful_set import StatefulSetController
from dray.controllers.taint_expiry import TaintExpiryController
from dray.controllers.ttl_after_finished import TtlAfterFinishedController
from dray.controllers.volumes import (
    ClaimProtectionController,
    EphemeralVolumeController,
    VolumeBinder,
    VolumeProtectionController,
)


class Component(Protocol):
    """What the manager runs."""

    @property
    def informers(self) -> Sequence[Informer[Any]]:
        """What it needs to know before it starts to work."""
        ...

    @property
    def problem(self) -> str:
        """Why it cannot work now; empty if it can."""
        ...

    async def run(self) -> None:
        """Works until cancelled."""
        ...


class Entry(NamedTuple):
    """How to make a controller, and as which ServiceAccount of `kube-system` it acts."""

    account: str
    make: Callable[[Context], Component]


CATALOG: dict[str, Entry] = {
    ResourceClaimController.name: Entry("resource-claim-controller", ResourceClaimController),
    PodGroupProtectionController.name: Entry("podgroup-protection-controller", PodGroupProtectionController),
    GarbageCollector.name: Entry("generic-garbage-collector", GarbageCollector),
    NamespaceController.name: Entry("namespace-controller", NamespaceController),
    PodGarbageCollector.name: Entry("pod-garbage-collector", PodGarbageCollector),
    ResourceQuotaController.name: Entry("resourcequota-controller", ResourceQuotaController),
    ReplicaSetController.name: Entry("replicaset-controller", ReplicaSetController),
    DeploymentController.name: Entry("deployment-controller", DeploymentController),
    DaemonSetController.name: Entry("daemon-set-controller", DaemonSetController),
    StatefulSetController.name: Entry("statefulset-controller", StatefulSetController),
    ReplicationControllerController.name: Entry("replication-controller", ReplicationControllerController),
    JobController.name: Entry("job-controller", JobController),
    CronJobController.name: Entry("cronjob-controller", CronJobController),
    TtlAfterFinishedController.name: Entry("ttl-after-finished-controller", TtlAfterFinishedController),
    EndpointSliceController.name: Entry("endpointslice-controller", EndpointSliceController),
    EndpointsController.name: Entry("endpoint-controller", EndpointsController),
    DisruptionController.name: Entry("disruption-controller", DisruptionController),
    ServiceAccountController.name: Entry("service-account-controller", ServiceAccountController),
    RootCertificatePublisher.name: Entry("root-ca-cert-publisher", RootCertificatePublisher),
    RoleAggregationController.name: Entry("clusterrole-aggregation-controller", RoleAggregationController),
    EphemeralVolumeController.name: Entry("ephemeral-volume-controller", EphemeralVolumeController),
    VolumeBinder.name: Entry("persistent-volume-binder", VolumeBinder),
    ClaimProtectionController.name: Entry("pvc-protection-controller", ClaimProtectionController),
    VolumeProtectionController.name: Entry("pv-protection-controller", VolumeProtectionController),
    DeviceTaintEvictionController.name: Entry("device-taint-eviction-controller", DeviceTaintEvictionController),
    ResourcePoolStatusController.name: Entry("resourcepoolstatusrequest-controller", ResourcePoolStatusController),
    NodeLifecycleController.name: Entry("node-lifecycle-controller", NodeLifecycleController),
    TaintEvictionController.name: Entry("taint-eviction-controller", TaintEvictionController),
    TaintExpiryController.name: Entry("taint-expiry-controller", TaintExpiryController),
    ManagedClusterController.name: Entry("managed-cluster-controller", ManagedClusterController),
    ClusterSetController.name: Entry("managed-cluster-controller", ClusterSetController),
    PlacementController.name: Entry("placement-controller", PlacementController),
}
