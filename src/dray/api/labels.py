"""Label selectors and field selectors: reading them and matching them.

Selectors arrive as text (``kubectl get -l``, ``--field-selector``) or as the structured form inside objects.
Both become immutable lists of requirements, all of which must hold. Pure functions: no I/O.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, Literal, NamedTuple, Protocol, TypeAlias, cast, get_args

from dray.api import names

__all__ = ["FieldRequirement", "FieldSelector", "LabelSelector", "Operator", "Requirement", "SelectorError"]

Operator: TypeAlias = Literal["In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt"]

_OPERATORS: Final = frozenset(get_args(Operator))
_STRUCTURED_OPERATORS: Final = frozenset({"In", "NotIn", "Exists", "DoesNotExist"})
_OPERATOR_OF_SYMBOL: Final[Mapping[str, Operator]] = {
    "=": "In",
    "==": "In",
    "!=": "NotIn",
    "in": "In",
    "notin": "NotIn",
    ">": "Gt",
    "<": "Lt",
}
_TOKEN: Final = re.compile(r"[ \t\r\n]*+(==|!=|[=!(),<>]|[^=!(),<> \t\r\n]++)?+")
_SYMBOLS: Final = frozenset({"=", "==", "!=", "!", "(", ")", ",", "<", ">"})
_END: Final = ""
_INTEGER: Final = re.compile(r"[+-]?+[0-9]++")
_INT64_DIGITS: Final = 40
_FEW: Final = 8
"""Up to so many, requirements or values are looked at one by one."""


class SelectorError(ValueError):
    """A selector cannot be used. ``position`` is the offset of the fault in a textual selector."""

    def __init__(self, message: str, position: int | None = None) -> None:
        super().__init__(message if position is None else f"{message} (at character {position + 1})")
        self.position = position


class RequirementLike(Protocol):
    """The structured form of a requirement, as label and node selectors have it."""

    @property
    def key(self) -> str: ...
    @property
    def operator(self) -> str: ...
    @property
    def values(self) -> Sequence[str]: ...


class LabelSelectorLike(Protocol):
    """The structured form of a label selector."""

    @property
    def match_labels(self) -> Mapping[str, str]: ...
    @property
    def match_expressions(self) -> Sequence[RequirementLike]: ...


@dataclass(frozen=True, slots=True)
class Requirement:
    """What one label must be like. ``key=value`` is ``In`` with one value, ``key!=value`` is ``NotIn``."""

    key: str
    operator: Operator
    values: tuple[str, ...] = ()
    members: Collection[str] = field(default=(), init=False, repr=False, compare=False)
    """The same values, for finding one."""

    def __post_init__(self) -> None:
        # A few values are found fastest one by one, but somebody may ask for one of a hundred thousand.
        members = self.values if len(self.values) <= _FEW else frozenset(self.values)
        object.__setattr__(self, "members", members)

    @classmethod
    def of(cls, key: str, operator: str, values: Sequence[str] = (), position: int | None = None) -> Requirement:
        """Check the parts and put them together; raises SelectorError (at ``position``, if given)."""
        fault = _find_fault(key, operator, values)
        if fault is not None:
            raise SelectorError(fault, position)
        return cls(key, cast(Operator, operator), tuple(values))

    def matches(self, labels: Mapping[str, str]) -> bool:
        """Whether the labels fulfil this. ``NotIn`` holds for a missing label, ``Gt`` and ``Lt`` do not."""
        value = labels.get(self.key)
        match self.operator:
            case "In":
                return value in self.members
            case "NotIn":
                return value not in self.members
            case "Exists":
                return value is not None
            case "DoesNotExist":
                return value is None
        if value is None:
            return False
        actual, bound = _read_int64(value), _read_int64(self.values[0])
        if actual is None or bound is None:
            return False
        return actual > bound if self.operator == "Gt" else actual < bound

    def __str__(self) -> str:
        match self.operator:
            case "Exists":
                return self.key
            case "DoesNotExist":
                return f"!{self.key}"
            case "Gt" | "Lt":
                return f"{self.key}{'>' if self.operator == 'Gt' else '<'}{self.values[0]}"
        if len(self.values) == 1:
            return f"{self.key}{'=' if self.operator == 'In' else '!='}{self.values[0]}"
        word = "in" if self.operator == "In" else "notin"
        return f"{self.key} {word} ({','.join(sorted(self.values))})"


@dataclass(frozen=True, slots=True)
class LabelSelector:
    """Requirements that must all hold; none at all match everything, unless ``matches_nothing`` is set."""

    requirements: tuple[Requirement, ...] = ()
    matches_nothing: bool = False
    _many: _ManyRequirements | None = field(default=None, init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if len(self.requirements) > _FEW:
            object.__setattr__(self, "_many", _ManyRequirements(self.requirements))

    @classmethod
    def parse(cls, text: str) -> LabelSelector:
        """Read ``a=b,c!=d,e in (x,y),f notin (z),g,!h,i>1,j<2``; raises SelectorError with the position."""
        requirements = _LabelSelectorParser(text).parse()
        return cls(tuple(sorted(requirements, key=lambda requirement: requirement.key)))

    @classmethod
    def of(cls, selector: LabelSelectorLike | None) -> LabelSelector:
        """Take the structured form; None matches nothing, an empty one everything. Raises SelectorError."""
        if selector is None:
            return cls(matches_nothing=True)
        exact = (Requirement.of(key, "In", (value,)) for key, value in selector.match_labels.items())
        expressions = (_requirement_of_structured(expression) for expression in selector.match_expressions)
        return cls((*exact, *expressions))

    def matches(self, labels: Mapping[str, str]) -> bool:
        """Whether all requirements hold."""
        if self.matches_nothing:
            return False
        if self._many is not None:
            return self._many.hold(labels)
        return all(requirement.matches(labels) for requirement in self.requirements)

    def __str__(self) -> str:
        return "<nothing>" if self.matches_nothing else ",".join(map(str, self.requirements))


class _ManyRequirements:
    """Requirements by label, one of each sort, so that an object is judged in no more time than it has labels.

    However many there are: of those that need a label no more can hold than the object has labels, and of the others
    only those on one of its labels can fail.
    """

    def __init__(self, requirements: tuple[Requirement, ...]) -> None:
        self._needing: dict[str, dict[Operator, Requirement]] = {}
        self._others: dict[str, dict[Operator, Requirement]] = {}
        sets: dict[tuple[str, Operator], list[Requirement]] = {}
        for one in requirements:
            sets.setdefault((one.key, one.operator), []).append(one)
        for (key, operator), alike in sets.items():
            table = self._others if operator in ("NotIn", "DoesNotExist") else self._needing
            table.setdefault(key, {})[operator] = _joined(alike)

    def hold(self, labels: Mapping[str, str]) -> bool:
        """Whether the labels fulfil them all."""
        if len(self._needing) > len(labels):
            return False
        concerned = self._others if len(self._others) <= len(labels) else labels
        return all(one.matches(labels) for alike in self._needing.values() for one in alike.values()) and all(
            one.matches(labels) for key in concerned for one in self._others.get(key, _NONE).values()
        )


_NONE: Final[Mapping[Operator, Requirement]] = {}


def _joined(alike: list[Requirement]) -> Requirement:
    """One requirement for several on one label with one operator."""
    first = alike[0]
    if len(alike) == 1 or not first.values:
        return first
    values: Iterable[str]
    match first.operator:
        case "In":
            values = set(first.values).intersection(*(one.values for one in alike))
        case "NotIn":
            values = set(first.values).union(*(one.values for one in alike))
        case _:
            bounds = [one.values[0] for one in alike]
            values = (max(bounds, key=int) if first.operator == "Gt" else min(bounds, key=int),)
    return Requirement(first.key, first.operator, tuple(values))


def _requirement_of_structured(expression: RequirementLike) -> Requirement:
    if expression.operator not in _STRUCTURED_OPERATORS:
        raise SelectorError(_unknown_operator(expression.key, expression.operator, _STRUCTURED_OPERATORS))
    return Requirement.of(expression.key, expression.operator, expression.values)


def _unknown_operator(key: str, operator: str, known: frozenset[str]) -> str:
    return f"unknown operator {operator!r} for label {key!r}; known are {', '.join(sorted(known))}"


def _find_fault(key: str, operator: str, values: Sequence[str]) -> str | None:
    """Why these parts are no requirement, or None."""
    for message in names.validate_label_key(key):
        return f"label key {key!r}: {message}"
    if operator not in _OPERATORS:
        return _unknown_operator(key, operator, _OPERATORS)
    if operator in ("In", "NotIn"):
        if not values:
            return f"operator {operator} for label {key!r} needs at least one value"
    elif operator in ("Gt", "Lt"):
        if len(values) != 1 or _read_int64(values[0]) is None:
            return f"operator {operator} for label {key!r} needs exactly one value, an integer"
    elif values:
        return f"operator {operator} for label {key!r} takes no values"
    for value in values:
        for message in names.validate_label_value(value):
            return f"value {value!r} for label {key!r}: {message}"
    return None


def _read_int64(text: str) -> int | None:
    """A decimal 64-bit integer, or None."""
    if len(text) > _INT64_DIGITS or not _INTEGER.fullmatch(text):
        return None
    value = int(text)
    return value if -(2**63) <= value < 2**63 else None


class _Token(NamedTuple):
    text: str
    position: int

    @property
    def is_word(self) -> bool:
        return self.text not in _SYMBOLS and self.text != _END

    def __str__(self) -> str:
        return repr(self.text) if self.text else "the end"


class _LabelSelectorParser:
    """Recursive descent over the tokens; ``in`` and ``notin`` are words unless an operator is expected.

    selector    := [requirement ("," requirement)*]
    requirement := "!" key | key | key ("=" | "==" | "!=" | ">" | "<") [value] | key ("in" | "notin") set
    set         := "(" [value] ("," [value])* ")"
    """

    def __init__(self, text: str) -> None:
        self._tokens = _tokenize(text)
        self._next = 0

    def parse(self) -> list[Requirement]:
        requirements: list[Requirement] = []
        if self._peek().text == _END:
            return requirements
        while True:
            requirements.append(self._requirement())
            token = self._take()
            if token.text == _END:
                return requirements
            if token.text != ",":
                raise _unexpected(token, "',' or the end")

    def _peek(self) -> _Token:
        return self._tokens[self._next]

    def _take(self) -> _Token:
        token = self._tokens[self._next]
        self._next += 1
        return token

    def _requirement(self) -> Requirement:
        token = self._take()
        negated = token.text == "!"
        if negated:
            token = self._take()
        if not token.is_word:
            raise _unexpected(token, "a label key")
        if negated:
            return Requirement.of(token.text, "DoesNotExist", position=token.position)
        if self._peek().text in (_END, ","):
            return Requirement.of(token.text, "Exists", position=token.position)
        operator = self._take()
        if operator.text not in _OPERATOR_OF_SYMBOL:
            raise _unexpected(operator, "an operator (=, ==, !=, in, notin, >, <)")
        values = self._set() if operator.is_word else (self._value(),)
        return Requirement.of(token.text, _OPERATOR_OF_SYMBOL[operator.text], values, token.position)

    def _value(self) -> str:
        """The value of an exact comparison; none at all is the empty value."""
        if self._peek().text in (_END, ","):
            return ""
        token = self._take()
        if not token.is_word:
            raise _unexpected(token, "a value")
        return token.text

    def _set(self) -> tuple[str, ...]:
        token = self._take()
        if token.text != "(":
            raise _unexpected(token, "'('")
        values: set[str] = set()
        while True:
            values.add(self._take().text if self._peek().is_word else "")
            token = self._take()
            if token.text == ")":
                return tuple(sorted(values))
            if token.text != ",":
                raise _unexpected(token, "',' or ')'")


def _tokenize(text: str) -> list[_Token]:
    """Split into symbols and words, closed by the end token."""
    tokens: list[_Token] = []
    position = 0
    while position < len(text):
        match = _TOKEN.match(text, position)
        if match is None or match[1] is None:
            break
        tokens.append(_Token(match[1], match.start(1)))
        position = match.end()
    tokens.append(_Token(_END, len(text)))
    return tokens


def _unexpected(token: _Token, expected: str) -> SelectorError:
    return SelectorError(f"invalid label selector: found {token}, expected {expected}", token.position)


@dataclass(frozen=True, slots=True)
class FieldRequirement:
    """What one field must be, or must not be."""

    field: str
    value: str
    negated: bool = False

    def matches(self, fields: Mapping[str, str]) -> bool:
        """Whether the fields fulfil this; a missing field is the empty text."""
        return (fields.get(self.field, "") == self.value) is not self.negated

    def __str__(self) -> str:
        escaped = re.sub(r"[\\,=]", r"\\\g<0>", self.value)
        return f"{self.field}{'!=' if self.negated else '='}{escaped}"


class _ManyValues(NamedTuple):
    """What one field must be, all of it, and what it must not be."""

    wanted: set[str]
    refused: set[str]

    def allow(self, value: str) -> bool:
        return value not in self.refused and len(self.wanted) <= 1 and self.wanted <= {value}


@dataclass(frozen=True, slots=True)
class FieldSelector:
    """Field requirements that must all hold; none at all match everything."""

    requirements: tuple[FieldRequirement, ...] = ()
    _many: dict[str, _ManyValues] | None = field(default=None, init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if len(self.requirements) > _FEW:
            by_field: dict[str, _ManyValues] = {}
            for one in self.requirements:
                values = by_field.setdefault(one.field, _ManyValues(set(), set()))
                (values.refused if one.negated else values.wanted).add(one.value)
            object.__setattr__(self, "_many", by_field)

    @classmethod
    def parse(cls, text: str) -> FieldSelector:
        r"""Read ``a=b,c==d,e!=f``; in values ``\``, ``,`` and ``=`` need a ``\``. Raises SelectorError."""
        terms = (_parse_field_term(match[0], match.start()) for match in _FIELD_TERM.finditer(text))
        return cls(tuple(terms))

    def matches(self, fields: Mapping[str, str]) -> bool:
        """Whether all requirements hold."""
        if self._many is not None:
            return all(values.allow(fields.get(name, "")) for name, values in self._many.items())
        return all(requirement.matches(fields) for requirement in self.requirements)

    def __str__(self) -> str:
        return ",".join(map(str, self.requirements))


_FIELD_TERM: Final = re.compile(r"(?:[^\\,]|\\.|\\\Z)++", re.DOTALL)
_FIELD_OPERATOR: Final = re.compile(r"!=|==?")


def _parse_field_term(term: str, position: int) -> FieldRequirement:
    operator = _FIELD_OPERATOR.search(term)
    if operator is None:
        raise SelectorError(
            f"invalid field selector: {term!r} has no operator; expected FIELD=VALUE or FIELD!=VALUE",
            position,
        )
    value = _unescape(term[operator.end() :], position + operator.end())
    return FieldRequirement(term[: operator.start()], value, operator[0] == "!=")


def _unescape(value: str, position: int) -> str:
    parts: list[str] = []
    index = 0
    while index < len(value):
        character = value[index]
        if character == "\\":
            character = value[index + 1 : index + 2]
            if character not in ("\\", ",", "="):
                raise SelectorError(f"invalid field selector: unknown escape '\\{character}'", position + index)
            index += 1
        elif character == "=":
            raise SelectorError("invalid field selector: '=' in a value must be escaped", position + index)
        parts.append(character)
        index += 1
    return "".join(parts)
