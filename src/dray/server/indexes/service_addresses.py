"""Addresses and node ports of Services: each is given to one, kept as long as the Service is there, and then free.

    write of a Service ─▶ numbered ─▶ what was asked for is free? what is missing is chosen ─▶ 422 or on its way to disk

They are chosen when the store numbers the write, on the loop: nobody can come between the look and the write. With
several servers, writes of Services follow each other (`basis`), and what they hold is known from the store alone.
"""

from __future__ import annotations

import ipaddress
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any, Final

from msgspec.structs import replace

from dray.api.field import FieldError, invalid
from dray.api.generated.core import Service, ServicePort
from dray.api.kinds import SERVICES
from dray.server import errors
from dray.server.indexes.followed import Followed
from dray.server.objects import finish
from dray.store import Basis, Finish, Key, Store
from dray.validation.service_addresses import HEADLESS, needs_address, needs_health_check_port, needs_node_ports

ADDRESSES: Final = ipaddress.IPv4Network("10.96.0.0/12")
FIRST_CHOSEN: Final = 256
"""Addresses before this one are given only to those who ask for them."""
NODE_PORTS: Final = range(30000, 32768)
_FIRST_CHOSEN_PORT: Final = 30086

_MOST_PORTS: Final = len(NODE_PORTS) // 2
"""Of a protocol, in one namespace: a tenant who takes all that there are leaves none for others."""
_JUMPS: Final = 40
"""So often the next address that is looked at is twice as far: a block of taken ones is not gone through."""

_FEWER_PORTS: Final = (
    "have Services without them (type: ClusterIP, or allocateLoadBalancerNodePorts: false), or with fewer ports"
)

Place = tuple[str, str | int]
"""An address, or a port of a protocol."""


