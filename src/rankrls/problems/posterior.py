r"""How sure a least-squares ranking is: the Gaussian posterior of score differences.

``||F (y - f)||^2 + alpha ||f||^2``, divided by ``2 s^2``, is minus the logarithm of a posterior density: that of
``F y`` with independent noise of variance ``s^2``, and of f with the prior covariance ``(s^2 / alpha) K``. So the
factorisation that gives the scores gives their covariance: in the primal

.. math:: \mathrm{var}(f_a - f_b) = s^2 \, d' (X'LX + \alpha I)^{-1} d , \qquad d = x_a - x_b ,

and in the dual, with ``k_d`` the kernel between the training items and a less that between them and b,

.. math::

    \mathrm{var}(f_a - f_b) = \frac{s^2}{\alpha} \left[ k(d, d) - k_d' F' (F K F' + \alpha I)^{-1} F k_d \right] .

Both are the regression formulas of Gaussian processes (Rasmussen & Williams 2006, equations 2.12 and 2.19) for the
observations ``F y``. Covariances here are in units of ``s^2``.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import singledispatch
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import linalg, sparse

from rankrls._cached import cached_property
from rankrls._errors import InputError
from rankrls.equations.spectrum import Spectrum, is_clear, spectrum
from rankrls.features.blocks import row_slices
from rankrls.features.columns import take_items
from rankrls.kernels import Kernel
from rankrls.problems.dual import DualProblem
from rankrls.problems.primal import PrimalProblem
from rankrls.problems.reduced import ReducedProblem
from rankrls.problems.subset import SubsetProblem

Array = NDArray[np.float64]
Block = Callable[[Any, Any], Array]
_DIAGONAL = 64


def inverse_root(S: Array | Spectrum, alpha: float, size: int) -> Array:
    """``W`` with ``W'W = (S + alpha I)^-1``.

    By Cholesky, O(2 n^3 / 3), or from the spectrum where there is one already, or where alpha is very small.

    Raises
    ------
    ValueError
        Where alpha is lost in the rounding of S: directions that the data do not see would have no variance, or all.
    """
    if not isinstance(S, Spectrum):
        n = S.shape[0]
        if is_clear(S, alpha):
            A = S.copy()
            A[np.diag_indices(n)] += alpha
            factor, failed = linalg.lapack.dpotrf(A, lower=1, overwrite_a=1, clean=1)
            if not failed:
                return np.asarray(linalg.lapack.dtrtri(factor, lower=1, overwrite_c=1)[0])
        S = spectrum(S, size)
    inverse = S.inverse(np.array([alpha]))[:, 0]
    if not inverse.all():
        raise InputError(
            "{alpha} = {0:.3g} is lost in rounding: the largest eigenvalue is {1:.3g}.",
            alpha,
            S.values.max(initial=0.0),
            parameter="alpha",
            remedy="Directions that the data do not see have the variance 1 / {alpha}, so it must be larger.",
        )
    return np.asarray(np.sqrt(inverse)[:, None] * S.vectors.T)


@dataclass(frozen=True, eq=False)
class Evidence:
    """What the data say about the noise and about alpha.

    Attributes
    ----------
    values : ndarray
        Eigenvalues of ``X'LX`` or ``FKF'``; those that are missing are 0.
    shares : ndarray
        Squared size of the target along each eigenvector (of ``FKF'``, in either form).
    rest : float
        Squared size of the target outside of them.
    observations : int
    """

    values: Array
    shares: Array
    rest: float
    observations: int

    def energy(self, alpha: float) -> float:
        """``||F (y - f)||^2 + alpha ||f||^2`` at its minimum."""
        return float(self.rest + np.sum(self.shares * (alpha / (self.values + alpha))))

    def log_density(self, alpha: float) -> float:
        """Logarithm of the marginal density of ``F y``, at its best ``s^2``, up to a constant."""
        energy = max(self.energy(alpha), np.finfo(np.float64).tiny)
        return -0.5 * (self.observations * np.log(energy) + float(np.log1p(self.values / alpha).sum()))

    def best_alpha(self) -> float:
        """The alpha of the largest marginal density, between 1e-9 and 1e6 of the largest eigenvalue. O(n) a value."""
        from scipy.optimize import minimize_scalar  # seldom needed, and slow to import

        top = float(self.values.max(initial=0.0))
        if not top > 0.0:
            raise InputError(
                "The features do not vary inside any query: no {alpha} explains more than another.", parameter="X"
            )
        grid = np.linspace(np.log(1e-9 * top), np.log(1e6 * top), 61)
        densities = [self.log_density(float(np.exp(v))) for v in grid]
        k = int(np.argmax(densities))
        ends = grid[max(k - 1, 0)], grid[min(k + 1, len(grid) - 1)]
        found = minimize_scalar(lambda v: -self.log_density(float(np.exp(v))), bounds=ends, method="bounded")
        best = found.x if -found.fun >= densities[k] else grid[k]
        return float(np.exp(best))


@singledispatch
def evidence_of(problem: Any) -> Evidence:
    """From the spectrum of a problem with one target."""
    raise _no_posterior(problem)


def _no_posterior(problem: Any) -> NotImplementedError:
    return NotImplementedError(f"The posterior of a {type(problem).__name__} is not known.")


@evidence_of.register
def _(problem: DualProblem) -> Evidence:
    s = problem.spectrum
    shares = (s.vectors.T @ problem.target[:, 0]) ** 2
    return Evidence(np.maximum(s.values, 0.0), shares, 0.0, problem.graph.n_observations)


@evidence_of.register
def _(problem: PrimalProblem) -> Evidence:
    s = problem.spectrum
    alive = s.values > 0.0
    values = s.values[alive]
    shares = (s.vectors[:, alive].T @ problem.equations.rhs[:, 0]) ** 2 / values
    rest = max(float(problem.equations.energy[0] - shares.sum()), 0.0)
    return Evidence(values, shares, rest, problem.graph.n_observations)


@dataclass(frozen=True, eq=False)
class ItemScores:
    """Means and covariances of items' scores; only differences mean anything.

    ``cov(i, j) = plus_i'plus_j - minus_i'minus_j + prior(i, j)``, in units of ``s^2``.

    Attributes
    ----------
    mean : ndarray of shape (m,)
    plus, minus : ndarray of shape (m, any)
    prior : callable or None
        The prior covariance between some rows and others, as a matrix.
    prior_diagonal : ndarray of shape (m,)
    """

    mean: Array
    plus: Array
    minus: Array
    prior: Block | None
    prior_diagonal: Array

    @cached_property
    def diagonal(self) -> Array:
        """The variance of each score, and thereby of what differences do not see."""
        squares = np.einsum("ij,ij->i", self.plus, self.plus) - np.einsum("ij,ij->i", self.minus, self.minus)
        return np.asarray(squares + self.prior_diagonal)

    def centred(self, rows: NDArray[np.intp]) -> ItemScores:
        """Some items alone, their common part taken off: what is large in all of them is not rounded."""
        prior = self.prior
        return ItemScores(
            self.mean[rows],
            self.plus[rows] - self.plus[rows].mean(axis=0),
            self.minus[rows] - self.minus[rows].mean(axis=0),
            None if prior is None else (lambda a, b: prior(rows[a], rows[b])),
            self.prior_diagonal[rows],
        )

    def covariance(self, a: NDArray[np.intp] | slice, b: NDArray[np.intp] | slice) -> Array:
        """Between some rows and others, a matrix."""
        out = self.plus[a] @ self.plus[b].T
        if self.minus.shape[1]:
            out -= self.minus[a] @ self.minus[b].T
        if self.prior is not None:
            out += self.prior(a, b)
        return np.asarray(out)

    def variances(self, a: NDArray[np.intp] | slice, b: NDArray[np.intp] | slice) -> Array:
        """Of all differences between some rows and others, a matrix; noise of rounding is 0."""
        whole = self.diagonal[a][:, None] + self.diagonal[b]
        out = whole - 2.0 * self.covariance(a, b)
        out[out <= 1e-13 * np.abs(whole)] = 0.0
        return np.asarray(out)

    def pair_variances(self, a: NDArray[np.intp], b: NDArray[np.intp]) -> Array:
        """Of the difference of each pair ``a[e], b[e]``, (pairs,)."""
        out = np.empty(len(a))
        for rows in row_slices(0, len(a), _DIAGONAL):
            plus, minus = self.plus[a[rows]] - self.plus[b[rows]], self.minus[a[rows]] - self.minus[b[rows]]
            out[rows] = np.einsum("ij,ij->i", plus, plus) - np.einsum("ij,ij->i", minus, minus)
            if self.prior is not None:
                out[rows] += self.prior_diagonal[a[rows]] + self.prior_diagonal[b[rows]]
                out[rows] -= 2.0 * np.diagonal(self.prior(a[rows], b[rows]))
        out[out <= 1e-13 * np.abs(self.diagonal[a] + self.diagonal[b])] = 0.0
        return out

    def after(self, a: int, b: int, noise: float) -> ItemScores:
        """The same after an answer about a and b with noise of that variance: the variances do not depend on it.

        The mean is left as it is.
        """
        rows = np.arange(len(self.mean))
        both = self.covariance(rows, np.array([a, b], dtype=np.intp))
        along = both[:, 0] - both[:, 1]
        found = max(float(along[a] - along[b]), 0.0)
        return replace(self, minus=np.column_stack((self.minus, along / np.sqrt(found + noise))))


@dataclass(frozen=True, eq=False)
class Fitted:
    """A solved problem with what covariances are made of.

    Attributes
    ----------
    coefficients : ndarray of shape (rows of S,)
        ``w`` of (orthonormal) features, or ``c`` of the rows of F.
    residual, penalty : float
        ``||F (y - f)||^2`` and ``alpha ||f||^2``.
    degrees_of_freedom : float
        ``tr(S (S + alpha I)^-1)``: what of the observations the model used up.
    observations : int
    root : ndarray of shape (rows of S, rows of S)
        ``W`` of :func:`inverse_root`.
    alpha : float
    """

    coefficients: Array
    residual: float
    penalty: float
    degrees_of_freedom: float
    observations: int
    root: Array
    alpha: float

    @classmethod
    def solve(cls, problem: Any, alpha: float) -> Fitted:
        """Of a problem with one target."""
        root, x, residual, penalty = _solved(problem, alpha)
        freedom = len(x) - alpha * float(np.einsum("ij,ij->", root, root))
        return cls(x, residual, max(penalty, 0.0), freedom, problem.graph.n_observations, root, alpha)


@singledispatch
def _solved(problem: Any, alpha: float) -> tuple[Array, Array, float, float]:
    """The inverse root, the coefficients, the residual and the penalty."""
    raise _no_posterior(problem)


@_solved.register
def _(problem: DualProblem, alpha: float) -> tuple[Array, Array, float, float]:
    root = inverse_root(problem.spectrum if problem.C is None else problem.C, alpha, problem.size)
    target = problem.target[:, 0]
    x = root.T @ (root @ target)
    residual = alpha**2 * float(x @ x)
    return root, x, residual, alpha * float(x @ target) - residual


@_solved.register
def _(problem: PrimalProblem, alpha: float) -> tuple[Array, Array, float, float]:
    known = "spectrum" in problem.__dict__
    root = inverse_root(problem.spectrum if known else problem.equations.gram, alpha, problem.size)
    x = root.T @ (root @ problem.equations.rhs[:, 0])
    return root, x, _residual(problem, x), alpha * float(x @ x)


@singledispatch
def item_scores(problem: Any, fitted: Fitted, X: Any, kernel: Kernel, train: Any) -> ItemScores:
    """Means and covariances of new items' scores.

    Parameters
    ----------
    problem, fitted : of one alpha and one target
    X : dense, CSR or list
        The items, with the columns' offsets taken off as from ``train``.
    kernel : Kernel
    train : as X, or None
        What the problem's items were; the primal needs none.

    Notes
    -----
    Primal: O(m n^2) for m items and n features. Dual: O(m t (n + t)) for t training items; the m x t values of the
    kernel are held. A basis explains nothing outside of its functions: far from all its items a sparse model is as
    sure of 0 as the papers' subset of regressors is, that is too sure.
    """
    raise _no_posterior(problem)


@item_scores.register
def _(problem: PrimalProblem, fitted: Fitted, X: Any, kernel: Kernel, train: Any) -> ItemScores:
    features = _features(problem, X)
    m = len(features)
    across = (fitted.root @ features.T).T
    return ItemScores(features @ fitted.coefficients, across, np.empty((m, 0)), None, np.zeros(m))


@item_scores.register
def _(problem: ReducedProblem, fitted: Fitted, X: Any, kernel: Kernel, train: Any) -> ItemScores:
    # K = Phi Phi' for the training items; of a new item Phi holds the part that lies in their span.
    seen = kernel(train, X)
    features = (problem._vectors / problem._root).T @ seen
    plus, minus = (fitted.root @ features).T, features.T / np.sqrt(fitted.alpha)
    coefficients = problem.item_coefficients(fitted.coefficients[:, None], fitted.alpha)[:, 0]
    return ItemScores(coefficients @ seen, plus, minus, *_prior(kernel, X, fitted.alpha))


@item_scores.register
def _(problem: DualProblem, fitted: Fitted, X: Any, kernel: Kernel, train: Any) -> ItemScores:
    seen = problem.graph.F @ kernel(train, X)
    minus = (fitted.root @ seen).T / np.sqrt(fitted.alpha)
    return ItemScores(fitted.coefficients @ seen, np.empty((len(minus), 0)), minus, *_prior(kernel, X, fitted.alpha))


def _prior(kernel: Kernel, X: Any, alpha: float) -> tuple[Block, Array]:
    """The prior covariance of items X, and its diagonal."""

    def prior(a: Any, b: Any) -> Array:
        return kernel(take_items(X, a), take_items(X, b)) / alpha

    m = len(X) if isinstance(X, list) else X.shape[0]
    diagonal = [np.diagonal(prior(rows, rows)) for rows in row_slices(0, m, _DIAGONAL)]
    return prior, np.concatenate(diagonal or [np.zeros(0)])


@singledispatch
def _features(problem: PrimalProblem, X: Any) -> Array:
    """The features that the problem's coefficients weigh, (m, coefficients), dense."""
    features = np.asarray(X.toarray() if sparse.issparse(X) else X, dtype=np.float64)
    return features if problem.whitening is None else np.asarray(features @ problem.whitening)


@_features.register
def _(problem: SubsetProblem, X: Any) -> Array:
    columns = problem.basis.columns(X)
    features = columns.block(slice(0, columns.n_items))
    return features if problem.whitening is None else np.asarray(features @ problem.whitening)


def _residual(problem: PrimalProblem, coefficients: Array) -> float:
    """``||F (y - f)||^2``, block by block: as a difference of sums it would vanish in their rounding."""
    w = coefficients if problem.whitening is None else problem.whitening @ coefficients
    total = 0.0
    for piece in problem.rows.pieces(slice(0, problem.rows.n_rows)):
        left = problem.target[piece, 0] - problem.rows.factor(piece) @ w
        total += float(left @ left)
    return total
