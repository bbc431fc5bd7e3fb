"""Defaults of pods and of the pod templates in workloads."""

from __future__ import annotations

import re
from typing import Any, Final, TypeVar

from msgspec.structs import replace

from dray.api.generated.core import (
    Container,
    ContainerPort,
    DownwardAPIVolumeFile,
    EmptyDirVolumeSource,
    EnvVar,
    EphemeralContainer,
    HTTPGetAction,
    Lifecycle,
    LifecycleHandler,
    Pod,
    PodIP,
    PodSecurityContext,
    PodSpec,
    PodStatus,
    Probe,
    ResourceRequirements,
    Volume,
)
from dray.api.quantity import Quantity
from dray.api.sharing import remembered
from dray.api.times import Time
from dray.api.well_known import DEFAULT_SCHEDULER
from dray.validation.volumes import SOURCES

GRACE_SECONDS: Final = 30
FILE_MODE: Final = 0o644
TOKEN_SECONDS: Final = 3600
_MILLI: Final = 10**6
# A tag follows the last colon after the last slash; a digest follows an @.
_HOST: Final = r"[a-zA-Z0-9](?:[a-zA-Z0-9.-]*[a-zA-Z0-9])?(?::[0-9]+)?"
_PART: Final = r"[a-z0-9]+(?:(?:[._]|__|-+)[a-z0-9]+)*"
_IMAGE: Final = re.compile(
    rf"(?:{_HOST}/)?{_PART}(?:/{_PART})*(?::(?P<tag>\w[\w.-]{{0,127}}))?"
    r"(?P<digest>@[A-Za-z0-9+._-]+:[0-9a-fA-F]{32,})?",
    re.ASCII,
)

AnyContainer = TypeVar("AnyContainer", Container, EphemeralContainer)


def default_pod(pod: Pod, _now: Time) -> Pod:
    """A pod with every default of Kubernetes."""
    spec = _default_for_pods(pod.spec)
    return default_pod_status(pod if spec is pod.spec else replace(pod, spec=spec))


@remembered
def _default_for_pods(spec: PodSpec) -> PodSpec:
    """What only pods have, besides what pod templates have, too. A spec that has all of it stays the same object."""
    given, spec = spec, default_pod_spec(spec)
    changes: dict[str, Any] = {}
    if spec.enable_service_links is None:
        changes["enable_service_links"] = True
    if spec.termination_grace_period_seconds is not None and spec.termination_grace_period_seconds < 0:
        changes["termination_grace_period_seconds"] = 1
    changes["containers"] = tuple(_default_for_pod(entry, spec.host_network) for entry in spec.containers)
    if spec.init_containers:
        changes["init_containers"] = tuple(_default_for_pod(entry, spec.host_network) for entry in spec.init_containers)
    spec = replace(spec, **changes)
    return given if spec == given else spec


def default_pod_status(pod: Pod) -> Pod:
    """A pod with the defaults of its status."""
    status = _default_status(pod.status)
    return pod if status is pod.status else replace(pod, status=status)


def default_pod_spec(spec: PodSpec) -> PodSpec:
    """What pods and pod templates have in common."""
    changes: dict[str, Any] = {}
    account = spec.service_account_name or spec.service_account
    if account != spec.service_account_name or account != spec.service_account:
        changes.update(service_account_name=account, service_account=account)
    if not spec.dns_policy:
        changes["dns_policy"] = "ClusterFirst"
    if not spec.restart_policy:
        changes["restart_policy"] = "Always"
    if spec.security_context is None:
        changes["security_context"] = PodSecurityContext()
    if spec.termination_grace_period_seconds is None:
        changes["termination_grace_period_seconds"] = GRACE_SECONDS
    if not spec.scheduler_name:
        changes["scheduler_name"] = DEFAULT_SCHEDULER
    changes["containers"] = tuple(default_container(entry) for entry in spec.containers)
    if spec.init_containers:
        changes["init_containers"] = tuple(default_container(entry) for entry in spec.init_containers)
    if spec.ephemeral_containers:
        changes["ephemeral_containers"] = tuple(default_container(entry) for entry in spec.ephemeral_containers)
    if spec.volumes:
        changes["volumes"] = tuple(_default_volume(volume) for volume in spec.volumes)
    if spec.overhead:
        changes["overhead"] = in_thousandths(spec.overhead)
    return replace(spec, **changes)


def default_container(container: AnyContainer) -> AnyContainer:
    """A container with its policies, ports, probes and references completed."""
    changes: dict[str, Any] = {}
    if not container.image_pull_policy:
        changes["image_pull_policy"] = _pull_policy(container.image)
    if not container.termination_message_path:
        changes["termination_message_path"] = "/dev/termination-log"
    if not container.termination_message_policy:
        changes["termination_message_policy"] = "File"
    if any(not port.protocol for port in container.ports):
        changes["ports"] = tuple(_default_port(port) for port in container.ports)
    if container.env:
        changes["env"] = tuple(_default_variable(variable) for variable in container.env)
    for field in ("liveness_probe", "readiness_probe", "startup_probe"):
        probe: Probe | None = getattr(container, field)
        if probe is not None:
            changes[field] = _default_probe(probe)
    if container.lifecycle is not None:
        changes["lifecycle"] = _default_lifecycle(container.lifecycle)
    if container.resources.limits or container.resources.requests:
        changes["resources"] = _default_resources(container.resources)
    return replace(container, **changes)


