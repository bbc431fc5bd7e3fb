"""Ways into a cluster: from what somebody shows at the door to clients that have that one's rights."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

import msgspec

from dray.api.generated.authentication import SelfSubjectReview
from dray.api.status import ApiError
from dray.client import Client
from dray.client.kubeconfig import Connection
from dray.live.viewer import PAUSE_SECONDS

if TYPE_CHECKING:
    from dray.client.http import HttpClient


class Caller(msgspec.Struct, frozen=True):
    """Somebody who is in."""

    user: str
    groups: tuple[str, ...]
    reader: Client
    """Lists and watches."""
    writer: HttpClient
    """Everything that changes something: over HTTP, so that it is audited and takes its turn as any request does."""
    credential: str = ""
    pause: float = PAUSE_SECONDS
    """Seconds that a view gathers changes for; 0 if the reader does."""


class Access(Protocol):
    """A cluster, and how one gets in."""

    @property
    def name(self) -> str:
        """What the cluster is called on the page."""
        ...

    @property
    def check_seconds(self) -> float:
        """How long a credential that was good is taken to be."""
        ...

    async def enter(self, token: str) -> Caller:
        """Whoever has this bearer token. Raises ApiError (401) if it is not valid, OSError if nobody can be asked."""
        ...

    async def is_still_in(self, caller: Caller) -> bool:
        """Whether the credential is still good. Raises OSError if nobody can be asked."""
        ...

    async def leave(self, caller: Caller) -> None:
        """Ends the connections of a caller."""
        ...


OWN = "\0own"
"""In place of a token: the credential of the kubeconfig itself, for who was given the link."""


class HttpAccess:
    """Any Kubernetes API server, by the address and the authority of a kubeconfig."""

    check_seconds = 30.0

    def __init__(self, connection: Connection) -> None:
        """The credential in `connection` is used for those alone who have the one-time link."""
        self._connection = connection

    @property
    def name(self) -> str:
        """Where the server is."""
        return self._connection.server

    async def enter(self, token: str) -> Caller:
        """Asks the server who this is."""
        from dray.client.http import HttpClient

        connection = self._connection if token == OWN else self._connection.of_another(token)
        client = HttpClient(connection, agent="dray dashboard")
        try:
            info = (await client.create(_review())).status.user_info
        except BaseException:
            await client.close()
            raise
        if not info.username or info.username == "system:anonymous":
            await client.close()
            raise ApiError(401, "Unauthorized", "the credential is not valid")
        return Caller(info.username, info.groups, client, client, token)

    async def is_still_in(self, caller: Caller) -> bool:
        """Asks again."""
        try:
            info = (await caller.writer.create(_review())).status.user_info
        except ApiError as error:
            return error.code not in (401, 403)
        return info.username == caller.user

    async def leave(self, caller: Caller) -> None:
        """Ends the connections."""
        await caller.writer.close()


def _review() -> SelfSubjectReview:
    return SelfSubjectReview(kind="SelfSubjectReview", api_version="authentication.k8s.io/v1")
