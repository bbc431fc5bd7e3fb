"""Calls that take longer than they cost: they are bounded, and nothing for those whom others wait for."""

from __future__ import annotations

import pytest

from dray import cel
from dray.cel.environment import Environment
from dray.cel.program import compile_program, uncounted_of
from dray.cel.types import BOOL, INT, STRING, list_of
from dray.cel.values import ConcatList
from dray.cel.view import device_view

LOOKS_TO_THE_END = "a*b|a"
DOUBLE = compile_program("list + list", Environment({"list": list_of(INT)}))
DEVICE = device_view({"name": "gpu-0"}, "gpu.example.com")


@pytest.mark.parametrize(("letters", "is_bounded"), [(1_000, False), (100_000, True)])
def test_what_find_all_looks_at_is_bounded(letters: int, is_bounded: bool) -> None:
    search = compile_program(f"text.findAll('{LOOKS_TO_THE_END}').size() > 0", Environment({"text": STRING}), BOOL)
    if is_bounded:
        with pytest.raises(cel.EvaluationError, match="findAll"):
            search.evaluate(("a" * letters,))
    else:
        assert search.evaluate(("a" * letters,))[0] is True


def test_a_long_text_with_few_matches_is_searched() -> None:
    search = compile_program("text.findAll('b').size() == 2", Environment({"text": STRING}), BOOL)
    assert search.evaluate(("a" * 1_000_000 + "bab",))[0] is True


def test_whom_others_wait_for_leaves_find_all_to_a_thread() -> None:
    search = compile_program("text.findAll('a').size() > 0", Environment({"text": STRING}), BOOL)
    with pytest.raises(cel.Postponed):
        search.evaluate(("a",), cel.NOW)
    selector = cel.compile(f"'a'.findAll('{LOOKS_TO_THE_END}').size() == 1")
    with pytest.raises(cel.Postponed):
        selector.matches_now(DEVICE)
    selector.outcomes.put(DEVICE, selector.work_out(DEVICE, lambda: 1_000))
    assert selector.matches_now(DEVICE)


@pytest.mark.parametrize("use", ["7 in {}", "{} == {}", "[{}] == [{}]", "{}.isSorted()", "{}.max() > 0"])
def test_lists_that_are_added_to_themselves_are_left_to_a_thread(use: str) -> None:
    binds = "".join(f"cel.bind(x{n + 1}, x{n} + x{n}, " for n in range(1, 18))
    selector = cel.compile(f"cel.bind(x1, [1, 2], {binds}{use.replace('{}', 'x18')}{')' * 18}")
    assert not selector.is_light
    with pytest.raises(cel.Postponed):
        selector.matches_now(DEVICE)


@pytest.mark.parametrize(
    ("first", "step", "use"),
    [
        ("[1, 2]", "[x, x]", "{}.flatten(40).size() > 0"),
        ("[[1]]", "[x.flatten(), x.flatten()]", "{}.size() > 0"),
        ("[1, 2]", "[x, x]", "'%s'.format([{}]).size() > 0"),
        ("{'a': 1}", "{'a': x, 'b': x}", "'%s'.format([{}]).size() > 0"),
        ("'some text'", "'%s%s'.format([x, x])", "{}.size() > 0"),
    ],
)
def test_what_is_in_itself_again_and_again_is_looked_at_in_a_thread(first: str, step: str, use: str) -> None:
    """Twenty-four lists, each twice in the next, are sixteen million to whoever goes through them."""
    binds = "".join(f"cel.bind(x{n + 1}, {step.replace('x', f'x{n}')}, " for n in range(1, 24))
    selector = cel.compile(f"cel.bind(x1, {first}, {binds}{use.replace('{}', 'x24')}{')' * 24}")
    assert selector.estimated_cost < 2_000
    with pytest.raises(cel.Postponed):
        selector.matches_now(DEVICE)
    assert not selector.is_light


@pytest.mark.parametrize(
    "value",
    ["text", "[text, text]", "{'a': text}", "{'a': [text], 'b': [text]}", "[[], [text]]"],
)
def test_what_is_written_out_is_bounded(value: str) -> None:
    """A selector of two thousand letters wrote for more than ten minutes, and nobody could stop it."""
    written = compile_program(f"'%s %s'.format([{value}, 1]).size() > 0", Environment({"text": STRING}), BOOL)
    assert written.evaluate(("x" * 10_000,))[0] is True
    with pytest.raises(cel.EvaluationError, match="cost"):
        written.evaluate(("x" * 101_000,))


def test_a_map_of_many_texts_is_bounded_as_a_whole() -> None:
    entries = ", ".join(f"'{number}': text" for number in range(100))
    written = compile_program(f"'%s'.format([{{{entries}}}]).size() > 0", Environment({"text": STRING}), BOOL)
    with pytest.raises(cel.EvaluationError, match="cost"):
        written.evaluate(("x" * 2_000,))


def test_whom_others_wait_for_leaves_lists_in_lists_to_a_thread() -> None:
    flat = compile_program("lists.flatten(9).size() > 0", Environment({"lists": list_of(list_of(INT))}), BOOL)
    assert flat.evaluate(([[1]],))[0] is True
    with pytest.raises(cel.Postponed):
        flat.evaluate(([[1]],), cel.NOW)


@pytest.mark.parametrize("call", ["text.findAll('a').size()", "lists.flatten(9).size()"])
def test_what_takes_longer_is_not_tried_at_a_look(call: str) -> None:
    """Whoever asks for a function without costs has others waiting, and nothing could stop it."""
    environment = Environment({"text": STRING, "lists": list_of(list_of(INT))})
    assert uncounted_of(compile_program("text.size() > 0", environment, BOOL), {}) is not None
    assert uncounted_of(compile_program(f"{call} > 0", environment, BOOL), {}) is None


def test_a_variable_that_is_a_long_list_is_left_to_a_thread() -> None:
    assert DOUBLE.evaluate((ConcatList([1] * 500, [2] * 500),), cel.NOW)[0].size == 2_000
    with pytest.raises(cel.Postponed):
        DOUBLE.evaluate((ConcatList([1] * 1_000, [2] * 500),), cel.NOW)


@pytest.mark.parametrize(("use", "last"), [("left == right", 1), ("left[0] in right", 2)])
def test_lists_that_hold_long_ones_are_not_compared_without_end(use: str, last: int) -> None:
    """What they cost is counted by their own few elements."""
    lists = list_of(list_of(INT))
    compared = compile_program(use, Environment({"left": lists, "right": lists}), BOOL)
    left, right = ([[*[1] * 299_999, end] for _ in range(5)] for end in (1, last))
    with pytest.raises(cel.EvaluationError, match="cost"):
        compared.evaluate((left, right))


def test_ordinary_selectors_are_light() -> None:
    for expression in (
        'device.attributes["gpu.example.com"].all(name, name.size() > 0)',
        'device.driver == "gpu.example.com"',
        'cel.bind(d, device.attributes["gpu.example.com"], d.model == "H100" && d.preallocate)',
        'device.attributes["gpu.example.com"].driverVersion.isGreaterThan(semver("535.0.0"))',
        'device.attributes["gpu.example.com"].model in ["H100", "H200"]',
    ):
        assert cel.compile(expression).is_light
