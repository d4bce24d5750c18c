r"""Which pair of items to ask about next.

With the difference of two scores normal with mean :math:`\mu` and variance v, and an answer with noise of variance
:math:`\rho^2`:

============== =========================================================================================================
``variance``   :math:`\tfrac12 \log_2(1 + v / \rho^2)`: what an answer that is a number tells about the scores, in bits
``vote``       what a yes or no tells, in bits: the entropy of the answer less its expected entropy once the scores
               are known (Houlsby et al. 2011, section 2.2, with their approximation of the second term)
``even``       :math:`-|\mu| / \sqrt v`: whose order is the least certain
============== =========================================================================================================

Several questions are chosen one after the other, each as if those before it had been answered: the variances after an
answer do not depend on what it says.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import entr, ndtr

from rankrls._queries import QueryLayout
from rankrls.features.blocks import row_slices
from rankrls.problems.posterior import ItemScores

Array = NDArray[np.float64]
CRITERIA = ("vote", "variance", "even")
_TILE = 1024
_HALF_ENTROPY = np.sqrt(0.5 * np.pi * np.log(2.0))


@dataclass(frozen=True)
class Choice:
    """A pair of rows, or of none worth asking (-1)."""

    a: int
    b: int
    value: float


def value_of(criterion: str, mean: Array, variance: Array, noise: float) -> Array:
    """What it is worth to ask about differences of that mean and variance; -inf where nothing can be learnt."""
    known = variance <= 0.0
    if criterion == "variance":
        out = 0.5 * np.log2(1.0 + variance / noise)
    elif criterion == "even":
        with np.errstate(divide="ignore", invalid="ignore"):
            out = -np.abs(mean) / np.sqrt(variance)
    else:
        v, squares = variance / noise, mean**2 / noise
        chance = ndtr(-np.sqrt(squares / (1.0 + v)))
        wide = v + _HALF_ENTROPY**2
        out = (entr(chance) + entr(1.0 - chance)) / np.log(2.0)
        out -= _HALF_ENTROPY / np.sqrt(wide) * np.exp(-0.5 * squares / wide)
    return np.where(known, -np.inf, out)


def inside_queries(
    scores: ItemScores, layout: QueryLayout, criterion: str, noise: float, left_out: set[tuple[int, int]]
) -> Choice:
    """The pair of rows of one query that is the most worth asking; (smaller row, larger row) pairs are left out.

    O(pairs x features), in tiles: no matrix of all pairs is held. The first of equals in the order of rows.
    """
    best = Choice(-1, -1, -np.inf)
    barred = _by_query(left_out, layout)
    for query in range(layout.n_queries):
        if layout.counts[query] < 2:
            continue
        rows = layout.rows(query)
        rows = np.arange(rows.start, rows.stop, dtype=np.intp) if isinstance(rows, slice) else rows
        own = scores.centred(rows)
        for i in row_slices(0, len(rows), _TILE):
            for j in row_slices(i.start, len(rows), _TILE):
                mean = own.mean[i, None] - own.mean[j]
                values = value_of(criterion, mean, own.variances(i, j), noise)
                if i == j:
                    values[np.tril_indices(len(values))] = -np.inf
                for a, b in barred.get(query, ()):
                    if i.start <= a < i.stop and j.start <= b < j.stop:
                        values[a - i.start, b - j.start] = -np.inf
                k = int(np.argmax(values))
                a, b = divmod(k, values.shape[1])
                if values[a, b] > best.value:
                    best = Choice(int(rows[i.start + a]), int(rows[j.start + b]), float(values[a, b]))
    return best


def among(
    scores: ItemScores,
    pairs: tuple[NDArray[np.intp], NDArray[np.intp]],
    criterion: str,
    noise: float,
    left_out: set[tuple[int, int]],
) -> Choice:
    """The same among given pairs of rows."""
    a, b = pairs
    values = value_of(criterion, scores.mean[a] - scores.mean[b], scores.pair_variances(a, b), noise)
    if left_out:
        ends = zip(np.minimum(a, b).tolist(), np.maximum(a, b).tolist(), strict=True)
        values[np.fromiter((pair in left_out for pair in ends), dtype=bool, count=len(a))] = -np.inf
    k = int(np.argmax(values)) if len(values) else -1
    return Choice(int(a[k]), int(b[k]), float(values[k])) if k >= 0 and values[k] > -np.inf else Choice(-1, -1, -np.inf)


def _by_query(left_out: set[tuple[int, int]], layout: QueryLayout) -> dict[int, list[tuple[int, int]]]:
    """Pairs as positions inside their queries."""
    if not left_out:
        return {}
    place = np.empty(layout.n_rows, dtype=np.intp)
    place[layout.order] = np.arange(layout.n_rows) - np.repeat(layout.starts[:-1], layout.counts)
    out: dict[int, list[tuple[int, int]]] = {}
    for a, b in left_out:
        if layout.codes[a] == layout.codes[b]:
            out.setdefault(int(layout.codes[a]), []).append((int(place[a]), int(place[b])))
    return out
