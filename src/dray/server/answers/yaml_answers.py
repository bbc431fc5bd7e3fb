"""Answers in YAML, for those who ask for it: the JSON answer, written in another way."""

from __future__ import annotations

import re

import msgspec
import yaml
from yaml.cyaml import CSafeDumper

YAML = "application/yaml"
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
    """An answer in JSON, in YAML. What is nested too deeply for our writer stays as it is: JSON is YAML, too."""
    value = msgspec.json.decode(body)
    try:
        text: str = yaml.dump(value, Dumper=_Dumper, default_flow_style=False, allow_unicode=True, width=120)
    except RecursionError:
        return body
    return text.encode()
