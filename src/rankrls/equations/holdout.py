r"""Held-out scores of whole blocks of ``F``'s rows without refitting, in the primal.

Let ``A = X'LX + alpha I = V diag(lambda + alpha) V'`` and let the block U, whole queries or a group of preferences,
own the rows ``B = F_U X_U`` with target ``t_U``. Without U the coefficients are, in the eigenbasis with ``Z = B V``,

.. math::

    x = ( \Lambda + \alpha - Z'Z )^{-1} ( b - Z' t_U ) , \qquad b = V' X'L y .

Three ways to solve that, chosen by shape for each block:

* *iterate*: with ``D = 1 / (lambda + alpha)`` the scores ``P = Z x`` solve ``(I - Z D Z') P = Z D (b - Z' t_U)``, a
  system whose eigenvalues lie between ``1 - leverage`` and 1. Conjugate gradients on it, all alphas at once, two thin
  products a round. Where many small queries share the data a handful of rounds reach rounding error.
* *downdate*: ``Lambda - Z'Z`` decomposed anew, O(n^3) for all alphas. For blocks with more rows than columns, and
  for the columns on which the iteration does not settle.
* *singles*: blocks of one row are leave-one-out, ``e = (t - Z x) / (1 - Z D Z')``, vectorised over the rows (PRESS).

Exact: each equals refitting without U (Pahikkala, Suominen, Boberg, Salakoski 2007, section 3, derived there for the
dual).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankrls._compiled.threads import map_threads, n_threads, one_blas_thread
from rankrls._errors import InputError
from rankrls.equations.normal_equations import rows_gram
from rankrls.equations.spectrum import Spectrum, spectrum
from rankrls.features.rows import FactorRows, row_numbers, row_products

__all__ = ["holdout_alphas", "holdout_scores", "weights_without"]

_RESOLVED = 1e-10
_CHUNK_ROWS = 2048
_MAX_ROUNDS = 16
_MOST_LEVERAGE = 0.9
_TOLERANCE = 1e-12
_SPECTRUM_COST = 60.0
"""A small eigendecomposition's time in units of n^3 multiply-adds of a matrix product."""


def holdout_alphas(alphas: NDArray[np.float64], top: float) -> NDArray[np.float64]:
    """The alphas that hold-out works with: at least 1e-10 of the largest eigenvalue ``top``.

    Where the model can fit every label, the error of a held-out row is a quotient of two numbers as small as
    ``alpha / top``, and below that rounding would decide it: the labels themselves would come back as held-out scores.
    So smaller alphas are held out at that value, whose model is next to that of minimum norm.

    Raises
    ------
    ValueError
        Where an alpha is not positive: the quotient would be 0 / 0.
    """
    if not (alphas > 0.0).all():
        raise InputError(
            "Hold-out without refitting needs {alpha} > 0; got {0:g}.",
            alphas.min(),
            parameter="alpha",
            remedy="Use a small positive {alpha}, or validation data.",
        )
    return np.maximum(alphas, _RESOLVED * top)


@dataclass(frozen=True)
class _Holder:
    """Everything that all blocks share."""

    rows: FactorRows
    target: NDArray[np.float64]
    values: NDArray[np.float64]  # eigenvalues, (n,)
    vectors: NDArray[np.float64]  # directions, (n, eigenvalues)
    right: NDArray[np.float64]  # b, (eigenvalues, targets)
    alphas: NDArray[np.float64]  # none too small for a block that has to be decomposed anew
    inverse: NDArray[np.float64]  # D, one column for each (alpha, target), (n, alphas * targets)
    full: NDArray[np.float64]  # coefficients of all rows, likewise
    centres: NDArray[np.float64]  # the rows' centres in the eigenbasis, (centres, n)
    cutoff: float
    smallest: int | None  # the column of the smallest alpha, where alphas are taken as they are

    @property
    def n_targets(self) -> int:
        return self.right.shape[1]

    def spread(self, per_target: NDArray[np.float64]) -> NDArray[np.float64]:
        """(k, targets) repeated for every alpha, (k, alphas * targets)."""
        return np.tile(per_target, len(self.alphas))


