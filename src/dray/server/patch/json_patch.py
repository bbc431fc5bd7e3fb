"""JSON patches (RFC 6902): operations on the values that JSON pointers (RFC 6901) name.

Where kube-apiserver is laxer than the RFC, so is this: `replace` of an absent member sets it, `test` takes an absent
member for null, an operation without `value` has null, and a negative index counts from the end.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

import msgspec

from dray.server.patch.errors import FailedTest, PatchError, bounded_depth

MAX_OPERATIONS = 10_000
MAX_COPIED_BYTES = 3 * 1024 * 1024
"""How much all `copy` operations of a patch may add to a document: a few of them double it again and again."""

MAX_MOVED_ELEMENTS = 100_000_000
"""How many elements all operations of a patch may push aside in lists; an insert at the start moves them all."""

_MEMBERS = ("op", "path", "from", "value")
_INDEX = re.compile(r"-?(?:0|[1-9][0-9]{0,9})\Z")

Operation: TypeAlias = Mapping[str, Any]


def apply(document: Any, operations: Any) -> Any:
    """The document after all operations, in order.

    Raises PatchError: 400 if `operations` is no list of operations, 413 if there are too many, 422 if one is unknown,
    names a path that is not there, or tests a value that differs.
    """
    patch = _read(operations)
    draft = _Draft(document)
    with bounded_depth():
        for operation in patch:
            carry_out = _OPERATIONS.get(operation.get("op") or "unknown")
            if carry_out is None:
                raise PatchError(422, f"Unexpected kind: {operation.get('op') or 'unknown'}")
            carry_out(draft, operation)
    return draft.root


def may_grow(operations: Any) -> bool:
    """Whether a small patch of a small document may become a large one: what was copied can be copied again."""
    return isinstance(operations, list) and any(
        isinstance(operation, dict) and operation.get("op") == "copy" for operation in operations
    )


def unknown_members(operations: Any) -> list[str]:
    """Paths of members that no operation has, such as `[0].bogus`, for field validation. Takes what `apply` takes."""
    return [
        f"[{position}].{member}"
        for position, operation in enumerate(_read(operations))
        for member in operation
        if member not in _MEMBERS
    ]


def _read(operations: Any) -> list[Operation]:
    if operations is None:
        return []
    if not isinstance(operations, list):
        raise PatchError(400, "error decoding patch: a JSON patch must be a list of operations")
    if len(operations) > MAX_OPERATIONS:
        allowed = f"The allowed maximum operations in a JSON patch is {MAX_OPERATIONS}"
        raise PatchError(413, f"Request entity too large: {allowed}, got {len(operations)}")
    return [_read_operation(position, operation) for position, operation in enumerate(operations)]


def _read_operation(position: int, operation: Any) -> Operation:
    if operation is None:
        return {}
    if not isinstance(operation, dict):
        raise PatchError(400, f"error decoding patch: operation [{position}] must be an object")
    for member in ("op", "path", "from"):
        if not isinstance(operation.get(member), str | None):
            raise PatchError(400, f"error decoding patch: [{position}].{member} must be a string")
    return operation


class _Draft:
    """A document under change. Containers are copied when first changed, and only once; `_own` holds the copies."""

    def __init__(self, root: Any) -> None:
        self.root = root
        self.copied_bytes = 0
        self._moved = 0
        # By identity. Holding the containers keeps an identity from being given to another one.
        self._own: dict[int, Any] = {}

    def get(self, path: str) -> Any:
        """The value at a path; an absent member is null."""
        keys = _split(path)
        parent = self._parent(keys, path)
        if isinstance(parent, dict):
            return parent.get(keys[-1])
        return parent[_index(keys[-1], len(parent), path)]

    def add(self, path: str, value: Any) -> None:
        """Sets a member, or inserts an element."""
        keys = _split(path)
        parent = self._own_parent(keys, path)
        if isinstance(parent, dict):
            parent[keys[-1]] = value
        elif keys[-1] == "-":
            parent.append(value)
        else:
            index = _index(keys[-1], len(parent) + 1, path)
            self._move_aside(len(parent) - index)
            parent.insert(index, value)

    def replace(self, path: str, value: Any) -> None:
        """Sets a member or an element that is there; the root may only become another container."""
        if path == "":
            if not isinstance(value, dict | list):
                raise PatchError(422, "replace operation value must be object or array")
            self.root = value
            return
        keys = _split(path)
        parent = self._own_parent(keys, path)
        if isinstance(parent, dict):
            parent[keys[-1]] = value
        else:
            parent[_index(keys[-1], len(parent), path)] = value

    def remove(self, path: str) -> Any:
        """Takes a member or an element out and returns it."""
        keys = _split(path)
        parent = self._own_parent(keys, path)
        if isinstance(parent, list):
            index = _index(keys[-1], len(parent), path)
            self._move_aside(len(parent) - index)
            return parent.pop(index)
        if keys[-1] not in parent:
            raise PatchError(422, f"Unable to remove nonexistent key: {keys[-1]}: missing value")
        return parent.pop(keys[-1])

    def _move_aside(self, elements: int) -> None:
        self._moved += elements
        if self._moved > MAX_MOVED_ELEMENTS:
            raise PatchError(413, "Request entity too large: the operations of the patch move too many list elements")

    def _parent(self, keys: list[str], path: str) -> Any:
        found = self.root
        for key in keys[:-1]:
            found = _child(found, key, path)
        return _container(found, path)

    def _own_parent(self, keys: list[str], path: str) -> Any:
        """The container of a value, with everything on the way there being ours to change."""
        self.root = found = self._owned(_container(self.root, path))
        for key in keys[:-1]:
            child = self._owned(_container(_child(found, key, path), path))
            found[key if isinstance(found, dict) else _index(key, len(found), path)] = child
            found = child
        return found

    def _owned(self, container: Any) -> Any:
        if id(container) in self._own:
            return container
        copy = container.copy()
        self._own[id(copy)] = copy
        return copy


def _split(path: str) -> list[str]:
    """The keys of a pointer that names something inside the document."""
    if not path.startswith("/"):
        raise _missing(path)
    return [key.replace("~1", "/").replace("~0", "~") for key in path[1:].split("/")]


def _container(value: Any, path: str) -> Any:
    if not isinstance(value, dict | list):
        raise _missing(path)
    return value


def _child(parent: Any, key: str, path: str) -> Any:
    if isinstance(parent, dict):
        return parent.get(key)
    if isinstance(parent, list):
        return parent[_index(key, len(parent), path)]
    raise _missing(path)


def _index(key: str, length: int, path: str) -> int:
    """The position that a key names in a list of a length."""
    if not _INDEX.match(key):
        raise PatchError(422, f"value was not a proper array index: '{key}' in path: {path}")
    index = int(key)
    if not -length <= index < length:
        raise PatchError(422, f"Unable to access invalid index: {index} in path: {path}")
    return index % length


def _missing(path: str) -> PatchError:
    return PatchError(422, f'operation does not apply: doc is missing path: "{path}": missing value')


def _pointer(operation: Operation, member: str) -> str:
    pointer: str | None = operation.get(member)
    if pointer is None:
        raise PatchError(422, f"{operation['op']} operation missing {member} field: missing value")
    return pointer


def _add(draft: _Draft, operation: Operation) -> None:
    draft.add(_pointer(operation, "path"), operation.get("value"))


def _remove(draft: _Draft, operation: Operation) -> None:
    draft.remove(_pointer(operation, "path"))


def _replace(draft: _Draft, operation: Operation) -> None:
    draft.replace(_pointer(operation, "path"), operation.get("value"))


def _move(draft: _Draft, operation: Operation) -> None:
    value = draft.remove(_pointer(operation, "from"))
    draft.add(_pointer(operation, "path"), value)


def _copy(draft: _Draft, operation: Operation) -> None:
    encoded = msgspec.json.encode(draft.get(_pointer(operation, "from")))
    draft.copied_bytes += len(encoded)
    if draft.copied_bytes > MAX_COPIED_BYTES:
        raise PatchError(
            422,
            f"Unable to complete the copy, the accumulated size increase of copy is {draft.copied_bytes}, "
            f"exceeding the limit {MAX_COPIED_BYTES}",
        )
    draft.add(_pointer(operation, "path"), msgspec.json.decode(encoded))


def _test(draft: _Draft, operation: Operation) -> None:
    path = _pointer(operation, "path")
    found = draft.root if path == "" else draft.get(path)
    if not equal(found, operation.get("value")):
        raise FailedTest(f"testing value {path} failed: test failed")


_OPERATIONS: dict[str, Callable[[_Draft, Operation], None]] = {
    "add": _add,
    "remove": _remove,
    "replace": _replace,
    "move": _move,
    "copy": _copy,
    "test": _test,
}


def equal(left: Any, right: Any) -> bool:
    """Whether two JSON values are the same. Numbers compare by value, and true is not 1."""
    if isinstance(left, dict):
        return isinstance(right, dict) and left.keys() == right.keys() and all(equal(left[k], right[k]) for k in left)
    if isinstance(left, list):
        return isinstance(right, list) and len(left) == len(right) and all(map(equal, left, right))
    return isinstance(left, bool) == isinstance(right, bool) and bool(left == right)
