"""Containers of pods."""

from __future__ import annotations

from typing import Any, Final

import msgspec

from dray.api.field import duplicate, forbidden, invalid, required
from dray.api.generated.core import (
    Container,
    ContainerPort,
    EnvFromSource,
    EnvVar,
    EphemeralContainer,
    PodSpec,
    VolumeMount,
)
from dray.validation import check, names, pod_facts
from dray.validation.config_data import validate_key
from dray.validation.container_policies import validate_resizes, validate_restarts
from dray.validation.context import Errors
from dray.validation.pod_claims import validate_container_claims
from dray.validation.pod_security import validate_container_security
from dray.validation.probes import validate_lifecycle, validate_probes
from dray.validation.resource_amounts import validate_requirements
from dray.validation.volume_files import validate_descending_path
from dray.validation.volumes import PULL_POLICIES

PROTOCOLS: Final = ("SCTP", "TCP", "UDP")
PROPAGATIONS: Final = ("Bidirectional", "HostToContainer", "None")
RECURSIONS: Final = ("Disabled", "Enabled", "IfPossible")
MESSAGE_POLICIES: Final = ("File", "FallbackToLogsOnError")


class PodParts(msgspec.Struct, frozen=True):
    """What containers refer to, and what they depend on."""

    volumes: frozenset[str] = frozenset()
    claims: frozenset[str] = frozenset()
    restart_policy: str = ""
    grace: int | None = None
    system: str = ""
    has_own_users: bool = False

    @staticmethod
    def of(spec: PodSpec, volumes: frozenset[str]) -> PodParts:
        """The parts of a pod, and the volumes that can be mounted."""
        return PodParts(
            volumes=volumes,
            claims=frozenset(claim.name for claim in spec.resource_claims),
            restart_policy=spec.restart_policy,
            grace=spec.termination_grace_period_seconds,
            system=spec.os.name if spec.os is not None else "",
            has_own_users=spec.host_users is False,
        )


def validate_containers(errors: Errors, containers: tuple[Container, ...], path: str, parts: PodParts) -> None:
    """The containers of a pod: at least one, with unique names and host ports."""
    if not containers:
        errors.append(required(path))
    for index, container in enumerate(containers):
        inner = f"{path}[{index}]"
        validate_container(errors, container, inner, parts)
        validate_probes(errors, container, inner)
        if container.lifecycle is not None:
            validate_lifecycle(errors, container.lifecycle, f"{inner}.lifecycle", parts.grace, parts.system)
        validate_restarts(errors, container, inner)
    _validate_unique_names(errors, containers, path, frozenset())
    _validate_host_ports(errors, containers, path)


def validate_init_containers(
    errors: Errors, containers: tuple[Container, ...], path: str, parts: PodParts, taken: frozenset[str]
) -> None:
    """Containers that run first; those with restartPolicy Always run along and may have probes."""
    for index, container in enumerate(containers):
        inner = f"{path}[{index}]"
        validate_container(errors, container, inner, parts)
        _validate_host_ports(errors, (container,), path)
        validate_restarts(errors, container, inner)
        if container.restart_policy == "Always":
            validate_probes(errors, container, inner)
            if container.lifecycle is not None:
                validate_lifecycle(errors, container.lifecycle, f"{inner}.lifecycle", parts.grace, parts.system)
            continue
        for field, value in (
            ("lifecycle", container.lifecycle),
            ("livenessProbe", container.liveness_probe),
            ("readinessProbe", container.readiness_probe),
            ("startupProbe", container.startup_probe),
        ):
            if value is not None:
                errors.append(forbidden(f"{inner}.{field}", "may be set only with restartPolicy Always"))
    _validate_unique_names(errors, containers, path, taken)


