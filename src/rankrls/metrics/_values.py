"""Checked scores and weights, and averages over queries, in which NaN marks a query without a value."""

from __future__ import annotations

from typing import Any

import numpy as np

from rankrls._checks import array_of, check_finite, numbers_of, refuse_where
from rankrls._errors import InputError
from rankrls._queries import query_layout
from rankrls._typing import AnyArray, Array


def labelled_rows(y: Any, scores: Any, qid: Any, weights: Any) -> tuple[Any, Any, Any, Any]:
    """Labels, scores, query ids and weights of the labelled rows; the label NaN marks an unlabelled row."""
    labels = array_of("y", y)
    if labels.dtype.kind != "f" or labels.ndim not in (1, 2):
        return y, scores, qid, weights
    known = ~np.isnan(np.atleast_2d(labels.T).T).all(axis=1)
    if known.all():
        return y, scores, qid, weights
    if not known.any():
        raise InputError(
            "Every label is NaN, so there is nothing to evaluate. Make folds of the labelled queries, and keep "
            "the unlabelled rows in each training set.",
            parameter="y",
        )
    rows = np.flatnonzero(known)
    qid = None if qid is None else query_layout(qid, len(labels)).codes[rows]
    weights = check_weights(weights, len(labels))
    return labels[rows], np.asarray(scores)[rows], qid, None if weights is None else weights[rows]


def check_scores(y_score: Any, n_rows: int | None = None) -> Array:
    """Scores as a finite float64 vector or matrix, with ``n_rows`` rows if that is given."""
    scores = numbers_of("y_score", y_score)
    if scores.ndim not in (1, 2):
        raise InputError(f"y_score must have shape (m,) or (m, columns); got {scores.shape}.", parameter="y_score")
    if n_rows is not None and len(scores) != n_rows:
        raise InputError(
            f"y_score has {len(scores)} rows but y_true has {n_rows}: one score per label is needed.",
            parameter="y_score",
        )
    check_finite("y_score", scores, "score")
    return scores


def check_weights(sample_weight: Any, n_rows: int) -> Array | None:
    """Row weights as a finite, non-negative float64 vector, or None."""
    if sample_weight is None:
        return None
    w = numbers_of("sample_weight", sample_weight)
    if w.shape != (n_rows,):
        raise InputError(
            f"sample_weight must have one weight per row, shape ({n_rows},); got {w.shape}.", parameter="sample_weight"
        )
    check_finite("sample_weight", w, "weight")
    refuse_where(
        w < 0,
        "sample_weight",
        lambda row: f"sample_weight is negative in row {row} ({w[row]:g}): it must be 0 or more.",
    )
    return w


def mean_of_judged(values: Array) -> Array:
    """Mean of each column of (queries, columns) over the entries that are not NaN; NaN where there are none."""
    return ratio(np.nansum(values, axis=0), (~np.isnan(values)).sum(axis=0))


def mean_and_error(values: Array) -> tuple[Array, Array]:
    """Mean of each column over the entries that are not NaN, and its standard error, NaN for fewer than two."""
    mean = mean_of_judged(values)
    count = (~np.isnan(values)).sum(axis=0)
    squares = np.nansum((values - mean) ** 2, axis=0)
    return mean, np.sqrt(ratio(squares, count * (count - 1.0)))


def ratio(numerator: Array, denominator: AnyArray) -> Array:
    """Numerator over denominator, NaN if the denominator is not positive."""
    out = np.full(np.broadcast_shapes(numerator.shape, denominator.shape), np.nan)
    np.divide(numerator, denominator, out=out, where=denominator > 0)
    return out
