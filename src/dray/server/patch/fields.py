"""Sets of fields, in the form in which `managedFields` holds them (FieldsV1).

A set is a tree of JSON objects. A name in it is one step of a path:

    f:image                   a field of an object, or a key of a map
    k:{"name":"a"}            an element of a list, told apart by its keys
    v:"example.com/x"         an element of a list that is a set
    .                         the path itself, beside others below it

A step with nothing below it is a member, too: `{"f:labels": {".": {}, "f:a": {}}}` holds `.labels` and `.labels.a`,
and `{"f:labels": {"f:a": {}}}` holds `.labels.a` alone. The tree of an empty set is empty. Sets are never changed once
made; the results of operations share subtrees with what they were made of.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, TypeAlias

import msgspec

from dray.api.text_memory import remember_texts

FieldSet: TypeAlias = "dict[str, FieldSet]"

_in_order = msgspec.json.Encoder(order="sorted")
SELF = "."
LEAF: FieldSet = {}
"""What is below a member that has nothing below it."""


class FieldSetError(ValueError):
    """This is no set of fields."""


def is_member(node: FieldSet) -> bool:
    """Whether the path that leads to a node is in the set."""
    return not node or SELF in node


def as_member(node: FieldSet) -> FieldSet:
    """The node with the path that leads to it in the set."""
    return node if is_member(node) else {SELF: LEAF, **node}


def union(left: FieldSet, right: FieldSet) -> FieldSet:
    """What is in one of the sets."""
    if not left or not right:
        return left or right
    joined = dict(left)
    for step, node in right.items():
        known = left.get(step)
        joined[step] = node if known is None else _union_of_nodes(known, node)
    return joined


def union_of_all(sets: Iterable[FieldSet]) -> FieldSet:
    """What is in any of the sets, in the time that it takes to look at each of them once."""
    joined: FieldSet = {}
    for one in sets:
        _add(joined, one)
    return joined


def _add(joined: FieldSet, fields: FieldSet) -> None:
    """Adds a set to one that is ours to change, down to its last node."""
    for step, node in fields.items():
        known = joined.get(step)
        if known is None:
            joined[step] = known = {}
        elif is_member(known) is not is_member(node):
            known[SELF] = {}
        _add(known, node)


def difference(left: FieldSet, right: FieldSet) -> FieldSet:
    """What is in the first set and not in the second. Paths below one that is taken away stay."""
    return _combine(left, right, keep_unmatched=True)


def intersection(left: FieldSet, right: FieldSet) -> FieldSet:
    """What is in both sets."""
    return _combine(left, right, keep_unmatched=False)


def without_subtrees(fields: FieldSet, roots: FieldSet) -> FieldSet:
    """The set without the members of `roots` and everything below them."""
    kept: FieldSet = {}
    for step, node in fields.items():
        root = roots.get(step)
        if root is None:
            kept[step] = node
        elif not is_member(root):
            left = without_subtrees(node, root)
            if is_member(node):
                kept[step] = LEAF if len(left) <= 1 else left
            elif left:
                kept[step] = left
    return kept


def paths(fields: FieldSet) -> Iterator[str]:
    """Every path of a set as messages show it, such as `.spec.containers[name="a"].image`."""
    for step, node in fields.items():
        if step == SELF:
            continue
        prefix = show(step)
        if is_member(node):
            yield prefix
        for rest in paths(node):
            yield prefix + rest


def show(step: str) -> str:
    """A step as messages show it."""
    kind, text = step[:2], step[2:]
    if kind == "f:":
        return f".{text}"
    if kind == "v:":
        return f"[={text}]"
    keys = ",".join(f"{name}={_text(value)}" for name, value in msgspec.json.decode(text).items())
    return f"[{keys}]"


def key_step(keys: dict[str, Any]) -> str:
    """The step to an element of a list with these keys."""
    return "k:" + _text(dict(sorted(keys.items())))


def value_step(value: Any) -> str:
    """The step to an element of a list that is a set."""
    return "v:" + _text(value)


def shared(fields: FieldSet) -> FieldSet:
    """An equal set that others have, too: objects made from one template have the same few sets, in memory once.

    In order, as Kubernetes writes them: some compare the text.
    """
    return _shared(_in_order.encode(fields))


@remember_texts(4096, longest=4096)
def _shared(encoded: bytes) -> FieldSet:
    return msgspec.json.decode(encoded, type=dict[str, Any])


def read(tree: Any) -> FieldSet:
    """A set from a tree that somebody else wrote: what the same paths look like when written here.

    Raises FieldSetError. Steps of an unknown kind are left out: a later version may know what they are.
    """
    if tree is None:
        return {}
    fields: FieldSet = {}
    for step, below in _members(tree):
        known = _read_step(step)
        if known is not None:
            fields[known] = _read_node(below)
    return fields


def _read_node(tree: Any) -> FieldSet:
    node = read(tree)
    return {SELF: LEAF, **node} if node and SELF in tree else node


def _members(tree: Any) -> Iterator[tuple[str, Any]]:
    if not isinstance(tree, dict):
        raise FieldSetError(f"expected an object of fields, got {_text(tree)}")
    return ((step, below) for step, below in tree.items() if step != SELF)


def _read_step(step: str) -> str | None:
    kind, text = step[:2], step[2:]
    if kind == "f:":
        return step
    if kind in ("k:", "v:"):
        try:
            value = msgspec.json.decode(text)
        except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
            raise FieldSetError(f"invalid path element {step!r}: {error}") from None
        if kind == "v:":
            return value_step(value)
        if not isinstance(value, dict) or not value:
            raise FieldSetError(f"invalid path element {step!r}: expected keys with their values")
        return key_step(value)
    if len(step) < 2 or step[1] != ":":
        raise FieldSetError(f"invalid path element {step!r}: expected a kind before a colon")
    return None


def _text(value: Any) -> str:
    return msgspec.json.encode(value).decode()


def _union_of_nodes(left: FieldSet, right: FieldSet) -> FieldSet:
    if not left:
        return as_member(right)
    if not right:
        return as_member(left)
    # The step for the path itself is one like any other here: it is in the union if one side has it.
    return union(left, right)


def _combine(left: FieldSet, right: FieldSet, *, keep_unmatched: bool) -> FieldSet:
    """The difference if what `right` does not have is kept, else the intersection."""
    combined: FieldSet = {}
    for step, node in left.items():
        if step == SELF:
            continue
        other = right.get(step)
        if other is None:
            if keep_unmatched:
                combined[step] = node
            continue
        below = _combine(node, other, keep_unmatched=keep_unmatched)
        if is_member(node) and is_member(other) is not keep_unmatched:
            combined[step] = {SELF: LEAF, **below} if below else LEAF
        elif below:
            combined[step] = below
    return combined
