"""Uncertainty of a model's order: the Gaussian posterior of score differences."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import sparse
from scipy.special import ndtr
from sklearn.base import BaseEstimator
from sklearn.utils.validation import _num_samples

from rankrls._checks import check_word
from rankrls._comparisons import Data, Features
from rankrls._errors import InputError
from rankrls._shown import Shown
from rankrls._typing import Array, IdsLike, ItemsLike, Matrix, VectorLike
from rankrls.model_selection import checked_spec, labelled_data
from rankrls.models.intake import check_features, preferred_items
from rankrls.models.parameters import number
from rankrls.models.spec import LeastSquaresSpec
from rankrls.numerics.posterior import Evidence, feature_differences, kernel_differences
from rankrls.selection.least_squares import BasisSolver, ItemSolver, KernelSolver, Solver

_PAIRS = 128  # number of pairs compared at once


def posterior(
    estimator: BaseEstimator,
    X: ItemsLike,
    y: VectorLike,
    *,
    qid: IdsLike | None = None,
    sample_weight: VectorLike | None = None,
    alpha: float | str | None = None,
    noise: float | None = None,
) -> Posterior:
    r"""Compute the posterior of a model of labels: means and variances of score differences, and P(A above B).

    The least-squares solution is the mean of a Gaussian posterior. With ``balance="examples"`` and tied labels
    included, the defaults, the model for item i of query q is

    .. math:: y_i = f(x_i) + b_q + \varepsilon_i , \qquad \varepsilon_i \sim N(0, s^2 / w_i) ,

    a free level :math:`b_q` for each query, independent noise of equal variance, and a prior :math:`f \sim N(0, (s^2
    / \alpha) K)`. The mean is then the model of ``fit``, and the covariance comes from the same factorization. See the
    mathematics guide for other graphs.

    Parameters
    ----------
    estimator : RankRLS or SparseRankRLS
        Estimator whose parameters are used; it need not be fitted and is not changed.
    X, y, qid, sample_weight : as in :meth:`RankRLS.fit`
        Data with one target.
    alpha : float or "evidence", optional
        Regularization parameter, by default the estimator's own. "evidence" maximizes the marginal density of the
        labels. An alpha selected using a ranking measure can give wrong variances, because these measures do not depend
        on the size of scores.
    noise : float, optional
        Known variance :math:`s^2` of the noise. By default the maximizer of the marginal density, (loss + penalty) /
        observations.

    Returns
    -------
    Posterior

    Raises
    ------
    ValueError
        If alpha is not positive, or too small for double precision; if the kernel is precomputed, because it cannot be
        evaluated for new items; and if the data are invalid, as in ``fit``.

    Notes
    -----
    Primal O(m n^2 + n^3), dual O(m^3); ``alpha="evidence"`` needs the spectrum, about ten times the cost of a Cholesky
    factorization. ``fit`` itself is not affected.

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
    spec, start = checked_prior(estimator, alpha, noise, "posterior")
    data = labelled_data(spec, X, y, qid, sample_weight, spec.regression_weight)
    return _assembled(spec, data, start, noise)


def pair_posterior(
    estimator: BaseEstimator,
    X: ItemsLike,
    winners: VectorLike,
    losers: VectorLike,
    *,
    strength: VectorLike | None = None,
    weight: VectorLike | None = None,
    alpha: float | str | None = None,
    noise: float | None = None,
) -> Posterior:
    r"""Compute the posterior of a model of preferences.

    The model of each preference e, independent of all others, is

    .. math:: s_e = f(x_{i_e}) - f(x_{j_e}) + \varepsilon_e , \qquad \varepsilon_e \sim N(0, s^2 / c_e) .

    For votes, whose strengths are all 1, this is a linear model of a binary outcome: the order of the probabilities is
    more trustworthy than their values.

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
    See :func:`posterior`; the dual costs O(min(preferences, m)^3).

    Examples
    --------
    >>> from rankrls import RankRLS
    >>> from rankrls.inspection import pair_posterior
    >>> X = [[0.0], [1.0], [2.0], [5.0]]
    >>> found = pair_posterior(RankRLS(), X, winners=[1, 2, 0, 3], losers=[0, 1, 2, 2])
    >>> found.probability([[3.0]], [[2.0]]).round(2)
    array([0.79])
    """
    spec, start = checked_prior(estimator, alpha, noise, "pair_posterior")
    data = preferred_items(spec, X, winners, losers, strength, weight)
    return _assembled(spec, data, start, noise)


