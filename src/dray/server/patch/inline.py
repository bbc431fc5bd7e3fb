"""The definition of a kind that is no fact of `dray.api.schema`: its shape comes from somebody else's schema."""

from __future__ import annotations

from typing import NamedTuple

from dray.api.schema import GroupVersionKind
from dray.server.patch.fields import FieldSet
from dray.server.patch.shape import Object


class InlineDefinition(NamedTuple):
    """What patches need to know of such a kind. `resets` are the fields that an endpoint leaves as they are."""

    kinds: tuple[GroupVersionKind, ...]
    shape: Object
    resets: dict[str, FieldSet]
    """By subresource; the object itself is the empty one."""
