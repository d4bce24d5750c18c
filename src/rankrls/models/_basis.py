"""Which items a sparse model expands over, and what such models share."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from rankrls.graph import PairGraph
from rankrls.kernels import Kernel
from rankrls.models._base import KernelRanker
from rankrls.models._problems import FittedProblem, scored_graphs
from rankrls.models._validation import TrainingData, check_choice, check_count, take_rows
from rankrls.problems.subset import Basis, SubsetProblem

__all__ = ["BASES", "BasisRanker", "learn_pairs"]

BASES = ("random", "kmeans")
"""Ways to choose a basis that look at no labels."""
Items = tuple[Any, NDArray[np.intp] | None]
Learn = Callable[[int, np.random.Generator], tuple[NDArray[np.intp], Any, NDArray[np.float64]]]
_CANDIDATES = 4
_LEAST_CANDIDATES = 1000
"""A pursuit chooses among so many rows for each basis item, and at least among so many."""
_PURSUED_BYTES = 512 << 20
_KMEANS_ROWS = 50
"""Rows a centre that k-means looks at; more move the centres little."""


class BasisRanker(KernelRanker):
    """Scores items by ``sum_j a_j k(x, z_j)`` over a basis of items z."""

    n_basis: Any
    basis: Any
    basis_indices: Any
    random_state: Any
    ties: Any
    balance: Any
    regression_weight: Any
    basis_indices_: NDArray[np.intp] | None
    _basis_parts: dict[str, Any]

    def _check_basis(self) -> None:
        """The basis parameters, as far as they can be checked without data."""
        check_count("n_basis", self.n_basis)
        check_choice("basis", self.basis, (*BASES, "pursuit"))

    def _given_numbers(self, n_items: int) -> NDArray[np.intp] | None:
        """``basis_indices``, checked against the rows of X."""
        if self.basis_indices is None:
            return None
        numbers = np.asarray(self.basis_indices)
        if numbers.ndim != 1 or not len(numbers) or numbers.dtype.kind not in "iu":
            raise ValueError(
                "basis_indices must be a sequence of at least one whole row number of X; got "
                f"{numbers.dtype} of shape {numbers.shape}."
            )
        outside = (numbers < 0) | (numbers >= n_items)
        if outside.any():
            raise ValueError(f"basis_indices names row {numbers[outside][0]}, but X has rows 0 to {n_items - 1}.")
        return numbers.astype(np.intp)

    def _choose_items(self, X: Any, kernel: Kernel, kept: NDArray[np.bool_] | None, learn: Learn | None) -> Items:
        """The basis items, and their row numbers in X where they are rows.

        ``learn`` gives what a pursuit looks at, some rows with their graph and target; nothing else looks at labels.
        """
        m = len(X) if isinstance(X, list) else X.shape[0]
        numbers = self._given_numbers(m if kept is None else len(kept))
        if numbers is not None and kept is not None:
            dropped = numbers[~kept[numbers]]
            if len(dropped):
                raise ValueError(f"basis_indices names row {dropped[0]}, whose weight is zero.")
            numbers = (np.cumsum(kept) - 1)[numbers].astype(np.intp)
        if numbers is None:
            rng = _generator(self.random_state)
            size = m if self.n_basis is None else int(self.n_basis)
            if size >= m:
                numbers = np.arange(m, dtype=np.intp)
            elif self.basis == "kmeans":
                if isinstance(X, list) or kernel.name == "precomputed":
                    raise ValueError("basis='kmeans' needs features to average; use basis='random' for this kernel.")
                return _kmeans(X, size, rng), None
            elif self.basis == "pursuit":
                assert learn is not None
                numbers = _pursued(X, kernel, size, rng, learn)
            else:
                numbers = np.sort(rng.choice(m, size, replace=False)).astype(np.intp)
        return (numbers if kernel.name == "precomputed" else take_rows(X, numbers)), numbers

    def _learn(self, data: TrainingData, ties: Any, balance: Any) -> Learn:
        """Some whole queries of the data, for a pursuit; the first target."""

        def some(most: int, rng: np.random.Generator) -> tuple[NDArray[np.intp], Any, NDArray[np.float64]]:
            rows = _some_queries(data, most, rng)
            part = data.rows(rows)
            graph, columns = scored_graphs(part, ties, balance, float(self.regression_weight))[0]
            return rows, graph, graph.F @ part.Y[:, columns.start]

        return some

    def _build_basis(self, X: Any, kernel: Kernel, kept: NDArray[np.bool_] | None, learn: Learn | None = None) -> Basis:
        """Choose the items, and decompose the kernel between them."""
        return self._basis_of(X, kernel, *self._choose_items(X, kernel, kept, learn))

    def _basis_of(self, X: Any, kernel: Kernel, items: Any, numbers: NDArray[np.intp] | None) -> Basis:
        if kernel.name != "precomputed":
            return replace(Basis.build(kernel, items), numbers=numbers)
        assert numbers is not None
        K = X[numbers][:, numbers]
        K = np.array(K.toarray() if sparse.issparse(K) else K, dtype=np.float64)
        return replace(Basis.build(kernel, items, 0.5 * (K + K.T)), numbers=numbers)

    def _adopt(
        self, data: TrainingData, kernel: Any, problems: list[FittedProblem], solutions: list[NDArray[np.float64]]
    ) -> None:
        problem = problems[0].problem
        assert isinstance(problem, SubsetProblem)
        self._fitted_with_qid = data.has_qid
        self.n_queries_ = data.layout.n_queries
        self._adopt_basis(problem.basis, data.kept)
        self._set_expansion(np.column_stack(solutions), data.one_target)

    def _adopt_pairs(self, X: Any, kernel: Any, problem: Any, graph: PairGraph, solution: NDArray[np.float64]) -> None:
        self._fitted_with_qid = False
        self.n_queries_ = 1
        self._adopt_basis(problem.basis, None)
        self._set_expansion(solution, True)

    def _adopt_basis(self, basis: Basis, kept: NDArray[np.bool_] | None) -> None:
        self._kernel_ = basis.kernel
        numbers = basis.numbers
        self.basis_indices_ = numbers if numbers is None or kept is None else np.flatnonzero(kept)[numbers]
        if basis.kernel.name != "precomputed":
            self.X_fit_ = basis.items

    def _set_expansion(self, a: NDArray[np.float64], one_target: bool) -> None:
        self._one_target = one_target
        self.dual_coef_ = np.ascontiguousarray(a[:, 0] if one_target else a)
        if self._kernel_.is_linear:
            self._set_coefficients([np.asarray(self.X_fit_.T @ a, dtype=np.float64)], one_target)

    def _expansion_columns(self, K: Any) -> Any:
        return K[:, self.basis_indices_]

    def _forget_fit(self) -> None:
        super()._forget_fit()
        for name in ("basis_indices_", "_basis_parts"):
            self.__dict__.pop(name, None)


def learn_pairs(graph: PairGraph) -> Learn:
    """All preferences, for a pursuit."""
    return lambda most, rng: (np.arange(graph.n_items, dtype=np.intp), graph, graph.target)


def _generator(random_state: Any) -> np.random.Generator:
    """A generator from what scikit-learn calls a random state."""
    if isinstance(random_state, np.random.RandomState):
        return np.random.default_rng(random_state.randint(2**31))
    return np.random.default_rng(random_state)


def _kmeans(X: Any, n_centres: int, rng: np.random.Generator) -> NDArray[np.float64]:
    """Centres of k-means by small batches, on a sample of the rows where there are very many."""
    from sklearn.cluster import MiniBatchKMeans
    from sklearn.exceptions import ConvergenceWarning

    most = _KMEANS_ROWS * n_centres
    if X.shape[0] > most:
        X = X[np.sort(rng.choice(X.shape[0], most, replace=False))]
    seed = int(rng.integers(2**31))
    batch = max(1024, 4 * n_centres)
    means = MiniBatchKMeans(n_centres, n_init=1, batch_size=batch, max_iter=20, random_state=seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # fewer distinct rows than centres: some centres coincide
        means.fit(X)
    return np.asarray(means.cluster_centers_, dtype=np.float64)


def _pursued(X: Any, kernel: Kernel, size: int, rng: np.random.Generator, learn: Learn) -> NDArray[np.intp]:
    """Rows that a pursuit takes one after the other, in that order; at least one.

    O(size x candidates x rows). Candidates are a random sample of rows, and of very many rows it looks at as many whole
    queries as keep the candidates' columns within half a gigabyte.
    """
    from rankrls.greedy.dictionaries import kernel_dictionary
    from rankrls.greedy.pursuit import pursue

    m = len(X) if isinstance(X, list) else X.shape[0]
    candidates = np.arange(m, dtype=np.intp)
    most = max(_CANDIDATES * size, _LEAST_CANDIDATES)
    if m > most:
        candidates = np.sort(rng.choice(m, most, replace=False)).astype(np.intp)
    rows, graph, target = learn(_PURSUED_BYTES // (8 * len(candidates)), rng)
    if kernel.name == "precomputed":
        dictionary = kernel_dictionary(kernel, X[rows][:, candidates], None, graph)
    else:
        dictionary = kernel_dictionary(kernel, take_rows(X, rows), take_rows(X, candidates), graph)
    taken = pursue(dictionary, target, size).indices
    return candidates[taken] if len(taken) else candidates[:1]


def _some_queries(data: TrainingData, most: int, rng: np.random.Generator) -> NDArray[np.intp]:
    """Rows of random whole queries, about ``most`` in all; of one larger query random rows."""
    m, layout = data.layout.n_rows, data.layout
    if m <= most:
        return np.arange(m, dtype=np.intp)
    order = rng.permutation(layout.by_id)
    enough = order[np.cumsum(layout.counts[order]) <= most]
    if not len(enough):
        return np.sort(rng.choice(m, most, replace=False)).astype(np.intp)
    return np.flatnonzero(np.isin(layout.codes, enough))
