"""Syntax: what is accepted, and where and how errors are reported."""

from __future__ import annotations

import pytest

from dray import cel
from dray.cel.lexer import tokenize


def kinds(text: str) -> list[str]:
    return [token.kind for token in tokenize(text)][:-1]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1e", ["int", "identifier"]),
        ("0x", ["int", "identifier"]),
        ("1u2", ["uint", "int"]),
        ("1.5e-3 .5 0xFFu", ["float", "float", "uint"]),
        ("r'\\n' b\"x\" bR'y'", ["string", "bytes", "bytes"]),
        ('""""a"b"""', ["string"]),
        ("a // comment\n&& b", ["identifier", "&&", "identifier"]),
        ("a.`b-c`", ["identifier", ".", "escaped"]),
        ("inside in", ["identifier", "in"]),
    ],
)
def test_the_longest_token_wins(text: str, expected: list[str]) -> None:
    assert kinds(text) == expected


@pytest.mark.parametrize(
    "expression",
    [
        "'a' == \"a\" && '''a''' == \"\"\"a\"\"\" && r'\\a' == '\\\\a'",
        "'\\x41\\u0042\\U00000043\\104' == 'ABCD'",
        "b'\\x41\\377' == b'A\\xff' && b'é'.size() == 2",
        "0x10 == 16 && 0x10u == 16u && -0x10 == -16 && 1e3 == 1000.0",
        "-9223372036854775808 < 9223372036854775807",
        "--1 == 1 && !!true && 1 - -1 == 2",
        "1 + 2 * 3 == 7 && (1 + 2) * 3 == 9 && 7 - 2 - 1 == 4 && 8 / 4 / 2 == 1",
        "true || false && false",
        "false ? false : true ? true : false",
        "[1, 2,] == [1, 2] && [,] == [] && {'a': 1,} == {'a': 1}",
        "[?optional.of(1), ?optional.none()] == [1] && {?'a': optional.none()} == {}",
        "{'a': 1}.?a.orValue(2) == 1 && {'a': 1}[?'b'].orValue(2) == 2",
        "device.`driver` == .device.driver",
        "'a\\\nb' != '' || true".replace("\\\n", ""),
    ],
)
def test_syntax_is_accepted_and_means_what_it_should(expression: str) -> None:
    assert cel.compile(expression).evaluate({}, driver="d")


@pytest.mark.parametrize(
    ("expression", "position", "message"),
    [
        ("1 +", (1, 4), "found the end of the expression"),
        ("[12,,3][3] == 1", (1, 5), "found ','"),
        ("true and false", (1, 6), "did you mean '&&'"),
        ("a ? b", (1, 6), "expected ':'"),
        ("(1", (1, 3), r"expected '\)'"),
        ('"a\nb" == "x"', (1, 1), "unterminated string"),
        ('device.driver == "\\400"', (1, 18), "escape sequence"),
        ("a = 1", (1, 3), "use '=='"),
        ("a & b", (1, 3), "use '&&'"),
        ("true\n  && $", (2, 6), "unexpected character"),
        ("for == 1", (1, 1), "reserved word"),
        ("0xFFFFFFFFFFFFFFFF == 1", (1, 1), "does not fit a 64-bit int"),
        ("18446744073709551616u == 0u", (1, 1), "does not fit a 64-bit uint"),
        ("1e999 == 1.0", (1, 1), "does not fit a double"),
        ("has(device.attributes['d'])", (1, 22), r"invalid argument to has\(\)"),
        ("[1,2].all(x.y, true)", (1, 12), "simple name"),
        ("[1].all(i, i, true)", (1, 12), "duplicate variable name"),
        ('device.attributes[""gpu.example.com"]', (1, 21), "found 'gpu'"),
        ('["b",""a"].max() == "b"', (1, 8), "found 'a'"),
    ],
)
def test_syntax_errors_have_a_position(expression: str, position: tuple[int, int], message: str) -> None:
    with pytest.raises(cel.CompileError, match=message) as failure:
        cel.compile(expression)
    assert (failure.value.line, failure.value.column) == position


@pytest.mark.parametrize(
    "expression",
    ["(" * 10_000, "[" * 10_000, "!(" * 10_000, "a" + ".b" * 10_000, "1" + "+1" * 10_000, "-" * 10_000],
)
def test_endless_nesting_is_an_error(expression: str) -> None:
    with pytest.raises(cel.CompileError):
        cel.compile(expression, mode="stored")


@pytest.mark.parametrize(
    ("deepest", "too_deep"),
    [
        ("(" * 249 + "true" + ")" * 249, "(" * 250 + "true" + ")" * 250),
        ("+".join("1" * 250) + " > 0", "+".join("1" * 251) + " > 0"),
        ("1+(" * 124 + "1" + ")" * 124 + " > 0", "1+(" * 125 + "1" + ")" * 125 + " > 0"),
        ("true ? true : " * 249 + "true", "true ? true : " * 250 + "true"),
    ],
)
def test_nesting_is_limited_as_in_kubernetes(deepest: str, too_deep: str) -> None:
    assert cel.compile(deepest).evaluate({}, driver="d")
    with pytest.raises(cel.CompileError, match="nested too deeply"):
        cel.compile(too_deep)


def test_long_logical_chains_are_not_deep() -> None:
    assert cel.compile(" && ".join(["true"] * 1000)).evaluate({}, driver="d")


def test_macros_that_copy_cannot_grow_without_end() -> None:
    with pytest.raises(cel.CompileError, match="too large"):
        cel.compile("optional.of(1)" + ".optMap(x, x)" * 60 + ".hasValue()")


def test_errors_are_rendered_with_a_caret() -> None:
    expression = 'device.driver == "x" &&\n  device.drivr == 1'
    with pytest.raises(cel.CompileError) as failure:
        cel.compile(expression)
    assert failure.value.render(expression).splitlines() == [
        "2:9: undefined field 'drivr' of kubernetes.DRADevice; did you mean 'driver'?",
        " |   device.drivr == 1",
        " |         ^",
    ]
