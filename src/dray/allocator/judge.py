"""Evaluates selectors on devices, once per distinct set of the values that the expressions read."""

from __future__ import annotations

from collections.abc import Hashable
from functools import lru_cache
from typing import Final, NamedTuple

from dray import cel
from dray.api.quantity import Quantity
from dray.api.resource import Device
from dray.api.semver import Semver, SemverError
from dray.cel.explain import Condition
from dray.tracker.view import EffectiveDevice

_CACHED_JUDGES: Final = 2048
_CACHED_VERDICTS: Final = 65_536


class Refuted(NamedTuple):
    """The first expression that is not true for a device, by number; `error` is set if it has no result."""

    number: int
    error: str | None = None


class Judge:
    """Expressions that must all be true, in order. It remembers verdicts, which never change."""

    def __init__(self, expressions: tuple[str, ...]) -> None:
        self._programs: Final = [_compile(expression) for expression in expressions]
        attributes: set[tuple[str, str]] = set()
        capacities: set[tuple[str, str]] = set()
        self._is_cached = True
        for program in self._programs:
            if isinstance(program, cel.CompileError):
                continue
            self._is_cached = self._is_cached and not program.reads.everything
            for kind, domain, name in program.reads.values:
                (attributes if kind == "attribute" else capacities).add((domain, name))
        self._attributes: Final = [(f"{domain}/{name}", domain, name) for domain, name in sorted(attributes)]
        self._capacities: Final = [(f"{domain}/{name}", domain, name) for domain, name in sorted(capacities)]
        self._verdicts: dict[Hashable, Refuted | None] = {}

    def judge(self, device: EffectiveDevice) -> Refuted | None:
        """None if all expressions are true for a device."""
        if not self._is_cached or not _is_readable(device.device):
            return self._evaluate(device)
        key = self._projection(device)
        try:
            return self._verdicts[key]
        except KeyError:
            if len(self._verdicts) >= _CACHED_VERDICTS:
                self._verdicts.clear()
            verdict = self._verdicts[key] = self._evaluate(device)
            return verdict

    def _evaluate(self, device: EffectiveDevice) -> Refuted | None:
        view = device.view if self._programs else None
        for number, program in enumerate(self._programs):
            if isinstance(program, cel.CompileError):
                return Refuted(number, f"CEL compile error: {program.message}")
            try:
                if view is not None and not program.matches(view):
                    return Refuted(number)
            except cel.EvaluationError as error:
                return Refuted(number, f"CEL runtime error: {error.message}")
        return None

    def _projection(self, device: EffectiveDevice) -> Hashable:
        """Equal for devices that look the same to the expressions.

        A name in the driver's own domain may be published with or without it. Quantities are told apart by notation
        too, because expressions can ask for it.
        """
        driver = device.id.driver
        entry = device.device
        attributes = entry.attributes
        key: list[Hashable] = [driver, entry.allow_multiple_allocations]
        for qualified, domain, name in self._attributes:
            key.append(attributes.get(qualified))
            if domain == driver:
                key.append(attributes.get(name))
        for qualified, domain, name in self._capacities:
            for published in (qualified, name if domain == driver else ""):
                capacity = entry.capacity.get(published)
                key.append(None if capacity is None else _notation(capacity.value))
        return tuple(key)


def conditions_of(expression: str, device: EffectiveDevice) -> list[Condition]:
    """The conditions of an expression and what they came to; none if it does not compile."""
    program = _compile(expression)
    return [] if isinstance(program, cel.CompileError) else program.explain(device.view)


def _compile(expression: str) -> cel.Selector | cel.CompileError:
    """As stored expressions are: what a newer version accepted is still tried (4381-52)."""
    try:
        return cel.compile(expression, mode="stored")
    except cel.CompileError as error:
        return error


def _notation(amount: Quantity) -> Hashable:
    return amount.nanos, amount.format, amount.is_integer(), amount.approximate_float()


def _is_readable(device: Device) -> bool:
    """Whether all values can be converted; if not, every expression fails on the device."""
    for attribute in device.attributes.values():
        if attribute.string is not None or attribute.int_value is not None or attribute.bool_value is not None:
            continue
        if attribute.ints or attribute.bools or attribute.strings:
            continue
        versions = attribute.versions or ((attribute.version,) if attribute.version is not None else ())
        if not versions or not all(map(_is_version, versions)):
            return False
    return True


@lru_cache(maxsize=4096)
def _is_version(text: str) -> bool:
    try:
        Semver.parse(text)
    except SemverError:
        return False
    return True


@lru_cache(maxsize=_CACHED_JUDGES)
def judge_of(expressions: tuple[str, ...]) -> Judge:
    """The judge for some expressions; the same one for equal expressions, up to a bounded number."""
    return Judge(expressions)
