"""What security contexts come to: every field is enforced, refused, or documented to mean nothing. No processes."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import msgspec
import pytest

import builders
from dray.api.generated.core import Container, Pod, PodSecurityContext, SecurityContext
from dray.node.runtime import capabilities, seccomp
from dray.node.runtime.machine import Machine
from dray.node.runtime.memory_score import memory_score
from dray.node.runtime.rights import NOBODY, Refusal, Rights, plan_rights, refusal

DOCS = Path(__file__).parents[2] / "docs" / "node.md"
EVERY = capabilities.mask(capabilities.NAMES)
ROOT = Machine(
    capabilities=EVERY,
    namespaces=True,
    seccomp=True,
    architecture="x86_64",
    groups_of_users={0: 0, 1: 1, 33: 30},
)
USER = Machine(user=1000, group=1000, groups=(1000, 44), default_user=1000, default_group=1000)
DEFAULT = capabilities.DEFAULT


def pod(container: dict[str, Any] | None = None, shared: dict[str, Any] | None = None, **spec: Any) -> Pod:
    """A pod with a security context in its container and one for all."""
    containers = [builders.container(securityContext=container or {})]
    return builders.typed(builders.pod(**{"containers": containers, "securityContext": shared or {}, **spec}), Pod)


def planned(
    container: dict[str, Any] | None = None,
    shared: dict[str, Any] | None = None,
    machine: Machine = ROOT,
    **spec: Any,
) -> Rights | Refusal:
    made = pod(container, shared, **spec)
    return plan_rights(made, made.spec.containers[0], machine)


def cap(*names: str) -> int:
    return capabilities.mask(names)


ENFORCED: list[tuple[str, dict[str, Any], dict[str, Any]]] = [
    ("allowPrivilegeEscalation", {"allowPrivilegeEscalation": False}, {"no_new_privileges": True}),
    ("allowPrivilegeEscalation", {"allowPrivilegeEscalation": True}, {"no_new_privileges": False}),
    ("appArmorProfile", {"appArmorProfile": {"type": "Unconfined"}}, {}),
    ("capabilities", {"capabilities": {"drop": ["ALL"]}}, {"capabilities": 0}),
    ("capabilities", {"capabilities": {"drop": ["all"], "add": ["CAP_NET_RAW"]}}, {"capabilities": cap("NET_RAW")}),
    ("capabilities", {"capabilities": {"drop": ["KILL"]}}, {"capabilities": DEFAULT & ~cap("KILL")}),
    ("capabilities", {"capabilities": {"add": ["SYS_TIME"]}}, {"capabilities": DEFAULT | cap("SYS_TIME")}),
    (
        "capabilities",
        {"capabilities": {"add": ["ALL"], "drop": ["SYS_ADMIN"]}},
        {"capabilities": EVERY & ~cap("SYS_ADMIN")},
    ),
    ("capabilities", {}, {"capabilities": DEFAULT}),
    ("privileged", {"privileged": True}, {"capabilities": EVERY, "masked_proc": False}),
    ("privileged", {"privileged": False}, {"capabilities": DEFAULT, "masked_proc": True}),
    ("procMount", {"procMount": "Default"}, {"masked_proc": True}),
    ("procMount", {"procMount": "Unmasked"}, {"masked_proc": False}),
    ("readOnlyRootFilesystem", {"readOnlyRootFilesystem": True}, {"read_only_files": True}),
    ("readOnlyRootFilesystem", {}, {"read_only_files": False}),
    ("runAsGroup", {"runAsGroup": 7}, {"group": 7}),
    ("runAsNonRoot", {"runAsNonRoot": True, "runAsUser": 1000}, {"user": 1000}),
    ("runAsNonRoot", {"runAsNonRoot": False}, {"user": 0}),
    ("runAsUser", {"runAsUser": 33}, {"user": 33, "group": 30, "groups": ()}),
    ("runAsUser", {"runAsUser": 4711}, {"user": 4711, "group": NOBODY, "groups": ()}),
    ("runAsUser", {"runAsUser": 0}, {"user": 0, "group": 0, "groups": ()}),
    ("runAsUser", {"runAsUser": 4711, "runAsGroup": 0}, {"user": 4711, "group": 0}),
    ("seLinuxOptions", {"seLinuxOptions": {}}, {}),
    ("seccompProfile", {"seccompProfile": {"type": "RuntimeDefault"}}, {"seccomp": True}),
    ("seccompProfile", {"seccompProfile": {"type": "Unconfined"}}, {"seccomp": False}),
    ("seccompProfile", {}, {"seccomp": False}),
]
"""Field of a container's context, the context, and what it comes to."""
ENFORCED_FOR_ALL: list[tuple[str, dict[str, Any], dict[str, Any]]] = [
    ("appArmorProfile", {"appArmorProfile": {"type": "Unconfined"}}, {}),
    ("fsGroup", {"fsGroup": 5}, {"groups": (5,)}),
    ("runAsGroup", {"runAsGroup": 7}, {"group": 7}),
    ("runAsNonRoot", {"runAsNonRoot": True, "runAsUser": 1}, {"user": 1, "group": 1}),
    ("runAsUser", {"runAsUser": 1}, {"user": 1, "group": 1}),
    ("seLinuxOptions", {"seLinuxOptions": {}}, {}),
    ("seccompProfile", {"seccompProfile": {"type": "RuntimeDefault"}}, {"seccomp": True}),
    ("supplementalGroups", {"supplementalGroups": [8, 9], "fsGroup": 8}, {"groups": (8, 9)}),
    ("supplementalGroupsPolicy", {"runAsUser": 33, "supplementalGroupsPolicy": "Strict"}, {"groups": ()}),
    ("supplementalGroupsPolicy", {"runAsUser": 33, "supplementalGroupsPolicy": "Merge"}, {"groups": ()}),
]
"""The same for the context of a pod."""
REFUSED: list[tuple[str, dict[str, Any], str]] = [
    ("appArmorProfile", {"appArmorProfile": {"type": "RuntimeDefault"}}, "securityContext.appArmorProfile"),
    (
        "appArmorProfile",
        {"appArmorProfile": {"type": "Localhost", "localhostProfile": "x"}},
        "securityContext.appArmorProfile",
    ),
    ("capabilities", {"capabilities": {"add": ["FLY"]}}, "FLY is no capability"),
    ("capabilities", {"capabilities": {"drop": ["FLY"]}}, "securityContext.capabilities.drop"),
    ("runAsNonRoot", {"runAsNonRoot": True}, "must not run as root"),
    ("runAsNonRoot", {"runAsNonRoot": True, "runAsUser": 0}, "runAsUser is 0"),
    ("seLinuxOptions", {"seLinuxOptions": {"type": "x_t"}}, "securityContext.seLinuxOptions"),
    (
        "seccompProfile",
        {"seccompProfile": {"type": "Localhost", "localhostProfile": "x.json"}},
        "no Localhost profiles",
    ),
]
REFUSED_FOR_ALL: list[tuple[str, dict[str, Any], str]] = [
    ("appArmorProfile", {"appArmorProfile": {"type": "RuntimeDefault"}}, "spec.securityContext.appArmorProfile"),
    ("runAsNonRoot", {"runAsNonRoot": True}, "must not run as root"),
    ("seLinuxOptions", {"seLinuxOptions": {"level": "s0"}}, "spec.securityContext.seLinuxOptions"),
    (
        "seccompProfile",
        {"seccompProfile": {"type": "Localhost", "localhostProfile": "x.json"}},
        "spec.securityContext.seccompProfile",
    ),
    ("sysctls", {"sysctls": [{"name": "kernel.shm_rmid_forced", "value": "1"}]}, "spec.securityContext.sysctls"),
]
MEANINGLESS = {"windowsOptions"}
MEANINGLESS_FOR_ALL = {"fsGroupChangePolicy", "seLinuxChangePolicy", "windowsOptions"}
"""What can change nothing for a Linux process without volumes. docs/node.md says so."""


