"""Service: its ports and how it can be reached. Addresses are given out by the server."""

from __future__ import annotations

import ipaddress
from typing import Final

from msgspec.structs import replace

from dray.api.field import duplicate, forbidden, invalid, required
from dray.api.generated.core import ClientIPConfig, Service, ServicePort, ServiceSpec, SessionAffinityConfig
from dray.api.times import Time
from dray.validation import check, names, service_addresses
from dray.validation.containers import PROTOCOLS
from dray.validation.context import Context, Errors
from dray.validation.metadata import DNS_1035_LABEL, validate_labels
from dray.validation.rules import Rules
from dray.validation.service_addresses import HEADLESS

TYPES: Final = ("ClusterIP", "ExternalName", "LoadBalancer", "NodePort")
AFFINITIES: Final = ("ClientIP", "None")
TRAFFIC: Final = ("Cluster", "Local")
DISTRIBUTIONS: Final = ("PreferClose", "PreferSameNode", "PreferSameZone")
IP_MODES: Final = ("Proxy", "VIP")
AFFINITY_SECONDS: Final = 10800


def _default(obj: Service, _now: Time) -> Service:
    spec = obj.spec
    kind = spec.type or "ClusterIP"
    affinity = spec.session_affinity or "None"
    config = spec.session_affinity_config if affinity == "ClientIP" else None
    if affinity == "ClientIP" and (
        config is None or config.client_ip is None or config.client_ip.timeout_seconds is None
    ):
        config = SessionAffinityConfig(client_ip=ClientIPConfig(timeout_seconds=AFFINITY_SECONDS))
    is_external = kind in ("NodePort", "LoadBalancer") or (kind == "ClusterIP" and bool(spec.external_ips))
    spec = replace(
        spec,
        type=kind,
        session_affinity=affinity,
        session_affinity_config=config,
        ports=tuple(_default_port(port) for port in spec.ports),
        external_traffic_policy=spec.external_traffic_policy or ("Cluster" if is_external else ""),
    )
    if spec.internal_traffic_policy is None and kind != "ExternalName":
        spec = replace(spec, internal_traffic_policy="Cluster")
    if spec.allocate_load_balancer_node_ports is None and kind == "LoadBalancer":
        spec = replace(spec, allocate_load_balancer_node_ports=True)
    balanced = tuple(
        replace(one, ip_mode="VIP") if one.ip and one.ip_mode is None and kind == "LoadBalancer" else one
        for one in obj.status.load_balancer.ingress
    )
    status = replace(obj.status, load_balancer=replace(obj.status.load_balancer, ingress=balanced))
    return replace(obj, spec=spec, status=status)


def _default_port(port: ServicePort) -> ServicePort:
    return replace(port, protocol=port.protocol or "TCP", target_port=port.target_port or port.port)


def _check(errors: Errors, new: Service, old: Service | None, _ctx: Context) -> None:
    spec = new.spec
    if not spec.ports and spec.cluster_ip != HEADLESS and spec.type != "ExternalName":
        errors.append(required("spec.ports"))
    _validate_ports(errors, spec)
    validate_labels(errors, spec.selector, "spec.selector")
    check.required_one_of(errors, "spec.type", spec.type, TYPES)
    check.required_one_of(errors, "spec.sessionAffinity", spec.session_affinity, AFFINITIES)
    if spec.internal_traffic_policy is not None:
        check.one_of(errors, "spec.internalTrafficPolicy", spec.internal_traffic_policy, TRAFFIC)
    if spec.type == "ExternalName":
        name = spec.external_name.removesuffix(".")
        check.required_name(errors, "spec.externalName", name, names.dns_subdomain)
        if spec.cluster_ip:
            errors.append(forbidden("spec.clusterIPs", "may not be set for ExternalName services"))
    _validate_outside(errors, spec)
    service_addresses.check(errors, new, old)


def _validate_outside(errors: Errors, spec: ServiceSpec) -> None:
    """How it is reached from outside the cluster: only some types are."""
    for index, address in enumerate(spec.external_ips):
        check.address(errors, f"spec.externalIPs[{index}]", address)
    if spec.traffic_distribution is not None:
        check.one_of(errors, "spec.trafficDistribution", spec.traffic_distribution, DISTRIBUTIONS)
    for index, port in enumerate(spec.ports):
        if port.app_protocol is not None:
            check.name(errors, f"spec.ports[{index}].appProtocol", port.app_protocol, names.label_key)
    if spec.type != "LoadBalancer":
        for field, given in (
            ("LoadBalancerSourceRanges", spec.load_balancer_source_ranges),
            ("loadBalancerClass", spec.load_balancer_class is not None),
            ("allocateLoadBalancerNodePorts", spec.allocate_load_balancer_node_ports is not None),
        ):
            if given:
                errors.append(forbidden(f"spec.{field}", "may only be used when `type` is 'LoadBalancer'"))
    elif spec.load_balancer_class is not None:
        check.name(errors, "spec.loadBalancerClass", spec.load_balancer_class, names.label_key)
    for index, block in enumerate(spec.load_balancer_source_ranges):
        if not _is_block(block):
            told = "must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)"
            errors.append(invalid(f"spec.LoadBalancerSourceRanges[{index}]", block, told))
    policy = spec.external_traffic_policy
    if spec.type in ("NodePort", "LoadBalancer") or (spec.type == "ClusterIP" and spec.external_ips):
        check.required_one_of(errors, "spec.externalTrafficPolicy", policy, TRAFFIC)
    elif policy:
        told = "may only be set for externally-accessible services"
        errors.append(invalid("spec.externalTrafficPolicy", policy, told))


