"""The Pod Security Standards: which levels forbid what, since when, in Kubernetes' words."""

from __future__ import annotations

from typing import Any

import pytest

from dray.api import codec
from dray.api.generated.core import PodSpec
from dray.api.meta import ObjectMeta
from dray.pod_admission.security import policy, standards
from dray.pod_admission.security.policy import LATEST, Standard

HARDENED: dict[str, Any] = {
    "securityContext": {"runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}},
    "containers": [
        {
            "name": "c",
            "image": "i",
            "securityContext": {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}},
        }
    ],
}


def spec_of(**fields: Any) -> PodSpec:
    reading = codec.read({"containers": [{"name": "c", "image": "i"}], **fields}, PodSpec)
    assert reading.obj is not None, reading.errors
    return reading.obj


def found(level: str, spec: PodSpec, minor: int = LATEST, **annotations: str) -> str:
    return standards.in_words(standards.violations(spec, annotations, Standard(level, minor)))


def container(**context: Any) -> dict[str, Any]:
    return {"name": "c", "image": "i", "securityContext": context}


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"hostNetwork": True, "hostPID": True}, "host namespaces (hostNetwork=true, hostPID=true)"),
        (
            {"containers": [container(privileged=True)]},
            'privileged (container "c" must not set securityContext.privileged=true)',
        ),
        (
            {"containers": [container(capabilities={"add": ["SYS_ADMIN", "CHOWN"]})]},
            'non-default capabilities (container "c" must not include "SYS_ADMIN" in securityContext.capabilities.add)',
        ),
        ({"volumes": [{"name": "v", "hostPath": {"path": "/"}}]}, 'hostPath volumes (volume "v")'),
        (
            {"containers": [{"name": "c", "image": "i", "ports": [{"containerPort": 1, "hostPort": 80}]}]},
            'hostPort (container "c" uses hostPort 80)',
        ),
        ({"securityContext": {"sysctls": [{"name": "kernel.x", "value": "1"}]}}, "forbidden sysctls (kernel.x)"),
        (
            {"securityContext": {"seLinuxOptions": {"type": "t", "user": "u"}}},
            'seLinuxOptions (pod set forbidden securityContext.seLinuxOptions: type "t"; user may not be set)',
        ),
        (
            {"securityContext": {"seccompProfile": {"type": "Unconfined"}}},
            'seccompProfile (pod must not set securityContext.seccompProfile.type to "Unconfined")',
        ),
        (
            {"containers": [container(procMount="Unmasked")]},
            'procMount (container "c" must not set securityContext.procMount to "Unmasked")',
        ),
        (
            {"securityContext": {"appArmorProfile": {"type": "Unconfined"}}},
            'forbidden AppArmor profile (pod must not set AppArmor profile type to "Unconfined")',
        ),
        (
            {"securityContext": {"windowsOptions": {"hostProcess": True}}, "hostNetwork": True},
            (
                "host namespaces (hostNetwork=true), "
                "hostProcess (pod must not set securityContext.windowsOptions.hostProcess=true)"
            ),
        ),
    ],
)
def test_baseline(fields: dict[str, Any], words: str) -> None:
    assert found("baseline", spec_of(**fields)) == words
    assert found("privileged", spec_of(**fields)) == ""


def test_an_ordinary_pod_is_baseline_and_a_hardened_one_restricted() -> None:
    assert found("baseline", spec_of()) == ""
    assert found("restricted", spec_of(**HARDENED)) == ""
    assert found("restricted", spec_of()) == (
        'allowPrivilegeEscalation != false (container "c" must set securityContext.allowPrivilegeEscalation=false), '
        'unrestricted capabilities (container "c" must set securityContext.capabilities.drop=["ALL"]), '
        'runAsNonRoot != true (pod or container "c" must set securityContext.runAsNonRoot=true), '
        'seccompProfile (pod or container "c" must set securityContext.seccompProfile.type to "RuntimeDefault" or '
        '"Localhost")'
    )


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        (
            {"volumes": [{"name": "v", "hostPath": {"path": "/"}}, {"name": "n", "nfs": {"server": "s", "path": "/"}}]},
            'restricted volume types (volumes "v", "n" use restricted volume types "hostPath", "nfs")',
        ),
        (
            {"securityContext": {**HARDENED["securityContext"], "runAsUser": 0}},
            "runAsUser=0 (pod must not set runAsUser=0)",
        ),
        (
            {"securityContext": {**HARDENED["securityContext"], "runAsNonRoot": False}},
            "runAsNonRoot != true (pod must not set securityContext.runAsNonRoot=false)",
        ),
    ],
)
def test_restricted(fields: dict[str, Any], words: str) -> None:
    assert found("restricted", spec_of(**{**HARDENED, **fields})) == words


def test_versions_have_the_rules_of_their_time() -> None:
    bare = spec_of()
    assert found("restricted", bare, 7) == (
        'runAsNonRoot != true (pod or container "c" must set securityContext.runAsNonRoot=true)'
    )
    sysctl = spec_of(securityContext={"sysctls": [{"name": "net.ipv4.tcp_keepalive_time", "value": "1"}]})
    assert found("baseline", sysctl, 28) != ""
    assert found("baseline", sysctl, 29) == ""
    unmasked = spec_of(hostUsers=False, containers=[container(procMount="Unmasked")])
    assert found("baseline", unmasked, 34) != ""
    assert found("baseline", unmasked, 35) == ""
    alpha = {"seccomp.security.alpha.kubernetes.io/pod": "unconfined"}
    assert "forbidden annotation seccomp" in found("baseline", bare, 18, **alpha)
    assert found("baseline", bare, 19, **alpha) == ""


def labels(**values: str) -> ObjectMeta:
    prefix = "pod-security.kubernetes.io/"
    return ObjectMeta(labels={prefix + name.replace("_", "-"): value for name, value in values.items()})


def test_labels_are_read() -> None:
    read, problems = policy.read(labels(enforce="baseline", enforce_version="v1.30", audit="restricted"))
    assert not problems
    assert (str(read.enforce), str(read.audit)) == ("baseline:v1.30", "restricted:latest")
    assert str(read.warn) == "baseline:v1.30", "whoever enforces is warned of workloads, too"
    assert policy.read(ObjectMeta(labels={"a": "b"}))[0].is_free


def test_labels_that_nobody_understands_are_enforced_to_be_safe() -> None:
    read, problems = policy.read(labels(enforce="secure", warn="secure", warn_version="1.2"))
    assert (read.enforce.level, read.warn.level) == ("restricted", "privileged")
    assert [problem.field.removeprefix("metadata.labels[pod-security.kubernetes.io/") for problem in problems] == [
        "enforce]",
        "warn]",
        "warn-version]",
    ]
