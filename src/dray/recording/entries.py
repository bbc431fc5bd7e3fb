"""What is on the lines of a recording: a header first, then what was seen, in the order in which it was seen."""

from __future__ import annotations

from typing import Final, TypeAlias

import msgspec

from dray.api.meta import Object

FORMAT: Final = "dray-recording"
VERSION: Final = 1


class Header(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """The first line."""

    format: str
    version: int
    started: float
    """Seconds since 1970; those of all other lines count from here."""
    server: str = ""
    """The version of the API server."""
    hashed: bool = False
    """Whether names are hashed."""
    left_out: tuple[str, ...] = ()
    """Kinds that could not be read, by plural."""


class Seen(msgspec.Struct, frozen=True):
    """An object as it is from now on."""

    at: float
    object: Object


class Gone(msgspec.Struct, frozen=True):
    """An object that is not there any more."""

    at: float
    kind: str
    namespace: str
    name: str
    uid: str


class Listed(msgspec.Struct, frozen=True):
    """Everything that was there at the start has been told: from here on things happen."""

    at: float


class Gap(msgspec.Struct, frozen=True):
    """A time in which a kind was not watched. Unless something was lost, all of it was told later than it happened."""

    at: float
    kind: str
    since: float
    lost: bool


Entry: TypeAlias = Seen | Gone | Listed | Gap
