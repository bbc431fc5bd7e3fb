"""What a container may do: from the security contexts of its pod to what the kernel is told. Pure.

    plan_rights(pod, container, machine) ─▶ Rights   with exactly this the process starts
                                         └▶ Refusal  what was asked for cannot be given here: nothing starts

Nothing is left out without a word, and nobody gets more than was asked for. What a field means, or why it means nothing
to a process without an image, is in docs/node.md; a test holds every field of both contexts against that.
"""

from __future__ import annotations

from typing import Final

import msgspec

from dray.api.generated.core import (
    Capabilities,
    Container,
    Pod,
    PodSecurityContext,
    SeccompProfile,
    SecurityContext,
    SELinuxOptions,
)
from dray.api.pods import containers_of
from dray.node.runtime import capabilities
from dray.node.runtime.machine import Machine

ROOT: Final = 0
NOBODY: Final = 65534
"""The group of a user whom the machine does not know: group 0, which images have then, is the machine's here."""
HOST_NETWORK: Final = "host"
UNCONFINED: Final = "Unconfined"
RUNTIME_DEFAULT: Final = "RuntimeDefault"


class Rights(msgspec.Struct, frozen=True, kw_only=True):
    """All that is decided of a process before it starts."""

    user: int
    group: int
    groups: tuple[int, ...] = ()
    capabilities: int = 0
    """The most that it and its children can ever have. User 0 has all of them, others none to begin with."""
    no_new_privileges: bool = False
    """Programs with the set-user-id bit or file capabilities give nothing."""
    seccomp: bool = False
    """Whether the default filter of system calls is on."""
    read_only_files: bool = False
    masked_proc: bool = True
    """Whether what tells of, or changes, the kernel in /proc and /sys is covered up."""
    own_processes: bool = False
    own_ipc: bool = False
    own_host_name: bool = False
    own_network: bool = False


class Refusal(msgspec.Struct, frozen=True):
    """Why a container must not start: the field that asks for what cannot be given, and why not."""

    field: str
    why: str

    def __str__(self) -> str:
        return f"{self.field}: {self.why}"


def refusal(pod: Pod, machine: Machine) -> str:
    """Why nothing of a pod may start here; empty if all of it may."""
    for container in containers_of(pod.spec):
        planned = plan_rights(pod, container, machine)
        if isinstance(planned, Refusal):
            return f"container {container.name}: {planned}"
    return ""


def plan_rights(pod: Pod, container: Container, machine: Machine) -> Rights | Refusal:
    """What a container runs with, or why it must not run."""
    shared = pod.spec.security_context or PodSecurityContext()
    own = container.security_context or SecurityContext()
    try:
        _check_pod(pod, shared)
        _check_labels(shared, own)
        user, group, groups = _who(shared, own, machine)
        allowed = _capabilities(own, machine)
        private = machine.namespaces
        if own.read_only_root_filesystem and not private:
            raise _Refused("securityContext.readOnlyRootFilesystem", f"{NO_NAMESPACES}, so files cannot be read-only")
        return Rights(
            user=user,
            group=group,
            groups=groups,
            capabilities=allowed,
            # An agent that is not root cannot take capabilities away from programs that bring them; this does.
            no_new_privileges=own.allow_privilege_escalation is False or not machine.is_root,
            seccomp=_seccomp(shared, own, machine),
            read_only_files=bool(own.read_only_root_filesystem),
            masked_proc=private and not own.privileged and own.proc_mount != "Unmasked",
            own_processes=private and not pod.spec.host_pid,
            own_ipc=private and not pod.spec.host_ipc,
            own_host_name=private and not pod.spec.host_network,
            own_network=private and not pod.spec.host_network and machine.pod_network != HOST_NETWORK,
        )
    except _Refused as error:
        return Refusal(error.field, error.why)


NO_NAMESPACES: Final = "the agent may not make namespaces here"


class _Refused(Exception):
    def __init__(self, field: str, why: str) -> None:
        super().__init__(field, why)
        self.field = field
        self.why = why


def _check_pod(pod: Pod, shared: PodSecurityContext) -> None:
    spec = pod.spec
    if spec.os is not None and spec.os.name not in ("", "linux"):
        raise _Refused("spec.os.name", f"this node runs linux, not {spec.os.name}")
    if spec.runtime_class_name:
        raise _Refused("spec.runtimeClassName", "this node has no other runtime than local processes")
    if spec.host_users is False:
        raise _Refused("spec.hostUsers", "local processes have no user namespace of their own")
    if shared.sysctls:
        raise _Refused("spec.securityContext.sysctls", "kernel parameters are the machine's and are not changed")


