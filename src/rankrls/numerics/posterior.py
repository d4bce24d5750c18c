r"""How sure a least-squares ranking is: the Gaussian posterior of score differences.

``||F (y - f)||^2 + alpha ||f||^2``, divided by ``2 s^2``, is minus the logarithm of a posterior density: that of
``F y`` with independent noise of variance ``s^2``, and of f with the prior covariance ``(s^2 / alpha) K``. In the
primal

.. math:: \mathrm{var}(f_a - f_b) = s^2 \, d' (X'LX + \alpha I)^{-1} d , \qquad d = x_a - x_b ,

and in the dual, with ``k_d`` the kernel between the training items and a less that between them and b,

.. math::

    \mathrm{var}(f_a - f_b) = \frac{s^2}{\alpha} \left[ k(d, d) - k_d' F' (F K F' + \alpha I)^{-1} F k_d \right] .

Both are the regression formulas of Gaussian processes (Rasmussen & Williams 2006, equations 2.12 and 2.19) for the
observations ``F y``. Covariances here are in units of ``s^2``; there is one target.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from rankrls._cached import cached_property
from rankrls._errors import InputError
from rankrls.numerics.graph import Array, Graph, Index
from rankrls.numerics.smoother import DualSmoother, ItemSmoother, Smoother

Block = Callable[[Any, Any], Array]
_DIAGONAL = 64
_NOISE = 1e-13


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

    @classmethod
    def of(cls, smoother: Smoother, graph: Graph) -> Evidence:
        """From a decomposed problem."""
        values, squares = np.maximum(smoother.values, 0.0), smoother.right[:, 0] ** 2
        if isinstance(smoother, DualSmoother):
            return cls(values, squares, 0.0, graph.n_observations)
        live = values > 0.0
        shares = squares[live] / values[live]
        return cls(values[live], shares, max(float(smoother.energy[0] - shares.sum()), 0.0), graph.n_observations)

    def objective(self, alpha: float) -> float:
        """``||F (y - f)||^2 + alpha ||f||^2`` at its minimum."""
        return float(self.rest + self.shares @ (alpha / (self.values + alpha)))

    def loss(self, alpha: float) -> float:
        """``||F (y - f)||^2`` there."""
        return float(self.rest + self.shares @ (alpha / (self.values + alpha)) ** 2)

    def degrees_of_freedom(self, alpha: float) -> float:
        """The trace of the smoother: what of the observations the model uses up."""
        return float(np.sum(self.values / (self.values + alpha)))

    def log_density(self, alpha: float) -> float:
        """Logarithm of the marginal density of ``F y``, at its best ``s^2``, up to a constant."""
        objective = max(self.objective(alpha), np.finfo(np.float64).tiny)
        return -0.5 * (self.observations * np.log(objective) + float(np.log1p(self.values / alpha).sum()))

    def best_alpha(self) -> float:
        """The alpha of the largest marginal density, between 1e-9 and 1e6 of the largest eigenvalue. O(n) a value."""
        from scipy.optimize import minimize_scalar  # seldom needed, and slow to import

        top = float(self.values.max(initial=0.0))
        if not top > 0.0:
            raise InputError(
                "The features do not vary inside any query: no alpha explains more than another.", parameter="X"
            )
        grid = np.linspace(np.log(1e-9 * top), np.log(1e6 * top), 61)
        densities = [self.log_density(float(np.exp(v))) for v in grid]
        k = int(np.argmax(densities))
        ends = grid[max(k - 1, 0)], grid[min(k + 1, len(grid) - 1)]
        found = minimize_scalar(lambda v: -self.log_density(float(np.exp(v))), bounds=ends, method="bounded")
        return float(np.exp(found.x if -found.fun >= densities[k] else grid[k]))


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

    def centred(self, rows: Index) -> ItemScores:
        """Some items alone, their common part taken off: what is large in all of them is not rounded."""
        prior = self.prior
        return ItemScores(
            self.mean[rows],
            self.plus[rows] - self.plus[rows].mean(axis=0),
            self.minus[rows] - self.minus[rows].mean(axis=0),
            None if prior is None else (lambda a, b: prior(rows[a], rows[b])),
            self.prior_diagonal[rows],
        )

    def covariance(self, a: Any, b: Any) -> Array:
        """Between some rows and others, a matrix."""
        out = self.plus[a] @ self.plus[b].T - self.minus[a] @ self.minus[b].T
        if self.prior is not None:
            out += self.prior(a, b)
        return np.asarray(out)

    def pair_variances(self, a: Index, b: Index) -> Array:
        """Of the difference of each pair ``a[e], b[e]``, (pairs,)."""
        out = np.empty(len(a))
        for k in range(0, len(a), _DIAGONAL):
            i, j = a[k : k + _DIAGONAL], b[k : k + _DIAGONAL]
            plus, minus = self.plus[i] - self.plus[j], self.minus[i] - self.minus[j]
            own = np.einsum("ij,ij->i", plus, plus) - np.einsum("ij,ij->i", minus, minus)
            if self.prior is not None:
                own += self.prior_diagonal[i] + self.prior_diagonal[j] - 2.0 * np.diagonal(self.prior(i, j))
            out[k : k + _DIAGONAL] = own
        out[out <= _NOISE * np.abs(self.diagonal[a] + self.diagonal[b])] = 0.0
        return out


def feature_posterior(smoother: Smoother, alpha: float, features: Array) -> ItemScores:
    """Of items with these features, those that the smoother's coefficients weigh. O(m n k)."""
    m = len(features)
    plus = (features @ smoother.directions) * np.sqrt(_inverse(smoother, alpha))
    mean = features @ smoother.path(np.array([alpha]))[0, :, 0]
    return ItemScores(mean, plus, np.empty((m, 0)), None, np.zeros(m))


