r"""Features of very different spread: nothing of a small one is lost beside a large one.

The eigenvalues of :func:`rankrls.equations.spectrum.spectrum` are exact relative to the largest. Of a Gram matrix whose
features differ in spread by a factor of 1e5 that leaves six digits of the small ones, at 1e8 none, although each entry
of the Gram matrix is exact relative to the spreads of its own two features. Likewise
:mod:`rankrls.equations.holdout` takes no alpha below 1e-10 of the largest eigenvalue: where a model can fit every
label, rounding would decide. Beside a feature whose spread is a million times another's, such alphas are the only
ones under which the other counts, and the model is nowhere near fitting every label. With :math:`B = D^{1/2} Z'`
(:math:`Z = F_U X_U V`, :math:`D = 1 / (\Lambda + \alpha)`) the coefficients without the rows U are

.. math:: x = D^{1/2} (I - B B')^{-1} D^{1/2} (b - Z' t_U) ,

and the eigenvalues of :math:`I - BB'`, or of :math:`I - B'B` where that is smaller, lie between 1 - leverage and 1:
they tell whether rounding decides.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import linalg
from scipy.linalg.lapack import dgejsv, dpstrf

from rankrls._compiled.threads import map_threads, one_blas_thread
from rankrls.equations.holdout import holdout_alphas
from rankrls.equations.normal_equations import NormalEquations
from rankrls.equations.spectrum import Spectrum, spectrum
from rankrls.features.blocks import row_numbers
from rankrls.features.rows import FactorRows, rows_gram

MOST_GRADED = 300
"""Features for which the slower decomposition is taken: about a second."""
_UNEVEN = 1e-6
_CLEAR = 1e4
_SLACK = 1e-6


def is_graded(S: NDArray[np.float64], size: int) -> bool:
    """Whether features' spreads differ so much that rounding of the largest comes near the smallest."""
    if not 0 < len(S) <= MOST_GRADED:
        return False
    diagonal = S.diagonal()
    live = diagonal[diagonal > 0.0]
    noise = max(_UNEVEN, _CLEAR * max(size, len(S)) * float(np.finfo(np.float64).eps))
    return bool(len(live) and live.min() < noise * live.max())


def graded_spectrum(S: NDArray[np.float64], size: int) -> Spectrum:
    """Decompose a Gram matrix ``S = E C E`` of features with spreads E so that each counts, however small.

    So does each entry of S, exact relative to the spreads of its two features, and its pivoted Cholesky factor
    ``S = R'R``. One-sided Jacobi rotations of the columns of R keep that (Demmel & Veselic, SIAM Journal on Matrix
    Analysis and Applications 13, 1992; Drmac & Veselic, likewise 29, 2008; LAPACK's ``dgejsv``): the relative error of
    an eigenvalue is of the order of ``eps cond(C)``, where that of :func:`rankrls.equations.spectrum.spectrum` is
    ``eps cond(S)``. Linear dependence is told by the pivots of C, at ``size * eps``. O(n^3), several times the time of
    the other.
    """
    n = len(S)
    eps = float(np.finfo(np.float64).eps)
    spreads = np.sqrt(S.diagonal())
    units = np.divide(1.0, spreads, out=np.zeros(n), where=spreads > 0.0)
    C = S * units * units[:, None]
    C.flat[:: n + 1] = spreads > 0.0
    L, pivots, rank, _ = dpstrf(C, tol=max(size, n) * eps, lower=1)
    L = np.tril(L)
    L[:, rank:] = 0.0
    R = np.zeros((n, n), order="F")
    R[:, pivots - 1] = L.T
    R *= spreads
    found, _, vectors, scale, _, status = dgejsv(R, joba=0, jobu=0, jobv=1, jobr=0, jobt=0, jobp=0, overwrite_a=1)
    if status != 0:
        raise linalg.LinAlgError("The eigenvalues of X'LX did not converge.")
    values = (found * (scale[0] / scale[1])) ** 2
    values[rank:] = 0.0
    order = np.argsort(values, kind="stable")
    return Spectrum(values[order], vectors[:, order], max(size, n) * eps * float(values.max()))


