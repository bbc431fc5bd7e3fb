"""Lists that merge in strategic merge patches: elements told apart by a key or, scalars, by themselves."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any, TypeAlias

import msgspec

from dray.server.patch.errors import PatchError

PATCH = "$patch"
RETAIN_KEYS = "$retainKeys"
DELETE_FROM = "$deleteFromPrimitiveList"
SET_ORDER = "$setElementOrder"

MAX_TIMES = 50
"""How often a list in a patch may name one element. Each time the element is merged as a whole, however large."""

LONGEST_SHOWN = 500
"""So many letters of a value are in a message, whatever its sender put there: it goes to answers, logs and audits."""

MergeElements: TypeAlias = Callable[[dict[str, Any], dict[str, Any]], dict[str, Any]]


def merge(original: list[Any], patch: list[Any], merge_key: str, merge_elements: MergeElements) -> list[Any]:
    """Both lists as one: in the order of the patch, what only the original has in its place between."""
    if not _are_objects(original, patch):
        merged = list({_identity(element): element for element in original + patch}.values())
        return in_order(merged, patch, original, "")
    if not merge_key:
        raise PatchError(422, "cannot merge lists without merge key")
    kept, given = _carry_out_directives(original, patch, merge_key)
    merged = list(kept)
    positions = _positions(kept, merge_key)
    times: Counter[int] = Counter()
    for element in given:
        position = positions.get(_key(element, merge_key))
        if position is None:
            merged.append(plain(element))
            continue
        times[position] += 1
        if times[position] > MAX_TIMES:
            shown = _show(element[merge_key])
            raise PatchError(400, f"the patch names the element {merge_key}={shown} more than {MAX_TIMES} times")
        merged[position] = merge_elements(merged[position], element)
    return in_order(merged, given, kept, merge_key)


def without(elements: list[Any], unwanted: list[Any]) -> list[Any]:
    """The elements that are not in the other list."""
    gone = {_identity(element) for element in unwanted}
    return [element for element in elements if _identity(element) not in gone]


def in_order(elements: list[Any], order: list[Any], original: list[Any], merge_key: str) -> list[Any]:
    """The elements that are in `order` in that order, and the others where they were in the original among them."""
    rank, place = _positions(order, merge_key), _positions(original, merge_key)
    keyed = [(_key(element, merge_key), element) for element in elements]
    listed = sorted((pair for pair in keyed if pair[0] in rank), key=lambda pair: rank[pair[0]])
    others = [pair for pair in keyed if pair[0] not in rank]
    result = []
    position = 0
    for key, element in listed:
        # An element that the original does not have says nothing of where the others are to go: it goes first.
        while position < len(others) and key in place and place.get(others[position][0], len(place)) < place[key]:
            result.append(others[position][1])
            position += 1
        result.append(element)
    return result + [element for _, element in others[position:]]


def check_order(patch: list[Any], order: list[Any], merge_key: str) -> None:
    """Raises PatchError unless the elements of a patch are all in an order, and in that order."""
    given = [element for element in patch if not (isinstance(element, dict) and PATCH in element)]
    if not order or not given:
        return
    remaining = iter([_key(element, merge_key) for element in order])
    if not all(_key(element, merge_key) in remaining for element in given):
        raise PatchError(
            422, f"The order in patch list:\n{_show(patch)}\n doesn't match $setElementOrder list:\n{_show(order)}\n"
        )


def is_directive(name: str) -> bool:
    """Whether what looks like a field is none. Free-form objects may well have names such as `$schema`."""
    return name.startswith("$") and (name in (PATCH, RETAIN_KEYS) or name.startswith((DELETE_FROM, SET_ORDER)))


def plain(value: Any) -> Any:
    """A value of a patch as it is where there was none: without nulls and directives in its objects."""
    if isinstance(value, dict):
        return {
            name: plain(part)
            for name, part in value.items()
            if part is not None and not is_directive(name) and not (isinstance(part, dict) and PATCH in part)
        }
    if isinstance(value, list):
        return [plain(part) for part in value if not (isinstance(part, dict) and PATCH in part)]
    return value


def bad_directive(patch: dict[str, Any]) -> PatchError:
    """The failure of a patch whose `$patch` is unknown."""
    return PatchError(422, f"unknown patch type: {_show(patch[PATCH])} in map: {_show(patch)}")


def _are_objects(*lists: list[Any]) -> bool:
    """Whether the elements are objects; all of them must be of one kind."""
    elements = [element for elements in lists for element in elements]
    if any(isinstance(element, list) for element in elements):
        raise PatchError(422, "lists of lists are not supported")
    objects = sum(isinstance(element, dict) for element in elements)
    if objects not in (0, len(elements)):
        raise PatchError(422, f"list element types are not identical: {_show(list(lists))}")
    return objects > 0


def _carry_out_directives(
    original: list[Any], patch: list[Any], merge_key: str
) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """The original without what is deleted or replaced, and the patch without directives."""
    given, deleted, replaced = [], set(), False
    for element in patch:
        directive = element.get(PATCH)
        if PATCH not in element:
            given.append(element)
        elif directive == "delete":
            deleted.add(_key(element, merge_key))
        elif directive == "replace":
            replaced = True
        elif directive == "merge":
            raise PatchError(422, "merging lists cannot yet be specified in the patch")
        else:
            raise bad_directive(element)
    if replaced:
        return [plain(element) for element in given], []
    return [element for element in original if not deleted or _key(element, merge_key) not in deleted], given


def _positions(elements: list[Any], merge_key: str) -> dict[Any, int]:
    """The first position of each key."""
    found: dict[Any, int] = {}
    for position, element in enumerate(elements):
        found.setdefault(_key(element, merge_key), position)
    return found


def _key(element: Any, merge_key: str) -> Any:
    """What tells an element apart."""
    if not merge_key:
        return _identity(element)
    if not isinstance(element, dict):
        raise PatchError(422, f"expected a map with the merge key {merge_key}, but received {_show(element)}")
    if merge_key not in element:
        raise PatchError(422, f"map: {_show(element)} does not contain declared merge key: {merge_key}")
    return _identity(element[merge_key])


def _identity(value: Any) -> Any:
    """A value that can be looked up, whatever somebody put there."""
    return msgspec.json.encode(value) if isinstance(value, dict | list | bool) else value


def _show(value: Any) -> str:
    """A value as kube-apiserver shows it in messages, or its beginning."""
    shown = ""
    for part in _parts(value):
        shown += part
        if len(shown) > LONGEST_SHOWN:
            return f"{shown[:LONGEST_SHOWN]}…"
    return shown


def _parts(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        for number, name in enumerate(sorted(value)):
            yield f"{' ' if number else 'map['}{name}:"
            yield from _parts(value[name])
        yield "]" if value else "map[]"
    elif isinstance(value, list):
        for number, element in enumerate(value):
            yield " " if number else "["
            yield from _parts(element)
        yield "]" if value else "[]"
    elif isinstance(value, bool):
        yield "true" if value else "false"
    else:
        yield "<nil>" if value is None else str(value)
