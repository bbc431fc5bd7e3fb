"""Which pods answer for a Service, and at which ports."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from dray.api.generated.core import ObjectReference, Pod, Service, ServicePort
from dray.api.pods import is_finished, is_ready


class Port(msgspec.Struct, frozen=True):
    """A port of pods: the name is that of the Service's port."""

    name: str
    number: int
    protocol: str
    app_protocol: str | None = None


class Target(msgspec.Struct, frozen=True):
    """A pod that answers for a Service."""

    address: str
    node: str
    hostname: str
    reference: ObjectReference
    is_serving: bool
    is_terminating: bool
    is_ready: bool
    """Whether to go there: it serves and stays, or the Service wants everybody."""


Group = dict[tuple[Port, ...], list[Target]]
"""Pods by their ports: a port that a Service knows by name may be another one in each pod."""


def has_selector(service: Service) -> bool:
    """Whether it is ours to say where the pods are."""
    return bool(service.spec.selector) and service.spec.type != "ExternalName"


def targets(service: Service, pods: Iterable[Pod]) -> Group:
    """The pods of a Service that have an address, by name."""
    groups: Group = {}
    # Numbers are the same in all pods; names are looked up in each.
    same = all(isinstance(port.target_port, int) for port in service.spec.ports)
    ports: tuple[Port, ...] | None = None
    for pod in sorted(pods, key=lambda pod: pod.metadata.name):
        if pod.status.pod_ip and not is_finished(pod):
            if ports is None or not same:
                ports = _ports(service, pod)
            groups.setdefault(ports, []).append(_target(service, pod))
    return groups


def _target(service: Service, pod: Pod) -> Target:
    meta = pod.metadata
    serving, leaving = is_ready(pod), meta.deletion_timestamp is not None
    is_named = pod.spec.hostname and pod.spec.subdomain == service.metadata.name
    return Target(
        address=pod.status.pod_ip,
        node=pod.spec.node_name,
        hostname=pod.spec.hostname if is_named else "",
        reference=ObjectReference(kind="Pod", namespace=meta.namespace, name=meta.name, uid=meta.uid),
        is_serving=serving,
        is_terminating=leaving,
        is_ready=service.spec.publish_not_ready_addresses or (serving and not leaving),
    )


def _ports(service: Service, pod: Pod) -> tuple[Port, ...]:
    found = []
    for port in service.spec.ports:
        number = _number(port, pod)
        if number is not None:
            found.append(Port(port.name, number, port.protocol or "TCP", port.app_protocol))
    return tuple(found)


def _number(port: ServicePort, pod: Pod) -> int | None:
    """The number of a target port in a pod; None if it has no port of that name."""
    wanted = port.target_port
    if isinstance(wanted, int):
        return wanted or port.port
    for container in (*pod.spec.containers, *pod.spec.init_containers):
        for own in container.ports:
            if own.name == wanted and (own.protocol or "TCP") == (port.protocol or "TCP"):
                return own.container_port
    return None
