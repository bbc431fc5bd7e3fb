"""Security contexts of pods and containers: ids, profiles, and settings that exclude each other."""

from __future__ import annotations

import re
from typing import Final

from dray.api.field import duplicate, invalid, required
from dray.api.generated.core import AppArmorProfile, PodSecurityContext, SeccompProfile, SecurityContext, Sysctl
from dray.validation import check
from dray.validation.context import Errors

PROFILES: Final = ("Localhost", "RuntimeDefault", "Unconfined")
PROC_MOUNTS: Final = ("Default", "Unmasked")
_LARGEST_ID: Final = 2**31 - 1
_PROFILE_LENGTH: Final = 4095
_SYSCTL_LENGTH: Final = 253
_SYSCTL: Final = re.compile(r"([a-z0-9]([-_a-z0-9]*[a-z0-9])?[./])*[a-z0-9]([-_a-z0-9]*[a-z0-9])?")


def validate_pod_security(errors: Errors, context: PodSecurityContext, path: str) -> None:
    """What holds for all containers of a pod."""
    _validate_id(errors, context.fs_group, f"{path}.fsGroup")
    _validate_id(errors, context.run_as_user, f"{path}.runAsUser")
    _validate_id(errors, context.run_as_group, f"{path}.runAsGroup")
    for index, group in enumerate(context.supplemental_groups):
        _validate_id(errors, group, f"{path}.supplementalGroups[{index}]")
    for field, policy, allowed in (
        ("fsGroupChangePolicy", context.fs_group_change_policy, ("Always", "OnRootMismatch")),
        ("supplementalGroupsPolicy", context.supplemental_groups_policy, ("Merge", "Strict")),
        ("seLinuxChangePolicy", context.se_linux_change_policy, ("MountOption", "Recursive")),
    ):
        if policy is not None:
            check.one_of(errors, f"{path}.{field}", policy, allowed)
    _validate_sysctls(errors, context.sysctls, f"{path}.sysctls")
    _validate_profiles(errors, context, path)


def validate_container_security(errors: Errors, context: SecurityContext, path: str, *, has_own_users: bool) -> None:
    """What holds for one container; `has_own_users`: its pod does not share the users of the host."""
    _validate_id(errors, context.run_as_user, f"{path}.runAsUser")
    _validate_id(errors, context.run_as_group, f"{path}.runAsGroup")
    if context.proc_mount is not None:
        check.one_of(errors, f"{path}.procMount", context.proc_mount, PROC_MOUNTS)
        if context.proc_mount == "Unmasked" and not has_own_users:
            errors.append(invalid(f"{path}.procMount", context.proc_mount, "needs `hostUsers: false`"))
    _validate_profiles(errors, context, path)
    if context.allow_privilege_escalation is False and context.privileged:
        errors.append(invalid(path, None, "a privileged container may gain privileges: see allowPrivilegeEscalation"))


def _validate_id(errors: Errors, number: int | None, path: str) -> None:
    if number is not None and not 0 <= number <= _LARGEST_ID:
        errors.append(invalid(path, number, f"must be between 0 and {_LARGEST_ID}"))


def _validate_sysctls(errors: Errors, sysctls: tuple[Sysctl, ...], path: str) -> None:
    seen: set[str] = set()
    for index, sysctl in enumerate(sysctls):
        where = f"{path}[{index}].name"
        if not sysctl.name:
            errors.append(required(where))
        elif len(sysctl.name) > _SYSCTL_LENGTH or _SYSCTL.fullmatch(sysctl.name) is None:
            errors.append(invalid(where, sysctl.name, "must be a name such as net.ipv4.tcp_syncookies"))
        elif sysctl.name in seen:
            errors.append(duplicate(where, sysctl.name))
        seen.add(sysctl.name)


def _validate_profiles(errors: Errors, context: PodSecurityContext | SecurityContext, path: str) -> None:
    if context.seccomp_profile is not None:
        _validate_profile(errors, context.seccomp_profile, f"{path}.seccompProfile")
        local = context.seccomp_profile.localhost_profile or ""
        if context.seccomp_profile.type == "Localhost" and (local.startswith("/") or ".." in local.split("/")):
            where = f"{path}.seccompProfile.localhostProfile"
            errors.append(invalid(where, local, "must be a relative path without '..'"))
    if context.app_armor_profile is not None:
        _validate_profile(errors, context.app_armor_profile, f"{path}.appArmorProfile")
        local = context.app_armor_profile.localhost_profile or ""
        if local != local.strip() or len(local) > _PROFILE_LENGTH:
            where = f"{path}.appArmorProfile.localhostProfile"
            errors.append(invalid(where, local, f"must have no spaces around it and at most {_PROFILE_LENGTH} letters"))


def _validate_profile(errors: Errors, profile: SeccompProfile | AppArmorProfile, path: str) -> None:
    """Of a known type; only one on the node has a name."""
    check.required_one_of(errors, f"{path}.type", profile.type, PROFILES)
    where = f"{path}.localhostProfile"
    if profile.type == "Localhost":
        if not profile.localhost_profile:
            errors.append(required(where, "needed with type Localhost"))
    elif profile.localhost_profile is not None:
        errors.append(invalid(where, profile.localhost_profile, "may be given with type Localhost only"))
