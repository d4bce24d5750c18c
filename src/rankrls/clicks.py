r"""Clicks as labels: examination of positions, and labels and weights that correct for it.

A result is clicked if it is examined and attractive. In the position-based model, the click rate of item i, shown at
position k(i), is ``theta_k(i) g(x_i)``: the examination of the position times the relevance of the item. A model
fitted to uncorrected clicks reproduces the old ranking.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy import linalg, sparse
from sklearn.preprocessing import StandardScaler
from sklearn.random_projection import SparseRandomProjection

from rankrls._checks import check_finite, numbers_of, refuse_where, vector_of
from rankrls._errors import InputError, InputWarning, warn_user
from rankrls._queries import query_layout
from rankrls._rows import check_finite_features
from rankrls._shown import Shown, records, table_text
from rankrls._typing import Array, IdsLike, Index, ItemsLike, VectorLike

__all__ = ["Propensities", "corrected_clicks", "estimate_propensities"]

LEAST_EXAMINATION = 0.01
"""Floor of the examination of a position and of the predicted relevance, relative to those of the first position."""
ENOUGH = 50
"""Minimum number of impressions for a position to get its own examination."""
CONFOUNDED = 0.75
"""Share of the variance of log positions explained by the features that causes a warning. In simulations, errors grow
from about 0.75; with one feature and results sorted by it (0.8), the corrected ranking is sometimes reversed."""

_ROUNDS = 100
_SETTLED = 1e-11
_MOST_FEATURES = 200
_BOOTSTRAP = 30
_BOOTSTRAP_ROWS = 100_000


@dataclass(frozen=True, eq=False, repr=False)
class Propensities(Shown):
    """Examination of each position by users, relative to the first position.

    Attributes
    ----------
    positions : ndarray of shape (k,)
        Positions that occur, in ascending order.
    examination : ndarray of shape (k,)
        Share of sessions that examine the position, relative to the first; 1 for the first.
    standard_error : ndarray of shape (k,)
        Standard errors over bootstrap samples of the queries; 0 for the first position and for known propensities. NaN
        if there is only one query.
    impressions : ndarray of shape (k,)
        Number of impressions per position; 0 for known propensities.
    assumed_shown : bool
        Whether impressions were missing, so that every row counts as shown once.

    Examples
    --------
    >>> from rankrls.clicks import Propensities
    >>> known = Propensities.known({1: 1.0, 2: 0.6, 3: 0.4})
    >>> known.of([1, 3, 2])
    array([1. , 0.4, 0.6])
    """

    positions: NDArray[np.int64]
    examination: Array
    standard_error: Array
    impressions: Array
    assumed_shown: bool = False

    @classmethod
    def known(cls, examination: Mapping[Any, float]) -> Propensities:
        """Create propensities from a mapping of positions to numbers above 0, such as those of an intervention.

        Positions are whole numbers, or their texts as in keys of JSON.
        """
        if not isinstance(examination, Mapping):
            wanted = "propensities must map positions to numbers, as in {1: 1.0, 2: 0.6}"
            raise InputError(f"{wanted}; got {type(examination).__name__}.", parameter="propensities")
        given = vector_of("propensities", [*examination], "one number for each position")
        order = np.argsort(given)
        positions = _whole("propensities", given)[order]
        values = vector_of("propensities", [*examination.values()], "one number for each position")[order]

        def problem(k: int) -> str:
            return f"The propensity of position {positions[k]} must be a number above 0; got {values[k]}."

        refuse_where(~(np.isfinite(values) & (values > 0.0)), "propensities", problem)
        return cls(positions, values, np.zeros(len(values)), np.zeros(len(values)))

    def of(self, position: VectorLike) -> Array:
        """Examination of each row's position; InputError with the row if a position has no propensity."""
        rows = vector_of("position", position, "one for each row")

        def problem(k: int) -> str:
            return f"Row {k} has position {rows[k]:g}, which has no propensity."

        refuse_where(~np.isin(rows, self.positions), "position", problem)
        return self.examination[np.searchsorted(self.positions, rows)]

    @property
    def interval(self) -> Array:
        """Bounds of the 95 % intervals, of shape (2, k)."""
        return np.maximum(self.examination + np.multiply.outer([-1.96, 1.96], self.standard_error), 0.0)

    def as_dict(self) -> dict[str, dict[str, float]]:
        """Values by position, for JSON."""
        low, high = self.interval
        columns = {"examination": self.examination, "low": low, "high": high, "impressions": self.impressions}
        return dict(zip(map(str, self.positions), records(columns), strict=True))

    def __str__(self) -> str:
        rows = []
        for position, row in self.as_dict().items():
            interval = "unknown" if np.isnan(row["low"]) else f"{row['low']:.3f} to {row['high']:.3f}"
            rows.append([position, f"{row['examination']:.3f}", interval, f"{row['impressions']:.0f}"])
        text = table_text(["position", "examination", "95 % interval", "impressions"], rows)
        if self.assumed_shown:
            text += "\nWithout impressions, every row counts as shown once, including results that users did not reach."
        return text