def validate_container(errors: Errors, container: Container | EphemeralContainer, path: str, parts: PodParts) -> None:
    """What holds for every container."""
    check.required_name(errors, f"{path}.name", container.name, names.dns_label)
    if not container.image:
        errors.append(required(f"{path}.image"))
    check.required_one_of(
        errors, f"{path}.terminationMessagePolicy", container.termination_message_policy, MESSAGE_POLICIES
    )
    check.required_one_of(errors, f"{path}.imagePullPolicy", container.image_pull_policy, PULL_POLICIES)
    if container.ports:
        _validate_ports(errors, container.ports, f"{path}.ports")
    if container.env:
        _validate_environment(errors, container.env, f"{path}.env")
    for index, source in enumerate(container.env_from):
        _validate_environment_source(errors, source, f"{path}.envFrom", index)
    if container.security_context is not None:
        validate_container_security(
            errors, container.security_context, f"{path}.securityContext", has_own_users=parts.has_own_users
        )
    if container.volume_mounts or container.volume_devices:
        _validate_mounts(errors, container, path, parts.volumes)
    validate_requirements(errors, container.resources, f"{path}.resources")
    validate_resizes(errors, container.resize_policy, f"{path}.resizePolicy", parts.restart_policy)
    if container.resources.claims:
        validate_container_claims(errors, container.resources.claims, f"{path}.resources.claims", parts.claims)


def validate_image_spaces(errors: Errors, containers: tuple[Container, ...], path: str) -> None:
    """Images of pods (not of templates) have no spaces around them."""
    for index, container in enumerate(containers):
        if container.image != container.image.strip():
            where = f"{path}[{index}].image"
            errors.append(invalid(where, container.image, "must not have spaces at its start or end"))


def _validate_unique_names(errors: Errors, containers: tuple[Container, ...], path: str, taken: frozenset[str]) -> None:
    seen = set(taken)
    for index, container in enumerate(containers):
        if container.name in seen:
            errors.append(duplicate(f"{path}[{index}].name", container.name))
        seen.add(container.name)


def _validate_ports(errors: Errors, ports: tuple[ContainerPort, ...], path: str) -> None:
    seen: set[str] = set()
    for index, port in enumerate(ports):
        inner = f"{path}[{index}]"
        if port.name:
            check.name(errors, f"{inner}.name", port.name, names.port_name)
            if port.name in seen:
                errors.append(duplicate(f"{inner}.name", port.name))
            seen.add(port.name)
        if port.container_port == 0:
            errors.append(required(f"{inner}.containerPort"))
        else:
            check.port(errors, f"{inner}.containerPort", port.container_port)
        if port.host_port:
            check.port(errors, f"{inner}.hostPort", port.host_port)
        check.required_one_of(errors, f"{inner}.protocol", port.protocol, PROTOCOLS)


def _validate_host_ports(errors: Errors, containers: tuple[Container, ...], path: str) -> None:
    seen: set[tuple[str, str, int]] = set()
    for index, container in enumerate(containers):
        for position, port in enumerate(container.ports):
            if port.host_port:
                key = (port.protocol, port.host_ip, port.host_port)
                if key in seen:
                    errors.append(duplicate(f"{path}[{index}].ports[{position}].hostPort", port.host_port))
                seen.add(key)


def _validate_environment(errors: Errors, variables: tuple[EnvVar, ...], path: str) -> None:
    for index, variable in enumerate(variables):
        inner = f"{path}[{index}]"
        check.required_name(errors, f"{inner}.name", variable.name, names.environment_name)
        if variable.value_from is None:
            continue
        sources = [getattr(variable.value_from, field) for field in variable.value_from.__struct_fields__]
        given = sum(source is not None for source in sources)
        if given != 1 or variable.value:
            detail = "exactly one source must be given, and no `value` besides"
            errors.append(invalid(f"{inner}.valueFrom", "", detail))
        _validate_sources(errors, variable.value_from, f"{inner}.valueFrom")


def _validate_environment_source(errors: Errors, source: EnvFromSource, path: str, index: int) -> None:
    inner = f"{path}[{index}]"
    if source.prefix:
        check.name(errors, f"{inner}.prefix", source.prefix, names.environment_name)
    for field, reference in (("configMapRef", source.config_map_ref), ("secretRef", source.secret_ref)):
        if reference is not None:
            check.required_name(errors, f"{inner}.{field}.name", reference.name, names.dns_subdomain)
    if (source.config_map_ref is None) == (source.secret_ref is None):
        # Kubernetes does not say which one.
        errors.append(invalid(path, "", f"entry {index}: exactly one of configMapRef and secretRef must be given"))


def _validate_sources(errors: Errors, sources: Any, path: str) -> None:
    if sources.field_ref is not None:
        pod_facts.validate_field(errors, sources.field_ref, f"{path}.fieldRef", pod_facts.IN_VARIABLES)
    if sources.resource_field_ref is not None:
        pod_facts.validate_resource(errors, sources.resource_field_ref, f"{path}.resourceFieldRef", in_file=False)
    for field, reference in (
        ("configMapKeyRef", sources.config_map_key_ref),
        ("secretKeyRef", sources.secret_key_ref),
    ):
        if reference is None:
            continue
        check.name(errors, f"{path}.{field}.name", reference.name, names.dns_subdomain)
        if reference.key:
            validate_key(errors, reference.key, f"{path}.{field}.key")
        else:
            errors.append(required(f"{path}.{field}.key"))


