"""Which module holds the rules for which kind. Modules are imported when a kind is first needed."""

from __future__ import annotations

from functools import cache
from importlib import import_module
from typing import Final

from dray.api import registry
from dray.api.meta import Object
from dray.api.registry import CLUSTER_GROUP, DRAY_GROUP, RESOURCE_GROUP, Kind
from dray.validation import schema_rules
from dray.validation.rules import Rules

_GROUPS: Final[dict[str, dict[str, tuple[str, ...]]]] = {
    RESOURCE_GROUP: {
        "resource_slice": ("ResourceSlice",),
        "resource_claim": ("ResourceClaim",),
        "resource_claim_template": ("ResourceClaimTemplate",),
        "device_class": ("DeviceClass",),
        "device_taint_rule": ("DeviceTaintRule",),
        "resource_slice_patch": ("ResourceSlicePatch",),
        "resource_pool_status_request": ("ResourcePoolStatusRequest",),
    },
    DRAY_GROUP: {
        "device_taint_rule": ("DeviceTaintRule",),
        "resource_slice_patch": ("ResourceSlicePatch",),
    },
    CLUSTER_GROUP: {
        "managed_cluster": ("ManagedCluster", "ManagedClusterSet", "ManagedClusterSetBinding"),
        "placement": ("Placement", "PlacementDecision", "AddOnPlacementScore"),
    },
    "": {
        "pod": ("Pod",),
        "node": ("Node",),
        "namespace": ("Namespace",),
        "limit_range": ("LimitRange",),
        "resource_quota": ("ResourceQuota",),
        "config_data": ("ConfigMap", "Secret"),
        "service": ("Service",),
        "event": ("Event",),
        "endpoints": ("Endpoints",),
        "persistent_volume_claim": ("PersistentVolumeClaim",),
        "persistent_volume": ("PersistentVolume",),
        "workloads": ("ReplicationController", "PodTemplate"),
    },
    "admissionregistration.k8s.io": {
        "webhook_configuration": ("MutatingWebhookConfiguration", "ValidatingWebhookConfiguration"),
        "validating_admission_policy": ("ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding"),
        "mutating_admission_policy": ("MutatingAdmissionPolicy", "MutatingAdmissionPolicyBinding"),
    },
    "apps": {"workloads": ("ReplicaSet", "Deployment", "DaemonSet", "StatefulSet", "ControllerRevision")},
    "batch": {"job": ("Job", "CronJob")},
    "certificates.k8s.io": {"certificate_signing_request": ("CertificateSigningRequest",)},
    "coordination.k8s.io": {"lease": ("Lease",)},
    "discovery.k8s.io": {"endpoints": ("EndpointSlice",)},
    "events.k8s.io": {"event": ("Event",)},
    "node.k8s.io": {"runtime_class": ("RuntimeClass",)},
    "policy": {"pod_disruption_budget": ("PodDisruptionBudget",)},
    "scheduling.k8s.io": {
        "priority_class": ("PriorityClass",),
        "pod_group": ("PodGroup",),
        "workload": ("Workload",),
    },
    "storage.k8s.io": {"storage_class": ("StorageClass",)},
    "rbac.authorization.k8s.io": {"rbac": ("Role", "ClusterRole", "RoleBinding", "ClusterRoleBinding")},
}
MODULES: Final = {
    (group, kind): module for group, modules in _GROUPS.items() for module, kinds in modules.items() for kind in kinds
}


@cache
def rules_of(kind: Kind) -> Rules:
    """The rules for a kind; what its schema says, if it has none of its own."""
    module = MODULES.get((kind.group, kind.kind))
    if module is not None:
        rules: Rules = import_module(f"dray.validation.{module}").RULES[kind.kind]
        return rules
    return schema_rules.rules_from_schema(kind)


@cache
def _rules_of_kind(api_version: str, kind: str) -> Rules:
    return rules_of(registry.by_kind(api_version, kind))


def rules_for(obj: Object) -> Rules:
    """The rules for an object, by its `apiVersion` and `kind`. Raises UnknownKind."""
    return _rules_of_kind(obj.api_version, obj.kind)