PropensitiesLike: TypeAlias = Propensities | Mapping[Any, float]
"""Known examination by position."""


def estimate_propensities(
    X: ItemsLike,
    clicks: VectorLike,
    position: VectorLike,
    *,
    qid: IdsLike | None = None,
    impressions: VectorLike | None = None,
    random_state: int = 0,
) -> Propensities:
    r"""Estimate the examination of each position by users, using alternating least squares.

    .. math:: \min_{\theta, g} \sum_i n_i (c_i - \theta_{k(i)} g(x_i))^2 , \qquad \theta_1 = 1 ,

    with the click rate :math:`c_i` of :math:`n_i` impressions at position k(i), and g linear in the features and their
    squares. Examination is identifiable if similar items were shown at different positions.

    Parameters
    ----------
    X : array-like or sparse matrix of shape (m, n)
        Features, or the rows of a kernel matrix. More than 200 are first projected on 100 random directions.
    clicks : array-like of shape (m,)
        Number of clicks of each row, from 0 to its impressions.
    position : array-like of shape (m,)
        Position of each item, as whole numbers; the smallest is the top of the page.
    qid : array-like of shape (m,), optional
        Query ids. The bootstrap resamples queries if given, otherwise rows.
    impressions : array-like of shape (m,), optional
        Number of times that each row was shown; 1 by default. Rows that were never shown are left out. Without
        impressions, they count as shown and not clicked, which biases the examination of late positions downwards.
    random_state : int, default=0
        Seed of the bootstrap.

    Returns
    -------
    Propensities

    Raises
    ------
    InputError
        If a position is missing or not a whole number, or clicks are negative or exceed the impressions, both with the
        row; or if the first position has fewer than 50 impressions or no click.

    Warns
    -----
    InputWarning
        If the features explain at least three quarters of the variance of the log positions. Then examination and
        relevance are hard to separate: shuffle some results, or pass known propensities.

    Notes
    -----
    O(m d^2 + k d^2) for each of 31 estimates, with d = 2n + 1 and k positions; each of up to 100 rounds costs O(m d).
    Positions with fewer than 50 impressions share the value of the position before them. Trust bias (clicks on results
    because they are at the top) and differences between users are not modelled.

    References
    ----------
    Joachims, Swaminathan, Schnabel: Unbiased learning-to-rank with biased feedback. WSDM 2017.

    Wang, Golbandi, Bendersky, Metzler, Najork: Position bias estimation for unbiased learning to rank in personal
    search. WSDM 2018.

    Examples
    --------
    >>> import numpy as np
    >>> from rankrls.clicks import estimate_propensities
    >>> rng = np.random.default_rng(0)
    >>> X, position = rng.normal(size=(6000, 3)), np.tile([1, 2, 3, 4, 5], 1200)
    >>> attraction = 1 / (1 + np.exp(1 - X[:, 0]))
    >>> clicks = rng.random(6000) < attraction / position
    >>> found = estimate_propensities(X, clicks, position, qid=np.repeat(np.arange(1200), 5))
    >>> found.examination.round(1)
    array([1. , 0.5, 0.3, 0.2, 0.2])
    """
    rates, n, rows = _checked(clicks, impressions, position)
    features = _features(X)
    m = len(rates)
    if len(features) != m:
        raise InputError(f"X has {len(features)} rows, but there are {m} clicks.", parameter="X")
    positions, codes = np.unique(rows, return_inverse=True)
    shown = np.bincount(codes, n).astype(np.float64)
    if shown[0] < ENOUGH:
        problem = f"Position {positions[0]}, the first, has {shown[0]:g} impressions; at least {ENOUGH} are needed."
        raise InputError(problem, parameter="position")
    group = np.cumsum(shown >= ENOUGH) - 1
    codes = group[codes]
    first = codes == 0
    top_rate = np.average(rates[first], weights=n[first])
    if not top_rate > 0.0:
        problem = f"Position {positions[0]}, the first, has no click, and examination is measured against it."
        raise InputError(problem, parameter="clicks")
    rates = rates / top_rate  # floors are parts of it
    logarithms = np.log1p(codes)
    from sklearn.linear_model import LinearRegression  # imported here because it takes a tenth of a second

    explained = LinearRegression().fit(features, logarithms, n).score(features, logarithms, n)
    if codes.any() and explained > CONFOUNDED:
        problem = f"The features explain {100 * explained:.0f} % of the positions: examination and relevance "
        problem += "are hard to separate. Pass known propensities, or shuffle some results."
        warn_user(InputWarning(problem, parameter="position"))
    theta = _alternate(features, codes, rates, n, np.ones(group[-1] + 1))
    if qid is None:  # bootstrap samples do not depend on the order of rows
        query = np.argsort(np.lexsort([*features.T, rates, n, codes]))
    else:
        query = query_layout(qid, m).codes_by_id
    error = _bootstrap(features, codes, rates, n, theta, query, random_state)
    return Propensities(positions, theta[group], error[group], shown, impressions is None)


