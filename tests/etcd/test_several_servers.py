"""What was safe because there was one server is safe with several on one etcd."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from msgspec.structs import replace

from controller_world import manifest, pod, typed
from dray.api.kinds import ENDPOINT_SLICES, LEASES
from dray.api.registry import by_kind
from dray.api.status import ApiError
from dray.api.times import MicroTime
from dray.process.http import Peer, Request
from dray.server.objects import finish
from dray.server.security.certificates import create_private_key
from dray.server.security.identity import MASTERS, authenticated
from dray.server.upkeep import own_endpoints, together
from dray.store import Basis, Key
from etcd_world import Etcd, EtcdServer, etcd_servers, etcd_store, hears_late, new_prefix
from eviction_objects import DRIVER, V1, device_slice
from local_server import ADMIN, refused

CLAIMS = by_kind(V1, "ResourceClaim")
QUOTAS = by_kind("v1", "ResourceQuota")
NAMESPACES = by_kind("v1", "Namespace")
MAPS = by_kind("v1", "ConfigMap")
SCHEDULER = authenticated("system:kube-scheduler", (MASTERS,))


def claim(name: str) -> Any:
    requests = [{"name": "gpu", "exactly": {"deviceClassName": "gpu"}}]
    return typed(manifest(V1, "ResourceClaim", name, spec={"devices": {"requests": requests}}))


def allocation(device: str, **more: Any) -> Mapping[str, Any]:
    result = {"request": "gpu", "driver": DRIVER, "pool": "pool", "device": device, **more}
    return {"status": {"allocation": {"devices": {"results": [result]}}}}


@contextlib.asynccontextmanager
async def two_servers(etcd: Etcd) -> AsyncIterator[tuple[EtcdServer, EtcdServer]]:
    async with etcd_servers(etcd.urls, 2) as (one, other):
        yield one, other


async def allocated(servers: tuple[EtcdServer, ...], names: list[str], *wanted: Mapping[str, Any]) -> int:
    """How many of some claims get what they want, when schedulers on all servers give it to them at once."""
    for server in servers:
        await server.store.catch_up()  # a scheduler gives devices to claims that it has seen
    clients = [server.client(SCHEDULER) for server in servers]
    outcomes = await asyncio.gather(
        *(
            clients[number % len(clients)].patch(
                CLAIMS, "default", name, wanted[number % len(wanted)], subresource="status"
            )
            for number, name in enumerate(names)
        ),
        return_exceptions=True,
    )
    for each in outcomes:
        assert not isinstance(each, BaseException) or (isinstance(each, ApiError) and each.code == 409), each
    return sum(not isinstance(each, BaseException) for each in outcomes)


async def test_a_device_is_given_to_one_claim_by_whichever_server(etcd: Etcd) -> None:
    async with two_servers(etcd) as servers:
        one = servers[0].client(SCHEDULER)
        link = {"name": "link", "allowMultipleAllocations": True, "capacity": {"bandwidth": {"value": "10"}}}
        devices = [*({"name": f"gpu-{number}"} for number in range(6)), link]
        await one.create(typed(device_slice("pool", devices=devices)))
        for number in range(6):
            names = [f"c{number}-{each}" for each in range(4)]
            await asyncio.gather(*(one.create(claim(name)) for name in names))
            assert await allocated(servers, names, allocation(f"gpu-{number}")) == 1


async def test_capacity_that_claims_share_is_not_given_away_twice(etcd: Etcd) -> None:
    async with two_servers(etcd) as servers:
        one = servers[0].client(SCHEDULER)
        link = {"name": "link", "allowMultipleAllocations": True, "capacity": {"bandwidth": {"value": "10"}}}
        await one.create(typed(device_slice("pool", devices=[link])))
        names = [f"c{number}" for number in range(8)]
        await asyncio.gather(*(one.create(claim(name)) for name in names))
        shares = [
            allocation(
                "link", shareID=f"8d1a8a3c-3b53-4f6f-9c38-7e0d7f6f3f0{number}", consumedCapacity={"bandwidth": "3"}
            )
            for number in range(8)
        ]
        assert await allocated(servers, names, *shares) == 3


async def test_quotas_are_counted_exactly(etcd: Etcd) -> None:
    async with two_servers(etcd) as (one, other):
        quota = manifest("v1", "ResourceQuota", "few", spec={"hard": {"count/configmaps": "5"}})
        await one.client().create(typed({**quota, "status": {}}))
        status = {"hard": {"count/configmaps": "5"}, "used": {"count/configmaps": "0"}}
        await one.client().patch(QUOTAS, "default", "few", {"status": status}, subresource="status")
        await other.store.catch_up()
        clients = [server.client() for server in (one, other)]
        outcomes = await asyncio.gather(
            *(clients[n % 2].create(typed(manifest("v1", "ConfigMap", f"m{n}"))) for n in range(12)),
            return_exceptions=True,
        )
        refusals = [each for each in outcomes if isinstance(each, ApiError)]
        assert [each.code for each in refusals] == [403] * 7
        charged: Any = await other.client().get(QUOTAS, "default", "few")
        assert str(charged.status.used["count/configmaps"]) == "5"


async def test_a_change_that_changes_nothing_is_judged_by_the_latest_state(
    etcd: Etcd, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Who sets what another server shows as set already must not be told that it is, if somebody else has unset it."""
    async with two_servers(etcd) as (one, other):
        hears_late(other, monkeypatch)
        await one.client().create(typed(manifest("v1", "ConfigMap", "m", data={"x": "0"})))
        await other.store.catch_up()
        for number in range(3):
            now, then = {"data": {"x": str(number + 1)}}, {"data": {"x": str(number)}}
            await one.client().patch(MAPS, "default", "m", now)
            await other.client().patch(MAPS, "default", "m", then)
            found: Any = await one.client().get(MAPS, "default", "m")
            assert found.data == then["data"]
            await one.client().patch(MAPS, "default", "m", now)
            await other.store.catch_up()