def _validate_mounts(
    errors: Errors, container: Container | EphemeralContainer, path: str, volumes: frozenset[str]
) -> None:
    mounted: set[str] = set()
    for index, mount in enumerate(container.volume_mounts):
        inner = f"{path}.volumeMounts[{index}]"
        if not mount.name:
            errors.append(required(f"{inner}.name"))
        if mount.name not in volumes:
            check.not_found(errors, f"{inner}.name", mount.name)
        if not mount.mount_path:
            errors.append(required(f"{inner}.mountPath"))
        if mount.mount_path in mounted:
            errors.append(invalid(f"{inner}.mountPath", mount.mount_path, "must be unique"))
        mounted.add(mount.mount_path)
        if mount.sub_path and mount.sub_path_expr:
            detail = "subPathExpr and subPath exclude each other"
            errors.append(invalid(f"{inner}.subPathExpr", mount.sub_path_expr, detail))
        for field, below in (("subPath", mount.sub_path), ("subPathExpr", mount.sub_path_expr)):
            validate_descending_path(errors, below, f"{path}.volumeMounts.{field}")  # Kubernetes does not say of which
        if mount.mount_propagation is not None:
            _validate_propagation(errors, container, mount.mount_propagation, f"{path}.volumeMounts.mountPropagation")
        if mount.recursive_read_only is not None:
            _validate_recursion(errors, mount, f"{path}.volumeMounts.recursiveReadOnly")
    _validate_devices(errors, container, f"{path}.volumeDevices", volumes)


def _validate_propagation(errors: Errors, container: Container | EphemeralContainer, given: str, path: str) -> None:
    """Who shares what it mounts with the node must be privileged."""
    check.one_of(errors, path, given, PROPAGATIONS)
    rights = container.security_context
    if given == "Bidirectional" and (rights is None or not rights.privileged):
        errors.append(forbidden(path, "Bidirectional mount propagation is available only to privileged containers"))


def _validate_recursion(errors: Errors, mount: VolumeMount, path: str) -> None:
    """What is read-only all the way down must be read-only, and is shared with nobody."""
    check.one_of(errors, path, mount.recursive_read_only or "", RECURSIONS)
    if mount.recursive_read_only not in RECURSIONS[1:]:
        return
    if not mount.read_only:
        errors.append(forbidden(path, "may only be specified when readOnly is true"))
    if mount.mount_propagation not in (None, "None"):
        errors.append(forbidden(path, "may only be specified when mountPropagation is None or not specified"))


def _validate_devices(
    errors: Errors, container: Container | EphemeralContainer, path: str, volumes: frozenset[str]
) -> None:
    """Volumes as devices: each once, at a path of its own, and not mounted besides."""
    mounts = container.volume_mounts
    taken_names, taken_paths = {mount.name for mount in mounts}, {mount.mount_path for mount in mounts}
    seen: set[str] = set()
    used: set[str] = set()
    for index, device in enumerate(container.volume_devices):
        inner = f"{path}[{index}]"
        if not device.name:
            errors.append(required(f"{inner}.name"))
        if device.name in seen:
            errors.append(invalid(f"{inner}.name", device.name, "must be unique"))
        if device.name not in volumes:
            check.not_found(errors, f"{inner}.name", device.name)
        if device.name in taken_names:
            errors.append(invalid(f"{inner}.name", device.name, "must not already exist in volumeMounts"))
        seen |= {device.name} - {""}
        if not device.device_path:
            errors.append(required(f"{inner}.devicePath"))
        if device.device_path in used:
            errors.append(invalid(f"{inner}.devicePath", device.device_path, "must be unique"))
        if device.device_path in taken_paths:
            told = "must not already exist as a path in volumeMounts"
            errors.append(invalid(f"{inner}.devicePath", device.device_path, told))
        if ".." in device.device_path.split("/"):
            errors.append(invalid(f"{inner}.devicePath", device.device_path, "can not contain backsteps ('..')"))
        else:
            used.add(device.device_path)
