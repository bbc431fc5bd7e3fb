"""The kinds that definitions define, for controllers that look at objects of all kinds: they come and go."""

from __future__ import annotations

from collections.abc import Callable

from dray.api import registry
from dray.api.generated.apiextensions import CustomResourceDefinition
from dray.api.registry import Kind
from dray.custom.kinds import DEFINITIONS, served_kind
from dray.reconcile.informers import Informers

Handler = Callable[[Kind], None]


def _nothing(_kind: Kind) -> None:
    """Nobody asks."""


class CustomKinds:
    """Follows the definitions. `added` and `removed` hear of kinds; of their objects, only the metadata is read."""

    def __init__(self, informers: Informers, *, added: Handler = _nothing, removed: Handler = _nothing) -> None:
        self.definitions = informers.of(DEFINITIONS, CustomResourceDefinition)
        self._added = added
        self._removed = removed
        self._kinds: dict[str, Kind] = {}
        self._by_kind: dict[tuple[str, str], Kind] = {}
        self.definitions.on_change(self._on_change)

    def by_kind(self, api_version: str, kind: str) -> Kind | None:
        """The kind that a reference names, in whatever version."""
        if not self._by_kind:
            return None
        return self._by_kind.get((registry.split_api_version(api_version)[0], kind))

    def by_resource(self, resource: str) -> Kind | None:
        """The kind of a resource, such as `widgets.example.com`."""
        return self._kinds.get(resource)

    def _on_change(self, old: CustomResourceDefinition | None, new: CustomResourceDefinition | None) -> None:
        one = new if new is not None else old
        assert one is not None
        name = one.metadata.name
        known, wanted = self._kinds.get(name), served_kind(new) if new is not None else None
        if known is not None and wanted is not None and known.versions == wanted.versions:
            return
        if known is not None:
            del self._kinds[name]
            self._by_kind.pop((known.group, known.kind), None)
            self._removed(known)
        if wanted is not None:
            self._kinds[name] = wanted
            self._by_kind[wanted.group, wanted.kind] = wanted
            self._added(wanted)
