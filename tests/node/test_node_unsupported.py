"""What a pod asks for is done, refused or named: nothing of it is left out without a word (issue 14)."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

import builders
from dray.api.generated.core import Container, EphemeralContainer, Lifecycle, Pod, PodSpec
from dray.node import unsupported
from dray.node.environment import host_name
from process_world import SLEEP, process_world, shell

LOGS = "FallbackToLogsOnError"
PROBE = {"exec": {"command": ["true"]}}
NAMED: list[tuple[type, str, dict[str, Any], str]] = [
    (Container, "lifecycle", {"lifecycle": {"preStop": PROBE}}, "lifecycle handlers"),
    (Lifecycle, "postStart", {"lifecycle": {"postStart": PROBE}}, "lifecycle handlers"),
    (Lifecycle, "preStop", {"lifecycle": {"preStop": PROBE}}, "lifecycle handlers"),
    (Lifecycle, "stopSignal", {"lifecycle": {"stopSignal": "SIGUSR1"}}, "stopSignal SIGUSR1"),
    (Container, "livenessProbe", {"livenessProbe": PROBE}, "livenessProbe"),
    (Container, "readinessProbe", {"readinessProbe": PROBE}, "readinessProbe"),
    (Container, "startupProbe", {"startupProbe": PROBE}, "startupProbe"),
    (Container, "ports", {"ports": [{"containerPort": 80, "hostPort": 8080}]}, "nothing is forwarded from 8080"),
    (Container, "resources", {"resources": {"limits": {"memory": "1Mi", "x.com/gpu": "1"}}}, "not enforced (memory)"),
    (
        Container,
        "restartPolicyRules",
        {"restartPolicyRules": [{"action": "Restart", "exitCodes": {"operator": "In", "values": [42]}}]},
        "restartPolicyRules",
    ),
    (Container, "terminationMessagePath", {"terminationMessagePath": "/tmp/said"}, "no message is read"),
    (
        Container,
        "terminationMessagePolicy",
        {"terminationMessagePolicy": LOGS},
        "no message is read",
    ),
    (Container, "volumeDevices", {"volumeDevices": [{"name": "disk", "devicePath": "/d"}]}, "not mounted (disk)"),
    (Container, "volumeMounts", {"volumeMounts": [{"name": "data", "mountPath": "/d"}]}, "not mounted (data)"),
    (PodSpec, "dnsConfig", {"dnsConfig": {"nameservers": ["10.0.0.1"]}}, "names are looked up"),
    (PodSpec, "dnsPolicy", {"dnsPolicy": "None"}, "names are looked up"),
    (PodSpec, "hostAliases", {"hostAliases": [{"ip": "10.0.0.1", "hostnames": ["a"]}]}, "/etc/hosts"),
    (PodSpec, "resources", {"resources": {"limits": {"cpu": "1"}}}, "not enforced (cpu)"),
    (PodSpec, "setHostnameAsFQDN", {"setHostnameAsFQDN": True}, "setHostnameAsFQDN"),
    (PodSpec, "shareProcessNamespace", {"shareProcessNamespace": True}, "shareProcessNamespace"),
]
"""Of what, field, what says it, and what is said."""
NAMED_OTHERWISE: dict[type, dict[str, str]] = {
    Container: {"securityContext": "rights.py"},
    PodSpec: {
        **dict.fromkeys(("securityContext", "hostUsers", "os", "runtimeClassName"), "rights.py"),
        "ephemeralContainers": "named when they come",
        "volumes": "named where they are mounted",
    },
    Lifecycle: {},
}
DONE: dict[type, str] = {
    Container: "args command env envFrom name restartPolicy stdin stdinOnce tty workingDir",
    PodSpec: "activeDeadlineSeconds containers hostIPC hostNetwork hostPID hostname hostnameOverride initContainers "
    "overhead readinessGates resourceClaims restartPolicy terminationGracePeriodSeconds",
    Lifecycle: "",
}
FOR_OTHERS: dict[type, str] = {
    # There are no images, nothing that a resize would change, and no names of services.
    Container: "image imagePullPolicy resizePolicy",
    PodSpec: "affinity automountServiceAccountToken enableServiceLinks evictionResponders imagePullSecrets nodeName "
    "nodeSelector preemptionPolicy priority priorityClassName schedulerName schedulingGates schedulingGroup "
    "serviceAccount serviceAccountName subdomain tolerations topologySpreadConstraints",
    Lifecycle: "",
}
"""Fields that other components act on, or that mean nothing to a local process."""


def pod(of: type, fields: dict[str, Any]) -> Pod:
    of_pod = fields if of is PodSpec else {}
    containers = [builders.container(**({} if of is PodSpec else fields))]
    return builders.typed(builders.pod(containers=containers, **of_pod), Pod)


@pytest.mark.parametrize(("of", "field", "fields", "said"), NAMED, ids=lambda value: str(value)[:30])
def test_what_has_no_effect_is_named(of: type, field: str, fields: dict[str, Any], said: str) -> None:
    assert field in {*fields, *fields.get("lifecycle", ())}
    made = pod(of, fields)
    [named] = unsupported.features(made, made.spec.containers[0])
    assert said in named


def test_who_asks_for_nothing_is_told_nothing() -> None:
    ports = [{"containerPort": 80, "hostPort": 80}]
    made = pod(Container, {"resources": {"limits": {"x.com/gpu": "1"}}, "ports": ports})
    assert list(unsupported.features(made, made.spec.containers[0])) == []


@pytest.mark.parametrize("kind", [Container, PodSpec, Lifecycle])
def test_every_field_is_done_or_refused_or_named(kind: type) -> None:
    named = {field for of, field, *_ in NAMED if of is kind}
    done = {*DONE[kind].split(), *FOR_OTHERS[kind].split(), *NAMED_OTHERWISE[kind]}
    assert not named & done
    assert named | done == {field.encode_name for field in msgspec.structs.fields(kind)}


async def test_whoever_adds_an_ephemeral_container_is_told_that_there_will_be_none() -> None:
    async with process_world() as world:
        await world.pod("p", containers=shell(SLEEP))
        running = await world.phase("p", "Running")
        debugger = EphemeralContainer(name="debugger", image="none", command=("/bin/sh",))
        spec = replace(running.spec, ephemeral_containers=(debugger,))
        await world.admin.update(replace(running, spec=spec), "ephemeralcontainers")
        assert "kubectl exec" in await world.event("NotApplied", "ephemeral containers are not started (debugger)")


def test_the_name_of_a_host_can_be_another_one() -> None:
    assert host_name(pod(PodSpec, {"hostnameOverride": "other", "hostname": "mine"})) == "other"
    assert host_name(pod(PodSpec, {"hostname": "mine"})) == "mine"
