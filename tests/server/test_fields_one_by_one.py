"""Every field, set by itself in a request: it is stored and is known to act, or the answer says what becomes of it."""

from __future__ import annotations

import json
from typing import Any

import pytest

from acting_fields import ACTING
from dray.api.effects import Effect, effect_of
from dray.api.idle_fields import IDLE_FIELDS, LISTED_ONLY, OF_THE_NODE
from dray.api.registry import by_kind, kinds
from dray.api.status import ApiError
from dray.server.engine import Call
from dray.server.routes import Route
from dray.server.verbs.writes import create
from local_server import ADMIN, LocalServer, local_server, typed
from one_field import Manifest, OneField, one_by_one

RESOURCE, APPS, POLICIES = "resource.k8s.io/v1", "apps/v1", "admissionregistration.k8s.io/v1"
SELECTOR = {"matchLabels": {"app": "a"}}
TERM = {"topologyKey": "a", "labelSelector": {}}
KEY = {"key": "a", "operator": "Exists"}
REQUIRED, PREFERRED = (f"{how}DuringSchedulingIgnoredDuringExecution" for how in ("required", "preferred"))
CLAIM = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
VOLUME = {"capacity": {"storage": "1"}, "accessModes": ["ReadWriteOnce"], "csi": {"driver": "d", "volumeHandle": "h"}}
SIMPLE = {"containers": [{"name": "c", "image": "i"}]}
POD = {
    "containers": [
        {
            "name": "c",
            "image": "i",
            "ports": [{"containerPort": 1}],
            "resources": {"limits": {"memory": "1"}},
            "env": [{"name": "A"}],
            "volumeMounts": [{"name": "v", "mountPath": "/v"}],
            "securityContext": {},
            "lifecycle": {"preStop": {"sleep": {"seconds": 1}}},
            "livenessProbe": {"tcpSocket": {"port": 1}},
        }
    ],
    "initContainers": [{"name": "first", "image": "i"}],
    "volumes": [{"name": "v", "ephemeral": {"volumeClaimTemplate": {"spec": CLAIM}}}],
    "affinity": {
        "nodeAffinity": {REQUIRED: {"nodeSelectorTerms": [{"matchExpressions": [KEY]}]}},
        "podAffinity": {REQUIRED: [TERM], PREFERRED: [{"weight": 1, "podAffinityTerm": TERM}]},
        "podAntiAffinity": {REQUIRED: [TERM]},
    },
    "tolerations": [{"key": "a", "operator": "Exists"}],
    "topologySpreadConstraints": [
        {"maxSkew": 1, "topologyKey": "a", "whenUnsatisfiable": "DoNotSchedule", "labelSelector": {}}
    ],
    "resourceClaims": [{"name": "r", "resourceClaimName": "r"}],
    "securityContext": {},
    "os": {"name": "linux"},
}
TEMPLATE = {"metadata": {"labels": {"app": "a"}}, "spec": SIMPLE}
ENDING = {"spec": {**SIMPLE, "restartPolicy": "Never"}}
JOB = {"template": ENDING, "completionMode": "Indexed", "completions": 2, "backoffLimitPerIndex": 1}
REQUESTS = {"requests": [{"name": "r", "exactly": {"deviceClassName": "c", "capacity": {}}}]}
DEVICES = {"constraints": [{"matchAttribute": "a.b/c"}], "config": [{"opaque": {"driver": "d", "parameters": {}}}]}
SLICE = {
    "driver": "d",
    "nodeName": "n",
    "pool": {"name": "p", "generation": 1, "resourceSliceCount": 1},
    "devices": [{"name": "one", "attributes": {"a": {"int": 1}}, "capacity": {"c": {"value": "1"}}, "taints": []}],
}
RULES = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods"]}
MATCH = {"resourceRules": [RULES]}
JUDGING = {"matchConstraints": MATCH, "validations": [{"expression": "true"}]}
BOUND = {"policyName": "p", "validationActions": ["Deny"], "matchResources": MATCH}
RBAC, FLEET = "rbac.authorization.k8s.io", "cluster.open-cluster-management.io"
RIGHT = {"verbs": ["get"], "apiGroups": [""], "resources": ["a"]}
ROLE = {"apiGroup": RBAC, "kind": "ClusterRole", "name": "a"}
OPERATION = "[JSONPatch{op: 'add', path: '/a', value: 'b'}]"
CHANGING = {
    "matchConstraints": MATCH,
    "mutations": [{"patchType": "JSONPatch", "jsonPatch": {"expression": OPERATION}}],
    "reinvocationPolicy": "Never",
    "failurePolicy": "Fail",
}
CHOICE = {
    "predicates": [{"requiredClusterSelector": {"labelSelector": {}, "claimSelector": {}}}],
    "prioritizerPolicy": {"configurations": [{"scoreCoordinate": {"type": "BuiltIn", "builtIn": "Steady"}}]},
    "tolerations": [{"key": "a"}],
    "decisionStrategy": {"groupStrategy": {}},
    "spreadPolicy": {},
}
HOOK = {
    "name": "a.b.c",
    "sideEffects": "None",
    "admissionReviewVersions": ["v1"],
    "clientConfig": {"url": "https://a/b"},
    "rules": [RULES],
}
SCHEMA = {"type": "object", "properties": {"spec": {"type": "object", "properties": {"a": {"type": "string"}}}}}
VERSION = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": SCHEMA}, "subresources": {}}
DEFINED = {
    "group": "example.com",
    "scope": "Namespaced",
    "names": {"plural": "things", "kind": "Thing"},
    "versions": [VERSION],
}


