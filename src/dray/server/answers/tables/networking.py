"""Columns for addresses and who serves them: endpoints, slices of them, ingress classes, policies."""

from __future__ import annotations

from typing import Any

from dray.server.answers.tables.columns import AGE, NAME, NONE, Column, text

SHOWN = 3
"""Addresses that are shown; how many more there are is said."""


def _some(found: list[str]) -> str:
    if not found:
        return NONE
    more = len(found) - SHOWN
    return ",".join(found[:SHOWN]) + (f" + {more} more..." if more > 0 else "")


def _endpoints(endpoints: Any) -> str:
    found = []
    for subset in endpoints.subsets:
        ports = [f":{port.port}" for port in subset.ports] or [""]
        found += [f"{address.ip}{port}" for port in ports for address in subset.addresses]
    return _some(found)


def _slice_ports(found: Any) -> str:
    ports = [str(port.port) if port.port is not None else "*" for port in found.ports]
    return _some(ports) if ports else "<unset>"


def _slice_addresses(found: Any) -> str:
    addresses = [address for endpoint in found.endpoints for address in endpoint.addresses]
    return _some(addresses) if addresses else "<unset>"


def selector_text(selector: Any) -> str:
    """A label selector in one line; one that selects everything is none."""
    if selector is None:
        return NONE
    words = [f"{key}={value}" for key, value in sorted(selector.match_labels.items())]
    for each in selector.match_expressions:
        match each.operator:
            case "Exists":
                words.append(each.key)
            case "DoesNotExist":
                words.append(f"!{each.key}")
            case operator:
                words.append(f"{each.key} {operator.lower()} ({','.join(sorted(each.values))})")
    return ",".join(words) or NONE


def _parameters(ingress_class: Any) -> str:
    found = ingress_class.spec.parameters if ingress_class.spec is not None else None
    if found is None:
        return NONE
    group = f".{found.api_group}" if found.api_group else ""
    return f"{found.kind}{group}/{found.name}"


def _parent(address: Any) -> str:
    parent = address.spec.parent_ref if address.spec is not None else None
    if parent is None:
        return NONE
    resource = f"{parent.resource}.{parent.group}" if parent.group else parent.resource
    return "/".join(part for part in (resource.lower(), parent.namespace, parent.name) if part)


COLUMNS: dict[str, tuple[Column, ...]] = {
    "Endpoints": (NAME, text("Endpoints", _endpoints, description="Addresses and ports of pods that are ready."), AGE),
    "EndpointSlice": (
        NAME,
        text("AddressType", lambda s: s.address_type, description="IPv4, IPv6 or FQDN."),
        text("Ports", _slice_ports, description="Ports of the pods."),
        text("Endpoints", _slice_addresses, description="Addresses of the pods."),
        AGE,
    ),
    "NetworkPolicy": (
        NAME,
        text("Pod-Selector", lambda p: selector_text(p.spec.pod_selector), description="The pods that it is for."),
        AGE,
    ),
    "IngressClass": (
        NAME,
        text("Controller", lambda c: c.spec.controller if c.spec is not None else "", description="Who serves it."),
        text("Parameters", _parameters, description="Its configuration."),
        AGE,
    ),
    "ServiceCIDR": (
        NAME,
        text("CIDRs", lambda c: ",".join(c.spec.cidrs) if c.spec is not None else "", description="Addresses."),
        AGE,
    ),
    "IPAddress": (NAME, text("ParentRef", _parent, description="Who has the address."), AGE),
}
