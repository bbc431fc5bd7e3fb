"""Answers in YAML, for those who ask for it: the JSON answer, written in another way."""

from __future__ import annotations

import re

import msgspec
import yaml
from yaml.cyaml import CSafeDumper

from dray.api.text_memory import remember_texts
from dray.process.http import JSON, Answer, Response
from dray.server.beside import Beside

YAML = "application/yaml"
LONG = 4 * 1024
_ANY_JSON = (JSON, "application/*", "*/*")
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


@remember_texts(256)
def is_preferred(accept: str) -> bool:
    """Whether YAML comes before JSON in what a client accepts."""
    for part in accept.split(","):
        media = part.partition(";")[0].strip().lower()
        if media == YAML:
            return True
        if media in _ANY_JSON:
            return False
    return False


async def written(answer: Answer, workers: Beside, caller: str) -> Answer:
    """The same answer in YAML; what is no JSON stays as it is. A long one is written beside the loop, in turn."""
    if not isinstance(answer, Response) or answer.content_type != JSON or not answer.body:
        return answer
    body = await workers.run(caller, _dump, answer.body) if len(answer.body) > LONG else _dump(answer.body)
    return Response(answer.code, body, YAML, answer.headers)


def _dump(body: bytes) -> bytes:
    value = msgspec.json.decode(body)
    text: str = yaml.dump(value, Dumper=_Dumper, default_flow_style=False, allow_unicode=True, width=120)
    return text.encode()
