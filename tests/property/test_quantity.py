"""Quantity against exact fractions, and against arbitrary text."""

from __future__ import annotations

import math
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dray.api.quantity import Quantity, QuantityError

pytestmark = pytest.mark.req("4381-34")

DECIMAL = {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
BINARY = {"Ki": 10, "Mi": 20, "Gi": 30, "Ti": 40, "Pi": 50, "Ei": 60}
CAP = 2**63 - 1

numbers = st.from_regex(r"[+-]?([0-9]{1,25}(\.[0-9]{0,25})?|\.[0-9]{1,25})", fullmatch=True)
exponents = st.integers(-40, 40).map(lambda exponent: f"e{exponent}")
suffixes = st.sampled_from([*DECIMAL, *BINARY]) | exponents
texts = st.builds(str.__add__, numbers, suffixes)
quantities = texts.map(Quantity.parse)


def exact(number: str, suffix: str) -> Fraction:
    """What the text means, before any rounding and capping."""
    number = number.removeprefix("+")
    whole = Fraction(f"{number}0" if number.endswith(".") else number)
    if suffix in BINARY:
        bits: int = 2 ** BINARY[suffix]
        return whole * bits
    exponent = DECIMAL[suffix] if suffix in DECIMAL else int(suffix[1:])
    power: int = 10 ** abs(exponent)
    return whole * power if exponent >= 0 else whole / power


@given(numbers, suffixes)
def test_the_value_is_exact_but_for_rounding_up_and_capping(number: str, suffix: str) -> None:
    value = exact(number, suffix)
    magnitude = math.ceil(abs(value) * 10**9)
    if suffix in BINARY:
        magnitude = min(magnitude, CAP * 10**9)
    assert Quantity.parse(number + suffix).nanos == (-magnitude if value < 0 else magnitude)


@given(quantities)
def test_the_printed_form_reads_back_as_the_same_value_and_prints_the_same(original: Quantity) -> None:
    printed = str(original)
    restored = Quantity.parse(printed)
    assert restored == original
    assert str(restored) == printed


@given(quantities)
def test_the_canonical_form_has_no_fraction_and_the_largest_suffix(original: Quantity) -> None:
    printed = str(original + 0)
    digits = printed.removeprefix("-").rstrip("".join({*"".join(DECIMAL), *"".join(BINARY)}))
    assert "." not in printed
    if printed.endswith("i"):
        assert int(digits) % 1024 or printed.endswith("Ei")
    elif "e" not in printed and original.format == "DecimalSI" and original.nanos:
        assert int(digits) % 1000 or printed.endswith("E")


@given(quantities, quantities)
def test_arithmetic_and_order_agree_with_the_integers(left: Quantity, right: Quantity) -> None:
    assert (left + right).nanos == left.nanos + right.nanos
    assert (left - right).nanos == left.nanos - right.nanos
    assert (left + right - right) == left
    assert (left < right) == (left.nanos < right.nanos)
    assert (left == right) == (left.nanos == right.nanos)
    assert left.compare(right) == -right.compare(left)
    assert (left + right).format == (left.format if left.nanos else right.format)


@given(quantities)
def test_conversions_agree_with_the_value(value: Quantity) -> None:
    number = Fraction(value.nanos, 10**9)
    integer = value.as_int64()
    assert integer is None or (integer == number and -(2**63) <= integer <= CAP)
    assert abs(value.value_rounded_up()) == math.ceil(abs(number))
    assert abs(value.milli_value()) == math.ceil(abs(number) * 1000)
    assert math.isclose(value.approximate_float(), float(number), rel_tol=1e-12)


@given(st.text(alphabet="0123456789.+-eEinumkKMGTPx \x00é", max_size=12) | st.text(max_size=30))
def test_any_text_is_a_quantity_or_a_quantity_error(text: str) -> None:
    try:
        parsed = Quantity.parse(text)
    except QuantityError:
        return
    assert Quantity.parse(str(parsed)) == parsed


@given(st.integers() | st.floats() | st.none() | st.booleans() | st.text(max_size=5))
def test_any_json_scalar_is_a_quantity_or_a_quantity_error(value: object) -> None:
    try:
        Quantity.from_json(value)
    except QuantityError:
        return
    assert not isinstance(value, bool)