def fields(kind: type[msgspec.Struct]) -> set[str]:
    return {field.encode_name for field in msgspec.structs.fields(kind)}


@pytest.mark.parametrize(
    ("kind", "tables", "meaningless"),
    [
        (SecurityContext, (ENFORCED, REFUSED), MEANINGLESS),
        (PodSecurityContext, (ENFORCED_FOR_ALL, REFUSED_FOR_ALL), MEANINGLESS_FOR_ALL),
    ],
)
def test_every_field_is_decided(
    kind: type[msgspec.Struct], tables: tuple[list[tuple[str, Any, Any]], ...], meaningless: set[str]
) -> None:
    decided = {row[0] for table in tables for row in table}
    assert decided | meaningless == fields(kind)
    assert not decided & meaningless
    documented = set(re.findall(r"`(\w+)`", DOCS.read_text()))
    assert fields(kind) <= documented


@pytest.mark.parametrize(("_field", "context", "rights"), ENFORCED)
def test_what_a_container_asks_for_is_enforced(_field: str, context: dict[str, Any], rights: dict[str, Any]) -> None:
    found = planned(context)
    assert isinstance(found, Rights), str(found)
    assert {name: getattr(found, name) for name in rights} == rights


@pytest.mark.parametrize(("_field", "context", "rights"), ENFORCED_FOR_ALL)
def test_what_a_pod_asks_for_is_enforced(_field: str, context: dict[str, Any], rights: dict[str, Any]) -> None:
    found = planned(shared=context)
    assert isinstance(found, Rights), str(found)
    assert {name: getattr(found, name) for name in rights} == rights