def holdout_scores(
    rows: FactorRows,
    decomposition: Spectrum,
    directions: NDArray[np.float64],
    right: NDArray[np.float64],
    target: NDArray[np.float64],
    blocks: list[Any],
    alphas: NDArray[np.float64],
    *,
    exact: bool = False,
) -> tuple[NDArray[np.float64], list[Any]]:
    """Score the rows of each block by the model of all other rows.

    Parameters
    ----------
    rows : FactorRows
    decomposition : Spectrum
        Of ``X'LX``.
    directions : ndarray of shape (n, eigenvalues)
        Coefficients of the features along each eigenvector: the eigenvectors themselves, where nothing was whitened.
    right : ndarray of shape (eigenvalues, targets)
        ``X'LY`` in the eigenbasis.
    target : ndarray of shape (rows, targets)
        ``F Y``, or the weighted strengths.
    blocks : list of slices or row numbers
        Disjoint; whole queries of a scored graph, any rows of a pair graph.
    alphas : ndarray
        Positive; see :func:`holdout_alphas` for tiny ones.
    exact : bool
        Whether tiny alphas are taken as they are, for every block whose leverage says that rounding decides nothing.

    Returns
    -------
    scores : ndarray of shape (rows, alphas, targets)
        Scores of items, or score differences of pairs; NaN for rows in no block.
    bounded : list
        The blocks whose tiny alphas were held out at a larger value.
    """
    held = holdout_alphas(alphas, float(decomposition.values.max(initial=0.0)))
    V = np.ascontiguousarray(directions)
    D = np.repeat(decomposition.inverse(alphas if exact else held), right.shape[1], axis=1)
    holder = _Holder(
        rows,
        target,
        decomposition.values,
        V,
        right,
        held,
        D,
        D * np.tile(right, len(alphas)),
        rows.centres @ V,
        decomposition.cutoff,
        int(alphas.argmin()) * right.shape[1] if exact else None,
    )
    lengths = np.array([_length(b) for b in blocks], dtype=np.intp)
    out = np.empty((rows.n_rows, len(alphas) * right.shape[1]))
    if lengths.sum() < rows.n_rows:
        out.fill(np.nan)
    n = len(V)
    iterate = 2.0 * lengths * n * n + 6 * 4.0 * lengths * n * D.shape[1]
    downdate = 2.0 * lengths * n * n + 2.0 * _SPECTRUM_COST * n**3
    small = (iterate <= downdate) & (lengths * n <= rows.most_held)
    threads = n_threads()
    chunks = _chunks(blocks, lengths, np.flatnonzero(small))
    with one_blas_thread():
        unsettled = [
            block for some in map_threads(lambda chunk: _hold_small(holder, chunk, out), chunks) for block in some
        ]
    large = [blocks[k] for k in np.flatnonzero(~small)]
    if len(large) >= threads:
        with one_blas_thread():
            map_threads(lambda block: _downdate(holder, block, out, threads=1), large)
    else:
        for block in large:
            _downdate(holder, block, out, threads=threads)
    bounded = (unsettled + large if exact else blocks) if (held > alphas).any() else []
    return out.reshape(rows.n_rows, len(alphas), -1), bounded


def _length(block: Any) -> int:
    return block.stop - block.start if isinstance(block, slice) else len(block)


def _chunks(blocks: list[Any], lengths: NDArray[np.intp], which: NDArray[np.intp]) -> list[list[Any]]:
    """Runs of blocks with a chunk's rows in all; a single larger block is a chunk of its own."""
    chunks: list[list[Any]] = []
    held = _CHUNK_ROWS
    for k in which:
        if held + lengths[k] > _CHUNK_ROWS:
            chunks.append([])
            held = 0
        chunks[-1].append(blocks[k])
        held += int(lengths[k])
    return chunks


