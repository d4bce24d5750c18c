"""Float64 to the shortest decimal that is read back as the same float64, inside compiled loops."""

from __future__ import annotations

import math

import numpy as np

from rankrls._compiled.jit import compiled
from rankrls.io._decimal import FIVES_HIGH, FIVES_LOW, LEAST_POWER, multiply, round_decimal

__all__ = ["LONGEST", "format_block", "format_number"]

LONGEST = 25
"""Bytes that a number takes at most: ``-2.2250738585072014e-308`` has 24."""

_LEAST_NORMAL = 2.0**-1022


@compiled
def _write_digits(out, p, n):  # type: ignore[no-untyped-def]
    """Write a whole number; where it ends."""
    ten = np.uint64(10)
    length = 1
    rest = n // ten
    while rest:
        length += 1
        rest //= ten
    for i in range(length - 1, -1, -1):
        out[np.uint64(p + i)] = np.uint8(np.uint64(48) + n % ten)
        n //= ten
    return p + length


@compiled
def _leading_digits(mantissa, exponent, power):  # type: ignore[no-untyped-def]
    """``mantissa * 2**exponent * 10**power``, rounded to a whole number (it has 17 digits at most)."""
    at = np.uint64(power - LEAST_POWER)
    high, low = multiply(mantissa, FIVES_HIGH[at])
    carry, _ = multiply(mantissa, FIVES_LOW[at])
    low += carry
    if low < carry:
        high += np.uint64(1)
    # 5**power is the table's 128 bits times 2**(floor(log2(5**power)) - 127); 152170 / 2**16 is log2(5)
    drop = -(exponent + power + ((152170 * power) >> 16) - 127) - 128
    return ((high >> np.uint64(drop - 1)) + np.uint64(1)) >> np.uint64(1)


@compiled
def _shortest(value):  # type: ignore[no-untyped-def]
    """The whole number ``n`` and the exponent ``q`` of the shortest ``n * 10**q`` that rounds to ``value`` > 0.

    The nearest decimal of 15 digits, of 16, of 17, until one reads back as the value: the reader's own rounding is
    the judge, so that what is written cannot be read differently.
    """
    fraction, binary = math.frexp(value)
    mantissa = np.uint64(np.int64(fraction * 2.0**53)) << np.uint64(11)
    exponent = np.int64(binary) - 64
    decimal = ((np.int64(binary) - 1) * 78913) >> 18  # 78913 / 2**18 is log10(2): 10**decimal <= 2**(binary - 1)
    if decimal < 290 and value >= round_decimal(np.uint64(1), decimal + 1):
        decimal += 1
    n, q = np.uint64(0), np.int64(0)
    for digits in range(1 if value < _LEAST_NORMAL else 15, 18):
        power = digits - 1 - decimal
        n, q = _leading_digits(mantissa, exponent, power), -power
        if round_decimal(n, q) == value:
            break
        if fraction == 0.5 and round_decimal(n + np.uint64(1), q) == value:
            n += np.uint64(1)  # a power of two: float64 lie half as dense above it, and the shortest may be there
            break
    while n % np.uint64(10) == np.uint64(0):
        n //= np.uint64(10)
        q += 1
    return n, q


@compiled
def format_number(out, p, value):  # type: ignore[no-untyped-def]
    """Write a finite number at ``out[p]``; where it ends."""
    if value < 0 or (value == 0 and math.copysign(1.0, value) < 0):
        out[np.uint64(p)] = 45
        p += 1
        value = -value
    if value < 1e15 and value == np.int64(value):
        return _write_digits(out, p, np.uint64(np.int64(value)))
    n, q = _shortest(value)
    end = _write_digits(out, p, n)
    length = end - p
    point = length + q  # digits before the point
    if q >= 0 and point <= 16:
        for i in range(q):
            out[np.uint64(end + i)] = 48
        return end + q
    if q < 0 < point:
        for i in range(end, p + point, -1):
            out[np.uint64(i)] = out[np.uint64(i - 1)]
        out[np.uint64(p + point)] = 46
        return end + 1
    if -4 < point <= 0:
        for i in range(length - 1, -1, -1):
            out[np.uint64(p + 2 - point + i)] = out[np.uint64(p + i)]
        out[np.uint64(p)], out[np.uint64(p + 1)] = 48, 46
        for i in range(-point):
            out[np.uint64(p + 2 + i)] = 48
        return end + 2 - point
    if length > 1:
        for i in range(end, p + 1, -1):
            out[np.uint64(i)] = out[np.uint64(i - 1)]
        out[np.uint64(p + 1)] = 46
        end += 1
    out[np.uint64(end)] = 101
    end += 1
    if point < 1:
        out[np.uint64(end)] = 45
        end += 1
    return _write_digits(out, end, np.uint64(abs(point - 1)))


@compiled
def format_block(indptr, ids, values, heads, head_ends, tails, tail_ends, out):  # type: ignore[no-untyped-def]
    """Write rows: each one's head, then ``id:value`` of its entries, then its tail, which ends the line.

    Returns
    -------
    int
        How many bytes of ``out`` were filled.
    """
    p = 0
    head, tail = 0, 0
    for row in range(len(indptr) - 1):
        for i in range(head, head_ends[row]):
            out[np.uint64(p)] = heads[np.uint64(i)]
            p += 1
        head = head_ends[row]
        for entry in range(indptr[row], indptr[row + 1]):
            out[np.uint64(p)] = 32
            p = _write_digits(out, p + 1, np.uint64(ids[np.uint64(entry)]))
            out[np.uint64(p)] = 58
            p = format_number(out, p + 1, values[np.uint64(entry)])
        for i in range(tail, tail_ends[row]):
            out[np.uint64(p)] = tails[np.uint64(i)]
            p += 1
        tail = tail_ends[row]
    return p
