"""Counts of pairs against enumeration and matchings."""

import itertools

import numpy as np
from hypothesis import given, strategies as st

from rankrls.numerics.concordance import disjoint_pairs, ordered_pairs

ROWS = st.lists(st.tuples(st.integers(0, 3), st.sampled_from([0.0, -0.5, 1.0, 1e300])), max_size=9)


def _most_disjoint(pairs):
    """The largest matching, by trying everything."""
    if not pairs:
        return 0
    (i, j), *rest = pairs
    without = [pair for pair in rest if not {i, j} & set(pair)]
    return max(1 + _most_disjoint(without), _most_disjoint(rest))


@given(ROWS)
def test_pairs_are_counted(rows):
    codes = np.array([query for query, _ in rows], dtype=np.intp)
    y = np.array([label for _, label in rows], dtype=np.float64)
    indices = itertools.combinations(range(len(rows)), 2)
    pairs = [(i, j) for i, j in indices if codes[i] == codes[j] and y[i] != y[j]]
    assert ordered_pairs(y, codes) == len(pairs)
    assert disjoint_pairs(y, codes) == _most_disjoint(pairs)
