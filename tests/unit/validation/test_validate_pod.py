"""Pods: defaults, rules, what may change, and the class of service."""

from __future__ import annotations

from typing import Any

import pytest

import builders
from dray import validation
from dray.api.generated.core import Pod
from dray.api.times import Time

NOW = Time("2026-06-01T12:00:00Z")
CLAIM = {"name": "gpu", "resourceClaimName": "c1"}


def a_pod(*claims: dict[str, Any], **spec: Any) -> dict[str, Any]:
    containers = [builders.container("c", image="i:1")]
    return builders.pod("pod", claims=claims, **{"containers": containers, **spec})


CLAIMS = [
    (CLAIM, set()),
    ({"name": "gpu", "resourceClaimTemplateName": "t"}, set()),
    ({"name": "gpu"}, {("Invalid", "")}),
    ({"name": "gpu", "resourceClaimName": "c", "resourceClaimTemplateName": "t"}, {("Invalid", "")}),
    ({"name": "", "resourceClaimName": "c"}, {("Required", ".name")}),
    ({"name": "G", "resourceClaimName": "c"}, {("Invalid", ".name")}),
    ({"name": "gpu", "resourceClaimName": "C"}, {("Invalid", ".resourceClaimName")}),
    ({"name": "gpu", "resourceClaimTemplateName": "T"}, {("Invalid", ".resourceClaimTemplateName")}),
]


@pytest.mark.req("4381-73")
@pytest.mark.parametrize(("claim", "expected"), CLAIMS)
def test_claims_of_pods(verdict: Any, claim: dict[str, Any], expected: set[tuple[str, str]]) -> None:
    assert verdict(a_pod(claim)) == {(reason, f"spec.resourceClaims[0]{field}") for reason, field in expected}


@pytest.mark.req("4381-73")
def test_claim_names_are_unique(verdict: Any) -> None:
    assert verdict(a_pod(CLAIM, CLAIM)) == {("Duplicate", "spec.resourceClaims[1].name")}


USES = [
    ([{"name": "gpu"}], set()),
    ([{"name": "gpu", "request": "r"}, {"name": "gpu", "request": "s"}], set()),
    ([{"name": "other"}], {("NotFound", "[0]")}),
    ([{"name": ""}], {("Required", "[0]")}),
    ([{"name": "gpu"}, {"name": "gpu"}], {("Duplicate", "[1]")}),
    ([{"name": "gpu", "request": "r"}, {"name": "gpu", "request": "r"}], {("Duplicate", "[1]")}),
    ([{"name": "gpu", "request": "r"}, {"name": "gpu"}], {("Duplicate", "[1]")}),
    ([{"name": "gpu", "request": "R"}], {("Invalid", "[0].request")}),
]


@pytest.mark.req("4381-74")
@pytest.mark.parametrize(("uses", "expected"), USES)
def test_claims_of_containers(
    verdict: Any, edit: Any, uses: list[dict[str, Any]], expected: set[tuple[str, str]]
) -> None:
    pod = edit(a_pod(CLAIM), {"spec.containers[0].resources": {"claims": uses}})
    path = "spec.containers[0].resources.claims"
    assert verdict(pod) == {(reason, path + field) for reason, field in expected}


@pytest.mark.req("4381-72", "4381-77")
def test_claims_of_a_pod_never_change(verdict: Any, edit: Any) -> None:
    pod = a_pod(CLAIM)
    assert verdict(edit(pod, {"spec.resourceClaims[0].resourceClaimName": "c2"}), pod) == {("Forbidden", "spec")}
    assert verdict(edit(pod, {"spec.resourceClaims": []}), pod) == {("Forbidden", "spec")}


@pytest.mark.req("4381-75", "4381-76")
def test_claim_statuses(verdict: Any, edit: Any) -> None:
    pod = edit(a_pod(CLAIM), {"status": {"phase": "Pending", "qosClass": "BestEffort"}})

    def judge(*statuses: dict[str, Any]) -> set[tuple[str, str]]:
        found: set[tuple[str, str]] = verdict(edit(pod, {"status.resourceClaimStatuses": list(statuses)}), pod)
        return found

    path = "status.resourceClaimStatuses"
    assert judge({"name": "gpu", "resourceClaimName": "pod-gpu-abcde"}) == set()
    assert judge({"name": "gpu"}) == set()
    assert judge({"name": "other"}) == {("Invalid", f"{path}[0].name")}
    assert judge({"name": "gpu"}, {"name": "gpu"}) == {("Duplicate", f"{path}[1].name")}
    assert judge({"name": "gpu", "resourceClaimName": "A"}) == {("Invalid", f"{path}[0].resourceClaimName")}


