"""Roles for people: all, namespace admin, edit, view, and what everybody may do.

`admin`, `edit` and `view` are to be bound in a namespace. They include claims, but not the claims' status, which is for
the scheduler and the claim controller only (4381-188), and neither ResourceSlicePatches nor DeviceTaintRules, which are
for people who could as well replace a driver (5027-39).
"""

from dray.server.security.default_roles.building import (
    ANY,
    AUTHENTICATION,
    AUTHORIZATION,
    CLUSTER,
    CORE,
    DRAY,
    GROUP,
    LEASES,
    NETWORKING,
    READ,
    RESOURCE,
    WRITE,
    aggregated_role,
    cluster_binding,
    cluster_role,
    groups,
    path_rule,
    rule,
)
from dray.server.security.identity import AUTHENTICATED, MASTERS, SERVICE_ACCOUNTS, UNAUTHENTICATED

READER = "dray-reader"

_PUBLIC_PATHS = "/healthz /livez /readyz /version /version/"
_DISCOVERY_PATHS = f"/api /api/* /apis /apis/* /openapi /openapi/* {_PUBLIC_PATHS}"
_PROBE_PATHS = "/healthz /healthz/* /livez /livez/* /readyz /readyz/*"
_ISSUER_PATHS = "/.well-known/openid-configuration /.well-known/openid-configuration/ /openid/v1/jwks /openid/v1/jwks/"

_APPS = (
    "daemonsets deployments deployments/rollback deployments/scale replicasets replicasets/scale statefulsets "
    "statefulsets/scale"
)
_CONNECTIONS = "pods/attach pods/exec pods/portforward pods/proxy"

_VIEW = cluster_role(
    "system:aggregate-to-view",
    rule(
        READ,
        CORE,
        "configmaps endpoints persistentvolumeclaims persistentvolumeclaims/status pods replicationcontrollers "
        "replicationcontrollers/scale serviceaccounts services services/status",
    ),
    rule(
        READ,
        CORE,
        "bindings limitranges namespaces/status pods/log pods/status replicationcontrollers/status resourcequotas "
        "resourcequotas/status",
    ),
    rule(READ, CORE, "namespaces"),
    rule(READ, f"{CORE} events.k8s.io", "events"),
    rule(READ, "discovery.k8s.io", "endpointslices"),
    rule(
        READ,
        "apps",
        "controllerrevisions daemonsets daemonsets/status deployments deployments/scale deployments/status replicasets "
        "replicasets/scale replicasets/status statefulsets statefulsets/scale statefulsets/status",
    ),
    rule(READ, "autoscaling", "horizontalpodautoscalers horizontalpodautoscalers/status"),
    rule(READ, "batch", "cronjobs cronjobs/status jobs jobs/status"),
    rule(READ, "policy", "poddisruptionbudgets poddisruptionbudgets/status"),
    rule(READ, NETWORKING, "ingresses ingresses/status networkpolicies"),
    rule(READ, RESOURCE, "resourceclaims resourceclaims/status resourceclaimtemplates"),
    rule(READ, "scheduling.k8s.io", "podgroups podgroups/status workloads"),
    rule(READ, CLUSTER, "placements placements/status placementdecisions managedclustersetbindings"),
    aggregate_to="view",
)

_EDIT = cluster_role(
    "system:aggregate-to-edit",
    rule(READ, CORE, f"{_CONNECTIONS} secrets services/proxy"),
    rule("impersonate", CORE, "serviceaccounts"),
    rule(WRITE, CORE, f"pods {_CONNECTIONS}"),
    rule("create", CORE, "pods/eviction serviceaccounts/token"),
    rule(
        WRITE,
        CORE,
        "configmaps persistentvolumeclaims replicationcontrollers replicationcontrollers/scale secrets serviceaccounts "
        "services services/proxy",
    ),
    rule(WRITE, f"{CORE} events.k8s.io", "events"),
    rule(WRITE, "apps", _APPS),
    rule(WRITE, "autoscaling", "horizontalpodautoscalers"),
    rule(WRITE, "batch", "cronjobs jobs"),
    rule(WRITE, "policy", "poddisruptionbudgets"),
    rule(WRITE, NETWORKING, "ingresses networkpolicies"),
    rule(ANY, LEASES, "leases"),
    rule(WRITE, RESOURCE, "resourceclaims resourceclaimtemplates"),
    rule(WRITE, "scheduling.k8s.io", "podgroups workloads"),
    rule(WRITE, CLUSTER, "placements"),
    aggregate_to="edit",
)

_READER = cluster_role(
    READER,
    rule(READ, CORE, "events namespaces nodes persistentvolumeclaims persistentvolumes pods resourcequotas services"),
    rule(READ, f"{RESOURCE} {DRAY}", "*"),
    rule(READ, "policy", "poddisruptionbudgets"),
    rule(READ, "apps", "daemonsets deployments replicasets statefulsets"),
    rule(READ, "batch", "cronjobs jobs"),
    rule(READ, "scheduling.k8s.io", "podgroups priorityclasses"),
    rule(READ, "storage.k8s.io", "csidrivers csinodes csistoragecapacities storageclasses"),
    rule(READ, "admissionregistration.k8s.io", "*"),
    rule(READ, CLUSTER, "*"),
    rule("get", LEASES, "leases", names="dray-controllers dray-scheduler kube-controller-manager kube-scheduler"),
)
"""What commands that only look, `dray top` and the page look at, and no more; to be bound by the admin."""

_ADMIN = cluster_role(
    "system:aggregate-to-admin",
    rule("create", AUTHORIZATION, "localsubjectaccessreviews"),
    rule(ANY, GROUP, "rolebindings roles"),
    aggregate_to="admin",
)

OBJECTS = (
    cluster_role("cluster-admin", rule("*", "*", "*"), path_rule("*", "*")),
    cluster_binding("cluster-admin", groups(MASTERS)),
    aggregated_role("admin"),
    aggregated_role("edit", aggregate_to="admin"),
    aggregated_role("view", aggregate_to="edit"),
    _ADMIN,
    _EDIT,
    _VIEW,
    _READER,
    cluster_role(
        "system:basic-user",
        rule("create", AUTHORIZATION, "selfsubjectaccessreviews selfsubjectrulesreviews"),
        rule("create", AUTHENTICATION, "selfsubjectreviews"),
    ),
    cluster_binding("system:basic-user", groups(AUTHENTICATED)),
    cluster_role("system:discovery", path_rule("get", _DISCOVERY_PATHS)),
    cluster_binding("system:discovery", groups(AUTHENTICATED)),
    cluster_role("system:public-info-viewer", path_rule("get", _PUBLIC_PATHS)),
    cluster_binding("system:public-info-viewer", groups(AUTHENTICATED, UNAUTHENTICATED)),
    cluster_role("system:monitoring", path_rule("get", f"{_PROBE_PATHS} /metrics /metrics/slis /statusz /flagz")),
    cluster_binding("system:monitoring", groups("system:monitoring")),
    cluster_role("system:service-account-issuer-discovery", path_rule("get", _ISSUER_PATHS)),
    cluster_binding("system:service-account-issuer-discovery", groups(SERVICE_ACCOUNTS)),
    # For webhooks and extension servers, to be bound by the admin.
    cluster_role(
        "system:auth-delegator",
        rule("create", AUTHENTICATION, "tokenreviews"),
        rule("create", AUTHORIZATION, "subjectaccessreviews"),
    ),
)
