"""Doubles as text, in the forms that CEL's string conversions produce, and back."""

from __future__ import annotations

import math
import re
from decimal import Decimal
from typing import Final

__all__ = ["parse_decimal_int", "parse_double_text", "shortest", "shortest_fixed"]

_DECIMAL: Final = re.compile(r"[+-]?(?:[0-9]++\.?[0-9]*+|\.[0-9]++)(?:[eE][+-]?[0-9]++)?")
_HEXADECIMAL: Final = re.compile(r"[+-]?0[xX](?:[0-9a-fA-F]++\.?[0-9a-fA-F]*+|\.[0-9a-fA-F]++)[pP][+-]?[0-9]+")
_INFINITY: Final = re.compile(r"[+-]?inf(?:inity)?", re.IGNORECASE)
_INTEGER: Final = re.compile(r"[+-]?0*[0-9]{1,20}")


def shortest(value: float) -> str:
    """The fewest digits that give the same double, with an exponent from 1e6 on and below 1e-4."""
    special = _special(value)
    if special is not None:
        return special
    sign, digits, exponent = Decimal(repr(value)).normalize().as_tuple()
    point = len(digits) + int(exponent) - 1
    if value == 0:
        return "-0" if sign else "0"
    if -4 <= point < 6:
        return shortest_fixed(value)
    mantissa = "".join(map(str, digits))
    if len(mantissa) > 1:
        mantissa = f"{mantissa[0]}.{mantissa[1:]}"
    return f"{'-' if sign else ''}{mantissa}e{'-' if point < 0 else '+'}{abs(point):02d}"


def shortest_fixed(value: float) -> str:
    """The fewest digits that give the same double, without an exponent."""
    special = _special(value)
    if special is not None:
        return special
    text = format(Decimal(repr(value)), "f")
    return text.removesuffix(".0") if text.endswith(".0") else text


def parse_double_text(text: str) -> float | None:
    """The double that a text denotes, or None; out of range is None too."""
    if text.lower() == "nan":
        return math.nan
    if _INFINITY.fullmatch(text):
        return -math.inf if text.startswith("-") else math.inf
    if _DECIMAL.fullmatch(text):
        value = float(text)
    elif _HEXADECIMAL.fullmatch(text):
        try:
            value = float.fromhex(text)
        except OverflowError:
            return None
    else:
        return None
    return None if math.isinf(value) else value


def parse_decimal_int(text: str, low: int, high: int) -> int | None:
    """The integer that a decimal text denotes, or None if it is none or out of range."""
    if not _INTEGER.fullmatch(text):
        return None
    sign = -1 if text.startswith("-") else 1
    value = sign * int(text.lstrip("+-0") or "0")
    return value if low <= value <= high else None


def _special(value: float) -> str | None:
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "+Inf" if value > 0 else "-Inf"
    return None
