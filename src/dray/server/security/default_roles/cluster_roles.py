"""Least-privilege roles around cluster placement: the hub's controllers, and the agents of managed clusters.

An agent's rights to its own ManagedCluster are in a role per cluster, made by the hub when it accepts the cluster; what
it may do in its cluster's namespace is the same for all, and here.
"""

from dray.api.cluster.managed_cluster import REGISTRATION_ROLE
from dray.server.security.default_roles.building import (
    CLUSTER,
    CORE,
    EVENTS,
    GROUP,
    LEASES,
    READ,
    cluster_role,
    controller,
    rule,
)

_AGENT = (rule(f"{READ} patch update", LEASES, "leases"), EVENTS)

OBJECTS = (
    cluster_role(REGISTRATION_ROLE, *_AGENT),
    *controller(
        "placement-controller",
        rule(
            READ,
            CLUSTER,
            "managedclusters managedclustersets managedclustersetbindings placements addonplacementscores",
        ),
        rule("patch update", CLUSTER, "placements/status placements/finalizers"),
        rule(f"{READ} create delete patch update", CLUSTER, "placementdecisions"),
        rule("patch update", CLUSTER, "placementdecisions/status"),
    ),
    # Availability from leases, the two taints that only the hub sets (OCM-32), and what an accepted cluster has on the
    # hub. It can give agents their rights because it has them itself: nothing more can be given away.
    *controller(
        "managed-cluster-controller",
        rule(f"{READ} patch update", CLUSTER, "managedclusters"),
        rule("patch update", CLUSTER, "managedclusters/status managedclustersets/status"),
        rule("patch update", CLUSTER, "managedclustersetbindings/status managedclusters/finalizers"),
        rule(READ, CLUSTER, "managedclustersets managedclustersetbindings"),
        rule("create", LEASES, "leases"),
        rule(f"{READ} create", CORE, "namespaces serviceaccounts"),
        rule(f"{READ} create update", GROUP, "clusterroles"),
        rule(f"{READ} create delete update", GROUP, "clusterrolebindings rolebindings"),
        *_AGENT,
    ),
)
