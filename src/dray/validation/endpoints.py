"""Endpoints and EndpointSlices: where a Service leads. The server itself goes there, to webhooks.

Kubernetes refuses addresses of loopback. Here they are taken: a webhook may run beside the server.
"""

from __future__ import annotations

import ipaddress
from typing import Final

from msgspec.structs import replace

from dray.api.field import duplicate, invalid, required, too_many
from dray.api.generated.core import EndpointAddress, EndpointPort, Endpoints
from dray.api.generated.discovery import Endpoint, EndpointSlice
from dray.api.registry import by_kind
from dray.api.times import Time
from dray.validation import check, names
from dray.validation.context import Context, Errors
from dray.validation.metadata import validate_labels
from dray.validation.rules import CONTENT
from dray.validation.schema_rules import rules_from_schema

MOST_ENDPOINTS: Final = 1000
MOST_ADDRESSES: Final = 100
MOST_PORTS: Final = 20_000
_VERSIONS: Final = {"IPv4": (4,), "IPv6": (6,)}
_LINK_LOCAL_MULTICAST: Final = (ipaddress.ip_network("224.0.0.0/24"), ipaddress.ip_network("ff02::/16"))


def _check_address(errors: Errors, text: str, path: str, versions: tuple[int, ...]) -> None:
    try:
        found = ipaddress.ip_address(text)
    except ValueError:
        errors.append(invalid(path, text, "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)"))
        return
    if found.version not in versions:
        errors.append(invalid(path, text, f"must be an IPv{versions[0]} address"))
    if found.is_unspecified:
        errors.append(invalid(path, text, f"may not be unspecified ({text})"))
    if found.is_link_local:
        errors.append(invalid(path, text, "may not be in the link-local range (169.254.0.0/16, fe80::/10)"))
    if any(found.version == network.version and found in network for network in _LINK_LOCAL_MULTICAST):
        errors.append(invalid(path, text, "may not be in the link-local multicast range (224.0.0.0/24, ff02::/10)"))


def _default_slice(obj: EndpointSlice, _now: Time) -> EndpointSlice:
    ports = tuple(replace(port, name=port.name or "", protocol=port.protocol or "TCP") for port in obj.ports)
    return replace(obj, ports=ports)


def _check_slice(errors: Errors, new: EndpointSlice, old: EndpointSlice | None, _ctx: Context) -> None:
    if old is not None:
        check.immutable(errors, "addressType", new.address_type, old.address_type)
    if len(new.endpoints) > MOST_ENDPOINTS:
        errors.append(too_many("endpoints", len(new.endpoints), MOST_ENDPOINTS))
    else:
        for index, each in enumerate(new.endpoints):
            _check_endpoint(errors, each, f"endpoints[{index}]", new.address_type)
    if len(new.ports) > MOST_PORTS:
        errors.append(too_many("ports", len(new.ports), MOST_PORTS))
        return
    seen: set[str] = set()
    for index, port in enumerate(new.ports):
        path, name = f"ports[{index}]", port.name or ""
        if name:
            check.name(errors, f"{path}.name", name, names.dns_label)
        if name in seen:
            errors.append(duplicate(f"{path}.name", name))
        seen.add(name)
        if port.app_protocol is not None:
            check.name(errors, f"{path}.appProtocol", port.app_protocol, names.label_key)


def _check_endpoint(errors: Errors, endpoint: Endpoint, path: str, kind: str) -> None:
    if not endpoint.addresses:
        errors.append(required(f"{path}.addresses", "must contain at least 1 address"))
    check.fits(errors, f"{path}.addresses", endpoint.addresses, MOST_ADDRESSES)
    for index, address in enumerate(endpoint.addresses[:MOST_ADDRESSES]):
        inner = f"{path}.addresses[{index}]"
        if kind == "FQDN":
            check.name(errors, inner, address, names.dns_subdomain)
        elif kind in _VERSIONS:
            _check_address(errors, address, inner, _VERSIONS[kind])
    if endpoint.node_name is not None:
        check.name(errors, f"{path}.nodeName", endpoint.node_name, names.dns_subdomain)
    validate_labels(errors, endpoint.deprecated_topology, f"{path}.deprecatedTopology")
    if endpoint.hostname is not None:
        check.name(errors, f"{path}.hostname", endpoint.hostname, names.dns_label)


def _check_endpoints(errors: Errors, new: Endpoints, _old: Endpoints | None, _ctx: Context) -> None:
    for index, subset in enumerate(new.subsets):
        path = f"subsets[{index}]"
        if not subset.addresses and not subset.not_ready_addresses:
            errors.append(required(path, "must specify `addresses` or `notReadyAddresses`"))
        for at, address in enumerate(subset.addresses):
            _check_old_address(errors, address, f"{path}.addresses[{at}]")
        for at, address in enumerate(subset.not_ready_addresses):
            _check_old_address(errors, address, f"{path}.notReadyAddresses[{at}]")
        for at, port in enumerate(subset.ports):
            _check_old_port(errors, port, f"{path}.ports[{at}]", needs_name=len(subset.ports) > 1)


def _check_old_address(errors: Errors, address: EndpointAddress, path: str) -> None:
    if address.ip:
        _check_address(errors, address.ip, f"{path}.ip", (4, 6))
    if address.hostname:
        check.name(errors, f"{path}.hostname", address.hostname, names.dns_label)
    if address.node_name is not None:
        check.name(errors, f"{path}.nodeName", address.node_name, names.dns_subdomain)


def _check_old_port(errors: Errors, port: EndpointPort, path: str, *, needs_name: bool) -> None:
    if port.name:
        check.name(errors, f"{path}.name", port.name, names.dns_label)
    elif needs_name:
        errors.append(required(f"{path}.name"))
    check.port(errors, f"{path}.port", port.port)
    if port.app_protocol is not None:
        check.name(errors, f"{path}.appProtocol", port.app_protocol, names.label_key)


RULES: Final = {
    "EndpointSlice": replace(
        rules_from_schema(by_kind("discovery.k8s.io/v1", "EndpointSlice"), _check_slice),
        generation_counts=(CONTENT, "labels"),
        default=_default_slice,
    ),
    "Endpoints": rules_from_schema(by_kind("v1", "Endpoints"), _check_endpoints),
}
