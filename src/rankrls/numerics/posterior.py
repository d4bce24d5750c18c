r"""Uncertainty of a least-squares ranking: the Gaussian posterior of score differences.

Divided by ``2 s^2``, ``||F (y - f)||^2 + alpha ||f||^2`` is the negative logarithm of a posterior density of f, up to a
constant: ``F y`` has independent noise of variance ``s^2``, and f the prior covariance ``(s^2 / alpha) K``. In the
primal

.. math:: \mathrm{var}(f_a - f_b) = s^2 \, d' (X'LX + \alpha I)^{-1} d , \qquad d = x_a - x_b ,

and in the dual, with ``k_d`` the kernel between the training items and a minus that between them and b,

.. math::

    \mathrm{var}(f_a - f_b) = \frac{s^2}{\alpha} \left[ k(d, d) - k_d' F' (F K F' + \alpha I)^{-1} F k_d \right] .

Both are the regression formulas of Gaussian processes (Rasmussen & Williams 2006, equations 2.12 and 2.19) for the
observations ``F y``. Covariances here are in units of ``s^2``; there is one target.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from rankrls._arrays import squared_lengths
from rankrls._errors import InputError
from rankrls._typing import Array
from rankrls.numerics.eigen import check_semidefinite
from rankrls.numerics.graph import Graph
from rankrls.numerics.smoother import DualSmoother, ItemSmoother, Smoother


@dataclass(frozen=True, eq=False)
class Evidence:
    """Evidence of the data about the noise and about alpha.

    Attributes
    ----------
    values : ndarray
        Eigenvalues of ``X'LX`` or ``FKF'``; missing ones are 0.
    shares : ndarray
        Squared component of the target along each eigenvector (of ``FKF'``, in primal and dual).
    rest : float
        Squared length of the target outside their span.
    observations : int
    """

    values: Array
    shares: Array
    rest: float
    observations: int

    @classmethod
    def of(cls, smoother: Smoother, graph: Graph) -> Evidence:
        """Evidence of a decomposed problem."""
        check_semidefinite(smoother.values)
        values = np.maximum(smoother.values, 0.0)
        squares = smoother.right[:, 0] ** 2
        if isinstance(smoother, DualSmoother):
            return cls(values, squares, 0.0, graph.n_observations)
        live = values > 0.0
        shares = squares[live] / values[live]
        energy = float((graph.target[:, 0] ** 2).sum())
        return cls(values[live], shares, max(energy - float(shares.sum()), 0.0), graph.n_observations)

    def objective(self, alpha: float) -> float:
        """``||F (y - f)||^2 + alpha ||f||^2`` at its minimum."""
        return float(self.rest + self.shares @ (alpha / (self.values + alpha)))

    def degrees_of_freedom(self, alpha: float) -> float:
        """Trace of the smoother: the number of observations that the model uses up."""
        return float(np.sum(self.values / (self.values + alpha)))

    def log_density(self, alpha: float) -> float:
        """Logarithm of the marginal density of ``F y`` at the optimal ``s^2``, up to a constant."""
        objective = max(self.objective(alpha), np.finfo(np.float64).tiny)
        return float(-0.5 * (self.observations * np.log(objective) + np.log1p(self.values / alpha).sum()))

    def best_alpha(self) -> float:
        """Alpha of the largest marginal density, from 1e-9 to 1e6 times the largest eigenvalue. O(n) per evaluation."""
        from scipy.optimize import minimize_scalar  # slow to import and rarely needed

        top = float(self.values.max(initial=0.0))
        if not top > 0.0:
            raise InputError(
                "The features do not vary within any query, so alpha='evidence' cannot choose an alpha.", parameter="X"
            )
        grid = np.linspace(np.log(1e-9 * top), np.log(1e6 * top), 61)
        densities = [self.log_density(float(np.exp(v))) for v in grid]
        k = int(np.argmax(densities))
        ends = grid[max(k - 1, 0)], grid[min(k + 1, len(grid) - 1)]
        found = minimize_scalar(lambda v: -self.log_density(float(np.exp(v))), bounds=ends, method="bounded")
        return float(np.exp(found.x if -found.fun >= densities[k] else grid[k]))


def feature_differences(smoother: Smoother, alpha: float, D: Array) -> tuple[Array, Array]:
    """Means and variances of score differences, from the differences (pairs, n) of the weighted features."""
    mean = D @ smoother.path(np.array([alpha]))[0, :, 0]
    return mean, squared_lengths((D @ smoother.directions) * np.sqrt(_inverse(smoother, alpha)), axis=1)


def kernel_differences(
    smoother: DualSmoother | ItemSmoother, alpha: float, across: Array, own: Array
) -> tuple[Array, Array]:
    """Means and variances of score differences in the dual.

    Parameters
    ----------
    smoother : DualSmoother or ItemSmoother
    alpha : float
    across : ndarray of shape (pairs, training items)
        ``k_d``, the kernel between a and the training items minus that between b and them.
    own : ndarray of shape (pairs,)
        ``k(d, d)``.
    """
    inverse = np.sqrt(_inverse(smoother, alpha))
    mean = across @ smoother.path(np.array([alpha]))[0, :, 0]
    if isinstance(smoother, ItemSmoother):
        # features whose inner product is the kernel; for a new item, those of its projection onto their span
        features = across @ (smoother.basis / np.sqrt(squared_lengths(smoother.features, axis=0)))
        known = squared_lengths((features @ smoother.directions) * inverse, axis=1)
        return mean, np.maximum(known + (own - squared_lengths(features, axis=1)) / alpha, 0.0)
    factored = smoother.graph.factor_rows(np.ascontiguousarray(across.T)).T
    return mean, np.maximum(own - squared_lengths((factored @ smoother.directions) * inverse, axis=1), 0.0) / alpha


def _inverse(smoother: Smoother, alpha: float) -> Array:
    inverse = smoother.inverse(np.array([alpha]))[:, 0]
    if not inverse.all():
        raise InputError(
            f"alpha = {alpha:.3g} is too small for the precision: the largest eigenvalue is {smoother.top:.3g}. "
            "Use a larger alpha.",
            parameter="alpha",
        )
    return inverse
