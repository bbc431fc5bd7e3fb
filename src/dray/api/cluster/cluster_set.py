"""ManagedClusterSet and ManagedClusterSetBinding: groups of clusters, and who may use them (v1beta2)."""

from __future__ import annotations

from msgspec import field

from dray.api.cluster.managed_cluster import ManagedNamespaceConfig
from dray.api.meta import Condition, LabelSelector, Object
from dray.api.struct import Struct

CLUSTER_SET_LABEL = "cluster.open-cluster-management.io/clusterset"

SELECTOR_EXCLUSIVE_LABEL = "ExclusiveClusterSetLabel"
SELECTOR_LABELS = "LabelSelector"
SELECTOR_TYPES = (SELECTOR_EXCLUSIVE_LABEL, SELECTOR_LABELS)

CONDITION_EMPTY = "ClusterSetEmpty"
CONDITION_BOUND = "Bound"


class ManagedClusterSelector(Struct):
    """How a set finds its clusters: by CLUSTER_SET_LABEL with its name (the default), or by `label_selector`."""

    selector_type: str = ""
    label_selector: LabelSelector | None = None


class ManagedClusterSetSpec(Struct):
    """The clusters of a set, and the namespaces it manages on each of them."""

    cluster_selector: ManagedClusterSelector = ManagedClusterSelector()
    managed_namespaces: tuple[ManagedNamespaceConfig, ...] = ()


class ManagedClusterSetStatus(Struct):
    """The condition ClusterSetEmpty says whether any cluster belongs to the set."""

    conditions: tuple[Condition, ...] = ()


class ManagedClusterSet(Object):
    """A group of clusters. Cluster-scoped."""

    spec: ManagedClusterSetSpec = field(default_factory=ManagedClusterSetSpec)
    status: ManagedClusterSetStatus = field(default_factory=ManagedClusterSetStatus)


class ManagedClusterSetBindingSpec(Struct):
    """The set to bind; the binding has the same name."""

    cluster_set: str = field(default_factory=str)


class ManagedClusterSetBindingStatus(Struct):
    """The condition Bound says whether the set exists."""

    conditions: tuple[Condition, ...] = ()


class ManagedClusterSetBinding(Object):
    """Lets the placements of one namespace select from a set. Namespaced."""

    spec: ManagedClusterSetBindingSpec = field(default_factory=ManagedClusterSetBindingSpec)
    status: ManagedClusterSetBindingStatus = field(default_factory=ManagedClusterSetBindingStatus)
