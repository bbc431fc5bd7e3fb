"""Resource quantities: exact fixed-point numbers with a unit suffix, as Kubernetes reads and prints them.

A quantity is a number with at most nine decimal places and one of three notations, which it keeps when it is
printed again: ``DecimalSI`` (``1500m``, ``2k``), ``BinarySI`` (``1536Mi``) and ``DecimalExponent`` (``2e3``).
Values are Python integers in nano units, so arithmetic never rounds. Pure values: no I/O.
"""

from __future__ import annotations

import re
from collections.abc import Hashable
from typing import Final, Literal, TypeAlias

from dray.api.text_memory import remember_texts

__all__ = ["MAX_EXPONENT", "MAX_TEXT_LENGTH", "ZERO", "Format", "Quantity", "QuantityError"]

Format: TypeAlias = Literal["DecimalSI", "BinarySI", "DecimalExponent"]

MAX_TEXT_LENGTH: Final = 1024
"""Longest text that is read. Real quantities have a dozen characters; this bounds work on hostile input."""

MAX_EXPONENT: Final = 1000
"""Largest power of ten in a non-zero quantity, so that ``1e999999999`` cannot ask for gigabytes of digits."""

_NANO: Final = 10**9
_INT64_MAX: Final = 2**63 - 1
_INT64_MIN: Final = -(2**63)
_INT32_MAX: Final = 2**31 - 1

_DECIMAL_EXPONENTS: Final = {
    "n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18,
}  # fmt: skip
_DECIMAL_SUFFIXES: Final = {exponent: suffix for suffix, exponent in _DECIMAL_EXPONENTS.items()}
_BINARY_BITS: Final = {"Ki": 10, "Mi": 20, "Gi": 30, "Ti": 40, "Pi": 50, "Ei": 60}
_BINARY_SUFFIXES: Final = ("", *_BINARY_BITS)

# Possessive throughout: on a mismatch nothing is tried twice, so the time is linear in the text.
_SHAPE: Final = re.compile(
    r"(?P<sign>[+-]?)(?P<zeros>0*+)(?P<whole>[0-9]*+)(?:\.(?P<fraction>[0-9]*+))?+"
    r"(?P<suffix>[eEinumkKMGTP]*+[-+]?+[0-9]*+)"
)
_EXPONENT: Final = re.compile(r"[eE]([+-]?[0-9]+)")

_REMEMBERED: Final = 16_384
_LONGEST_REMEMBERED: Final = 64


class QuantityError(ValueError):
    """A text or JSON value is not a quantity. The message says which part is wrong."""