def _is_block(text: str) -> bool:
    address, slash, _ = text.strip().partition("/")
    try:
        ipaddress.ip_network(text.strip(), strict=False)
    except ValueError:
        return False
    return bool(slash and address)


def _warnings(obj: Service) -> list[str]:
    spec, found = obj.spec, list[str]()
    if spec.cluster_ip == HEADLESS and spec.type != "ExternalName":
        for field, given in (
            ("loadBalancerIP", spec.load_balancer_ip),
            ("externalIPs", spec.external_ips),
            ("SessionAffinity", spec.session_affinity != "None"),
        ):
            if given:
                found.append(f"spec.{field} is ignored for headless services")
    elif spec.external_ips and spec.type != "ExternalName":
        found.append("spec.externalIPs is deprecated and may no longer be implemented in some clusters")
    if spec.type == "ExternalName" and spec.external_ips:
        found.append('spec.externalIPs is ignored when spec.type is "ExternalName"')
    if spec.type != "ExternalName" and spec.external_name:
        found.append('spec.externalName is ignored when spec.type is not "ExternalName"')
    return found


def _check_status(errors: Errors, new: Service, old: Service, _ctx: Context) -> None:
    path = "status.loadBalancer.ingress"
    ingress = new.status.load_balancer.ingress
    if ingress and new.spec.type != "LoadBalancer":
        errors.append(forbidden(path, "may only be used when `spec.type` is 'LoadBalancer'"))
        return
    known = {one.ip for one in old.status.load_balancer.ingress}
    for index, one in enumerate(ingress):
        inner = f"{path}[{index}]"
        if one.ip and one.ip not in known:
            check.address(errors, f"{inner}.ip", one.ip)
        if one.ip_mode is not None and not one.ip:
            errors.append(forbidden(f"{inner}.ipMode", "may not be specified when `ip` is not set"))
        elif one.ip:
            check.required_one_of(errors, f"{inner}.ipMode", one.ip_mode or "", IP_MODES)
        if one.hostname:
            check.name(errors, f"{inner}.hostname", one.hostname, names.dns_subdomain)
            if check.is_address(one.hostname):
                errors.append(invalid(f"{inner}.hostname", one.hostname, "must be a DNS name, not an IP address"))


def _validate_ports(errors: Errors, spec: ServiceSpec) -> None:
    seen_names: set[str] = set()
    for index, port in enumerate(spec.ports):
        path = f"spec.ports[{index}]"
        if port.name:
            check.name(errors, f"{path}.name", port.name, names.dns_label)
            if port.name in seen_names:
                errors.append(duplicate(f"{path}.name", port.name))
            seen_names.add(port.name)
        elif len(spec.ports) > 1:
            errors.append(required(f"{path}.name"))
        check.port(errors, f"{path}.port", port.port)
        check.required_one_of(errors, f"{path}.protocol", port.protocol, PROTOCOLS)
        if isinstance(port.target_port, int):
            check.port(errors, f"{path}.targetPort", port.target_port)
        elif port.target_port is not None:
            check.name(errors, f"{path}.targetPort", port.target_port, names.port_name)
        if port.node_port and spec.type not in ("NodePort", "LoadBalancer"):
            errors.append(forbidden(f"{path}.nodePort", f"may not be used when `type` is '{spec.type}'"))
    check.unique(errors, "spec.ports", ((port.protocol, port.port) for port in spec.ports))
    node_ports = [(port.protocol, port.node_port) for port in spec.ports if port.node_port]
    if len(set(node_ports)) < len(node_ports):
        errors.append(invalid("spec.ports", node_ports, "node ports must differ"))


RULES: Final = {
    "Service": Rules(
        name=DNS_1035_LABEL,
        has_status=True,
        status_guards_metadata=False,
        default=_default,
        change=service_addresses.complete,
        check=_check,
        check_status=_check_status,
        warnings=_warnings,
    ),
}
