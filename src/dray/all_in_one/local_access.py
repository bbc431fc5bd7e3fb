"""The way into a server of the same process, for the dashboard: the token is checked at the server's own door.

What is read comes from the store without HTTP, with the rights of the token's owner and no others; what is written goes
over HTTP as anybody's request does, so that it is audited, admitted and takes its turn.
"""

from __future__ import annotations

import asyncio

from dray.api.status import ApiError
from dray.client.kubeconfig import Connection
from dray.dashboard.access import Caller
from dray.live.viewer import PAUSE_SECONDS
from dray.server.instance import Instance
from dray.server.security.identity import Identity
from dray.server.security.tokens import TokenError


class LocalAccess:
    """Implements `dashboard.access.Access`."""

    check_seconds = 0.0

    def __init__(self, instance: Instance) -> None:
        self._instance = instance

    @property
    def name(self) -> str:
        """Where the server is."""
        return self._instance.url

    async def enter(self, token: str) -> Caller:
        """Whoever has this token. Raises ApiError (401)."""
        from dray.client.http import HttpClient

        identity = self._identify(token)
        if identity is None:
            raise ApiError(401, "Unauthorized", "the credential is not valid")
        instance = self._instance
        authority = instance.credentials.authority.pair.certificate if instance.settings.tls else None
        connection = Connection(server=instance.url, authority=authority, token=token)
        writer = HttpClient(connection, agent="dray dashboard")
        reader = instance.client_of(identity, calm=lambda: asyncio.sleep(PAUSE_SECONDS))
        return Caller(identity.user, identity.groups, reader, writer, token, pause=0.0)

    async def is_still_in(self, caller: Caller) -> bool:
        """Whether the token is still good, and the same person's."""
        identity = self._identify(caller.credential)
        return identity is not None and (identity.user, identity.groups) == (caller.user, caller.groups)

    async def leave(self, caller: Caller) -> None:
        """Ends the connections."""
        await caller.writer.close()

    def _identify(self, token: str) -> Identity | None:
        try:
            return self._instance.authenticator.authenticate_token(token)[0]
        except TokenError:
            return None
