"""The kinds that several controllers work on."""

from dray.api.registry import by_kind

RESOURCE = "resource.k8s.io/v1"

NAMESPACES = by_kind("v1", "Namespace")
NODES = by_kind("v1", "Node")
PODS = by_kind("v1", "Pod")
QUOTAS = by_kind("v1", "ResourceQuota")
SERVICE_ACCOUNTS = by_kind("v1", "ServiceAccount")
CLAIMS = by_kind(RESOURCE, "ResourceClaim")
CLAIM_TEMPLATES = by_kind(RESOURCE, "ResourceClaimTemplate")
DEVICE_CLASSES = by_kind(RESOURCE, "DeviceClass")
SLICES = by_kind(RESOURCE, "ResourceSlice")
TAINT_RULES = by_kind(RESOURCE, "DeviceTaintRule")
SLICE_PATCHES = by_kind("resource.k8s.io/v1alpha3", "ResourceSlicePatch")
LEASES = by_kind("coordination.k8s.io/v1", "Lease")
DEPLOYMENTS = by_kind("apps/v1", "Deployment")
REPLICA_SETS = by_kind("apps/v1", "ReplicaSet")
STATEFUL_SETS = by_kind("apps/v1", "StatefulSet")
JOBS = by_kind("batch/v1", "Job")
DISRUPTION_BUDGETS = by_kind("policy/v1", "PodDisruptionBudget")

CLUSTER = "cluster.open-cluster-management.io"
CLUSTERS = by_kind(f"{CLUSTER}/v1", "ManagedCluster")
CLUSTER_SETS = by_kind(f"{CLUSTER}/v1beta2", "ManagedClusterSet")
CLUSTER_SET_BINDINGS = by_kind(f"{CLUSTER}/v1beta2", "ManagedClusterSetBinding")
PLACEMENTS = by_kind(f"{CLUSTER}/v1beta1", "Placement")
DECISIONS = by_kind(f"{CLUSTER}/v1beta1", "PlacementDecision")
ADD_ON_SCORES = by_kind(f"{CLUSTER}/v1alpha1", "AddOnPlacementScore")