def prepared(manifest: dict[str, Any], old: Pod | None, *, gate: bool) -> Pod:
    off = frozenset() if gate else frozenset(("DynamicResourceAllocation",))
    ctx = validation.Context(now=NOW, disabled_gates=off)
    pod = validation.default_object(validation.documents.read(manifest)[2], NOW)
    assert isinstance(pod, Pod)
    return validation.prepare_for_create(pod, ctx) if old is None else validation.prepare_for_update(pod, old, ctx)


@pytest.mark.req("4381-79", "4381-207", "4381-266", "SVS-62")
def test_while_the_gate_is_off_new_claims_are_dropped_and_stored_ones_kept(edit: Any) -> None:
    manifest = edit(a_pod(CLAIM), {"spec.containers[0].resources": {"claims": [{"name": "gpu"}]}})
    dropped = prepared(manifest, None, gate=False)
    assert dropped.spec.resource_claims == ()
    assert dropped.spec.containers[0].resources.claims == ()
    stored = prepared(manifest, None, gate=True)
    assert [claim.name for claim in stored.spec.resource_claims] == ["gpu"]
    annotated = edit(manifest, {"metadata.annotations": {"a": "b"}})
    assert prepared(annotated, stored, gate=False).spec == stored.spec


def test_defaults() -> None:
    pod = validation.default(
        a_pod(
            containers=[
                {
                    "name": "c",
                    "image": "registry:5000/team/app",
                    "ports": [{"containerPort": 80}],
                    "resources": {"limits": {"cpu": "1"}},
                    "livenessProbe": {"httpGet": {"port": 80}},
                }
            ],
            volumes=[{"name": "v"}, {"name": "s", "secret": {"secretName": "x"}}],
        )
    )
    spec = pod["spec"]
    container = spec["containers"][0]
    assert container["imagePullPolicy"] == "Always"
    assert container["ports"] == [{"containerPort": 80, "protocol": "TCP"}]
    assert container["resources"] == {"limits": {"cpu": "1"}, "requests": {"cpu": "1"}}
    assert container["livenessProbe"] == {
        "httpGet": {"port": 80, "path": "/", "scheme": "HTTP"},
        "timeoutSeconds": 1,
        "periodSeconds": 10,
        "successThreshold": 1,
        "failureThreshold": 3,
    }
    assert spec["volumes"] == [
        {"name": "v", "emptyDir": {}},
        {"name": "s", "secret": {"secretName": "x", "defaultMode": 420}},
    ]
    assert {
        "restartPolicy": "Always",
        "dnsPolicy": "ClusterFirst",
        "schedulerName": "default-scheduler",
        "terminationGracePeriodSeconds": 30,
        "securityContext": {},
        "enableServiceLinks": True,
    }.items() <= spec.items()


PULL_POLICIES = [
    ("app", "Always"),
    ("app:latest", "Always"),
    ("app:v1", "IfNotPresent"),
    ("registry:5000/app", "Always"),
    ("registry:5000/app:v1", "IfNotPresent"),
    (f"app@sha256:{'01' * 32}", "IfNotPresent"),
    (f"app:latest@sha256:{'01' * 32}", "Always"),
    ("app:latest@sha256:0123", "IfNotPresent"),
]


@pytest.mark.parametrize(("image", "policy"), PULL_POLICIES)
def test_images_are_pulled_by_their_tag(image: str, policy: str) -> None:
    pod = validation.default(a_pod(containers=[{"name": "c", "image": image}]))
    assert pod["spec"]["containers"][0]["imagePullPolicy"] == policy


