"""Attributes: a variable or another expression, followed by selections and indexes.

``device.attributes["d"].model`` is one attribute with three qualifiers, not three nested expressions; each
qualifier costs 1 when it is applied. With an optional qualifier (``.?x``, ``[?i]``) the rest of the chain is
optional: what is missing gives an empty optional, and costs nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, Protocol

from dray.cel.allowance import More, endless
from dray.cel.ledger import Ledger
from dray.cel.library.optional import NONE
from dray.cel.values import (
    COST_LIMIT,
    INT_MAX,
    MISSING,
    NO_SUCH_OVERLOAD,
    CelError,
    MapValue,
    MutableList,
    MutableMap,
    Optional,
    Uint,
    is_list,
    list_size,
    type_name,
)

__all__ = [
    "Attribute", "ConditionalAttribute", "Frame", "OperandAttribute", "Qualifier", "Runnable",
    "VariableAttribute",
]  # fmt: skip

_KEY_TYPES: Final = frozenset({str, int, Uint, bool, float})


class Frame:
    """The state of one evaluation: the account, the values of variables (those of the environment come first), and the
    work that is left before it has to ask for ``more``."""

    __slots__ = ("_more", "_work", "ledger", "slots")

    def __init__(
        self, values: tuple[Any, ...], size: int, more: More = endless, *, work: int = 0, cost_limit: int = COST_LIMIT
    ) -> None:
        self.ledger = Ledger(cost_limit)
        self.slots: list[Any] = [*values, *[MISSING] * size]
        self._more = more
        self._work = work

    def work(self, steps: int) -> None:
        """Do so many steps; raises whatever ``more`` raises."""
        self._work -= steps
        if self._work < 0:
            self._work = self._more()


class Runnable(Protocol):
    """A planned expression."""

    @property
    def id(self) -> int: ...

    def run(self, frame: Frame) -> Any: ...


class Qualifier:
    """A selection by a constant key, or by one that is computed when it is applied."""

    __slots__ = ("compute", "id", "is_optional", "is_test", "key")

    def __init__(
        self,
        id: int,
        key: Any = MISSING,
        compute: Callable[[Frame], Any] | None = None,
        *,
        is_optional: bool = False,
        is_test: bool = False,
    ) -> None:
        self.id = id
        self.key = key
        self.is_optional = is_optional
        self.compute = compute
        self.is_test = is_test

    def apply(self, frame: Frame, target: Any) -> Any:
        """The selected value, or an error if there is none."""
        key = self._key(frame)
        value: Any = key if key.__class__ is CelError else _find(target, key)
        if value.__class__ is not CelError:
            if self.is_test:
                value = value is not MISSING
            elif value is MISSING:
                value = _missing(target, key)
        frame.ledger.record(self.id, value, 1)
        return value

    def apply_if_present(self, frame: Frame, target: Any) -> Any:
        """The selected value, MISSING, or an error."""
        key = self._key(frame)
        value = key if key.__class__ is CelError else _find(target, key)
        if value.__class__ is not CelError and value is not MISSING:
            frame.ledger.record(self.id, value, 1)
        return value

    def _key(self, frame: Frame) -> Any:
        if self.compute is None:
            return self.key
        key = self.compute(frame)
        if key.__class__ is CelError or key.__class__ in _KEY_TYPES:
            return key
        return CelError(f"a value of type {type_name(key)} cannot be a key")


class Attribute:
    """Base of the three kinds of attribute, which differ in where their value comes from."""

    __slots__ = ("_base_id", "qualifiers")

    own_cost = 1

    def __init__(self, base_id: int) -> None:
        self._base_id = base_id
        self.qualifiers: list[Qualifier] = []

    @property
    def id(self) -> int:
        """The id of the last qualifier, since that is the expression that the attribute stands for."""
        return self.qualifiers[-1].id if self.qualifiers else self._base_id

    def add(self, qualifier: Qualifier) -> None:
        self.qualifiers.append(qualifier)

    def dropped_ids(self) -> tuple[int, ...]:
        """What leaves the ledger's stack when the attribute is recorded."""
        return (self.id,)

    def resolve(self, frame: Frame) -> Any:
        """The value or error; only qualifiers are recorded."""
        value = self._base(frame)
        if value.__class__ is CelError or not self.qualifiers:
            return value
        return self._qualify(frame, value)

    def _base(self, frame: Frame) -> Any:  # noqa: ARG002 - what subclasses need
        raise AssertionError("abstract")

    def _qualify(self, frame: Frame, value: Any) -> Any:
        is_optional = value.__class__ is Optional
        if is_optional:
            if not value.has_value:
                return value
            value = value.value
        for qualifier in self.qualifiers:
            is_optional = is_optional or qualifier.is_optional
            if not is_optional:
                value = qualifier.apply(frame, value)
            else:
                value = qualifier.apply_if_present(frame, value)
                if value is MISSING:
                    return NONE
            if value.__class__ is CelError:
                return value
        return Optional(value) if is_optional else value


