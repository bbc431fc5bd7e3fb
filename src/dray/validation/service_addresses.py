"""The addresses and ports of a Service: which it needs, and what an update keeps of those that it has."""

from __future__ import annotations

from typing import Final

from msgspec.structs import replace

from dray.api.field import forbidden, invalid, not_supported
from dray.api.generated.core import Service, ServicePort, ServiceSpec
from dray.validation.check import is_address
from dray.validation.context import Context, Errors

HEADLESS: Final = "None"
SINGLE: Final = "SingleStack"
DUAL: Final = "RequireDualStack"
POLICIES: Final = (SINGLE, "PreferDualStack", DUAL)
FAMILIES: Final = ("IPv4", "IPv6")


def needs_address(spec: ServiceSpec) -> bool:
    """Whether a Service has an address of its own."""
    return spec.type != "ExternalName" and spec.cluster_ip != HEADLESS


def needs_node_ports(spec: ServiceSpec) -> bool:
    """Whether each port is given a port of all nodes."""
    if spec.type == "LoadBalancer":
        return spec.allocate_load_balancer_node_ports is not False
    return spec.type == "NodePort"


def needs_health_check_port(spec: ServiceSpec) -> bool:
    """Whether load balancers ask nodes if they have pods of the Service."""
    return spec.type == "LoadBalancer" and spec.external_traffic_policy == "Local"


def complete(new: Service, old: Service | None, _ctx: Context) -> Service:
    """The Service with what it keeps of its addresses and ports, and without those that its type does not have."""
    spec = new.spec if old is None else _kept(new.spec, old.spec)
    if not spec.cluster_ips and spec.cluster_ip:
        spec = replace(spec, cluster_ips=(spec.cluster_ip,))
    elif spec.cluster_ips and not spec.cluster_ip and old is None:
        spec = replace(spec, cluster_ip=spec.cluster_ips[0])
    if spec.type != "ExternalName" and not spec.ip_families:
        # There is no telling which addresses others give to a Service that selects nothing and has none of its own.
        is_anybodys = spec.cluster_ip == HEADLESS and not spec.selector
        families, policy = (FAMILIES, DUAL) if is_anybodys else (FAMILIES[:1], spec.ip_family_policy or SINGLE)
        spec = replace(spec, ip_families=families, ip_family_policy=policy)
    elif spec.type != "ExternalName" and not spec.ip_family_policy:
        spec = replace(spec, ip_family_policy=SINGLE if len(spec.ip_families) == 1 else DUAL)
    return replace(new, spec=spec)


def _kept(spec: ServiceSpec, old: ServiceSpec) -> ServiceSpec:
    if spec.type == "ExternalName" and old.type != "ExternalName":
        if spec.cluster_ip in ("", old.cluster_ip):
            spec = replace(spec, cluster_ip="", cluster_ips=(), ip_families=(), ip_family_policy=None)
    elif spec.type != "ExternalName" and old.cluster_ip:
        if not spec.cluster_ip and not spec.cluster_ips:
            spec = replace(spec, cluster_ip=old.cluster_ip, cluster_ips=old.cluster_ips)
        if spec.cluster_ip == old.cluster_ip:
            spec = replace(
                spec,
                cluster_ips=spec.cluster_ips or old.cluster_ips,
                ip_families=spec.ip_families or old.ip_families,
                ip_family_policy=spec.ip_family_policy or old.ip_family_policy,
            )
    if needs_node_ports(old):
        given = {(port.protocol, port.port): port.node_port for port in old.ports}
        change = _with_node_port if needs_node_ports(spec) else _without_node_port
        spec = replace(spec, ports=tuple(change(port, given) for port in spec.ports))
    if needs_health_check_port(old):
        unchanged = spec.health_check_node_port in (0, old.health_check_node_port)
        if unchanged:
            kept = old.health_check_node_port if needs_health_check_port(spec) else 0
            spec = replace(spec, health_check_node_port=kept)
    return spec


_Given = dict[tuple[str, int], int]


def _with_node_port(port: ServicePort, given: _Given) -> ServicePort:
    return port if port.node_port else replace(port, node_port=given.get((port.protocol, port.port), 0))


def _without_node_port(port: ServicePort, given: _Given) -> ServicePort:
    """A port that nobody asked for goes with the type that had it."""
    return replace(port, node_port=0) if port.node_port in given.values() else port


def check(errors: Errors, new: Service, old: Service | None) -> None:
    """Addresses are addresses, the two fields for them agree, and they stay."""
    spec = new.spec
    if spec.type == "ExternalName":
        return
    if spec.cluster_ips and spec.cluster_ips[0] != spec.cluster_ip:
        errors.append(invalid("spec.clusterIPs", list(spec.cluster_ips), "first value must match `clusterIP`"))
    had = () if old is None or old.spec.type == "ExternalName" else old.spec.cluster_ips
    if had and spec.cluster_ip != had[0]:
        errors.append(invalid("spec.clusterIPs[0]", spec.cluster_ip, "may not change once set"))
    for index, address in enumerate(spec.cluster_ips):
        if address != HEADLESS and not is_address(address):
            message = f"must be empty, '{HEADLESS}', or a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)"
            errors.append(invalid(f"spec.clusterIPs[{index}]", address, message))
    if spec.ip_family_policy and spec.ip_family_policy not in POLICIES:
        errors.append(not_supported("spec.ipFamilyPolicy", spec.ip_family_policy, POLICIES))
    is_anybodys = spec.cluster_ip == HEADLESS and not spec.selector
    if not is_anybodys and spec.ip_family_policy == DUAL:
        message = "this cluster is not configured for dual-stack services"
        errors.append(invalid("spec.ipFamilyPolicy", spec.ip_family_policy, message))
    for index, family in enumerate(spec.ip_families):
        if not is_anybodys and family != FAMILIES[0]:
            message = "not configured on this cluster"
            errors.append(invalid(f"spec.ipFamilies[{index}]", family, message))
    if spec.health_check_node_port and not needs_health_check_port(spec):
        message = "may only be set when `type` is 'LoadBalancer' and `externalTrafficPolicy` is 'Local'"
        errors.append(forbidden("spec.healthCheckNodePort", message))