class ServiceAddresses:
    """Who has which address and which ports. Reads the store when the first Service is written."""

    def __init__(self, store: Store) -> None:
        self._followed = Followed(store, SERVICES.resource, self._apply)
        self._is_shared = store.is_shared
        self.basis = Basis(guards=("services",)) if store.is_shared else Basis()
        """What a write of a Service is judged by."""
        self._holders: dict[Place, Key] = {}
        self._held: dict[Key, frozenset[Place]] = {}
        self._ports: Counter[tuple[str, str]] = Counter()
        """Ports of nodes by namespace and protocol."""
        self._next_address = 0
        self._next_port = _FIRST_CHOSEN_PORT - NODE_PORTS.start

    async def read(self) -> None:
        """Reads what is there, a part in each turn of the loop. Raises Closed."""
        await self._followed.read_in_turns()

    def completing(self, key: Key, service: Service, *, keep: bool) -> Finish:
        """How the store completes a Service; without `keep` (a dry run) nothing is taken.

        Raises ApiError, when it is called: 422 if what was asked for is another's or outside of the range, 403 if
        there is none left, or the namespace has its share.
        """

        def complete(revision: int) -> tuple[Any, bytes]:
            self._followed.catch_up()
            given = self._with_addresses(key, service)
            if keep and not self._is_shared:
                self._note(key, given)
            return finish(given)(revision)

        return complete

    def _with_addresses(self, key: Key, service: Service) -> Service:
        spec = service.spec
        problems: list[FieldError] = []
        if needs_address(spec):
            if spec.cluster_ip:
                problems += self._address_problems(key, spec.cluster_ip)
            else:
                address = self._choose_address(service)
                spec = replace(spec, cluster_ip=address, cluster_ips=(address,))
        if needs_node_ports(spec):
            taken: set[Place] = {(port.protocol, port.node_port) for port in spec.ports}
            twins: dict[int, int] = {}
            ports: list[ServicePort] = []
            for index, port in enumerate(spec.ports):
                problems += self._port_problems(key, port.protocol, port.node_port, f"spec.ports[{index}].nodePort")
                ports.append(self._with_node_port(service, port, taken, twins))
            spec = replace(spec, ports=tuple(ports))
        if needs_health_check_port(spec):
            path = "spec.healthCheckNodePort"
            problems += self._port_problems(key, "TCP", spec.health_check_node_port, path)
            taken = {(port.protocol, port.node_port) for port in spec.ports}
            chosen = spec.health_check_node_port or self._choose_port(service, "TCP", taken)
            spec = replace(spec, health_check_node_port=chosen)
        if problems:
            raise errors.invalid(SERVICES, service.metadata.name, problems)
        given = replace(service, spec=spec)
        self._check_share(key, given)
        return given

    def _check_share(self, key: Key, service: Service) -> None:
        """Raises ApiError (403) if the namespace would have more ports of nodes than it has, and than it may have."""
        namespace = service.metadata.namespace
        before, after = _ports(self._held.get(key, ())), _ports(_places(service))
        for protocol, number in after.items():
            would_have = self._ports[namespace, protocol] - before[protocol] + number
            if number > before[protocol] and would_have > _MOST_PORTS:
                why = f"namespace {namespace} may have {_MOST_PORTS} of the {len(NODE_PORTS)} {protocol} ports of nodes"
                raise _refused(service, f"{why}, and would have {would_have}: {_FEWER_PORTS}")

    def _address_problems(self, key: Key, address: str) -> Iterator[FieldError]:
        if ipaddress.ip_address(address) not in ADDRESSES:
            why = f"the provided IP ({address}) is not in the valid range. The range of valid IPs is {ADDRESSES}"
            yield invalid("spec.clusterIPs", [address], f"failed to allocate IP {address}: {why}")
        elif self._holders.get(("address", address), key) != key:
            why = f"failed to allocate IP {address}: provided IP is already allocated"
            yield invalid("spec.clusterIPs", [address], why)

    def _port_problems(self, key: Key, protocol: str, port: int, path: str) -> Iterator[FieldError]:
        if port and port not in NODE_PORTS:
            valid = f"{NODE_PORTS.start}-{NODE_PORTS.stop - 1}"
            why = f"provided port is not in the valid range. The range of valid ports is {valid}"
            yield invalid(path, port, why)
        elif port and self._holders.get((protocol, port), key) != key:
            yield invalid(path, port, "provided port is already allocated")

    def _with_node_port(
        self, service: Service, port: ServicePort, taken: set[Place], twins: dict[int, int]
    ) -> ServicePort:
        """TCP and UDP of one port have the same port of nodes, if nobody says otherwise.

        `taken` are places that the Service has itself, `twins` the ports of nodes that its ports have.
        """
        if not port.node_port:
            twin = (port.protocol, twins.get(port.port, 0))
            is_free = twin[1] and twin not in self._holders and twin not in taken
            port = replace(port, node_port=twin[1] if is_free else self._choose_port(service, port.protocol, taken))
            taken.add((port.protocol, port.node_port))
        twins.setdefault(port.port, port.node_port)
        return port

    def _choose_address(self, service: Service) -> str:
        count = ADDRESSES.num_addresses - 1 - FIRST_CHOSEN
        place = self._next_address
        for tried in range(_JUMPS + count):
            address = str(ADDRESSES[FIRST_CHOSEN + place])
            if ("address", address) not in self._holders:
                self._next_address = (place + 1) % count
                return address
            place = (place + (1 << tried if tried < _JUMPS else 1)) % count
        why = f"failed to allocate a serviceIP: all addresses of {ADDRESSES} are taken"
        raise _refused(service, f"{why}; delete Services, or give it none (clusterIP: {HEADLESS})")

    def _choose_port(self, service: Service, protocol: str, taken: set[Place]) -> int:
        for _ in NODE_PORTS:
            port = NODE_PORTS[self._next_port]
            self._next_port = (self._next_port + 1) % len(NODE_PORTS)
            if (protocol, port) not in self._holders and (protocol, port) not in taken:
                return port
        why = f"failed to allocate a nodePort: all {len(NODE_PORTS)} {protocol} ports of nodes are taken"
        raise _refused(service, f"{why}: {_FEWER_PORTS}")

    def _note(self, key: Key, service: Service | None) -> None:
        """What a Service holds from now on, instead of what it held."""
        namespace = key[1]
        before = self._held.pop(key, frozenset())
        for place in before:
            if self._holders.get(place) == key:
                del self._holders[place]
        for protocol, number in _ports(before).items():
            self._ports[namespace, protocol] -= number
            if not self._ports[namespace, protocol]:
                del self._ports[namespace, protocol]
        if service is not None:
            held = self._held[key] = frozenset(_places(service))
            self._holders |= dict.fromkeys(held, key)
            for protocol, number in _ports(held).items():
                self._ports[namespace, protocol] += number

    _apply = _note


def _places(service: Service) -> Iterator[Place]:
    spec = service.spec
    if needs_address(spec):
        yield from (("address", address) for address in spec.cluster_ips)
    yield from ((port.protocol, port.node_port) for port in spec.ports if port.node_port)
    if spec.health_check_node_port:
        yield "TCP", spec.health_check_node_port


def _ports(places: Iterable[Place]) -> Counter[str]:
    """How many ports of nodes of each protocol these are."""
    return Counter(what for what, _ in set(places) if what != "address")


def _refused(service: Service, why: str) -> errors.ApiError:
    return errors.forbidden(SERVICES, service.metadata.name, why)