async def test_what_another_server_has_just_made_is_there(etcd: Etcd, monkeypatch: pytest.MonkeyPatch) -> None:
    """Components in the process of a server are not told that there is nothing either."""
    async with two_servers(etcd) as (one, other):
        hears_late(other, monkeypatch)
        await one.client().create(typed(manifest("v1", "ConfigMap", "changed")))
        await other.client().patch(MAPS, "default", "changed", {"data": {"x": "1"}})
        await one.client().create(typed(manifest("v1", "ConfigMap", "deleted")))
        await other.client().delete(MAPS, "default", "deleted")
        with pytest.raises(ApiError, match="not found"):
            await one.client().get(MAPS, "default", "deleted")


async def test_addresses_and_ports_of_services_are_given_once(etcd: Etcd) -> None:
    async with two_servers(etcd) as (one, other):
        clients = [server.client() for server in (one, other)]

        def service(name: str, **more: Any) -> Any:
            spec = {"type": "NodePort", "ports": [{"port": 80}], **more}
            return typed(manifest("v1", "Service", name, spec=spec))

        made = await asyncio.gather(*(clients[n % 2].create(service(f"s{n}")) for n in range(16)))
        assert len({each.spec.cluster_ip for each in made}) == 16
        assert len({each.spec.ports[0].node_port for each in made}) == 16
        for number in range(4):
            wanted = service("wanted", clusterIP=f"10.96.0.{20 + number}")
            named = [replace(wanted, metadata=replace(wanted.metadata, name=f"w{number}-{n}")) for n in range(4)]
            outcomes = await asyncio.gather(
                *(clients[n % 2].create(each) for n, each in enumerate(named)), return_exceptions=True
            )
            refusals = [each for each in outcomes if isinstance(each, BaseException)]
            assert [getattr(each, "code", each) for each in refusals] == [422] * 3
            # One that exists keeps what it has, whoever tries to make it anew.
            taken = await asyncio.gather(
                *(client.create(service(f"s{number}")) for client in clients), return_exceptions=True
            )
            assert [getattr(each, "code", each) for each in taken] == [409] * 2


async def test_without_their_guard_addresses_would_be_given_twice(etcd: Etcd) -> None:
    async with two_servers(etcd) as servers:
        for server in servers:
            server.engine.service_addresses.basis = Basis()
        twice = 0
        for number in range(8):
            spec = {"clusterIP": f"10.96.0.{20 + number}", "ports": [{"port": 80}]}
            made = await asyncio.gather(
                *(
                    server.client().create(typed(manifest("v1", "Service", f"s{number}-{n}", spec=spec)))
                    for n, server in enumerate(servers)
                ),
                return_exceptions=True,
            )
            twice += not any(isinstance(each, BaseException) for each in made)
        assert twice, "nobody noticed"