QUALITIES = [
    ({}, "BestEffort"),
    ({"requests": {"cpu": "0"}}, "BestEffort"),
    ({"requests": {"cpu": "1"}}, "Burstable"),
    ({"limits": {"cpu": "1"}}, "Burstable"),
    ({"limits": {"cpu": "1", "memory": "1Gi"}}, "Guaranteed"),
    ({"limits": {"cpu": "1", "memory": "1Gi"}, "requests": {"cpu": "500m"}}, "Burstable"),
]


@pytest.mark.parametrize(("resources", "quality"), QUALITIES)
def test_class_of_service(resources: dict[str, Any], quality: str) -> None:
    pod = prepared(a_pod(containers=[{"name": "c", "image": "i", "resources": resources}]), None, gate=True)
    assert (pod.status.phase, pod.status.qos_class) == ("Pending", quality)
    assert pod.metadata.generation == 1


SPECS = [
    ({"containers": []}, {("Required", "spec.containers")}),
    ({"containers": [{"name": "C", "image": "i"}]}, {("Invalid", "spec.containers[0].name")}),
    ({"containers": [{"name": "c"}]}, {("Required", "spec.containers[0].image")}),
    ({"containers": [{"name": "c", "image": " i"}]}, {("Invalid", "spec.containers[0].image")}),
    ({"containers": [{"name": "c", "image": "i"}] * 2}, {("Duplicate", "spec.containers[1].name")}),
    ({"restartPolicy": "Sometimes"}, {("NotSupported", "spec.restartPolicy")}),
    ({"dnsPolicy": "X"}, {("NotSupported", "spec.dnsPolicy")}),
    ({"nodeName": "N"}, {("Invalid", "spec.nodeName")}),
    ({"nodeSelector": {"a b": "c"}}, {("Invalid", "spec.nodeSelector")}),
    ({"activeDeadlineSeconds": 0}, {("Invalid", "spec.activeDeadlineSeconds")}),
    ({"terminationGracePeriodSeconds": -5}, set()),
    ({"priorityClassName": "A"}, {("Invalid", "spec.priorityClassName")}),
    ({"schedulingGates": [{"name": "a"}, {"name": "a"}]}, {("Duplicate", "spec.schedulingGates[1]")}),
    ({"schedulingGates": [{"name": "a"}], "nodeName": "n"}, {("Forbidden", "spec.nodeName")}),
    ({"overhead": {"cpu": "-1"}}, {("Invalid", "spec.overhead.limits[cpu]")}),
    ({"volumes": [{"name": "v"}, {"name": "v"}]}, {("Duplicate", "spec.volumes[1].name")}),
    (
        {"volumes": [{"name": "v", "emptyDir": {}, "hostPath": {"path": "/"}}]},
        {("Forbidden", "spec.volumes[0].hostPath")},
    ),
    ({"hostNetwork": True, "containers": [{"name": "c", "image": "i", "ports": [{"containerPort": 80}]}]}, set()),
    ({"initContainers": [{"name": "c", "image": "i"}]}, {("Duplicate", "spec.initContainers[0].name")}),
    (
        {"initContainers": [{"name": "i", "image": "i", "readinessProbe": {"tcpSocket": {"port": 1}}}]},
        {("Forbidden", "spec.initContainers[0].readinessProbe")},
    ),
    ({"ephemeralContainers": [{"name": "e", "image": "i"}]}, {("Forbidden", "spec.ephemeralContainers")}),
    (
        {"topologySpreadConstraints": [{"maxSkew": 0, "topologyKey": "z", "whenUnsatisfiable": "DoNotSchedule"}]},
        {("Invalid", "spec.topologySpreadConstraints[0].maxSkew")},
    ),
    (
        {"affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": []}}}},
        {("Required", "spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms")},
    ),
]


@pytest.mark.parametrize(("spec", "expected"), SPECS)
def test_specs(verdict: Any, spec: dict[str, Any], expected: set[tuple[str, str]]) -> None:
    assert verdict(a_pod(**spec)) == expected


