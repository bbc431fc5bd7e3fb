"""An API server in memory, without HTTP: the real verbs, rules, admission and rights, on a clock that tests move.

async with local_server() as server:
    admin = server.client()                              # may do everything
    controller = server.component("resource-claim-controller")   # has that component's rights
    await server.clock.advance(300)
"""

from __future__ import annotations

import contextlib
import random
from collections.abc import AsyncIterator, Awaitable, Mapping
from typing import Any

import pytest

from dray.api import codec
from dray.api.meta import Object
from dray.api.registry import by_kind
from dray.api.status import ApiError
from dray.reconcile import VirtualClock
from dray.reconcile.clock import as_time
from dray.server import first_objects, identity_actions, review_actions
from dray.server.actions import ActionTable
from dray.server.admission import default_chain
from dray.server.engine import Engine
from dray.server.instance import decode_stored
from dray.server.local import LocalClient, component_identity
from dray.server.role_aggregation import aggregate_roles
from dray.server.security.authentication import Authenticator
from dray.server.security.certificates import create_private_key
from dray.server.security.default_roles import default_objects
from dray.server.security.identity import MASTERS, Identity, authenticated
from dray.server.security.tokens import ServiceAccountTokens
from dray.server.stored_roles import StoredRoles
from dray.store import MemoryBackend, Store

ADMIN = authenticated("admin", (MASTERS,))


def typed(document: Mapping[str, Any]) -> Object:
    """A manifest in a hub version as the typed object that clients take."""
    reading = codec.read(dict(document), by_kind(document["apiVersion"], document["kind"]).hub)
    assert reading.obj is not None, reading.errors
    assert not reading.unknown, reading.unknown
    return reading.obj


async def refused(call: Awaitable[object], why: str) -> None:
    """That a call is forbidden, for a reason that matches `why`."""
    with pytest.raises(ApiError, match=why) as failure:
        await call
    assert (failure.value.code, failure.value.reason) == (403, "Forbidden")


class LocalServer:
    """A server on a backend; a second one on the same backend is a restart. Names and uids come from the seed."""

    def __init__(self, clock: VirtualClock, backend: MemoryBackend, seed: int) -> None:
        self.clock = clock
        self.backend = backend
        self.store = Store(backend, decode_stored, clock=clock.monotonic)
        self.roles = StoredRoles(self.store)
        self.engine = Engine(
            self.store,
            lambda: as_time(clock.now()),
            default_chain(self.roles),
            randomness=random.Random(seed),
        )
        tokens = ServiceAccountTokens(create_private_key(), self.engine.get, clock.now)
        self.actions = ActionTable()
        identity_actions.register(self.actions, tokens)
        review_actions.register(self.actions, Authenticator({}, tokens, clock.now), self.roles)

    def client(self, identity: Identity = ADMIN) -> LocalClient:
        """A client that acts as an identity."""
        return LocalClient(self.engine, identity, self.roles, self.actions)

    def component(self, name: str) -> LocalClient:
        """A client with the rights of a component: `kube-scheduler`, or a controller by its name."""
        return self.client(component_identity(name))


@contextlib.asynccontextmanager
async def local_server(
    clock: VirtualClock | None = None, backend: MemoryBackend | None = None, *, seed: int = 1, with_roles: bool = True
) -> AsyncIterator[LocalServer]:
    """A started server. Without roles only `client()` may do anything, and it starts faster."""
    server = LocalServer(clock or VirtualClock(), backend or MemoryBackend(), seed)
    await first_objects.ensure(server.engine, default_objects() if with_roles else ())
    if with_roles:
        await aggregate_roles(server.engine, server.roles)
    try:
        yield server
    finally:
        await server.store.close()
