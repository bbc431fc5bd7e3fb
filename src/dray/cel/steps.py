"""The steps of an evaluation: what each kind of expression does and what it charges.

Every step returns a value, which may be a CelError, and records it in the ledger.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from dray.cel.attributes import Attribute, Frame
from dray.cel.call_costs import CallCost, call_cost
from dray.cel.declarations import Implementation
from dray.cel.equality import equal
from dray.cel.values import (
    MISSING,
    NO_SUCH_OVERLOAD,
    CelError,
    LiteralMap,
    MapValue,
    MutableList,
    MutableMap,
    Optional,
    StructValue,
    is_list,
    type_name,
)

__all__ = [
    "AttributeStep", "CallStep", "ConstantStep", "EqualityStep", "FoldStep", "ListStep", "LogicalStep",
    "MapStep", "MembershipStep", "OptionalChainStep", "Step", "StructStep",
]  # fmt: skip


class Step:
    """One expression, planned."""

    __slots__ = ()

    @property
    def id(self) -> int:
        """Under which id the step's value is recorded."""
        raise AssertionError("abstract")

    def run(self, frame: Frame) -> Any:  # noqa: ARG002 - what subclasses need
        """The value, after it was recorded and charged for."""
        raise AssertionError("abstract")


class _NodeStep(Step):
    __slots__ = ("_id",)

    def __init__(self, id: int) -> None:
        self._id = id

    @property
    def id(self) -> int:
        return self._id


class ConstantStep(_NodeStep):
    """A literal, or what could be computed in advance. Free."""

    __slots__ = ("value",)

    def __init__(self, id: int, value: Any) -> None:
        super().__init__(id)
        self.value = value

    def run(self, frame: Frame) -> Any:
        frame.ledger.record(self._id, self.value)
        return self.value


class AttributeStep(Step):
    """A variable or expression with selections. Costs 1 on top of its selections.

    ``has()`` is such a step that does not cost the 1; so is a conditional.
    """

    __slots__ = ("_dropped_ids", "_id", "attribute", "cost", "is_test")

    def __init__(self, attribute: Attribute, *, is_test: bool = False) -> None:
        self.attribute = attribute
        self.is_test = is_test
        self.cost = attribute.own_cost - is_test
        # Qualifiers are still being added while planning, and they decide about the ids.
        self._id = -1
        self._dropped_ids: tuple[int, ...] = ()

    @property
    def id(self) -> int:
        return self.attribute.id

    def run(self, frame: Frame) -> Any:
        if self._id < 0:
            self._id = self.attribute.id
            self._dropped_ids = self.attribute.dropped_ids()
        value = self.attribute.resolve(frame)
        if self.is_test and value.__class__ is Optional:
            value = value.has_value
        ledger = frame.ledger
        for id in self._dropped_ids:
            ledger.drop(id)
        ledger.record(self._id, value, self.cost)
        return value


class CallStep(_NodeStep):
    """A call of a function."""

    __slots__ = ("_arg_ids", "_is_lazy", "accepts_errors", "args", "cost", "implementation")

    def __init__(
        self,
        id: int,
        *,
        function: str,
        overload: str,
        args: list[Step],
        implementation: Implementation,
        is_lazy: bool,
        accepts_errors: bool = False,
    ) -> None:
        super().__init__(id)
        self.args = args
        self._arg_ids = [arg.id for arg in args]
        self.implementation = implementation
        self._is_lazy = is_lazy
        self.accepts_errors = accepts_errors
        self.cost: CallCost | None = call_cost(function, overload)

    def run(self, frame: Frame) -> Any:
        result = self.compute(frame)
        taken = frame.ledger.take(self._arg_ids)
        cost = 0
        if taken is not None:
            cost = 1 if self.cost is None else self.cost(taken, result)
        frame.ledger.record(self._id, result, cost)
        return result

    def compute(self, frame: Frame) -> Any:
        """The result of the call, not yet recorded."""
        values = []
        failure: CelError | None = None
        for arg in self.args:
            value = arg.run(frame)
            if value.__class__ is CelError and failure is None and not self.accepts_errors:
                failure = value
                if self._is_lazy:
                    break
            values.append(value)
        return self.implementation(*values) if failure is None else failure


