"""Semantic versions: the strict form of attribute values, precedence, and CEL's tolerant form."""

from __future__ import annotations

import copy
import itertools
import pickle

import pytest

from dray.api import semver
from dray.api.semver import Semver, SemverError, is_semver

VALID = [
    "0.0.0",
    "1.2.3",
    "10.20.30",
    "1.2.3-rc.1+b",
    "1.0.0-alpha",
    "1.0.0-0.3.7",
    "1.0.0-x-y-z.--",
    "1.0.0--",
    "1.0.0-01a",
    "1.0.0-0a",
    "1.0.0-00-",
    "1.0.0+001",
    "1.0.0+20130313144700",
    "1.0.0-beta+exp.sha.5114f85",
    "1.0.0+21AF26D3---117B344092BD",
    "18446744073709551615.0.0",
]

INVALID = [
    "",
    "1",
    "1.2",
    "v1.2.3",
    "01.2.3",
    "1.02.3",
    "1.2.03",
    "1.2.3.4",
    "1.2.3-",
    "1.2.3+",
    "1.2.3-+b",
    "1.2.3-01",
    "1.2.3-a..b",
    "1.2.3-a.",
    "1.2.3-.a",
    "1.2.3+a..b",
    "1.2.3+a+b",
    "1.2.3-a_b",
    "1.2.3-ä",
    "-1.2.3",
    "+1.2.3",
    "1..3",
    "1.2.",
    ".2.3",
    " 1.2.3",
    "1.2.3 ",
    "1.2.3\n",
    "1.2.٣",
    "a.b.c",
]


@pytest.mark.req("4381-33")
@pytest.mark.parametrize("text", VALID)
def test_valid_versions_print_as_they_came(text: str) -> None:
    assert is_semver(text)
    assert str(Semver.parse(text)) == text


@pytest.mark.req("4381-33")
@pytest.mark.parametrize("text", INVALID)
def test_invalid_versions_are_refused(text: str) -> None:
    assert not is_semver(text)
    with pytest.raises(SemverError, match="semantic version"):
        Semver.parse(text)


def test_parts() -> None:
    version = Semver.parse("1.2.3-rc.1+b.7")
    assert (version.major, version.minor, version.patch) == (1, 2, 3)
    assert version.prerelease == ("rc", "1")
    assert version.build == ("b", "7")


@pytest.mark.req("4381-33")
@pytest.mark.parametrize("text", ["99999999999999999999.0.0", "1.18446744073709551616.0", "1.0.0-18446744073709551616"])
def test_numbers_beyond_64_bits_have_the_right_form_but_cannot_be_computed_with(text: str) -> None:
    assert is_semver(text)
    with pytest.raises(SemverError, match="64 bits"):
        Semver.parse(text)


@pytest.mark.parametrize("text", ["1.0.0-" + "a." * 10_000, "1" * 1_000_000, "1.0.0+" + "a" * 2_000], ids=len)
def test_overlong_versions_are_refused(text: str) -> None:
    assert not is_semver(text)
    for parse in (Semver.parse, Semver.parse_tolerant):
        with pytest.raises(SemverError, match="at most 1024"):
            parse(text)


def test_precedence() -> None:
    ascending = [
        Semver.parse(text)
        for text in (
            "0.9.9",
            "1.0.0-0",
            "1.0.0-2",
            "1.0.0-10",
            "1.0.0--",
            "1.0.0-Alpha",
            "1.0.0-alpha",
            "1.0.0-alpha.1",
            "1.0.0-alpha.beta",
            "1.0.0-beta",
            "1.0.0-beta.2",
            "1.0.0-beta.11",
            "1.0.0-rc.1",
            "1.0.0",
            "1.0.1",
            "1.2.0",
            "1.10.0",
            "2.0.0",
        )
    ]
    for lower, higher in itertools.combinations(ascending, 2):
        assert lower < higher
        assert higher > lower
        assert (lower.compare(higher), higher.compare(lower), lower.compare(lower)) == (-1, 1, 0)
        assert lower != higher


def test_build_metadata_does_not_count() -> None:
    plain, built = Semver.parse("2.0.0"), Semver.parse("2.0.0+build.7")
    assert plain == built
    assert plain <= built <= plain
    assert hash(plain) == hash(built)
    assert plain.compare(built) == 0
    assert plain != "2.0.0"


@pytest.mark.parametrize(
    ("text", "printed"),
    [
        ("v1.2", "1.2.0"),
        ("1", "1.0.0"),
        ("v1", "1.0.0"),
        ("v1.2.3", "1.2.3"),
        ("01.02.03", "1.2.3"),
        ("00.0.000", "0.0.0"),
        ("1.2.03-rc.1+b", "1.2.3-rc.1+b"),
        ("1.2.00-rc", "1.2.0-rc"),
        ("1.2.-rc", "1.2.0-rc"),
    ],
)
def test_tolerant_form(text: str, printed: str) -> None:
    assert str(Semver.parse_tolerant(text)) == printed


@pytest.mark.parametrize(
    "text",
    [
        "",
        "v",
        "vv1.2.3",
        "V1.2.3",
        " 1.2.3",
        "1.2.3 ",
        "1.2-rc",
        "1-rc",
        "1+b",
        "1.2.3.4",
        "1..2",
        "1.2.",
        "a",
        "1.2.3-01",
    ],
)
def test_the_tolerant_form_has_limits(text: str) -> None:
    with pytest.raises(SemverError):
        Semver.parse_tolerant(text)


def test_copies() -> None:
    version = Semver.parse("1.2.3-rc.1+b")
    assert Semver.parse("1.2.3-rc.1+b") is version
    assert copy.copy(version) is version
    assert copy.deepcopy(version) is version
    assert str(pickle.loads(pickle.dumps(version))) == "1.2.3-rc.1+b"
    assert repr(version) == "Semver('1.2.3-rc.1+b')"


def test_what_is_remembered_is_bounded() -> None:
    first = Semver.parse("1.2.3")
    for number in range(2 * semver._REMEMBERED):
        Semver.parse(f"1.0.{number}")
    assert Semver.parse("1.2.3") is not first
