"""Quantities: what Kubernetes reads, how it prints, and how values add up."""

from __future__ import annotations

import copy
import pickle

import pytest

from dray.api import quantity
from dray.api.quantity import Quantity, QuantityError

pytestmark = pytest.mark.req("4381-34")

NANO = 10**9


@pytest.mark.parametrize(
    ("text", "nanos", "format"),
    [
        ("0", 0, "DecimalSI"),
        ("-0", 0, "DecimalSI"),
        ("0Ki", 0, "BinarySI"),
        ("1", NANO, "DecimalSI"),
        ("5n", 5, "DecimalSI"),
        ("4u", 4_000, "DecimalSI"),
        ("3m", 3_000_000, "DecimalSI"),
        ("8k", 8 * 10**12, "DecimalSI"),
        ("7M", 7 * 10**15, "DecimalSI"),
        ("6G", 6 * 10**18, "DecimalSI"),
        ("5T", 5 * 10**21, "DecimalSI"),
        ("2P", 2 * 10**24, "DecimalSI"),
        ("1E", 10**27, "DecimalSI"),
        ("1Ki", 2**10 * NANO, "BinarySI"),
        ("7Mi", 7 * 2**20 * NANO, "BinarySI"),
        ("16Gi", 2**34 * NANO, "BinarySI"),
        ("5Ti", 5 * 2**40 * NANO, "BinarySI"),
        ("4Pi", 4 * 2**50 * NANO, "BinarySI"),
        ("3Ei", 3 * 2**60 * NANO, "BinarySI"),
        ("1e3", 10**12, "DecimalExponent"),
        ("1E3", 10**12, "DecimalExponent"),
        ("1e+3", 10**12, "DecimalExponent"),
        ("1E-3", 10**6, "DecimalExponent"),
        ("+5", 5 * NANO, "DecimalSI"),
        ("-1.5Gi", -3 * 2**29 * NANO, "BinarySI"),
        (".5", NANO // 2, "DecimalSI"),
        ("5.", 5 * NANO, "DecimalSI"),
        ("1.G", 10**18, "DecimalSI"),
        ("007", 7 * NANO, "DecimalSI"),
        ("0.5Mi", 2**19 * NANO, "BinarySI"),
        ("99999999999999999999", 99999999999999999999 * NANO, "DecimalSI"),
    ],
)
def test_accepted_texts(text: str, nanos: int, format: str) -> None:
    parsed = Quantity.parse(text)
    assert (parsed.nanos, parsed.format) == (nanos, format)


@pytest.mark.parametrize("text", [".", "-", "+", "-.", "k", "Mi", "Ti", ".Gi", "e3", "e-9"])
def test_a_missing_number_is_zero(text: str) -> None:
    assert Quantity.parse(text).nanos == 0
    assert str(Quantity.parse(text)) == "0"


@pytest.mark.parametrize(
    "text",
    [
        "", " ", " 1", "1 ", "1\n", "16X", "16K", "1p", "1t", "1ki", "1kI", "1KI", "1i", ".5i", "0.1mi", "0.1am",
        "10Mm", "1e", "1E+", "-3.01e-", "1e3.5", "1e3k", "1Mi3", "1.1.M", "1.5.5", "1+1.0M", "--1", "+-1",
        "1,3G", "1_000", "0x10", "aoeu", "Pi", "Ei", ".Ei", "e-10", "inf", "nan", "NaN", "١", "１", "1²", "\x001",
    ],
)  # fmt: skip
def test_refused_texts(text: str) -> None:
    with pytest.raises(QuantityError) as caught:
        Quantity.parse(text)
    assert "quantity" in str(caught.value)


def test_an_unknown_suffix_is_named() -> None:
    with pytest.raises(QuantityError, match=r"unknown suffix 'K'.*Ki"):
        Quantity.parse("16K")


@pytest.mark.parametrize(
    ("text", "nanos"),
    [
        ("0.1n", 1),
        ("-0.1n", -1),
        ("1.1n", 2),
        ("-1.1n", -2),
        ("1e-10", 1),
        ("1e-999999999", 1),
        ("-1e-999999999", -1),
        ("0e-999999999", 0),
        (".000000000001Ki", 2),
        ("1.0000000000000000000000001", NANO + 1),
        ("0.00000000000000000000000000", 0),
    ],
)
def test_what_is_finer_than_a_nano_is_rounded_away_from_zero(text: str, nanos: int) -> None:
    assert Quantity.parse(text).nanos == nanos


@pytest.mark.parametrize("text", ["8Ei", "9Ei", "9223372036854775807Ki", "99999999999999999999Mi"])
def test_binary_quantities_are_capped_at_int64(text: str) -> None:
    assert Quantity.parse(text).nanos == (2**63 - 1) * NANO
    assert Quantity.parse(f"-{text}").nanos == -(2**63 - 1) * NANO


@pytest.mark.parametrize(
    ("text", "printed"),
    [
        ("1.5Gi", "1536Mi"),
        ("0.5", "500m"),
        ("1.5", "1500m"),
        ("1000", "1k"),
        ("1024", "1024"),
        ("10000", "10k"),
        ("1000000m", "1k"),
        ("1024Mi", "1Gi"),
        ("512Ki", "512Ki"),
        ("0.5Ki", "512"),
        ("0.9999Ki", "1023897600u"),
        ("-1024Ki", "-1Mi"),
        (".001Ki", "1024m"),
        ("1.1Ki", "1126400m"),
        ("1e3", "1e3"),
        ("1000e3", "1e6"),
        ("1.5e3", "1500"),
        ("1e2", "100"),
        ("1e4", "10e3"),
        ("0.001e0", "1e-3"),
        ("1e-10", "1e-9"),
        ("9Ei", "9223372036854775807"),
        ("10000000000000000000", "10E"),
        ("999999999999999999.1", "999999999999999999100m"),
        ("0", "0"),
        ("-0", "0"),
        ("0Gi", "0"),
        ("00", "0"),
    ],
)
def test_canonical_form(text: str, printed: str) -> None:
    assert str(Quantity.parse(text)) == printed


@pytest.mark.parametrize("text", ["+5", "007", "5.", "1.001k", "1.500", "1E3", "1e+3", "01Ki", "1100Ki"])
def test_a_text_that_looks_canonical_is_printed_as_it_came(text: str) -> None:
    """Kubernetes keeps such texts, so clients see the spelling that they sent."""
    assert str(Quantity.parse(text)) == text


@pytest.mark.parametrize("text", ["1000E", "1000000E", "12345678901234567890123000E"])
def test_a_value_beyond_the_largest_suffix_keeps_its_value(text: str) -> None:
    assert Quantity.parse(str(Quantity.parse(text))) == Quantity.parse(text)


def test_the_largest_binary_suffix_is_exbi() -> None:
    total = Quantity.parse("4Ei")
    for _ in range(10):
        total += total
    assert str(total) == "4096Ei"


@pytest.mark.parametrize("text", ["1" * 1025, "0" * 1_000_000, "1" * 1_000_000 + "x", "-" + "9" * 2_000_000], ids=len)
def test_overlong_texts_are_refused_at_once(text: str) -> None:
    with pytest.raises(QuantityError, match="at most 1024"):
        Quantity.parse(text)


@pytest.mark.parametrize("text", ["1e1001", "1e999999999", "1e2147483648", "1e99999999999999999999", "5E2000"])
def test_huge_exponents_are_refused(text: str) -> None:
    with pytest.raises(QuantityError):
        Quantity.parse(text)


def test_a_zero_with_a_huge_exponent_is_zero() -> None:
    zero = Quantity.parse("0e999999999")
    assert (zero.nanos, zero.as_int64(), zero.approximate_float()) == (0, 0, 0.0)
    assert (zero + 1).nanos == NANO


def test_integers_are_accepted() -> None:
    assert Quantity.parse(1000) == Quantity.parse("1k")
    assert str(Quantity.parse(-5)) == "-5"
    for refused in (True, 1.5, None, b"1", 10**5000):
        with pytest.raises(QuantityError):
            Quantity.parse(refused)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("value", "printed"),
    [(" 1Gi\n", "1Gi"), (5, "5"), (1000, "1k"), (0.5, "500m"), (1e22, "10e21"), (1e-12, "1e-9"), (None, "0")],
)
def test_json_values(value: object, printed: str) -> None:
    assert str(Quantity.from_json(value)) == printed


