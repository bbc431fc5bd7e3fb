"""The shape of the facts: what a schema says of a type and of its fields."""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import msgspec

META_PACKAGE: Final = "io.k8s.apimachinery.pkg.apis.meta.v1"
"""Where the definitions are that all groups share."""


class GroupVersionKind(NamedTuple):
    """A kind in one version; the core group is the empty string."""

    group: str
    version: str
    kind: str


class Property(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel"):
    """What is known of one field, or of the elements of a list or map.

    `ref` names a definition; without it, `type` is one of JSON's types. A list has `items`, a map has `values`; a
    free-form object has neither. `list_type` is `atomic`, `set` or `map` (then `map_keys` identify an element) for
    server-side apply, and `patch_strategy` with `merge_key` say the same for strategic merge patches.
    """

    type: str = ""
    format: str = ""
    ref: str = ""
    items: Property | None = None
    values: Property | None = None
    enum: tuple[str, ...] = ()
    default: Any = msgspec.UNSET
    list_type: str = ""
    map_keys: tuple[str, ...] = ()
    map_type: str = ""
    patch_strategy: tuple[str, ...] = ()
    merge_key: str = ""


class Definition(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel"):
    """What is known of one type. Types that are no objects (Quantity, Time) have no properties."""

    name: str = ""
    """The full name, such as `io.k8s.api.core.v1.Pod`."""
    type: str = ""
    format: str = ""
    one_of: tuple[str, ...] = ()
    kinds: tuple[GroupVersionKind, ...] = ()
    required: tuple[str, ...] = ()
    properties: dict[str, Property] = {}
    map_type: str = ""
    unions: tuple[Any, ...] = ()
