"""Who a client says it is: a token that was given, one in a file that changes, or what a program prints."""

from __future__ import annotations

import time
from typing import Protocol

from dray.client.kubeconfig import Connection

TOKEN_SECONDS = 60.0
"""How long a token from a file is used before the file is read again; kubelet renews it well before it expires."""


class Credential(Protocol):
    """A bearer token that may change."""

    async def current(self) -> str:
        """The token to send; empty for none. Raises ApiError or OSError if there is no way to get it."""
        ...

    async def renew(self, refused: str) -> bool:
        """Whether there is another token than one that the server refused."""
        ...


class GivenToken:
    """The token of a kubeconfig, or of the file that it names, read again as time goes by."""

    def __init__(self, connection: Connection) -> None:
        self._path = connection.token_file
        self._value = connection.token if self._path is None else ""
        self._read_at = float("-inf")
        self._trouble = ""

    async def current(self) -> str:
        """The token to send; empty for none. Raises OSError for a file that has had none."""
        if not self._value or time.monotonic() - self._read_at >= TOKEN_SECONDS:
            self._read()
        if self._path is not None and not self._value:
            raise ConnectionError(f"there is no token in {self._path}{f': {self._trouble}' if self._trouble else ''}")
        return self._value

    async def renew(self, refused: str) -> bool:
        """Reads the file. One that is just being replaced keeps the old token."""
        self._read()
        return self._value != refused

    def _read(self) -> None:
        if self._path is None:
            return
        self._read_at = time.monotonic()
        try:
            self._value = self._path.read_text().strip() or self._value
            self._trouble = ""
        except OSError as error:
            self._trouble = (error.strerror or str(error)).lower()
        except UnicodeDecodeError:
            self._trouble = "it is no text"