def _check_labels(shared: PodSecurityContext, own: SecurityContext) -> None:
    """Confinement by AppArmor and SELinux: who asks for it must not run without."""
    armor, field = own.app_armor_profile, "securityContext.appArmorProfile"
    if armor is None:
        armor, field = shared.app_armor_profile, f"spec.{field}"
    if armor is not None and armor.type != UNCONFINED:
        raise _Refused(field, "local processes are not confined by AppArmor")
    options, field = own.se_linux_options, "securityContext.seLinuxOptions"
    if options is None:
        options, field = shared.se_linux_options, f"spec.{field}"
    if options is not None and options != SELinuxOptions():
        raise _Refused(field, "local processes are not labelled for SELinux")


def _who(shared: PodSecurityContext, own: SecurityContext, machine: Machine) -> tuple[int, int, tuple[int, ...]]:
    user = own.run_as_user if own.run_as_user is not None else shared.run_as_user
    group = own.run_as_group if own.run_as_group is not None else shared.run_as_group
    wanted = machine.default_user if user is None else user
    not_root = own.run_as_non_root if own.run_as_non_root is not None else shared.run_as_non_root
    if not_root and wanted == ROOT:
        asked = "runAsUser is 0" if user is not None else "without runAsUser it would run as root (user 0)"
        raise _Refused("securityContext.runAsNonRoot", f"the container must not run as root, but {asked}")
    if group is None:
        group = machine.default_group if user is None else machine.groups_of_users.get(wanted, NOBODY)
    groups = tuple(dict.fromkeys((*shared.supplemental_groups, *_fs_group(shared))))
    _check_range("securityContext.runAsUser", (wanted,), machine.default_user, machine)
    _check_range("securityContext.runAsGroup", (group,), machine.default_group, machine)
    _check_range("spec.securityContext.supplementalGroups", shared.supplemental_groups, machine.default_group, machine)
    _check_range("spec.securityContext.fsGroup", _fs_group(shared), machine.default_group, machine)
    if not machine.is_root:
        _check_own(wanted, group, groups, machine)
    return wanted, group, groups


def _check_range(field: str, asked: tuple[int, ...], default: int, machine: Machine) -> None:
    """Users and groups are the machine's, and so are their files: strangers get those that are kept for them."""
    if machine.container_ids is None:
        return
    first, last = machine.container_ids
    for number in asked:
        if not first <= number <= last and number not in (default, NOBODY):
            raise _Refused(field, f"pods of this node may be {first} to {last}, not {number}")


def _fs_group(shared: PodSecurityContext) -> tuple[int, ...]:
    return (shared.fs_group,) if shared.fs_group is not None else ()


def _check_own(user: int, group: int, groups: tuple[int, ...], machine: Machine) -> None:
    """An agent that is not root can start processes as itself only."""
    if user != machine.user:
        raise _Refused(
            "securityContext.runAsUser", f"the agent is user {machine.user}, and only root can run containers as {user}"
        )
    if group != machine.group:
        raise _Refused(
            "securityContext.runAsGroup",
            f"the agent is of group {machine.group}, and only root can run containers as {group}",
        )
    others = [one for one in groups if one not in (machine.group, *machine.groups)]
    if others:
        raise _Refused(
            "spec.securityContext.supplementalGroups",
            f"the agent is not of group {others[0]}, and only root can add it",
        )


def _capabilities(own: SecurityContext, machine: Machine) -> int:
    if own.privileged:
        if not machine.is_root:
            raise _Refused("securityContext.privileged", "the agent is not root and has no privileges to give")
        return machine.capabilities
    asked = own.capabilities or Capabilities()
    field = "securityContext.capabilities"
    allowed = machine.capabilities if any(map(capabilities.is_all, asked.add)) else capabilities.DEFAULT
    if any(map(capabilities.is_all, asked.drop)):
        allowed = 0
    added = _mask([name for name in asked.add if not capabilities.is_all(name)], f"{field}.add")
    dropped = _mask([name for name in asked.drop if not capabilities.is_all(name)], f"{field}.drop")
    missing = capabilities.names(added & ~machine.capabilities)
    if missing:
        raise _Refused(f"{field}.add", f"the agent itself does not have {', '.join(missing)}")
    return (allowed | added) & ~dropped & machine.capabilities


def _mask(names: list[str], field: str) -> int:
    try:
        return capabilities.mask(names)
    except KeyError as error:
        raise _Refused(field, f"{error.args[0]} is no capability that is known here") from None


def _seccomp(shared: PodSecurityContext, own: SecurityContext, machine: Machine) -> bool:
    profile: SeccompProfile | None = own.seccomp_profile
    field = "securityContext.seccompProfile"
    if profile is None:
        profile, field = shared.seccomp_profile, f"spec.{field}"
    if profile is None or profile.type == UNCONFINED:
        return False
    if profile.type != RUNTIME_DEFAULT:
        raise _Refused(
            field, f"there are no {profile.type} profiles on this node; RuntimeDefault and Unconfined are known"
        )
    if not machine.seccomp:
        raise _Refused(field, "this machine's kernel, or its kind of processor, has no filter for system calls here")
    return True