class VariableAttribute(Attribute):
    """A variable of the environment, or a local one. An accumulator is computed when it is first asked for."""

    __slots__ = ("init", "slot")

    def __init__(self, base_id: int, slot: int, init: Runnable | None = None) -> None:
        super().__init__(base_id)
        self.slot = slot
        self.init = init

    def _base(self, frame: Frame) -> Any:
        value = frame.slots[self.slot]
        if value is MISSING and self.init is not None:
            value = self.init.run(frame)
            # An empty list or map is there to be filled, which must not copy it every time.
            if is_list(value) and list_size(value) == 0:
                value = MutableList()
            elif isinstance(value, MapValue) and len(value) == 0:
                value = MutableMap()
            frame.slots[self.slot] = value
        return value


class OperandAttribute(Attribute):
    """Any other expression."""

    __slots__ = ("operand",)

    def __init__(self, base_id: int, operand: Runnable) -> None:
        super().__init__(base_id)
        self.operand = operand

    def _base(self, frame: Frame) -> Any:
        return self.operand.run(frame)


class ConditionalAttribute(Attribute):
    """``condition ? a : b``. Qualifiers apply to whichever branch is taken. Costs nothing itself."""

    __slots__ = ("_condition", "_otherwise", "_then")

    own_cost = 0

    def __init__(self, base_id: int, condition: Runnable, then: Attribute, otherwise: Attribute) -> None:
        super().__init__(base_id)
        self._condition = condition
        self._then = then
        self._otherwise = otherwise

    @property
    def id(self) -> int:
        return self._then.id if self._then.id == self._otherwise.id else self._base_id

    def add(self, qualifier: Qualifier) -> None:
        self._then.add(qualifier)
        self._otherwise.add(qualifier)

    def dropped_ids(self) -> tuple[int, ...]:
        return self._otherwise.id, self._then.id, self._condition.id

    def resolve(self, frame: Frame) -> Any:
        condition = self._condition.run(frame)
        if condition is True:
            return self._then.resolve(frame)
        if condition is False:
            return self._otherwise.resolve(frame)
        return condition if condition.__class__ is CelError else NO_SUCH_OVERLOAD


def _find(target: Any, key: Any) -> Any:
    """What the key selects: a value, MISSING, or an error if no such key can exist."""
    if isinstance(target, MapValue):
        return target.find(key)
    if not is_list(target):
        return MISSING
    index = _index(key)
    if isinstance(index, CelError):
        return index
    return target[index] if 0 <= index < list_size(target) else MISSING


def _index(key: Any) -> int | CelError:
    if key.__class__ is int:
        return int(key)
    if key.__class__ is Uint and key <= INT_MAX:
        return int(key)
    if key.__class__ is float and key.is_integer() and abs(key) < 2.0**63:
        return int(key)
    if key.__class__ is Uint or key.__class__ is float:
        return CelError(f"unsupported index value {key} in list")
    return CelError(f"unsupported index type '{type_name(key)}' in list")


def _missing(target: Any, key: Any) -> CelError:
    if is_list(target):
        return CelError(f"index out of bounds: {key}")
    hint = "test with has() or 'in', or use .? and orValue()"
    shown = str(key).lower() if key.__class__ is bool else key
    return CelError(f"no such key: {shown}; {hint}" if isinstance(target, MapValue) else f"no such key: {shown}")