def manifest(api_version: str, kind: str, content: Manifest, name: str = "x") -> Manifest:
    """An object of a kind; what is not in a spec is given beside the name."""
    meta = {"name": name, **({"namespace": "default"} if by_kind(api_version, kind).namespaced else {})}
    return {"apiVersion": api_version, "kind": kind, "metadata": meta, **content}


BASES = [
    manifest("v1", "Pod", {"spec": SIMPLE}),
    manifest("v1", "Pod", {"spec": POD}),
    manifest("v1", "PersistentVolumeClaim", {"spec": CLAIM}),
    manifest("v1", "PersistentVolume", {"spec": {"capacity": {"storage": "1"}, "accessModes": ["ReadWriteOnce"]}}),
    manifest("v1", "PersistentVolume", {"spec": VOLUME}),
    manifest("v1", "ReplicationController", {"spec": {"template": TEMPLATE}}),
    manifest("v1", "LimitRange", {"spec": {"limits": [{"type": "Container"}]}}),
    manifest("v1", "ResourceQuota", {"spec": {"scopeSelector": {}}}),
    manifest("v1", "ServiceAccount", {}),
    manifest("v1", "Node", {"spec": {"taints": [{"key": "a", "effect": "NoSchedule"}]}}),
    manifest(APPS, "DaemonSet", {"spec": {"selector": SELECTOR, "template": TEMPLATE, "updateStrategy": {}}}),
    manifest(APPS, "Deployment", {"spec": {"selector": SELECTOR, "template": TEMPLATE, "strategy": {}}}),
    manifest(APPS, "ReplicaSet", {"spec": {"selector": SELECTOR, "template": TEMPLATE}}),
    manifest(
        APPS,
        "StatefulSet",
        {
            "spec": {
                "selector": SELECTOR,
                "template": TEMPLATE,
                "serviceName": "s",
                "volumeClaimTemplates": [{"metadata": {"name": "v"}, "spec": CLAIM}],
                "updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {}},
            }
        },
    ),
    manifest("batch/v1", "Job", {"spec": JOB}),
    manifest("batch/v1", "CronJob", {"spec": {"schedule": "@daily", "jobTemplate": {"spec": JOB}}}),
    manifest("policy/v1", "PodDisruptionBudget", {"spec": {"selector": SELECTOR}}),
    manifest(RESOURCE, "ResourceClaim", {"spec": {"devices": {**REQUESTS, **DEVICES}}}),
    manifest(RESOURCE, "ResourceClaimTemplate", {"spec": {"spec": {"devices": REQUESTS}}}),
    manifest(RESOURCE, "DeviceClass", {"spec": {}}),
    manifest(RESOURCE, "DeviceTaintRule", {"spec": {"taint": {"key": "a", "effect": "None"}, "deviceSelector": {}}}),
    manifest(RESOURCE, "ResourceSlice", {"spec": SLICE}),
    manifest(POLICIES, "ValidatingAdmissionPolicy", {"spec": JUDGING}),
    manifest(POLICIES, "ValidatingAdmissionPolicyBinding", {"spec": BOUND}),
    manifest(POLICIES, "ValidatingWebhookConfiguration", {"webhooks": [HOOK]}),
    manifest(POLICIES, "MutatingWebhookConfiguration", {"webhooks": [HOOK]}),
    manifest("apiextensions.k8s.io/v1", "CustomResourceDefinition", {"spec": DEFINED}, "things.example.com"),
    manifest("scheduling.k8s.io/v1", "PriorityClass", {"value": 1}),
    manifest("scheduling.k8s.io/v1beta1", "PodGroup", {"spec": {"schedulingPolicy": {"gang": {"minCount": 2}}}}),
    manifest("storage.k8s.io/v1", "StorageClass", {"provisioner": "a.b/c"}),
    manifest("node.k8s.io/v1", "RuntimeClass", {"handler": "h"}),
    manifest(f"{RBAC}/v1", "Role", {"rules": [RIGHT]}),
    manifest(f"{RBAC}/v1", "ClusterRole", {"rules": [RIGHT], "aggregationRule": {"clusterRoleSelectors": [{}]}}),
    manifest(f"{RBAC}/v1", "RoleBinding", {"roleRef": ROLE, "subjects": [{"kind": "User", "name": "u"}]}),
    manifest(f"{RBAC}/v1", "ClusterRoleBinding", {"roleRef": ROLE, "subjects": [{"kind": "User", "name": "u"}]}),
    manifest("v1", "Namespace", {"spec": {}}),
    manifest("v1", "Event", {"involvedObject": {"kind": "Pod", "name": "x", "namespace": "default"}}),
    manifest(
        "events.k8s.io/v1",
        "Event",
        {
            "eventTime": "2026-01-02T03:04:05.000000Z",
            "reportingController": "a.b/c",
            "reportingInstance": "a",
            "action": "a",
            "reason": "a",
            "type": "Normal",
        },
    ),
    manifest("coordination.k8s.io/v1", "Lease", {"spec": {"strategy": "OldestEmulationVersion"}}),
    manifest(f"{RESOURCE}alpha3", "ResourceSlicePatch", {"spec": {"devices": {"filter": {}}}}),
    manifest(f"{RESOURCE}alpha3", "ResourcePoolStatusRequest", {"spec": {"driver": "d"}}),
    manifest(POLICIES, "MutatingAdmissionPolicy", {"spec": CHANGING}),
    manifest(POLICIES, "MutatingAdmissionPolicyBinding", {"spec": {"policyName": "p", "matchResources": MATCH}}),
    manifest(
        f"{FLEET}/v1",
        "ManagedCluster",
        {
            "spec": {
                "taints": [{"key": "a", "effect": "NoSelect"}],
                "managedClusterClientConfigs": [{"url": "https://a"}],
            }
        },
    ),
    manifest(f"{FLEET}/v1beta2", "ManagedClusterSet", {"spec": {"clusterSelector": {}}}),
    manifest(f"{FLEET}/v1beta2", "ManagedClusterSetBinding", {"spec": {}}),
    manifest(f"{FLEET}/v1beta1", "Placement", {"spec": CHOICE}),
]
ANSWERED = {
    "Binding",
    "LocalSubjectAccessReview",
    "SelfSubjectAccessReview",
    "SelfSubjectReview",
    "SelfSubjectRulesReview",
    "SubjectAccessReview",
    "TokenReview",
}
"""Kinds of which nothing is stored."""
OTHERS = {"AddOnPlacementScore", "CertificateSigningRequest", "PlacementDecision"}
"""Kinds with nothing but a status, and one with fields that the server writes over, as Kubernetes does."""
HINTS: dict[str, Any] = {
    "tolerations": [{"key": "b", "operator": "Exists"}],
    "nameservers": ["10.0.0.1"],
    "EvictionResponder": {"name": "example.com/a", "priority": 5000},
    "initContainers": [{"name": "other", "image": "i"}],
    "PodSpec.overhead": {"cpu": "1"},
    "ResourceRequirements.limits": {"cpu": "1"},
    "ResourceRequirements.requests": {"cpu": "1"},
    "PodSpec.resources": {"requests": {"cpu": "1"}},
    "Container.resources": {"requests": {"cpu": "1"}},
    **{f"LimitRangeItem.{field}": {"cpu": "1"} for field in ("default", "defaultRequest", "max", "min")},
    "LimitRangeItem.maxLimitRequestRatio": {"cpu": "2"},
    "LabelSelectorRequirement": {"key": "a", "operator": "Exists"},
    "hostAliases": [{"ip": "10.0.0.1", "hostnames": ["a"]}],
    "volumes": [{"name": "w", "emptyDir": {}}],
    "PodSpec.resourceClaims": [{"name": "r", "resourceClaimName": "r"}],
    "PodSpec.os": {"name": "linux"},
    "PodSpec.securityContext": {"runAsUser": 1},
    "runtimeClassName": "there",
    "PodSpec.priorityClassName": "system-node-critical",
    "serviceAccountName": "default",
    "SeccompProfile": {"type": "RuntimeDefault"},
    "AppArmorProfile": {"type": "RuntimeDefault"},
    "Container.securityContext": {"runAsUser": 1},
    "dataSource": {"kind": "PersistentVolumeClaim", "name": "a"},
    "dataSourceRef": {"kind": "PersistentVolumeClaim", "name": "a"},
    "Container.restartPolicy": "Always",
    "resizePolicy": [{"resourceName": "cpu", "restartPolicy": "NotRequired"}],
    "mountPropagation": "None",
    "expression": "true",
    "Validation": {"expression": "true"},
    "selectors": [{"cel": {"expression": "true"}}],
    "extendedResourceName": "example.com/gpu",
    "managedBy": "example.com/a",
    "timeZone": "UTC",
    "hard": {"pods": "1"},
    "scopes": ["Terminating"],
    "succeededIndexes": "0",
    "signerName": "a.b/c",
    "JobSpec.scheduling": {"schedulingPolicy": {"gang": {"minCount": 1}}},
    "AuditAnnotation": {"key": "a", "valueExpression": "'b'"},
    "ParamRef": {"name": "a", "parameterNotFoundAction": "Deny"},
    "ParamKind": {"apiVersion": "v1", "kind": "ConfigMap"},
    "NamedRuleWithOperations": RULES,
    "MatchCondition": {"name": "a", "expression": "true"},
    "Variable": {"name": "a", "expression": "true"},
    "reason": "Invalid",
    "messageExpression": "'a'",
    "PodGroupSpec.resourceClaims": [{"name": "r", "resourceClaimName": "r"}],
    "PodGroupSpec.priorityClassName": "high",
    "DeviceAttribute": {"int": 1},
    "DeviceTaint": {"key": "a", "effect": "NoSchedule"},
    "PrioritizerPolicy.mode": "Exact",
    "clusterSet": "x",
    "Subject.apiGroup": RBAC,
    "defaultPartitionTypeAttribute": "a.b/c",
}


