"""Bytes in a text: base64, in the one way that Kubernetes writes it."""

from __future__ import annotations

import base64
from typing import Final, Self


class Base64(str):
    """Bytes as base64. Make one with `parse` or `of`; what is read may be written over several lines."""

    __slots__ = ()

    @classmethod
    def parse(cls, text: str) -> Self:
        """Reads what somebody wrote. Raises ValueError."""
        if not isinstance(text, str):
            raise ValueError("must be base64")  # msgspec tells of no other error
        try:
            return cls.of(base64.b64decode(text.replace("\n", "").replace("\r", ""), validate=True))
        except ValueError:
            raise ValueError("illegal base64 data") from None

    @classmethod
    def of(cls, data: bytes) -> Self:
        """Bytes as a text."""
        return cls(base64.b64encode(data).decode())

    @property
    def size(self) -> int:
        """How many bytes there are."""
        return len(self) // 4 * 3 - self.count("=", -2)


NOTHING: Final = Base64()
"""No bytes: a field that holds them, and has this very value, is left out."""