def resolve_tiny_alphas(
    rows: FactorRows,
    decomposition: Spectrum,
    right: NDArray[np.float64],
    target: NDArray[np.float64],
    blocks: list[Any],
    alphas: NDArray[np.float64],
    out: NDArray[np.float64],
    *,
    everything: tuple[NormalEquations, int] | None = None,
) -> None:
    """Write the scores of alphas that were held out at a larger value.

    Parameters are those of :func:`rankrls.equations.holdout.holdout_scores`; ``blocks`` and ``out``, (rows, alphas,
    targets), are what it returned. O(u n min(u, n)) for each alpha and block of u rows; a block that
    rounding decides is refitted, O(m n^2 + n^3), of which there are at most n. If ``rows`` are not all there are,
    ``everything`` is what all rows make of the normal equations, and their size: a block is then taken off these.
    """
    tiny = np.flatnonzero(holdout_alphas(alphas, float(decomposition.values.max(initial=0.0))) > alphas)
    if not len(tiny):
        return
    V = decomposition.vectors
    inverse = decomposition.inverse(alphas[tiny])

    def resolve(block: Any) -> None:
        Z = np.vstack([rows.factor(piece) @ V for piece in rows.pieces(block)])
        W = np.empty((len(tiny), *right.shape))
        refitted = None
        for k, D in enumerate(inverse.T):
            x = _without(Z, D, right, target[row_numbers(block)])
            if x is not None:
                W[k] = V @ x
            else:
                # The block alone determines something. There are at most as many such blocks as features.
                if refitted is None:
                    refitted = _refitted(rows, target, block, alphas[tiny], everything)
                W[k] = refitted[k]
        columns = np.hstack([*W])
        for piece in rows.pieces(block):
            scores = rows.scores(piece, columns).reshape(-1, len(tiny), right.shape[1])
            for k, alpha in enumerate(tiny):
                out[piece, alpha] = scores[:, k]

    with one_blas_thread():
        map_threads(resolve, blocks)


def _without(
    Z: NDArray[np.float64], D: NDArray[np.float64], b: NDArray[np.float64], target: NDArray[np.float64]
) -> NDArray[np.float64] | None:
    """Coefficients without the rows Z in the eigenbasis; None where the rows leave too little of them."""
    root = np.sqrt(D)[:, None]
    B = root * Z.T
    few = Z.shape[0] <= Z.shape[1]
    slack = np.eye(min(B.shape)) - (B.T @ B if few else B @ B.T)
    try:
        factor = linalg.cho_factor(slack, lower=True, overwrite_a=True, check_finite=False)
    except linalg.LinAlgError:
        return None
    if factor[0].diagonal().min() ** 2 < _SLACK:
        return None
    scaled = root * (b - Z.T @ target)
    if few:
        scaled = scaled + B @ linalg.cho_solve(factor, B.T @ scaled, check_finite=False)
    else:
        scaled = linalg.cho_solve(factor, scaled, check_finite=False)
    return np.asarray(root * scaled)


def _refitted(
    rows: FactorRows,
    target: NDArray[np.float64],
    block: Any,
    alphas: NDArray[np.float64],
    everything: tuple[NormalEquations, int] | None,
) -> NDArray[np.float64]:
    """Coefficients of every alpha from all other rows, (alphas, n, targets)."""
    if everything is not None:
        own = NormalEquations(*rows_gram(rows, block, target, threads=1), np.zeros(target.shape[1]))
        return solve_without(everything, own, alphas)
    others = np.delete(np.arange(rows.n_rows), row_numbers(block))
    gram, rhs = rows_gram(rows, others, target, threads=1)
    return _solve(gram, rhs, alphas, max(len(others), rows.n_features))


def solve_without(
    everything: tuple[NormalEquations, int], own: NormalEquations, alphas: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Coefficients of every alpha from all rows but those of a block, (alphas, n, targets). O(n^3)."""
    equations, size = everything
    left = equations - own
    return _solve(left.gram, left.rhs, alphas, size)


def _solve(
    gram: NDArray[np.float64], rhs: NDArray[np.float64], alphas: NDArray[np.float64], size: int
) -> NDArray[np.float64]:
    graded = is_graded(gram, size)
    s = graded_spectrum(gram, size) if graded else spectrum(gram, size, semidefinite=True)
    return s.apply_inverse(alphas, rhs)
