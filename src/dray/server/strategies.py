"""How a write to an object, or to a part of it with a path of its own, is made: one value per kind and subresource.

    PUT, PATCH   an `UpdateStrategy`: what may change, how it is completed, what is wrong with it
    POST         a `PostStrategy`: what is posted, and what is done with it (a binding, an eviction, a review)

`subresources.table` has them all in one table. Each server has a `Strategies` of its own, because which kinds there are
is a matter of the server: nothing here looks a kind up elsewhere.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import msgspec

from dray.api.field import FieldError
from dray.api.meta import Object, Status
from dray.api.registry import Kind
from dray.api.times import Time
from dray.custom.kinds import CustomKind
from dray.validation import Context
from dray.validation.rules import Rules
from dray.validation.table import rules_of

if TYPE_CHECKING:
    from dray.server.engine import Call, Engine


class View(msgspec.Struct, frozen=True):
    """Another shape in which a part of an object is read and written, such as the scale of a workload."""

    api_version: str
    kind: str
    show: Callable[[Any], Object]
    """The shape of an object."""
    read: Callable[[Any, str], Any]
    """Plain values as the shape of the object of a name. Raises ApiError."""
    merge: Callable[[Any, Any], Object]
    """The object with what the shape says."""


def _no_warnings(_obj: Any) -> list[str]:
    return []


class UpdateStrategy(msgspec.Struct, frozen=True, kw_only=True):
    """How an update is made. All functions are pure and leave what they are given alone."""

    default: Callable[[Any, Time], Any]
    prepare: Callable[[Any, Any, Context], Any]
    """From the wanted object and the stored one: the stored one with all that may change."""
    validate: Callable[[Any, Any, Context], list[FieldError]]
    warnings: Callable[[Any], list[str]] = _no_warnings
    view: View | None = None


class PostStrategy(msgspec.Struct, frozen=True, kw_only=True):
    """What posting does where nothing of that name is stored."""

    takes: type[Object]
    do: Callable[[Engine, Call, Any], Awaitable[Object | Status]]
    """Given what was posted, does it and gives the answer. Raises ApiError."""
    may_be_empty: bool = False
    """Whether no body at all stands for one in which nothing is set."""
    group: str = ""
    """The group of what is posted below an object."""


MakeUpdate = Callable[[Rules], UpdateStrategy]
"""A strategy for a kind with such rules."""

EVERY = "*"
"""Stands for all built-in kinds in a table of strategies."""

CUSTOM = "custom"
"""Stands for all kinds that a definition defines."""

Table = Mapping[tuple[str, str], MakeUpdate | PostStrategy]
"""By resource (or EVERY) and subresource; an empty subresource is the object itself."""


class Strategies:
    """The strategies of one server, made when a kind is first written."""

    def __init__(self, table: Table, rules: Mapping[str, Rules] = MappingProxyType({})) -> None:
        """`rules` are those of resources that depend on what else the server has."""
        self._rules = rules
        self._posts = {place: found for place, found in table.items() if isinstance(found, PostStrategy)}
        self._makers = {place: found for place, found in table.items() if not isinstance(found, PostStrategy)}
        self._updates: dict[tuple[Kind, str], UpdateStrategy] = {}

    def rules(self, kind: Kind) -> Rules:
        """The rules for new objects of a kind."""
        if isinstance(kind, CustomKind):
            return kind.rules
        own = self._rules.get(kind.resource)
        if own is not None:
            return own
        return rules_of(kind.storage)

    def update(self, kind: Kind, subresource: str) -> UpdateStrategy:
        """How an object, or a part of it, is updated. Raises LookupError if the kind has no such part."""
        found = self._updates.get((kind, subresource))
        if found is None:
            if isinstance(kind, CustomKind):
                return self._custom_update(kind, subresource)
            make = self._makers.get((kind.resource, subresource)) or self._makers[EVERY, subresource]
            found = self._updates[kind, subresource] = make(self.rules(kind))
        return found

    def _custom_update(self, kind: CustomKind, subresource: str) -> UpdateStrategy:
        """Definitions come and go: their strategies go with them."""
        known: dict[str, UpdateStrategy] = kind.__dict__.setdefault("updates", {})
        found = known.get(subresource)
        if found is None:
            make = self._makers[CUSTOM, subresource]
            found = known[subresource] = make(kind.rules)
        return found

    def view(self, kind: Kind, subresource: str) -> View | None:
        """The shape that a part of an object is shown in; None if it is shown as the object."""
        return None if (kind.resource, subresource) in self._posts else self.update(kind, subresource).view

    def post(self, kind: Kind, subresource: str) -> PostStrategy | None:
        """What posting does; None if it is an ordinary create."""
        return self._posts.get((kind.resource, subresource))
