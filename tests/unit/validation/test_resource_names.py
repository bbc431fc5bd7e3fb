"""The names of resource.k8s.io: good ones pass, bad ones are refused, and long ones take no longer than they are."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from dray.api.field import FieldError
from dray.validation import resource_names

Rule = Callable[[list[FieldError], str, str], None]

NOT_ASCII = ["\u00e4", "\uff41", "a\u0661", "\u212a", "\u017f"]


def wrong(rule: Rule, value: str) -> list[FieldError]:
    errors: list[FieldError] = []
    rule(errors, value, "x")
    return errors


@pytest.mark.req("4381-24", "4381-25")
@pytest.mark.parametrize(
    "name", ["a", "_", "A_1", "gpu.example.com/model", "a" * 32, "d" * 63 + "/" + "a" * 32, "D.example/a"]
)
def test_names_of_attributes(name: str) -> None:
    assert wrong(resource_names.validate_qualified_name, name) == []


@pytest.mark.req("4381-24", "4381-25")
@pytest.mark.parametrize(
    "name",
    [
        "",
        "1abc",
        "a-b",
        "a.b",
        "/x",
        "d/",
        "/",
        "d_d/x",
        "d/1x",
        "a\n",
        "a" * 33,
        "d/" + "a" * 33,
        "d" * 64 + "/x",
        *NOT_ASCII,
    ],
)
def test_no_names_of_attributes(name: str) -> None:
    assert wrong(resource_names.validate_qualified_name, name)


@pytest.mark.req("4381-24")
def test_a_qualified_name_with_two_slashes_is_not_checked_as_in_kubernetes() -> None:
    assert wrong(resource_names.validate_qualified_name, "a/b/c") == []


def test_both_parts_of_a_name_are_judged() -> None:
    assert len(wrong(resource_names.validate_qualified_name, "/")) == 2
    assert len(wrong(resource_names.validate_qualified_name, "1" * 33)) == 2


@pytest.mark.req("4381-08")
@pytest.mark.parametrize("name", ["a", "a.b/c.d", "node-1", "a/b/c", "a" * 253, "a/" * 126 + "a"])
def test_names_of_pools(name: str) -> None:
    assert wrong(resource_names.validate_pool_name, name) == []


@pytest.mark.req("4381-08")
@pytest.mark.parametrize("name", ["", "/", "a//b", "/a", "a/", "A", "a/B", "a_b", "a" * 254, "a\n", *NOT_ASCII])
def test_no_names_of_pools(name: str) -> None:
    assert wrong(resource_names.validate_pool_name, name)


@pytest.mark.parametrize("text", ["a" * 1_000_000 + "!", "a-" * 500_000, "a." * 500_000, "a/" * 500_000], ids=len)
def test_long_names_are_refused_in_linear_time(text: str) -> None:
    assert wrong(resource_names.validate_qualified_name, text) or text.count("/") > 1
    assert wrong(resource_names.validate_pool_name, text)


def test_a_key_stands_in_a_path_as_a_whole_or_without_its_middle() -> None:
    """As long as the longest name of an attribute: 63 of a domain, a slash and 32 of a name."""
    assert resource_names.shortened("a" * 96) == "a" * 96
    assert resource_names.shortened("a" * 60 + "b" * 60) == "a" * 47 + "..." + "b" * 46
