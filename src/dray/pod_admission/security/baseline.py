"""The level `baseline`: what no ordinary pod needs is forbidden."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Final

from dray.api.generated.core import LifecycleHandler, Probe, SELinuxOptions
from dray.pod_admission.security.subject import AnyContainer, Subject, Violation, named, number, quoted, setters

APP_ARMOR_ANNOTATION: Final = "container.apparmor.security.beta.kubernetes.io/"
SECCOMP_OF_POD: Final = "seccomp.security.alpha.kubernetes.io/pod"
SECCOMP_OF_CONTAINER: Final = "container.seccomp.security.alpha.kubernetes.io/"
GOOD_PROFILES: Final = ("RuntimeDefault", "Localhost")
_CAPABILITIES: Final = frozenset(
    (
        "AUDIT_WRITE",
        "CHOWN",
        "DAC_OVERRIDE",
        "FOWNER",
        "FSETID",
        "KILL",
        "MKNOD",
        "NET_BIND_SERVICE",
        "SETFCAP",
        "SETGID",
        "SETPCAP",
        "SETUID",
        "SYS_CHROOT",
    )
)
_SELINUX_TYPES: Final = {"": 0, "container_t": 0, "container_init_t": 0, "container_kvm_t": 0, "container_engine_t": 31}
"""Each with the version since which it is allowed."""
_SYSCTLS: Final = {
    "kernel.shm_rmid_forced": 0,
    "net.ipv4.ip_local_port_range": 0,
    "net.ipv4.tcp_syncookies": 0,
    "net.ipv4.ping_group_range": 0,
    "net.ipv4.ip_unprivileged_port_start": 0,
    "net.ipv4.ip_local_reserved_ports": 27,
    "net.ipv4.tcp_keepalive_time": 29,
    "net.ipv4.tcp_fin_timeout": 29,
    "net.ipv4.tcp_keepalive_intvl": 29,
    "net.ipv4.tcp_keepalive_probes": 29,
    "net.ipv4.tcp_rmem": 32,
    "net.ipv4.tcp_wmem": 32,
    "net.ipv4.tcp_slow_start_after_idle": 37,
    "net.ipv4.tcp_notsent_lowat": 37,
}
"""Each with the version since which it is allowed."""


def app_armor_profile(subject: Subject, _minor: int) -> Violation | None:
    """Nobody turns AppArmor off."""
    shared = subject.shared.app_armor_profile
    profiles = {container.name: own.app_armor_profile for container, own in subject.containers()}
    bad = [name for name, found in profiles.items() if found is not None and found.type not in GOOD_PROFILES]
    by_pod = shared is not None and shared.type not in GOOD_PROFILES
    values = sorted({found.type for found in (shared, *profiles.values()) if found and found.type not in GOOD_PROFILES})
    annotations = sorted(
        f"{key}={json.dumps(value)}"
        for key, value in subject.annotations
        if key.startswith(APP_ARMOR_ANNOTATION) and value not in ("", "runtime/default")
        if not value.startswith("localhost/")
    )
    who = [found for found in [setters(by_pod, bad)] if found]
    if annotations:
        who.append(number(annotations, "annotation", "annotations"))
    if not who:
        return None
    values += annotations
    reason = number(values, "forbidden AppArmor profile", "forbidden AppArmor profiles")
    return Violation(reason, f"{' and '.join(who)} must not set AppArmor profile type to {quoted(values)}")


def capabilities(subject: Subject, _minor: int) -> Violation | None:
    """Nobody adds capabilities beyond those that container runtimes give."""
    added = {
        container.name: [one for one in own.capabilities.add if one not in _CAPABILITIES]
        for container, own in subject.containers()
        if own.capabilities is not None
    }
    return too_many_capabilities(added, "non-default capabilities")


def too_many_capabilities(added: dict[str, list[str]], reason: str) -> Violation | None:
    """Who adds what they may not, by container."""
    bad = [name for name, found in added.items() if found]
    if not bad:
        return None
    values = sorted({one for found in added.values() for one in found})
    return Violation(reason, f"{named(bad)} must not include {quoted(values)} in securityContext.capabilities.add")


def host_namespaces(subject: Subject, _minor: int) -> Violation | None:
    """Nobody shares namespaces with the host."""
    spec = subject.spec
    flags = {"hostNetwork": spec.host_network, "hostPID": spec.host_pid, "hostIPC": spec.host_ipc}
    shared = [f"{name}=true" for name, is_set in flags.items() if is_set]
    return Violation("host namespaces", ", ".join(shared)) if shared else None


def host_path_volumes(subject: Subject, _minor: int) -> Violation | None:
    """Nobody mounts directories of the host."""
    bad = [volume.name for volume in subject.spec.volumes if volume.host_path is not None]
    return Violation("hostPath volumes", f"{number(bad, 'volume', 'volumes')} {quoted(bad)}") if bad else None


def host_ports(subject: Subject, _minor: int) -> Violation | None:
    """Nobody takes ports of the host."""
    bad = subject.where(lambda container, _own: any(port.host_port for port in container.ports))
    if not bad:
        return None
    ports = sorted(
        {str(port.host_port) for container, _ in subject.containers() for port in container.ports if port.host_port}
    )
    uses = f"{number(bad, 'uses', 'use')} {number(ports, 'hostPort', 'hostPorts')} {', '.join(ports)}"
    return Violation("hostPort", f"{named(bad)} {uses}")


def host_probes(subject: Subject, _minor: int) -> Violation | None:
    """Nobody has the kubelet call other hosts."""
    hosts = {container.name: set(_hosts(container)) for container, _ in subject.containers()}
    bad = sorted(name for name, found in hosts.items() if found)
    if not bad:
        return None
    values = sorted(set().union(*hosts.values()))
    what = number(values, "probe or lifecycle host", "probe or lifecycle hosts")
    return Violation("probe or lifecycle host", f"{named(bad)} {number(bad, 'uses', 'use')} {what} {quoted(values)}")


def _hosts(container: AnyContainer) -> Iterator[str]:
    lifecycle = container.lifecycle
    handlers: list[Probe | LifecycleHandler | None] = [
        container.liveness_probe,
        container.readiness_probe,
        container.startup_probe,
        *((lifecycle.post_start, lifecycle.pre_stop) if lifecycle is not None else ()),
    ]
    for handler in handlers:
        for action in (handler.http_get, handler.tcp_socket) if handler is not None else ():
            if action is not None and action.host:
                yield action.host


def privileged(subject: Subject, _minor: int) -> Violation | None:
    """Nobody is privileged."""
    bad = subject.where(lambda _container, own: own.privileged is True)
    return Violation("privileged", f"{named(bad)} must not set securityContext.privileged=true") if bad else None


def proc_mount(subject: Subject, minor: int) -> Violation | None:
    """Nobody sees all of /proc, but for pods with users of their own since 1.35."""
    if minor >= 35 and subject.has_own_users:
        return None
    return any_proc_mount(subject, minor)


def any_proc_mount(subject: Subject, _minor: int) -> Violation | None:
    """Nobody sees all of /proc."""
    found = {container.name: own.proc_mount for container, own in subject.containers()}
    bad = [name for name, value in found.items() if value not in (None, "", "Default")]
    if not bad:
        return None
    values = sorted({str(found[name]) for name in bad})
    return Violation("procMount", f"{named(bad)} must not set securityContext.procMount to {quoted(values)}")


def selinux_options(subject: Subject, minor: int) -> Violation | None:
    """Nobody chooses labels of SELinux beyond a few types."""
    shared = subject.shared.se_linux_options
    options = {container.name: own.se_linux_options for container, own in subject.containers()}
    bad = [name for name, found in options.items() if _is_bad_label(found, minor)]
    who = setters(_is_bad_label(shared, minor), bad)
    if not who:
        return None
    given = [found for found in (shared, *options.values()) if found is not None]
    types = sorted({found.type for found in given if minor < _SELINUX_TYPES.get(found.type, minor + 1)})
    said = [f"{number(types, 'type', 'types')} {quoted(types)}"] if types else []
    if any(found.user for found in given):
        said.append("user may not be set")
    if any(found.role for found in given):
        said.append("role may not be set")
    return Violation("seLinuxOptions", f"{who} set forbidden securityContext.seLinuxOptions: {'; '.join(said)}")


def _is_bad_label(options: SELinuxOptions | None, minor: int) -> bool:
    if options is None:
        return False
    return bool(options.user or options.role) or minor < _SELINUX_TYPES.get(options.type, minor + 1)


def seccomp_profile(subject: Subject, minor: int) -> Violation | None:
    """Nobody turns seccomp off; before 1.19 that was an annotation."""
    if minor < 19:
        return _seccomp_annotations(subject)
    shared = subject.shared.seccomp_profile
    profiles = {container.name: own.seccomp_profile for container, own in subject.containers()}
    bad = [name for name, found in profiles.items() if found is not None and found.type not in GOOD_PROFILES]
    who = setters(shared is not None and shared.type not in GOOD_PROFILES, bad)
    if not who:
        return None
    values = sorted({found.type for found in (shared, *profiles.values()) if found and found.type not in GOOD_PROFILES})
    return Violation("seccompProfile", f"{who} must not set securityContext.seccompProfile.type to {quoted(values)}")


def _seccomp_annotations(subject: Subject) -> Violation | None:
    names = {SECCOMP_OF_POD, *(f"{SECCOMP_OF_CONTAINER}{container.name}" for container, _ in subject.containers())}
    bad = sorted(
        f"{key}={json.dumps(value)}"
        for key, value in subject.annotations
        if key in names and value not in ("runtime/default", "docker/default") and not value.startswith("localhost/")
    )
    if not bad:
        return None
    return Violation("seccompProfile", f"forbidden {number(bad, 'annotation', 'annotations')} {', '.join(bad)}")


def sysctls(subject: Subject, minor: int) -> Violation | None:
    """Nobody sets kernel parameters beyond those that concern the pod alone."""
    bad = [found.name for found in subject.shared.sysctls if minor < _SYSCTLS.get(found.name, minor + 1)]
    return Violation("forbidden sysctls", ", ".join(bad)) if bad else None


def windows_host_process(subject: Subject, _minor: int) -> Violation | None:
    """Nobody is a process of a Windows host."""
    shared = subject.shared.windows_options
    bad = subject.where(
        lambda _container, own: own.windows_options is not None and own.windows_options.host_process is True
    )
    who = setters(shared is not None and shared.host_process is True, bad)
    text = f"{who} must not set securityContext.windowsOptions.hostProcess=true"
    return Violation("hostProcess", text) if who else None
