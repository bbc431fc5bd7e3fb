"""What a client accepts: media types with their parameters, what it likes most first."""

from __future__ import annotations

import msgspec

from dray.api.text_memory import remember_texts
from dray.process.http import JSON

MOST_FORMS = 64
MOST_PARAMETERS = 16
ANY_JSON = (JSON, "application/*", "*/*")
"""What JSON is an answer to."""


class Accepted(msgspec.Struct, frozen=True):
    """One of the forms that a client accepts."""

    media: str
    parameters: dict[str, str]

    @property
    def shape(self) -> str:
        """What objects should be turned into (`Table`, `PartialObjectMetadata`); empty if they should stay."""
        return self.parameters.get("as", "")

    @property
    def _weight(self) -> tuple[float, int]:
        try:
            weight = float(self.parameters.get("q", "1"))
        except ValueError:
            weight = 1.0
        return -weight, self.media.count("*")


@remember_texts(256)
def accepted(header: str) -> tuple[Accepted, ...]:
    """The forms in an Accept header: by weight, named ones before those with a star, then in the order given.

    The first ones: each costs, here and where an answer is tried to be given its form.
    """
    found = []
    for part in header.split(",", MOST_FORMS)[:MOST_FORMS]:
        media, *rest = [piece.strip() for piece in part.split(";", MOST_PARAMETERS)]
        pairs = (piece.partition("=") for piece in rest)
        found.append(Accepted(media.lower(), {name.strip(): value.strip() for name, _, value in pairs}))
    return tuple(sorted(found, key=lambda one: one._weight))
