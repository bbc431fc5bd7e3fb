"""Expressions that take long within the cost limit: they are noticed, interrupted, and remembered."""

from __future__ import annotations

import itertools
import sys
import threading

import pytest

from dray import cel
from dray.cel.backlog import Backlog

VIEW = cel.device_view({"name": "d", "attributes": {"i": {"int": 1}, "l": {"ints": [1, 2, 3]}}}, "d")
OTHER = cel.device_view({"name": "e", "attributes": {"i": {"int": 2}}}, "d")
FREE = "&&".join(["true"] * 200)
HEAVY = {
    "free conditions in loops": f"lists.range(20).all(x, lists.range(20).all(y, {FREE}))",
    "rounds of a generated function": "lists.range(120).all(x, lists.range(120).all(y, true))",
    "free rounds": "lists.range(120).exists_one(x, lists.range(120).exists_one(y, false)) || true",
    "a long list": "lists.range(200000).size() == 200000",
    "loops by steps": "lists.range(100).all(x, lists.range(100).map(y, x + y).size() == 100)",
    "reading a value": 'lists.range(120).all(x, lists.range(120).all(y, device.attributes["d"].i == 1))',
}


def fresh(expression: str) -> cel.Selector:
    """The selector of an expression that nobody evaluated before."""
    return cel.compile(f"{expression} // {next(_numbers)}")


_numbers = itertools.count()


def _work_out(selector: cel.Selector, view: cel.DeviceView) -> None:
    selector.outcomes.put(view, selector.work_out(view, lambda: 10_000))


@pytest.mark.parametrize("expression", HEAVY.values(), ids=HEAVY)
def test_what_takes_long_is_postponed_and_remembered_when_it_is_worked_out(expression: str) -> None:
    selector = fresh(expression)
    for _ in range(2):
        with pytest.raises(cel.Postponed):
            selector.matches_now(VIEW)
    _work_out(selector, VIEW)
    assert selector.matches_now(VIEW) is selector.matches(VIEW) is True


@pytest.mark.parametrize("expression", HEAVY.values(), ids=HEAVY)
def test_an_evaluation_is_interrupted_where_it_asks_for_more(expression: str) -> None:
    selector = fresh(expression)
    asked = 0

    def more() -> int:
        nonlocal asked
        asked += 1
        if asked == 3:
            raise cel.OutOfTime
        return 1

    if "size() == 200000" in expression:
        assert selector.work_out(VIEW, more) is True  # one call cannot be interrupted, and does not take long
        return
    with pytest.raises(cel.OutOfTime):
        selector.work_out(VIEW, more)
    assert asked == 3


def test_what_ran_out_of_time_says_so_until_it_is_forgotten() -> None:
    selector = fresh(HEAVY["reading a value"])
    with pytest.raises(cel.Postponed):
        selector.matches_now(VIEW)
    selector.outcomes.put(VIEW, cel.OutOfTime())
    with pytest.raises(cel.OutOfTime):
        selector.matches_now(VIEW)
    selector.outcomes.forget_given_up()
    with pytest.raises(cel.Postponed):
        selector.matches_now(VIEW)


def test_outcomes_hold_for_devices_that_look_the_same() -> None:
    selector = fresh(HEAVY["reading a value"])
    with pytest.raises(cel.Postponed):
        selector.matches_now(VIEW)
    _work_out(selector, VIEW)
    alike = cel.device_view({"name": "x", "attributes": {"i": {"int": 1}, "other": {"string": "y"}}}, "d")
    assert selector.matches_now(alike) is True
    for different in (OTHER, cel.device_view({"name": "x", "attributes": {"i": {"bool": True}}}, "d")):
        with pytest.raises(cel.Postponed):
            selector.matches_now(different)


