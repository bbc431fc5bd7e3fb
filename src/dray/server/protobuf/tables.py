"""The published field numbers, as they are in `numbers`.

A message is a line of `name=number`, with a type after a colon where the field is no plain text:

    int, bool, double, bytes, time, microtime, quantity, json (JSON inside bytes), int-or-string, texts (a list), or a
    message by name, with its package if it is in another one;
    `*` before the type: a list; `@`: a map from text; `+`: a message whose fields JSON has one level higher.
"""

from __future__ import annotations

from functools import cache, lru_cache
from pathlib import Path
from typing import Final

import msgspec

from dray.api import registry, schema
from dray.api.schema.facts import META_PACKAGE

VALUES = frozenset(
    ("text", "int", "bool", "double", "bytes", "time", "microtime", "quantity", "json", "int-or-string", "texts")
)
"""Types that are no messages in JSON."""
_FOLDER = Path(__file__).with_name("numbers")
_PACKAGES: Final = frozenset(path.stem for path in _FOLDER.glob("*.txt"))
_OF_ALL_GROUPS = frozenset(("DeleteOptions", "CreateOptions", "UpdateOptions", "PatchOptions", "Status", "WatchEvent"))
_OF_META = ("v1", "meta.k8s.io/v1")
LONGEST_VERSION = 253 + 1 + 63
"""Of a group and a version of it."""


class UnknownMessage(LookupError):
    """A kind that has no form in protobuf."""

    def __init__(self, api_version: str, kind: str) -> None:
        super().__init__(f"{kind or 'an object without kind'} of {api_version or 'no version'}")


class Field(msgspec.Struct, frozen=True):
    """One field: JSON's name for it, its number, the type of its values (in full), and its form (`*`, `@`, `+`)."""

    name: str
    number: int
    type: str
    many: str = ""


Message = tuple[Field, ...]


def package(name: str) -> dict[str, Message]:
    """The messages of a package by short name; none if it has no numbers: clients may ask for any."""
    return _read(name) if name in _PACKAGES else {}


@cache
def _read(name: str) -> dict[str, Message]:
    path = _FOLDER / f"{name}.txt"
    lines = path.read_text(encoding="utf-8").replace("\n    ", " ").splitlines()
    found = (line.partition(":") for line in lines)
    return {short: tuple(_field(name, word) for word in words.split()) for short, _, words in found}


def _field(of_package: str, word: str) -> Field:
    name, _, rest = word.partition("=")
    number, _, kind = rest.partition(":")
    many = kind[:1] if kind[:1] in ("*", "@", "+") else ""
    kind = kind.removeprefix(many) or "text"
    if kind not in VALUES and "." not in kind:
        kind = f"{of_package}.{kind}"
    return Field(name, int(number), kind, many)


def message(name: str) -> Message:
    """The fields of a message by its full name."""
    of_package, _, short = name.rpartition(".")
    return package(of_package)[short]


def flat(name: str) -> dict[str, Field]:
    """The fields of a message by the names that JSON has for them, those that stand one level higher included."""
    found: dict[str, Field] = {}
    for field in message(name):
        found |= flat(field.type) if field.many == "+" else {field.name: field}
    return found


def name_of(api_version: str, kind: str) -> str:
    """The full name of the message of a kind, or of a list of it. Raises UnknownMessage."""
    if len(api_version) > LONGEST_VERSION:
        raise UnknownMessage(api_version[:LONGEST_VERSION], kind)
    return _name_of(api_version, kind)


@lru_cache(maxsize=1024)  # some kinds have a message whatever clients say that their version is
def _name_of(api_version: str, kind: str) -> str:
    group, version = registry.split_api_version(api_version)
    in_package = META_PACKAGE if kind in _OF_ALL_GROUPS else schema.package_of(group, version)
    if kind in package(in_package):
        return f"{in_package}.{kind}"
    if api_version in _OF_META and kind in package(META_PACKAGE):
        return f"{META_PACKAGE}.{kind}"
    raise UnknownMessage(api_version, kind)


def is_known(api_version: str, kind: str) -> bool:
    """Whether a kind has a form in protobuf."""
    try:
        name_of(api_version, kind)
    except UnknownMessage:
        return False
    return True
