"""Addresses of Services are found at once, however many are taken."""

from __future__ import annotations

from dray.api.generated.core import Service, ServicePort, ServiceSpec
from dray.api.meta import ObjectMeta
from dray.server.indexes.service_addresses import ADDRESSES, FIRST_CHOSEN, ServiceAddresses
from dray.store import Key, LocalStore, MemoryBackend
from work import lines_run


def test_a_block_of_taken_addresses_is_not_gone_through() -> None:
    """After a start, those of all Services there are lie in one."""
    addresses = ServiceAddresses(LocalStore(MemoryBackend(), decode=lambda _resource, data: data))

    def make(name: str, address: str = "") -> str:
        given = (address,) if address else ()
        spec = ServiceSpec(type="ClusterIP", cluster_ip=address, cluster_ips=given, ports=(ServicePort(port=80),))
        made = Service(metadata=ObjectMeta(name=name, namespace="a"), spec=spec)
        obj, _ = addresses.completing(Key("services", "a", name), made, keep=True)(1)
        return str(obj.spec.cluster_ip)

    taken = {make(f"old-{number}", str(ADDRESSES[FIRST_CHOSEN + number])) for number in range(3000)}
    chosen: list[str] = []
    assert sum(lines_run(lambda: chosen.append(make("new"))).values()) < 1500
    assert chosen[0] not in taken
