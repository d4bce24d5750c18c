"""Decimals of LETOR text to float64 and back, against Python's own float and repr, to the last bit."""

from __future__ import annotations

import io
import struct
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import example, given, strategies as st
from tests.refusals import Refusal

from rankrls.io import load_letor
from rankrls.io.writing import lines


def bits(value: float) -> bytes:
    return struct.pack("<d", value)


def check(*texts: str) -> None:
    """Labels and values are read as Python reads them; what overflows is refused."""
    for text in texts:
        line = f"{text} 1:{text} 2:0.5\n".encode()
        if np.isinf(float(text)):
            with Refusal("finite", column="label", line=1):
                load_letor(io.BytesIO(line))
            with Refusal("finite", column=1, line=1):
                load_letor(io.BytesIO(b"1 " + line.partition(b" ")[2]))
            continue
        table = load_letor(io.BytesIO(line))
        assert bits(table.y[0]) == bits(table.X[0, 0]) == bits(float(text)), text


def exactly(value: Fraction) -> str:
    """A dyadic fraction written out in full."""
    sign, value = ("-", -value) if value < 0 else ("", value)
    places = value.denominator.bit_length() - 1
    digits = str(value.numerator * 5**places).rjust(places + 1, "0")
    return sign + digits[: len(digits) - places] + ("." + digits[len(digits) - places :] if places else "")


def halfway(value: float) -> Fraction:
    """The point in the middle between a positive float64 and the next one."""
    return (Fraction(value) + Fraction(np.nextafter(value, np.inf))) / 2


FEW_DIGITS = [
    "0", "-0", "+0", "-0.0", "1", "1.", ".5", "-.5", "+.5e+1", "1e5", "1E5", "1e+05", "0.1e-5", "-2.4780157e-012",
    "123456789012345678", "0e999", "0.000e-999", "1e22", "1e23", "1e-22", "1e-23", "9007199254740992",
    "9007199254740993", "9007199254740995", "-9007199254740993e0", "18014398509481990", "4.9e-324", "5e-324",
    "2.4703282292062327e-324", "2.4703282292062328e-324", "2.2250738585072011e-308", "2.2250738585072012e-308",
    "2.2250738585072014e-308", "1.7976931348623157e308", "1.7976931348623158e308", "1.7976931348623159e308",
    "1e308", "1e309", "1e400", "1e-400", "-1e-400", "1e999999999999999", "1e-999999999999999", "1e-342", "1e-343",
    "9999999999999999999e-343", "0.30000000000000004", "8.98846567431158e307", "9223372036854775808",
    "6.631236846766476e-316", "3.2378839133029012895e-319", "8.442911973260991817e-309",
    "1.8446744073709551616e19", "9999999999999999999", "18446744073709551615", "18446744073709551621",
    "24243.5834906001893", "444698659.570213167", "1710.1691828477257",
    "000000000000000000000000000000001.5", "0.0000000000000000000000000000000000000000001234567890123456789",
    "1.00000000000000000000000000000000000", "100000000000000000000000000000", "0.10000000000000000000000000",
]  # fmt: skip


@pytest.mark.parametrize("text", FEW_DIGITS)
def test_decimals_that_have_tripped_parsers(text):
    check(text)


@given(
    digits=st.integers(0, 10**19 - 1),
    point=st.integers(0, 30),
    exponent=st.integers(-360, 330),
)
def test_reading_up_to_nineteen_digits(digits, point, exponent):
    text = str(digits).rjust(point + 1, "0")
    check(f"{text[: len(text) - point]}.{text[len(text) - point :]}", f"{digits}e{exponent}", f"{digits}")


@given(
    digits=st.text("0123456789", min_size=20, max_size=800),
    point=st.integers(0, 800),
    exponent=st.integers(-1000, 400),
    sign=st.sampled_from(["", "+", "-"]),
)
def test_reading_many_digits(digits, point, exponent, sign):
    check(f"{sign}{digits[:point]}.{digits[point:]}e{exponent}")


@given(st.floats(min_value=0, max_value=1.7e308), st.integers(-1, 1))
@example(0.0, 0)
@example(2.0**-1022, 0)
@example(1.7976931348623155e308, 0)
def test_reading_half_way_cases(value, nudge):
    text = exactly(halfway(value))
    if nudge:
        text = text + ("" if "." in text else ".") + "0" * 40 + "1" if nudge > 0 else text[:-1]
    check(text)


@given(st.integers(2**53, 2**63), st.integers(-4, 23))
def test_reading_ties_that_nineteen_digits_can_reach(mantissa, power):
    """Half-way cases of at most 19 digits: odd multiples of half a unit, times a power of ten that is an integer."""
    shift = mantissa.bit_length() - 54
    exact = Fraction((mantissa >> shift | 1) << shift) / Fraction(10) ** power
    if exact.denominator == 1 and exact < 10**19:
        check(f"{exact.numerator}e{power}")


@given(st.floats(allow_nan=False, allow_infinity=False))
@example(-0.0)
@example(5e-324)
@example(2.0**122)
@example(9.999999999999999e22)
@example(1e15)
@example(999999999999999.9)
def test_writing(value):
    check_written([value])


def written(values: list[float]) -> list[str]:
    """Each value as it stands in a line of its own."""
    ends = np.arange(len(values) + 1)
    ids = np.ones(len(values), dtype=np.int64)
    nothing = [b""] * len(values)
    text = lines(ends, ids, np.array(values), np.zeros(len(values)), nothing, nothing).decode()
    return [line.removeprefix("0 1:") for line in text.splitlines()]


def check_written(values: list[float]) -> None:
    for value, text in zip(values, written(values), strict=True):
        assert bits(float(text)) == bits(value)
        check(text)
        assert len(significant(text)) == len(significant(repr(value)))


def significant(text: str) -> str:
    return text.partition("e")[0].replace(".", "").lstrip("-").strip("0")
