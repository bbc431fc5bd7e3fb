"""Pods in detail: security, names, environment and policies of containers, and what is worth a warning."""

from __future__ import annotations

from typing import Any

import pytest

import builders
from dray import validation
from dray.api.times import Time

NOW = Time("2026-06-01T12:00:00Z")

Expected = set[tuple[str, str]]


def a_pod(name: str = "pod", **spec: Any) -> dict[str, Any]:
    return builders.pod(name, **spec)


def with_container(**fields: Any) -> dict[str, Any]:
    return a_pod(containers=[{"name": "c", "image": "i:1", **fields}])


LOCAL = {"type": "Localhost", "localhostProfile": "profiles/a.json"}
POD_SECURITY: list[tuple[dict[str, Any], Expected]] = [
    ({"seccompProfile": LOCAL, "appArmorProfile": LOCAL, "runAsUser": 0, "supplementalGroups": [5]}, set()),
    ({"sysctls": [{"name": "net.ipv4.tcp_syncookies", "value": "1"}, {"name": "a/b", "value": ""}]}, set()),
    ({"seccompProfile": {}}, {("Required", "seccompProfile.type")}),
    ({"seccompProfile": {"type": "Some"}}, {("NotSupported", "seccompProfile.type")}),
    ({"seccompProfile": {"type": "Localhost"}}, {("Required", "seccompProfile.localhostProfile")}),
    ({"seccompProfile": {**LOCAL, "localhostProfile": "../a"}}, {("Invalid", "seccompProfile.localhostProfile")}),
    ({"seccompProfile": {**LOCAL, "type": "Unconfined"}}, {("Invalid", "seccompProfile.localhostProfile")}),
    ({"appArmorProfile": {"type": "Some"}}, {("NotSupported", "appArmorProfile.type")}),
    ({"appArmorProfile": {**LOCAL, "localhostProfile": " "}}, {("Invalid", "appArmorProfile.localhostProfile")}),
    ({"fsGroup": -1, "runAsGroup": 2**31}, {("Invalid", "fsGroup"), ("Invalid", "runAsGroup")}),
    ({"supplementalGroups": [1, -1]}, {("Invalid", "supplementalGroups[1]")}),
    ({"fsGroupChangePolicy": "Some"}, {("NotSupported", "fsGroupChangePolicy")}),
    ({"supplementalGroupsPolicy": "Some"}, {("NotSupported", "supplementalGroupsPolicy")}),
    ({"seLinuxChangePolicy": "Some"}, {("NotSupported", "seLinuxChangePolicy")}),
    ({"sysctls": [{"name": "A"}, {"name": ""}]}, {("Invalid", "sysctls[0].name"), ("Required", "sysctls[1].name")}),
    ({"sysctls": [{"name": "a"}, {"name": "a"}]}, {("Duplicate", "sysctls[1].name")}),
]


@pytest.mark.parametrize(("context", "expected"), POD_SECURITY)
def test_security_of_pods(verdict: Any, context: dict[str, Any], expected: Expected) -> None:
    found = verdict(a_pod(securityContext=context))
    assert found == {(reason, f"spec.securityContext.{field}") for reason, field in expected}


def test_security_of_containers(verdict: Any) -> None:
    path = "spec.containers[0].securityContext"
    assert verdict(with_container(securityContext={"runAsUser": -1})) == {("Invalid", f"{path}.runAsUser")}
    assert verdict(with_container(securityContext={"procMount": "Some"})) == {("NotSupported", f"{path}.procMount")}
    assert verdict(with_container(securityContext={"procMount": "Unmasked"})) == {("Invalid", f"{path}.procMount")}
    own_users = with_container(securityContext={"procMount": "Unmasked"})
    own_users["spec"]["hostUsers"] = False
    assert verdict(own_users) == set()
    both = {"privileged": True, "allowPrivilegeEscalation": False}
    assert verdict(with_container(securityContext=both)) == {("Invalid", path)}


SPECS: list[tuple[dict[str, Any], Expected]] = [
    ({"dnsPolicy": "None"}, {("Required", "dnsConfig")}),
    ({"dnsPolicy": "None", "dnsConfig": {}}, {("Required", "dnsConfig.nameservers")}),
    ({"dnsPolicy": "None", "dnsConfig": {"nameservers": ["::1"], "searches": [".", "_a.b.", "c-d"]}}, set()),
    ({"dnsConfig": {"nameservers": ["1.1.1.1"] * 4}}, {("Invalid", "dnsConfig.nameservers")}),
    ({"dnsConfig": {"nameservers": ["example.com"]}}, {("Invalid", "dnsConfig.nameservers[0]")}),
    ({"dnsConfig": {"searches": ["a"] * 33}}, {("Invalid", "dnsConfig.searches")}),
    ({"dnsConfig": {"searches": ["x" * 200] * 12}}, {("Invalid", "dnsConfig.searches")}),
    ({"dnsConfig": {"searches": ["a", "A B"]}}, {("Invalid", "dnsConfig.searches[1]")}),
    ({"dnsConfig": {"options": [{"value": "x"}]}}, {("Required", "dnsConfig.options[0]")}),
    (
        {"hostAliases": [{"ip": "x", "hostnames": ["a", "A_"]}]},
        {("Invalid", "hostAliases[0].ip"), ("Invalid", "hostAliases[0].hostnames[1]")},
    ),
    ({"os": {}}, {("Required", "os.name")}),
    ({"os": {"name": "plan9"}}, {("NotSupported", "os")}),
    ({"imagePullSecrets": [{}]}, set()),
    ({"shareProcessNamespace": True, "hostPID": True}, {("Invalid", "shareProcessNamespace")}),
    ({"resourceClaims": [{"resourceClaimName": "a"}] * 2}, {("Required", f"resourceClaims[{i}].name") for i in (0, 1)}),
]


