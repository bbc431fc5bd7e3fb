"""Numbers that may be given as a percentage of another."""

from __future__ import annotations


def resolve(value: int | str | None, total: int, *, up: bool) -> int:
    """A number as it is, a percentage of `total` rounded up or down; nothing and nonsense are 0."""
    if value is None or isinstance(value, int):
        return value or 0
    digits = value.removesuffix("%")
    if digits == value or not digits.isdecimal() or len(digits) > 6:
        return 0
    share = int(digits) * total
    return -(-share // 100) if up else share // 100
