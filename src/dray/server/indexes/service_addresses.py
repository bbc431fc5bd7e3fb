"""Addresses and node ports of Services: each is given to one, kept as long as the Service is there, and then free.

    write of a Service ─▶ numbered ─▶ what was asked for is free? what is missing is chosen ─▶ 422 or on its way to disk

They are chosen when the store numbers the write, on the loop: nobody can come between the look and the write. With
several servers, writes of Services follow each other (`basis`), and what they hold is known from the store alone.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator
from typing import Any, Final

from msgspec.structs import replace

from dray.api.field import FieldError, invalid
from dray.api.generated.core import Service, ServicePort
from dray.api.kinds import SERVICES
from dray.server import errors
from dray.server.indexes.followed import Followed
from dray.server.objects import finish
from dray.store import Basis, Finish, Key, Store
from dray.validation.service_addresses import needs_address, needs_health_check_port, needs_node_ports

ADDRESSES: Final = ipaddress.IPv4Network("10.96.0.0/12")
FIRST_CHOSEN: Final = 256
"""Addresses before this one are given only to those who ask for them."""
NODE_PORTS: Final = range(30000, 32768)
_FIRST_CHOSEN_PORT: Final = 30086

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
        self._next_address = FIRST_CHOSEN
        self._next_port = _FIRST_CHOSEN_PORT - NODE_PORTS.start

    async def read(self) -> None:
        """Reads what is there, a part in each turn of the loop. Raises Closed."""
        await self._followed.read_in_turns()

    def completing(self, key: Key, service: Service, *, keep: bool) -> Finish:
        """How the store completes a Service; without `keep` (a dry run) nothing is taken.

        Raises ApiError (422), when it is called, if what was asked for is another's or outside of the range.
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
                address = self._choose_address()
                spec = replace(spec, cluster_ip=address, cluster_ips=(address,))
        if needs_node_ports(spec):
            taken: set[Place] = {(port.protocol, port.node_port) for port in spec.ports}
            twins: dict[int, int] = {}
            ports: list[ServicePort] = []
            for index, port in enumerate(spec.ports):
                problems += self._port_problems(key, port.protocol, port.node_port, f"spec.ports[{index}].nodePort")
                ports.append(self._with_node_port(port, taken, twins))
            spec = replace(spec, ports=tuple(ports))
        if needs_health_check_port(spec):
            path = "spec.healthCheckNodePort"
            problems += self._port_problems(key, "TCP", spec.health_check_node_port, path)
            taken = {(port.protocol, port.node_port) for port in spec.ports}
            spec = replace(spec, health_check_node_port=spec.health_check_node_port or self._choose_port("TCP", taken))
        if problems:
            raise errors.invalid(SERVICES, service.metadata.name, problems)
        return replace(service, spec=spec)

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

    def _with_node_port(self, port: ServicePort, taken: set[Place], twins: dict[int, int]) -> ServicePort:
        """TCP and UDP of one port have the same port of nodes, if nobody says otherwise.

        `taken` are places that the Service has itself, `twins` the ports of nodes that its ports have.
        """
        if not port.node_port:
            twin = (port.protocol, twins.get(port.port, 0))
            is_free = twin[1] and twin not in self._holders and twin not in taken
            port = replace(port, node_port=twin[1] if is_free else self._choose_port(port.protocol, taken))
            taken.add((port.protocol, port.node_port))
        twins.setdefault(port.port, port.node_port)
        return port

    def _choose_address(self) -> str:
        count = ADDRESSES.num_addresses - 1 - FIRST_CHOSEN
        for _ in range(count):
            address = str(ADDRESSES[self._next_address])
            self._next_address = FIRST_CHOSEN + (self._next_address + 1 - FIRST_CHOSEN) % count
            if ("address", address) not in self._holders:
                return address
        raise errors.internal("failed to allocate a serviceIP: range is full")

    def _choose_port(self, protocol: str, taken: set[Place]) -> int:
        for _ in NODE_PORTS:
            port = NODE_PORTS[self._next_port]
            self._next_port = (self._next_port + 1) % len(NODE_PORTS)
            if (protocol, port) not in self._holders and (protocol, port) not in taken:
                return port
        raise errors.internal("failed to allocate a nodePort: range is full")

    def _note(self, key: Key, service: Service | None) -> None:
        """What a Service holds from now on, instead of what it held."""
        for place in self._held.pop(key, frozenset()):
            if self._holders.get(place) == key:
                del self._holders[place]
        if service is not None:
            held = self._held[key] = frozenset(_places(service))
            self._holders |= dict.fromkeys(held, key)

    _apply = _note


def _places(service: Service) -> Iterator[Place]:
    spec = service.spec
    if needs_address(spec):
        yield from (("address", address) for address in spec.cluster_ips)
    yield from ((port.protocol, port.node_port) for port in spec.ports if port.node_port)
    if spec.health_check_node_port:
        yield "TCP", spec.health_check_node_port