@pytest.mark.parametrize(("spec", "expected"), SPECS)
def test_specs(verdict: Any, spec: dict[str, Any], expected: Expected) -> None:
    assert verdict(a_pod(**spec)) == {(reason, f"spec.{field}") for reason, field in expected}


CPU = {"resourceName": "cpu", "restartPolicy": "NotRequired"}
EXIT = {"action": "Restart", "exitCodes": {"operator": "In", "values": [1]}}
CONTAINERS: list[tuple[dict[str, Any], Expected]] = [
    ({"resizePolicy": [CPU, {**CPU, "resourceName": "memory"}]}, set()),
    ({"resizePolicy": [{}]}, {("Required", "resizePolicy")}),
    ({"resizePolicy": [{"resourceName": "x", "restartPolicy": "y"}]}, {("NotSupported", "resizePolicy")}),
    ({"resizePolicy": [CPU, CPU]}, {("Duplicate", "resizePolicy[1]")}),
    ({"restartPolicy": "Never", "restartPolicyRules": [EXIT]}, set()),
    ({"restartPolicyRules": [EXIT]}, {("Required", "restartPolicy")}),
    ({"restartPolicy": "Never", "restartPolicyRules": [EXIT] * 21}, {("TooMany", "restartPolicyRules")}),
    (
        {"restartPolicy": "Never", "restartPolicyRules": [{"action": "Run"}]},
        {("NotSupported", "restartPolicyRules[0].action"), ("Required", "restartPolicyRules[0].exitCodes")},
    ),
    (
        {"restartPolicy": "Never", "restartPolicyRules": [{**EXIT, "exitCodes": {"operator": "Gt"}}]},
        {("NotSupported", "restartPolicyRules[0].exitCodes.operator")},
    ),
    ({"envFrom": [{"configMapRef": {"name": "a"}, "prefix": "A_"}, {"secretRef": {"name": "b"}}]}, set()),
    ({"envFrom": [{}]}, {("Invalid", "envFrom")}),
    (
        {"envFrom": [{"configMapRef": {}, "secretRef": {"name": "A"}}]},
        {
            ("Invalid", "envFrom"),
            ("Required", "envFrom[0].configMapRef.name"),
            ("Invalid", "envFrom[0].secretRef.name"),
        },
    ),
    ({"envFrom": [{"prefix": "a=", "secretRef": {"name": "a"}}]}, {("Invalid", "envFrom[0].prefix")}),
    ({"livenessProbe": {"httpGet": {"path": "/", "port": "web"}}}, set()),
    ({"livenessProbe": {"tcpSocket": {"port": "a--b"}}}, {("Invalid", "livenessProbe.tcpSocket.port")}),
    ({"livenessProbe": {"httpGet": {"port": "50%"}}}, {("Invalid", "livenessProbe.httpGet.port")}),
    (
        {"livenessProbe": {"httpGet": {"port": 80, "httpHeaders": [{"name": "a b", "value": "c"}]}}},
        {("Invalid", "livenessProbe.httpGet.httpHeaders")},
    ),
]


@pytest.mark.parametrize(("fields", "expected"), CONTAINERS)
def test_containers(verdict: Any, fields: dict[str, Any], expected: Expected) -> None:
    assert verdict(with_container(**fields)) == {(reason, f"spec.containers[0].{field}") for reason, field in expected}


def test_what_never_restarts_is_not_restarted_for_more_memory(verdict: Any) -> None:
    pod = with_container(resizePolicy=[{"resourceName": "memory", "restartPolicy": "RestartContainer"}])
    assert verdict(pod) == set()
    pod["spec"]["restartPolicy"] = "Never"
    assert verdict(pod) == {("Invalid", "spec.containers[0].resizePolicy")}


