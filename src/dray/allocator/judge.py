"""Evaluates selectors on devices, once per distinct set of the values that an expression reads."""

from __future__ import annotations

from collections.abc import Hashable
from functools import lru_cache
from typing import Final

from dray import cel
from dray.api.quantity import Quantity
from dray.api.resource import Device, DeviceAttribute
from dray.api.semver import Semver, SemverError
from dray.cel.explain import Condition
from dray.tracker.view import EffectiveDevice

_CACHED_EXPRESSIONS: Final = 2048
_CACHED_VERDICTS: Final = 65_536


class SelectorFault(Exception):
    """An expression has no result: it does not compile, or it fails on the device."""


class Judge:
    """One expression. Not a pure value: it remembers verdicts, which never change."""

    def __init__(self, expression: str) -> None:
        self.expression: Final = expression
        self._program: cel.Selector | None = None
        self._compile_error = ""
        self._attributes: list[tuple[str, str, str]] = []
        self._capacities: list[tuple[str, str, str]] = []
        self._is_cached = False
        self._verdicts: dict[Hashable, bool | str] = {}
        try:
            # As stored expressions are: what a newer version accepted is still tried (4381-52).
            self._program = cel.compile(expression, mode="stored")
        except cel.CompileError as error:
            self._compile_error = f"CEL compile error: {error.message}"
            return
        self._is_cached = not self._program.reads.everything
        for kind, domain, name in sorted(self._program.reads.values):
            found = self._attributes if kind == "attribute" else self._capacities
            found.append((f"{domain}/{name}", domain, name))

    def holds(self, device: EffectiveDevice) -> bool:
        """Whether the expression is true for a device. Raises SelectorFault."""
        if self._program is None:
            raise SelectorFault(self._compile_error)
        if not self._is_cached or not _is_readable(device.device):
            verdict = self._evaluate(self._program, device)
        else:
            key = self._projection(device)
            found = self._verdicts.get(key)
            if found is None:
                found = self._evaluate(self._program, device)
                if len(self._verdicts) >= _CACHED_VERDICTS:
                    self._verdicts.clear()
                self._verdicts[key] = found
            verdict = found
        if isinstance(verdict, str):
            raise SelectorFault(f"on device {device.id}: CEL runtime error: {verdict}")
        return verdict

    def explain(self, device: EffectiveDevice) -> list[Condition]:
        """The conditions of the expression and what they came to; empty if it does not compile."""
        return [] if self._program is None else self._program.explain(device.view)

    def _evaluate(self, program: cel.Selector, device: EffectiveDevice) -> bool | str:
        try:
            return program.matches(device.view)
        except cel.EvaluationError as error:
            return error.message

    def _projection(self, device: EffectiveDevice) -> Hashable:
        """Equal for devices that look the same to the expression.

        A name in the driver's own domain may be published with or without it. Quantities are told apart by notation
        too, because expressions can ask for it.
        """
        driver = device.id.driver
        attributes = device.device.attributes
        key: list[Hashable] = [driver, device.device.allow_multiple_allocations]
        for qualified, domain, name in self._attributes:
            key.append(attributes.get(qualified))
            if domain == driver:
                key.append(attributes.get(name))
        capacities = device.device.capacity
        for qualified, domain, name in self._capacities:
            for published in (qualified, name if domain == driver else ""):
                capacity = capacities.get(published)
                key.append(None if capacity is None else _notation(capacity.value))
        return tuple(key)


def _notation(amount: Quantity) -> Hashable:
    return amount.nanos, amount.format, amount.is_integer(), amount.approximate_float()


def _is_readable(device: Device) -> bool:
    """Whether all values can be converted; if not, every expression fails on the device."""
    for attribute in device.attributes.values():
        if attribute.version is not None or attribute.versions:
            if not all(map(_is_version, (attribute.version or "0.0.0", *attribute.versions))):
                return False
        elif not _has_value(attribute):
            return False
    return True


def _has_value(attribute: DeviceAttribute) -> bool:
    return (
        attribute.string is not None
        or attribute.int_value is not None
        or attribute.bool_value is not None
        or bool(attribute.ints or attribute.bools or attribute.strings)
    )


@lru_cache(maxsize=4096)
def _is_version(text: str) -> bool:
    try:
        Semver.parse(text)
    except SemverError:
        return False
    return True


@lru_cache(maxsize=_CACHED_EXPRESSIONS)
def judge_of(expression: str) -> Judge:
    """The judge for an expression; the same one for equal expressions, up to a bounded number."""
    return Judge(expression)