@pytest.mark.parametrize("value", [True, [], {}, b"1", float("nan"), float("inf"), "", " "])
def test_other_json_values_are_refused(value: object) -> None:
    with pytest.raises(QuantityError):
        Quantity.from_json(value)


def test_equality_order_and_hash_go_by_value() -> None:
    assert Quantity.parse("1") == Quantity.parse("1000m") == Quantity.parse("1e0")
    assert hash(Quantity.parse("1")) == hash(Quantity.parse("1000m"))
    assert Quantity.parse("1") != 1
    assert Quantity.parse("1G") < Quantity.parse("1Gi") <= Quantity.parse("1024Mi")
    assert Quantity.parse("1Gi") > Quantity.parse("1G") >= Quantity.parse("1000M")
    assert Quantity.parse("10000T").compare(Quantity.parse("100Gi")) == 1
    assert Quantity.parse("50m").compare(Quantity.parse("100m")) == -1
    assert Quantity.parse("0.1").compare(Quantity.parse("100m")) == 0
    with pytest.raises(TypeError):
        Quantity.parse("1") < 1  # type: ignore[operator]  # noqa: B015


@pytest.mark.parametrize(
    ("left", "right", "total", "difference"),
    [
        ("1Gi", "1Gi", "2Gi", "0"),
        ("1Gi", "1G", "2073741824", "73741824"),
        ("50k", "20k", "70k", "30k"),
        ("100m", "0", "100m", "100m"),
        ("0", "1Gi", "1Gi", "-1Gi"),
        ("0", "1e3", "1e3", "-1e3"),
        ("1k", "1e3", "2k", "0"),
        ("1e3", "1k", "2e3", "0"),
        ("1", "1n", "1000000001n", "999999999n"),
        ("5Ei", "5Ei", "10Ei", "0"),
    ],
)
def test_sums_keep_the_notation_of_the_left_side_unless_it_is_zero(
    left: str, right: str, total: str, difference: str
) -> None:
    assert str(Quantity.parse(left) + Quantity.parse(right)) == total
    assert str(Quantity.parse(left) - Quantity.parse(right)) == difference