class EqualityStep(_NodeStep):
    """``==`` and ``!=``. Values that cannot be compared make ``==`` fail, but are ``!=``."""

    __slots__ = ("_arg_ids", "cost", "is_negated", "left", "right")

    def __init__(self, id: int, left: Step, right: Step, *, is_negated: bool) -> None:
        super().__init__(id)
        self.left = left
        self.right = right
        self._arg_ids = (left.id, right.id)
        self.is_negated = is_negated
        cost = call_cost("", "not_equals") if is_negated else call_cost("_==_", "")
        assert cost is not None
        self.cost: CallCost = cost

    def run(self, frame: Frame) -> Any:
        left = self.left.run(frame)
        right = self.right.run(frame)
        result: Any
        if left.__class__ is CelError:
            result = left
        elif right.__class__ is CelError:
            result = right
        elif self.is_negated:
            result = equal(left, right) is not True
        else:
            result = equal(left, right)
        taken = frame.ledger.take(self._arg_ids)
        frame.ledger.record(self._id, result, 0 if taken is None else self.cost(taken, result))
        return result


class LogicalStep(_NodeStep):
    """``&&`` and ``||``: the deciding value wins over errors on either side. Free."""

    __slots__ = ("decisive", "terms")

    def __init__(self, id: int, terms: list[Step], *, decisive: bool) -> None:
        super().__init__(id)
        self.terms = terms
        self.decisive = decisive

    def run(self, frame: Frame) -> Any:
        failure: CelError | None = None
        result: Any = None
        for term in self.terms:
            value = term.run(frame)
            if value is self.decisive:
                result = value
                break
            if value.__class__ is not bool and failure is None:
                failure = value if value.__class__ is CelError else NO_SUCH_OVERLOAD
        if result is None:
            result = (not self.decisive) if failure is None else failure
        ledger = frame.ledger
        for term in self.terms:
            ledger.drop(term.id)
        ledger.record(self._id, result)
        return result


class OptionalChainStep(_NodeStep):
    """``or`` and ``orValue``: the right side only if the left has no value. Free."""

    __slots__ = ("_left", "_right", "_unwraps")

    def __init__(self, id: int, left: Step, right: Step, *, unwraps: bool) -> None:
        super().__init__(id)
        self._left = left
        self._right = right
        self._unwraps = unwraps

    def run(self, frame: Frame) -> Any:
        value = self._left.run(frame)
        if value.__class__ is Optional:
            if not value.has_value:
                value = self._right.run(frame)
            elif self._unwraps:
                value = value.value
        elif value.__class__ is not CelError:
            value = NO_SUCH_OVERLOAD
        frame.ledger.record(self._id, value)
        return value


class MembershipStep(_NodeStep):
    """``in`` with a constant list of primitive values. Free."""

    __slots__ = ("arg", "members")

    def __init__(self, id: int, arg: Step, members: LiteralMap) -> None:
        super().__init__(id)
        self.arg = arg
        self.members = members

    def run(self, frame: Frame) -> Any:
        value = self.arg.run(frame)
        if value.__class__ is not CelError:
            value = self.members.has(value)
        frame.ledger.record(self._id, value)
        return value


class ListStep(_NodeStep):
    """A list with elements that are not all constant. Costs 10."""

    __slots__ = ("_element_ids", "_elements", "_optionals")

    def __init__(self, id: int, elements: list[Step], optionals: frozenset[int]) -> None:
        super().__init__(id)
        self._elements = elements
        self._element_ids = [element.id for element in elements]
        self._optionals = optionals

    def run(self, frame: Frame) -> Any:
        result = self._build(frame)
        frame.ledger.take(self._element_ids)
        frame.ledger.record(self._id, result, 10)
        return result

    def _build(self, frame: Frame) -> Any:
        values = []
        for index, element in enumerate(self._elements):
            value = element.run(frame)
            if value.__class__ is CelError:
                return value
            if index in self._optionals:
                if value.__class__ is not Optional:
                    return CelError("cannot initialize optional list element from non-optional value")
                if not value.has_value:
                    continue
                value = value.value
            values.append(value)
        return values


