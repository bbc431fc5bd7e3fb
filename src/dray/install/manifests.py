"""Pieces with values filled in: what `dray install` prints."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, Final

from dray.install.pieces import Document, pieces
from dray.install.values import Value

PLACE: Final = re.compile(r"\$\{([A-Za-z.]+)\}")
TEXTS: Final = ("args", "annotations")
"""Parts of objects where everything is text, whatever a value is."""
DEFINITION: Final = "CustomResourceDefinition"


def manifests(values: Mapping[str, Value], *, definitions: bool = True) -> list[Document]:
    """The objects in the order in which they can be applied; without the definitions of kinds if told so."""
    wanted = (piece for piece in pieces() if all(values[name] == value for name, value in piece.when.items()))
    found = (fill(piece.object, lambda name: values[name]) for piece in wanted)
    return [obj for obj in found if definitions or obj["kind"] != DEFINITION]


def fill(document: Any, value_of: Callable[[str], Any]) -> Any:
    """A document with every `${name}` replaced; a text that is nothing else takes the value's type."""
    return _fill(document, value_of, as_text=False)


def _fill(document: Any, value_of: Callable[[str], Any], *, as_text: bool) -> Any:
    if isinstance(document, dict):
        return {name: _fill(value, value_of, as_text=as_text or name in TEXTS) for name, value in document.items()}
    if isinstance(document, list):
        return [_fill(value, value_of, as_text=as_text) for value in document]
    if not isinstance(document, str):
        return document
    whole = PLACE.fullmatch(document)
    if whole is not None and not as_text:
        return value_of(whole[1])
    return PLACE.sub(lambda found: str(value_of(found[1])), document)