CONTAINERS = [
    ({"ports": [{"containerPort": 0}]}, {("Required", "ports[0].containerPort")}),
    ({"ports": [{"containerPort": 70000}]}, {("Invalid", "ports[0].containerPort")}),
    ({"ports": [{"containerPort": 1, "name": "A"}]}, {("Invalid", "ports[0].name")}),
    ({"ports": [{"containerPort": 1, "protocol": "X"}]}, {("NotSupported", "ports[0].protocol")}),
    (
        {"ports": [{"containerPort": 1, "hostPort": 5}, {"containerPort": 2, "hostPort": 5}]},
        {("Duplicate", "ports[1].hostPort")},
    ),
    ({"env": [{"name": ""}]}, {("Required", "env[0].name")}),
    ({"env": [{"name": "A=B"}]}, {("Invalid", "env[0].name")}),
    ({"env": [{"name": "A", "valueFrom": {}}]}, {("Invalid", "env[0].valueFrom")}),
    ({"volumeMounts": [{"name": "v", "mountPath": "/x"}]}, {("NotFound", "volumeMounts[0].name")}),
    ({"imagePullPolicy": "Often"}, {("NotSupported", "imagePullPolicy")}),
    ({"resources": {"requests": {"cpu": "2"}, "limits": {"cpu": "1"}}}, {("Invalid", "resources.requests")}),
    ({"resources": {"requests": {"cpu": "-1"}}}, {("Invalid", "resources.requests[cpu]")}),
    ({"resources": {"requests": {"gpus": "1"}}}, {("Invalid", "resources.requests[gpus]")}),
    ({"resources": {"limits": {"example.com/gpu": "1"}}}, set()),
    (
        {"resources": {"limits": {"example.com/gpu": "500m"}}},
        {("Invalid", "resources.limits[example.com/gpu]"), ("Invalid", "resources.requests[example.com/gpu]")},
    ),
    ({"resources": {"requests": {"example.com/gpu": "1"}}}, {("Required", "resources.limits")}),
    (
        {"resources": {"requests": {"example.com/gpu": "1"}, "limits": {"example.com/gpu": "2"}}},
        {("Invalid", "resources.requests")},
    ),
    ({"resources": {"limits": {"hugepages-2Mi": "2Mi"}}}, {("Forbidden", "resources")}),
    (
        {"resources": {"limits": {"hugepages-2Mi": "3Mi", "cpu": "1"}}},
        {("Invalid", "resources.limits[hugepages-2Mi]"), ("Invalid", "resources.requests[hugepages-2Mi]")},
    ),
    ({"livenessProbe": {}}, {("Required", "livenessProbe")}),
    ({"livenessProbe": {"exec": {}}}, {("Required", "livenessProbe.exec.command")}),
    ({"livenessProbe": {"tcpSocket": {"port": 0}}}, {("Invalid", "livenessProbe.tcpSocket.port")}),
]


@pytest.mark.parametrize(("fields", "expected"), CONTAINERS)
def test_containers(verdict: Any, fields: dict[str, Any], expected: set[tuple[str, str]]) -> None:
    pod = a_pod(containers=[{"name": "c", "image": "i", **fields}])
    assert verdict(pod) == {(reason, f"spec.containers[0].{field}") for reason, field in expected}


TOLERATIONS = [
    ({"operator": "Exists"}, set()),
    ({"key": "a", "operator": "Equal", "value": "b", "effect": "NoSchedule"}, set()),
    ({"operator": "Equal"}, {("Invalid", "operator")}),
    ({"key": "a b", "operator": "Exists"}, {("Invalid", "key")}),
    ({"key": "a", "operator": "Exists", "value": "v"}, {("Invalid", "operator")}),
    ({"key": "a", "operator": "In"}, {("NotSupported", "operator")}),
    ({"key": "a", "operator": "Gt", "value": "5"}, set()),
    ({"key": "a", "operator": "Gt", "value": "x"}, {("Invalid", "value")}),
    ({"key": "a", "operator": "Exists", "effect": "None"}, {("NotSupported", "effect")}),
    ({"key": "a", "operator": "Exists", "tolerationSeconds": 5}, {("Invalid", "effect")}),
    ({"key": "a", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 5}, set()),
]


@pytest.mark.req("5055-57")
@pytest.mark.parametrize(("toleration", "expected"), TOLERATIONS)
def test_node_tolerations_have_rules_of_their_own(
    verdict: Any, toleration: dict[str, Any], expected: set[tuple[str, str]]
) -> None:
    assert verdict(a_pod(tolerations=[toleration])) == {
        (reason, f"spec.tolerations[0].{field}") for reason, field in expected
    }


