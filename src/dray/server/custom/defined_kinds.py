"""The kinds that the definitions in a store define, brought up to date when they are asked for."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from dray.api.generated.apiextensions import CustomResourceDefinition
from dray.custom.kinds import DEFINITIONS, CustomKind, is_built_in, kinds_of
from dray.custom.names import is_established
from dray.server.indexes.followed import Followed
from dray.store import Key, Store


class DefinedKinds:
    """All of them, by the name of their definition. `generation` changes when any of them does."""

    def __init__(self, store: Store) -> None:
        self.generation = 0
        self._followed = Followed(store, DEFINITIONS.resource, self._put)
        self._definitions: dict[str, CustomResourceDefinition] = {}
        self._kinds: dict[str, list[CustomKind]] = {}

    def catch_up(self) -> None:
        """Takes in what was stored since the last time."""
        self._followed.catch_up()

    @property
    def is_current(self) -> bool:
        """Whether nothing was stored since the last time: asked on every request, so this takes next to no time."""
        return self._followed.is_current

    @property
    def definitions(self) -> list[CustomResourceDefinition]:
        """The definitions as they are stored now."""
        self.catch_up()
        return list(self._definitions.values())

    @property
    def known(self) -> list[CustomResourceDefinition]:
        """The definitions as of the last time. Large ones are judged beside the loop, where nothing may be taken in."""
        return list(self._definitions.values())

    def __iter__(self) -> Iterator[CustomKind]:
        return (kind for kinds in self._kinds.values() for kind in kinds)

    def _put(self, key: Key, definition: Any) -> None:
        name = key.name
        before = self._definitions.pop(name, None)
        if definition is None:
            self._kinds.pop(name, None)
        else:
            self._definitions[name] = definition
            if before is not None and name in self._kinds and _says_the_same(definition, before):
                return
            self._kinds[name] = self._made(definition)
        self.generation += 1

    def _made(self, definition: CustomResourceDefinition) -> list[CustomKind]:
        return kinds_of(definition) if is_established(definition) and not is_built_in(definition) else []


def _says_the_same(new: CustomResourceDefinition, old: CustomResourceDefinition) -> bool:
    """Whether a change matters to nobody who uses the resource."""
    return (
        new.spec == old.spec
        and new.status.accepted_names == old.status.accepted_names
        and is_established(new) == is_established(old)
        and new.metadata.deletion_timestamp == old.metadata.deletion_timestamp
    )
