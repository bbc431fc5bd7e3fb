"""What is told of a field stays short, however much there would be to tell."""

from __future__ import annotations

import pytest

from dray.api.field import MOST_CHOICES, FieldError, invalid, key_path, not_supported

LONG = "x" * 100_000


@pytest.mark.parametrize(
    "error",
    [
        not_supported("spec.mode", "none", tuple(f"mode-{number}" for number in range(100_000))),
        not_supported("spec.mode", LONG, (LONG,) * 3),
        invalid("spec.mode", LONG, "is wrong"),
        invalid(key_path("spec.modes", LONG), 1, "is wrong"),
    ],
    ids=["many choices", "long choices", "long value", "long key"],
)
def test_errors_are_short(error: FieldError) -> None:
    assert len(str(error)) < 300 * MOST_CHOICES


def test_the_choices_of_a_small_set_are_all_told() -> None:
    assert not_supported("spec.mode", "none", ("fast", "slow")).message == (
        'Unsupported value: "none": supported values: "fast", "slow"'
    )


def test_of_a_large_set_it_is_told_how_many_there_are() -> None:
    many = tuple(map(str, range(MOST_CHOICES + 20)))
    assert not_supported("spec.mode", "none", many).message.endswith(f'"{MOST_CHOICES - 1}", and 20 more')
