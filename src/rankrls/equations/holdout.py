r"""Held-out scores of whole blocks of ``F``'s rows without refitting, in the primal.

Let ``A = X'LX + alpha I = V diag(lambda + alpha) V'`` and let the block U, whole queries or a group of preferences,
own the rows ``B = F_U X_U`` with target ``t_U``. Without U the coefficients are, in the eigenbasis with ``Z = B V``,

.. math::

    x = ( \Lambda + \alpha - Z'Z )^{-1} ( b - Z' t_U ) , \qquad b = V' X'L y .

Three ways to solve that, chosen by shape for each block:

* *iterate*: with ``D = 1 / (lambda + alpha)`` the scores ``P = Z x`` solve ``(I - Z D Z') P = Z D (b - Z' t_U)``, a
  system whose eigenvalues lie between ``1 - leverage`` and 1. All alphas and all blocks of one length at once, two
  thin products a round. Where many small queries share the data, a few terms of the inverse's series reach rounding
  error, the last ones in single precision; elsewhere a handful of rounds of conjugate gradients.
* *downdate*: ``Lambda - Z'Z`` decomposed anew, O(n^3) for all alphas. For blocks with more rows than columns, and
  for the columns on which the iteration does not settle.
* *singles*: blocks of one row are leave-one-out, ``e = (t - Z x) / (1 - Z D Z')``, vectorised over the rows (PRESS).

Exact: each equals refitting without U (Pahikkala, Suominen, Boberg, Salakoski 2007, section 3, derived there for the
dual).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankrls._compiled.threads import map_threads, n_threads, one_blas_thread
from rankrls._errors import InputError
from rankrls.equations.spectrum import Spectrum, spectrum
from rankrls.features.blocks import row_numbers
from rankrls.features.rows import SAFE_COLUMNS, FactorRows, row_products, rows_gram

_RESOLVED = 1e-10
_CHUNK_ROWS = 2048
_MAX_ROUNDS = 16
_MOST_LEVERAGE = 0.9
_TOLERANCE = 1e-12
_FAST = 0.03
"""Terms of the series shrink at least so much, where it is used."""
_SINGLE_RANGE = 1e-24
"""Squared lengths whose squares of rounded terms single precision still holds, beside the largest one."""
_STACKED = 1 << 20
"""Numbers of an array that holds something of every feature for every block of a chunk."""
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


class _Held:
    """Everything that all blocks share; the parameters are those of :func:`holdout_scores`."""

    def __init__(
        self,
        rows: FactorRows,
        decomposition: Spectrum,
        directions: NDArray[np.float64],
        right: NDArray[np.float64],
        target: NDArray[np.float64],
        alphas: NDArray[np.float64],
        *,
        exact: bool,
    ) -> None:
        self.rows, self.spectrum, self.right, self.target = rows, decomposition, right, target
        self.vectors = V = np.ascontiguousarray(directions)
        self.products = rows.products(V)  # of the rows' differences with the directions
        self.centres = rows.centres @ V
        self.alphas = holdout_alphas(alphas, float(decomposition.values.max(initial=0.0)))
        # D and the coefficients of all rows: one column for each (alpha, target)
        self.inverse = D = np.repeat(decomposition.inverse(alphas if exact else self.alphas), right.shape[1], axis=1)
        self.full = D * self.spread(right)
        # of each direction's largest D, and D as a share of it
        most = D.max(axis=1, keepdims=True)
        self.root = np.sqrt(most[:, 0])
        self.share = np.divide(D, most, out=np.zeros_like(D), where=most > 0.0).astype(np.float32)
        # the column of the smallest alpha, where alphas are taken as they are
        self.smallest = int(alphas.argmin()) * right.shape[1] if exact else None

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
    h = _Held(rows, decomposition, directions, right, target, alphas, exact=exact)
    lengths = np.array([b.stop - b.start if isinstance(b, slice) else len(b) for b in blocks], dtype=np.intp)
    out = np.empty((rows.n_rows, len(alphas) * right.shape[1]))
    if lengths.sum() < rows.n_rows:
        out.fill(np.nan)
    n, columns = h.inverse.shape
    iterate = 2.0 * lengths * n * n + 6 * 4.0 * lengths * n * columns
    downdate = 2.0 * lengths * n * n + 2.0 * _SPECTRUM_COST * n**3
    small = (iterate <= downdate) & (lengths * n <= rows.most_held)
    threads = n_threads()
    chunks = _chunks(blocks, lengths, np.flatnonzero(small), max(1, _STACKED // h.inverse.size))
    with one_blas_thread():
        unsettled = [block for some in map_threads(lambda chunk: _hold_small(h, chunk, out), chunks) for block in some]
    large = [blocks[k] for k in np.flatnonzero(~small)]
    if len(large) >= threads:
        with one_blas_thread():
            map_threads(lambda block: _downdate(h, block, out, threads=1), large)
    else:
        for block in large:
            _downdate(h, block, out, threads=threads)
    bounded = (unsettled + large if exact else blocks) if (h.alphas > alphas).any() else []
    return out.reshape(rows.n_rows, len(alphas), -1), bounded


def _chunks(blocks: list[Any], lengths: NDArray[np.intp], which: NDArray[np.intp], most: int) -> list[list[Any]]:
    """At most so many blocks of the same length, or a chunk's rows of them, so that their products are one call."""
    chunks: list[list[Any]] = []
    held, length = _CHUNK_ROWS, -1
    for k in which[np.argsort(lengths[which], kind="stable")]:
        full = held + lengths[k] > _CHUNK_ROWS or (length > 1 and len(chunks[-1]) == most)
        if full or lengths[k] != length:
            chunks.append([])
            held, length = 0, int(lengths[k])
        chunks[-1].append(blocks[k])
        held += length
    return chunks


