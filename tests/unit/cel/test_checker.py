"""Static types: overloads, literals, and the messages about what does not fit."""

from __future__ import annotations

import pytest

from dray import cel


@pytest.mark.parametrize(
    ("expression", "position", "message"),
    [
        ("optinal.of(1).value() == 1", (1, 1), "undeclared reference to 'optinal'"),
        ("deviice.driver == ''", (1, 1), "did you mean 'device'"),
        ("device.driver.startWith('a')", (1, 24), "did you mean 'startsWith'"),
        ("device.model == 'x'", (1, 7), "undefined field 'model'"),
        ("'a'.startsWith(1)", (1, 15), r"'startsWith' applied to 'string.\(int\)'"),
        ("size(1, 2) == 1", (1, 5), r"'size' applied to '\(int, int\)'"),
        ("1 < 2 < 3", (1, 7), r"'_<_' applied to '\(bool, int\)'"),
        ("1 - 1u == 0", (1, 3), r"applied to '\(int, uint\)'"),
        ("!'a'", (1, 1), r"'!_' applied to '\(string\)'"),
        ("true ? 1 : 1u", (1, 6), r"applied to '\(bool, int, uint\)'"),
        ("1 && true", (1, 1), "expected type 'bool' but found 'int'"),
        ("quantity('1').sign() == 1", (1, 19), r"called as sign\(x\)"),
        ("device.driver.all(c, true)", (1, 7), "cannot be range of a comprehension"),
        ("device.driver.foo == 1", (1, 14), "does not support field selection"),
        ("[1, 'a'].size() == 2", (1, 5), "expected type 'int' but found 'string'"),
        ("{'a': 1, 2: 3}.size() == 2", (1, 10), "expected type 'string' but found 'int'"),
        ("[1, dyn(2)].size() == 2", (1, 8), "expected type 'int' but found 'dyn'"),
        ("[?1] == [1]", (1, 3), "optional_type"),
        ("duration('bad') == duration('1s')", (1, 10), "invalid duration argument"),
        ("timestamp(253402300800) > timestamp(0)", (1, 11), "invalid timestamp argument"),
        ("'a'.matches('[')", (1, 13), "invalid matches argument"),
        ("'a'.find('[') == ''", (1, 9), "invalid regular expression"),
        ("'%d'.format(['a']) == ''", (1, 14), "clause %d"),
        ("'%s %s'.format(['a']) == ''", (1, 15), "needs more"),
        ("'%s'.format(['a', 'b']) == ''", (1, 12), "too many arguments"),
        ("'%z'.format(['a']) == ''", (1, 12), "unrecognized"),
        ("double('x') > 1.0", (1, 7), "type conversion error"),
        ("[1].existsOne(x, true)", (1, 14), "undeclared reference to 'existsOne'"),
        ("Foo{a: 1} == 1", (1, 4), "undeclared reference to 'Foo'"),
        ("int == 1", (1, 5), r"applied to '\(type\(int\), int\)'"),
        ("device", (1, 1), "must evaluate to bool"),
    ],
)
def test_errors(expression: str, position: tuple[int, int], message: str) -> None:
    with pytest.raises(cel.CompileError, match=message) as failure:
        cel.compile(expression)
    assert (failure.value.line, failure.value.column) == position


def test_all_errors_are_reported_in_the_order_of_the_text() -> None:
    with pytest.raises(cel.CompileError) as failure:
        cel.compile("foo(1) || bar == 1 || device.x")
    assert [(issue.column, issue.message.split("'")[1]) for issue in failure.value.issues] == [
        (4, "foo"),
        (11, "bar"),
        (29, "x"),
    ]


@pytest.mark.parametrize(
    "expression",
    [
        "type(1) == int && type(net.IP) == type && type([1]) == list && type(optional.of(1)) == optional_type",
        "1 < 2.5 && 2u > 1 && 1.0 <= 1u",
        "dyn(1) == dyn('a') || true",
        "[] == [1] || {} == {'a': 1} || true",
        "cel.bind(device, 1, device == 1 && .device.driver == 'd')",
        "['%s', '%d'].size() == 2 && '%s %d'.format(['a', 1]) == 'a 1'",
    ],
)
def test_accepted(expression: str) -> None:
    assert cel.compile(expression, mode="stored").evaluate({}, driver="d")