def kernel_posterior(
    smoother: DualSmoother | ItemSmoother, alpha: float, seen: Array, kernel: Block, n_items: int
) -> ItemScores:
    """Of new items in the dual.

    Parameters
    ----------
    smoother : DualSmoother or ItemSmoother
    alpha : float
    seen : ndarray of shape (new items, training items)
        The kernel between them.
    kernel : callable
        The kernel between new items of some numbers and others.
    n_items : int
        New items.

    Notes
    -----
    O(m t k) for m new items and t training items.
    """
    inverse = np.sqrt(_inverse(smoother, alpha))
    mean = seen @ smoother.path(np.array([alpha]))[0, :, 0]
    if isinstance(smoother, ItemSmoother):
        # in features of which the kernel is the inner product; of a new item they hold what lies in their span
        features = seen @ (smoother.basis / np.sqrt(np.einsum("ij,ij->j", smoother.features, smoother.features)))
        plus, minus = (features @ smoother.directions) * inverse, features / np.sqrt(alpha)
    else:
        factored = smoother.graph.factor_rows(np.ascontiguousarray(seen.T)).T
        plus, minus = np.empty((n_items, 0)), (factored @ smoother.directions) * (inverse / np.sqrt(alpha))

    def prior(a: Any, b: Any) -> Array:
        return kernel(a, b) / alpha

    numbers = np.arange(n_items)
    blocks = [numbers[k : k + _DIAGONAL] for k in range(0, n_items, _DIAGONAL)]
    diagonal = np.concatenate([np.zeros(0), *(np.diagonal(prior(rows, rows)) for rows in blocks)])
    return ItemScores(mean, plus, minus, prior, diagonal)


def _inverse(smoother: Smoother, alpha: float) -> Array:
    inverse = smoother.inverse(np.array([alpha]))[:, 0]
    if not inverse.all():
        raise InputError(
            f"alpha = {alpha:.3g} is lost in rounding: the largest eigenvalue is {smoother.top:.3g}. Directions that "
            "the data do not see have the variance 1 / alpha, so it must be larger.",
            parameter="alpha",
        )
    return inverse