UPDATES = [
    ({"spec.containers[0].image": "i:2"}, set()),
    ({"spec.containers[0].name": "d"}, {("Forbidden", "spec")}),
    (
        {"spec.containers": [{"name": "c", "image": "i:1"}, {"name": "d", "image": "i"}]},
        {("Forbidden", "spec.containers")},
    ),
    ({"spec.tolerations": [{"key": "a", "operator": "Exists"}, {"operator": "Exists"}]}, set()),
    ({"spec.tolerations": []}, {("Forbidden", "spec.tolerations")}),
    ({"spec.activeDeadlineSeconds": 5}, set()),
    ({"spec.activeDeadlineSeconds": 50}, {("Invalid", "spec.activeDeadlineSeconds")}),
    ({"spec.schedulingGates": []}, set()),
    ({"spec.schedulingGates": [{"name": "g"}, {"name": "h"}]}, {("Forbidden", "spec.schedulingGates[1].name")}),
    ({"spec.nodeSelector": {"a": "b"}}, set()),
    ({"spec.restartPolicy": "Never"}, {("Forbidden", "spec")}),
    ({"metadata.labels": {"a": "b"}}, set()),
]


@pytest.mark.parametrize(("changes", "expected"), UPDATES)
def test_updates(verdict: Any, edit: Any, changes: dict[str, Any], expected: set[tuple[str, str]]) -> None:
    pod = a_pod(
        tolerations=[{"key": "a", "operator": "Exists"}], activeDeadlineSeconds=10, schedulingGates=[{"name": "g"}]
    )
    assert verdict(edit(pod, changes), pod) == expected


def test_gated_pods_say_why_they_wait() -> None:
    pod = prepared(a_pod(schedulingGates=[{"name": "g"}]), None, gate=True)
    assert [(entry.type, entry.status, entry.reason) for entry in pod.status.conditions] == [
        ("PodScheduled", "False", "SchedulingGated")
    ]


POD_LEVEL = [
    ({"requests": {"cpu": "2"}, "limits": {"cpu": "4"}}, set()),
    ({"requests": {"cpu": "500m"}}, {("Invalid", "requests[cpu]")}),
    ({"requests": {"cpu": "5"}, "limits": {"cpu": "4"}}, {("Invalid", "requests")}),
    ({"limits": {"ephemeral-storage": "1"}}, {("NotSupported", "limits[ephemeral-storage]")}),
    ({"claims": [{"name": "gpu"}]}, {("Forbidden", "claims"), ("NotFound", "claims[0]")}),
]


@pytest.mark.parametrize(("resources", "expected"), POD_LEVEL)
def test_resources_of_the_pod_as_a_whole(
    verdict: Any, resources: dict[str, Any], expected: set[tuple[str, str]]
) -> None:
    container = {"name": "c", "image": "i", "resources": {"requests": {"cpu": "1"}}}
    assert verdict(a_pod(containers=[container], resources=resources)) == {
        (reason, f"spec.resources.{field}") for reason, field in expected
    }


def test_the_claim_for_extended_resources(verdict: Any, edit: Any) -> None:
    container = {"name": "c", "image": "i", "resources": {"limits": {"example.com/gpu": "1"}}}
    pod = edit(a_pod(containers=[container]), {"status": {"phase": "Pending"}})
    path = "status.extendedResourceClaimStatus"

    def judge(**status: Any) -> set[tuple[str, str]]:
        found: set[tuple[str, str]] = verdict(edit(pod, {path: status}), pod)
        return found

    mapping = {"containerName": "c", "resourceName": "example.com/gpu", "requestName": "r"}
    assert judge(resourceClaimName="claim", requestMappings=[mapping]) == set()
    assert judge() == {("Required", f"{path}.resourceClaimName"), ("Required", f"{path}.requestMappings")}
    other = {**mapping, "containerName": "d"}
    assert judge(resourceClaimName="claim", requestMappings=[other]) == {
        ("Invalid", f"{path}.requestMappings[0].containerName")
    }
