"""Least-privilege roles of the components: scheduler, controller manager, and each of dray's controllers.

Names are those of Kubernetes where there is one, so that a real kube-scheduler or kube-controller-manager finds its
roles, too. A controller acts as the ServiceAccount of its name in `kube-system`.
"""

from dray.server.security.default_roles.building import (
    ANY,
    AUTHENTICATION,
    AUTHORIZATION,
    CORE,
    EVENTS,
    LEASES,
    READ,
    RESOURCE,
    STORAGE,
    cluster_binding,
    cluster_role,
    controller,
    rule,
    service_accounts,
    system_binding,
    system_role,
    users,
)

SCHEDULER = "system:kube-scheduler"
MANAGER = "system:kube-controller-manager"

_LOCKING = (
    rule("create get list update watch", LEASES, "leases"),
    rule("create get list update watch", LEASES, "leasecandidates"),
)
_DELEGATES = (
    rule("create", AUTHENTICATION, "tokenreviews"),
    rule("create", AUTHORIZATION, "subjectaccessreviews"),
)

_SCHEDULER = (
    cluster_role(
        SCHEDULER,
        EVENTS,
        *_DELEGATES,
        rule("create", LEASES, "leases"),
        rule("get list update watch", LEASES, "leases", names="kube-scheduler"),
        rule(ANY, LEASES, "leasecandidates"),
        rule(READ, CORE, "namespaces nodes persistentvolumeclaims persistentvolumes replicationcontrollers services"),
        rule(f"{READ} delete", CORE, "pods"),
        rule("create", CORE, "bindings pods/binding"),
        rule("patch update", CORE, "pods/status"),
        rule("update", CORE, "pods/finalizers"),
        rule(READ, "apps", "replicasets statefulsets"),
        rule(READ, "policy", "poddisruptionbudgets"),
        rule(READ, STORAGE, "csinodes csidrivers csistoragecapacities volumeattachments"),
        rule(READ, "scheduling.k8s.io", "podgroups priorityclasses"),
        rule("patch update", "scheduling.k8s.io", "podgroups/status"),
        rule(READ, RESOURCE, "deviceclasses resourceslices resourceslicepatches devicetaintrules"),
        # Finalizer, allocation and reservation; claims for extended resources are made by the scheduler.
        rule(f"{READ} create delete patch update", RESOURCE, "resourceclaims"),
        rule(f"{READ} patch update", RESOURCE, "resourceclaims/status"),
        rule("patch update", RESOURCE, "resourceclaims/binding"),
    ),
    cluster_binding(SCHEDULER, users(SCHEDULER)),
    cluster_role(
        "system:volume-scheduler",
        rule(f"{READ} patch update", CORE, "persistentvolumes persistentvolumeclaims"),
        rule(READ, STORAGE, "storageclasses"),
    ),
    cluster_binding("system:volume-scheduler", users(SCHEDULER)),
    system_role("system::leader-locking-kube-scheduler", *_LOCKING),
    system_binding("system::leader-locking-kube-scheduler", (*users(SCHEDULER), *service_accounts("kube-scheduler"))),
)

_MANAGER = (
    cluster_role(
        MANAGER,
        EVENTS,
        *_DELEGATES,
        rule("create", LEASES, "leases"),
        rule("get update watch", LEASES, "leases", names="kube-controller-manager dray-controllers"),
        rule("create get update", CORE, "secrets serviceaccounts"),
        rule("delete", CORE, "secrets"),
        rule("get", CORE, "configmaps namespaces"),
        rule("create", CORE, "serviceaccounts/token"),
        rule("list watch", "*", "*"),
    ),
    cluster_binding(MANAGER, users(MANAGER)),
    system_role("system::leader-locking-kube-controller-manager", *_LOCKING),
    system_binding(
        "system::leader-locking-kube-controller-manager",
        (*users(MANAGER), *service_accounts("kube-controller-manager")),
    ),
    system_role(
        "extension-apiserver-authentication-reader",
        rule(READ, CORE, "configmaps", names="extension-apiserver-authentication"),
    ),
    system_binding(
        "extension-apiserver-authentication-reader",
        users(MANAGER, SCHEDULER),
        name="system::extension-apiserver-authentication-reader",
    ),
)