class Quantity:
    """An immutable quantity. Equality, order and hash go by value: ``1`` equals ``1000m``.

    ``nanos`` is the exact value in units of 10⁻⁹ and the key to compare by. ``format`` is the notation.

    Kubernetes holds a quantity either as a 64-bit integer times a power of ten or as a decimal of any size.
    Which one it is shows in ``as_int64`` and ``approximate_float``, hence ``_scale`` (the power of ten) and
    ``_is_big`` (the decimal of any size).
    """

    __slots__ = ("_is_big", "_scale", "format", "nanos", "text")

    nanos: Final[int]
    format: Final[Format]
    text: str | None
    """How it is printed; None until somebody asks, by `str`."""

    def __init__(
        self, nanos: int, format: Format, scale: int, *, is_big: bool = False, text: str | None = None
    ) -> None:
        """Internal: use ``parse``, ``from_json`` or ``of_int``. ``text`` is the form to print, if known."""
        self.nanos = nanos
        self.format = format
        self._scale = scale
        self._is_big = is_big
        self.text = text

    @staticmethod
    def parse(text: str | int) -> Quantity:
        """Read a quantity; equal texts give the same object while it is remembered.

        What is finer than 1n is rounded away from zero; binary quantities are capped at ±(2⁶³-1).
        Raises QuantityError for anything that Kubernetes does not accept, and beyond MAX_TEXT_LENGTH
        and MAX_EXPONENT.
        """
        if text.__class__ is not str:
            text = _integer_text(text)
        return _parse(text)

    @staticmethod
    def from_json(value: object) -> Quantity:
        """Read a decoded JSON value: text (surrounding white space is dropped), number, or null for zero."""
        if isinstance(value, str):
            return _parse(value.strip())
        if value is None:
            return ZERO
        if isinstance(value, int) and not isinstance(value, bool):
            return Quantity.parse(value)
        if isinstance(value, float):
            return Quantity.parse(repr(value))
        raise QuantityError(f"a quantity must be a string or a number, not {type(value).__name__}")

    @staticmethod
    def of_int(value: int, format: Format = "DecimalSI") -> Quantity:
        """A whole quantity in the given notation."""
        return Quantity(value * _NANO, format, 0, is_big=not _fits_int64(value))

    @property
    def notation(self) -> Hashable:
        """Equal for quantities that nobody can tell apart, whatever is asked of them."""
        return self.nanos, self.format, self._scale, self._is_big

    def is_integer(self) -> bool:
        """Whether ``as_int64`` gives a value."""
        return self.as_int64() is not None

    def as_int64(self) -> int | None:
        """The value as a 64-bit integer, or None.

        Follows Kubernetes: the notation must be whole too, so ``1000m``, ``1.5Gi`` and ``1Pi`` give None
        although their values are whole.
        """
        if self._is_big or self._scale < 0:
            return None
        value = self.nanos // _NANO
        return value if _fits_int64(value) else None

    def approximate_float(self) -> float:
        """The nearest float that Kubernetes computes: digits × power of ten; infinite when out of range."""
        if self.nanos == 0:
            return 0.0
        try:
            digits = float(self._digits(self._scale))
        except OverflowError:
            return float("inf") if self.nanos > 0 else float("-inf")
        return digits * float(f"1e{self._scale}") if self._scale else digits

    def sign(self) -> int:
        """-1, 0 or 1."""
        return (self.nanos > 0) - (self.nanos < 0)

    def compare(self, other: Quantity) -> int:
        """-1, 0 or 1: this quantity against the other."""
        return (self.nanos > other.nanos) - (self.nanos < other.nanos)

    def value_rounded_up(self) -> int:
        """The value as an integer, rounded away from zero."""
        return _divide_away_from_zero(self.nanos, _NANO)

    def milli_value(self) -> int:
        """The value in thousandths, rounded away from zero."""
        return _divide_away_from_zero(self.nanos, 10**6)

    def __add__(self, other: Quantity | int) -> Quantity:
        if isinstance(other, int):
            other = Quantity.of_int(other, "DecimalExponent")
        elif not isinstance(other, Quantity):
            return NotImplemented
        return self._combine(other, other.nanos)

    def __sub__(self, other: Quantity | int) -> Quantity:
        if isinstance(other, int):
            other = Quantity.of_int(other, "DecimalExponent")
        elif not isinstance(other, Quantity):
            return NotImplemented
        return self._combine(other, -other.nanos)

    def __neg__(self) -> Quantity:
        return Quantity(-self.nanos, self.format, self._scale, is_big=self._is_big)

    def _combine(self, other: Quantity, nanos: int) -> Quantity:
        """This quantity plus ``nanos``, in its own notation, or in the other's if this one is zero."""
        total = self.nanos + nanos
        if self.nanos == 0:
            return Quantity(total, other.format, other._scale, is_big=self._is_big or other._is_big)
        if nanos == 0:
            return Quantity(total, self.format, self._scale, is_big=self._is_big or other._is_big)
        scale = min(self._scale, other._scale)
        unit = 10 ** (scale + 9)
        is_small = (
            not (self._is_big or other._is_big)
            and _fits_int64(self.nanos // unit)
            and _fits_int64(nanos // unit)
            and _fits_int64(total // unit)
        )
        return Quantity(total, self.format, scale, is_big=not is_small)

    def _digits(self, scale: int) -> int:
        """The integer that times 10^scale is this non-zero quantity."""
        unit: int = 10 ** (scale + 9)
        return self.nanos // unit

    def __eq__(self, other: object) -> bool:
        return self.nanos == other.nanos if isinstance(other, Quantity) else NotImplemented

    def __lt__(self, other: Quantity) -> bool:
        return self.nanos < other.nanos if isinstance(other, Quantity) else NotImplemented

    def __le__(self, other: Quantity) -> bool:
        return self.nanos <= other.nanos if isinstance(other, Quantity) else NotImplemented

    def __gt__(self, other: Quantity) -> bool:
        return self.nanos > other.nanos if isinstance(other, Quantity) else NotImplemented

    def __ge__(self, other: Quantity) -> bool:
        return self.nanos >= other.nanos if isinstance(other, Quantity) else NotImplemented

    def __hash__(self) -> int:
        return hash(self.nanos)

    def __str__(self) -> str:
        if self.text is None:
            self.text = _canonical_text(self.nanos, self.format)
        return self.text

    def __repr__(self) -> str:
        return f"Quantity({str(self)!r})"

    def __copy__(self) -> Quantity:
        return self

    def __deepcopy__(self, memo: object) -> Quantity:
        return self

    def __reduce__(self) -> tuple[object, ...]:
        return _restore, (self.nanos, self.format, self._scale, self._is_big, self.text)


def _restore(nanos: int, format: Format, scale: int, is_big: bool, text: str | None) -> Quantity:
    return Quantity(nanos, format, scale, is_big=is_big, text=text)


def _fits_int64(value: int) -> bool:
    return _INT64_MIN <= value <= _INT64_MAX


def _divide_away_from_zero(value: int, divisor: int) -> int:
    return -(-value // divisor) if value > 0 else value // divisor


def _integer_text(value: object) -> str:
    """The text of an integer (or of a str subclass) given to ``parse``; bounded before it is converted."""
    if isinstance(value, str):
        return str(value)
    if not isinstance(value, int) or isinstance(value, bool):
        raise QuantityError(f"a quantity must be a string or an integer, not {type(value).__name__}")
    if value.bit_length() > 3 * MAX_TEXT_LENGTH:
        raise QuantityError(f"the number is too long for a quantity: more than {MAX_TEXT_LENGTH} characters")
    return str(value)


@remember_texts(_REMEMBERED, _LONGEST_REMEMBERED)
def _parse(text: str) -> Quantity:
    if len(text) > MAX_TEXT_LENGTH:
        raise QuantityError(f"the quantity has {len(text)} characters; at most {MAX_TEXT_LENGTH} are accepted")
    match = _SHAPE.fullmatch(text) if text else None
    if match is None:
        raise QuantityError(
            f"{text!r} is not a quantity: expected a number and an optional suffix, as in 500m, 1.5Gi, 2e3"
        )
    sign, zeros, whole, fraction, suffix = match.groups()
    if not (zeros or whole or fraction):
        return _parse_without_digits(text, suffix)
    whole, fraction = whole or "0", fraction or ""
    bits = _BINARY_BITS.get(suffix)
    if bits is not None:
        return _parse_binary(text, sign == "-", whole, fraction, bits)
    exponent = _DECIMAL_EXPONENTS.get(suffix)
    if exponent is not None:
        return _parse_decimal(text, sign == "-", whole, fraction, exponent, "DecimalSI")
    exponent = _read_exponent(text, suffix)
    return _parse_decimal(text, sign == "-", whole, fraction, exponent, "DecimalExponent")


def _parse_without_digits(text: str, suffix: str) -> Quantity:
    """Kubernetes reads a missing number (``k``, ``-``, ``.Mi``) as zero, except where it leaves 64 bits."""
    if suffix in _BINARY_BITS:
        format: Format = "BinarySI"
        is_accepted, exponent = _BINARY_BITS[suffix] <= 40, 0
    elif suffix in _DECIMAL_EXPONENTS:
        format = "DecimalSI"
        is_accepted, exponent = True, _DECIMAL_EXPONENTS[suffix]
    else:
        format = "DecimalExponent"
        exponent = _read_exponent(text, suffix)
        is_accepted = exponent >= -9
    if not is_accepted:
        raise QuantityError(f"{text!r} is not a quantity: it has no digits")
    return Quantity(0, format, exponent)


def _read_exponent(text: str, suffix: str) -> int:
    match = _EXPONENT.fullmatch(suffix)
    if match is None:
        raise QuantityError(
            f"{text!r} is not a quantity: unknown suffix {suffix!r}; "
            "known are n, u, m, k, M, G, T, P, E, Ki, Mi, Gi, Ti, Pi, Ei and exponents such as e3"
        )
    exponent = int(match[1])
    if abs(exponent) > _INT32_MAX:
        raise QuantityError(f"the exponent of quantity {text!r} is out of range")
    return exponent


def _parse_decimal(text: str, negative: bool, whole: str, fraction: str, exponent: int, format: Format) -> Quantity:
    digits = whole + fraction
    scale = exponent - len(fraction)
    mantissa = int(digits)
    if mantissa and exponent > MAX_EXPONENT:
        raise QuantityError(f"quantity {text!r} is too large: the exponent may be at most {MAX_EXPONENT}")
    if len(digits) <= 18 and scale >= -9:
        nanos = mantissa * 10 ** (scale + 9) if mantissa else 0
        # A text that already has a multiple-of-three scale and no superfluous zeros is printed as it came.
        as_written = scale % 3 == 0 and not digits.endswith("000") and digits[0] != "0"
        return Quantity(-nanos if negative else nanos, format, scale, text=text if as_written else None)
    if scale >= -9:
        nanos = mantissa * 10 ** (scale + 9) if mantissa else 0
    elif -(scale + 9) > len(digits):
        nanos = 1 if mantissa else 0
    else:
        nanos = _divide_away_from_zero(mantissa, 10 ** -(scale + 9))
    return Quantity(-nanos if negative else nanos, format, -9, is_big=True)


def _parse_binary(text: str, negative: bool, whole: str, fraction: str, bits: int) -> Quantity:
    if not fraction and len(whole) <= 14 - bits * 3 // 10:
        value = int(whole)
        nanos = (value << bits) * _NANO
        # Not divisible by eight: no larger suffix can fit, so the text is printed as it came.
        as_written = value & 7 != 0
        return Quantity(-nanos if negative else nanos, "BinarySI", 0, text=text if as_written else None)
    scaled = (int(whole + fraction) << bits) * _NANO
    nanos = _divide_away_from_zero(scaled, 10 ** len(fraction))
    scale = -9
    if nanos > _INT64_MAX * _NANO:
        nanos, scale = _INT64_MAX * _NANO, 0
    format: Format = "DecimalSI" if 0 < nanos < _NANO else "BinarySI"
    return Quantity(-nanos if negative else nanos, format, scale, is_big=True)


def _canonical_text(nanos: int, format: Format) -> str:
    """Print without fraction and with the largest suffix that loses nothing.

    Kubernetes drops the suffix of values that would need one beyond E or Ei and so prints another number;
    here the digits grow instead.
    """
    if nanos == 0:
        return "0"
    if format == "BinarySI" and abs(nanos) >= 1024 * _NANO and nanos % _NANO == 0:
        value, power = nanos // _NANO, 0
        while power < 6 and value % 1024 == 0:
            value //= 1024
            power += 1
        return f"{value}{_BINARY_SUFFIXES[power]}"
    exponent = -9
    largest = MAX_EXPONENT + MAX_TEXT_LENGTH if format == "DecimalExponent" else 18
    while exponent < largest and nanos % 1000 == 0:
        nanos //= 1000
        exponent += 3
    if format == "DecimalExponent":
        return f"{nanos}e{exponent}" if exponent else str(nanos)
    return f"{nanos}{_DECIMAL_SUFFIXES[exponent]}"


ZERO: Final = Quantity.parse("0")
