"""What is remembered of texts is bounded in bytes, everywhere."""

from __future__ import annotations

import ast
from pathlib import Path

import dray
from dray.api.generated.core import Container, PodSpec
from dray.api.sharing import LARGE, is_small, remembered
from dray.api.text_memory import LONG, remember_texts, text_length

SOURCES = Path(dray.__file__).parent

CLOSED = {
    "admission/environments.py": "sets of variables that exist",
    "admission/views.py": "types of structs",
    "api/codec.py": "types of structs",
    "api/node_match.py": "node selectors of stored objects, compiled",
    "api/registry.py": "kinds that exist; what does not is an exception, which is not kept",
    "api/schema/__init__.py": "definitions that exist",
    "cli/output.py": "no arguments",
    "driver_test/rule.py": "no arguments",
    "api/idle_fields.py": "kinds",
    "api/shared_parts.py": "types of objects",
    "api/stored_parts.py": "types of structs",
    "eviction/causes.py": "taints of stored objects, whose parts are bounded by validation",
    "install/rights.py": "no arguments",
    "process/clock.py": "seconds",
    "server/admission/admission_request.py": "kinds that are served, their versions and subresources",
    "server/discovery/openapi/descriptions.py": "definitions that exist",
    "server/kubelets/connection.py": "the few files of a server's own configuration",
    "server/local.py": "no arguments",
    "server/patch/reset.py": "kinds",
    "server/patch/shape.py": "definitions that exist",
    "server/protobuf/descriptors.py": "messages that exist",
    "server/protobuf/read.py": "messages that exist",
    "server/protobuf/tables.py": "packages and kinds that exist; what does not is an exception, which is not kept",
    "server/protobuf/write.py": "messages that exist",
    "server/security/default_roles/__init__.py": "no arguments",
    "validation/table.py": "kinds",
    "what_if/device_changes.py": "expressions of a snapshot, in a command that ends",
    "what_if/evictions.py": "times of a snapshot, in a command that ends",
}
"""Where functools' caches may be used, and over which closed or bounded set of arguments."""


def test_caches_over_texts_are_bounded_in_bytes() -> None:
    found = set()
    for file in SOURCES.rglob("*.py"):
        text = file.read_text()
        for node in ast.walk(ast.parse(text)) if "cache" in text else ():
            names = {name.name for name in node.names} if isinstance(node, ast.ImportFrom) else set()
            if names & {"lru_cache", "cache"}:
                found.add(str(file.relative_to(SOURCES)))
    assert found == set(CLOSED), "use dray.api.text_memory.remember_texts, or say why the arguments are bounded"


def test_short_texts_are_remembered_and_long_ones_are_not() -> None:
    asked: list[str] = []

    @remember_texts(2, longest=10)
    def upper(text: str) -> str:
        asked.append(text)
        return text.upper()

    assert [upper(text) for text in ("a", "a", "b" * 11, "b" * 11)] == ["A", "A", "B" * 11, "B" * 11]
    assert asked == ["a", "b" * 11, "b" * 11]


def test_some_longer_ones_can_be_remembered_too() -> None:
    asked: list[str] = []

    @remember_texts(2, longest=10, long_entries=2)
    def size(text: str) -> int:
        asked.append(text)
        return len(text)

    for text in ("x" * 20, "x" * 20, "y" * 20, "w" * 20, "x" * 20, "z" * (LONG + 1), "z" * (LONG + 1)):
        size(text)
    assert [text[0] for text in asked] == ["x", "y", "w", "x", "z", "z"]


def test_what_is_asked_for_again_is_remembered_for_longer() -> None:
    asked: list[tuple[str, bool]] = []

    @remember_texts(4)
    def pair(text: str, is_new: bool) -> tuple[str, bool]:
        asked.append((text, is_new))
        return asked[-1]

    for text in ("often", "a", "often", "b", "often", "c", "often", "d", "often", "a"):
        assert pair(text, True) == (text, True)
    assert [text for text, _ in asked] == ["often", "a", "b", "c", "d", "a"]
    assert pair("often", False) == ("often", False)


def test_the_length_of_many_texts_is_that_of_all() -> None:
    assert text_length("ab", b"cde", ("f", ("gh",)), 7) == 8


def test_large_parts_are_not_kept() -> None:
    made = 0

    @remembered
    def count(spec: PodSpec) -> int:
        nonlocal made
        made += 1
        return len(spec.containers)

    small = PodSpec(containers=(Container(name="a"),))
    wide = PodSpec(containers=(Container(name="a"),) * LARGE)
    long = PodSpec(containers=(Container(name="a", image="x" * LARGE),))
    for spec in (small, small, wide, wide, long, long):
        count(spec)
    assert made == 1 + 2 + 2
    assert is_small(small)
    assert not is_small(wide)
    assert not is_small(long)
    assert not is_small(PodSpec(node_selector={"k" * LARGE: ""}))