def corrected_clicks(
    X: ItemsLike,
    clicks: VectorLike,
    position: VectorLike,
    *,
    qid: IdsLike | None = None,
    impressions: VectorLike | None = None,
    propensities: PropensitiesLike | None = None,
) -> tuple[Array, Array, Propensities]:
    r"""Return labels :math:`c_i / \theta_{k(i)}`, weights :math:`n_i \theta_{k(i)}`, and the propensities.

    Parameters
    ----------
    X, clicks, position, qid, impressions : as in :func:`estimate_propensities`
    propensities : Propensities or dict of position to number, optional
        Known propensities; estimated by default.

    Returns
    -------
    labels, weights : ndarray of shape (m,)
    propensities : Propensities
    """
    if propensities is None:
        found = estimate_propensities(X, clicks, position, qid=qid, impressions=impressions)
    else:
        found = propensities if isinstance(propensities, Propensities) else Propensities.known(propensities)
    rates, n, rows = _checked(clicks, impressions, position)
    theta = found.of(rows)
    return rates / theta, n * theta, found


def _checked(
    clicks: VectorLike, impressions: VectorLike | None, position: VectorLike
) -> tuple[Array, Array, NDArray[np.int64]]:
    """Click rate of each row (0 if it was never shown), its impressions and its position."""
    c = vector_of("clicks", clicks, "one for each row")
    n = np.ones(len(c)) if impressions is None else vector_of("impressions", impressions, "one for each row")
    rows = vector_of("position", position, "one for each row")
    for name, values in {"clicks": c, "impressions": n, "position": rows}.items():
        if len(values) != len(c):
            raise InputError(f"{name} has {len(values)} rows, but there are {len(c)} clicks.", parameter=name)
        check_finite(name, values, "entry")

    def impossible(k: int) -> str:
        problem = f"Row {k} has {c[k]:g} clicks; they must be between 0 and its impressions, {n[k]:g}."
        return f"{problem} Pass how often each row was shown (impressions), 1 by default."

    def rate(k: int) -> str:
        problem = f"clicks must be numbers of clicks, not rates; row {k} has {c[k]:g} in {n[k]:g} impressions."
        return f"{problem} Multiply the rates by the impressions."

    positions = _whole("position", rows)
    refuse_where((c < 0.0) | (c > n), "clicks", impossible)
    if c.max(initial=0.0) <= 1.0:
        refuse_where((c % 1.0 != 0.0) & (n > 1.0), "clicks", rate)
    return np.divide(c, n, out=np.zeros_like(c), where=n > 0.0), n, positions


