"""ManagedCluster: a cluster that has joined the hub, with its taints, its claims and its health (v1)."""

from __future__ import annotations

from msgspec import field

from dray.api.conditions import is_true
from dray.api.meta import Condition, Object
from dray.api.quantity import Quantity
from dray.api.struct import Struct
from dray.api.times import Time

EFFECT_NO_SELECT = "NoSelect"
EFFECT_PREFER_NO_SELECT = "PreferNoSelect"
EFFECT_NO_SELECT_IF_NEW = "NoSelectIfNew"
EFFECTS = (EFFECT_NO_SELECT, EFFECT_PREFER_NO_SELECT, EFFECT_NO_SELECT_IF_NEW)

TAINT_UNAVAILABLE = "cluster.open-cluster-management.io/unavailable"
TAINT_UNREACHABLE = "cluster.open-cluster-management.io/unreachable"
AUTOMATIC_TAINTS = frozenset({TAINT_UNAVAILABLE, TAINT_UNREACHABLE})
"""Those that only the hub sets; agents may neither add nor remove them (OCM-32)."""

CONDITION_JOINED = "ManagedClusterJoined"
CONDITION_HUB_ACCEPTED = "HubAcceptedManagedCluster"
CONDITION_AVAILABLE = "ManagedClusterConditionAvailable"

AGENT_ACCOUNT = "cluster-agent"
"""The ServiceAccount in a cluster's namespace on the hub that the cluster's agent acts as."""
REGISTRATION_ROLE = "open-cluster-management:managedcluster:registration"
"""The ClusterRole, known to every server, that says what an agent may do in its cluster's namespace."""

CLUSTER_NAME_LABEL = "open-cluster-management.io/cluster-name"

KEY_LENGTH = 316
VALUE_LENGTH = 1024
CLAIM_NAME_LENGTH = 253
CLAIM_VALUE_LENGTH = 1024
DEFAULT_LEASE_DURATION_SECONDS = 60
MOST_CLASSES = 100
"""Device classes of a cluster that are told: its agent may claim thousands."""
_MOST_DIGITS = 9


class Taint(Struct):
    """A mark on a cluster: placements that do not tolerate it are kept away, as strictly as `effect` says.

    Tolerations with a time limit count from `time_added`. The server fills it in when it is absent (OCM-43).
    """

    key: str = field(default_factory=str)
    value: str = ""
    effect: str = field(default_factory=str)
    time_added: Time | None = None


class ClientConfig(Struct):
    """Where a cluster's API server answers. `ca_bundle` is base64; without it the system's roots count."""

    url: str = field(default_factory=str)
    ca_bundle: str = field(default="", name="caBundle")


class ManagedClusterSpec(Struct):
    """What the hub wants of a cluster. An absent lease duration is DEFAULT_LEASE_DURATION_SECONDS."""

    managed_cluster_client_configs: tuple[ClientConfig, ...] = ()
    hub_accepts_client: bool = field(default_factory=bool)
    lease_duration_seconds: int = 0
    taints: tuple[Taint, ...] = ()


class ManagedClusterVersion(Struct):
    """The software that a cluster runs."""

    kubernetes: str = ""


class ManagedClusterClaim(Struct):
    """A named fact that a cluster states about itself, for claim selectors."""

    name: str = ""
    value: str = ""


class ManagedNamespaceConfig(Struct):
    """A namespace that a cluster set manages on its clusters."""

    name: str = field(default_factory=str)


class ClusterSetManagedNamespaceConfig(Struct):
    """A managed namespace on one cluster: which cluster set asks for it, and how it fares."""

    name: str = field(default_factory=str)
    cluster_set: str = field(default_factory=str)
    conditions: tuple[Condition, ...] = ()


class ManagedClusterStatus(Struct):
    """What a cluster reports. `capacity` and `allocatable` are sums over its nodes."""

    conditions: tuple[Condition, ...] = ()
    capacity: dict[str, Quantity] = field(default_factory=dict)
    allocatable: dict[str, Quantity] = field(default_factory=dict)
    version: ManagedClusterVersion = ManagedClusterVersion()
    cluster_claims: tuple[ManagedClusterClaim, ...] = ()
    managed_namespaces: tuple[ClusterSetManagedNamespaceConfig, ...] = ()


class ManagedCluster(Object):
    """A cluster that placements can select. Cluster-scoped; its namespace on the hub has the same name."""

    spec: ManagedClusterSpec = field(default_factory=ManagedClusterSpec)
    status: ManagedClusterStatus = field(default_factory=ManagedClusterStatus)


def is_accepted(cluster: ManagedCluster) -> bool:
    """Whether the hub has accepted the cluster and made room for its agent."""
    return is_true(cluster.status.conditions, CONDITION_HUB_ACCEPTED)


def claimed_counts(cluster: ManagedCluster, prefix: str) -> dict[str, int]:
    """By device class, what a cluster claims to have of it; what is no such number is left out."""
    counts: dict[str, int] = {}
    for claim in cluster.status.cluster_claims:
        is_number = claim.value.isascii() and claim.value.isdecimal() and len(claim.value) <= _MOST_DIGITS
        if claim.name.startswith(prefix) and is_number and len(counts) < MOST_CLASSES:
            counts[claim.name.removeprefix(prefix)] = int(claim.value)
    return counts
