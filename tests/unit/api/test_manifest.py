"""YAML as kubectl reads it, with limits and line numbers."""

from collections.abc import Callable
from typing import Any

import pytest

from dray.api import manifest
from work import growing_faster, lines_run


def values(text: str) -> list[Any]:
    return [document.value for document in manifest.parse(text.encode())]


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("yes", True),
        ("Off", False),
        ("~", None),
        ("0644", 420),
        ("0x1F", 31),
        ("0b11", 3),
        ("1_000", 1000),
        ("1.50", 1.5),
        ("1e3", 1000),
        ("2.0", 2),
        ("2021-07-06T15:00:00+08:00", "2021-07-06T15:00:00+08:00"),
        ("2021-07-06", "2021-07-06"),
        ("16Gi", "16Gi"),
        ("1.2.3", "1.2.3"),
        ('"yes"', "yes"),
        ("'0644'", "0644"),
        ("!!str 12", "12"),
        ('!!int "12"', 12),
        ("12:30:45", "12:30:45"),
        ("089", 89),
    ],
)
def test_scalars_mean_what_they_mean_to_kubectl(written: str, meant: object) -> None:
    [value] = values(f"a: {written}")
    assert value == {"a": meant}
    assert type(value["a"]) is type(meant)


def test_several_documents_empty_ones_left_out() -> None:
    assert values("a: 1\n---\n---\n# nothing\n---\nb: 2\n") == [{"a": 1}, {"b": 2}]


def test_keys_are_strings() -> None:
    assert values("1: a\ntrue: b\n") == [{"1": "a", "true": "b"}]


def test_anchors_and_merge_keys() -> None:
    assert values("x: &x {a: 1, b: 2}\nz: {<<: *x, b: 3}\n") == [{"x": {"a": 1, "b": 2}, "z": {"a": 1, "b": 3}}]


def test_json_is_read_too() -> None:
    assert values('{"a": [1, "\\u00e9", null]}') == [{"a": [1, "é", None]}]


BOMB = "a: &a [x,x,x,x,x,x,x,x,x]\n" + "\n".join(
    f"{name}: &{name} [{','.join(['*' + before] * 9)}]" for before, name in zip("abcdefgh", "bcdefghi", strict=True)
)


@pytest.mark.parametrize(
    ("text", "line", "says"),
    [
        ("a: 1\nb: [", 3, "YAML"),
        ("a: 1\na: 2", 2, '"a" already set in map'),
        ('{"a": 1,\n "a": 2}', 1, '"a" already set in map'),
        ("a: .inf", 1, "no meaning"),
        ("a: 1e999", 1, "out of range"),
        ("a: " + "9" * 5000, 1, "too many digits"),
        ("a: *b", 1, "unknown anchor"),
        ("a: &a [*a]", 1, "unknown anchor"),
        ("[" * 10_000, 1, "nested deeper"),
        ("x\n" + "{a: " * 10_000, 2, ""),
        ("? [a]\n: b", 1, "key must be a plain value"),
        ("a: 1\nb: \x01", 2, "control characters"),
        (BOMB, 6, "aliases expand"),
        ("<<: 1", 1, "merge key"),
        (f"a: &a {'x' * 100_000}\nb: [{'*a , ' * 40}]", 2, "letters"),
        ("a: b\n" + "c: " + "[" * 199 + "x," * 60_000 + "]" * 199, 2, "nested too deeply"),
        ("".join(f"%TAG !t{n}! x\n" for n in range(200)) + "---\na: b", None, "TAG"),
        ("".join(f"%TAG !t{n}! x\r" for n in range(200)) + "---\na: b", None, "TAG"),
    ],
)
def test_what_cannot_be_read_names_line_and_cause(text: str, line: int | None, says: str) -> None:
    with pytest.raises(manifest.ManifestError) as caught:
        manifest.parse(text.encode())
    assert caught.value.line == line
    assert says in caught.value.message


def test_invalid_utf8_names_the_line() -> None:
    with pytest.raises(manifest.ManifestError) as caught:
        manifest.parse(b"a: 1\nb: \xff")
    assert caught.value.line == 2


NESTED = """\
a: 1
---
spec:
  devices:
  - name: x
  - name: y
    attributes:
      a.b/c: {int: 1}
"""


@pytest.mark.parametrize(
    ("path", "line"),
    [
        ("spec", 3),
        ("spec.devices[1]", 6),
        ("spec.devices[1].attributes[a.b/c].int", 8),
        ("spec.devices[1].missing", 6),
        ("spec.devices[7].name", 4),
        ("", 3),
    ],
)
def test_lines_of_fields(path: str, line: int) -> None:
    [_, document] = manifest.parse(NESTED.encode())
    assert document.line_of(path) == line


def test_merging_many_mappings_takes_linear_time() -> None:
    def work(size: int) -> Callable[[], object]:
        text = f"a: {{<<: [{'{}, ' * size}], {', '.join(f'k{n}: 1' for n in range(size))}}}".encode()
        return lambda: manifest.parse(text)

    assert growing_faster(lines_run(work(100)), lines_run(work(200))) == {}


def test_of_merged_mappings_the_first_counts_and_what_is_written_out_before_it() -> None:
    text = b"x: &x {a: 1, b: 1, c: 1}\ny: &y {b: 2, d: 2}\nz: {<<: [*x, *y], c: 3}"
    assert manifest.parse(text)[0].value["z"] == {"a": 1, "b": 1, "c": 3, "d": 2}