def _hold_small(h: _Held, blocks: list[Any], out: NDArray[np.float64]) -> list[Any]:
    """Hold out some small blocks of one length; the list of those that had to be decomposed anew."""
    numbers = np.concatenate([row_numbers(b) for b in blocks])
    D = h.products(numbers)
    Z = h.rows.factor_of(numbers, D, h.vectors)
    if len(numbers) == len(blocks):
        # A held-out row moves the score of its own centre too, so the two are taken together.
        out[numbers], settled = _singles(h, D + h.centres[h.rows.centre_of(numbers)], Z, h.target[numbers])
        anew = [np.array([row]) for row in numbers[~settled]]
        for block in anew:
            _downdate(h, block, out, threads=1)
        return anew
    stack = (len(blocks), -1)
    target = h.spread(h.target[numbers])
    P = (Z @ h.full).reshape(*stack, target.shape[1])
    x, settled = _iterate(h, Z.reshape(*stack, Z.shape[1]), P, target.reshape(P.shape))
    x += h.full
    scores = _stacked_products(D.reshape(*stack, D.shape[1]), x)
    scores += _centre_scores(h, h.rows.centre_of(numbers).reshape(stack), x)
    anew = []
    for k, block in enumerate(blocks):
        if settled[k]:
            out[block] = scores[k]
        else:
            _downdate(h, block, out, threads=1)
            anew.append(block)
    return anew


def _transposed(stack: NDArray[np.floating]) -> Any:
    return stack.transpose(0, 2, 1)


def _stacked_products(X: NDArray[np.float64], W: NDArray[np.float64]) -> NDArray[np.float64]:
    """``X[k] W[k]`` for every k, in which equal rows give equal products, as :func:`row_products`."""
    if W.shape[2] >= SAFE_COLUMNS:
        return np.asarray(X @ W)
    return np.stack([row_products(rows, columns) for rows, columns in zip(X, W, strict=True)])


