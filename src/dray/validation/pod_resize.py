"""Resizing a pod: how much cpu and memory its containers may have, changed while it is there (`pods/resize`).

Nodes that can do it say so, by telling in the status what each running container has. Neither `dray node` nor simulated
nodes do, so on those only pods that do not run yet can be resized, and the others are refused as in Kubernetes.
"""

from __future__ import annotations

from typing import Final

from msgspec.structs import replace

from dray.api.field import FieldError, forbidden, invalid
from dray.api.generated.core import Container, Pod, PodSpec, ResourceRequirements
from dray.api.pods import MIRROR_ANNOTATION
from dray.api.quantity import Quantity
from dray.validation.context import Context, Errors
from dray.validation.metadata import keep_system_metadata, metadata_for_status, with_metadata
from dray.validation.pod_spec import validate_pod_spec
from dray.validation.qos_class import qos_class

RESIZABLE: Final = ("cpu", "memory")


def resized(new: Pod, old: Pod, _ctx: Context) -> Pod:
    """The stored pod with the resources and resize policies of the wanted one; everything else stays."""
    spec = new.spec
    if _names(new.spec) == _names(old.spec):
        spec = replace(
            old.spec,
            containers=_merged(new.spec.containers, old.spec.containers),
            init_containers=_merged(new.spec.init_containers, old.spec.init_containers),
            resources=new.spec.resources,
        )
    kept = metadata_for_status(keep_system_metadata(new, old), old)
    changed: Pod = replace(kept, spec=old.spec if spec == old.spec else spec, status=old.status)
    if changed.spec is old.spec:
        return changed
    return with_metadata(changed, generation=old.metadata.generation + 1)


def _names(spec: PodSpec) -> tuple[list[str], list[str]]:
    return [entry.name for entry in spec.containers], [entry.name for entry in spec.init_containers]


def _merged(new: tuple[Container, ...], old: tuple[Container, ...]) -> tuple[Container, ...]:
    return tuple(
        replace(was, resources=now.resources, resize_policy=now.resize_policy)
        for now, was in zip(new, old, strict=True)
    )


def problems(new: Pod, old: Pod, _ctx: Context) -> list[FieldError]:
    """What is wrong with a resize."""
    if MIRROR_ANNOTATION in old.metadata.annotations:
        return [forbidden("", "static pods cannot be resized")]
    if old.spec.os is not None and old.spec.os.name == "windows":
        return [forbidden("", "windows pods cannot be resized")]
    errors: Errors = []
    validate_pod_spec(errors, new.spec, "spec", is_pod=True)
    if (old.status.qos_class or qos_class(old.spec)) != qos_class(new.spec):
        why = "Pod QOS Class may not change as a result of resizing"
        errors.append(invalid("spec", new.status.qos_class, why))
    if not _is_supported(old):
        errors.append(forbidden("spec", "Pod running on node without support for resize"))
    if new.spec.resources != old.spec.resources:
        errors.append(forbidden("spec.resources", "resources of a pod as a whole cannot be resized"))
    if _check_order(errors, new.spec, old.spec):
        _check_containers(errors, new.spec, old.spec)
    return errors


def _is_supported(pod: Pod) -> bool:
    """Whether the node says what running containers have; nobody knows before one runs."""
    running = next((entry for entry in pod.status.container_statuses if entry.state.running is not None), None)
    return running is None or running.resources is not None


def _check_order(errors: Errors, new: PodSpec, old: PodSpec) -> bool:
    """Whether the containers are the same ones, so that they can be compared."""
    before = len(errors)
    for field, now, was in (
        ("containers", new.containers, old.containers),
        ("initContainers", new.init_containers, old.init_containers),
    ):
        if len(now) != len(was):
            errors.append(forbidden(f"spec.{field}", f"{field} may not be added or removed on resize"))
            continue
        for index, (entry, stored) in enumerate(zip(now, was, strict=True)):
            if entry.name != stored.name:
                where = f"spec.{field}[{index}].name"
                errors.append(forbidden(where, f"{field} may not be renamed or reordered on resize"))
    return len(errors) == before


def _check_containers(errors: Errors, new: PodSpec, old: PodSpec) -> None:
    for index, (now, was) in enumerate(zip(new.init_containers, old.init_containers, strict=True)):
        where = f"spec.initContainers[{index}]"
        if was.restart_policy != "Always":
            if now != was:
                errors.append(forbidden(where, "resources for non-sidecar init containers are immutable"))
            continue
        _check_removed(errors, now.resources, was.resources, f"{where}.resources")
        if _without_resizable(now) != _without_resizable(was):
            errors.append(forbidden(where, "only cpu and memory resources for sidecar containers are mutable"))
    for index, (now, was) in enumerate(zip(new.containers, old.containers, strict=True)):
        _check_removed(errors, now.resources, was.resources, f"spec.containers[{index}].resources")
        if _without_resizable(now) != _without_resizable(was):
            errors.append(forbidden("spec", "only cpu and memory resources are mutable"))


def _check_removed(errors: Errors, new: ResourceRequirements, old: ResourceRequirements, path: str) -> None:
    if not old.requests.keys() <= new.requests.keys():
        errors.append(forbidden(f"{path}.requests", "resource requests cannot be removed"))
    if not old.limits.keys() <= new.limits.keys():
        errors.append(forbidden(f"{path}.limits", "resource limits cannot be removed"))


def _without_resizable(container: Container) -> Container:
    """A container without what a resize may change."""

    def others(amounts: dict[str, Quantity]) -> dict[str, Quantity]:
        return {name: amount for name, amount in amounts.items() if name not in RESIZABLE}

    given = container.resources
    left = replace(given, requests=others(given.requests), limits=others(given.limits))
    return replace(container, resources=left, resize_policy=())
