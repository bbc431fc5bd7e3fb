"""DeviceClasses, as far as rules and patches refer to them."""

from __future__ import annotations

from dray.api.resource import DeviceClass, DeviceSelector
from dray.tracker.selecting.criteria import Compiled, compile_selectors


class ClassTable:
    """The selectors of all classes, compiled once."""

    def __init__(self) -> None:
        self.compiled: dict[str, Compiled] = {}
        self._selectors: dict[str, tuple[DeviceSelector, ...]] = {}

    def put(self, device_class: DeviceClass) -> bool:
        """Take a class. Returns whether it selects differently now."""
        name, selectors = device_class.metadata.name, device_class.spec.selectors
        if self._selectors.get(name) == selectors:
            return False
        self._selectors[name] = selectors
        self.compiled[name] = compile_selectors(selectors, name)
        return True

    def remove(self, name: str) -> bool:
        """Forget a class. Returns whether it was there."""
        self.compiled.pop(name, None)
        return self._selectors.pop(name, None) is not None
