"""Whoever is no admin is bounded in what they have stored, also where no namespace bounds them (issue 14)."""

from __future__ import annotations

import asyncio
import base64
import contextlib
from collections.abc import AsyncIterator, Awaitable
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding
from msgspec.structs import replace

from dray.api.kinds import NODES as NODE_KIND
from dray.api.kinds import SLICES
from dray.api.pods import MIRROR_ANNOTATION
from dray.api.status import ApiError
from dray.server.admission import most_stored
from dray.server.admission.most_stored import EventBudget
from dray.server.local import LocalClient
from dray.server.security.identity import (
    MASTERS,
    NODE_NAME,
    NODES,
    authenticated,
    service_account_groups,
    service_account_user,
)
from dray.store import ShareExceeded
from local_server import LocalServer, local_server, refused, typed
from loop_turns import LoopTurns
from server_objects import binding, node, node_slice

SMALL = 20_000
LARGE = {"a": "x" * 5000}


@pytest.fixture(autouse=True)
def little_room(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(most_stored, "MOST", SMALL)
    monkeypatch.setattr(most_stored, "MOST_SLICES", SMALL)


@contextlib.asynccontextmanager
async def two_nodes() -> AsyncIterator[LocalServer]:
    """A server with two nodes."""
    async with local_server() as server:
        for name in ("n1", "n2"):
            await server.client().create(node(name))
        yield server


def as_node(server: LocalServer, name: str) -> LocalClient:
    return server.client(authenticated(f"system:node:{name}", (NODES,)))


def event(name: str, size: int = 10, namespace: str = "default") -> Any:
    about = {"kind": "Pod", "namespace": namespace, "name": "p"}
    meta = {"name": name, "namespace": namespace, "annotations": {"a": "x" * size}}
    return typed({"apiVersion": "v1", "kind": "Event", "metadata": meta, "involvedObject": about})


def most_stored_of(server: LocalServer) -> most_stored.MostStored:
    """The plugin that counts."""
    chain: Any = server.engine.admission
    return next(each for each in chain.plugins if isinstance(each, most_stored.MostStored))


async def filled(calls: Any) -> tuple[int, ApiError]:
    """How many calls went well until one was refused, and how."""
    for count, call in enumerate(calls):
        try:
            await call
        except ApiError as error:
            return count, error
    raise AssertionError("nothing was refused")


async def test_a_node_publishes_so_much_and_no_more_and_others_go_on() -> None:
    async with two_nodes() as server:
        n1, n2 = as_node(server, "n1"), as_node(server, "n2")
        count, error = await filled(n1.create(node_slice(f"s{number}", "n1")) for number in range(50))
        assert 5 < count < 20
        assert (error.code, error.reason) == (403, "Forbidden")
        assert 'node "n1" has' in str(error)
        assert f"bytes of resourceslices stored, and may have {SMALL}: delete some first" in str(error)
        await n2.create(node_slice("theirs", "n2"))
        await server.client().create(node_slice("of-all"))
        found: Any = await n1.get(SLICES, "", "s0")
        await n1.update(replace(found, metadata=replace(found.metadata, labels={"a": "b"})))
        larger = replace(found, metadata=replace(found.metadata, labels={f"a{i}": "b" * 60 for i in range(20)}))
        await refused(
            n1.update(replace(larger, metadata=replace(larger.metadata, resource_version=""))), 'node "n1" has'
        )
        await n1.delete(SLICES, "", "s0")
        await n1.delete(SLICES, "", "s1")
        await n1.create(node_slice("again", "n1"))


async def test_a_node_that_makes_its_slices_a_little_larger_again_and_again_comes_to_an_end() -> None:
    async with two_nodes() as server:
        n1 = as_node(server, "n1")
        await filled(n1.create(node_slice(f"s{number}", "n1")) for number in range(50))
        found: Any = await n1.get(SLICES, "", "s0")

        async def grown(number: int) -> None:
            labels = {f"a{step}": "b" * 60 for step in range(number)}
            await n1.update(replace(found, metadata=replace(found.metadata, resource_version="", labels=labels)))

        count, error = await filled(grown(number) for number in range(500))
        assert (count < 100, error.code) == (True, 403)


async def test_accounts_of_a_namespace_ask_for_certificates_on_one_account() -> None:
    async with two_nodes() as server:
        made = x509.CertificateSigningRequestBuilder().subject_name(x509.Name([]))
        signed = made.sign(ec.generate_private_key(ec.SECP256R1()), hashes.SHA256()).public_bytes(Encoding.PEM)
        request = base64.b64encode(signed).decode()
        spec = {"request": request, "signerName": "example.com/any", "usages": ["client auth"]}

        def asked(name: str) -> Any:
            return typed(
                {
                    "apiVersion": "certificates.k8s.io/v1",
                    "kind": "CertificateSigningRequest",
                    "metadata": {"name": name},
                    "spec": spec,
                }
            )

        def account(number: int) -> LocalClient:
            user = service_account_user("default", f"sa{number}")
            return server.client(authenticated(user, (*service_account_groups("default"), MASTERS)))

        count, error = await filled(account(number).create(asked(f"r{number}")) for number in range(100))
        assert 3 < count < 30
        assert 'user "system:serviceaccount:default" has' in str(error)


async def test_what_is_stored_is_read_a_part_at_a_time_when_it_is_first_asked_for() -> None:
    async with two_nodes() as server:
        for start in range(0, 20_000, 200):
            made = (server.client().create(node_slice(f"s{number}")) for number in range(start, start + 200))
            await asyncio.gather(*made)
        turns = LoopTurns(asyncio.get_running_loop())
        await asyncio.gather(*(server.client().create(node_slice(f"n{number}", "n1")) for number in range(3)))
        assert turns.longest < 0.02
        plugin = most_stored_of(server)
        held = plugin._holdings[SLICES.resource].of("n1")
        records = [record for record in server.store.list(SLICES.resource).records if record.obj.spec.node_name == "n1"]
        assert held == sum(1024 + len(record.data) for record in records)


async def test_a_driver_on_a_node_is_on_the_account_of_the_node() -> None:
    async with two_nodes() as server:
        user = service_account_user("default", "driver")
        await server.client().create(binding("driver", "system:dra-driver", user))
        driver = server.client(authenticated(user, service_account_groups("default"), extra={NODE_NAME: ("n1",)}))
        count, error = await filled(driver.create(node_slice(f"s{number}", "n1")) for number in range(50))
        assert 5 < count < 20
        assert 'node "n1" has' in str(error)


async def test_a_node_has_so_many_mirror_pods_and_no_more() -> None:
    async with two_nodes() as server:
        uid = (await server.client().get(NODE_KIND, "", "n1")).metadata.uid

        def mirror(name: str) -> Any:
            owner = {"apiVersion": "v1", "kind": "Node", "name": "n1", "uid": uid, "controller": True}
            meta = {"name": name, "namespace": "default", "annotations": {MIRROR_ANNOTATION: "x"}}
            spec = {"nodeName": "n1", "containers": [{"name": "c", "image": "i"}]}
            return typed(
                {"apiVersion": "v1", "kind": "Pod", "metadata": {**meta, "ownerReferences": [owner]}, "spec": spec}
            )

        count, error = await filled(as_node(server, "n1").create(mirror(f"p{number}")) for number in range(50))
        assert 5 < count < 20
        assert f"bytes of pods stored, and may have {SMALL}" in str(error)


async def test_a_writer_of_events_comes_to_an_end_and_may_go_on_later() -> None:
    async with two_nodes() as server:
        n1, n2 = as_node(server, "n1"), as_node(server, "n2")
        count, error = await filled(n1.create(event(f"e{number}", 1000)) for number in range(50))
        assert 3 < count < 15
        assert (error.code, error.reason) == (429, "TooManyRequests")
        assert f'user "system:node:n1" has written {SMALL} bytes of Events in an hour' in str(error)
        await n2.create(event("theirs"))
        await server.client().create(event("of-the-admin"))
        await server.component("kube-scheduler").create(event("of-the-scheduler"))
        assert error.status.details is not None
        await server.clock.advance(error.status.details.retry_after_seconds)
        await n1.create(event("later", 1000))


async def test_an_update_of_an_event_keeps_it_for_another_hour_and_so_counts_like_a_new_one() -> None:
    async with two_nodes() as server:
        n1 = as_node(server, "n1")
        made: Any = await n1.create(event("once", 1000))

        async def again(number: int) -> None:
            nonlocal made
            made = await n1.update(replace(made, count=number + 2))

        count, error = await filled(again(number) for number in range(50))
        assert (count < 15, error.code) == (True, 429)


async def test_an_object_of_a_node_is_not_larger_than_any_node_needs(monkeypatch: pytest.MonkeyPatch) -> None:
    async with two_nodes() as server:
        monkeypatch.setattr(most_stored, "MOST_OF_NODE_OBJECT", 100_000)
        n1 = as_node(server, "n1")
        found: Any = await n1.get(NODE_KIND, "", "n1")

        def noted(size: int) -> Any:
            return replace(found, metadata=replace(found.metadata, resource_version="", annotations={"a": "x" * size}))

        await n1.update(noted(50_000))
        with pytest.raises(ApiError, match=r"'n1' has .* and one that a node writes may have 100000") as failure:
            await n1.update(noted(150_000))
        assert failure.value.code == 413
        await server.client().update(noted(150_000))
        await n1.update(noted(150_100))


async def test_a_namespace_beyond_its_share_is_refused_what_grows_and_others_go_on() -> None:
    async with two_nodes() as server:
        admin = server.client()
        await admin.create(typed({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "greedy"}}))
        server.store._shares.most = SMALL

        def full(namespace: str, name: str) -> Awaitable[Any]:
            meta = {"name": name, "namespace": namespace}
            return admin.create(typed({"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, "data": LARGE}))

        for number in range(4):
            await full("greedy", f"m{number}")
        with pytest.raises((ApiError, ShareExceeded), match='namespace "greedy" has'):
            await full("greedy", "more")
        await full("default", "mine")


def test_budgets_of_writers_are_bounded_in_number_and_those_who_wrote_most_are_remembered() -> None:
    budget = EventBudget()
    assert budget.take("loud", most_stored.MOST, 0.0) == 0.0
    for number in range(2 * most_stored.MOST_WRITERS):
        assert budget.take(f"quiet-{number}", 10, 1.0) == 0.0
    assert len(budget._written) <= most_stored.MOST_WRITERS
    assert budget.take("loud", 1_000_000, 2.0) > 0
    assert budget.take("loud", 1_000_000, -5000.0) > 0  # a clock that was set back gives nothing away


async def test_what_is_counted_is_what_is_stored_however_writes_meet() -> None:
    async with two_nodes() as server:
        n1 = as_node(server, "n1")
        await asyncio.gather(*(n1.create(node_slice(f"s{number}", "n1")) for number in range(8)))
        plugin = most_stored_of(server)
        await asyncio.gather(*(n1.delete(SLICES, "", f"s{number}") for number in range(4)))
        held = plugin._holdings[SLICES.resource].of("n1")
        records = server.store.list(SLICES.resource).records
        assert held == sum(1024 + len(record.data) for record in records)