_DEVICES = (
    # 4381-143: makes claims from templates, keeps reservations, deallocates.
    *controller(
        "resource-claim-controller",
        rule(READ, CORE, "pods"),
        rule("update", CORE, "pods/finalizers"),
        rule("patch update", CORE, "pods/status"),
        rule(READ, RESOURCE, "resourceclaimtemplates"),
        rule(f"{READ} create delete patch update", RESOURCE, "resourceclaims"),
        rule("patch update", RESOURCE, "resourceclaims/status resourceclaims/binding"),
        rule(READ, "scheduling.k8s.io", "podgroups"),
        rule("patch update", "scheduling.k8s.io", "podgroups/status"),
    ),
    *controller(
        "podgroup-protection-controller",
        rule(f"{READ} update", "scheduling.k8s.io", "podgroups"),
        rule(READ, CORE, "pods"),
        reports=False,
    ),
    # SVS-30, 5055-135; the patches belong to what the effective devices are made of.
    *controller(
        "device-taint-eviction-controller",
        rule(f"{READ} delete", CORE, "pods"),
        rule("patch update", CORE, "pods/status"),
        rule("create", CORE, "pods/eviction"),
        rule(READ, CORE, "namespaces"),  # kube-system says whether all evictions are stopped
        rule("patch", CORE, "namespaces", "kube-system"),  # and how many may leave
        rule(READ, RESOURCE, "resourceclaims resourceslices resourceslicepatches deviceclasses devicetaintrules"),
        rule("patch update", RESOURCE, "devicetaintrules/status"),
        rule(READ, "scheduling.k8s.io", "podgroups"),  # whose pods leave together
    ),
    *controller(
        "resourcepoolstatusrequest-controller",
        rule(f"{READ} delete", RESOURCE, "resourcepoolstatusrequests"),
        rule("patch update", RESOURCE, "resourcepoolstatusrequests/status"),
        rule(READ, RESOURCE, "resourceclaims resourceslices resourceslicepatches deviceclasses devicetaintrules"),
    ),
)

_EXPIRY = controller(
    "taint-expiry-controller",
    rule(f"{READ} delete", RESOURCE, "devicetaintrules"),
    rule(f"{READ} patch", CORE, "nodes"),
)

_NODES = (
    *controller(
        "node-lifecycle-controller",
        rule(f"{READ} patch update", CORE, "nodes"),
        rule("patch update", CORE, "nodes/status pods/status"),
        rule(READ, CORE, "pods"),
        rule(READ, LEASES, "leases"),
    ),
    *controller(
        "taint-eviction-controller",
        rule(READ, CORE, "nodes namespaces"),
        rule("patch", CORE, "namespaces", "kube-system"),
        rule(f"{READ} delete", CORE, "pods"),
        rule("patch update", CORE, "pods/status"),
        # For eviction policies that respect budgets, and for the guard.
        rule("create", CORE, "pods/eviction"),
        rule("patch", CORE, "nodes/status"),
    ),
    *controller(
        "pod-garbage-collector",
        rule("delete get list watch", CORE, "pods"),
        rule(READ, CORE, "nodes"),
        rule("patch", CORE, "pods/status"),
        reports=False,
    ),
)

_OBJECTS = (
    *controller("generic-garbage-collector", rule(f"{READ} delete patch update", "*", "*")),
    *controller(
        "namespace-controller",
        rule(f"{READ} delete", CORE, "namespaces"),
        rule("update", CORE, "namespaces/finalize namespaces/status"),
        rule(f"{READ} delete deletecollection", "*", "*"),
        reports=False,
    ),
    *controller(
        "resourcequota-controller", rule("list watch", "*", "*"), rule("update", CORE, "resourcequotas/status")
    ),
)

_WORKLOADS = (
    *controller(
        "replicaset-controller",
        rule(f"{READ} update", "apps", "replicasets"),
        rule("update", "apps", "replicasets/status replicasets/finalizers"),
        rule(f"{READ} create delete patch", CORE, "pods"),
    ),
    *controller(
        "deployment-controller",
        rule(f"{READ} update", "apps", "deployments"),
        rule("update", "apps", "deployments/status deployments/finalizers"),
        rule(f"{READ} create delete patch update", "apps", "replicasets"),
        rule(f"{READ} update", CORE, "pods"),
    ),
    *controller(
        "daemon-set-controller",
        rule(READ, "apps", "daemonsets"),
        rule("update", "apps", "daemonsets/status daemonsets/finalizers"),
        rule("list watch", CORE, "nodes"),
        rule("create delete list patch watch", CORE, "pods"),
        rule("create", CORE, "pods/binding"),
        rule(f"{READ} create delete patch update", "apps", "controllerrevisions"),
    ),
    *controller(
        "replication-controller",
        rule(f"{READ} update", CORE, "replicationcontrollers"),
        rule("update", CORE, "replicationcontrollers/status replicationcontrollers/finalizers"),
        rule("create delete list patch watch", CORE, "pods"),
    ),
    *controller(
        "statefulset-controller",
        rule(READ, "apps", "statefulsets"),
        rule("update", "apps", "statefulsets/status statefulsets/finalizers"),
        rule(f"{READ} create delete patch update", CORE, "pods"),
        rule("update", CORE, "pods/finalizers"),
        rule(f"{READ} create delete patch update", "apps", "controllerrevisions"),
        rule(f"{READ} create delete update", CORE, "persistentvolumeclaims"),
    ),
    *controller(
        "job-controller",
        rule(f"{READ} patch update", "batch", "jobs"),
        rule("update", "batch", "jobs/status jobs/finalizers"),
        rule(f"{READ} create delete patch", CORE, "pods"),
    ),
    *controller(
        "cronjob-controller",
        rule(f"{READ} update", "batch", "cronjobs"),
        rule(f"{READ} create delete patch update", "batch", "jobs"),
        rule("update", "batch", "cronjobs/status cronjobs/finalizers"),
        rule("delete list watch", CORE, "pods"),
    ),
)

OBJECTS = (*_SCHEDULER, *_MANAGER, *_DEVICES, *_EXPIRY, *_NODES, *_OBJECTS, *_WORKLOADS)