class MapStep(_NodeStep):
    """A map with entries that are not all constant. Costs 30."""

    __slots__ = ("_entries", "_part_ids")

    def __init__(self, id: int, entries: list[tuple[Step, Step, bool]]) -> None:
        super().__init__(id)
        self._entries = entries
        self._part_ids = [part.id for key, value, _ in entries for part in (key, value)]

    def run(self, frame: Frame) -> Any:
        result = self._build(frame)
        frame.ledger.take(self._part_ids)
        frame.ledger.record(self._id, result, 30)
        return result

    def _build(self, frame: Frame) -> Any:
        items: list[tuple[Any, Any]] = []
        for key_step, value_step, is_optional in self._entries:
            key = key_step.run(frame)
            if key.__class__ is CelError:
                return key
            value = value_step.run(frame)
            if value.__class__ is CelError:
                return value
            if is_optional:
                if value.__class__ is not Optional:
                    return CelError("cannot initialize optional entry from non-optional value")
                if not value.has_value:
                    continue
                value = value.value
            items.append((key, value))
        return LiteralMap(items)


class StructStep(_NodeStep):
    """A struct that is made by its name. Costs 40."""

    __slots__ = ("_fields", "_name", "_optionals", "_value_ids", "_values")

    def __init__(
        self, id: int, name: str, fields: tuple[str, ...], values: list[Step], optionals: frozenset[int]
    ) -> None:
        super().__init__(id)
        self._name = name
        self._fields = fields
        self._values = values
        self._value_ids = [value.id for value in values]
        self._optionals = optionals

    def run(self, frame: Frame) -> Any:
        result = self._build(frame)
        frame.ledger.take(self._value_ids)
        frame.ledger.record(self._id, result, 40)
        return result

    def _build(self, frame: Frame) -> Any:
        entries: dict[str, Any] = {}
        for index, (name, step) in enumerate(zip(self._fields, self._values, strict=True)):
            value = step.run(frame)
            if value.__class__ is CelError:
                return value
            if index in self._optionals:
                if value.__class__ is not Optional:
                    return CelError(f"cannot initialize optional field {name!r} from non-optional value")
                if not value.has_value:
                    continue
                value = value.value
            entries[name] = value
        return StructValue(self._name, entries)


class FoldStep(_NodeStep):
    """A comprehension, or a binding, which is one over nothing. Free but for its parts."""

    __slots__ = ("_accumulator", "_condition", "_over", "_result", "_slots", "_step", "_weight")

    def __init__(
        self,
        id: int,
        *,
        over: Step,
        accumulator: int,
        slots: tuple[int, ...],
        condition: Step,
        step: Step,
        result: Step,
        weight: int,
    ) -> None:
        """``weight`` is how many steps a round takes."""
        super().__init__(id)
        self._over = over
        self._accumulator = accumulator
        self._slots = slots
        self._condition = condition
        self._step = step
        self._result = result
        self._weight = weight

    def run(self, frame: Frame) -> Any:
        value = self._fold(frame)
        frame.ledger.drop(self._over.id)
        frame.ledger.record(self._id, value)
        return value

    def _fold(self, frame: Frame) -> Any:
        slots = frame.slots
        slots[self._accumulator] = MISSING
        over = self._over.run(frame)
        if over.__class__ is CelError:
            return over
        rounds = self._rounds(over)
        if rounds is None:
            return CelError(f"a value of type {type_name(over)} cannot be iterated")
        for values in rounds:
            frame.work(self._weight)
            for slot, value in zip(self._slots, values, strict=True):
                slots[slot] = value
            if self._condition.run(frame) is False:
                break
            slots[self._accumulator] = self._step.run(frame)
        value = self._result.run(frame)
        if value.__class__ is MutableList:
            return list(value)
        return LiteralMap(value.items()) if value.__class__ is MutableMap else value

    def _rounds(self, over: Any) -> Iterator[tuple[Any, ...]] | None:
        """What the iteration variables stand for in each round."""
        has_pairs = len(self._slots) == 2
        if is_list(over):
            return enumerate(over) if has_pairs else ((value,) for value in over)
        if isinstance(over, MapValue):
            keys = over.keys()
            return ((key, over.find(key)) for key in keys) if has_pairs else ((key,) for key in keys)
        return None