async def test_a_name_is_given_once(etcd: Etcd) -> None:
    async with two_servers(etcd) as (one, other):
        for number in range(5):
            outcomes = await asyncio.gather(
                *(server.client().create(typed(pod(f"p{number}"))) for server in (one, other, one, other)),
                return_exceptions=True,
            )
            assert sum(not isinstance(each, BaseException) for each in outcomes) == 1


async def test_servers_that_start_at_the_same_moment_make_what_every_cluster_has_once(etcd: Etcd) -> None:
    prefix = new_prefix()
    async with etcd_store(etcd.urls, prefix) as one, etcd_store(etcd.urls, prefix) as other:
        servers = [EtcdServer(store, create_private_key()) for store in (one, other)]
        await asyncio.gather(*(together.ensure(server.store, server.prepare) for server in servers))
        for server in servers:
            assert len((await server.client().list(NAMESPACES)).items) == 4
            await server.stop()


async def test_reads_that_wait_for_etcd_do_not_count_as_busy(etcd: Etcd, monkeypatch: pytest.MonkeyPatch) -> None:
    """Else few of them would be let in at a time, and each would ask etcd by itself."""
    now = 0.0
    monkeypatch.setattr("dray.process.busy.perf_counter", lambda: now)

    def pass_time() -> None:
        nonlocal now
        now += 1000.0

    async with two_servers(etcd) as (_, server):
        slowly = server.store.catch_up

        async def catch_up() -> int:
            asyncio.get_running_loop().call_soon(pass_time)
            await asyncio.sleep(0)
            return await slowly()

        monkeypatch.setattr(server.store, "catch_up", catch_up)
        for path, code in (("default", 200), ("absent", 404)):
            request = Request("GET", f"/api/v1/namespaces/{path}", {}, {}, b"", Peer(""))
            monkeypatch.setattr(server.application._gate, "identify", lambda _request: ADMIN)
            answer: Any = await server.application(request)
            assert (answer.code, now > 0) == (code, True)
        assert server.application._fairness.flow(ADMIN.user).estimate < 1.0


