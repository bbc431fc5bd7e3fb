"""Roles of nodes, of device drivers, and of what watches over devices.

A node's role says with what kinds of objects a node has to do; which of them is for `node_restriction` and
`node_reads`.
"""

from dray.server.security.default_roles.building import (
    ANY,
    AUTHENTICATION,
    AUTHORIZATION,
    CERTIFICATES,
    CORE,
    EVENTS,
    LEASES,
    NETWORKING,
    READ,
    RESOURCE,
    STORAGE,
    cluster_binding,
    cluster_role,
    groups,
    rule,
    users,
)
from dray.server.security.identity import KUBELET_CLIENT, NODES

DRIVER_ROLE = "system:dra-driver"
DRIVER_STATUS_ROLE = "system:dra-driver-status"
MONITOR_ROLE = "system:device-health-monitor"

_KUBELET_PARTS = ("checkpoint", "configz", "healthz", "log", "metrics", "pods", "proxy", "stats")

_NODE = cluster_role(
    "system:node",
    rule("create", AUTHENTICATION, "tokenreviews"),
    rule("create", AUTHORIZATION, "localsubjectaccessreviews subjectaccessreviews"),
    rule(READ, CORE, "services"),
    rule(f"{READ} create patch update", CORE, "nodes"),
    rule("patch update", CORE, "nodes/status"),
    EVENTS,
    rule(f"{READ} create delete", CORE, "pods"),
    rule("patch update", CORE, "pods/status"),
    rule("create", CORE, "pods/eviction serviceaccounts/token"),
    rule(READ, CORE, "configmaps secrets"),
    rule("get", CORE, "endpoints persistentvolumeclaims persistentvolumes serviceaccounts"),
    rule("get patch update", CORE, "persistentvolumeclaims/status"),
    rule("create get list watch", CERTIFICATES, "certificatesigningrequests podcertificaterequests"),
    rule(READ, CERTIFICATES, "clustertrustbundles"),
    rule("create delete get patch update", LEASES, "leases"),
    rule("get", STORAGE, "volumeattachments"),
    rule(READ, STORAGE, "csidrivers"),
    rule("create delete get patch update", STORAGE, "csinodes"),
    rule(READ, "node.k8s.io", "runtimeclasses"),
    # Claims are read-only for nodes (4381-178); slices are written for the node itself only (SVS-63).
    rule("get", RESOURCE, "resourceclaims"),
    rule(ANY, RESOURCE, "resourceslices"),
)

OBJECTS = (
    _NODE,
    cluster_binding("system:node", groups(NODES)),
    # Whose certificates are approved without anybody looking; bound to nobody, as in Kubernetes.
    *(
        cluster_role(
            f"system:certificates.k8s.io:certificatesigningrequests:{right}",
            rule("create", CERTIFICATES, f"certificatesigningrequests/{right}"),
        )
        for right in ("nodeclient", "selfnodeclient")
    ),
    # With this the server goes to kubelets, which ask it whether it may.
    cluster_role(
        "system:kubelet-api-admin",
        rule(READ, CORE, "nodes"),
        rule("proxy", CORE, "nodes"),
        rule(ANY, CORE, " ".join(f"nodes/{part}" for part in _KUBELET_PARTS)),
    ),
    cluster_binding("system:kubelet-api-admin", users(KUBELET_CLIENT), "dray:kubelet-client"),
    # 4381-180: all that a driver's ServiceAccount needs, to be bound by whoever installs the driver.
    cluster_role(
        DRIVER_ROLE,
        rule(f"{READ} create update patch delete", RESOURCE, "resourceslices"),
        rule("get", RESOURCE, "resourceclaims"),
        rule("get", CORE, "nodes"),
    ),
    # For drivers that tell the health and data of their devices in the claims on their node, in addition.
    cluster_role(
        DRIVER_STATUS_ROLE,
        rule("update patch", RESOURCE, "resourceclaims/status"),
        rule("associated-node:update associated-node:patch", RESOURCE, "resourceclaims/driver"),
    ),
    # 5055-127: a health monitor takes devices offline through rules alone, without access to drivers or slices.
    cluster_role(MONITOR_ROLE, rule(f"{READ} create update patch delete", RESOURCE, "devicetaintrules")),
    cluster_role(
        "system:node-proxier",
        rule("list watch", CORE, "endpoints services"),
        rule(READ, CORE, "nodes"),
        rule("list watch", NETWORKING, "servicecidrs"),
        rule("list watch", "discovery.k8s.io", "endpointslices"),
        EVENTS,
    ),
    cluster_binding("system:node-proxier", users("system:kube-proxy")),
)
