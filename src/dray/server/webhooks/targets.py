"""Where a webhook is: at its URL, or at one of the endpoints of a Service."""

from __future__ import annotations

import random
from typing import Final
from urllib.parse import quote, urlsplit

import msgspec

from dray.api.generated.admissionregistration import WebhookClientConfig
from dray.api.generated.core import Endpoints, Service, ServicePort
from dray.api.generated.discovery import EndpointSlice
from dray.api.registry import by_kind
from dray.api.well_known import SERVICE_NAME
from dray.server.engine import Engine
from dray.store import Key

__all__ = ["NoTarget", "Target", "find_target"]

SERVICES: Final = by_kind("v1", "Service").resource
ENDPOINTS: Final = by_kind("v1", "Endpoints").resource
SLICES: Final = by_kind("discovery.k8s.io/v1", "EndpointSlice").resource
HTTPS: Final = 443


class NoTarget(Exception):
    """There is nobody to ask; the message says why."""


class Target(msgspec.Struct, frozen=True):
    """Where to send a question. `server_name` is whom the certificate must name, if not the host of the URL."""

    url: str
    server_name: str = ""


def find_target(engine: Engine, config: WebhookClientConfig) -> Target:
    """Where a webhook is now. Raises NoTarget."""
    if config.service is not None:
        reference = config.service
        port = reference.port or HTTPS
        host, number = _endpoint(engine, reference.namespace, reference.name, port)
        path = quote((reference.path or "/"), safe="/%:@!$&'()*+,;=~-._")
        return Target(f"https://{host}:{number}{path}", f"{reference.name}.{reference.namespace}.svc")
    url = config.url or ""
    try:
        parts = urlsplit(url)
        is_usable = parts.scheme == "https" and bool(parts.hostname) and parts.port != 0
    except ValueError:
        is_usable = False
    if not is_usable:
        raise NoTarget(f"url {url!r} is not an https:// URL")
    return Target(url)


def _endpoint(engine: Engine, namespace: str, name: str, port: int) -> tuple[str, int]:
    service = engine.get(SERVICES, namespace, name)
    if not isinstance(service, Service):
        raise NoTarget(f'service "{name}" not found')
    found = next((each for each in service.spec.ports if each.port == port), None)
    if service.spec.type == "ExternalName" and service.spec.external_name:
        return service.spec.external_name, port
    if found is None:
        raise NoTarget(f'no service port {port} found for service "{name}"')
    ready = _in_slices(engine, namespace, name, found) or _in_endpoints(engine, namespace, name, found)
    if not ready:
        raise NoTarget(f'no endpoints available for service "{name}"')
    address, number = random.choice(ready)
    return (f"[{address}]" if ":" in address else address), number


def _in_slices(engine: Engine, namespace: str, name: str, port: ServicePort) -> list[tuple[str, int]]:
    found: list[tuple[str, int]] = []
    for record in engine.store.list(SLICES, namespace).records:
        each = record.obj
        if not isinstance(each, EndpointSlice) or each.metadata.labels.get(SERVICE_NAME) != name:
            continue
        number = next((it.port for it in each.ports if (it.name or "") == port.name), None)
        if number is not None:
            ready = [endpoint for endpoint in each.endpoints if endpoint.conditions.ready is not False]
            found += [(endpoint.addresses[0], number) for endpoint in ready if endpoint.addresses]
    return found


def _in_endpoints(engine: Engine, namespace: str, name: str, port: ServicePort) -> list[tuple[str, int]]:
    record = engine.store.get(Key(ENDPOINTS, namespace, name))
    if record is None or not isinstance(record.obj, Endpoints):
        return []
    return [
        (address.ip, it.port)
        for subset in record.obj.subsets
        for it in subset.ports
        if it.name == port.name
        for address in subset.addresses
    ]
