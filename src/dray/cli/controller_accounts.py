"""A way in for each controller, as the ServiceAccount that has the rights of that controller and no others."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager

from dray.api.well_known import SYSTEM_NAMESPACE
from dray.client import Client
from dray.client.account_token import AccountToken
from dray.client.http import HttpClient
from dray.client.kubeconfig import Connection
from dray.controllers.manager import ClientFor
from dray.reconcile import Clock


@asynccontextmanager
async def clients(connection: Connection, issuer: Client, clock: Clock) -> AsyncIterator[ClientFor]:
    """Makes clients by the name of an account, with tokens that `issuer` requests; they are closed in the end."""
    nobody = connection.of_another()
    made: dict[str, HttpClient] = {}
    async with AsyncExitStack() as open_ones:

        def client_for(account: str) -> Client:
            if account not in made:
                token = AccountToken(issuer, SYSTEM_NAMESPACE, account, clock.monotonic)
                made[account] = HttpClient(nobody, agent=f"dray controllers/{account}", credential=token)
                open_ones.push_async_callback(made[account].close)
            return made[account]

        yield client_for
