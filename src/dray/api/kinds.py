"""The kinds that code speaks of by name; each is the one instance that `registry`, the table of all kinds, has."""

from __future__ import annotations

from typing import Final

from dray.api.registry import CLUSTER_GROUP, RBAC_GROUP, RESOURCE_GROUP, by_kind

CONFIG_MAPS: Final = by_kind("v1", "ConfigMap")
ENDPOINTS: Final = by_kind("v1", "Endpoints")
EVENTS: Final = by_kind("v1", "Event")
LIMIT_RANGES: Final = by_kind("v1", "LimitRange")
NAMESPACES: Final = by_kind("v1", "Namespace")
NODES: Final = by_kind("v1", "Node")
PODS: Final = by_kind("v1", "Pod")
REPLICATION_CONTROLLERS: Final = by_kind("v1", "ReplicationController")
VOLUMES: Final = by_kind("v1", "PersistentVolume")
VOLUME_CLAIMS: Final = by_kind("v1", "PersistentVolumeClaim")
QUOTAS: Final = by_kind("v1", "ResourceQuota")
SECRETS: Final = by_kind("v1", "Secret")
SERVICES: Final = by_kind("v1", "Service")
SERVICE_ACCOUNTS: Final = by_kind("v1", "ServiceAccount")

CLAIMS: Final = by_kind(f"{RESOURCE_GROUP}/v1", "ResourceClaim")
TEMPLATES: Final = by_kind(f"{RESOURCE_GROUP}/v1", "ResourceClaimTemplate")
CLASSES: Final = by_kind(f"{RESOURCE_GROUP}/v1", "DeviceClass")
SLICES: Final = by_kind(f"{RESOURCE_GROUP}/v1", "ResourceSlice")
RULES: Final = by_kind(f"{RESOURCE_GROUP}/v1", "DeviceTaintRule")
POOL_STATUS_REQUESTS: Final = by_kind(f"{RESOURCE_GROUP}/v1alpha3", "ResourcePoolStatusRequest")
PATCHES: Final = by_kind(f"{RESOURCE_GROUP}/v1alpha3", "ResourceSlicePatch")
TRACKED: Final = (CLASSES, SLICES, RULES, PATCHES)
"""What decides which devices there are."""

CONTROLLER_REVISIONS: Final = by_kind("apps/v1", "ControllerRevision")
DAEMON_SETS: Final = by_kind("apps/v1", "DaemonSet")
DEPLOYMENTS: Final = by_kind("apps/v1", "Deployment")
REPLICA_SETS: Final = by_kind("apps/v1", "ReplicaSet")
STATEFUL_SETS: Final = by_kind("apps/v1", "StatefulSet")
CRON_JOBS: Final = by_kind("batch/v1", "CronJob")
JOBS: Final = by_kind("batch/v1", "Job")
BUDGETS: Final = by_kind("policy/v1", "PodDisruptionBudget")
LEASES: Final = by_kind("coordination.k8s.io/v1", "Lease")
ENDPOINT_SLICES: Final = by_kind("discovery.k8s.io/v1", "EndpointSlice")
STORAGE_CLASSES: Final = by_kind("storage.k8s.io/v1", "StorageClass")
STORAGE_LIMITS: Final = tuple(
    by_kind("storage.k8s.io/v1", name) for name in ("CSINode", "CSIDriver", "CSIStorageCapacity")
)
"""What says how much a storage driver takes, and where."""
RUNTIME_CLASSES: Final = by_kind("node.k8s.io/v1", "RuntimeClass")
PRIORITY_CLASSES: Final = by_kind("scheduling.k8s.io/v1", "PriorityClass")
POD_GROUPS: Final = by_kind("scheduling.k8s.io/v1beta1", "PodGroup")

ADMISSION_KINDS: Final = tuple(
    by_kind("admissionregistration.k8s.io/v1", f"{sort}{what}")
    for sort in ("Validating", "Mutating")
    for what in ("WebhookConfiguration", "AdmissionPolicy", "AdmissionPolicyBinding")
)
"""Who is asked about objects before they are stored."""

CLUSTER_ROLES: Final = by_kind(f"{RBAC_GROUP}/v1", "ClusterRole")
CLUSTER_ROLE_BINDINGS: Final = by_kind(f"{RBAC_GROUP}/v1", "ClusterRoleBinding")
ROLE_BINDINGS: Final = by_kind(f"{RBAC_GROUP}/v1", "RoleBinding")

CLUSTERS: Final = by_kind(f"{CLUSTER_GROUP}/v1", "ManagedCluster")
CLUSTER_SETS: Final = by_kind(f"{CLUSTER_GROUP}/v1beta2", "ManagedClusterSet")
CLUSTER_SET_BINDINGS: Final = by_kind(f"{CLUSTER_GROUP}/v1beta2", "ManagedClusterSetBinding")
PLACEMENTS: Final = by_kind(f"{CLUSTER_GROUP}/v1beta1", "Placement")
DECISIONS: Final = by_kind(f"{CLUSTER_GROUP}/v1beta1", "PlacementDecision")
ADD_ON_SCORES: Final = by_kind(f"{CLUSTER_GROUP}/v1alpha1", "AddOnPlacementScore")

WITH_TEMPLATES_OF_PODS: Final = frozenset(
    ("PodTemplate", "ReplicationController", "ReplicaSet", "Deployment", "DaemonSet", "StatefulSet", "Job", "CronJob")
)
"""What pods are made from, by the names of the kinds."""
