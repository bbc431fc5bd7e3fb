"""Name rules, as tables of good and bad names."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from dray.api import names

Validator = Callable[[str], tuple[str, ...]]

NOT_ASCII = ["\u00e4", "\uff41", "a\u0661", "\u212a", "\u017f"]
"""Letters and digits that careless patterns take for ASCII: umlaut, full width, Arabic digit, Kelvin, long s."""


def check(validate: Validator, good: list[str], bad: list[str]) -> None:
    for name in good:
        assert validate(name) == (), name
    for name in bad:
        messages = validate(name)
        assert messages, name
        assert all(messages), name


@pytest.mark.req("4381-20")
def test_dns_labels() -> None:
    check(
        names.validate_dns1123_label,
        good=["a", "0", "a-b", "a--b", "gpu-0", "0a", "a" * 63],
        bad=["", "A", "a.b", "-a", "a-", "a_b", "a b", "a\n", "a" * 64, "a/b", *NOT_ASCII],
    )
    assert names.validate_dns1123_label("a.b") == ("must not contain dots",)
    assert len(names.validate_dns1123_label("A" * 64)) == 2


def test_dns_subdomains() -> None:
    check(
        names.validate_dns1123_subdomain,
        good=["a", "a.b", "0.1", "a-b.c-d", "a" * 253, ".".join(["a" * 63] * 3)],
        bad=["", ".", "a.", ".a", "a..b", "A.b", "a-.b", "a.-b", "a_b", "a" * 254, "a/b", "a\n", *NOT_ASCII],
    )


def test_dns1035_labels() -> None:
    check(
        names.validate_dns1035_label,
        good=["a", "a0", "a-b", "a" * 63],
        bad=["", "0", "0a", "-a", "a-", "A", "a.b", "a" * 64, "a\n", *NOT_ASCII],
    )


@pytest.mark.req("5055-11")
def test_label_keys() -> None:
    check(
        names.validate_label_key,
        good=["a", "A", "0", "a.b", "a_b", "a-b", "example.com/A_b.c-d", "a" * 63, "b" * 253 + "/" + "a" * 63],
        bad=["", "a b", "-a", "a-", "_a", "a.", "/a", "a/", "/", "a/b/c", "A/b", "a_b/c", "a\n", *NOT_ASCII],
    )
    check(names.validate_label_key, good=[], bad=["a" * 64, "b" * 254 + "/a"])
    assert len(names.validate_label_key("/")) == 3
    assert len(names.validate_label_key("A/-" + "b" * 63)) == 3


@pytest.mark.req("5055-12")
def test_label_values() -> None:
    check(
        names.validate_label_value,
        good=["", "a", "A", "0", "a.b_c-d", "a" * 63],
        bad=["-", "a-", ".a", "a b", "a/b", "a" * 64, "\n", "a\n", *NOT_ASCII],
    )


def test_c_identifiers() -> None:
    check(
        names.validate_c_identifier,
        good=["a", "_", "__1", "A9", "a" * 1000],
        bad=["", "1", "a-b", "a.b", " a", "a\n", *NOT_ASCII],
    )


def test_driver_names() -> None:
    check(
        names.validate_driver_name,
        good=["gpu.example.com", "gpu", "GPU.example.com", "a" * 63],
        bad=["", "gpu_example", "gpu..com", "-gpu", "gpu-", "a" * 64, "gpu/com", *NOT_ASCII],
    )


def test_path_segments() -> None:
    check(
        names.validate_path_segment_name,
        good=["a", "A b", "...", "system:node", "ä", ""],
        bad=[".", "..", "a/b", "a%b", "/"],
    )
    check(names.validate_path_segment_prefix, good=[".", ".."], bad=["a/", "%"])
    assert len(names.validate_path_segment_name("/%")) == 2


@pytest.mark.parametrize(
    ("prefix", "masked"), [("a-", "a"), ("web-", "wea"), ("web", "web"), ("-", "-"), ("", ""), ("a--", "aa")]
)
def test_generated_names_may_end_with_a_dash(prefix: str, masked: str) -> None:
    assert names.mask_trailing_dash(prefix) == masked


def test_lengths_count_bytes() -> None:
    assert len(names.validate_label_value("ä" * 31)) == 1
    assert len(names.validate_label_value("ä" * 32)) == 2


@pytest.mark.parametrize("text", ["a" * 1_000_000 + "!", "a-" * 500_000, "a." * 500_000, "-" * 1_000_000], ids=len)
def test_long_names_are_refused_in_linear_time(text: str) -> None:
    assert names.validate_dns1123_label(text)
    assert names.validate_dns1123_subdomain(text)
    assert names.validate_dns1035_label(text)
    assert names.validate_label_key(text)
    assert names.validate_label_value(text)