@pytest.mark.parametrize(("_field", "context", "why"), REFUSED)
def test_what_cannot_be_given_to_a_container_is_refused(_field: str, context: dict[str, Any], why: str) -> None:
    found = planned(context)
    assert isinstance(found, Refusal)
    assert why in str(found)


@pytest.mark.parametrize(("_field", "context", "why"), REFUSED_FOR_ALL)
def test_what_cannot_be_given_to_a_pod_is_refused(_field: str, context: dict[str, Any], why: str) -> None:
    found = planned(shared=context)
    assert isinstance(found, Refusal)
    assert why in str(found)


@pytest.mark.parametrize(
    ("own", "shared", "rights"),
    [
        ({"runAsUser": 1}, {"runAsUser": 33}, {"user": 1, "group": 1}),
        ({"runAsGroup": 1}, {"runAsGroup": 33, "runAsUser": 2}, {"user": 2, "group": 1}),
        ({"runAsNonRoot": False}, {"runAsNonRoot": True}, {"user": 0}),
        (
            {"seccompProfile": {"type": "Unconfined"}},
            {"seccompProfile": {"type": "RuntimeDefault"}},
            {"seccomp": False},
        ),
        ({"appArmorProfile": {"type": "Unconfined"}}, {"appArmorProfile": {"type": "RuntimeDefault"}}, {}),
    ],
)
def test_a_container_says_it_better_than_its_pod(
    own: dict[str, Any], shared: dict[str, Any], rights: dict[str, Any]
) -> None:
    found = planned(own, shared)
    assert isinstance(found, Rights), str(found)
    assert {name: getattr(found, name) for name in rights} == rights


@pytest.mark.parametrize(
    ("spec", "rights"),
    [
        ({}, {"own_processes": True, "own_ipc": True, "own_host_name": True, "own_network": False}),
        ({"hostPID": True}, {"own_processes": False, "own_ipc": True}),
        ({"hostIPC": True}, {"own_processes": True, "own_ipc": False}),
        ({"hostNetwork": True}, {"own_host_name": False, "own_network": False}),
        ({"hostUsers": True}, {}),
        ({"os": {"name": "linux"}}, {}),
    ],
)
def test_what_is_the_machines_is_shared_if_asked_for(spec: dict[str, Any], rights: dict[str, Any]) -> None:
    found = planned(**spec)
    assert isinstance(found, Rights), str(found)
    assert {name: getattr(found, name) for name in rights} == rights


def test_a_node_without_a_pod_network_shares_its_own_with_those_alone_that_ask_for_it() -> None:
    machine = msgspec.structs.replace(ROOT, pod_network="none")
    apart, along = planned(machine=machine), planned(machine=machine, hostNetwork=True)
    assert isinstance(apart, Rights)
    assert isinstance(along, Rights)
    assert (apart.own_network, along.own_network) == (True, False)


@pytest.mark.parametrize(
    ("spec", "why"),
    [
        ({"hostUsers": False}, "spec.hostUsers"),
        ({"runtimeClassName": "gvisor"}, "spec.runtimeClassName"),
        ({"os": {"name": "windows"}}, "spec.os.name"),
    ],
)
def test_a_pod_that_wants_another_kind_of_node_is_refused(spec: dict[str, Any], why: str) -> None:
    found = planned(**spec)
    assert isinstance(found, Refusal)
    assert found.field == why


def test_containers_that_do_not_say_run_as_whom_the_node_says() -> None:
    machine = msgspec.structs.replace(ROOT, default_user=65534, default_group=65533)
    found = planned({"runAsNonRoot": True}, machine=machine)
    assert isinstance(found, Rights), str(found)
    assert (found.user, found.group) == (65534, 65533)
    asked = planned({"runAsUser": 0}, machine=machine)
    assert isinstance(asked, Rights)
    assert (asked.user, asked.group) == (0, 0)


