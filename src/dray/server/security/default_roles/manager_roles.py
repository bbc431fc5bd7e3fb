"""Roles of the controllers that only a real kube-controller-manager brings; it runs each as a ServiceAccount of its own
(`--use-service-account-credentials`) and finds that account's rights here."""

from dray.server.security.default_roles.building import (
    AUTHORIZATION,
    CERTIFICATES,
    CORE,
    GROUP,
    LEASES,
    NETWORKING,
    READ,
    STORAGE,
    controller,
    rule,
)

_WORKLOADS = (
    *controller(
        "disruption-controller",
        rule(READ, "apps", "deployments replicasets statefulsets"),
        rule(READ, CORE, "replicationcontrollers"),
        rule(READ, "policy", "poddisruptionbudgets"),
        rule("update", "policy", "poddisruptionbudgets/status"),
        rule("patch update", CORE, "pods/status"),
        rule("get", "*", "*/scale"),
    ),
    *controller(
        "horizontal-pod-autoscaler",
        rule(READ, "autoscaling", "horizontalpodautoscalers"),
        rule("update", "autoscaling", "horizontalpodautoscalers/status"),
        rule("get update", "*", "*/scale"),
        rule("list watch", CORE, "pods"),
        rule("list watch", "metrics.k8s.io", "pods"),
        rule(READ, "custom.metrics.k8s.io external.metrics.k8s.io", "*"),
    ),
    *controller("ttl-after-finished-controller", rule(f"{READ} delete", "batch", "jobs")),
)

_NODES = (
    *controller(
        "node-controller",
        rule(f"{READ} delete patch update", CORE, "nodes"),
        rule("patch update", CORE, "nodes/status pods/status"),
        rule(f"{READ} delete", CORE, "pods"),
        rule(READ, LEASES, "leases"),
    ),
    *controller("route-controller", rule("list watch", CORE, "nodes"), rule("patch", CORE, "nodes/status")),
    *controller("ttl-controller", rule("list patch update watch", CORE, "nodes")),
)

_VOLUMES = (
    *controller(
        "attachdetach-controller",
        rule("list watch", CORE, "persistentvolumeclaims persistentvolumes pods"),
        rule(READ, CORE, "nodes"),
        rule("patch update", CORE, "nodes/status"),
        rule(f"{READ} create delete", STORAGE, "volumeattachments"),
        rule(READ, STORAGE, "csidrivers csinodes"),
    ),
    *controller(
        "ephemeral-volume-controller",
        rule(READ, CORE, "pods"),
        rule("update", CORE, "pods/finalizers"),
        rule(f"{READ} create", CORE, "persistentvolumeclaims"),
    ),
    *controller(
        "expand-controller",
        rule(f"{READ} patch update", CORE, "persistentvolumes"),
        rule("patch update", CORE, "persistentvolumeclaims/status"),
        rule(READ, CORE, "persistentvolumeclaims"),
    ),
    *controller(
        "persistent-volume-binder",
        rule(f"{READ} create delete update", CORE, "persistentvolumes"),
        rule("update", CORE, "persistentvolumes/status persistentvolumeclaims/status"),
        rule(f"{READ} update", CORE, "persistentvolumeclaims"),
        rule(f"{READ} create delete", CORE, "pods"),
        rule(READ, STORAGE, "storageclasses"),
        rule("list watch", CORE, "nodes"),
        rule("watch", CORE, "events"),
    ),
    *controller("pv-protection-controller", rule(f"{READ} update", CORE, "persistentvolumes")),
    *controller(
        "pvc-protection-controller",
        rule(f"{READ} update", CORE, "persistentvolumeclaims"),
        rule("update", CORE, "persistentvolumeclaims/status"),
        rule(READ, CORE, "pods"),
    ),
    *controller(
        "volumeattributesclass-protection-controller",
        rule(READ, CORE, "persistentvolumeclaims persistentvolumes"),
        rule(f"{READ} update", STORAGE, "volumeattributesclasses"),
    ),
    *controller(
        "selinux-warning-controller",
        rule(READ, CORE, "persistentvolumeclaims persistentvolumes pods"),
        rule(READ, STORAGE, "csidrivers"),
    ),
)

_SERVICES = (
    *controller(
        "endpoint-controller",
        rule(READ, CORE, "pods services"),
        rule(f"{READ} create delete update", CORE, "endpoints"),
        rule("create", CORE, "endpoints/restricted"),
    ),
    *controller(
        "endpointslice-controller",
        rule(READ, CORE, "nodes pods services"),
        rule("update", CORE, "services/finalizers"),
        rule(f"{READ} create delete update", "discovery.k8s.io", "endpointslices"),
    ),
    *controller(
        "endpointslicemirroring-controller",
        rule(READ, CORE, "endpoints services"),
        rule("update", CORE, "services/finalizers endpoints/finalizers"),
        rule(f"{READ} create delete update", "discovery.k8s.io", "endpointslices"),
    ),
    *controller(
        "service-controller",
        rule(READ, CORE, "services"),
        rule("patch update", CORE, "services/status"),
        rule("list watch", CORE, "nodes"),
    ),
    *controller(
        "service-cidrs-controller",
        rule(f"{READ} patch update", NETWORKING, "servicecidrs"),
        rule("patch update", NETWORKING, "servicecidrs/finalizers servicecidrs/status"),
        rule(READ, NETWORKING, "ipaddresses"),
    ),
)

_IDENTITIES = (
    *controller(
        "certificate-controller",
        rule(f"{READ} delete", CERTIFICATES, "certificatesigningrequests"),
        rule("update", CERTIFICATES, "certificatesigningrequests/approval certificatesigningrequests/status"),
        rule("approve", CERTIFICATES, "signers", names="kubernetes.io/kube-apiserver-client-kubelet"),
        rule(
            "sign",
            CERTIFICATES,
            "signers",
            names="kubernetes.io/kube-apiserver-client kubernetes.io/kube-apiserver-client-kubelet "
            "kubernetes.io/kubelet-serving kubernetes.io/legacy-unknown",
        ),
        rule("create", AUTHORIZATION, "subjectaccessreviews"),
    ),
    *controller(
        "clusterrole-aggregation-controller",
        rule(f"{READ} escalate patch update", GROUP, "clusterroles"),
        reports=False,
    ),
    *controller(
        "kube-apiserver-serving-clustertrustbundle-publisher",
        rule("attest", CERTIFICATES, "signers", names="kubernetes.io/kube-apiserver-serving"),
        rule("create delete list update watch", CERTIFICATES, "clustertrustbundles"),
    ),
    *controller(
        "legacy-service-account-token-cleaner",
        rule("get", CORE, "configmaps", names="kube-apiserver-legacy-service-account-token-tracking"),
        rule("delete patch", CORE, "secrets"),
        reports=False,
    ),
    *controller("root-ca-cert-publisher", rule("create update", CORE, "configmaps")),
    *controller("service-account-controller", rule("create", CORE, "serviceaccounts")),
    *controller(
        "validatingadmissionpolicy-status-controller",
        rule(READ, "admissionregistration.k8s.io", "validatingadmissionpolicies"),
        rule("get patch update", "admissionregistration.k8s.io", "validatingadmissionpolicies/status"),
    ),
)

OBJECTS = (*_WORKLOADS, *_NODES, *_VOLUMES, *_SERVICES, *_IDENTITIES)
