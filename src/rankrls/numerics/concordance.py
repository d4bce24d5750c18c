"""Confidence intervals of concordance indices, and counts of the pairs behind them."""

from __future__ import annotations

import numpy as np
from scipy import sparse
from scipy.special import expit, logit, ndtri

from rankrls._typing import Array, Index

CONFIDENCE = 0.95
"""Default confidence level."""

METHOD = "normal on the logit scale, Hoeffding projection; Clopper-Pearson over disjoint pairs at 0 and 1"


def concordance_interval(score: Array, error: Array, disjoint: int, confidence: float) -> tuple[Array, Array]:
    """Lower and upper ends of the confidence interval of each score.

    The interval is computed on the logit scale, which keeps its ends inside (0, 1). A score of 0 or 1 has no standard
    error: its interval is that of Clopper and Pearson for ``disjoint`` independent trials with the same outcome, one
    for each of the pairs without a common item.
    """
    tail = 0.5 * (1.0 - confidence)
    inside = (score > 0.0) & (score < 1.0)
    middle = np.where(inside, score, 0.5)
    reach = ndtri(1.0 - tail) * error / (middle * (1.0 - middle))
    low = expit(logit(middle) - reach)
    high = expit(logit(middle) + reach)
    all_alike = tail ** (1.0 / max(disjoint, 1))
    low = np.where(inside, low, np.where(score >= 1.0, all_alike, 0.0))
    high = np.where(inside, high, np.where(score >= 1.0, 1.0, 1.0 - all_alike))
    return low, high


def ordered_pairs(y: Array, codes: Index) -> int:
    """Number of pairs of different labels inside queries. O(m log m)."""
    query, alike = _label_counts(y, codes)
    inside = np.bincount(query, alike).astype(np.int64)
    return int((inside**2).sum() - (alike**2).sum()) // 2


def disjoint_pairs(y: Array, codes: Index) -> int:
    """Largest number of pairs of different labels inside queries that share no item. O(m log m)."""
    query, alike = _label_counts(y, codes)
    inside = np.bincount(query, alike).astype(np.int64)
    largest = np.zeros(len(inside), dtype=np.int64)
    np.maximum.at(largest, query, alike)
    return int(np.minimum(inside // 2, inside - largest).sum())


def _label_counts(y: Array, codes: Index) -> tuple[Index, Index]:
    """Query of each group of equal labels inside a query, and size of the group."""
    groups, alike = np.unique(codes + 1j * y, return_counts=True)
    return groups.real.astype(np.intp), alike


def judged_pairs(
    differences: Array,
    order: Array,
    i: Index,
    j: Index,
    n_items: int,
    weight: Array | None = None,
) -> tuple[Array, Array]:
    """Concordance of the given pairs for each alpha, and sums of residuals of each item: their norm is its error.

    ``order`` is 1 if the first item of a pair should score higher, and -1 otherwise.
    """
    weight = np.ones(len(i)) if weight is None else weight
    right = 0.5 + 0.5 * np.sign(differences) * order[:, None]
    score, _, sums = _residuals(right, weight, i, j, n_items)
    return score, sums


def item_values(
    right: Array,
    weight: Array,
    i: Index,
    j: Index,
    n_items: int,
) -> Array:
    """One value per item, (items, columns), whose mean and standard error are those of the share of correct pairs.

    Each value is the share plus a multiple of the item's sum of residuals (the projection of Hoeffding 1948). The
    variance of the sums counts each pair at both of its ends, which is once too often (Aronow, Samii, Assenova,
    Political Analysis 23, 2015); the multiple corrects for this.
    """
    share, residuals, sums = _residuals(right, weight, i, j, n_items)
    pair, number = np.unique(np.minimum(i, j) * n_items + np.maximum(i, j), return_inverse=True)
    of_pairs = sparse.csr_array((np.ones(len(i)), (number, np.arange(len(i)))), shape=(len(pair), len(i))) @ residuals
    by_items = np.einsum("ik,ik->k", sums, sums)
    twice = np.divide(np.einsum("pk,pk->k", of_pairs, of_pairs), by_items, out=np.zeros(len(share)), where=by_items > 0)
    return np.asarray(share + n_items * np.sqrt(1.0 - np.minimum(twice, 0.5)) * sums)


def _residuals(right: Array, weight: Array, i: Index, j: Index, n_items: int) -> tuple[Array, Array, Array]:
    """Weighted share of correct pairs, each pair's part of its residual, and their sums over the pairs of each item."""
    share = weight @ right / weight.sum()
    residuals = weight[:, None] * (right - share) / weight.sum()
    ends = np.concatenate((i, j))
    pairs = np.tile(np.arange(len(i)), 2)
    member = sparse.csr_array((np.ones(len(ends)), (ends, pairs)), shape=(n_items, len(i)))
    return share, residuals, np.asarray(member @ residuals)


def greedy_matching(i: Index, j: Index) -> int:
    """Number of pairs in a maximal set without common items: at least half of the largest possible number."""
    used: set[int] = set()
    count = 0
    for a, b in zip(i.tolist(), j.tolist(), strict=True):
        if a not in used and b not in used:
            used |= {a, b}
            count += 1
    return count