@dataclass(frozen=True, eq=False, repr=False)
class Posterior(Shown):
    """A Gaussian posterior of scores, returned by :func:`posterior` and :func:`pair_posterior`.

    Attributes
    ----------
    alpha : float
    noise_variance : float
        :math:`s^2`, the variance of the noise of one preference of weight 1.
    n_observations : int
        Number of preferences, or of labels minus one per query.
    degrees_of_freedom : float
        Effective number of parameters of the model.
    """

    alpha: float
    noise_variance: float
    n_observations: int
    degrees_of_freedom: float
    _spec: LeastSquaresSpec
    _features: Features
    _solver: Solver

    def __str__(self) -> str:
        return (
            f"Posterior of scores, {self.n_observations} observations, {self.degrees_of_freedom:.4g} of them used up\n"
            f"alpha {self.alpha:.4g}, noise variance {self.noise_variance:.4g}"
        )

    def difference(self, X_a: ItemsLike, X_b: ItemsLike) -> tuple[Array, Array]:
        """Posterior means and standard deviations of score differences between the rows of two tables.

        Parameters
        ----------
        X_a, X_b : as for ``predict``, with equally many rows

        Returns
        -------
        mean, std : ndarray of shape (rows,)
            ``mean`` is the score of a row of ``X_a`` minus the score of the same row of ``X_b``, without the levels of
            queries.

        Notes
        -----
        Primal O(n^2) per pair, dual O(m (m + n)).
        """
        spec = self._spec
        seen = self._features
        A, B = (check_features(spec, X, seen)[0] for X in (X_a, X_b))
        p = _num_samples(A)
        if _num_samples(B) != p:
            raise InputError(
                f"X_a has {p} rows and X_b {_num_samples(B)}: they need the same number of rows.", parameter="X_b"
            )
        found = [self._differences(A[k : k + _PAIRS], B[k : k + _PAIRS]) for k in range(0, p, _PAIRS)]
        mean, variance = (np.concatenate(part) for part in zip(*found, strict=True))
        return mean, np.sqrt(self.noise_variance * variance)

    def _differences(self, A: Matrix, B: Matrix) -> tuple[Array, Array]:
        """Means of score differences, and their variances in units of the noise variance."""
        solver = self._solver
        if isinstance(solver, BasisSolver):
            features = solver.basis.features
            return feature_differences(solver.smoother, self.alpha, features(A)[:] - features(B)[:])
        if not isinstance(solver, KernelSolver) or solver.kernel.is_linear:
            A = A.astype(np.float64) - B  # a shared offset cancels before it is squared
            B = 0.0 * A
        if not isinstance(solver, KernelSolver):
            return feature_differences(solver.smoother, self.alpha, A.toarray() if sparse.issparse(A) else A)
        kernel = solver.kernel
        seen = solver.shifted_items if isinstance(solver, ItemSolver) else solver.X
        across = kernel(A, seen) - kernel(B, seen)
        own = np.diagonal(kernel(A, A) + kernel(B, B) - 2.0 * kernel(A, B))
        return kernel_differences(solver.smoother, self.alpha, across, own)

    def probability(self, X_a: ItemsLike, X_b: ItemsLike) -> Array:
        """Probability that the score of A exceeds that of B, for the rows of two tables.

        Parameters
        ----------
        X_a, X_b : as for :meth:`difference`

        Returns
        -------
        ndarray of shape (rows,)
            Probabilities; 1/2 for two items that the model cannot distinguish.
        """
        mean, std = self.difference(X_a, X_b)
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.asarray(ndtr(np.where(mean == 0.0, 0.0, mean / std)))


def checked_prior(
    estimator: BaseEstimator, alpha: float | str | None, noise: float | None, what: str
) -> tuple[LeastSquaresSpec, float | None]:
    """Specification of an estimator with a Gaussian prior, and its alpha; None if alpha is to be determined."""
    spec, grid = checked_spec(estimator, None, what)
    if spec.kind == "kernel":
        raise InputError(
            f"{what} needs the kernel values of any two items. Set kernel to a name or a function.", parameter="kernel"
        )
    if spec.signed:
        raise InputError(
            f"{what} does not support constrained signs of weights. Leave out positive.", parameter="positive"
        )
    number(above=0.0, none=True)("noise", noise)
    if isinstance(alpha, str):
        check_word("alpha", alpha, ("evidence",), otherwise="a number above 0")
        return spec, None
    value = float(grid[0]) if alpha is None else alpha
    number(above=0.0)("alpha", value)
    return spec, float(value)


def _assembled(spec: LeastSquaresSpec, data: Data, alpha: float | None, noise: float | None) -> Posterior:
    """Posterior of the problem of labels or of preferences."""
    candidate = next(spec.candidates(data))
    solver = candidate.problem(data).solvers[0]
    evidence = Evidence.of(solver.smoother, solver.graph)
    alpha = evidence.best_alpha() if alpha is None else alpha
    observations = evidence.observations
    variance = evidence.objective(alpha) / observations if noise is None else float(noise)
    return Posterior(alpha, variance, observations, evidence.degrees_of_freedom(alpha), spec, data.features, solver)
