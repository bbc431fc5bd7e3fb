"""Ranges of sizes and costs in unsigned 64-bit arithmetic that stops at the largest number."""

from __future__ import annotations

import math
from typing import Final, NamedTuple

__all__ = ["MAX", "UNKNOWN", "Range", "fixed", "wrap"]

MAX: Final = 2**64 - 1
_TWO_64: Final = float(2**64)


class Range(NamedTuple):
    """From the least to the most; of sizes or of costs."""

    low: int
    high: int

    def plus(self, other: Range) -> Range:
        return Range(min(self.low + other.low, MAX), min(self.high + other.high, MAX))

    def times(self, other: Range) -> Range:
        return Range(min(self.low * other.low, MAX), min(self.high * other.high, MAX))

    def scaled(self, factor: float) -> Range:
        """Multiplied by a number in double precision, rounded up."""
        return Range(_scale(self.low, factor), _scale(self.high, factor))

    def union(self, other: Range) -> Range:
        return Range(min(self.low, other.low), max(self.high, other.high))


UNKNOWN: Final = Range(0, MAX)


def fixed(size: int) -> Range:
    return Range(size, size)


def wrap(number: int) -> int:
    """The number as 64-bit arithmetic without overflow checks has it. Some of the estimates rely on that."""
    return number & MAX


def _scale(number: int, factor: float) -> int:
    product = float(number) * factor
    return MAX if product >= _TWO_64 else math.ceil(product)