async def test_the_only_server_answers_at_once_and_one_of_several_asks(
    etcd: Etcd, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = "/api/v1/namespaces/default"
    prefix = new_prefix()
    async with etcd_servers(etcd.urls, 1, prefix=prefix) as (one,):
        monkeypatch.setattr(type(one.application._gate), "identify", lambda _self, _request: ADMIN)

        async def answered() -> bool:
            await one.store.catch_up()
            return one.application.at_once(Request("GET", path, {}, {}, b"", Peer(""))) is not None

        assert await answered()
        async with etcd_servers(etcd.urls, 1, prefix=prefix) as (other,):
            await other.client().create(typed(manifest("v1", "ConfigMap", "settings")))
            assert not await answered()


@pytest.mark.parametrize("query", [{}, {"resourceVersion": "0"}])
async def test_whether_something_is_there_is_asked_once(
    etcd: Etcd, monkeypatch: pytest.MonkeyPatch, query: dict[str, str]
) -> None:
    """Nobody is told that something is not there by a state that is not the latest, and one question is enough."""
    async with two_servers(etcd) as (one, other):
        asked: list[int] = []
        catch_up = other.store.catch_up

        async def counted() -> int:
            asked.append(1)
            return await catch_up()

        monkeypatch.setattr(other.store, "catch_up", counted)
        monkeypatch.setattr(other.application._gate, "identify", lambda _request: ADMIN)
        path = "/api/v1/namespaces/default/configmaps/settings"
        answer: Any = await other.application(Request("GET", path, query, {}, b"", Peer("")))
        assert (answer.code, len(asked)) == (404, 1)
        await one.client().create(typed(manifest("v1", "ConfigMap", "settings")))
        answer = await other.application(Request("GET", path, query, {}, b"", Peer("")))
        assert answer.code == 200


async def test_roles_made_on_one_server_count_on_the_other(etcd: Etcd) -> None:
    async with etcd_servers(etcd.urls, 2, with_roles=True) as (one, other):
        somebody = authenticated("jane")
        await refused(other.client(somebody).get(MAPS, "default", "settings"), "cannot get")
        rules = [{"apiGroups": [""], "resources": ["configmaps"], "verbs": ["create"]}]
        await one.client().create(typed(manifest("rbac.authorization.k8s.io/v1", "Role", "maps", rules=rules)))
        await one.client().create(
            typed(
                manifest(
                    "rbac.authorization.k8s.io/v1",
                    "RoleBinding",
                    "jane",
                    roleRef={"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "maps"},
                    subjects=[{"kind": "User", "name": "jane", "apiGroup": "rbac.authorization.k8s.io"}],
                )
            )
        )
        await other.store.catch_up()
        await other.client(somebody).create(typed(manifest("v1", "ConfigMap", "hers")))


@pytest.mark.parametrize("server", [0, 1])
async def test_lists_in_pages_go_on_at_another_server(etcd: Etcd, server: int) -> None:
    async with two_servers(etcd) as servers:
        for number in range(6):
            await servers[0].client().create(typed(manifest("v1", "ConfigMap", f"m{number}")))
        listing = await servers[0].client().list(MAPS, "default")
        other = servers[server]
        seen = int(listing.revision)
        await servers[0].client().delete(MAPS, "default", "m3")
        await other.store.catch_up()
        page = other.store.list(MAPS.resource, "default", revision=seen, after=("default", "m1"), limit=3)
        assert [record.key.name for record in page.records] == ["m2", "m3", "m4"]


@pytest.mark.parametrize("off", [0, -30, 30])
async def test_the_service_of_the_cluster_leads_to_all_servers_that_are_alive(etcd: Etcd, off: int) -> None:
    """However far their clocks are apart."""
    time = 0.0
    seen = own_endpoints.Sightings(lambda: time)
    ones, others = own_endpoints.Place("192.0.2.1", 6443), own_endpoints.Place("192.0.2.2", 6443)

    async def renew(server: EtcdServer) -> None:
        """One has told that it is there, by its own clock, which is off."""
        await own_endpoints.publish(server.engine, ones, own_endpoints.Sightings(lambda: 0.0))
        found: Any = await server.client().get(LEASES, "kube-system", "apiserver-192-0-2-1-6443")
        told = MicroTime.of(datetime.now(UTC) + timedelta(seconds=off))
        await server.client().update(replace(found, spec=replace(found.spec, renew_time=told)))

    async with two_servers(etcd) as (one, other):
        for _ in range(2):
            await renew(one)
            await other.store.catch_up()
            await own_endpoints.publish(other.engine, others, seen)
            time += own_endpoints.PAUSE_SECONDS
        assert await _addresses(other) == ["192.0.2.1", "192.0.2.2"]
        time += own_endpoints.PAUSE_SECONDS
        await own_endpoints.publish(other.engine, others, seen)
        assert await _addresses(other) == ["192.0.2.2"], "who has not renewed its lease is gone"
        await renew(one)
        await other.store.catch_up()
        await own_endpoints.publish(other.engine, others, seen)
        assert await _addresses(other) == ["192.0.2.1", "192.0.2.2"], "who comes back is found again"


@pytest.mark.parametrize("is_marked", [False, True])
async def test_nothing_is_made_in_a_namespace_of_which_it_is_not_heard_yet_that_it_goes(
    etcd: Etcd, is_marked: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with two_servers(etcd) as (one, other):
        made = await other.client().create(typed(manifest("v1", "Namespace", "short")))
        await one.store.catch_up()
        hears_late(one, monkeypatch)
        key = Key(NAMESPACES.resource, "", "short")
        if is_marked:
            await other.client().delete(NAMESPACES, "", "short")
        else:
            await other.store.delete(key, int(made.metadata.resource_version), finish(made))
        calls = [
            one.client().create(typed(manifest("v1", "ConfigMap", f"late-{number}", "short"))) for number in range(3)
        ]
        refusals = await asyncio.gather(*calls, return_exceptions=True)
        assert [getattr(each, "code", each) for each in refusals] == [403 if is_marked else 404] * 3
        await other.store.catch_up()
        assert not [each for each in other.store.list("configmaps").records if "late" in each.key.name]


async def _addresses(server: EtcdServer) -> list[str]:
    found: Any = await server.client().get(ENDPOINT_SLICES, "default", "kubernetes")
    return [each.addresses[0] for each in found.endpoints]
