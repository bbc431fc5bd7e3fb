"""Credentials from a program: run when needed, kept until they expire, run again when the server refuses them."""

import json
import stat
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from dray.api.generated.authentication import SelfSubjectReview
from dray.api.status import ApiError
from dray.client.exec_credential import CredentialError, ExecCredential
from dray.client.http import HttpClient
from dray.client.kubeconfig import Connection, ExecProgram, load_kubeconfig
from dray.dashboard.access import OWN, HttpAccess
from dray.server.instance import Instance, ServerSettings
from dray.server.security.kubeconfig import client_kubeconfig

V1 = "client.authentication.k8s.io/v1"
NOW = datetime(2026, 6, 1, tzinfo=UTC)


class Program:
    """A program that prints what `answers` says, and notes how it was called."""

    def __init__(self, directory: Path) -> None:
        self.path = directory / "login"
        self.answer = directory / "answer"
        self.calls = directory / "calls"
        self.path.write_text(
            f"#!{sys.executable} -S\n"
            "import os, pathlib, sys\n"
            f"calls = open({str(self.calls)!r}, 'a')\n"
            "calls.write(os.environ['KUBERNETES_EXEC_INFO'] + '\\n')\n"
            f"text = pathlib.Path({str(self.answer)!r}).read_text()\n"
            "sys.stdout.write(text)\n"
            "sys.exit(3 if text == 'fail' else 0)\n"
        )
        self.path.chmod(self.path.stat().st_mode | stat.S_IXUSR)
        self.gives(token="one")

    def gives(self, **status: Any) -> None:
        self.answer.write_text(json.dumps({"apiVersion": V1, "kind": "ExecCredential", "status": status}))

    @property
    def questions(self) -> list[Any]:
        return [json.loads(line) for line in self.calls.read_text().splitlines()] if self.calls.exists() else []

    def connection(self, **more: Any) -> Connection:
        fields: dict[str, Any] = {"command": str(self.path), "api_version": V1, "interactive_mode": "Never"}
        return Connection(server="https://h", program=ExecProgram(**(fields | more)))


@pytest.fixture
def program(tmp_path: Path) -> Program:
    return Program(tmp_path)


async def test_it_is_asked_once_until_the_credential_expires(program: Program) -> None:
    now = [NOW]
    credential = ExecCredential(program.connection(cluster={"server": "https://h"}), lambda: now[0])
    program.gives(token="one", expirationTimestamp="2026-06-01T01:00:00Z")
    assert [await credential.current() for _ in range(3)] == ["one"] * 3
    spec = {"interactive": False, "cluster": {"server": "https://h"}}
    assert program.questions == [{"apiVersion": V1, "kind": "ExecCredential", "spec": spec}]
    program.gives(token="two")
    now[0] += timedelta(minutes=59, seconds=56)
    assert await credential.current() == "two"
    now[0] += timedelta(days=9)  # without a time it lasts until it is refused
    assert await credential.current() == "two"
    assert len(program.questions) == 2


async def test_it_is_asked_again_when_the_server_refuses(program: Program) -> None:
    credential = ExecCredential(program.connection())
    assert await credential.current() == "one"
    assert not await credential.renew("one")  # the same again: the refusal stands
    program.gives(token="two")
    assert await credential.renew("one")
    assert await credential.renew("one")  # somebody else's refusal of the old one: there is a new one already
    assert len(program.questions) == 3


@pytest.mark.parametrize(
    ("answer", "more", "message"),
    [
        ("fail", {}, "exit code 3"),
        ("hello", {}, "it printed no ExecCredential .*: hello"),
        ({"kind": "Status", "apiVersion": V1}, {}, "it printed .*/v1 Status; the kubeconfig asks for"),
        ({"kind": "ExecCredential", "apiVersion": f"{V1}beta1", "status": {"token": "t"}}, {}, "it printed .*/v1beta1"),
        ({"kind": "ExecCredential", "apiVersion": V1, "status": {}}, {}, "neither a token nor a certificate"),
        (
            {"kind": "ExecCredential", "apiVersion": V1, "status": {"clientCertificateData": "x"}},
            {},
            "belong together",
        ),
        (
            {"kind": "ExecCredential", "apiVersion": V1, "status": {"token": "t", "expirationTimestamp": "soon"}},
            {},
            "expirationTimestamp: ",
        ),
        ("x", {"interactive_mode": "Always"}, "it wants to ask .* no terminal"),
        ("x", {"command": "/nowhere/login", "install_hint": "Get it."}, r"cannot be run: no such file.*\. Get it\."),
    ],
)
async def test_what_is_wrong_is_said(program: Program, answer: Any, more: Any, message: str) -> None:
    program.answer.write_text(answer if isinstance(answer, str) else json.dumps(answer))
    with pytest.raises(CredentialError, match=message):
        await ExecCredential(program.connection(**more)).current()


async def test_tokens_and_certificates_of_a_program_let_one_in(program: Program, tmp_path: Path) -> None:
    instance = Instance(ServerSettings(directory=tmp_path / "state", port=0))
    try:
        await instance.start()
        admin = load_kubeconfig([instance.kubeconfig])
        asked = program.connection().program
        connection = replace(admin, token="", token_file=None, certificate=None, key=None, program=asked)
        review = SelfSubjectReview(api_version="authentication.k8s.io/v1", kind="SelfSubjectReview")
        async with HttpClient(connection) as client:
            program.gives(token="wrong")
            with pytest.raises(Exception, match="Unauthorized"):
                await client.create(review)
            program.gives(token=(tmp_path / "state/admin-token").read_text().strip())
            assert (await client.create(review)).status.user_info.username == "kubernetes-admin"
        config = tmp_path / "node.kubeconfig"
        now = datetime.now(UTC)
        config.write_bytes(client_kubeconfig(instance.credentials.authority, instance.url, "jane", ("devs",), now))
        jane = load_kubeconfig([config])
        assert jane.certificate is not None
        assert jane.key is not None
        program.gives(clientCertificateData=jane.certificate.decode(), clientKeyData=jane.key.decode())
        async with HttpClient(connection) as client:
            assert (await client.create(review)).status.user_info.username == "jane"
        # It is for the kubeconfig's own user: who comes to the page with a token has to have one that is good.
        access = HttpAccess(connection)
        with pytest.raises(ApiError, match="Unauthorized"):
            await access.enter("wrong")
        owner = await access.enter(OWN)
        assert owner.user == "jane"
        await access.leave(owner)
    finally:
        await instance.stop(0.1)
