r"""Labelled items and preferences as operators ``L`` and ``F`` with ``F'F = L``, neither of which is formed densely.

The loss of a graph at scores f is ``||F f - t||^2``. A graph acts on blocks of whole queries (groups of preferences):
:class:`LabelledGraph` and :class:`PreferenceGraph` have the same operations.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import ClassVar, TypeAlias, TypeVar

import numpy as np
from scipy import sparse
from scipy.sparse import csgraph

from rankrls._arrays import column, on_device, repeated, taken
from rankrls._cached import cached_property
from rankrls._typing import Array, Index, Mask, Matrix
from rankrls.numerics.runs import (
    SortedRows,
    averaging,
    chunks,
    dense_rows,
    deviations,
    device_deviations,
    edges,
    group_means,
    group_sums,
    lengths_to_starts,
    means_of_runs,
    runs_of,
)
from rankrls.numerics.ties import tie

T = TypeVar("T")

_FAINT = 1e-6
"""Rows of F whose squared length is at most this share of the largest lose three digits when F is inverted."""


@dataclass(frozen=True, eq=False)
class LabelledGraph(SortedRows):
    r"""Items with labels, compared inside queries.

    Let w be the row weights, ``S_q`` the weight of a query, ``S_c`` that of a class (the items of the query with the
    same label), and ``zq``, ``zc`` the weighted means of z over them. Then

    .. math::

        (Lz)_i = w_i [ e_1 (z_i - z_c) + e_2 (z_c - z_q) + e_3 z_q ] , \qquad
        (Fz)_i = \sqrt{w_i} [ \sqrt{e_1} (z_i - z_c) + \sqrt{e_2} (z_c - z_q) + \sqrt{e_3} z_q ]

    with :math:`e_1 = \beta + (1 - \beta) \rho_q a_c`, :math:`e_2 = \beta + (1 - \beta) \rho_q S_q` and
    :math:`e_3 = \beta`, where ``a_c = S_q - S_c`` if tied pairs are excluded and ``S_q`` if they
    are included (classes do not matter then). ``F'F = L`` because the three parts are orthogonal projections in the
    coordinates ``sqrt(w) z``. For :math:`\beta = 0`, L is the Laplacian of Pahikkala et al. (2007, section 2.3) with
    pair weights :math:`\rho_q w_i w_j`.

    Built by :meth:`build`. Rows are sorted by query, then by the (first) label.

    Attributes
    ----------
    rows : ndarray of shape (m,), intp
        Row of X of each item.
    y : ndarray of shape (m, targets)
    weights : ndarray of shape (m,)
    starts : ndarray of shape (q + 1,)
        First row of each query, and m.
    class_starts, query_classes : ndarray
        First row of each class (of each query if ties are included), and m; first class of each query, (q + 1,).
    e1, e2 : ndarray
        Levels of the classes and of the queries.
    e3 : float
    excludes_ties : bool
    faint : float
        Squared length of a row of F up to which its item is :attr:`unseen`.
    """

    y: Array
    weights: Array
    starts: Index
    class_starts: Index
    query_classes: Index
    e1: Array
    e2: Array
    e3: float
    excludes_ties: bool
    faint: float

    @classmethod
    def build(
        cls,
        y: Array,
        queries: Index | None = None,
        *,
        weights: Array | None = None,
        ties: str = "include",
        balance: str = "examples",
        regression_weight: float = 0.0,
    ) -> LabelledGraph:
        r"""Sort rows and compute the levels. O(m) if rows are sorted, O(m log m) otherwise.

        Parameters
        ----------
        y : ndarray of shape (m,) or (m, targets)
            Labels. With ties excluded the graph depends on the labels: one target.
        queries : ndarray of shape (m,), int, optional
            Number of each row's query, 0 to q - 1; one query of all rows by default.
        weights : ndarray of shape (m,), optional
            Positive weights of rows, 1 by default; a pair has weight ``w_i w_j``.
        ties : {"include", "exclude"}
            Whether pairs of equal labels are compared.
        balance : {"pairs", "examples", "queries"}
            Unit of equal weight: every pair (:math:`\rho_q = 1`), every item (``1 / S_q``), or every query (1 / the
            weight of its compared pairs, 0 if there are none).
        regression_weight : float in [0, 1]
            :math:`\beta`: 0 ranks, 1 regresses.

        Examples
        --------
        >>> import numpy as np
        >>> from rankrls.numerics.graph import LabelledGraph
        >>> graph = LabelledGraph.build(np.array([2.0, 1.0, 1.0]), balance="pairs", ties="exclude")
        >>> graph.rows
        array([1, 2, 0])
        >>> graph.laplacian(np.eye(3)).round(9) + 0.0  # in the order of graph.rows
        array([[ 1.,  0., -1.],
               [ 0.,  1., -1.],
               [-1., -1.,  2.]])
        """
        m = len(y)
        beta = float(regression_weight)
        y = np.asarray(y, dtype=np.float64).reshape(m, -1)
        label = y[:, 0] if y.shape[1] else np.zeros(m)
        q = np.zeros(m, dtype=np.intp) if queries is None else np.asarray(queries, dtype=np.intp)
        w = np.ones(m) if weights is None else np.asarray(weights, dtype=np.float64)
        rows = np.arange(m, dtype=np.intp)
        step = np.diff(q)
        if not ((step > 0) | ((step == 0) & (np.diff(label) >= 0))).all():
            rows = np.lexsort((label, q)).astype(np.intp, copy=False)
            y = y[rows]
            label = label[rows]
            q = q[rows]
            w = w[rows]
        new_query = np.diff(q, prepend=-1) != 0
        starts = edges(new_query)
        class_starts = edges(new_query | (np.diff(label, prepend=np.nan) != 0))
        excludes = ties == "exclude" and len(class_starts) <= m  # else no two labels are tied
        class_starts = class_starts if excludes else starts
        query_classes = np.searchsorted(class_starts, starts).astype(np.intp)
        class_weight = group_sums(w, class_starts)
        query_weight = group_sums(w, starts)
        of = np.repeat(np.arange(len(query_weight)), np.diff(query_classes))
        compared = query_weight[of] - class_weight if excludes else query_weight
        rho = np.ones_like(query_weight)
        if balance == "examples":
            rho = 1.0 / query_weight
        elif balance == "queries":
            own = group_sums(class_weight**2, query_classes) if excludes else group_sums(w**2, starts)
            pairs = 0.5 * (query_weight**2 - own)
            rho = np.divide(1.0, pairs, out=np.zeros_like(pairs), where=pairs > 0.0)
        if excludes:
            rho[np.diff(query_classes) == 1] = 0.0  # its class and query means differ by rounding alone
        e1 = beta + (1.0 - beta) * rho[of] * compared
        e2 = beta + (1.0 - beta) * rho * query_weight
        faint = _FAINT * float((np.repeat(e1, np.diff(class_starts)) * w).max(initial=0.0))
        return cls(rows, y, w, starts, class_starts, query_classes, e1, e2, beta, excludes, faint)

    def part(self, a: int, b: int) -> LabelledGraph:
        """Graph of queries ``a`` to ``b - 1``, as views."""
        rows = slice(int(self.starts[a]), int(self.starts[b]))
        classes = slice(int(self.query_classes[a]), int(self.query_classes[b]))
        return self._subset(rows, classes, slice(a, b))

    def take(self, queries: Index) -> LabelledGraph:
        """Graph of the given queries in the given order, with the weights of this graph."""
        which = np.asarray(queries, dtype=np.intp)
        return self._subset(runs_of(self.starts, which), runs_of(self.query_classes, which), which)

    def _subset(self, rows: slice | Index, classes: slice | Index, queries: slice | Index) -> LabelledGraph:
        """Graph of the given queries, with their rows and classes."""
        return replace(
            self,
            rows=self.rows[rows],
            y=self.y[rows],
            weights=self.weights[rows],
            starts=lengths_to_starts(self.lengths[queries]),
            class_starts=lengths_to_starts(self.class_lengths[classes]),
            query_classes=lengths_to_starts(self.n_classes[queries]),
            e1=self.e1[classes],
            e2=self.e2[queries],
        )

    @property
    def items(self) -> Index:
        """Row of X of each item."""
        return self.rows

    def inside(self, rows: Index, n_rows: int) -> LabelledGraph:
        """The graph when its items are some rows of an X of ``n_rows`` rows."""
        return replace(self, rows=rows[self.rows])

    def pieces(self, n_rows: int) -> tuple[LabelledGraph, LabelledGraph]:
        """Pieces of about ``n_rows`` rows of a single query, and the graph of their means, whose ``L`` add up to its L.

        A piece is a run of whole classes, or part of a long class. The pieces are the queries of one graph.
        """
        runs = np.array(chunks(self.class_starts, n_rows))
        first_rows = self.class_starts[runs]
        starts: list[int] = []
        for (first, end), (a, b) in zip(first_rows.tolist(), runs.tolist(), strict=True):
            starts += range(first, end, n_rows if b - a == 1 else end - first)
        bounds = np.array([*starts, self.n_rows], dtype=np.intp)
        parts = np.union1d(self.class_starts, bounds)
        of_class = np.searchsorted(self.class_starts, parts[:-1], side="right") - 1
        pieces = replace(
            self,
            starts=bounds,
            class_starts=parts,
            query_classes=np.searchsorted(parts, bounds),
            e1=self.e1[of_class],
            e2=np.repeat(self.e2, len(starts)),
            e3=0.0,
        )
        means = replace(
            self,
            rows=np.arange(len(starts)),
            y=group_means(self.y.T, self.weights, bounds).T,
            weights=group_sums(self.weights, bounds),
            starts=np.array([0, len(starts)], dtype=np.intp),
            class_starts=np.append(np.searchsorted(bounds, first_rows[:, 0]), len(starts)),
            query_classes=np.array([0, len(runs)], dtype=np.intp),
            e1=self.e1[runs[:, 0]],
        )
        return pieces, means

    def by_kind(self, labelled: Callable[[LabelledGraph], T], preferred: object) -> T:
        """``labelled(self)``, where there is one algorithm for labels and another for preferences."""
        return labelled(self)

    @property
    def over_items(self) -> PreferenceGraph | None:
        """None: F has one row for each item."""
        return None

    @property
    def sees_constants(self) -> bool:
        """Whether the loss changes if a constant is added to all scores."""
        return self.e3 > 0.0

    @cached_property
    def lengths(self) -> Index:
        """Number of items of each query."""
        return np.diff(self.starts)

    @cached_property
    def class_lengths(self) -> Index:
        """Number of items of each class."""
        return np.diff(self.class_starts)

    @cached_property
    def n_classes(self) -> Index:
        """Number of classes of each query."""
        return np.diff(self.query_classes)

    def read(self, X: Matrix, scale: Array | None = None) -> tuple[Matrix, Matrix]:
        """Deviations of the items from the means of their queries, (m, n), and these means, (q, n).

        Values are measured from each query's first row, so that a constant column is exactly 0 and an offset costs no
        digits. X is dense, CSR, or another object whose rows can be indexed; deviations are multiplied by the scale
        of their row.
        """
        rows = self.rows
        scale = np.ones(self.n_rows) if scale is None else scale
        if not (isinstance(X, np.ndarray) and X.dtype == np.float64 and X.flags.c_contiguous):
            X = dense_rows(X, rows)
            rows = np.arange(len(rows), dtype=np.intp)
            if on_device(X):
                D, means = device_deviations(X, self.starts, self.weights)
                return D * column(scale, D), means
        D = np.empty((len(rows), X.shape[1]))
        means = np.empty((len(self.lengths), X.shape[1]))
        deviations(X, rows, self.starts, self.weights, scale, D, means)
        return D, means

    def factor(self, D: Matrix, means: Matrix) -> Matrix:
        """``F X`` from :meth:`read`, or ``F X V`` from the products of both with V; overwrites D."""
        root, r1, r2 = self._roots
        of_class = means_of_runs(D, self.weights, self.class_starts) if self.excludes_ties else None
        D *= column(self.scale, D)
        if of_class is not None:
            of_class *= column(np.repeat(r2, self.n_classes) - r1, D)
            D += repeated(of_class, self.class_lengths) * column(root, D)
        if self.e3 and means is not None:
            D += repeated(float(np.sqrt(self.e3)) * means, self.lengths) * column(root, D)
        return D

    def factor_rows(self, X: Matrix) -> Matrix:
        """``F X``, (m, n)."""
        if self.excludes_ties or self.e3:
            return self.factor(*self.read(X))
        return self.read(X, self.scale)[0]

    def sparse_gram(self, x: Matrix) -> Array:
        """``X'LX`` for the sparse rows of the items, from sparse products with the diagonal and the means of L."""
        diagonal, levels = self.levels
        gram = x.T @ sparse.diags_array(diagonal) @ x
        for starts, weights in levels:
            M = averaging(self.weights, starts) @ x
            gram = gram + M.T @ sparse.diags_array(weights) @ M
        return np.asarray(gram.toarray())

    def centred_items(self, X: Matrix) -> Matrix:
        """Items in the order of X, each minus the mean of its query, (items, n)."""
        return taken(self.read(X)[0], self.place)

    @property
    def scale(self) -> Array:
        """Smallest factor by which F scales deviations, (m,)."""
        return np.asarray(self._roots[0] * np.repeat(self._roots[1], self.class_lengths))

    def unfactor(self, P: Array) -> Array:
        """Deviations from the query means, (..., m), given ``F f``, (..., m); unreliable for :attr:`unseen` items."""
        root, r1, r2 = self._roots
        inverse = [np.divide(1.0, r, out=np.zeros_like(r), where=r > 0.0) for r in (r1, r2)]
        if not (self.excludes_ties or self.e3):
            return np.asarray(P * (np.repeat(inverse[0], self.lengths) / root))
        return self._levels(P / root, inverse[0], inverse[1], 0.0)

    def laplacian(self, f: Array) -> Array:
        """``L f`` for f of shape (m,) or (m, columns)."""
        return np.asarray((self.weights * self._levels(f.T, self.e1, self.e2, self.e3)).T)

    def transposed(self, u: Array) -> Array:
        """``F'u`` for u of shape (m,) or (m, columns): F is symmetric in the coordinates ``sqrt(w) z``."""
        root, r1, r2 = self._roots
        return np.asarray((self.weights * self._levels(u.T / root, r1, r2, np.sqrt(self.e3))).T)

    def item_coefficients(self, u: Array, n_items: int | None = None) -> Array:
        """``F'u`` in the order of the rows of X, (items,) or (items, columns); 0 for items outside the graph."""
        out = np.zeros((self.n_rows if n_items is None else n_items, *u.shape[1:]))
        out[self.rows] = self.transposed(u)
        return out

    def factored(self, z: Array) -> Array:
        """``F z`` for z of shape (m,) or (m, columns), in the row order of the graph."""
        root, r1, r2 = self._roots
        return np.ascontiguousarray((root * self._levels(z.T, r1, r2, np.sqrt(self.e3))).T)

    @cached_property
    def target(self) -> Array:
        """``t = F y``, (m, targets)."""
        return self.factored(self.y)

    @property
    def unseen(self) -> Mask:
        """Items whose scores cannot be recovered from ``F f``: they are not compared, or their weight is negligible."""
        return self.weights * np.repeat(self.e1, self.class_lengths) <= self.faint

    @property
    def rho(self) -> Array:
        """Factor of the weights of the pairs of each row, (m,)."""
        return np.repeat(self.e2 / group_sums(self.weights, self.starts), self.lengths)

    @property
    def pair_weight(self) -> float:
        """Total weight of the compared pairs; ``w e1`` is that of the pairs of an item."""
        return 0.5 * float(self.weights @ np.repeat(self.e1, self.class_lengths))

    @property
    def n_observations(self) -> int:
        """Rank of L: the number of independent observations."""
        count = (self.class_lengths - 1)[self.e1 > 0.0].sum() + (self.n_classes - 1)[self.e2 > 0.0].sum()
        return int(count) + (len(self.e2) if self.e3 else 0)

    @cached_property
    def _roots(self) -> tuple[Array, Array, Array]:
        """``sqrt(w)`` of the items, ``sqrt(e1)`` of the classes, ``sqrt(e2)`` of the queries."""
        return np.sqrt(self.weights), np.sqrt(self.e1), np.sqrt(self.e2)

    def with_levels(self, sizes: Array) -> Array:
        """Sizes of rows, plus the mean size of their query if scores are sums over the levels of L."""
        if not (self.excludes_ties or self.e3):
            return sizes
        return np.asarray(sizes + np.repeat(group_means(sizes, self.weights, self.starts), self.lengths))

    def tie(self, scores: Array, off: Array, levels: Array | None) -> None:
        """Make scores (targets, alphas, rows) of a query equal if they differ within their error bounds, in place.

        The levels of their queries are then added, if given.
        """
        columns = (-1, self.n_rows)
        added = None if levels is None else levels.reshape(columns)
        tie(scores.reshape(columns), self.starts, off.reshape(columns), added)

    @property
    def levels(self) -> tuple[Array, list[tuple[Index, Array]]]:
        """``L`` as a diagonal d, (m,), and runs whose means have weights c: z'Lz = sum d z^2 + sum c mean^2."""
        beyond = np.repeat(self.e2, self.n_classes) if self.excludes_ties else self.e3
        runs = [(self.class_starts, beyond - self.e1)]
        if self.excludes_ties:
            runs.append((self.starts, self.e3 - self.e2))
        means = [(starts, change * group_sums(self.weights, starts)) for starts, change in runs]
        return np.repeat(self.e1, self.class_lengths) * self.weights, means

    def _levels(self, z: Array, k1: Array, k2: Array, k3: float) -> Array:
        """``k1 (z - zc) + k2 (zc - zq) + k3 zq`` along the last axis."""
        first = z[..., self.starts[:-1]]
        d = z - np.repeat(first, self.lengths, axis=-1)
        mean = group_means(d, self.weights, self.starts)
        d -= np.repeat(mean, self.lengths, axis=-1)
        out = d * np.repeat(k1, self.class_lengths)
        if self.excludes_ties:
            of_class = group_means(d, self.weights, self.class_starts)
            out += np.repeat(of_class * (np.repeat(k2, self.n_classes) - k1), self.class_lengths, axis=-1)
        if k3:
            out += np.repeat(k3 * (first + mean), self.lengths, axis=-1)
        return np.asarray(out)