@pytest.mark.parametrize(
    ("container", "shared", "is_allowed"),
    [
        ({}, {}, True),
        ({"runAsUser": 100000, "runAsGroup": 165535}, {"fsGroup": 100001, "supplementalGroups": [100002]}, True),
        ({"runAsUser": 100000}, {}, True),
        ({"runAsUser": 65533, "runAsGroup": 65532}, {}, True),
        ({"runAsUser": 0}, {}, False),
        ({"runAsUser": 33}, {}, False),
        ({"runAsUser": 100000, "runAsGroup": 0}, {}, False),
        ({"runAsUser": 100000}, {"supplementalGroups": [6]}, False),
        ({"runAsUser": 100000}, {"fsGroup": 42}, False),
        ({}, {"runAsUser": 165536}, False),
    ],
)
def test_strangers_are_the_users_and_groups_that_are_kept_for_them(
    container: dict[str, Any], shared: dict[str, Any], is_allowed: bool
) -> None:
    """The `restricted` Pod Security Standard leaves groups to pods, and here they are the machine's: disk, shadow."""
    kept = {"default_user": 65533, "default_group": 65532, "container_ids": (100000, 165535)}
    found = planned(container, shared, machine=msgspec.structs.replace(ROOT, **kept))
    assert isinstance(found, Rights) is is_allowed, str(found)
    if isinstance(found, Refusal):
        assert "pods of this node may be 100000 to 165535" in found.why


@pytest.mark.parametrize(
    ("context", "why"),
    [
        ({"runAsUser": 0}, "only root can run containers as 0"),
        ({"runAsUser": 1001}, "the agent is user 1000"),
        ({"runAsGroup": 0}, "securityContext.runAsGroup"),
        ({"privileged": True}, "securityContext.privileged"),
        ({"capabilities": {"add": ["NET_RAW"]}}, "does not have NET_RAW"),
        ({"readOnlyRootFilesystem": True}, "securityContext.readOnlyRootFilesystem"),
        ({"seccompProfile": {"type": "RuntimeDefault"}}, "securityContext.seccompProfile"),
    ],
)
def test_an_agent_that_is_not_root_gives_only_its_own_rights(context: dict[str, Any], why: str) -> None:
    found = planned(context, machine=USER)
    assert isinstance(found, Refusal)
    assert why in str(found)


def test_an_agent_that_is_not_root_runs_containers_as_itself_and_lets_them_gain_nothing() -> None:
    found = planned({"runAsNonRoot": True, "capabilities": {"drop": ["ALL"]}}, machine=USER)
    assert found == Rights(user=1000, group=1000, no_new_privileges=True, masked_proc=False)
    refused = planned(shared={"supplementalGroups": [45]}, machine=USER)
    assert isinstance(refused, Refusal)
    assert isinstance(planned(shared={"supplementalGroups": [44]}, machine=USER), Rights)


def test_one_container_that_must_not_run_keeps_the_whole_pod_from_running() -> None:
    made = pod({"runAsUser": 1000})
    bad = Container(name="bad", security_context=SecurityContext(run_as_non_root=True))
    for changed in (
        msgspec.structs.replace(made.spec, init_containers=(bad,)),
        msgspec.structs.replace(made.spec, containers=(*made.spec.containers, bad)),
    ):
        assert refusal(msgspec.structs.replace(made, spec=changed), ROOT).startswith("container bad: ")
    assert refusal(made, ROOT) == ""


def test_capabilities_open_only_the_calls_that_are_theirs() -> None:
    for architecture in ("x86_64", "aarch64"):
        none = seccomp.refused_calls(architecture, 0)
        assert {"mount", "unshare", "setns", "reboot", "init_module", "keyctl"} <= none.keys()
        assert len(set(none.values())) == len(none)
        assert max(none.values()) <= seccomp.NEWEST_CALL
        admin = seccomp.refused_calls(architecture, cap("SYS_ADMIN"))
        assert "mount" not in admin
        assert "reboot" in admin
        assert {"bpf", "perf_event_open"}.isdisjoint(admin)
        for name, call in (("BPF", "bpf"), ("PERFMON", "perf_event_open")):
            assert none.keys() - seccomp.refused_calls(architecture, cap(name)).keys() == {call}
        assert "keyctl" in seccomp.refused_calls(architecture, EVERY)


@pytest.mark.parametrize(
    ("resources", "expected"),
    [
        ({}, 1000),
        ({"requests": {"cpu": "1"}}, 999),
        ({"requests": {"memory": "1Gi"}}, 750),
        ({"requests": {"memory": "1"}}, 999),
        ({"requests": {"memory": "100Gi"}}, 1),
        ({"requests": {"cpu": "1", "memory": "1Gi"}, "limits": {"cpu": "1", "memory": "1Gi"}}, 0),
    ],
)
def test_who_asks_for_less_memory_ends_sooner_when_there_is_none(resources: dict[str, Any], expected: int) -> None:
    made = builders.typed(builders.pod(containers=[builders.container(resources=resources)]), Pod)
    assert memory_score(made.spec, made.spec.containers[0], 4 * 1024**3) == expected
