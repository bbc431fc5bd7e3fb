"""Answers in YAML, for those who ask for it: the JSON answer, written in another way."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

import msgspec
import yaml
from yaml.cyaml import CSafeDumper

LONG: Final = 4 * 1024
"""Bytes of an answer, or of a list in it, from which on fields or entries are written one by one."""
_PLAIN = re.compile(r"[A-Za-z_/][A-Za-z0-9_./@%+=() -]*[A-Za-z0-9_./)]|[A-Za-z_/]")
_OTHER_MEANINGS = frozenset(("y", "n", "yes", "no", "on", "off", "true", "false", "null"))


class _Dumper(CSafeDumper):
    """Quotes every text that some reader of YAML takes for something else: readers differ in more than booleans."""

    def ignore_aliases(self, _data: object) -> bool:
        return True  # what is written twice is written twice


def _text(dumper: _Dumper, text: str) -> yaml.ScalarNode:
    is_plain = _PLAIN.fullmatch(text) is not None and text.lower() not in _OTHER_MEANINGS
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=None if is_plain else '"')


_Dumper.add_representer(str, _text)


def dump(body: bytes) -> bytes:
    """An answer in JSON, in YAML. What is nested too deeply for our writer stays as it is: JSON is YAML, too.

    For a thread: fields, and entries of long lists, are read and written one after the other, and others get the
    interpreter in between.
    """
    try:
        if len(body) <= LONG or not body.startswith(b"{"):
            return _written(msgspec.json.decode(body))
        fields = msgspec.json.decode(body, type=dict[str, msgspec.Raw])
        return b"".join([_field(name, bytes(fields[name])) for name in sorted(fields)])
    except RecursionError:
        return body


def dump_entries(entries: Iterable[bytes]) -> bytes:
    """Entries of a list, each in JSON, in YAML, as they stand below the name of their field."""
    return b"".join([_entry(one) for one in entries])


def _field(name: str, value: bytes) -> bytes:
    if len(value) > LONG and value.startswith(b"["):
        entries = map(bytes, msgspec.json.decode(value, type=list[msgspec.Raw]))
        return _written({name: []}).removesuffix(b" []\n") + b"\n" + dump_entries(entries)
    return _written({name: msgspec.json.decode(value)})


def _entry(entry: bytes) -> bytes:
    try:
        return _written([msgspec.json.decode(entry)])
    except RecursionError:
        return b"- " + entry + b"\n"


def _written(value: object) -> bytes:
    text: str = yaml.dump(value, Dumper=_Dumper, default_flow_style=False, allow_unicode=True, width=120)
    return text.encode()
