"""The token of a ServiceAccount, requested from the API server (TokenRequest) by somebody who may, and renewed."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable
from typing import Any, Final

from dray.api.generated.core import ServiceAccount
from dray.api.kinds import SERVICE_ACCOUNTS
from dray.api.meta import ObjectMeta
from dray.api.status import ApiError
from dray.client.interface import Client

LIFE_SECONDS: Final = 3600
RENEWED_AFTER: Final = 0.8
"""Which part of its life a token is used before the next one is requested."""
RETRY_SECONDS: Final = 10.0

log = logging.getLogger(__name__)


class AccountToken:
    """A `Credential`: who uses it acts as the ServiceAccount, which is made if it is missing."""

    def __init__(
        self, issuer: Client, namespace: str, name: str, monotonic: Callable[[], float] = time.monotonic
    ) -> None:
        """`issuer` may create ServiceAccounts and their tokens."""
        self._issuer = issuer
        self._namespace = namespace
        self._name = name
        self._monotonic = monotonic
        self._value = ""
        self._renewed_at = float("-inf")
        self._expires_at = float("-inf")
        self._lock = asyncio.Lock()

    async def current(self) -> str:
        """The token to send. Raises ApiError or OSError if none is issued and there is none that is still good."""
        if self._monotonic() >= self._renewed_at:
            async with self._lock:
                if self._monotonic() >= self._renewed_at:
                    await self._request_in_time()
        return self._value

    async def renew(self, refused: str) -> bool:
        """Requests another token, as when the account was deleted and made again."""
        async with self._lock:
            if self._value == refused:
                try:
                    await self._request()
                except (ApiError, OSError) as error:
                    log.warning("no new token for %s/%s: %s", self._namespace, self._name, error)
        return self._value != refused

    async def _request_in_time(self) -> None:
        """A token that is still good is used on if there is no new one yet."""
        try:
            await self._request()
        except (ApiError, OSError) as error:
            now = self._monotonic()
            if now >= self._expires_at:
                raise
            self._renewed_at = now + RETRY_SECONDS
            log.warning("no new token for %s/%s: %s; it is tried again", self._namespace, self._name, error)

    async def _request(self) -> None:
        # The server says how long a token lives: its clock and ours need not agree on when that ends.
        started = self._monotonic()
        try:
            answer = await self._issue()
        except ApiError as error:
            if error.code != 404:
                raise
            await self._make_account()
            answer = await self._issue()
        seconds = answer["spec"]["expirationSeconds"]
        self._value = answer["status"]["token"]
        self._renewed_at = started + seconds * RENEWED_AFTER
        self._expires_at = started + seconds

    async def _issue(self) -> dict[str, Any]:
        body = {
            "apiVersion": "authentication.k8s.io/v1",
            "kind": "TokenRequest",
            "spec": {"audiences": [], "expirationSeconds": LIFE_SECONDS},
        }
        return await self._issuer.post(SERVICE_ACCOUNTS, self._namespace, self._name, "token", body)

    async def _make_account(self) -> None:
        meta = ObjectMeta(namespace=self._namespace, name=self._name)
        try:
            await self._issuer.create(ServiceAccount(api_version="v1", kind="ServiceAccount", metadata=meta))
        except ApiError as error:
            if error.code != 409:  # somebody was faster
                raise
