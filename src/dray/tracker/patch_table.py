"""ResourceSlicePatches, ready to be merged."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from dray import cel
from dray.api.resource import DevicePatchFilter, ResourceSlicePatch
from dray.tracker.columns import Sheet
from dray.tracker.identity import same_patch
from dray.tracker.patches import Patch, PatchHits, patch_of
from dray.tracker.selecting.owners import SelectorOwners
from dray.tracker.view import Problem

UNKNOWN_VALUE: Final = "UnknownAttributeValue"

_EVERYTHING: Final = DevicePatchFilter()


class PatchTable(SelectorOwners[ResourceSlicePatch]):
    """All patches. Without a filter a patch matches everything (5027-05), unlike a rule without a selector (X-02)."""

    kind = "ResourceSlicePatch"

    def __init__(self, backlog: cel.Backlog | None = None) -> None:
        super().__init__(backlog)
        self._patches: dict[str, Patch] = {}

    def selecting(self, owner: ResourceSlicePatch) -> DevicePatchFilter:
        """The patch's filter."""
        return owner.spec.devices.filter or _EVERYTHING

    def put(self, owner: ResourceSlicePatch) -> None:
        """Note a patch."""
        name = owner.metadata.name
        old = self._owners.get(name)
        if old is not None and same_patch(old, owner):
            return
        self._patches[name] = patch_of(owner)
        super().put(owner)

    def remove(self, name: str) -> None:
        """Note that a patch is gone."""
        self._patches.pop(name, None)
        super().remove(name)

    def patch_hits(self, sheet: Sheet) -> PatchHits:
        """The patches that select devices of a slice."""
        return [(self._patches[name], mask) for name, mask in self.index.hits(sheet)]

    def problems(self) -> Iterator[Problem]:
        """Those of selectors, and entries that cannot be merged."""
        yield from super().problems()
        for name, patch in sorted(self._patches.items()):
            for attribute in patch.unknown:
                message = f"attribute {attribute}: no value of a type that this version knows; the entry is ignored"
                yield Problem(kind=self.kind, name=name, reason=UNKNOWN_VALUE, message=message)
