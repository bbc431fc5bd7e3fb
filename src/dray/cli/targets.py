"""What commands act on that is called `rule/NAME`, `node/NAME` or `slice/NAME`: found before anything is changed."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import TYPE_CHECKING, Final, NamedTuple

from dray.api.kinds import NODES, RULES, SLICES
from dray.cli import names, output
from dray.prose.wording import there_is

if TYPE_CHECKING:
    from dray.api.meta import Object
    from dray.api.registry import Kind
    from dray.client import Client

KINDS: Final = {"rule": RULES, "node": NODES, "slice": SLICES}
WORDS: Final = {called: word for word in KINDS for called in names.KINDS[word]}
"""What may be in front of a name."""


class Found(NamedTuple):
    """An object of the cluster, and what commands call it."""

    text: str
    kind: Kind
    obj: Object


async def find(client: Client, words: Iterable[str], hint: str, kinds: Collection[str] = KINDS.keys()) -> list[Found]:
    """Each once; a kind and its name may be two words. Raises ApiError.

    Ends with exit code 2 for what is of none of these kinds, with a hint, or is not there.
    """
    wanted = dict.fromkeys(_read(word, kinds, hint) for word in names.pair(words, WORDS))
    return [Found(f"{word}/{name}", KINDS[word], await get(client, word, name)) for word, name in wanted]


def _read(text: str, kinds: Collection[str], hint: str) -> tuple[str, str]:
    called, _, name = text.partition("/")
    word = WORDS.get(called.lower(), "")
    if word not in kinds or not name or "/" in name:
        output.fail(f"{text!r} {hint}")
    return word, name


async def get(client: Client, word: str, name: str) -> Object:
    """The node, rule or slice of a name. Ends with exit code 2 if it is not there. Raises ApiError."""
    from dray.api.meta import Object
    from dray.client.calls import find as find_object
    from dray.client.calls import list_if_served

    found = await find_object(client, KINDS[word], "", name, Object)
    if found is None:
        known = await list_if_served(client, KINDS[word]) or ()
        output.fail(f"no {word} {name}; {there_is(one.metadata.name for one in known)}.")
    return found
