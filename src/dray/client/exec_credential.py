"""Credentials from a program, as managed clusters hand them out (client.authentication.k8s.io, v1 and v1beta1).

The program is run when a credential is first needed, when the last one has expired, and when the server refuses one.
What it prints is kept in memory only. Its standard error is ours, and so is its standard input where it may ask.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import sys
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any, Final

import msgspec

from dray.api.times import Time, TimeError
from dray.client.kubeconfig import Connection

KIND: Final = "ExecCredential"
QUIET_SECONDS: Final = 120.0
"""How long a program that may not ask anybody has to answer."""
EARLY_SECONDS: Final = 5.0
"""So long before its end a credential is replaced: a request takes its time."""
SHOWN_BYTES: Final = 300


class CredentialError(ConnectionError):
    """The program has no credential for us. The message names it and says what to do."""


class _Status(msgspec.Struct, rename="camel"):
    token: str = ""
    client_certificate_data: str = ""
    client_key_data: str = ""
    expiration_timestamp: str | None = None


class _Answer(msgspec.Struct, rename="camel"):
    api_version: str = ""
    kind: str = ""
    status: _Status | None = None


class ExecCredential:
    """A `Credential` whose token, client certificate or both come from a program."""

    def __init__(self, connection: Connection, now: Callable[[], datetime] | None = None) -> None:
        assert connection.program is not None
        self._program = connection.program
        self._connection = connection
        self._now = now or (lambda: datetime.now(UTC))
        self._status: _Status | None = None
        self._expires: datetime | None = None
        self._lock = asyncio.Lock()

    @property
    def certificate(self) -> tuple[bytes, bytes] | None:
        """The client certificate and its key, as PEM, of the credential that is current; None if it has none."""
        status = self._status
        if status is None or not status.client_certificate_data:
            return None
        return status.client_certificate_data.encode(), status.client_key_data.encode()

    async def current(self) -> str:
        """The token to send; empty if the credential is a certificate. Raises CredentialError."""
        async with self._lock:
            if self._status is None or self._is_over():
                await self._run()
            assert self._status is not None
            return self._status.token

    async def renew(self, refused: str) -> bool:
        """Runs the program again, unless somebody just did. Raises CredentialError."""
        async with self._lock:
            before = self._status
            if before is None or before.token == refused:
                await self._run()
            return self._status != before or (before is not None and before.token != refused)

    def _is_over(self) -> bool:
        return self._expires is not None and (self._expires - self._now()).total_seconds() <= EARLY_SECONDS

    async def _run(self) -> None:
        answer = self._read(await self._output())
        expires = None
        if answer.expiration_timestamp:
            try:
                expires = Time.parse(answer.expiration_timestamp).datetime()
            except TimeError as error:
                raise self._wrong(f"expirationTimestamp: {error}") from None
        self._status, self._expires = answer, expires

    async def _output(self) -> bytes:
        program = self._program
        asks = self._may_ask()
        environment = os.environ | dict(program.env) | {"KUBERNETES_EXEC_INFO": self._question(asks)}
        try:
            process = await asyncio.create_subprocess_exec(
                program.command,
                *program.args,
                stdin=None if asks else asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.PIPE,
                env=environment,
            )
        except OSError as error:
            hint = f" {program.install_hint}" if program.install_hint else ""
            why = (error.strerror or str(error)).lower()
            raise CredentialError(f"{program.command}, which has the credential, cannot be run: {why}.{hint}") from None
        try:
            async with asyncio.timeout(None if asks else QUIET_SECONDS):
                output, _ = await process.communicate()
        except TimeoutError:
            raise self._wrong(f"no answer within {QUIET_SECONDS:g} seconds") from None
        finally:
            if process.returncode is None:
                with contextlib.suppress(ProcessLookupError):
                    process.kill()
                await process.wait()
        if process.returncode:
            raise self._wrong(f"exit code {process.returncode}")
        return output

    def _may_ask(self) -> bool:
        """Whether the program may ask the user something. Raises CredentialError if it must and nobody is there."""
        if self._program.interactive_mode == "Never":
            return False
        is_there = sys.stdin is not None and sys.stdin.isatty()
        if self._program.interactive_mode == "Always" and not is_there:
            raise self._wrong("it wants to ask (interactiveMode: Always), and standard input is no terminal")
        return is_there

    def _question(self, interactive: bool) -> str:
        spec: dict[str, Any] = {"interactive": interactive}
        if self._program.cluster is not None:
            spec["cluster"] = self._program.cluster
        question = {"apiVersion": self._program.api_version, "kind": KIND, "spec": spec}
        return msgspec.json.encode(question).decode()

    def _read(self, output: bytes) -> _Status:
        try:
            answer = msgspec.json.decode(output, type=_Answer)
        except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
            shown = output[:SHOWN_BYTES].decode(errors="replace").strip()
            raise self._wrong(f"it printed no {KIND} ({error})" + (f": {shown}" if shown[:1] != "{" else "")) from None
        if answer.kind != KIND or answer.api_version != self._program.api_version:
            raise self._wrong(
                f"it printed {answer.api_version or 'no apiVersion'} {answer.kind or 'without kind'}; "
                f"the kubeconfig asks for {self._program.api_version} {KIND}"
            )
        status = answer.status
        if status is None or not (status.token or status.client_certificate_data):
            raise self._wrong("there is neither a token nor a certificate in its status")
        if bool(status.client_certificate_data) != bool(status.client_key_data):
            raise self._wrong("clientCertificateData and clientKeyData belong together")
        return status

    def _wrong(self, why: str) -> CredentialError:
        return CredentialError(f"no credential for {self._connection.server} from {self._program.command}: {why}")
