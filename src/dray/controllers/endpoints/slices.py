"""EndpointSlices as they should be: pods stay in the slice that they are in, and new ones fill what is there first."""

from __future__ import annotations

import msgspec
from msgspec.structs import replace

from dray.api.generated.core import Service
from dray.api.generated.discovery import Endpoint, EndpointConditions, EndpointPort, EndpointSlice
from dray.api.meta import ObjectMeta, OwnerReference
from dray.api.well_known import SERVICE_NAME
from dray.controllers.endpoints.targets import Group, Port, Target

MANAGED_BY = "endpointslice.kubernetes.io/managed-by"
MANAGER = "endpointslice-controller.k8s.io"
HEADLESS = "service.kubernetes.io/headless"
MOST_ENDPOINTS = 100


class Plan(msgspec.Struct, frozen=True):
    """What has to be written."""

    create: tuple[EndpointSlice, ...]
    update: tuple[EndpointSlice, ...]
    delete: tuple[EndpointSlice, ...]


def plan(service: Service, groups: Group, present: list[EndpointSlice]) -> Plan:
    """The difference between the slices of a Service and what they should be. Without pods, one empty slice is left."""
    wanted = {_endpoint_ports(ports): [_endpoint(target) for target in found] for ports, found in groups.items()}
    create: list[EndpointSlice] = []
    kept: list[tuple[EndpointSlice, EndpointSlice]] = []
    for ports, endpoints in (wanted or {(): []}).items():
        alike = [each for each in present if each.ports == ports and each.address_type == "IPv4"]
        filled, rest = _filled(alike, endpoints)
        used = [(old, some) for old, some in filled if some] or filled[: not endpoints]
        kept += [(old, _as_wanted(service, old, some)) for old, some in used]
        parts = [rest[at : at + MOST_ENDPOINTS] for at in range(0, len(rest), MOST_ENDPOINTS)]
        if not parts and not used:
            parts = [[]]
        blank = EndpointSlice(kind="EndpointSlice", api_version="discovery.k8s.io/v1", address_type="IPv4", ports=ports)
        create += [_as_wanted(service, blank, part) for part in parts]
    stay = {old.metadata.name for old, _ in kept}
    return Plan(
        create=tuple(create),
        update=tuple(new for old, new in kept if new != old),
        delete=tuple(each for each in present if each.metadata.name not in stay),
    )


def _filled(
    alike: list[EndpointSlice], endpoints: list[Endpoint]
) -> tuple[list[tuple[EndpointSlice, list[Endpoint]]], list[Endpoint]]:
    """The slices with what each keeps and gets, and what finds no place in them."""
    waiting = {_key(endpoint): endpoint for endpoint in endpoints}
    filled = []
    for old in sorted(alike, key=lambda each: each.metadata.name):
        stays = [waiting.pop(_key(each)) for each in old.endpoints if _key(each) in waiting]
        filled.append((old, stays))
    rest = list(waiting.values())
    for _, some in filled:
        free = MOST_ENDPOINTS - len(some)
        some += rest[:free]
        rest = rest[free:]
    return filled, rest


def _key(endpoint: Endpoint) -> str:
    return "" if endpoint.target_ref is None else endpoint.target_ref.uid


def _as_wanted(service: Service, old: EndpointSlice, endpoints: list[Endpoint]) -> EndpointSlice:
    meta = service.metadata
    labels = {**meta.labels, SERVICE_NAME: meta.name, MANAGED_BY: MANAGER}
    if service.spec.cluster_ip == "None":
        labels[HEADLESS] = ""
    owner = OwnerReference(
        api_version="v1", kind="Service", name=meta.name, uid=meta.uid, controller=True, block_owner_deletion=True
    )
    named = old.metadata
    if not named.name:
        named = ObjectMeta(generate_name=f"{meta.name}-", namespace=meta.namespace)
    named = replace(named, labels=labels, owner_references=(owner,))
    return replace(old, metadata=named, endpoints=tuple(endpoints))


def _endpoint(target: Target) -> Endpoint:
    return Endpoint(
        addresses=(target.address,),
        conditions=EndpointConditions(
            ready=target.is_ready, serving=target.is_serving, terminating=target.is_terminating
        ),
        hostname=target.hostname or None,
        node_name=target.node or None,
        target_ref=target.reference,
    )


def _endpoint_ports(ports: tuple[Port, ...]) -> tuple[EndpointPort, ...]:
    return tuple(
        EndpointPort(name=port.name, port=port.number, protocol=port.protocol, app_protocol=port.app_protocol)
        for port in ports
    )
