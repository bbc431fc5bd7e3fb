"""The Endpoints of a Service as they should be."""

from __future__ import annotations

from msgspec.structs import replace

from dray.api.generated.core import EndpointAddress, EndpointPort, Endpoints, EndpointSubset, Service
from dray.api.meta import ObjectMeta
from dray.controllers.endpoints.slices import HEADLESS
from dray.controllers.endpoints.targets import Group, Port, Target

MANAGED_BY = "endpoints.kubernetes.io/managed-by"
MANAGER = "endpoint-controller"
CAPACITY = "endpoints.kubernetes.io/over-capacity"
MOST_ADDRESSES = 1000


def wanted_endpoints(service: Service, groups: Group, old: Endpoints | None) -> Endpoints:
    """What the object should be, from what it is: ready addresses first, a thousand of all at most."""
    meta = service.metadata
    labels = {**meta.labels, MANAGED_BY: MANAGER}
    if service.spec.cluster_ip == "None":
        labels[HEADLESS] = ""
    found = old or Endpoints(
        kind="Endpoints", api_version="v1", metadata=ObjectMeta(name=meta.name, namespace=meta.namespace)
    )
    annotations = {name: value for name, value in found.metadata.annotations.items() if name != CAPACITY}
    if sum(len(group) for group in groups.values()) > MOST_ADDRESSES:
        annotations[CAPACITY] = "truncated"
    kept = replace(found.metadata, labels=labels, annotations=annotations)
    return replace(found, metadata=kept, subsets=_subsets(groups))


def _subsets(groups: Group) -> tuple[EndpointSubset, ...]:
    left = MOST_ADDRESSES
    made = []
    for ports, found in groups.items():
        staying = [target for target in found if target.is_ready or not target.is_terminating]
        staying = sorted(staying, key=lambda target: not target.is_ready)[:left]
        left -= len(staying)
        if staying:
            ready = tuple(_address(target) for target in staying if target.is_ready)
            not_ready = tuple(_address(target) for target in staying if not target.is_ready)
            made.append(EndpointSubset(addresses=ready, not_ready_addresses=not_ready, ports=tuple(map(_port, ports))))
    return tuple(made)


def _address(target: Target) -> EndpointAddress:
    return EndpointAddress(
        ip=target.address, hostname=target.hostname, node_name=target.node or None, target_ref=target.reference
    )


def _port(port: Port) -> EndpointPort:
    return EndpointPort(name=port.name, port=port.number, protocol=port.protocol, app_protocol=port.app_protocol)