def _features(X: ItemsLike) -> Array:
    """A constant, the standardized features, and their centred squares."""
    values: Any = sparse.csr_array(X, dtype=np.float64) if sparse.issparse(X) else numbers_of("X", X)
    if values.ndim != 2:
        raise InputError(f"X must have shape (m, n), one row per click; got {values.shape}.", parameter="X")
    check_finite_features(values, None, products=True)
    if values.shape[1] > _MOST_FEATURES:
        projection = SparseRandomProjection(_MOST_FEATURES // 2, dense_output=True, random_state=0)
        values = projection.fit_transform(values)
    dense = values.toarray() if sparse.issparse(values) else values
    dense = StandardScaler().fit_transform(dense)
    squares = dense**2
    return np.hstack([np.ones((len(dense), 1)), dense, squares - squares.mean(axis=0)])


def _whole(name: str, positions: Array) -> NDArray[np.int64]:
    """Positions as whole numbers."""
    check_finite(name, positions, "position")
    broken = (positions % 1.0 != 0.0) | (np.abs(positions) > 2.0**53)
    refuse_where(broken, name, lambda k: f"Positions must be whole numbers; entry {k} is {positions[k]:g}.")
    return positions.astype(np.int64)


def _alternate(Z: Array, codes: Index, rates: Array, n: Array, theta: Array) -> Array:
    """Alternate ridge regression for g with one division per position, until the examination converges."""
    # X'X of each position is computed once; a round then needs no product over all rows except the predictions.
    members = [np.flatnonzero(codes == k) for k in range(len(theta))]
    G = np.stack([Z[rows].T @ (Z[rows] * n[rows, None]) for rows in members])
    b = np.stack([Z[rows].T @ (n[rows] * rates[rows]) for rows in members])
    penalized = np.r_[0.0, np.ones(Z.shape[1] - 1)]
    for _ in range(_ROUNDS):
        # Ridge for d coefficients that explain half of the variance, on as many rows as these weights represent: the
        # top positions weigh most, and a regression that fitted their noise would attribute it to examination.
        weights = n * theta[codes] ** 2
        ridge = Z.shape[1] * (weights @ weights) / weights.sum() * penalized
        system = np.tensordot(theta**2, G, 1) + np.diag(ridge)
        g = np.maximum(Z @ linalg.solve(system, theta @ b, assume_a="pos"), LEAST_EXAMINATION)
        new = np.bincount(codes, n * rates * g, len(theta)) / np.bincount(codes, n * g * g, len(theta))
        new = np.maximum(new, LEAST_EXAMINATION)
        new = np.maximum(new / new[0], LEAST_EXAMINATION)
        settled = np.abs(new - theta).max() <= _SETTLED * new.max()
        theta = new
        if settled:
            break
    return theta


def _bootstrap(Z: Array, codes: Index, rates: Array, n: Array, theta: Array, query: Index, seed: int) -> Array:
    """Standard errors over samples of queries; for large data, a subset of the queries is drawn and the error scaled.

    They are NaN if fewer than two samples have a click at the first position.
    """
    rng = np.random.default_rng(seed)
    queries = int(query.max()) + 1
    drawn = max(int(queries * min(1.0, _BOOTSTRAP_ROWS / len(n))), 1)
    samples = []
    for _ in range(_BOOTSTRAP):
        times = np.bincount(rng.integers(queries, size=drawn), minlength=queries)[query]
        rows = np.flatnonzero(times)
        codes_drawn = codes[rows]
        weights = n[rows] * times[rows]
        shown = np.bincount(codes_drawn, weights, len(theta))
        clicked = np.bincount(codes_drawn, weights * rates[rows], len(theta))
        if shown.all() and clicked[0] > 0.0:
            samples.append(_alternate(Z[rows], codes_drawn, rates[rows], weights, theta))
    if queries < 2 or len(samples) < 2:
        return np.where(np.arange(len(theta)) == 0, 0.0, np.nan)
    return np.asarray(np.std(samples, axis=0, ddof=1) * np.sqrt(drawn / queries))
