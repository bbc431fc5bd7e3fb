"""SelectorOwners of selectors, that is rules or patches, and which of them have to be looked at again."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from typing import ClassVar, Generic, TypeAlias, TypeVar

from dray import cel
from dray.api.resource import DevicePatchFilter, DeviceTaintRule, DeviceTaintSelector, ResourceSlicePatch
from dray.tracker.columns import Sheet
from dray.tracker.selecting.criteria import Compiled, Fault, criteria_of
from dray.tracker.selecting.index import SelectionIndex
from dray.tracker.selecting.selection import Selection
from dray.tracker.view import DeviceId, Problem

_Owner = TypeVar("_Owner", DeviceTaintRule, ResourceSlicePatch)
Selecting: TypeAlias = DeviceTaintSelector | DevicePatchFilter


class SelectorOwners(ABC, Generic[_Owner]):
    """The rules, or the patches. Changes are noted one by one and take effect together, in `refresh`."""

    kind: ClassVar[str]

    def __init__(self, backlog: cel.Backlog | None = None) -> None:
        self.index = SelectionIndex(backlog)
        self._owners: dict[str, _Owner] = {}
        self._stale: set[str] = set()
        self._edited: set[str] = set()
        self._resumed: dict[str, None] = {}

    @abstractmethod
    def selecting(self, owner: _Owner) -> Selecting | None:
        """What an owner asks for; None if it selects nothing."""

    def put(self, owner: _Owner) -> None:
        """Note that the owner is new or has changed."""
        name = owner.metadata.name
        old = self._owners.get(name)
        if old is None or self.selecting(old) != self.selecting(owner):
            self._stale.add(name)
        self._edited.add(name)
        self._owners[name] = owner

    def remove(self, name: str) -> None:
        """Note that the owner is gone."""
        if self._owners.pop(name, None) is not None:
            self._stale.add(name)

    def class_changed(self, device_class: str) -> None:
        """Note that owners that refer to the class may select other devices now."""
        for name, owner in self._owners.items():
            selecting = self.selecting(owner)
            if selecting is not None and selecting.device_class_name == device_class:
                self._stale.add(name)

    def resume(self) -> None:
        """Evaluate what was still being evaluated; it takes effect with the next `refresh`."""
        self._resumed |= self.index.resume()

    def refresh(self, classes: Mapping[str, Compiled]) -> dict[str, None]:
        """Evaluate what has to be. Returns the slices with devices that these owners treat differently now."""
        touched, self._resumed = self._resumed, {}
        for name in sorted(self._stale):
            owner = self._owners.get(name)
            selecting = None if owner is None else self.selecting(owner)
            criteria = None if selecting is None else criteria_of(selecting, classes)
            touched |= self.index.put(name, criteria)
        for name in sorted(self._edited):
            selection = self.index.get(name)
            if selection is not None:
                touched |= dict.fromkeys(selection.hits)
        self._stale.clear()
        self._edited.clear()
        return touched

    def problems(self) -> Iterator[Problem]:
        """Selectors that cannot be compiled, or that failed on devices, by owner name and position."""
        for name, selection in self.index.items():
            yield from self._compile_problems(name, selection)
            yield from self._runtime_problems(name, selection)

    def _compile_problems(self, name: str, selection: Selection) -> Iterator[Problem]:
        for fault in selection.criteria.faults:
            yield self._problem(name, fault)

    def _runtime_problems(self, name: str, selection: Selection) -> Iterator[Problem]:
        for failure in selection.failures():
            device = _device_id(failure.sheet, failure.position)
            yield self._problem(name, failure.fault, device, failure.devices)

    def _problem(self, name: str, fault: Fault, device: DeviceId | None = None, count: int = 0) -> Problem:
        return Problem(
            kind=self.kind,
            name=name,
            reason=fault.reason,
            message=fault.text,
            selector=fault.selector,
            device_class=fault.device_class,
            device=device,
            count=count,
        )


def _device_id(sheet: Sheet, position: int) -> DeviceId:
    return DeviceId(sheet.driver, sheet.pool, sheet.devices[position].name)