@dataclass(frozen=True, eq=False)
class PreferenceGraph(SortedRows):
    r"""Preferences for item ``winners[e]`` over ``losers[e]`` by ``strength[e]``, one row of F each.

    .. math:: || F f - t ||^2 = \sum_e c_e ( s_e - (f_{i_e} - f_{j_e}) )^2 ,

    is the loss of the weighted graph W of Pahikkala et al. (2007), given as a list of edges. The preferences of a group
    are held out together; by default, each preference is its own group. Built by :meth:`build`.

    Attributes
    ----------
    rows : ndarray of shape (p,), intp
        Number of each preference in the order given.
    winners, losers : ndarray of shape (p,), intp
        Numbers of items, rows of X.
    strength, weights : ndarray of shape (p,)
    starts : ndarray of shape (groups + 1,)
    n_items : int
    """

    winners: Index
    losers: Index
    strength: Array
    weights: Array
    starts: Index
    n_items: int

    sees_constants: ClassVar[bool] = False

    @classmethod
    def build(
        cls,
        winners: Index,
        losers: Index,
        n_items: int,
        *,
        strength: Array | None = None,
        weights: Array | None = None,
        groups: Index | None = None,
    ) -> PreferenceGraph:
        """Sort preferences by group (default: one each). Strengths and weights are 1 by default. O(p log p)."""
        p = len(winners)
        g = np.arange(p) if groups is None else np.asarray(groups)
        rows = np.argsort(g, kind="stable").astype(np.intp, copy=False)
        s, c = (np.ones(p) if a is None else np.asarray(a, dtype=np.float64) for a in (strength, weights))
        new = np.ones(p, dtype=bool)
        new[1:] = g[rows][1:] != g[rows][:-1]
        i, j = (np.asarray(a, dtype=np.intp)[rows] for a in (winners, losers))
        return cls(rows, i, j, s[rows], c[rows], edges(new), n_items)

    def part(self, a: int, b: int) -> PreferenceGraph:
        """Graph of groups ``a`` to ``b - 1``, over the same items."""
        first = int(self.starts[a])
        return self._subset(slice(first, int(self.starts[b])), self.starts[a : b + 1] - first)

    def take(self, groups: Index) -> PreferenceGraph:
        """Graph of the given groups in the given order."""
        which = np.asarray(groups, dtype=np.intp)
        return self._subset(runs_of(self.starts, which), lengths_to_starts(np.diff(self.starts)[which]))

    def _subset(self, rows: slice | Index, starts: Index) -> PreferenceGraph:
        """Graph of the given rows, in groups that begin at ``starts``."""
        return replace(
            self,
            rows=self.rows[rows],
            winners=self.winners[rows],
            losers=self.losers[rows],
            strength=self.strength[rows],
            weights=self.weights[rows],
            starts=starts,
        )

    @property
    def items(self) -> Index:
        """All rows of X."""
        return np.arange(self.n_items)

    def inside(self, rows: Index, n_rows: int) -> PreferenceGraph:
        """The graph when its items are some rows of an X of ``n_rows`` rows."""
        return replace(self, winners=rows[self.winners], losers=rows[self.losers], n_items=n_rows)

    def pieces(self, n_rows: int) -> tuple[PreferenceGraph, None]:
        """Graph with a group for each preference, whose parts have ``L`` that add up; nothing else does."""
        return replace(self, starts=np.arange(self.n_rows + 1)), None

    def by_kind(self, labelled: object, preferred: Callable[[PreferenceGraph], T]) -> T:
        """``preferred(self)``, where there is one algorithm for labels and another for preferences."""
        return preferred(self)

    @property
    def over_items(self) -> PreferenceGraph | None:
        """The graph itself if it has more preferences than items, whose equations are then formed item by item."""
        return self if self.n_rows > self.n_items else None

    def centred_items(self, X: Matrix) -> Array:
        """Items, each minus the first item of its connected component, (items, n)."""
        return np.asarray(dense_rows(X, slice(None)) - dense_rows(X, self.components))

    def read(self, X: Matrix) -> tuple[Array, None]:
        """Differences of winners and losers, (p, n); there are no means."""
        D = dense_rows(X, self.winners)
        D -= dense_rows(X, self.losers)
        return D, None

    def factor(self, D: Array, means: Array | None) -> Array:
        """``F X`` from :meth:`read`; overwrites D."""
        D *= self.scale[:, None]
        return D

    def factor_rows(self, X: Matrix) -> Array:
        """``F X``, (p, n)."""
        return self.factor(*self.read(X))

    def sparse_gram(self, x: Matrix) -> Array:
        """``X'LX`` for the sparse rows of the items, from sparse products with L."""
        return np.asarray((x.T @ (self.matrix @ x)).toarray())

    def unfactor(self, P: Array) -> Array:
        """Margins ``f_i - f_j``, (..., p), given ``F f``."""
        return np.asarray(P / self.scale)

    @property
    def scale(self) -> Array:
        """Factor by which F scales differences, (p,)."""
        return np.sqrt(self.weights)

    @cached_property
    def incidence(self) -> sparse.csr_array:
        """1 for the winner and -1 for the loser of each preference, (p, items)."""
        ends = np.column_stack((self.winners, self.losers)).ravel()
        shape = self.n_rows, self.n_items
        return sparse.csr_array((np.tile([1.0, -1.0], self.n_rows), ends, 2 * np.arange(self.n_rows + 1)), shape=shape)

    def laplacian(self, f: Array) -> Array:
        """``L f`` for f of shape (items,) or (items, columns), without the offset of f."""
        return np.asarray(self.matrix @ (f - f.mean(axis=0)))

    def transposed(self, u: Array) -> Array:
        """``F'u`` for u of shape (p,) or (p, columns): (items,) or (items, columns)."""
        return np.asarray(self.incidence.T @ (u.T * self.scale).T)

    def item_coefficients(self, u: Array, n_items: int | None = None) -> Array:
        """``F'u``, which is in the order of the rows of X."""
        return self.transposed(u)

    def with_levels(self, sizes: Array) -> Array:
        """Sizes of rows: margins are not sums."""
        return sizes

    def tie(self, scores: Array, off: Array, levels: Array | None) -> None:
        """Make margins (targets, alphas, rows) within their error bounds 0, in place."""
        scores[np.abs(scores) <= off] = 0.0

    @cached_property
    def target(self) -> Array:
        """``sqrt(c) s``, (p, 1)."""
        return (self.scale * self.strength)[:, None]

    @property
    def unseen(self) -> Mask:
        """False for every preference: all margins can be recovered from ``F f``."""
        return np.zeros(self.n_rows, dtype=bool)

    @property
    def pair_weight(self) -> float:
        """Total weight of the preferences."""
        return float(self.weights.sum())

    @property
    def n_observations(self) -> int:
        """Number of preferences."""
        return self.n_rows

    @cached_property
    def components(self) -> Index:
        """First item of the connected component of each item, (items,)."""
        _, labels = csgraph.connected_components(self.matrix, directed=False)
        return np.asarray(np.unique(labels, return_index=True)[1][labels].astype(np.intp))

    @cached_property
    def matrix(self) -> sparse.csr_array:
        """``L`` itself, (items, items), with at most ``items + 2 p`` entries."""
        ends = self.winners, self.losers
        one_way = sparse.csr_array((self.weights, ends), shape=(self.n_items, self.n_items))
        both = one_way + one_way.T
        return sparse.csr_array(sparse.diags_array(both.sum(axis=1)) - both)


Graph: TypeAlias = LabelledGraph | PreferenceGraph
