"""Decimal text to float64, rounded like Python's ``float``, inside compiled loops.

A decimal is read as ``w * 10**q`` with an integer ``w`` of at most 19 digits. There are three ways to the nearest
float64:

- ``w < 2**53`` and ``abs(q) <= 22``: both factors are exact in float64, so one multiplication or division rounds once
  and correctly (Clinger 1990). Nearly all values of real files are of this kind.
- any other ``w`` of 19 digits or fewer: the 64 x 128 bit product of ``w`` with a table of powers of five contains
enough
  bits to round correctly (Lemire 2021, "Number parsing at a gigabyte per second"; Mushtak and Lemire 2023 prove that
  this covers all cases). Decimals of 17 digits, as written by ``repr``, are of this kind.
- more than 19 digits: the first 19, and the same plus one in the last place, bound the value. If both round to the same
  float64, that is the result; otherwise the decimal is *hard*, and the caller uses Python for it.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from rankrls._compiled import compiled

FINE = 0
BAD = 1
HARD = 2
"""Status of a token in :func:`parse_number`: parsed; not a decimal; parsed only by Python."""

LEAST_POWER = -342  # below it, even a 19 digit integer is less than half the smallest subnormal
_LARGEST_POWER = 308
_EXACT_RECIPROCALS = -27  # down to here 5**-q fits 64 bits and the reciprocal must be rounded up (Lemire 2021, 8)


def _powers_of_five() -> tuple[NDArray[np.uint64], NDArray[np.uint64]]:
    """Leading 128 bits of each power of five, as two words."""
    high = []
    low = []
    for q in range(LEAST_POWER, _LARGEST_POWER + 1):
        power = 5 ** abs(q)
        if q < 0:
            quotient = (1 << (power.bit_length() + 127)) // power
            bits = quotient + 1 if q >= _EXACT_RECIPROCALS else quotient
        else:
            excess = power.bit_length() - 128
            bits = power >> excess if excess > 0 else power << -excess
        high.append(bits >> 64)
        low.append(bits & 0xFFFFFFFFFFFFFFFF)
    return np.array(high, dtype=np.uint64), np.array(low, dtype=np.uint64)


FIVES_HIGH, FIVES_LOW = _powers_of_five()
"""Leading 128 bits of ``5**(LEAST_POWER + k)``, with the first bit set."""

POWERS_OF_TEN = np.array([float(10**k) for k in range(23)])
_TWOS = np.array([math.ldexp(1.0, k) for k in range(-1074, 972)])
_LOW_WORD = np.uint64(0xFFFFFFFF)
_TWO_52 = np.uint64(1 << 52)
_TWO_53 = np.uint64(1 << 53)
_ROOM = np.uint64(10**18)  # below it, one more digit fits into 19
ONE = np.uint64(1)
TEN = np.uint64(10)
ZERO = np.uint64(ord("0"))


@compiled
def multiply(a, b):  # type: ignore[no-untyped-def]
    """High and low word of the product of two 64 bit words."""
    half = np.uint64(32)
    a1 = a >> half
    a0 = a & _LOW_WORD
    b1 = b >> half
    b0 = b & _LOW_WORD
    low = a0 * b0
    middle = a1 * b0 + (low >> half)
    other = a0 * b1 + (middle & _LOW_WORD)
    return a1 * b1 + (middle >> half) + (other >> half), a * b


@compiled
def round_decimal(w, q):  # type: ignore[no-untyped-def]
    """Return the float64 nearest to ``w * 10**q``, ties to even; infinite on overflow.

    Parameters
    ----------
    w : uint64
        At most 19 digits: below 10**19.
    q : int64
        Any exponent.
    """
    if w == np.uint64(0) or q < LEAST_POWER:
        return 0.0
    if q > _LARGEST_POWER:
        return np.inf
    if w < _TWO_53 and -22 <= q <= 22:
        exact = np.float64(np.int64(w))
        return exact / POWERS_OF_TEN[np.uint64(-q)] if q < 0 else exact * POWERS_OF_TEN[np.uint64(q)]
    zeros = 0
    for step in (32, 16, 8, 4, 2, 1):
        if w >> np.uint64(64 - step) == np.uint64(0):
            w <<= np.uint64(step)
            zeros += step
    at = np.uint64(q - LEAST_POWER)
    high, low = multiply(w, FIVES_HIGH[at])
    if high & np.uint64(0x1FF) == np.uint64(0x1FF):  # a carry out of the lower word could reach the rounding bit
        carry, _ = multiply(w, FIVES_LOW[at])
        low += carry
        if low < carry:
            high += np.uint64(1)
    top = np.int64(high >> np.uint64(63))
    shift = np.uint64(top + 9)
    mantissa = high >> shift  # 53 bits and the rounding bit
    exponent = ((217706 * q) >> 16) + 63 + top - zeros + 1023  # 217706 / 2**16 is log2(10) for all q in range
    if exponent <= 0:
        if exponent <= -63:
            return 0.0
        mantissa >>= np.uint64(1 - exponent)
        mantissa = (mantissa + (mantissa & np.uint64(1))) >> np.uint64(1)
        return np.float64(np.int64(mantissa)) * _TWOS[np.uint64(0)]
    if low <= np.uint64(1) and -4 <= q <= 23 and mantissa & np.uint64(3) == np.uint64(1) and mantissa << shift == high:
        mantissa -= np.uint64(1)  # exactly halfway between two float64: round to the even one, which is below
    mantissa = (mantissa + (mantissa & np.uint64(1))) >> np.uint64(1)
    if mantissa >= _TWO_53:
        mantissa = _TWO_52
        exponent += 1
    if exponent >= 2047:
        return np.inf
    return np.float64(np.int64(mantissa)) * _TWOS[np.uint64(exponent - 1)]


@compiled
def parse_number(text, start):  # type: ignore[no-untyped-def]
    """Parse ``[+-] digits [. digits] [e [+-] digits]`` from ``start``.

    The text must contain a byte after the number that cannot belong to it; no bounds are checked.

    Parameters
    ----------
    text : uint8 ndarray
        Bytes of the text.
    start : uint64
        Position of the first byte of the number.

    Returns
    -------
    value : float64
        Parsed value; infinite on overflow, and meaningless unless ``status`` is FINE.
    stop : uint64
        Position after the parsed bytes.
    status : int64
        FINE, BAD or HARD.
    """
    p = start
    negative = text[p] == 45
    if negative or text[p] == 43:
        p += ONE
    w = np.uint64(0)
    q = exponent = digits = 0
    inexact = behind = False
    while True:
        d = np.uint64(text[p]) - ZERO
        if d < TEN:
            digits += 1
            if w < _ROOM:
                w = w * TEN + d
                q -= behind
            else:
                inexact = inexact or d > np.uint64(0)
                q += not behind
        elif text[p] == 46 and not behind:
            behind = True
        else:
            break
        p += ONE
    if digits == 0:
        return 0.0, p, BAD
    if text[p] | 32 == 101:
        p += ONE
        below = text[p] == 45
        if below or text[p] == 43:
            p += ONE
        mark = p
        d = np.uint64(text[p]) - ZERO
        while d < TEN:
            if exponent < 10**12:  # no line is long enough for its digits to make up for more
                exponent = exponent * 10 + np.int64(d)
            p += ONE
            d = np.uint64(text[p]) - ZERO
        if p == mark:
            return 0.0, p, BAD
        q += -exponent if below else exponent
    value = round_decimal(w, q)
    hard = inexact and value != round_decimal(w + ONE, q)
    return (-value if negative else value), p, (HARD if hard else FINE)
