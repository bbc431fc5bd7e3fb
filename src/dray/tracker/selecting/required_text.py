"""Expressions that hold only for certain texts, so that most devices need not be evaluated.

    device.driver == "gpu.example.com" && device.attributes["gpu.example.com"].uuid == "GPU-17"

holds only where `uuid` is GPU-17. Where it is another text, the expression is false without an error, however it
goes on: `&&` stops at the first false term. Rules for single devices are often written like this, and there are as
many different values as devices.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator
from itertools import chain
from typing import NamedTuple

from dray.api.resource import DeviceAttribute
from dray.cel.ast import Call, Ident, ListLiteral, Literal, Node, Select
from dray.cel.parser import parse
from dray.cel.recursion import with_deep_stack
from dray.tracker.columns import Column, Sheet
from dray.tracker.selecting.slice_groups import Group, QualifiedName


class RequiredText(NamedTuple):
    """An attribute that must be one of some texts."""

    name: QualifiedName
    values: frozenset[DeviceAttribute]

    def excludes(self, sheet: Sheet) -> bool:
        """Whether all devices of the slice have another text. False if in doubt, for example if one has none."""
        column = text_column(sheet, self.name)
        return column is not None and self.values.isdisjoint(column.values)


class TextIndex:
    """Groups by the texts of one attribute that is read in them."""

    def __init__(self, name: QualifiedName) -> None:
        self._name = name
        self._by_text: dict[Hashable, list[Group]] = {}
        self._others: dict[Group, None] = {}

    def add(self, group: Group) -> None:
        """Take in a new group."""
        column = text_column(group.sheet, self._name)
        if column is None:
            self._others[group] = None
            return
        for text in set(column.values):
            self._by_text.setdefault(text, []).append(group)

    def remove(self, group: Group, sheet: Sheet) -> None:
        """Forget a group, of which this was the last slice."""
        column = text_column(sheet, self._name)
        if column is None:
            del self._others[group]
            return
        for text in set(column.values):
            groups = self._by_text[text]
            groups.remove(group)
            if not groups:
                del self._by_text[text]

    def candidates(self, texts: Iterable[Hashable]) -> Iterator[Group]:
        """Groups in which a device has one of the texts, or in which it is not clear."""
        having = (group for text in texts for group in self._by_text.get(text, ()))
        return iter(dict.fromkeys(chain(having, self._others)))


def text_column(sheet: Sheet, name: QualifiedName) -> Column | None:
    """The column of an attribute if every device of the slice has it, once, as a text, and can be evaluated."""
    domain, identifier = name
    column = sheet.attributes.get(f"{domain}/{identifier}")
    if domain == sheet.driver:
        short = sheet.attributes.get(identifier)
        if column is not None and short is not None:
            return None
        column = column or short
    return column if column is not None and column.is_text and not sheet.faults else None


def required_texts(expression: str) -> tuple[RequiredText, ...]:
    """What the expression requires before it can be true or fail. It must be valid."""
    required: list[RequiredText] = []
    for term in _terms(with_deep_stack(parse, expression).root):
        match term:
            case Call(function="_==_", args=(left, Literal(value=str() as text))):
                texts = [text]
            case Call(function="_==_", args=(Literal(value=str() as text), left)):
                texts = [text]
            case Call(function="@in", args=(left, ListLiteral(elements=elements, optionals=optionals))):
                texts = [element.value for element in elements if isinstance(element, Literal)]
                if optionals or len(texts) < len(elements) or not all(isinstance(text, str) for text in texts):
                    break
            case Select(is_test=True, operand=operand) if _domain(operand) is not None:
                continue  # `has` cannot fail
            case _:
                break
        name = _attribute(left)
        if name is not None:
            required.append(RequiredText(name, frozenset([DeviceAttribute(string=text) for text in texts])))
        elif not _is_driver(left):
            break
    return tuple(required)


def _terms(root: Node) -> Iterator[Node]:
    """The terms of a conjunction, in the order in which they are evaluated."""
    pending = [root]
    while pending:
        node = pending.pop()
        if isinstance(node, Call) and node.function == "_&&_":
            pending.extend(reversed(node.args))
        else:
            yield node


def _attribute(node: Node) -> tuple[str, str] | None:
    """Domain and identifier, if the node is a single attribute."""
    match node:
        case Select(is_test=False, operand=operand, field=identifier):
            domain = _domain(operand)
        case Call(function="_[_]", args=(operand, Literal(value=str() as identifier))):
            domain = _domain(operand)
        case _:
            return None
    return None if domain is None else (domain, identifier)


def _domain(node: Node) -> str | None:
    """The domain, if the node is `device.attributes[domain]`."""
    match node:
        case Call(
            function="_[_]",
            args=(
                Select(is_test=False, operand=Ident(name="device"), field="attributes"),
                Literal(value=str() as domain),
            ),
        ):
            return domain
    return None


def _is_driver(node: Node) -> bool:
    match node:
        case Select(is_test=False, operand=Ident(name="device"), field="driver"):
            return True
    return False