HOST_NAME = "this is used in the Pod's hostname, which can result in surprising behavior; a DNS label is recommended"
NO_SELECTOR = "labelSelector: a null labelSelector results in matching no pod"
OLD = 'deprecated since v1.14; use "kubernetes.io/os" instead'
SPREAD = {"maxSkew": 1, "whenUnsatisfiable": "DoNotSchedule"}
EXPRESSION = {"matchExpressions": [{"key": "beta.kubernetes.io/os", "operator": "Exists"}]}
REQUIRED, PREFERRED = (f"{how}DuringSchedulingIgnoredDuringExecution" for how in ("required", "preferred"))
REQUESTS = "spec.containers[0].resources.requests"
TERM = f"spec.affinity.nodeAffinity.{REQUIRED}.nodeSelectorTerms[0]"
WARNINGS: list[tuple[dict[str, Any], list[str]]] = [
    (a_pod(), []),
    (a_pod("a.b"), [f"metadata.name: {HOST_NAME}: [must not contain dots]"]),
    (a_pod("x" * 64), [f"metadata.name: {HOST_NAME}: [must be no more than 63 characters]"]),
    (a_pod(nodeSelector={"beta.kubernetes.io/os": "linux"}), [f"spec.nodeSelector[beta.kubernetes.io/os]: {OLD}"]),
    (a_pod(nodeSelector={"kubernetes.io/os": "linux"}), []),
    (
        a_pod(imagePullSecrets=[{}, {"name": "a"}, {"name": "a"}]),
        [
            'spec.imagePullSecrets[0].name: invalid empty name ""',
            'spec.imagePullSecrets[2].name: duplicate name "a"',
        ],
    ),
    (a_pod(hostAliases=[{"ip": "::1"}, {"ip": "::1"}]), ['spec.hostAliases[1].ip: duplicate ip "::1"']),
    (
        with_container(env=[{"name": "A"}, {"name": "A"}]),
        ['spec.containers[0].env[1]: hides previous definition of "A", which may be dropped when using apply'],
    ),
    (
        with_container(ports=[{"containerPort": 80}, {"containerPort": 81}, {"containerPort": 80}]),
        ["spec.containers[0].ports[2]: duplicate port definition with spec.containers[0].ports[0]"],
    ),
    (with_container(ports=[{"containerPort": 80, "hostPort": 1}, {"containerPort": 80, "hostPort": 2}]), []),
    (
        with_container(resources={"requests": {"memory": "1500m", "cpu": "1500m"}}),
        ['spec.containers[0].resources.requests[memory]: fractional byte value "1500m" is invalid, must be an integer'],
    ),
    (a_pod(topologySpreadConstraints=[{**SPREAD, "topologyKey": "a", "labelSelector": {}}]), []),
    (
        a_pod(topologySpreadConstraints=[{**SPREAD, "topologyKey": "beta.kubernetes.io/os"}]),
        [
            f"spec.topologySpreadConstraints[0].topologyKey: beta.kubernetes.io/os is {OLD}",
            f"spec.topologySpreadConstraints[0].{NO_SELECTOR}",
        ],
    ),
    (
        a_pod(affinity={"podAntiAffinity": {REQUIRED: [{"topologyKey": "a"}]}}),
        [f"spec.affinity.podAntiAffinity.{REQUIRED}[0].{NO_SELECTOR}"],
    ),
    (
        a_pod(affinity={"podAffinity": {PREFERRED: [{"weight": 1, "podAffinityTerm": {"topologyKey": "a"}}]}}),
        [f"spec.affinity.podAffinity.{PREFERRED}[0].podAffinityTerm.{NO_SELECTOR}"],
    ),
    (
        a_pod(affinity={"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": [EXPRESSION]}}}),
        [f"{TERM}.matchExpressions[0].key: beta.kubernetes.io/os is {OLD}"],
    ),
]


@pytest.mark.parametrize(("manifest", "expected"), WARNINGS)
def test_warnings(manifest: dict[str, Any], expected: list[str]) -> None:
    assert validation.validate(manifest) == []
    obj = validation.default_object(validation.documents.read(manifest)[2], NOW)
    assert validation.warnings(obj) == expected


@pytest.mark.parametrize(
    ("lifecycle", "expected"),
    [
        ({"preStop": {"sleep": {"seconds": 30}}}, set()),
        ({"preStop": {"sleep": {"seconds": 31}}}, {("Invalid", "preStop.sleep")}),
        ({"postStart": {"sleep": {"seconds": -1}}}, {("Invalid", "postStart.sleep")}),
        ({"preStop": {"exec": {"command": ["a"]}, "sleep": {"seconds": 31}}}, {("Forbidden", "preStop.sleep")}),
        ({"stopSignal": "SIGTERM"}, {("Forbidden", "stopSignal")}),
    ],
)
def test_how_containers_end(verdict: Any, lifecycle: dict[str, Any], expected: set[tuple[str, str]]) -> None:
    """None sleeps longer than its pod has time to end; a signal is one of the pod's system."""
    found = verdict(with_container(lifecycle=lifecycle))
    assert found == {(reason, f"spec.containers[0].lifecycle.{field}") for reason, field in expected}


def test_devices_in_containers_have_paths_of_their_own(verdict: Any) -> None:
    volume = {"name": "v", "persistentVolumeClaim": {"claimName": "v"}}
    devices = [{"name": "v", "devicePath": "/a"}, {"name": "v", "devicePath": "/a"}]
    container = {"name": "c", "image": "i:1", "volumeDevices": devices}
    path = "spec.containers[0].volumeDevices[1]"
    found = verdict(a_pod(containers=[container], volumes=[volume]))
    assert found == {("Invalid", f"{path}.name"), ("Invalid", f"{path}.devicePath")}
