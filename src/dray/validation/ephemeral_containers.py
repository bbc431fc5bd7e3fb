"""Containers that are put into a pod while it runs, to look at it: `kubectl debug`, through a path of their own."""

from __future__ import annotations

from typing import Any, Final

from msgspec.structs import replace

from dray.api.field import FieldError, duplicate, forbidden
from dray.api.generated.core import EphemeralContainer, Pod, PodSpec
from dray.api.pods import containers_of
from dray.validation import check
from dray.validation.containers import PodParts, validate_container
from dray.validation.context import Errors
from dray.validation.metadata import with_metadata

PATH: Final = "spec.ephemeralContainers"
_NOT_FOR_THEM: Final = (
    "lifecycle",
    "liveness_probe",
    "ports",
    "readiness_probe",
    "resize_policy",
    "resources",
    "restart_policy",
    "restart_policy_rules",
    "startup_probe",
)


def with_ephemeral_containers(old: Pod, wanted: Pod) -> Pod:
    """The stored pod with the ephemeral containers of the wanted one, and nothing else of it."""
    if wanted.spec.ephemeral_containers == old.spec.ephemeral_containers:
        return old
    spec = replace(old.spec, ephemeral_containers=wanted.spec.ephemeral_containers)
    return with_metadata(replace(old, spec=spec), generation=old.metadata.generation + 1)


def validate_ephemeral_containers(new: Pod, old: Pod) -> list[FieldError]:
    """What is wrong with the ephemeral containers of a pod; those that are there stay as they are."""
    errors: Errors = []
    spec = new.spec
    validate_debuggers(errors, spec, PATH, PodParts.of(spec, frozenset(volume.name for volume in spec.volumes)))
    now = {container.name: container for container in spec.ephemeral_containers}
    for container in old.spec.ephemeral_containers:
        if now.get(container.name) != container:
            what = "changed" if container.name in now else "removed"
            errors.append(forbidden(PATH, f'the ephemeral container "{container.name}" may not be {what}'))
    return errors


def validate_debuggers(errors: Errors, spec: PodSpec, path: str, parts: PodParts) -> None:
    """Ephemeral containers by themselves, with names that no other container has."""
    others = frozenset(container.name for container in containers_of(spec))
    taken = set(others)
    for index, container in enumerate(spec.ephemeral_containers):
        inner = f"{path}[{index}]"
        _validate(errors, container, inner, others, parts)
        if container.name in taken:
            errors.append(duplicate(f"{inner}.name", container.name))
        taken.add(container.name)


def _validate(
    errors: Errors, container: EphemeralContainer, path: str, others: frozenset[str], parts: PodParts
) -> None:
    validate_container(errors, container, path, parts)
    for field in _NOT_FOR_THEM:
        value: Any = getattr(container, field)
        if value is not None and value != () and value != type(value)():
            errors.append(forbidden(f"{path}.{_wire_name(field)}", "cannot be set for an ephemeral container"))
    target = container.target_container_name
    if target and target not in others:
        check.not_found(errors, f"{path}.targetContainerName", target)


def _wire_name(field: str) -> str:
    first, *rest = field.split("_")
    return first + "".join(word.capitalize() for word in rest)
