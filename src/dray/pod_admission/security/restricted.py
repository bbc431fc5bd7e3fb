"""The level `restricted`: what a hardened pod must say, besides all that `baseline` forbids."""

from __future__ import annotations

from typing import Final

from dray.api.generated.core import Volume
from dray.pod_admission.security import baseline
from dray.pod_admission.security.subject import Subject, Violation, named, number, quoted, setters
from dray.validation.volumes import SOURCES

_GOOD_VOLUMES: Final = frozenset(
    (
        "config_map",
        "csi",
        "downward_api",
        "empty_dir",
        "ephemeral",
        "image",
        "persistent_volume_claim",
        "projected",
        "secret",
    )
)


def privilege_escalation(subject: Subject, minor: int) -> Violation | None:
    """Every container says that it gains no privileges."""
    if minor >= 25 and subject.is_windows:
        return None
    bad = subject.where(lambda _container, own: own.allow_privilege_escalation is not False)
    if not bad:
        return None
    detail = f"{named(bad)} must set securityContext.allowPrivilegeEscalation=false"
    return Violation("allowPrivilegeEscalation != false", detail)


def capabilities(subject: Subject, minor: int) -> Violation | None:
    """Every container drops all capabilities; they may add one."""
    if minor >= 25 and subject.is_windows:
        return None
    keeping = subject.where(lambda _container, own: own.capabilities is None or "ALL" not in own.capabilities.drop)
    added = {
        container.name: [one for one in own.capabilities.add if one != "NET_BIND_SERVICE"]
        for container, own in subject.containers()
        if own.capabilities is not None
    }
    details = [f'{named(keeping)} must set securityContext.capabilities.drop=["ALL"]'] if keeping else []
    more = baseline.too_many_capabilities(added, "")
    if more is not None:
        details.append(more.detail)
    return Violation("unrestricted capabilities", "; ".join(details)) if details else None


def volumes(subject: Subject, _minor: int) -> Violation | None:
    """Only volumes that are made for the pod, or that somebody else answers for."""
    types = {volume.name: _type_of(volume) for volume in subject.spec.volumes}
    bad = [name for name, found in types.items() if found]
    if not bad:
        return None
    values = sorted({types[name] for name in bad})
    what = number(values, "restricted volume type", "restricted volume types")
    detail = f"{number(bad, 'volume', 'volumes')} {quoted(bad)} {number(bad, 'uses', 'use')} {what} {quoted(values)}"
    return Violation("restricted volume types", detail)


def _type_of(volume: Volume) -> str:
    """The field of a source that is not allowed; empty if it is."""
    for attribute, field in SOURCES:
        if getattr(volume, attribute) is not None:
            return "" if attribute in _GOOD_VOLUMES else field
    return "unknown"


def run_as_non_root(subject: Subject, minor: int) -> Violation | None:
    """Every container says, for itself or through the pod, that it is not root."""
    if minor >= 35 and subject.has_own_users:
        return None
    shared = subject.shared.run_as_non_root
    said_no = subject.where(lambda _container, own: own.run_as_non_root is False)
    who = setters(shared is False, said_no)
    if who:
        return Violation("runAsNonRoot != true", f"{who} must not set securityContext.runAsNonRoot=false")
    silent = subject.where(lambda _container, own: own.run_as_non_root is None and not shared)
    if not silent:
        return None
    return Violation("runAsNonRoot != true", f"pod or {named(silent)} must set securityContext.runAsNonRoot=true")


def run_as_user(subject: Subject, minor: int) -> Violation | None:
    """Nobody asks to be root."""
    if minor >= 35 and subject.has_own_users:
        return None
    who = setters(subject.shared.run_as_user == 0, subject.where(lambda _container, own: own.run_as_user == 0))
    return Violation("runAsUser=0", f"{who} must not set runAsUser=0") if who else None


def seccomp_profile(subject: Subject, minor: int) -> Violation | None:
    """Every container says, for itself or through the pod, which seccomp profile it has."""
    if minor >= 25 and subject.is_windows:
        return None
    wrong = baseline.seccomp_profile(subject, minor)
    if wrong is not None or subject.shared.seccomp_profile is not None:
        return wrong
    silent = subject.where(lambda _container, own: own.seccomp_profile is None)
    if not silent:
        return None
    detail = f'pod or {named(silent)} must set securityContext.seccompProfile.type to "RuntimeDefault" or "Localhost"'
    return Violation("seccompProfile", detail)
