"""Who is not let in is told why, as far as that can be known: by the client, where the server does not say."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from msgspec.structs import replace

from dray.api.kinds import NODES
from dray.api.status import ApiError
from dray.client.http import HttpClient
from dray.client.kubeconfig import Connection, load_kubeconfig
from dray.process.http import Answer, Request, Response
from dray.server.instance import Instance, ServerSettings
from scripted_http import scripted_http


async def test_a_certificate_that_has_expired_is_said_to_have(tmp_path: Path) -> None:
    """Of dray's server one hears only that it closes the connection."""
    instance = Instance(ServerSettings(directory=tmp_path / "state", port=0))
    try:
        await instance.start()
        begun = datetime.now(UTC) - timedelta(minutes=1)
        pair = instance.credentials.authority.issue_client_certificate("jane", (), begun, timedelta(seconds=1))
        admin = load_kubeconfig([instance.kubeconfig])
        old = replace(admin, token="", certificate=pair.certificate, key=pair.key)
        async with HttpClient(old) as client:
            with pytest.raises(OSError, match=r"it closed the connection \(the client certificate has expired at 2"):
                await client.list(NODES)
    finally:
        await instance.stop(0.1)

    def script(_: Request) -> Answer:
        return Response(401, b'{"kind": "Status", "status": "Failure", "reason": "Unauthorized", "code": 401}')

    async with scripted_http(script) as url, HttpClient(replace(old, server=url)) as client:
        with pytest.raises(ApiError, match=r"the client certificate has expired at 2"):
            await client.list(NODES)


async def test_a_token_file_without_a_token_is_named_and_nobody_goes_on_without(tmp_path: Path) -> None:
    seen: list[str] = []

    def script(request: Request) -> Answer:
        seen.append(request.header("authorization"))
        return Response(200, b'{"kind": "NodeList", "metadata": {"resourceVersion": "1"}, "items": []}')

    token = tmp_path / "token"
    async with scripted_http(script) as url, HttpClient(Connection(server=url, token_file=token)) as client:
        with pytest.raises(OSError, match=r"there is no token in .*token: no such file or directory"):
            await client.list(NODES)
        token.write_text("\n")
        with pytest.raises(OSError, match=r"there is no token in .*token$"):
            await client.list(NODES)
        token.write_text("now\n")
        await client.list(NODES)
    assert seen == ["Bearer now"]
