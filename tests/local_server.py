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

import builders
from dray.api.meta import Object
from dray.api.status import ApiError
from dray.reconcile import VirtualClock
from dray.server.api_server import ApiServer, Options
from dray.server.instance import decode_stored
from dray.server.local import LocalClient
from dray.server.security.certificates import create_private_key
from dray.server.security.identity import MASTERS, Identity, authenticated
from dray.store import LocalStore, MemoryBackend

ADMIN = authenticated("admin", (MASTERS,))


def typed(document: Mapping[str, Any]) -> Object:
    """A manifest in a hub version as the typed object that clients take."""
    return builders.typed(document, Object)


async def refused(call: Awaitable[object], why: str) -> None:
    """That a call is forbidden, for a reason that matches `why`."""
    with pytest.raises(ApiError, match=why) as failure:
        await call
    assert (failure.value.code, failure.value.reason) == (403, "Forbidden")


class LocalServer(ApiServer):
    """A server on a backend; a second one on the same backend is a restart. Names and uids come from the seed."""

    def __init__(self, clock: VirtualClock, backend: MemoryBackend, seed: int) -> None:
        self.clock = clock
        self.backend = backend
        store = LocalStore(backend, decode_stored, clock=clock.monotonic)
        super().__init__(store, clock, Options(signing_key=create_private_key()), randomness=random.Random(seed))

    def client(self, identity: Identity = ADMIN) -> LocalClient:
        """A client that acts as an identity."""
        return self.client_of(identity)

    def component(self, name: str) -> LocalClient:
        """A client with the rights of a component: `kube-scheduler`, or a controller by its name."""
        return self.local_client(name)


@contextlib.asynccontextmanager
async def local_server(
    clock: VirtualClock | None = None, backend: MemoryBackend | None = None, *, seed: int = 1, with_roles: bool = True
) -> AsyncIterator[LocalServer]:
    """A started server. Without roles only `client()` may do anything, and it starts faster."""
    server = LocalServer(clock or VirtualClock(), backend or MemoryBackend(), seed)
    await server.prepare(with_roles=with_roles)
    try:
        yield server
    finally:
        await server.store.close()
