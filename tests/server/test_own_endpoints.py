"""The Service `kubernetes` leads to the servers that there are, as in Kubernetes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from dray.api.kinds import ENDPOINT_SLICES, ENDPOINTS, SERVICES
from dray.api.meta import Object
from dray.client import Client
from dray.server.upkeep.own_endpoints import Place, Sightings, find_address, publish
from live_server import running_server
from local_server import local_server
from patience import eventually

NONE = Sightings(lambda: 0.0)


async def where(client: Client) -> Any:
    """What the Endpoints and the EndpointSlice of the Service say."""
    endpoints: Any = await client.get(ENDPOINTS, "default", "kubernetes")
    piece: Any = await client.get(ENDPOINT_SLICES, "default", "kubernetes")
    (subset,) = endpoints.subsets
    assert endpoints.metadata.labels == {"endpointslice.kubernetes.io/skip-mirror": "true"}
    assert piece.metadata.labels == {"kubernetes.io/service-name": "kubernetes"}
    assert [(port.name, port.port, port.protocol) for port in subset.ports] == [
        (port.name, port.port, port.protocol) for port in piece.ports
    ]
    assert all(each.conditions.ready for each in piece.endpoints)
    addresses = [address.ip for address in subset.addresses]
    assert addresses == [each.addresses[0] for each in piece.endpoints]
    return piece.address_type, addresses, subset.ports[0].port


@pytest.mark.parametrize(("address", "kind"), [("192.0.2.7", "IPv4"), ("2001:db8::7", "IPv6")])
async def test_a_server_says_where_it_is_and_says_it_again(address: str, kind: str) -> None:
    async with local_server(with_roles=False) as server:
        client = server.client()
        await publish(server.engine, Place(address, 7443), NONE)
        assert await where(client) == (kind, [address], 7443)
        service: Any = await client.get(SERVICES, "default", "kubernetes")
        assert (service.spec.ports[0].port, service.spec.ports[0].target_port) == (443, 7443)
        revision = server.store.revision
        await publish(server.engine, Place(address, 7443), NONE)
        assert server.store.revision == revision, "nothing was to be written"
        for kind_of in (SERVICES, ENDPOINTS, ENDPOINT_SLICES):
            await client.delete(kind_of, "default", "kubernetes")
        await publish(server.engine, Place(address, 7443), NONE)
        assert await where(client) == (kind, [address], 7443)
        assert isinstance(await client.get(SERVICES, "default", "kubernetes"), Object)


async def test_a_server_that_has_moved_is_found_at_its_new_place() -> None:
    async with local_server(with_roles=False) as server:
        await publish(server.engine, Place("192.0.2.7", 6443), NONE)
        await publish(server.engine, Place("192.0.2.8", 6444), NONE)
        assert await where(server.client()) == ("IPv4", ["192.0.2.8"], 6444)


@pytest.mark.parametrize("bind", ["127.0.0.1", "0.0.0.0", "::1", "::"])
def test_who_listens_on_no_address_of_its_own_has_that_of_the_machine(bind: str) -> None:
    assert find_address("192.0.2.9") == "192.0.2.9"
    assert find_address(bind) not in ("127.0.0.1", "0.0.0.0", "::1", "::")


def test_a_running_server_is_found(tmp_path: Path) -> None:
    own = find_address("127.0.0.1")
    if not own:
        pytest.skip("this machine has no address but loopback")
    with running_server(tmp_path / "state", program="server") as server:
        port = int(server.url.rpartition(":")[2])
        path = "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices/kubernetes"
        found = eventually(lambda: (answer := server.request("GET", path)).code == 200 and answer.json)
        assert [each["addresses"] for each in found["endpoints"]] == [[own]]
        assert found["ports"] == [{"name": "https", "port": port, "protocol": "TCP"}]