def _singles(
    h: _Held, X: NDArray[np.float64], Z: NDArray[np.float64], target: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    """Leave-one-out scores of rows X of factor Z, (rows, alphas * targets), and which of them can be trusted."""
    slack = 1.0 - (Z * Z) @ h.inverse
    settled = np.asarray((slack > 1e-6).all(axis=1))
    slack[~settled] = 1.0
    residual = (h.spread(target) - Z @ h.full) / slack
    return row_products(X, h.full) - row_products(X * Z, h.inverse) * residual, settled


def _squares(A: NDArray[np.floating], B: NDArray[np.floating]) -> NDArray[np.float64]:
    """Inner products of the columns of each block, (blocks, columns)."""
    return np.asarray(np.einsum("kij,kij->kj", A, B), dtype=np.float64)


def _iterate(
    h: _Held, Z: NDArray[np.float64], P: NDArray[np.float64], target: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    """What holding blocks out adds to their coefficients, (blocks, n, alphas * targets), and which are settled.

    It is ``D Z' (P - t)`` of the scores ``P = Z x`` by the model without the block, and these solve ``(I - Z D Z') P =
    Z D (b - Z't)``, for all blocks and columns together, from a start P: the full model's scores, which are wrong by
    the block's own influence only. Where influence is small, a few terms of the inverse's series; else conjugate
    gradients, which columns leave as all blocks have settled there.
    """
    inverse = h.inverse
    first = _transposed(Z) @ (P - target)
    residual = Z @ (first * inverse)
    energy = _squares(residual, residual)
    goal = _TOLERANCE**2 * (_squares(P, P) + energy)
    settled = np.ones(len(Z), dtype=bool)
    if h.smallest is not None:
        # The eigenvalues of Z D Z' are at most their sum, which is largest for the smallest alpha.
        settled = _squares(Z, Z) @ inverse[:, h.smallest] <= _MOST_LEVERAGE
        goal[~settled] = np.inf
    second = _transposed(Z) @ residual
    further = _series(h, Z, second, energy, goal)
    if further is not None:
        first += second
        first *= inverse
        first += further[0]
        return first, settled & further[1]
    out = np.empty_like(P)
    columns = np.arange(P.shape[2])
    direction = residual.copy()
    for round_ in range(_MAX_ROUNDS + 1):
        active = energy > goal
        alive = active.any(axis=0)
        if not alive.all():
            out[:, :, columns[~alive]] = P[:, :, ~alive]
            columns = columns[alive]
            P, residual, direction, inverse, energy, goal = (
                np.ascontiguousarray(part[..., alive])  # which indexing leaves in the other order
                for part in (P, residual, direction, inverse, energy, goal)
            )
            active = active[:, alive]
        if not len(columns):
            break
        if round_ == _MAX_ROUNDS:
            settled &= ~active.any(axis=1)
            out[:, :, columns] = P
            break
        weights = _transposed(Z) @ direction
        weights *= inverse
        image = direction - Z @ weights
        curvature = _squares(direction, image)
        step = np.divide(energy, curvature, out=np.zeros_like(energy), where=active & (curvature > 0.0))[:, None]
        P = P + step * direction
        image *= step
        residual -= image
        new = _squares(residual, residual)
        direction *= np.divide(new, energy, out=np.zeros_like(new), where=energy > 0.0)[:, None]
        direction += residual
        energy = new
    out -= target
    x = _transposed(Z) @ out
    x *= h.inverse
    return x, settled


def _series(
    h: _Held,
    Z: NDArray[np.float64],
    second: NDArray[np.float64],
    energy: NDArray[np.float64],
    goal: NDArray[np.float64],
) -> tuple[NDArray[np.float64], NDArray[np.bool_]] | None:
    """``D Z'`` times the terms ``(Z D Z')^k r``, k > 0, of the series of ``(I - Z D Z')^-1`` r, and the settled blocks.

    ``second`` is ``Z'r``, ``energy`` the squares of the residual r. None where the terms do not shrink fast.

    In single precision: the terms that it rounds are smaller than the scores by the square of the blocks' influence,
    and reach them multiplied by it once more. Columns are taken in units of their largest residual, and directions are
    scaled by their largest ``D``, so that nothing overflows.
    """
    open_ = energy > goal
    most = np.maximum(energy, goal).max(axis=0, where=np.isfinite(goal), initial=0.0)
    unit = np.sqrt(np.where(most > 0.0, most, 1.0))
    lengths = energy / unit**2
    if not lengths.min(where=open_, initial=1.0) > _SINGLE_RANGE:
        return None
    scaled = np.multiply(Z, h.root, dtype=np.float32, casting="same_kind")
    term = scaled @ (second * (h.root[:, None] * h.share / unit)).astype(np.float32)
    left = _squares(term, term)
    shrunk = np.divide(left, lengths, out=np.zeros_like(left), where=open_).max()
    if not shrunk <= _FAST**2:
        return None
    goal = goal / unit**2 / max(shrunk, _TOLERANCE)
    total = np.zeros(second.shape, dtype=np.float32)
    columns, share = np.arange(second.shape[2]), h.share
    for _ in range(_MAX_ROUNDS):
        alive = (left > goal).any(axis=0)
        if not alive.any():
            break
        if not alive.all():
            columns, goal = columns[alive], goal[:, alive]
            term, share = (np.ascontiguousarray(part[..., alive]) for part in (term, share))
        weights = _transposed(scaled) @ term
        weights *= share
        if len(columns) == h.share.shape[1]:
            total += weights
        else:
            total[:, :, columns] += weights
        term = scaled @ weights
        left = _squares(term, term)
    return total * (h.root[:, None] * unit), np.asarray(~(left > goal).any(axis=1))


def _downdate(h: _Held, block: Any, out: NDArray[np.float64], *, threads: int) -> None:
    gram, rhs = rows_gram(h.rows, block, h.target, threads=threads)
    W = weights_without(gram, rhs, h.spectrum, h.vectors, h.right, h.alphas)
    for some in h.rows.pieces(block):
        out[some] = h.rows.scores(some, W)


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
    alphas = holdout_alphas(alphas, float(decomposition.values.max(initial=0.0)))
    rest = -(directions.T @ gram @ directions)
    rest = 0.5 * (rest + rest.T)
    rest[np.diag_indices_from(rest)] += decomposition.values
    # What the block alone determined is gone with it: rounding may leave it slightly negative.
    s = spectrum(rest, len(directions), noise=decomposition.cutoff, semidefinite=True, overwrite=True)
    left = s.vectors.T @ (right - directions.T @ rhs)
    inverse = np.repeat(s.inverse(alphas), right.shape[1], axis=1)
    return np.asarray(directions @ (s.vectors @ (inverse * np.tile(left, len(alphas)))))


def _centre_scores(h: _Held, centres: NDArray[np.intp], x: NDArray[np.float64]) -> NDArray[np.float64]:
    """Scores of the rows' centres, which those of the differences leave out, (blocks, length or 1, columns of x)."""
    if (centres == centres[:, :1]).all():
        return np.asarray(h.centres[centres[:, :1]] @ x)
    found = [np.unique(numbers, return_inverse=True) for numbers in centres]
    return np.stack([(h.centres[which] @ w)[number] for (which, number), w in zip(found, x, strict=True)])
