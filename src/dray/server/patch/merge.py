"""Putting what is applied into an object, and taking fields out of it again."""

from __future__ import annotations

from typing import Any

from dray.server.patch import fields
from dray.server.patch.fields import FieldSet
from dray.server.patch.shape import Elements, Keyed, Object, Shape


def merge(shape: Shape, live: Any, applied: Any) -> Any:
    """The live value with the applied one put in. Both are there; Raises ElementError.

    Null where there are parts is nothing that is applied: what others have there stays.
    """
    if applied is None and isinstance(shape, Object | Elements):
        return live
    if isinstance(shape, Object) and isinstance(live, dict) and isinstance(applied, dict):
        merged = dict(live)
        for name, value in applied.items():
            merged[name] = merge(shape.field(name)[1], live[name], value) if name in live else value
        return merged
    if isinstance(shape, Elements) and isinstance(live, list) and isinstance(applied, list):
        return _merge_elements(shape, live, applied)
    return applied


def _merge_elements(shape: Elements, live: list[Any], applied: list[Any]) -> list[Any]:
    """Elements that are in both lists follow the order of the applied one.

    What only the live list has keeps its place relative to them, and goes before what only the applied list has:

        live  [a x b]  applied [b n a]  →  [x b n a]
    """
    live_steps = [shape.step(element) for element in live]
    applied_by_step = {shape.step(element): element for element in applied}
    live_by_step = _told_apart(live_steps, live)
    merged: list[Any] = []
    position = 0
    shared = [step for step in applied_by_step if step in live_by_step]
    passed = 0
    for step, element in applied_by_step.items():
        awaited = shared[passed] if passed < len(shared) else None
        while position < len(live) and live_steps[position] != awaited:
            if live_steps[position] not in applied_by_step:
                merged.append(live[position])
            position += 1
        if step == awaited:
            passed += 1
            position += 1
        known = live_by_step.get(step)
        merged.append(element if known is None else merge(shape.item, known, element))
    merged += [
        rest for step, rest in zip(live_steps[position:], live[position:], strict=True) if step not in applied_by_step
    ]
    return merged


def _told_apart(steps: list[str], elements: list[Any]) -> dict[str, Any]:
    """Elements by step; where several have one step, none of them counts."""
    found: dict[str, Any] = {}
    for step, element in zip(steps, elements, strict=True):
        found[step] = None if step in found else element
    return found


def remove(shape: Shape, value: Any, unwanted: FieldSet) -> Any:
    """The value without the fields of a set. An object or a list that has nothing left stays: somebody wants it."""
    if isinstance(shape, Object) and isinstance(value, dict):
        return _remove_fields(shape, value, unwanted)
    if isinstance(shape, Elements) and isinstance(value, list):
        return _remove_elements(shape, value, unwanted)
    return value


def _remove_fields(shape: Object, value: dict[str, Any], unwanted: FieldSet) -> dict[str, Any]:
    kept: dict[str, Any] = {}
    for name, part in value.items():
        step, part_shape = shape.field(name)
        node = unwanted.get(step)
        if node is None:
            kept[name] = part
        elif not fields.is_member(node):
            kept[name] = remove(part_shape, part, node)
    return kept


def _remove_elements(shape: Elements, value: list[Any], unwanted: FieldSet) -> list[Any]:
    kept = []
    for element in value:
        node = unwanted.get(shape.step(element))
        if node is None:
            kept.append(element)
        elif not fields.is_member(node):
            kept.append(remove(shape.item, element, _without_keys(shape, node)))
    return kept


def _without_keys(shape: Elements, node: FieldSet) -> FieldSet:
    """An element that stays keeps what tells it apart."""
    if not isinstance(shape, Keyed):
        return node
    return {step: below for step, below in node.items() if step[2:] not in shape.keys}