def _hold_small(h: _Holder, blocks: list[Any], out: NDArray[np.float64]) -> list[Any]:
    """Hold out some small blocks; the list of those that had to be decomposed anew."""
    numbers = np.concatenate([row_numbers(b) for b in blocks])
    D = row_products(h.rows.differences(numbers), h.vectors)
    Z = h.rows.factor_of(numbers, D, h.vectors)
    if all(_length(b) == 1 for b in blocks):
        # A held-out row moves the score of its own centre too, so the two are taken together.
        out[numbers], settled = _singles(h, D + h.centres[h.rows.centre_of(numbers)], Z, h.target[numbers])
        anew = [np.array([row]) for row in numbers[~settled]]
        for block in anew:
            _downdate(h, block, out, threads=1)
        return anew
    starts = np.concatenate(([0], np.cumsum([_length(b) for b in blocks])))
    P, settled = _iterate(h, Z, starts, h.target[numbers])
    P -= h.spread(h.target[numbers])
    anew = []
    for k, block in enumerate(blocks):
        if not settled[k]:
            _downdate(h, block, out, threads=1)
            anew.append(block)
            continue
        own = slice(starts[k], starts[k + 1])
        x = Z[own].T @ P[own]
        x *= h.inverse
        x += h.full
        out[block] = row_products(D[own], x) + _centre_scores(h, block, x)
    return anew


