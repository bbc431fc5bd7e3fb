"""Where the Service `kubernetes` leads: to the servers of the cluster, in its Endpoints and its EndpointSlice.

A server that is alone names itself. On etcd, each renews a Lease that says where it is; whose Lease is not renewed is
left out. Clocks of machines may differ: how old a Lease is, each server knows by when it saw it change.
"""

from __future__ import annotations

import contextlib
import ipaddress
import logging
import socket
from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

from msgspec.structs import replace

from dray.api.generated.coordination import Lease, LeaseSpec
from dray.api.generated.core import EndpointAddress, EndpointPort, Endpoints, EndpointSubset, Service
from dray.api.generated.discovery import Endpoint, EndpointConditions, EndpointSlice
from dray.api.generated.discovery import EndpointPort as SlicePort
from dray.api.kinds import ENDPOINT_SLICES, ENDPOINTS, LEASES, SERVICES
from dray.api.meta import Object, ObjectMeta
from dray.api.registry import Kind
from dray.api.status import ApiError
from dray.api.times import MicroTime
from dray.api.well_known import SERVICE_NAME, SYSTEM_NAMESPACE
from dray.process.clock import Clock
from dray.server.engine import Call, Engine
from dray.server.objects import finish
from dray.server.routes import Route
from dray.server.upkeep.first_objects import OWN_NAME, OWN_NAMESPACE, SYSTEM, ensure_service
from dray.server.verbs import writes
from dray.store import Closed, Conflict, Key, NotFound, Record, StorageError

__all__ = ["Place", "Sightings", "find_address", "keep_endpoints", "publish", "try_to_publish"]

PAUSE_SECONDS: Final = 10.0
LEASE_SECONDS: Final = 15
MOST_SECONDS: Final = 3600
"""After which nobody waits for a server any more."""
SERVER: Final = "dray-server"
IDENTITY: Final = "apiserver.kubernetes.io/identity"
SKIP_MIRROR: Final = "endpointslice.kubernetes.io/skip-mirror"
_SOMEWHERE: Final = ((socket.AF_INET, "192.0.2.1"), (socket.AF_INET6, "2001:db8::1"))
"""Addresses that belong to nobody: the route to them starts where others find this machine."""

log = logging.getLogger(__name__)


class Place(NamedTuple):
    """Where a server can be reached."""

    address: str
    port: int


class Sightings:
    """When the Lease of each server was seen to be renewed."""

    def __init__(self, monotonic: Callable[[], float]) -> None:
        self._monotonic = monotonic
        self._seen: dict[Key, tuple[int, float]] = {}

    def age(self, record: Record, told: float) -> float:
        """For how many seconds a Lease was not renewed. When it is seen first, it is as old as it says itself."""
        now = self._monotonic()
        revision, at = self._seen.get(record.key, (record.revision, now - max(told, 0.0)))
        if revision != record.revision:
            at = now
        self._seen[record.key] = (record.revision, at)
        return now - at

    def forget(self, key: Key) -> None:
        """A Lease is gone."""
        self._seen.pop(key, None)


def find_address(bind: str) -> str:
    """The address by which others find a server; as in Kubernetes, one that listens on loopback or on all addresses
    has that of the machine. Empty if there is none."""
    if _is_public(bind):
        return bind
    for family, somewhere in _SOMEWHERE:
        with socket.socket(family, socket.SOCK_DGRAM) as way:
            try:
                way.connect((somewhere, 9))  # nothing is sent
            except OSError:
                continue
            own = str(way.getsockname()[0])
            if _is_public(own):
                return own
    return ""


def _is_public(text: str) -> bool:
    """Whether an endpoint may have the address."""
    try:
        address = ipaddress.ip_address(text)
    except ValueError:
        return False
    return not (address.is_loopback or address.is_unspecified or address.is_link_local or address.is_multicast)


async def keep_endpoints(engine: Engine, own: Place, sightings: Sightings, clock: Clock) -> None:
    """Has the Service lead to this server, and to others that share the store, until the store is closed."""
    while True:
        await clock.sleep(PAUSE_SECONDS)
        try:
            await try_to_publish(engine, own, sightings)
        except Closed:
            return


async def try_to_publish(engine: Engine, own: Place, sightings: Sightings) -> None:
    """Publishes where the servers are, or logs why it cannot: a full disk, or somebody's webhook. Raises Closed."""
    try:
        await publish(engine, own, sightings)
    except (ApiError, StorageError) as error:
        log.warning("cannot say where the service %s leads: %s", OWN_NAME, error)


