"""Nodes, namespaces, quotas and the other kinds of a control plane: their main rules and their defaults."""

from __future__ import annotations

from typing import Any

import pytest

from dray import validation
from dray.api import registry
from dray.api.times import Time
from dray.validation.table import MODULES, rules_of

NOW = Time("2026-06-01T12:00:00Z")


def obj(kind: str, api_version: str = "v1", **fields: Any) -> dict[str, Any]:
    return {"apiVersion": api_version, "kind": kind, "metadata": {"name": "x"}, **fields}


def template(**spec: Any) -> dict[str, Any]:
    return {"metadata": {"labels": {"app": "a"}}, "spec": {"containers": [{"name": "c", "image": "i"}], **spec}}


SELECTOR = {"matchLabels": {"app": "a"}}
JOB = template(restartPolicy="Never")
ROLE = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "r"}
SOMEBODY = {"kind": "User", "name": "u"}
RBAC = "rbac.authorization.k8s.io/v1"

ZONE = {"matchLabelExpressions": [{"key": "zone", "values": ["a"]}]}


def endpoint_slice(**endpoint: Any) -> dict[str, Any]:
    return obj("EndpointSlice", "discovery.k8s.io/v1", addressType="IPv4", endpoints=[endpoint])


CASES = [
    (obj("Node"), set()),
    (obj("Node", spec={"taints": [{"key": "a", "effect": "NoSchedule"}]}), set()),
    (obj("Node", spec={"taints": [{"key": "a b", "effect": "NoSchedule"}]}), {("Invalid", "metadata.taints[0].key")}),
    (obj("Node", spec={"taints": [{"key": "a"}]}), {("Required", "metadata.taints[0].effect")}),
    (obj("Node", spec={"taints": [{"key": "a", "effect": "None"}]}), {("NotSupported", "metadata.taints[0].effect")}),
    (obj("Node", spec={"taints": [{"key": "a", "effect": "NoExecute"}] * 2}), {("Duplicate", "metadata.taints[1]")}),
    (
        obj("Node", status={"capacity": {"cpu": "-1"}}),
        {("Invalid", "status.capacity.cpu"), ("Invalid", "status.allocatable.cpu")},
    ),
    (obj("Node", status={"addresses": [{"type": "Hostname", "address": "a"}] * 2}), set()),
    (obj("Node", spec={"podCIDRs": ["10.0.0.0/24", "fd00::/64"]}), set()),
    (obj("Node", spec={"podCIDRs": ["10.0.0.0/24", "10.0.1.0/24"]}), {("Invalid", "spec.podCIDRs")}),
    (obj("Namespace"), set()),
    (obj("Namespace", metadata={"name": "a.b"}), {("Invalid", "metadata.name")}),
    (obj("ResourceQuota", spec={"hard": {"cpu": "1", "pods": "2", "example.com/gpu": "3"}}), set()),
    (
        obj("ResourceQuota", spec={"hard": {"g.deviceclass.resource.k8s.io/devices": "-1"}}),
        {("Invalid", "spec.hard[g.deviceclass.resource.k8s.io/devices]")},
    ),
    (obj("ResourceQuota", spec={"hard": {"nonsense": "1"}}), {("Invalid", "spec.hard[nonsense]")}),
    (obj("ResourceQuota", spec={"hard": {"pods": "500m"}}), {("Invalid", "spec.hard[pods]")}),
    (obj("ResourceQuota", spec={"scopes": ["BestEffort", "NotBestEffort"]}), {("Invalid", "spec.scopes")}),
    (obj("ResourceQuota", spec={"hard": {"cpu": "1"}, "scopes": ["BestEffort"]}), {("Invalid", "spec.scopes")}),
    (obj("ConfigMap", data={"a": "b"}, binaryData={"c": "ZA=="}), set()),
    (obj("ConfigMap", data={"a b": "c"}), {("Invalid", "data[a b]")}),
    (obj("ConfigMap", data={"..a": "c"}), {("Invalid", "data[..a]")}),
    (obj("Secret", stringData={"a": "b"}), set()),
    (obj("Secret", type="kubernetes.io/tls", data={"tls.crt": ""}), {("Required", "data[tls.key]")}),
    (obj("Secret", data={"a": "not base64!"}), {("TypeInvalid", "data[a]")}),
    (obj("ServiceAccount"), set()),
    (obj("Service", spec={"ports": [{"port": 80}]}), set()),
    (obj("Service"), {("Required", "spec.ports")}),
    (obj("Service", spec={"clusterIP": "None"}), set()),
    (
        obj("Service", spec={"clusterIP": "None", "internalTrafficPolicy": "Some"}),
        {("NotSupported", "spec.internalTrafficPolicy")},
    ),
    (
        obj("Service", spec={"ports": [{"port": 80}], "ipFamilyPolicy": "Any"}),
        {("NotSupported", "spec.ipFamilyPolicy")},
    ),
    (
        obj("Service", spec={"ports": [{"port": 0}]}),
        {("Invalid", "spec.ports[0].port"), ("Invalid", "spec.ports[0].targetPort")},
    ),
    (
        obj("Service", spec={"ports": [{"port": 1}, {"port": 2}]}),
        {("Required", "spec.ports[0].name"), ("Required", "spec.ports[1].name")},
    ),
    (obj("Service", spec={"type": "ExternalName"}), {("Required", "spec.externalName")}),
    (obj("Event", involvedObject={"namespace": "other"}), {("Invalid", "involvedObject.namespace")}),
    (obj("Event", involvedObject={"kind": "Node"}), set()),
    (
        obj(
            "PersistentVolumeClaim",
            spec={"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
        ),
        set(),
    ),
    (obj("PersistentVolumeClaim"), {("Required", "spec.accessModes"), ("Required", "spec.resources[storage]")}),
    (obj("Lease", "coordination.k8s.io/v1", spec={"leaseDurationSeconds": 15}), set()),
    (
        obj("Lease", "coordination.k8s.io/v1", spec={"leaseDurationSeconds": 0}),
        {("Invalid", "spec.leaseDurationSeconds")},
    ),
    (obj("PodDisruptionBudget", "policy/v1", spec={"minAvailable": "50%"}), set()),
    (obj("PodDisruptionBudget", "policy/v1", spec={"minAvailable": 1, "maxUnavailable": 1}), {("Invalid", "spec")}),
    (obj("PodDisruptionBudget", "policy/v1", spec={"minAvailable": "101%"}), {("Invalid", "spec.minAvailable")}),
    (obj("ReplicaSet", "apps/v1", spec={"selector": SELECTOR, "template": template()}), set()),
    (
        obj("ReplicaSet", "apps/v1", spec={"selector": SELECTOR, "template": template(), "replicas": -1}),
        {("Invalid", "spec.replicas")},
    ),
    (obj("Deployment", "apps/v1", spec={"selector": SELECTOR, "template": template()}), set()),
    (
        obj("Deployment", "apps/v1", spec={"template": template()}),
        {("Required", "spec.selector"), ("Invalid", "spec.template.metadata.labels")},
    ),
    (
        obj("Deployment", "apps/v1", spec={"selector": {"matchLabels": {"app": "b"}}, "template": template()}),
        {("Invalid", "spec.template.metadata.labels")},
    ),
    (
        obj("Deployment", "apps/v1", spec={"selector": SELECTOR, "template": template(restartPolicy="Never")}),
        {("NotSupported", "spec.template.spec.restartPolicy")},
    ),
    (
        obj("Deployment", "apps/v1", spec={"selector": SELECTOR, "template": template(containers=[])}),
        {("Required", "spec.template.spec.containers")},
    ),
    (obj("DaemonSet", "apps/v1", spec={"selector": SELECTOR, "template": template()}), set()),
    (obj("StatefulSet", "apps/v1", spec={"selector": SELECTOR, "template": template(), "serviceName": "s"}), set()),
    (obj("Job", "batch/v1", spec={"template": JOB}), set()),
    (obj("Job", "batch/v1", spec={"template": template()}), {("Required", "spec.template.spec.restartPolicy")}),
    (obj("Job", "batch/v1", spec={"template": JOB, "completions": -1}), {("Invalid", "spec.completions")}),
    (obj("CronJob", "batch/v1", spec={"schedule": "* * * * *", "jobTemplate": {"spec": {"template": JOB}}}), set()),
    (obj("Role", RBAC, rules=[{"verbs": ["get"], "apiGroups": [""], "resources": ["pods"]}]), set()),
    (obj("Role", RBAC, rules=[{"apiGroups": [""], "resources": ["pods"]}]), {("Required", "rules[0].verbs")}),
    (
        obj("Role", RBAC, rules=[{"verbs": ["get"], "nonResourceURLs": ["/x"]}]),
        {("Invalid", "rules[0].nonResourceURLs")},
    ),
    (
        obj("ClusterRole", RBAC, metadata={"name": "system:x"}, rules=[{"verbs": ["get"], "nonResourceURLs": ["/x"]}]),
        set(),
    ),
    (obj("RoleBinding", RBAC, roleRef=ROLE, subjects=[{"kind": "User", "name": "u"}]), set()),
    (obj("RoleBinding", RBAC, roleRef={**ROLE, "kind": "X"}), {("NotSupported", "roleRef.kind")}),
    (obj("RoleBinding", RBAC, roleRef=ROLE, subjects=[SOMEBODY] * 1000), set()),
    (obj("RoleBinding", RBAC, roleRef=ROLE, subjects=[SOMEBODY] * 1001), {("TooMany", "subjects")}),
    (
        obj("ClusterRoleBinding", RBAC, roleRef=ROLE, subjects=[{"kind": "ServiceAccount", "name": "s"}]),
        {("Required", "subjects[0].namespace")},
    ),
    (obj("StorageClass", "storage.k8s.io/v1", provisioner="p.example.com"), set()),
    (obj("StorageClass", "storage.k8s.io/v1"), {("Required", "provisioner")}),
    (
        obj("StorageClass", "storage.k8s.io/v1", provisioner="p", reclaimPolicy="Recycle"),
        {("NotSupported", "reclaimPolicy")},
    ),
    (
        obj("Lease", "coordination.k8s.io/v1", spec={"preferredHolder": "a"}),
        {("Forbidden", "spec.preferredHolder")},
    ),
    (
        obj("Lease", "coordination.k8s.io/v1", spec={"strategy": "Any"}),
        {("NotSupported", "spec.strategy.strategy")},
    ),
    (obj("Lease", "coordination.k8s.io/v1", spec={"strategy": "example.com/a", "preferredHolder": "a"}), set()),
    (
        obj("Service", "v1", spec={"ports": [{"port": 1}], "loadBalancerClass": "a", "externalIPs": ["a"]}),
        {("Forbidden", "spec.loadBalancerClass"), ("Invalid", "spec.externalIPs[0]")},
    ),
    (
        obj("Service", "v1", spec={"ports": [{"port": 1}], "externalTrafficPolicy": "Local"}),
        {("Invalid", "spec.externalTrafficPolicy")},
    ),
    (obj("Service", "v1", spec={"ports": [{"port": 1}], "externalIPs": ["10.0.0.1"]}), set()),
    (obj("StorageClass", "storage.k8s.io/v1", provisioner="a b"), {("Invalid", "provisioner")}),
    (
        obj("StorageClass", "storage.k8s.io/v1", provisioner="p", allowedTopologies=[ZONE, ZONE]),
        {("Duplicate", "allowedTopologies[1].matchLabelExpressions")},
    ),
    (obj("RuntimeClass", "node.k8s.io/v1", handler="h"), set()),
    (obj("RuntimeClass", "node.k8s.io/v1", handler="a/b"), {("Invalid", "handler")}),
    (
        obj("RuntimeClass", "node.k8s.io/v1", handler="h", scheduling={"tolerations": [{"operator": "Exists"}] * 2}),
        {("Duplicate", "scheduling.tolerations[1]")},
    ),
    (
        obj("RuntimeClass", "node.k8s.io/v1", handler="h", scheduling={"nodeSelector": {"a b": "c"}}),
        {("Invalid", "scheduling.nodeSelector")},
    ),
    (
        obj("RuntimeClass", "node.k8s.io/v1", handler="h", overhead={"podFixed": {"cpu": "-1"}}),
        {("Invalid", "overhead.limits[cpu]")},
    ),
    (endpoint_slice(addresses=["1.2.3.4"]), set()),
    (endpoint_slice(addresses=["127.0.0.1"]), set()),
    (endpoint_slice(addresses=[]), {("Required", "endpoints[0].addresses")}),
    (endpoint_slice(addresses=["::1"]), {("Invalid", "endpoints[0].addresses[0]")}),
    (endpoint_slice(addresses=["01.2.3.4"]), {("Invalid", "endpoints[0].addresses[0]")}),
    (endpoint_slice(addresses=["169.254.169.254"]), {("Invalid", "endpoints[0].addresses[0]")}),
    (endpoint_slice(addresses=["0.0.0.0"]), {("Invalid", "endpoints[0].addresses[0]")}),
    (endpoint_slice(addresses=["1.2.3.4"], hostname="a.b"), {("Invalid", "endpoints[0].hostname")}),
    (obj("Endpoints", subsets=[{"ports": [{"port": 1}]}]), {("Required", "subsets[0]")}),
    (
        obj("Endpoints", subsets=[{"addresses": [{"ip": "224.0.0.1"}], "ports": [{"port": 0}]}]),
        {("Invalid", "subsets[0].addresses[0].ip"), ("Invalid", "subsets[0].ports[0].port")},
    ),
    (
        obj(
            "Endpoints", subsets=[{"addresses": [{"ip": "1.2.3.4"}], "ports": [{"port": 1}, {"port": 2, "name": "b"}]}]
        ),
        {("Required", "subsets[0].ports[0].name")},
    ),
]


def short(manifest: Any) -> str:
    return str(manifest["kind"]) if isinstance(manifest, dict) and "kind" in manifest else ""


@pytest.mark.parametrize(("manifest", "expected"), CASES, ids=short)
def test_rules(verdict: Any, manifest: dict[str, Any], expected: set[tuple[str, str]]) -> None:
    if manifest["kind"] == "Event":
        manifest["metadata"]["namespace"] = "default"
    assert verdict(manifest) == expected


def default(manifest: dict[str, Any]) -> dict[str, Any]:
    return validation.default(manifest, now=NOW)


def test_defaults() -> None:
    assert default(obj("Namespace"))["metadata"]["labels"] == {"kubernetes.io/metadata.name": "x"}
    assert default(obj("Node", status={"capacity": {"cpu": "4"}}))["status"]["allocatable"] == {"cpu": "4"}
    secret = default(obj("Secret", stringData={"a": "b"}))
    assert (secret["type"], secret["data"], "stringData" in secret) == ("Opaque", {"a": "Yg=="}, False)
    deployment = default(obj("Deployment", "apps/v1", spec={"selector": SELECTOR, "template": template()}))["spec"]
    assert (deployment["replicas"], deployment["revisionHistoryLimit"], deployment["progressDeadlineSeconds"]) == (
        1,
        10,
        600,
    )
    assert deployment["strategy"] == {
        "type": "RollingUpdate",
        "rollingUpdate": {"maxSurge": "25%", "maxUnavailable": "25%"},
    }
    assert deployment["template"]["spec"]["restartPolicy"] == "Always"
    assert "enableServiceLinks" not in deployment["template"]["spec"]
    job = default(obj("Job", "batch/v1", spec={"template": JOB}))["spec"]
    assert (job["completions"], job["parallelism"], job["backoffLimit"]) == (1, 1, 6)
    service = default(obj("Service", spec={"ports": [{"port": 80}]}))["spec"]
    assert (service["type"], service["sessionAffinity"]) == ("ClusterIP", "None")
    assert service["ports"] == [{"port": 80, "protocol": "TCP", "targetPort": 80}]
    storage = default(obj("StorageClass", "storage.k8s.io/v1", provisioner="p"))
    assert (storage["reclaimPolicy"], storage["volumeBindingMode"]) == ("Delete", "Immediate")
    binding = default(
        obj("RoleBinding", RBAC, roleRef={"kind": "Role", "name": "r"}, subjects=[{"kind": "User", "name": "u"}])
    )
    assert binding["roleRef"]["apiGroup"] == binding["subjects"][0]["apiGroup"] == "rbac.authorization.k8s.io"


@pytest.mark.parametrize(
    ("manifest", "changes"),
    [
        (obj("StorageClass", "storage.k8s.io/v1", provisioner="p"), {"provisioner": "q", "parameters": {"a": "b"}}),
        (obj("RuntimeClass", "node.k8s.io/v1", handler="h"), {"handler": "i"}),
        (endpoint_slice(addresses=["1.2.3.4"]), {"addressType": "FQDN"}),
    ],
)
def test_what_cannot_be_changed_later(manifest: dict[str, Any], changes: dict[str, Any]) -> None:
    stored = {**manifest, "metadata": {"name": "x", "resourceVersion": "1"}}
    found = validation.validate({**stored, **changes}, stored)
    assert {error.field for error in found} >= changes.keys()


def created(manifest: dict[str, Any]) -> Any:
    ctx = validation.Context(now=NOW)
    hub = validation.default_object(validation.documents.read(manifest)[2], NOW)
    return validation.prepare_for_create(hub, ctx)


def test_what_new_objects_start_with() -> None:
    namespace = created(obj("Namespace"))
    assert (namespace.spec.finalizers, namespace.status.phase) == (("kubernetes",), "Active")
    assert created(obj("PersistentVolumeClaim")).status.phase == "Pending"
    job = created(obj("Job", "batch/v1", metadata={"name": "j", "uid": "u"}, spec={"template": JOB}))
    assert job.spec.selector.match_labels == {"batch.kubernetes.io/controller-uid": "u"}
    assert job.spec.template.metadata.labels["job-name"] == "j"
    assert created(obj("Deployment", "apps/v1", status={"replicas": 3})).status.replicas == 0


@pytest.mark.parametrize(
    "kind", [kind for kind in registry.kinds() if "create" in kind.verbs], ids=lambda kind: kind.resource
)
def test_every_kind_has_rules_and_survives_an_empty_object(kind: registry.Kind) -> None:
    empty = {"apiVersion": kind.api_version, "kind": kind.kind}
    needs_name = ("FieldValueRequired", "metadata.name") in {
        (error.reason, error.field) for error in validation.validate(empty)
    }
    assert needs_name != kind.kind.endswith("Review")  # those are asked, and kept nowhere
    named = {**empty, "metadata": {"name": "x", "namespace": "default"}}
    validation.validate(named, named)
    assert rules_of(kind).namespaced == kind.namespaced


def test_the_table_names_only_kinds_that_exist() -> None:
    known = {(kind.group, kind.kind) for kind in registry.kinds()}
    assert MODULES.keys() <= known


UPDATES = [
    (
        obj("Node", spec={"podCIDRs": ["10.0.0.0/24"]}),
        {"spec.podCIDRs": ["10.0.1.0/24"]},
        {("Forbidden", "spec.podCIDRs")},
    ),
    (obj("Node", spec={"providerID": "a"}), {"spec.providerID": "b"}, {("Invalid", "spec.providerID")}),
    (obj("Node"), {"spec.unschedulable": True}, set()),
    (
        obj("Node"),
        {"status": {"addresses": [{"type": "Hostname", "address": "a"}] * 2}},
        {("Duplicate", "status.addresses[1]")},
    ),
    (obj("Secret", type="a"), {"type": "b"}, {("Invalid", "type")}),
    (obj("ConfigMap", immutable=True, data={"a": "b"}), {"data.a": "c"}, {("Forbidden", "data")}),
    (obj("ResourceQuota", spec={"scopes": ["BestEffort"]}), {"spec.scopes": []}, {("Invalid", "spec.scopes")}),
    (obj("RoleBinding", RBAC, roleRef=ROLE), {"roleRef.name": "other"}, {("Invalid", "roleRef")}),
    (obj("RoleBinding", RBAC, roleRef=ROLE, subjects=[SOMEBODY] * 1001), {"metadata.finalizers": ["a/b"]}, set()),
]


@pytest.mark.parametrize(("old", "changes", "expected"), UPDATES, ids=short)
def test_updates(
    verdict: Any, edit: Any, old: dict[str, Any], changes: dict[str, Any], expected: set[tuple[str, str]]
) -> None:
    assert verdict(edit(old, changes), old) == expected
