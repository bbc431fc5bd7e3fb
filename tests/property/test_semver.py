"""Semver against a plain reading of the precedence rules, and against arbitrary text."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dray.api.semver import Semver, SemverError, is_semver

pytestmark = pytest.mark.req("4381-33")

numbers = st.integers(0, 3) | st.integers(0, 2**64 - 1)
identifiers = st.from_regex(r"0|[1-9][0-9]{0,3}|[0-9]{0,2}[A-Za-z-][0-9A-Za-z-]{0,3}", fullmatch=True)
prereleases = st.lists(identifiers, max_size=3)
builds = st.lists(st.from_regex(r"[0-9A-Za-z-]{1,4}", fullmatch=True), max_size=2)


@st.composite
def versions(draw: st.DrawFn) -> str:
    text = ".".join(str(draw(numbers)) for _ in range(3))
    prerelease, build = draw(prereleases), draw(builds)
    return text + ("-" + ".".join(prerelease) if prerelease else "") + ("+" + ".".join(build) if build else "")


def compare_by_the_book(left: Semver, right: Semver) -> int:
    """Clause 11 of semver.org, step by step."""
    for ours, theirs in zip((left.major, left.minor, left.patch), (right.major, right.minor, right.patch), strict=True):
        if ours != theirs:
            return 1 if ours > theirs else -1
    if not left.prerelease or not right.prerelease:
        return bool(right.prerelease) - bool(left.prerelease)
    for mine, other in zip(left.prerelease, right.prerelease, strict=False):
        if mine == other:
            continue
        if mine.isdigit() != other.isdigit():
            return -1 if mine.isdigit() else 1
        greater = int(mine) > int(other) if mine.isdigit() else mine > other
        return 1 if greater else -1
    return (len(left.prerelease) > len(right.prerelease)) - (len(left.prerelease) < len(right.prerelease))


@given(versions())
def test_versions_print_as_they_came(text: str) -> None:
    assert is_semver(text)
    assert str(Semver.parse(text)) == text
    assert str(Semver.parse_tolerant(text)) == text
    assert Semver.parse_tolerant(f"v{text}") == Semver.parse(text)


@given(versions().map(Semver.parse), versions().map(Semver.parse))
def test_order_is_precedence(left: Semver, right: Semver) -> None:
    expected = compare_by_the_book(left, right)
    assert left.compare(right) == expected
    assert (left < right, left == right, left > right) == (expected < 0, expected == 0, expected > 0)
    assert expected != 0 or hash(left) == hash(right)


@given(st.text(alphabet="0123456789.-+av \x00é", max_size=15) | st.text(max_size=30))
def test_any_text_is_a_version_or_a_semver_error(text: str) -> None:
    try:
        version = Semver.parse(text)
    except SemverError:
        version = None
    assert version is None or (is_semver(text) and str(version) == text)
    try:
        tolerant = Semver.parse_tolerant(text)
    except SemverError:
        assert version is None
        return
    assert version is None or tolerant == version