def _singles(
    h: _Holder, X: NDArray[np.float64], Z: NDArray[np.float64], target: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    """Leave-one-out scores of rows X of factor Z, (rows, alphas * targets), and which of them can be trusted."""
    slack = 1.0 - (Z * Z) @ h.inverse
    settled = np.asarray((slack > 1e-6).all(axis=1))
    slack[~settled] = 1.0
    residual = (h.spread(target) - Z @ h.full) / slack
    return row_products(X, h.full) - row_products(X * Z, h.inverse) * residual, settled


def _iterate(
    h: _Holder, Z: NDArray[np.float64], starts: NDArray[np.intp], target: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    """Scores ``P = Z x`` of each block by the model without it, (rows, alphas * targets), and which blocks settled.

    Conjugate gradients on ``(I - Z D Z') P = Z D (b - Z't)`` for all blocks of the chunk and all columns together: the
    blocks' systems are independent, so the products loop over blocks and everything else runs over the chunk. Blocks
    and columns leave when they have settled.
    """
    heads, lengths = starts[:-1], np.diff(starts)
    own = [slice(a, b) for a, b in zip(starts[:-1], starts[1:], strict=True)]

    memory = np.zeros(len(Z) * h.inverse.shape[1])  # fresh pages for every round would take longer than the products

    def smooth(P: NDArray[np.float64], inverse: NDArray[np.float64], which: NDArray[np.intp]) -> NDArray[np.float64]:
        image = memory[: P.size].reshape(P.shape)
        Q = np.empty_like(inverse)
        for k in which:
            np.matmul(Z[own[k]].T, P[own[k]], out=Q)
            np.multiply(Q, inverse, out=Q)
            np.matmul(Z[own[k]], Q, out=image[own[k]])
        return image

    def squares(A: NDArray[np.float64], B: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.add.reduceat(A * B, heads, axis=0)

    # The full model's scores are a start that is wrong by the block's own influence only.
    P = Z @ h.full
    out = np.empty_like(P)
    columns = np.arange(P.shape[1])
    inverse = h.inverse
    residual = smooth(P - h.spread(target), inverse, np.arange(len(own))).copy()
    direction = residual.copy()
    energy = squares(residual, residual)
    goal = _TOLERANCE**2 * (squares(P, P) + energy)
    settled = np.ones(len(own), dtype=bool)
    if h.smallest is not None:
        # The eigenvalues of Z D Z' are at most their sum, which is largest for the smallest alpha.
        settled = np.add.reduceat((Z * Z) @ inverse[:, h.smallest], heads) <= _MOST_LEVERAGE
        goal[~settled] = np.inf
    for round_ in range(_MAX_ROUNDS + 1):
        active = energy > goal
        alive = active.any(axis=0)
        if not alive.all():
            out[:, columns[~alive]] = P[:, ~alive]
            columns = columns[alive]
            P, residual, direction, inverse, energy, goal = (
                np.ascontiguousarray(part[:, alive])  # which indexing leaves in the other order
                for part in (P, residual, direction, inverse, energy, goal)
            )
            active = active[:, alive]
        if not len(columns):
            break
        if round_ == _MAX_ROUNDS:
            settled &= ~active.any(axis=1)
            out[:, columns] = P
            break
        image = smooth(direction, inverse, np.flatnonzero(active.any(axis=1)))
        np.subtract(direction, image, out=image)
        curvature = squares(direction, image)
        step = np.divide(energy, curvature, out=np.zeros_like(energy), where=active & (curvature > 0.0))
        step = np.repeat(step, lengths, axis=0)
        P += step * direction
        image *= step
        residual -= image
        new = squares(residual, residual)
        ratio = np.divide(new, energy, out=np.zeros_like(new), where=energy > 0.0)
        direction *= np.repeat(ratio, lengths, axis=0)
        direction += residual
        energy = new
    return out, settled


def _downdate(h: _Holder, block: Any, out: NDArray[np.float64], *, threads: int) -> None:
    gram, rhs = rows_gram(h.rows, block, h.target, threads=threads)
    W = _weights_without(gram, rhs, h.values, h.vectors, h.right, h.alphas, h.cutoff)
    for some in h.rows.pieces(block):
        out[some] = h.rows.scores(some, W)


def _weights_without(
    gram: NDArray[np.float64],
    rhs: NDArray[np.float64],
    values: NDArray[np.float64],
    V: NDArray[np.float64],
    right: NDArray[np.float64],
    alphas: NDArray[np.float64],
    cutoff: float,
) -> NDArray[np.float64]:
    rest = -(V.T @ gram @ V)
    rest = 0.5 * (rest + rest.T)
    rest[np.diag_indices_from(rest)] += values
    s = spectrum(rest, V.shape[0], noise=cutoff, overwrite=True)
    left = s.vectors.T @ (right - V.T @ rhs)
    # What the block alone determined is gone with it: rounding may leave it slightly negative, never real.
    inverse = np.repeat(replace(s, values=np.maximum(s.values, 0.0)).inverse(alphas), right.shape[1], axis=1)
    return np.asarray(V @ (s.vectors @ (inverse * np.tile(left, len(alphas)))))


def weights_without(
    gram: NDArray[np.float64],
    rhs: NDArray[np.float64],
    decomposition: Spectrum,
    directions: NDArray[np.float64],
    right: NDArray[np.float64],
    alphas: NDArray[np.float64],
) -> NDArray[np.float64]:
    """Weights of the features for every alpha, trained on all rows but those of a block, (n, alphas * targets).

    Parameters
    ----------
    gram, rhs : ndarray of shapes (n, n) and (n, targets)
        The block's own normal equations.
    decomposition, directions, right, alphas : as for :func:`holdout_scores`

    Notes
    -----
    O(n^3). What :func:`holdout_scores` does for a block of many rows; its rows need not be there.
    """
    s = decomposition
    alphas = holdout_alphas(alphas, float(s.values.max(initial=0.0)))
    return _weights_without(gram, rhs, s.values, directions, right, alphas, s.cutoff)


def _centre_scores(h: _Holder, rows: Any, x: NDArray[np.float64]) -> NDArray[np.float64]:
    """Scores of the rows' centres, which the scores of the differences leave out."""
    centres = h.rows.centre_of(rows)
    if (centres == centres[0]).all():
        return np.asarray(h.centres[centres[:1]] @ x)
    which, number = np.unique(centres, return_inverse=True)
    return np.asarray((h.centres[which] @ x)[number])
