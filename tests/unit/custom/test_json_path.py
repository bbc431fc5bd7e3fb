"""The paths of printer columns."""

from __future__ import annotations

from typing import Any

import pytest

from dray.custom.json_path import JsonPathError, compile_path

DOCUMENT = {
    "spec": {"a": 1, "dotted.name": "x", "list": [{"n": 1}, {"n": 2}]},
    "status": {"conditions": [{"type": "Ready", "status": "True"}, {"type": "Odd", "status": "False"}]},
}


@pytest.mark.parametrize(
    ("path", "found"),
    [
        (".spec.a", [1]),
        (".spec.missing.more", []),
        (r".spec.dotted\.name", ["x"]),
        (r".spec['dotted\.name']", ["x"]),
        (".spec['dotted.name']", []),
        (".spec['a']", [1]),
        ("$.spec.a", [1]),
        (".spec.list[0].n", [1]),
        (".spec.list[-1].n", [2]),
        (".spec.list[9].n", []),
        (".spec.list[*].n", [1, 2]),
        (".spec.list[0:1].n", [1]),
        ('.status.conditions[?(@.type=="Ready")].status', ["True"]),
        (".status.conditions[?(@.type == 'Odd')].status", ["False"]),
        (".spec.list[?(@.n > 1)].n", [2]),
        (".spec.list[?(@.missing)]", []),
        (".spec.list[?(@.n)].n", [1, 2]),
        (".spec.list[?(@.n != @.n)].n", []),
        (".spec.list[?(@.n == '1')].n", []),
        (".spec.list[?(@.n < 1.5)].n", []),
        (".spec.list[?(b)].n", [1, 2]),
        (".spec.list[?(@.n[0])].n", [1, 2]),
        (".spec.list[?(@.n == x)].n", []),
        (".status.conditions[?(@.type < 'P')].type", ["Odd"]),
        ('.status.conditions[?(@.type == "a)b")].type', []),
        (".spec[?(@.a)]", []),
        (".spec.list[0,1].n", [1, 2]),
        (".spec['a','list'][0]", []),
        (".spec.list[::2].n", [1]),
        (".spec.list[-2:-1].n", [1]),
        (".spec.list[0:9].n", []),
        (".spec.list[1:1].n", []),
        (".spec.list.*.n", [1, 2]),
        (".spec.a[0]", []),
        ("..n", [1, 2]),
        (".spec..n", [1, 2]),
        (".", []),
    ],
)
def test_a_path_finds_what_it_leads_to(path: str, found: list[Any]) -> None:
    assert compile_path(path)(DOCUMENT) == found


@pytest.mark.parametrize("path", [".a[", '.a["b"]', ".a[x]", ".a[?(@.b==1]", ".a[?(@.b==1.2.3)]", "." + "a" * 3000])
def test_a_path_that_cannot_be_read_is_refused(path: str) -> None:
    with pytest.raises(JsonPathError):
        compile_path(path)
