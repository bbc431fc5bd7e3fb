"""One slice of a pool that counts, on its way from what was published to effective devices.

    published devices ── patches ──→ patched devices ── taints ──→ effective devices
       `published` sheet                `patched` sheet              `devices`

Each step keeps the objects of devices that it does not change.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import repeat
from operator import is_

from dray.api.resource import Device, ResourceSlice
from dray.tracker.columns import ColumnTable, Sheet
from dray.tracker.identity import canonical
from dray.tracker.patches import Overrides, Patched, PatchHits, combine, merge
from dray.tracker.view import DeviceId, EffectiveDevice, NodeAccess, TrackedTaint


class CurrentSlice:
    """The state of one slice. The sheets are interned in the column table that is passed in."""

    __slots__ = (
        "_patch_names", "accesses", "consumers", "devices", "patched", "published", "published_taints", "source",
    )  # fmt: skip

    def __init__(self, source: ResourceSlice, columns: ColumnTable) -> None:
        self._take(source)
        self.published = _sheet(source, source.spec.devices, columns)
        self.patched = self.published
        self.accesses: tuple[NodeAccess, ...] = ()
        """One for each device, or one for all."""
        self.devices: tuple[EffectiveDevice, ...] = ()
        self._patch_names: tuple[tuple[str, ...], ...] = ()

    def update(self, source: ResourceSlice, columns: ColumnTable) -> None:
        """Take a new state of the slice. It has to be patched and tainted again."""
        self._take(source)
        old = self.published
        devices = canonical(source.spec.devices, _by_name(old.devices))
        if _same_objects(devices, old.devices):
            return
        self.published = _sheet(source, devices, columns)
        if self.patched is old:
            self.patched = self.published
        columns.release(old)

    def _take(self, source: ResourceSlice) -> None:
        self.source = source
        self.published_taints = tuple([taint for device in source.spec.devices for taint in device.taints])
        self.consumers = tuple([device for device in source.spec.devices if device.consumes_counters])

    def patch(self, hits: PatchHits, columns: ColumnTable) -> None:
        """Merge the patches that select devices here. It has to be tainted again."""
        old = self.patched
        if not hits:
            devices, self._patch_names = self.published.devices, ()
        else:
            results = _merge_patches(self.published, hits)
            devices = canonical(tuple([result.device for result in results]), _by_name(old.devices))
            self._patch_names = tuple([result.patches for result in results])
        if _same_objects(devices, old.devices):
            return
        is_original = _same_objects(devices, self.published.devices)
        self.patched = self.published if is_original else _sheet(self.source, devices, columns)
        if old is not self.published:
            columns.release(old)

    def taint(self, taints: Sequence[tuple[TrackedTaint, ...]]) -> None:
        """Make the effective devices, given the taints at each position."""
        spec, slice_name = self.source.spec, self.published.slice_name
        known = {old.id.device: old for old in self.devices}
        accesses = repeat(self.accesses[0]) if len(self.accesses) == 1 else self.accesses
        patches = self._patch_names or repeat(())
        made: list[EffectiveDevice] = []
        for device, on_device, access, names in zip(self.patched.devices, taints, accesses, patches, strict=False):
            old = known.get(device.name)
            if old is None:
                identity = DeviceId(spec.driver, spec.pool.name, device.name)
            elif old.device is device and old.access is access and old.taints == on_device and old.patches == names:
                made.append(old)
                continue
            else:
                identity = old.id
            made.append(EffectiveDevice(identity, device, on_device, access, slice_name, names))
        self.devices = tuple(made)

    def release(self, columns: ColumnTable) -> None:
        """Give up the sheets: the slice is gone."""
        columns.release(self.published)
        if self.patched is not self.published:
            columns.release(self.patched)


def _sheet(source: ResourceSlice, devices: tuple[Device, ...], columns: ColumnTable) -> Sheet:
    return columns.sheet(source.metadata.name, source.spec.driver, source.spec.pool.name, devices)


def _by_name(devices: Iterable[Device]) -> dict[str, Device]:
    return {device.name: device for device in devices}


def _same_objects(one: tuple[Device, ...], other: tuple[Device, ...]) -> bool:
    return len(one) == len(other) and all(map(is_, one, other))


def _merge_patches(sheet: Sheet, hits: PatchHits) -> list[Patched]:
    """The devices of a slice with patches merged in. Devices that the same patches select share the decision."""
    overrides: dict[tuple[str, ...], Overrides] = {}
    results: list[Patched] = []
    for position, device in enumerate(sheet.devices):
        patches = [patch for patch, mask in hits if mask >> position & 1]
        if not patches:
            results.append(Patched(device))
            continue
        names = tuple([patch.name for patch in patches])
        if names not in overrides:
            overrides[names] = combine(patches)
        results.append(merge(device, sheet.driver, overrides[names]))
    return results
