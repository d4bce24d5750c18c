"""How sure a model is of its order: the Gaussian posterior of score differences."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.special import ndtr

from rankrls._sparse import offset_columns, shift_columns
from rankrls.features.blocks import row_slices
from rankrls.graph import PairGraph, ScoredGraph
from rankrls.model_selection._estimators import checked_model, labelled_data
from rankrls.models._pairs import pair_graph
from rankrls.models._validation import check_alpha, check_choice, check_comparable, check_features
from rankrls.problems.posterior import Fitted, ItemScores, evidence_of, item_scores
from rankrls.problems.subset import SubsetProblem

__all__ = ["Posterior", "pair_posterior", "posterior"]

_PAIRS = 512
Array = NDArray[np.float64]


def posterior(
    estimator: Any,
    X: Any,
    y: Any,
    *,
    qid: Any = None,
    sample_weight: Any = None,
    alpha: float | str | None = None,
    noise: float | str = "marginal",
) -> Posterior:
    r"""The posterior of a model of labels: means and variances of score differences, and P(A above B).

    Least squares is the centre of a Gaussian posterior. With ``balance="examples"`` and tied labels included, the
    defaults, what is assumed of item i of query q is

    .. math:: y_i = f(x_i) + b_q + \varepsilon_i , \qquad \varepsilon_i \sim N(0, s^2 / w_i) ,

    a free level :math:`b_q` for each query, independent noise of the same variance, and a prior
    :math:`f \sim N(0, (s^2 / \alpha) K)`. The mean is then what ``fit`` finds, and the covariance comes from the same
    factorisation. See the mathematics guide for other graphs.

    Parameters
    ----------
    estimator : RankRLS or SparseRankRLS
        Its parameters are used; it need not be fitted and is not changed.
    X, y, qid, sample_weight : as in :meth:`RankRLS.fit`
        One target.
    alpha : float or "evidence", optional
        The estimator's own by default. "evidence" maximises the marginal density of the labels. An alpha that was
        chosen because it ranks well need not know how sure it is: no measure of rankings sees how large scores are.
    noise : {"marginal", "residual"} or float, default="marginal"
        The noise's variance :math:`s^2`: the maximiser of the marginal density, (loss + penalty) / observations; the
        loss / (observations - degrees of freedom), which trusts the prior less; or a known one. With
        ``alpha="evidence"`` the two agree.

    Returns
    -------
    Posterior

    Raises
    ------
    ValueError
        Where alpha is not positive, or lost in rounding; for a precomputed kernel, which does not know new items; and
        for bad input as in ``fit``.

    Notes
    -----
    Primal O(m n^2 + n^3), dual O(m^3); ``alpha="evidence"`` needs the spectrum, about ten times a Cholesky
    factorisation. What ``fit`` does and keeps does not change.

    References
    ----------
    Rasmussen, Williams: Gaussian processes for machine learning. 2006. Equations (2.9), (2.12) and (2.19).

    Examples
    --------
    >>> import numpy as np
    >>> from rankrls import RankRLS
    >>> from rankrls.inspection import posterior
    >>> rng = np.random.default_rng(0)
    >>> X, qid = rng.normal(size=(40, 3)), np.repeat(np.arange(8), 5)
    >>> y = X @ [1.0, 0.5, 0.0] + rng.normal(size=40)
    >>> found = posterior(RankRLS(), X, y, qid=qid)
    >>> mean, std = found.difference(X[:2], X[2:4])
    >>> mean.round(2), std.round(2)
    (array([-1.59,  1.69]), array([0.34, 0.18]))
    >>> found.probability(X[:2], X[2:4]).round(2)
    array([0., 1.])
    """
    model, start = _checked(estimator, alpha, noise, "posterior")
    data = labelled_data(model, X, y, qid, sample_weight)
    beta = float(model.regression_weight)
    check_comparable(data, beta)
    candidate = model._holdout_candidate(data)
    problem = candidate.problems(data)[0].problem
    return _assembled(
        model, problem, candidate.kernel, data.X, start, noise, moved=beta == 0.0, by_query=qid is not None
    )


def pair_posterior(
    estimator: Any,
    X: Any,
    winners: Any,
    losers: Any,
    *,
    strength: Any = None,
    weight: Any = None,
    alpha: float | str | None = None,
    noise: float | str = "marginal",
) -> Posterior:
    r"""The posterior of a model of preferences.

    What is assumed of preference e, independently of all others, is

    .. math:: s_e = f(x_{i_e}) - f(x_{j_e}) + \varepsilon_e , \qquad \varepsilon_e \sim N(0, s^2 / c_e) .

    For votes, whose strengths are all 1, this is a linear model of a yes or no: the order of the probabilities can be
    trusted more than they themselves.

    Parameters
    ----------
    estimator : RankRLS or SparseRankRLS
    X, winners, losers, strength, weight : as in :meth:`RankRLS.fit_pairs`
    alpha, noise : as in :func:`posterior`

    Returns
    -------
    Posterior

    Notes
    -----
    As for :func:`posterior`; the dual takes O(min(preferences, m)^3).

    Examples
    --------
    >>> from rankrls import RankRLS
    >>> from rankrls.inspection import pair_posterior
    >>> X = [[0.0], [1.0], [2.0], [5.0]]
    >>> found = pair_posterior(RankRLS(), X, winners=[1, 2, 0, 3], losers=[0, 1, 2, 2])
    >>> found.probability([[3.0]], [[2.0]]).round(2)
    array([0.79])
    """
    model, start = _checked(estimator, alpha, noise, "pair_posterior")
    X, graph = pair_graph(model, X, winners, losers, strength, weight, kernel=model.kernel)
    problem = model._preference_problem(X, graph)
    return _assembled(model, problem, model._resolved_kernel(X), X, start, noise, moved=True, by_query=False)


@dataclass(frozen=True, eq=False)
class Posterior:
    """A Gaussian posterior of scores; made by :func:`posterior` or :func:`pair_posterior`.

    Attributes
    ----------
    alpha : float
    noise_variance : float
        :math:`s^2`.
    answer_variance : float
        The noise's variance in one more observation of a difference: of one preference of weight 1, or of the
        difference of two labels. Where a graph gives queries noise of their own, the average over the training items.
    n_observations : int
        Preferences, or labels less one for each query.
    degrees_of_freedom : float
        What of the observations the model used up.
    """

    alpha: float
    noise_variance: float
    answer_variance: float
    n_observations: int
    degrees_of_freedom: float
    _model: Any = field(repr=False)
    _kernel: Any = field(repr=False)
    _problem: Any = field(repr=False)
    _fitted: Fitted = field(repr=False)
    _train: Any = field(repr=False)
    _shift: Callable[[Any], Any] = field(repr=False)
    _by_query: bool = field(repr=False)

    def difference(self, X_a: Any, X_b: Any) -> tuple[Array, Array]:
        """Score differences between rows of two tables: their posterior means and standard deviations.

        Parameters
        ----------
        X_a, X_b : as for ``predict``, with equally many rows

        Returns
        -------
        mean, std : ndarray of shape (rows,)
            ``mean`` is the score of a row of ``X_a`` less that of the same row of ``X_b``. The level of a query is not
            part of it.

        Notes
        -----
        Primal O(n^2) a pair, dual O(m (m + n)).
        """
        X_a, X_b = (check_features(self._model, X, kernel=self._model.kernel) for X in (X_a, X_b))
        p = _rows(X_a)
        if _rows(X_b) != p:
            raise ValueError(
                f"X_a has {p} rows and X_b {_rows(X_b)}: each row of one is compared with one of the other."
            )
        mean, variance = np.empty(p), np.empty(p)
        for rows in row_slices(0, p, _PAIRS):
            both = _stacked(X_a[rows], X_b[rows])
            count = rows.stop - rows.start
            found = self._scores(both).centred(np.arange(2 * count))
            a = np.arange(count)
            mean[rows] = found.mean[:count] - found.mean[count:]
            variance[rows] = found.pair_variances(a, a + count)
        return mean, np.sqrt(self.noise_variance * variance)

    def probability(self, X_a: Any, X_b: Any, *, of: str = "scores") -> Array:
        """P(A above B) for rows of two tables.

        Parameters
        ----------
        X_a, X_b : as for :meth:`difference`
        of : {"scores", "labels"}, default="scores"
            Whether what is compared are the scores without noise, or one more observation: two labels, or one answer.

        Returns
        -------
        ndarray of shape (rows,)
            1/2 for two items that the model cannot tell apart.
        """
        check_choice("of", of, ("scores", "labels"))
        mean, std = self.difference(X_a, X_b)
        return normal_above_zero(mean, std**2 + (self.answer_variance if of == "labels" else 0.0))

    def _scores(self, X: Any) -> ItemScores:
        return item_scores(self._problem, self._fitted, self._shift(X), self._kernel, self._train)


def normal_above_zero(mean: Array, variance: Array | float) -> Array:
    """P(z > 0) + P(z = 0) / 2 of normal z, variances of 0 included."""
    std = np.broadcast_to(np.sqrt(variance), mean.shape)
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray(np.where(std > 0.0, ndtr(mean / std), 0.5 + 0.5 * np.sign(mean)))


def _checked(estimator: Any, alpha: Any, noise: Any, what: str) -> tuple[Any, float | None]:
    """A clone with checked parameters, and its alpha; None is to be found."""
    model, _ = checked_model(estimator, None, what, refits=False)
    if isinstance(model.kernel, str) and model.kernel == "precomputed":
        raise ValueError(f"{what} evaluates the kernel between new items: give it by name or as a function.")
    if getattr(model, "_constrained", bool)():
        raise ValueError(f"{what} is Gaussian, and weights of given signs are not: leave positive out.")
    if isinstance(noise, str):
        if noise not in ("marginal", "residual"):
            raise ValueError(_noise_must_be(noise))
    elif isinstance(noise, bool) or not isinstance(noise, Real) or not 0.0 < float(noise) < np.inf:
        raise ValueError(_noise_must_be(noise))
    if isinstance(alpha, str):
        if alpha != "evidence":
            raise ValueError(f"alpha must be 'evidence' or a positive number; got {alpha!r}.")
        return model, None
    value = float(model.alpha) if alpha is None else check_alpha(alpha)
    if value == 0.0:
        raise ValueError("A posterior needs alpha > 0: with alpha = 0 the prior has no bounds.")
    return model, value


def _noise_must_be(noise: Any) -> str:
    return f"noise must be 'marginal', 'residual' or a positive variance; got {noise!r}."


def _assembled(
    model: Any, problem: Any, kernel: Any, X: Any, alpha: float | None, noise: Any, *, moved: bool, by_query: bool
) -> Posterior:
    if alpha is None:
        alpha = evidence_of(problem).best_alpha()
    model.set_params(alpha=alpha)
    fitted = Fitted.solve(problem, alpha)
    left = fitted.observations - fitted.degrees_of_freedom
    if isinstance(noise, str):
        if noise == "residual" and not left > 1e-9 * fitted.observations:
            raise ValueError("The model uses up every observation: no residual is left to measure the noise by.")
        loss, count = (
            (fitted.residual, left) if noise == "residual" else (fitted.residual + fitted.penalty, fitted.observations)
        )
        variance = loss / count
    else:
        variance = float(noise)
    shift: Callable[[Any], Any] = _unmoved
    if kernel.is_linear and not isinstance(problem, SubsetProblem):
        shift = _shift(X)  # differences do not change, and no offset is squared
    train = None if isinstance(problem, SubsetProblem) else shift(X) if moved else X
    return Posterior(
        alpha,
        variance,
        variance * _answer_factor(problem.graph),
        fitted.observations,
        fitted.degrees_of_freedom,
        model,
        kernel,
        problem,
        fitted,
        train,
        shift,
        by_query,
    )


def _answer_factor(graph: ScoredGraph | PairGraph) -> float:
    """The noise of a difference in units of ``s^2``: of a preference 1, of two labels that of both items."""
    if isinstance(graph, PairGraph):
        return 1.0
    trust = graph.eigenvalues[1]
    seen = trust > 0.0
    return float(2.0 * np.average(1.0 / trust[seen], weights=graph.layout.counts[seen]))


def _shift(X: Any) -> Callable[[Any], Any]:
    """What takes the columns' offsets off."""
    if sparse.issparse(X):
        columns, means = offset_columns(X)
        return partial(_moved_sparse, columns, means)
    return partial(_moved, X.mean(axis=0, dtype=np.float64))


# Not closures: a posterior can be pickled.
def _unmoved(Z: Any) -> Any:
    return Z


def _moved(centre: Array, Z: Any) -> Any:
    return (Z.toarray() if sparse.issparse(Z) else Z) - centre


def _moved_sparse(columns: Any, means: Any, Z: Any) -> Any:
    return shift_columns(Z if sparse.issparse(Z) else sparse.csr_array(Z), columns, means)


def _rows(X: Any) -> int:
    return len(X) if isinstance(X, list) else int(X.shape[0])


def _stacked(A: Any, B: Any) -> Any:
    if isinstance(A, list):
        return A + B
    if sparse.issparse(A) or sparse.issparse(B):
        return sparse.csr_array(sparse.vstack([sparse.csr_array(A), sparse.csr_array(B)]))
    return np.concatenate((A, B))