def test_errors_of_what_takes_long_are_remembered_too() -> None:
    selector = fresh(f'lists.range(20).all(x, lists.range(20).all(y, {FREE})) && device.attributes["d"].missing == 1')
    with pytest.raises(cel.Postponed):
        selector.matches_now(VIEW)
    _work_out(selector, VIEW)
    with pytest.raises(cel.EvaluationError, match="no such key"):
        selector.matches_now(VIEW)


@pytest.mark.parametrize("levels", [10, 18, 19, 20, 21, 25, 60])
def test_loops_may_be_nested_as_deep_as_the_language_allows(levels: int) -> None:
    text = "".join(f"[1].all(x{n}, " for n in range(levels)) + "true" + ")" * levels
    assert cel.compile(text).matches_with_cost(VIEW) == (True, 4 * levels)


SHARED = {
    "equal lists": "{0} == {0}",
    "unequal lists": "{0} != {0} || true",
    "as text": "'%s'.format([{0}]).size() >= 0",
    "in a list": "{0} in [{0}]",
    "made flat": "{0}.flatten(100).size() >= 0",
    "found": "[{0}].indexOf({0}) == 0",
    "distinct": "[{0}, {0}].distinct().size() == 1",
}


@pytest.mark.parametrize("use", SHARED.values(), ids=SHARED)
@pytest.mark.parametrize("start", ["[1]", "[]"])
def test_a_list_that_holds_another_twice_on_sixty_levels_is_no_problem(use: str, start: str) -> None:
    """There are 2⁶⁰ ways down, and 60 lists."""
    binds = "".join(f"cel.bind(l{n}, [l{n - 1}, l{n - 1}], " for n in range(1, 60))
    text = f"cel.bind(l0, {start}, {binds}{use.format('l59')}{')' * 60}"
    try:
        assert cel.compile(text, mode="stored").matches(VIEW) is True
    except cel.EvaluationError as error:
        assert "costs more" in error.message


def test_macros_that_copy_their_target_are_bounded() -> None:
    with pytest.raises(cel.CompileError, match="too large once its macros are expanded"):
        cel.compile('device.attributes["d"].?i' + ".optMap(v, v)" * 30 + ".hasValue()")


def test_deep_expressions_may_be_evaluated_in_several_threads_at_once() -> None:
    """The limit of recursion is one for all threads."""
    text = "(" * 200 + "lists.range(500).all(x, x >= 0)" + ")" * 200 + " || " + "!" * 101 + "true"
    selector = cel.compile(text)
    failed: list[BaseException] = []
    before = sys.getrecursionlimit()

    def evaluate() -> None:
        try:
            for _ in range(20):
                assert selector.matches(VIEW) is True
        except BaseException as error:
            failed.append(error)

    threads = [threading.Thread(target=evaluate) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failed == []
    assert sys.getrecursionlimit() == before


def test_everybody_gets_a_turn() -> None:
    backlog = Backlog()
    light, heavy = fresh('device.driver == "d"'), fresh("true")
    backlog.begin_turn("greedy", 1.0)
    for number in range(5):
        backlog.note(heavy, cel.device_view({"name": "x"}, f"d{number}"))
        backlog.note(heavy, cel.device_view({"name": "y"}, f"d{number}"))  # looks the same
    backlog.begin_turn("modest", 1.0)
    backlog.note(light, VIEW)
    assert len(backlog) == 6
    taken = [backlog.next() for _ in range(3)]
    assert [task.owner for task in taken if task is not None] == ["greedy", "modest", "greedy"]
    first = taken[0]
    assert first is not None
    backlog.put_back(first)
    assert [task.tries for task in iter(backlog.next, None)] == [0, 0, 0, 1]
    backlog.done(first)
    assert len(backlog) == 5


def test_a_turn_has_an_end() -> None:
    now = 0.0
    backlog = Backlog(lambda: now)
    backlog.begin_turn("a", 0.5)
    assert not backlog.is_turn_over()
    now = 0.6
    assert backlog.is_turn_over()
    assert backlog.was_cut_short
    backlog.begin_turn("b", 0.5)
    assert not backlog.is_turn_over()
