"""Checks on literals that types cannot express, made on a checked tree.

Lists and maps must be homogeneous, except below ``format``; durations, timestamps, regular expressions and
format strings that are written as literals must be valid.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from dray.cel import types
from dray.cel.ast import Call, ListLiteral, Literal, MapLiteral, Node, children
from dray.cel.environment import FUNCTIONS
from dray.cel.errors import CompileError, Issue, locate
from dray.cel.library.regex import RegexError, compile_regex
from dray.cel.library.regex_size import LARGEST
from dray.cel.library.text_format import CLAUSES, Clause, FormatError, parse_format
from dray.cel.patterns import patterns_size
from dray.cel.types import Kind, Type
from dray.cel.values import CelError

__all__ = ["validate"]

_PATTERNS_TOO_LARGE: Final = "the regular expressions are too large together; write fewer of them, or fewer repetitions"

_ACCEPTED: Final[dict[str, frozenset[Kind]]] = {
    "s": frozenset(
        {
            Kind.LIST, Kind.MAP, Kind.INT, Kind.UINT, Kind.DOUBLE, Kind.BOOL, Kind.STRING, Kind.TIMESTAMP,
            Kind.BYTES, Kind.DURATION, Kind.TYPE, Kind.NULL,
        }
    ),
    "d": frozenset({Kind.INT, Kind.UINT}),
    "f": frozenset({Kind.DOUBLE, Kind.STRING}),
    "e": frozenset({Kind.DOUBLE, Kind.STRING}),
    "b": frozenset({Kind.INT, Kind.UINT, Kind.BOOL}),
    "x": frozenset({Kind.INT, Kind.UINT, Kind.STRING, Kind.BYTES}),
    "X": frozenset({Kind.INT, Kind.UINT, Kind.STRING, Kind.BYTES}),
    "o": frozenset({Kind.INT, Kind.UINT}),
}  # fmt: skip


def validate(root: Node, text: str) -> None:
    """Raises CompileError with everything that is wrong with the literals of the tree."""
    if patterns_size(root) > LARGEST:
        raise CompileError((Issue(_PATTERNS_TOO_LARGE, 1, 1),))
    issues = [Issue(message, *locate(text, node.offset)) for node, message in _findings(root)]
    if issues:
        raise CompileError(tuple(sorted(issues, key=lambda issue: (issue.line, issue.column))))


def _findings(root: Node) -> Iterator[tuple[Node, str]]:
    pending = [(root, False)]
    while pending:
        node, in_format = pending.pop()
        if isinstance(node, Call):
            in_format = in_format or node.function == "format"
            yield from _call_findings(node)
        elif isinstance(node, ListLiteral) and not in_format:
            yield from _list_findings(node)
        elif isinstance(node, MapLiteral) and not in_format:
            yield from _map_findings(node)
        pending.extend((part, in_format) for part in children(node))


def _list_findings(node: ListLiteral) -> Iterator[tuple[Node, str]]:
    wanted: Type | None = None
    for index, element in enumerate(node.elements):
        found = _entry_type(element, is_optional=index in node.optionals)
        if wanted is None:
            wanted = found
        elif wanted != found:
            yield element, _mismatch(wanted, found)
            return


def _map_findings(node: MapLiteral) -> Iterator[tuple[Node, str]]:
    if not node.entries:
        return
    first = node.entries[0]
    key_type, value_type = first.key.type, _entry_type(first.value, is_optional=first.is_optional)
    for entry in node.entries[1:]:
        if entry.key.type != key_type:
            yield entry.key, _mismatch(key_type, entry.key.type)
        found = _entry_type(entry.value, is_optional=entry.is_optional)
        if found != value_type:
            yield entry.value, _mismatch(value_type, found)


def _entry_type(node: Node, *, is_optional: bool) -> Type:
    return node.type.params[0] if is_optional and node.type.is_optional else node.type


def _mismatch(wanted: Type, found: Type) -> str:
    return f"expected type '{wanted.text}' but found '{found.text}': the elements must all be of one type"


def _call_findings(node: Call) -> Iterator[tuple[Node, str]]:
    if node.function == "format":
        yield from _format_findings(node)
        return
    if not node.args or not isinstance(node.args[0], Literal):
        return
    literal = node.args[0]
    if node.function in ("duration", "timestamp"):
        convert, _ = FUNCTIONS[node.function].bind("")
        outcome = convert(literal.value)
        if isinstance(outcome, CelError):
            yield literal, f"invalid {node.function} argument: {outcome.message}"
    elif node.function == "matches":
        # Kubernetes looks at the first argument, which in matches(text, regex) is the text.
        try:
            compile_regex(literal.value)
        except RegexError as error:
            yield literal, f"invalid matches argument: {error}"


def _format_findings(node: Call) -> Iterator[tuple[Node, str]]:
    target, args = node.target, node.args
    if not (isinstance(target, Literal) and target.literal_type == types.STRING):
        return
    if len(args) != 1 or not isinstance(args[0], ListLiteral):
        return
    elements = args[0].elements
    used = 0
    try:
        for part in parse_format(target.value):
            if not isinstance(part, Clause):
                continue
            if used >= len(elements):
                yield node, f"the format string needs more than the {len(elements)} given arguments"
                return
            bad = _unformattable(part.letter, elements[used])
            if bad is not None:
                wanted = CLAUSES[part.letter]
                yield bad, f"clause %{part.letter} can only be used on {wanted}, was given {bad.type.text}"
                return
            used += 1
    except FormatError as error:
        yield node, str(error)
        return
    if used < len(elements):
        yield node, f"too many arguments supplied to format (expected {used}, got {len(elements)})"


def _unformattable(letter: str, node: Node) -> Node | None:
    """The part of an argument that its clause cannot write, judging by its static type."""
    if not node.type.is_dyn and node.type.kind not in _ACCEPTED[letter]:
        return node
    if letter == "s" and isinstance(node, (ListLiteral, MapLiteral)):
        for part in children(node):
            bad = _unformattable(letter, part)
            if bad is not None:
                return bad
    return None
