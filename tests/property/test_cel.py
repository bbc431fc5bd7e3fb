"""Nothing but CompileError and EvaluationError comes out of selectors, and both ways to evaluate agree."""

from __future__ import annotations

import contextlib
import json
import lzma
from pathlib import Path
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from dray import cel
from dray.cel import codegen
from dray.cel.allowance import endless
from dray.cel.checker import check
from dray.cel.evaluators import Steps
from dray.cel.parser import parse
from dray.cel.planner import plan
from dray.cel.validators import validate

CASES = Path(__file__).parent.parent / "conformance" / "data" / "cel.jsonl.xz"
EXPRESSIONS = sorted(
    {
        case["expression"]
        for case in map(json.loads, lzma.decompress(CASES.read_bytes()).decode().splitlines())
        if len(case["expression"]) < 500
    }
)
TOKENS = [
    "device", "driver", "attributes", "capacity", "x", "y", "all", "exists", "map", "filter", "size", "has",
    "cel.bind", "matches", "quantity", "semver", "orValue", "optional.of", "optional.none", "lists.range", "`a`",
    ".", "[", "]", "(", ")", "{", "}", ",", ":", "?", ".?", "[?", "&&", "||", "!", "==", "!=", "<", ">=", "in",
    "+", "-", "*", "/", "%", "1", "-1", "2u", "1.5", "1e3", "0x1F", "true", "false", "null",
    '"d"', '"a"', '""', "'x'", "b'y'", "r'\\d'", "\\", "//", "\n", "\x00", "é",
]  # fmt: skip

VIEWS = [
    cel.device_view(device, "d")
    for device in (
        {},
        {
            "attributes": {
                "s": {"string": "H100"},
                "i": {"int": 3},
                "b": {"bool": True},
                "v": {"version": "1.2.3"},
                "l": {"ints": [1, 3]},
                "e": {"strings": []},
            },
            "capacity": {"q": {"value": "80Gi"}},
        },
    )
]


@st.composite
def mutations(draw: st.DrawFn) -> str:
    """A real expression with a few pieces replaced."""
    text: str = draw(st.sampled_from(EXPRESSIONS))
    for _ in range(draw(st.integers(1, 3))):
        start = draw(st.integers(0, len(text)))
        end = draw(st.integers(start, min(len(text), start + 6)))
        text = text[:start] + draw(st.sampled_from(TOKENS) | st.text(max_size=3)) + text[end:]
    return text


_LEAVES = st.sampled_from(
    [
        *(f'device.attributes["d"].{name}' for name in ("s", "i", "b", "v", "l", "e", "nope")),
        'device.attributes["x"].y',
        'device.capacity["d"].q',
        "device.driver",
        "device.allowMultipleAllocations",
        'has(device.attributes["d"].s)',
        '"i" in device.attributes["d"]',
        'device.attributes["d"].?i.orValue(5)',
        'device.attributes["d"].?nope.orValue("none")',
        'device.attributes["d"].?s.hasValue()',
        'semver("1.2.3")',
        'quantity("80Gi")',
        '"H100"',
        '""',
        "3",
        "-1",
        "true",
        "false",
        "x",
    ]
)


def _grow(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    binary = st.sampled_from(["&&", "||", "==", "!=", "<", "<=", ">", ">=", "+"])
    method = st.sampled_from(["compareTo", "isGreaterThan", "isLessThan", "includes"])
    test = st.sampled_from(["startsWith", "endsWith", "contains", "matches"])
    macro = st.sampled_from(["all", "exists", "exists_one", "filter", "map"])
    ranges = st.sampled_from(['device.attributes["d"].l', 'device.attributes["d"].e', "[1, 3]", "lists.range(3)"])
    return st.one_of(
        st.builds("({} {} {})".format, inner, binary, inner),
        st.builds("!({})".format, inner),
        st.builds("({} ? {} : {})".format, inner, inner, inner),
        st.builds("{}.{}({})".format, inner, method, inner),
        st.builds('{}.{}("1")'.format, inner, test),
        st.builds("{}.{}(x, {})".format, ranges, macro, inner),
        st.builds("cel.bind(x, {}, {})".format, inner, inner),
        st.builds("({} in [1, 3])".format, inner),
        st.builds('({} in ["H100", "L4"])'.format, inner),
        st.builds("dyn({}).size()".format, inner),
    )


def expressions() -> st.SearchStrategy[str]:
    """Expressions of the usual shapes, of which many have the right types."""
    return st.recursive(_LEAVES, _grow, max_leaves=6)


def outcome(evaluate: Any, view: cel.DeviceView) -> tuple[Any, int]:
    """A result that can be compared: the value or the message, and the cost."""
    try:
        result: tuple[Any, int] = evaluate(view)
    except cel.EvaluationError as error:
        return error.message, error.cost
    return result


def judge(expression: str) -> None:
    try:
        selector = cel.compile(expression, mode="stored")
    except cel.CompileError as error:
        failure = error
    else:
        judge_results(selector)
        return
    assert min(failure.line, failure.column) >= 1
    assert failure.message in failure.render(expression)


def judge_results(selector: cel.Selector) -> None:
    for view in VIEWS:
        value, cost = outcome(selector.matches_with_cost, view)
        assert isinstance(value, (bool, str))
        assert cost >= 0


@settings(max_examples=150)
@given(st.text(max_size=80))
def test_any_text(expression: str) -> None:
    judge(expression)


@settings(max_examples=200)
@given(st.lists(st.sampled_from(TOKENS), max_size=25))
def test_any_tokens(tokens: list[str]) -> None:
    judge(" ".join(tokens))


@settings(max_examples=200)
@given(mutations())
def test_almost_valid_expressions(expression: str) -> None:
    judge(expression)


@settings(max_examples=250)
@given(expressions())
def test_generated_functions_agree_with_the_steps(expression: str) -> None:
    try:
        selector = cel.compile(expression, mode="stored")
    except cel.CompileError:
        return
    parsed = parse(expression)
    check(parsed.root, expression)
    validate(parsed.root, expression)
    by_steps = Steps(plan(parsed.root, expression), is_deep=True).all
    code = codegen.generate(parsed.root)
    if code is None:
        return
    whole = code.whole(by_steps)
    for view in VIEWS:
        expected = outcome(by_steps, view)
        assert outcome(code.light(by_steps, by_steps), view) == expected
        assert outcome(lambda view: whole(view, endless), view) == expected
        with contextlib.suppress(cel.Postponed):
            assert outcome(selector._now, view) == expected


@settings(max_examples=150)
@given(expressions(), st.sampled_from(VIEWS))
def test_only_what_is_read_matters(expression: str, view: cel.DeviceView) -> None:
    try:
        selector = cel.compile(expression, mode="stored")
    except cel.CompileError:
        return
    reads = selector.reads
    if reads.everything:
        return

    def project(kind: str, domains: dict[str, dict[str, Any]]) -> dict[str, dict[str, Any]]:
        return {
            domain: {name: value for name, value in entries.items() if (kind, domain, name) in reads.values}
            for domain, entries in domains.items()
        }

    projection = cel.DeviceView(
        view.driver if reads.driver else "",
        project("attribute", view.attributes),
        project("capacity", view.capacity),
        allow_multiple_allocations=reads.allow_multiple_allocations and view.allow_multiple_allocations,
    )
    assert outcome(selector.matches_with_cost, projection) == outcome(selector.matches_with_cost, view)
