"""Semantic versions 2.0.0 (semver.org): strict parsing, precedence, and the tolerant form that CEL offers.

Pure values: no I/O.
"""

from __future__ import annotations

import re
from functools import total_ordering
from typing import Final, TypeAlias

from dray.api.text_memory import remember_texts

__all__ = ["MAX_TEXT_LENGTH", "Semver", "SemverError", "is_semver"]

MAX_TEXT_LENGTH: Final = 1024
"""Longest text that is read; attribute values are far shorter (64), this bounds CEL input."""

_UINT64_MAX: Final = 2**64 - 1
_NUMBER: Final = r"(?:0|[1-9][0-9]*+)"
_PRERELEASE: Final = rf"(?:{_NUMBER}(?![0-9A-Za-z-])|[0-9]*+[A-Za-z-][0-9A-Za-z-]*+)"
_STRICT: Final = re.compile(
    rf"({_NUMBER})\.({_NUMBER})\.({_NUMBER})"
    rf"(?:-({_PRERELEASE}(?:\.{_PRERELEASE})*+))?+"
    r"(?:\+([0-9A-Za-z-]++(?:\.[0-9A-Za-z-]++)*+))?+"
)
_DIGITS: Final = frozenset("0123456789")

_REMEMBERED: Final = 4_096
_LONGEST_REMEMBERED: Final = 64

_Identifier: TypeAlias = tuple[int, int, str]
_Key: TypeAlias = tuple[int, int, int, bool, tuple[_Identifier, ...]]


class SemverError(ValueError):
    """A text is not a semantic version. The message says why."""


def is_semver(text: str) -> bool:
    """Whether the text has the form of a semantic version 2.0.0, with numbers of any size (4381-33).

    API validation asks this; ``Semver.parse`` is narrower, since its numbers have to fit 64 bits.
    """
    return len(text) <= MAX_TEXT_LENGTH and _STRICT.fullmatch(text) is not None


@total_ordering
class Semver:
    """An immutable semantic version. Equality, order and hash follow precedence, so they ignore ``build``."""

    __slots__ = ("_key", "build", "major", "minor", "patch", "prerelease")

    major: Final[int]
    minor: Final[int]
    patch: Final[int]
    prerelease: Final[tuple[str, ...]]
    build: Final[tuple[str, ...]]

    def __init__(
        self,
        major: int,
        minor: int,
        patch: int,
        prerelease: tuple[str, ...] = (),
        build: tuple[str, ...] = (),
    ) -> None:
        """Internal: the parts are trusted. Use ``parse`` or ``parse_tolerant``."""
        self.major = major
        self.minor = minor
        self.patch = patch
        self.prerelease = prerelease
        self.build = build
        # A release is later than each of its pre-releases; a longer list of identifiers is later.
        self._key: _Key = (major, minor, patch, not prerelease, tuple(map(_identifier_key, prerelease)))

    @staticmethod
    def parse(text: str) -> Semver:
        """Read a strict version; raises SemverError. Each number must fit an unsigned 64-bit integer."""
        return _parse(text)

    @staticmethod
    def parse_tolerant(text: str) -> Semver:
        """Read a version after normalising it as CEL's ``semver(text, true)`` does; raises SemverError.

        A leading ``v`` is dropped, missing minor and patch numbers become 0 (only without pre-release and
        build metadata), and leading zeros go. White space is not dropped.
        """
        if len(text) > MAX_TEXT_LENGTH:
            raise _too_long(text)
        parts = [_without_leading_zeros(part) for part in text.removeprefix("v").split(".", 2)]
        if len(parts) < 3 and not {"+", "-"}.isdisjoint(parts[-1]):
            raise SemverError(
                f"version {text!r} is short, and a short version cannot have pre-release or build metadata"
            )
        parts += ["0"] * (3 - len(parts))
        return Semver.parse(".".join(parts))

    def compare(self, other: Semver) -> int:
        """-1, 0 or 1 by precedence."""
        return (self._key > other._key) - (self._key < other._key)

    def __eq__(self, other: object) -> bool:
        return self._key == other._key if isinstance(other, Semver) else NotImplemented

    def __lt__(self, other: Semver) -> bool:
        return self._key < other._key if isinstance(other, Semver) else NotImplemented

    def __hash__(self) -> int:
        return hash(self._key)

    def __str__(self) -> str:
        text = f"{self.major}.{self.minor}.{self.patch}"
        if self.prerelease:
            text += "-" + ".".join(self.prerelease)
        if self.build:
            text += "+" + ".".join(self.build)
        return text

    def __repr__(self) -> str:
        return f"Semver({str(self)!r})"

    def __copy__(self) -> Semver:
        return self

    def __deepcopy__(self, memo: object) -> Semver:
        return self

    def __reduce__(self) -> tuple[object, ...]:
        return Semver, (self.major, self.minor, self.patch, self.prerelease, self.build)


def _identifier_key(identifier: str) -> _Identifier:
    """Numeric identifiers come before all others and compare as numbers."""
    return (0, int(identifier), "") if identifier.isdigit() else (1, 0, identifier)


@remember_texts(_REMEMBERED, _LONGEST_REMEMBERED)
def _parse(text: str) -> Semver:
    if len(text) > MAX_TEXT_LENGTH:
        raise _too_long(text)
    match = _STRICT.fullmatch(text)
    if match is None:
        raise SemverError(
            f"{text!r} is not a semantic version: expected MAJOR.MINOR.PATCH without leading zeros, "
            "optionally -PRERELEASE and +BUILD, as in 1.2.3-rc.1+b7"
        )
    major, minor, patch, prerelease, build = match.groups()
    identifiers = tuple(prerelease.split(".")) if prerelease else ()
    for number in (major, minor, patch, *identifiers):
        if len(number) > 19 and number.isdigit() and int(number) > _UINT64_MAX:
            raise SemverError(f"number {number} in version {text!r} does not fit 64 bits")
    metadata = tuple(build.split(".")) if build else ()
    return Semver(int(major), int(minor), int(patch), identifiers, metadata)


def _without_leading_zeros(part: str) -> str:
    if len(part) < 2:
        return part
    stripped = part.lstrip("0")
    return stripped if stripped and stripped[0] in _DIGITS else "0" + stripped


def _too_long(text: str) -> SemverError:
    return SemverError(f"the version has {len(text)} characters; at most {MAX_TEXT_LENGTH} are accepted")
