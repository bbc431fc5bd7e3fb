"""Tokens that are requested for a ServiceAccount: made, used, renewed in time, and replaced when they are refused."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from dray.api.generated.authentication import SelfSubjectReview
from dray.api.registry import by_kind
from dray.api.status import ApiError
from dray.client.account_token import LIFE_SECONDS, RENEWED_AFTER, RETRY_SECONDS, AccountToken
from dray.client.http import HttpClient
from dray.client.kubeconfig import load_kubeconfig
from dray.server.instance import Instance, ServerSettings

ACCOUNTS = by_kind("v1", "ServiceAccount")
USER = "system:serviceaccount:kube-system:some-controller"


class Issuer:
    """The admin's client, which counts what it issues and may be told to fail."""

    def __init__(self, client: HttpClient) -> None:
        self._client = client
        self.create = client.create
        self.issued = 0
        self.failure: Exception | None = None

    async def post(self, *arguments: Any) -> dict[str, Any]:
        if self.failure is not None:
            raise self.failure
        answer = await self._client.post(*arguments)
        self.issued += 1
        return answer


class World:
    """A server, its admin, and a token with a clock that stands still."""

    def __init__(self, instance: Instance, admin: HttpClient) -> None:
        self.admin = admin
        self.issuer = Issuer(admin)
        self.now = 1000.0
        self.token = AccountToken(self.issuer, "kube-system", "some-controller", lambda: self.now)  # type: ignore[arg-type]
        self._connection = replace(load_kubeconfig([instance.kubeconfig]), token="")

    def client(self) -> HttpClient:
        return HttpClient(self._connection, credential=self.token)


@contextlib.asynccontextmanager
async def world_in(directory: Path) -> AsyncIterator[World]:
    instance = Instance(ServerSettings(directory=directory / "state", port=0))
    try:
        await instance.start()
        async with HttpClient(load_kubeconfig([instance.kubeconfig])) as admin:
            yield World(instance, admin)
    finally:
        await instance.stop(0.1)


async def who(client: HttpClient) -> str:
    review = SelfSubjectReview(api_version="authentication.k8s.io/v1", kind="SelfSubjectReview")
    return (await client.create(review)).status.user_info.username


async def test_the_account_is_made_and_acted_as(tmp_path: Path) -> None:
    async with world_in(tmp_path) as world:
        async with world.client() as client:
            assert set(await asyncio.gather(*(who(client) for _ in range(5)))) == {USER}
        assert world.issuer.issued == 1
        await world.admin.get(ACCOUNTS, "kube-system", "some-controller")


async def test_a_token_is_renewed_before_it_expires(tmp_path: Path) -> None:
    async with world_in(tmp_path) as world:
        first = await world.token.current()
        world.now += LIFE_SECONDS * RENEWED_AFTER - 1
        assert await world.token.current() == first
        world.now += 1
        assert await world.token.current() != first
        assert world.issuer.issued == 2


async def test_a_token_that_is_still_good_is_used_until_there_is_a_new_one(tmp_path: Path) -> None:
    async with world_in(tmp_path) as world:
        first = await world.token.current()
        world.issuer.failure = ConnectionError("the server restarts")
        world.now += LIFE_SECONDS * RENEWED_AFTER
        assert await world.token.current() == first
        world.now += LIFE_SECONDS * (1 - RENEWED_AFTER)
        with pytest.raises(ConnectionError, match="restarts"):
            await world.token.current()
        world.issuer.failure = None
        world.now += RETRY_SECONDS
        assert await world.token.current() != first


async def test_the_tokens_of_an_account_that_was_deleted_are_replaced(tmp_path: Path) -> None:
    async with world_in(tmp_path) as world:
        async with world.client() as client:
            assert await who(client) == USER
            await world.admin.delete(ACCOUNTS, "kube-system", "some-controller")
            assert await who(client) == USER
        assert world.issuer.issued == 2


async def test_who_gets_no_token_is_told_why(tmp_path: Path) -> None:
    async with world_in(tmp_path) as world:
        world.issuer.failure = ApiError(403, "Forbidden", "no tokens for you")
        async with world.client() as client:
            with pytest.raises(ApiError, match="no tokens for you"):
                await who(client)
