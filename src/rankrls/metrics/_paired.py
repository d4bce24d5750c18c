"""Two rankings, query by query: one number a query each, and their differences."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rankrls._checks import vector_of
from rankrls._errors import InputError

DIGITS = 1e-12  # values closer than this, relative to the largest, differ by rounding only


@dataclass(frozen=True)
class PairedDifferences:
    """First minus second.

    Attributes
    ----------
    both : ndarray of bool, shape (q,)
        The queries that both judge.
    differences : ndarray of float
        Their differences, rounded so that values which agree up to rounding errors differ by 0: a tie.
    mean : float
        Mean of the unrounded differences; NaN if no query is judged by both.
    """

    both: NDArray[np.bool_]
    differences: NDArray[np.float64]
    mean: float

    def counts(self, greater_is_better: bool = True) -> dict[str, int]:
        """Queries that the first wins, ties and loses, those that both judge, and those that one of them does not."""
        sign = 1.0 if greater_is_better else -1.0
        return {
            "wins": int((sign * self.differences > 0.0).sum()),
            "ties": int((self.differences == 0.0).sum()),
            "losses": int((sign * self.differences < 0.0).sum()),
            "n_queries": len(self.differences),
            "n_dropped": len(self.both) - len(self.differences),
        }


def paired_differences(a: ArrayLike, b: ArrayLike, names: tuple[str, str] = ("a", "b")) -> PairedDifferences:
    """Differences of one value a query; NaN is a query that is not judged. Errors are about parameters of ``names``."""
    x, z = (per_query_vector(values, name) for values, name in zip((a, b), names, strict=True))
    if x.shape != z.shape:
        which = " and ".join(f"{{{name}}}" for name in names)
        problem = f"{which} must hold one value for each of the same queries; got {{0}} and {{1}}."
        raise InputError(problem, len(x), len(z))
    both = ~(np.isnan(x) | np.isnan(z))
    x, z = x[both], z[both]
    unit = DIGITS * max(float(np.abs(x).max(initial=0.0)), float(np.abs(z).max(initial=0.0)))
    d = np.round((x - z) / unit) * unit if unit > 0 else np.zeros(len(x))
    return PairedDifferences(both, d, float(np.mean(x - z)) if len(x) else float("nan"))


def per_query_vector(values: ArrayLike, name: str) -> NDArray[np.float64]:
    """One finite number, or NaN, per query, as float64; anything else is an error about the parameter ``name``."""
    x = vector_of(name, values, "one value per query")
    if np.isinf(x).any():
        at = int(np.argmax(np.isinf(x)))
        raise InputError(f"{{{name}}} holds {{0}} at position {{1}}.", x[at], at, row=at)
    return x