def _default_for_pod(container: Container, host_network: bool) -> Container:
    """Pods, as against templates: requests follow limits, and host ports follow ports on the host's network."""
    resources = container.resources
    if resources.limits and not resources.limits.keys() <= resources.requests.keys():
        requests = {**resources.requests}
        requests.update((name, value) for name, value in resources.limits.items() if name not in requests)
        container = replace(container, resources=replace(resources, requests=requests))
    if host_network and container.ports:
        ports = tuple(
            port if port.host_port else replace(port, host_port=port.container_port) for port in container.ports
        )
        container = replace(container, ports=ports)
    return container


def _pull_policy(image: str) -> str:
    """An image without tag means the latest one, which is pulled every time; a digest never changes.

    What is no reference to an image at all is pulled if it is not there, as in Kubernetes.
    """
    match = _IMAGE.fullmatch(image)
    if match is None:
        return "IfNotPresent"
    tag = match["tag"] or ("" if match["digest"] else "latest")
    return "Always" if tag == "latest" else "IfNotPresent"


def _default_port(port: ContainerPort) -> ContainerPort:
    return port if port.protocol else replace(port, protocol="TCP")


def _default_variable(variable: EnvVar) -> EnvVar:
    source = variable.value_from
    if source is None or source.field_ref is None or source.field_ref.api_version:
        return variable
    reference = replace(source.field_ref, api_version="v1")
    return replace(variable, value_from=replace(source, field_ref=reference))


def _default_probe(probe: Probe) -> Probe:
    return replace(
        probe,
        timeout_seconds=probe.timeout_seconds or 1,
        period_seconds=probe.period_seconds or 10,
        success_threshold=probe.success_threshold or 1,
        failure_threshold=probe.failure_threshold or 3,
        http_get=_default_http(probe.http_get),
        grpc=replace(probe.grpc, service=probe.grpc.service or "") if probe.grpc is not None else None,
    )


def _default_http(action: HTTPGetAction | None) -> HTTPGetAction | None:
    if action is None:
        return None
    return replace(action, path=action.path or "/", scheme=action.scheme or "HTTP")


def _default_lifecycle(lifecycle: Lifecycle) -> Lifecycle:
    def default(handler: LifecycleHandler | None) -> LifecycleHandler | None:
        return None if handler is None else replace(handler, http_get=_default_http(handler.http_get))

    return replace(lifecycle, post_start=default(lifecycle.post_start), pre_stop=default(lifecycle.pre_stop))


def _default_resources(resources: ResourceRequirements) -> ResourceRequirements:
    return replace(resources, limits=in_thousandths(resources.limits), requests=in_thousandths(resources.requests))


def in_thousandths(amounts: dict[str, Quantity]) -> dict[str, Quantity]:
    """Amounts rounded up to thousandths, which is as fine as Kubernetes keeps them."""
    if all(value.nanos % _MILLI == 0 for value in amounts.values()):
        return amounts
    return {
        name: Quantity.parse(f"{-(-value.nanos // _MILLI)}m") if value.nanos % _MILLI else value
        for name, value in amounts.items()
    }


def _default_volume(volume: Volume) -> Volume:
    if all(getattr(volume, attribute) is None for attribute, _ in SOURCES):
        return replace(volume, empty_dir=EmptyDirVolumeSource())
    changes: dict[str, Any] = {}
    for field in ("secret", "config_map", "downward_api", "projected"):
        source = getattr(volume, field)
        if source is not None and source.default_mode is None:
            changes[field] = replace(source, default_mode=FILE_MODE)
    if volume.downward_api is not None:
        facts = changes.get("downward_api", volume.downward_api)
        changes["downward_api"] = replace(facts, items=tuple(map(_default_fact, facts.items)))
    if volume.ephemeral is not None and volume.ephemeral.volume_claim_template is not None:
        claim = volume.ephemeral.volume_claim_template
        mode = claim.spec.volume_mode or "Filesystem"
        template = replace(claim, spec=replace(claim.spec, volume_mode=mode))
        changes["ephemeral"] = replace(volume.ephemeral, volume_claim_template=template)
    if volume.host_path is not None and volume.host_path.type is None:
        changes["host_path"] = replace(volume.host_path, type="")
    if volume.image is not None and not volume.image.pull_policy:
        changes["image"] = replace(volume.image, pull_policy=_pull_policy(volume.image.reference))
    if volume.projected is not None:
        projected = changes.get("projected", volume.projected)
        changes["projected"] = replace(projected, sources=tuple(map(_default_projection, projected.sources)))
    return replace(volume, **changes) if changes else volume


def _default_fact(file: DownwardAPIVolumeFile) -> DownwardAPIVolumeFile:
    if file.field_ref is None or file.field_ref.api_version:
        return file
    return replace(file, field_ref=replace(file.field_ref, api_version="v1"))


def _default_projection(source: Any) -> Any:
    token, facts = source.service_account_token, source.downward_api
    if facts is not None:
        source = replace(source, downward_api=replace(facts, items=tuple(map(_default_fact, facts.items))))
    if token is None or token.expiration_seconds is not None:
        return source
    return replace(source, service_account_token=replace(token, expiration_seconds=TOKEN_SECONDS))


def _default_status(status: PodStatus) -> PodStatus:
    """`podIP` and the first of `podIPs` are the same."""
    if status.pod_ip and (not status.pod_ips or status.pod_ips[0].ip != status.pod_ip):
        return replace(status, pod_ips=(PodIP(ip=status.pod_ip),))
    if not status.pod_ip and status.pod_ips:
        return replace(status, pod_ip=status.pod_ips[0].ip)
    return status