async def publish(engine: Engine, own: Place, sightings: Sightings) -> None:
    """Has the Service lead where the servers are now. Raises ApiError, StorageError."""
    places = [own]
    if engine.store.is_shared:
        await _renew(engine, own)
        places += await _living(engine, sightings)
    await ensure_service(engine)
    port = min(place.port for place in places)  # they all listen on the same one, or the lowest is it
    await _write(engine, SERVICES, OWN_NAMESPACE, OWN_NAME, lambda found: _with_target(found, port))
    addresses = sorted({place.address for place in places if place.port == port})
    await _write(engine, ENDPOINTS, OWN_NAMESPACE, OWN_NAME, lambda found: _endpoints(found, addresses, port))
    await _write(engine, ENDPOINT_SLICES, OWN_NAMESPACE, OWN_NAME, lambda found: _slice(found, addresses, port))


async def _renew(engine: Engine, own: Place) -> None:
    name = f"apiserver-{own.address.replace('.', '-').replace(':', '-')}-{own.port}"
    spec = LeaseSpec(
        holder_identity=f"{own.address}_{own.port}",
        lease_duration_seconds=LEASE_SECONDS,
        renew_time=MicroTime.of(engine.clock().datetime()),
    )
    meta = ObjectMeta(name=name, namespace=SYSTEM_NAMESPACE, labels={IDENTITY: SERVER})
    fresh = Lease(kind="Lease", api_version=LEASES.api_version, metadata=meta, spec=spec)
    await _write(
        engine, LEASES, SYSTEM_NAMESPACE, name, lambda found: replace(found, spec=spec) if found is not None else fresh
    )


async def _living(engine: Engine, sightings: Sightings) -> list[Place]:
    """Where the servers are whose Leases are young enough. Raises StorageError."""
    now = engine.clock().datetime().timestamp()
    found: list[Place] = []
    for record in engine.store.list(LEASES.resource, SYSTEM_NAMESPACE).records:
        lease = record.obj
        if not isinstance(lease, Lease) or lease.metadata.labels.get(IDENTITY) != SERVER:
            continue
        address, _, port = (lease.spec.holder_identity or "").rpartition("_")
        renewed = lease.spec.renew_time
        age = sightings.age(record, MOST_SECONDS if renewed is None else now - renewed.datetime().timestamp())
        if age <= LEASE_SECONDS and port.isdecimal() and _is_public(address):
            found.append(Place(address, int(port)))
        elif age >= MOST_SECONDS:
            with contextlib.suppress(Conflict, NotFound):  # others see it, too
                await engine.store.delete(record.key, record.revision, finish(lease))
            sightings.forget(record.key)
    return found


def _with_target(found: Object | None, port: int) -> Object | None:
    if not isinstance(found, Service) or not found.spec.ports:
        return found
    first, *others = found.spec.ports
    return replace(found, spec=replace(found.spec, ports=(replace(first, target_port=port), *others)))


def _endpoints(found: Object | None, addresses: Sequence[str], port: int) -> Object:
    subset = EndpointSubset(
        addresses=tuple(EndpointAddress(ip=address) for address in addresses),
        ports=(EndpointPort(name="https", port=port, protocol="TCP"),),
    )
    if isinstance(found, Endpoints):
        meta = replace(found.metadata, labels={**found.metadata.labels, SKIP_MIRROR: "true"})
        return replace(found, metadata=meta, subsets=(subset,))
    meta = ObjectMeta(name=OWN_NAME, namespace=OWN_NAMESPACE, labels={SKIP_MIRROR: "true"})
    return Endpoints(kind="Endpoints", api_version="v1", metadata=meta, subsets=(subset,))


def _slice(found: Object | None, addresses: Sequence[str], port: int) -> Object:
    is_six = all(":" in address for address in addresses)
    endpoints = tuple(
        Endpoint(addresses=(address,), conditions=EndpointConditions(ready=True))
        for address in addresses
        if (":" in address) is is_six
    )
    ports = (SlicePort(name="https", port=port, protocol="TCP"),)
    if isinstance(found, EndpointSlice):
        meta = replace(found.metadata, labels={**found.metadata.labels, SERVICE_NAME: OWN_NAME})
        return replace(found, metadata=meta, endpoints=endpoints, ports=ports)
    return EndpointSlice(
        kind="EndpointSlice",
        api_version=ENDPOINT_SLICES.api_version,
        metadata=ObjectMeta(name=OWN_NAME, namespace=OWN_NAMESPACE, labels={SERVICE_NAME: OWN_NAME}),
        address_type="IPv6" if is_six else "IPv4",
        endpoints=endpoints,
        ports=ports,
    )


async def _write(
    engine: Engine, kind: Kind, namespace: str, name: str, wanted: Callable[[Object | None], Object | None]
) -> None:
    """Makes an object what it should be, if it is not. Raises ApiError, StorageError."""
    found = engine.get(kind.resource, namespace, name)
    made = wanted(found)
    if made is None or made == found:
        return
    version = kind.versions[0]
    if found is None:
        call = Call(Route("create", kind, version, namespace), SYSTEM, engine.clock(), warnings=[])
        await writes.create(engine, call, made)
        return
    call = Call(Route("update", kind, version, namespace, name), SYSTEM, engine.clock(), warnings=[])
    await writes.update(engine, call, lambda _: made)