def test_integers_can_be_added() -> None:
    assert str(Quantity.parse("50k") + 20) == "50020"
    assert str(Quantity.parse("50k") - 20000) == "30k"
    assert str(Quantity.parse("0") + 1000) == "1e3"
    assert str(-Quantity.parse("1.5Gi")) == "-1536Mi"
    with pytest.raises(TypeError):
        Quantity.parse("1") + "1"  # type: ignore[operator]
    with pytest.raises(TypeError):
        Quantity.parse("1") - "1"  # type: ignore[operator]


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("50k", 50_000),
        ("-1E", -(10**18)),
        ("1.0E", 10**18),
        ("1Gi", 2**30),
        ("99Ti", 99 * 2**40),
        ("0", 0),
        ("0k", 0),
        # Whole values that Kubernetes holds in a form that it does not convert.
        ("1000m", None),
        ("0m", None),
        ("1.0", None),
        ("1.5Gi", None),
        ("100Ti", None),
        ("1Pi", None),
        ("1000000000000000000", None),
        ("10E", None),
        ("0.5", None),
        ("9999999999999999999999999999999999999G", None),
    ],
)
def test_integer_conversion(text: str, value: int | None) -> None:
    assert Quantity.parse(text).as_int64() == value
    assert Quantity.parse(text).is_integer() == (value is not None)


def test_integer_conversion_of_sums() -> None:
    assert (Quantity.parse("50k") + 20).as_int64() == 50_020
    assert (Quantity.parse("1") + Quantity.parse("0m")).as_int64() == 1
    assert (Quantity.parse("0m") + Quantity.parse("1")).as_int64() == 1
    assert (Quantity.parse("500m") + Quantity.parse("500m")).as_int64() is None
    assert (Quantity.parse("9E") + Quantity.parse("9E")).as_int64() is None
    assert (Quantity.parse("1Pi") - Quantity.parse("1Pi")).as_int64() is None
    assert Quantity.of_int(2**63 - 1).as_int64() == 2**63 - 1
    assert Quantity.of_int(2**63).as_int64() is None


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("2Ki", 2048.0),
        ("1.1Ki", 1126.4),
        ("100m", 0.1),
        ("-1k", -1000.0),
        ("0", 0.0),
        ("1e400", float("inf")),
        ("-1e400", float("-inf")),
        ("9" * 400, float("inf")),
        ("-" + "9" * 400, float("-inf")),
    ],
)
def test_approximate_float(text: str, value: float) -> None:
    assert Quantity.parse(text).approximate_float() == value


def test_rounded_values() -> None:
    assert [Quantity.parse(text).value_rounded_up() for text in ("1", "1.1", "-1.1", "1n", "0")] == [1, 2, -2, 1, 0]
    assert [Quantity.parse(text).milli_value() for text in ("1", "1.1", "1n", "-1u")] == [1000, 1100, 1, -1]
    assert [Quantity.parse(text).sign() for text in ("-1n", "0", "1n")] == [-1, 0, 1]


def test_equal_texts_share_one_object_and_copies_are_equal() -> None:
    original = Quantity.parse("40Gi")
    assert Quantity.parse("40Gi") is original
    assert copy.copy(original) is original
    assert copy.deepcopy(original) is original
    restored = pickle.loads(pickle.dumps(Quantity.parse("1.500")))
    assert (str(restored), restored.format, restored.as_int64()) == ("1.500", "DecimalSI", None)
    assert repr(original) == "Quantity('40Gi')"


def test_what_is_remembered_is_bounded() -> None:
    first = Quantity.parse("40Gi")
    for value in range(2 * quantity._REMEMBERED):
        Quantity.parse(f"{value}Mi")
    assert Quantity.parse("40Gi") is not first
    assert Quantity.parse("1" * 100) is not Quantity.parse("1" * 100)