def test_every_kind_that_acts_is_tried() -> None:
    """A kind that has two faces, in one of them."""
    acting = {kind.kind for kind in kinds() if effect_of(kind).effect is Effect.ACTS}
    assert acting - {base["kind"] for base in BASES} == ANSWERED | OTHERS


@pytest.mark.parametrize("base", BASES, ids=lambda base: f"{base['kind']}-{len(str(base))}")
async def test_no_field_is_taken_in_silence(base: Manifest) -> None:
    silent, refused, accepted = list[str](), list[str](), list[str]()
    async with local_server(with_roles=False) as server:
        await server.client().create(typed(manifest("node.k8s.io/v1", "RuntimeClass", {"handler": "h"}, "there")))
        for one in one_by_one(base, HINTS):
            try:
                stored, warnings = await tried(server, one)
            except ApiError as error:
                assert 400 <= error.code < 500
                refused.append(one.words)
                continue
            accepted.append(one.words)
            told = any(warning.startswith(f"{one.words} ") for warning in warnings)
            if not told and not (is_kept(stored, one) and acts(one)):
                silent.append(one.words)
    assert silent == []
    assert len(accepted) * 4 > len(refused), refused  # otherwise the examples say little


async def tried(server: LocalServer, one: OneField) -> tuple[Manifest, list[str]]:
    """What would be stored, and what the author is told. Raises ApiError."""
    kind = by_kind(one.manifest["apiVersion"], one.manifest["kind"])
    version, namespace = one.manifest["apiVersion"].rpartition("/")[2], one.manifest["metadata"].get("namespace", "")
    route = Route("create", kind, version, namespace)
    call = Call(route, ADMIN, server.engine.clock(), warnings=[], dry_run=True)
    record = await create(server.engine, call, typed(one.manifest))
    return json.loads(record.data), call.warnings


def is_kept(stored: Any, one: OneField) -> bool:
    """Whether what was set is there, whatever was added to it."""
    for step in one.path:
        if isinstance(stored, dict) and step not in stored:
            return False
        stored = stored[step]
    return contains(stored, one.value)


def contains(stored: Any, given: Any) -> bool:
    """Whether all of a value is in another one."""
    match given:
        case dict():
            return isinstance(stored, dict) and all(contains(stored.get(key), given[key]) for key in given)
        case list():
            return all(any(contains(item, wanted) for item in stored) for wanted in given)
    return bool(stored == given)


def acts(one: OneField) -> bool:
    """Whether somebody is known to do something with the field, or it is for the node, or drivers set it."""
    resource = by_kind(one.manifest["apiVersion"], one.manifest["kind"]).resource
    owner, name = one.owners[-1]
    listed = resource in LISTED_ONLY and one.words in IDLE_FIELDS[resource]
    of_the_node = any(field in OF_THE_NODE.get(above, ()) for above, field in one.owners)
    return listed or of_the_node or name in ACTING.get(owner, ())
