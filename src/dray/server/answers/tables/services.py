"""Columns for what workloads are reached by and what they store to: services, ingresses, claims of volumes."""

from __future__ import annotations

from typing import Any

from dray.server.answers.tables.columns import AGE, NAME, NONE, Column, pairs, text

_MODES = {"ReadWriteOnce": "RWO", "ReadOnlyMany": "ROX", "ReadWriteMany": "RWX", "ReadWriteOncePod": "RWOP"}


def _external_address(service: Any) -> str:
    spec = service.spec
    if spec.type == "ExternalName":
        return str(spec.external_name)
    given = [*_balanced(service), *spec.external_ips]
    if given:
        return ",".join(given)
    return "<pending>" if spec.type == "LoadBalancer" else NONE


def _balanced(obj: Any) -> list[str]:
    return [entry.ip or entry.hostname for entry in obj.status.load_balancer.ingress]


def _ports(service: Any) -> str:
    shown = (
        f"{port.port}:{port.node_port}/{port.protocol}" if port.node_port else f"{port.port}/{port.protocol}"
        for port in service.spec.ports
    )
    return ",".join(shown) or NONE


def _hosts(ingress: Any) -> str:
    return ",".join(rule.host for rule in ingress.spec.rules if rule.host) or "*"


def _capacity(claim: Any) -> str:
    amount = claim.status.capacity.get("storage")
    return "" if amount is None else str(amount)


def access_modes(modes: tuple[str, ...]) -> str:
    """How something can be mounted, in short."""
    return ",".join(_MODES.get(mode, mode) for mode in modes)


COLUMNS: dict[str, tuple[Column, ...]] = {
    "Service": (
        NAME,
        text("Type", lambda s: s.spec.type, description="How the service is reached."),
        text("Cluster-IP", lambda s: s.spec.cluster_ip or NONE, description="The address inside the cluster."),
        text("External-IP", _external_address, description="The addresses outside the cluster."),
        text("Port(s)", _ports, description="Ports, those on nodes after a colon, and protocols."),
        AGE,
        text("Selector", lambda s: pairs(s.spec.selector), wide=True, description="The pods behind the service."),
    ),
    "Ingress": (
        NAME,
        text("Class", lambda i: i.spec.ingress_class_name or NONE, description="Who serves it."),
        text("Hosts", _hosts, description="The host names of its rules."),
        text("Address", lambda i: ",".join(_balanced(i)), description="Where it is served."),
        text("Ports", lambda i: "80, 443" if i.spec.tls else "80", description="The ports that it is served at."),
        AGE,
    ),
    "PersistentVolumeClaim": (
        NAME,
        text("Status", lambda c: c.status.phase, description="Pending, Bound or Lost."),
        text("Volume", lambda c: c.spec.volume_name, description="The volume that it is bound to."),
        text("Capacity", _capacity, description="How large that is."),
        text("Access Modes", lambda c: access_modes(c.status.access_modes), description="How it can be mounted."),
        text("StorageClass", lambda c: c.spec.storage_class_name, description="The class of storage asked for."),
        AGE,
        text("VolumeMode", lambda c: c.spec.volume_mode or "", wide=True, description="A file system or a block."),
    ),
}
