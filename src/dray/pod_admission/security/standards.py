"""Which checks a level has in which version, and what they find."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple

from dray.api.generated.core import Pod, PodSpec
from dray.api.sharing import remembered
from dray.pod_admission.security import baseline, restricted
from dray.pod_admission.security.policy import BASELINE, LATEST, PRIVILEGED, Standard
from dray.pod_admission.security.subject import Check, Subject, Violation

NEWEST: Final = 37
"""The last version in which something changed here."""
_ANNOTATIONS: Final = (baseline.APP_ARMOR_ANNOTATION, baseline.SECCOMP_OF_POD, baseline.SECCOMP_OF_CONTAINER)
MOST_PODS: Final = 300
"""So many pods of a namespace are looked at when its labels change: it is done between two other requests."""


class _Entry(NamedTuple):
    check: Check
    since: int = 0
    instead_of: Check | None = None
    """The check of `baseline` that this one makes needless."""


# In the order in which Kubernetes tells what is wrong.
_BASELINE: Final = (
    _Entry(baseline.app_armor_profile),
    _Entry(baseline.capabilities),
    _Entry(baseline.host_namespaces),
    _Entry(baseline.host_path_volumes),
    _Entry(baseline.host_ports),
    _Entry(baseline.host_probes, 34),
    _Entry(baseline.privileged),
    _Entry(baseline.proc_mount),
    _Entry(baseline.selinux_options),
    _Entry(baseline.seccomp_profile),
    _Entry(baseline.sysctls),
    _Entry(baseline.windows_host_process),
)
_RESTRICTED: Final = (
    _Entry(restricted.privilege_escalation, 8),
    _Entry(restricted.capabilities, 22, baseline.capabilities),
    _Entry(baseline.any_proc_mount, 35, baseline.proc_mount),
    _Entry(restricted.volumes, 0, baseline.host_path_volumes),
    _Entry(restricted.run_as_non_root),
    _Entry(restricted.run_as_user, 23),
    _Entry(restricted.seccomp_profile, 19, baseline.seccomp_profile),
)


def violations(spec: PodSpec, annotations: Mapping[str, str], standard: Standard) -> tuple[Violation, ...]:
    """What a pod does that a standard forbids."""
    if standard.level == PRIVILEGED:
        return ()
    seen = tuple((key, value) for key, value in annotations.items() if key.startswith(_ANNOTATIONS))
    return _violations(spec, seen, standard)


@remembered
def _violations(spec: PodSpec, annotations: tuple[tuple[str, str], ...], standard: Standard) -> tuple[Violation, ...]:
    minor = NEWEST if standard.minor == LATEST else min(standard.minor, NEWEST)
    subject = Subject(spec, annotations)
    found = (check(subject, minor) for check in _checks(standard.level, minor))
    return tuple(violation for violation in found if violation is not None)


def _checks(level: str, minor: int) -> list[Check]:
    more = [entry for entry in _RESTRICTED if level != BASELINE and entry.since <= minor]
    needless = {entry.instead_of for entry in more}
    every = [entry for entry in _BASELINE if entry.since <= minor and entry.check not in needless]
    return [entry.check for entry in (*every, *more)]


def in_words(found: Iterable[Violation]) -> str:
    """Violations with who does it."""
    return ", ".join(f"{one.reason} ({one.detail})" if one.detail else one.reason for one in found)


def warnings_about(pods: Iterable[Pod], namespace: str, standard: Standard) -> list[str]:
    """What to tell whoever makes a namespace stricter than the pods in it are."""
    every = _first_of_each_controller(pods)
    by_reason: dict[str, list[str]] = {}
    for pod in every[:MOST_PODS]:
        found = violations(pod.spec, pod.metadata.annotations, standard)
        if found:
            by_reason.setdefault(", ".join(one.reason for one in found), []).append(pod.metadata.name)
    said = []
    if len(every) > MOST_PODS:
        said.append(
            f"new PodSecurity enforce level only checked against the first {MOST_PODS} of {len(every)} existing pods"
        )
    if by_reason:
        said.append(f'existing pods in namespace "{namespace}" violate the new PodSecurity enforce level "{standard}"')
    return said + sorted(f"{_names(names)}: {reason}" for reason, names in by_reason.items())


def _names(names: list[str]) -> str:
    others = len(names) - 1
    if not others:
        return names[0]
    return f"{min(names)} (and {others} other {'pod' if others == 1 else 'pods'})"


def _first_of_each_controller(pods: Iterable[Pod]) -> list[Pod]:
    """One pod of every controller, then the rest, which are likely like it."""
    first: list[Pod] = []
    rest: list[Pod] = []
    seen: set[str] = set()
    for pod in pods:
        owner = next((one.uid for one in pod.metadata.owner_references if one.controller), "")
        (rest if owner in seen else first).append(pod)
        if owner:
            seen.add(owner)
    return first + rest
