"""RankRLS as a candidate of a search: its problem in the form that suits the shape of the data.

=============  ====================================================================================================
primal         a linear kernel with no more features than items, or a basis of items: one weight for each feature
dual           other kernels, and more features than items: one coefficient for each item
items          a kernel and more preferences than items: primal in features that have the items' inner products
=============  ====================================================================================================
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from rankrls._arrays import moved, on_device
from rankrls._cached import cached_property
from rankrls._comparisons import Comparisons, Setting
from rankrls._errors import InputError, InputWarning
from rankrls._rows import offset_columns, shift_columns
from rankrls.kernels import Kernel
from rankrls.learners.paths import PathSolutions
from rankrls.metrics import Measure
from rankrls.metrics._values import mean_and_error, mean_of_judged
from rankrls.numerics.basis import Basis
from rankrls.numerics.graph import Array, Graph, Index, PreferenceGraph
from rankrls.numerics.holdout import hold_out_chunks, in_order_of
from rankrls.numerics.nonnegative import hold_out_signed, signed_path
from rankrls.numerics.preferred_pairs import feature_rounding, hold_out_items, kernel_features, kernel_rounding
from rankrls.numerics.runs import dense_rows
from rankrls.numerics.scorer import Scorer
from rankrls.numerics.smoother import (
    DualEquations,
    Equations,
    ItemSmoother,
    feature_weights,
    normal_equations,
)
from rankrls.selection.curves import Curve, judge_preferences, judge_queries, mean_of_targets, of_preferences

_UNRESOLVED = 1e-11
"""An alpha of a smaller share of the largest eigenvalue is lost in the rounding of a hold-out."""
Judge = Callable[[Any, Array], Any]
"""Is given a chunk of a graph and its held-out scores."""


@dataclass(frozen=True, eq=False, kw_only=True)
class LeastSquares:
    """``||F (y - f)||^2 + alpha ||f||^2`` for one kernel and one kind of graph. It costs nothing until it is solved.

    Attributes
    ----------
    kernel : Kernel
    setting : Setting
        How labels become a graph.
    choices : dict
        What was chosen, by parameter, for tables of results.
    solver : {"auto", "primal", "dual"}
    signs : ndarray of shape (n,), optional
        Constraints on the signs of a linear function's weights.
    make_basis : callable, optional
        Makes the basis of items that functions expand over.
    """

    kernel: Kernel
    setting: Setting = field(default_factory=Setting)
    choices: dict[str, Any] = field(default_factory=dict)
    solver: str = "auto"
    signs: NDArray[np.int8] | None = None
    make_basis: Callable[[], Basis] | None = None

    @property
    def square(self) -> bool:
        """Whether X is a kernel matrix with a column for each training item."""
        return self.make_basis is None and self.kernel.name == "precomputed"

    @cached_property
    def basis(self) -> Basis | None:
        """The basis, made when it is first needed."""
        return None if self.make_basis is None else self.make_basis()

    def problem(self, data: Comparisons) -> LeastSquaresProblem:
        """The problem of all targets: one form for all, or one a target if ties are excluded."""
        return LeastSquaresProblem([self._form(data.X, graph) for graph in data.numeric_graphs(self.setting)])

    def _form(self, X: Any, graph: Graph) -> Form:
        if self.basis is not None:
            return BasisForm(X, graph, self.basis)
        if self.signs is not None:
            return SignedForm(X, graph, self.signs)
        if is_primal(self.kernel, X, graph.n_rows, self.solver):
            return PrimalForm(X, graph)
        if isinstance(graph, PreferenceGraph) and graph.n_rows > graph.n_items:
            return ItemForm(X, graph, self.kernel)
        return DualForm(X, graph, self.kernel)


def is_primal(kernel: Kernel, X: Any, n_rows: int, solver: str) -> bool:
    """Whether to solve for one weight a feature instead of one coefficient an item."""
    if not kernel.is_linear:
        if solver == "primal":
            raise InputError(
                f"solver='primal' solves for feature weights and needs kernel='linear'; got {kernel.name!r}.",
                parameter="solver",
            )
        return False
    if solver != "auto":
        return solver == "primal"
    return bool(X.shape[1] <= min(n_rows, X.shape[0]))


def without_offset(X: Any) -> Any:
    """Items X measured from their mean; sparse items from what a column stores in every row."""
    return shift_columns(X, *offset_columns(X)) if sparse.issparse(X) else X - X.mean(axis=0, dtype=np.float64)


@dataclass(frozen=True, eq=False)
class Form:
    """How one graph over items X is solved.

    Attributes
    ----------
    X : items
    graph : Graph
    """

    X: Any
    graph: Graph

    @cached_property
    def equations(self) -> Any:
        """The equations of all data."""
        raise NotImplementedError

    @property
    def features(self) -> Any:
        """What a hold-out reads rows of."""
        return self.X

    @cached_property
    def smoother(self) -> Any:
        """The decomposed problem, for every alpha."""
        return self.equations.smoother()

    def solve(self, alpha: float) -> Array:
        """Coefficients of one alpha without a decomposition, (coefficients, targets)."""
        return np.asarray(self.equations.solve(alpha))

    def path(self, values: Array) -> Array:
        """Coefficients of several alphas, (values, coefficients, targets)."""
        return np.asarray(self.smoother.path(values))

    def read(self, coefficients: Array) -> Scorer:
        """Coefficients (coefficients, columns) as functions of items."""
        raise NotImplementedError

    def hold_out(self, values: Array, judge: Judge, folds: Sequence[Index] | None, means: bool) -> list[Any]:
        """See :meth:`LeastSquaresProblem.hold_out`."""
        smoother, (graph, units) = self.smoother, self._in_order(folds)
        if folds is not None:
            smoother = in_order_of(smoother, graph, np.concatenate(folds))
        return list(hold_out_chunks(smoother, graph, self.features, values, judge, units=units, means=means))

    @cached_property
    def item_features(self) -> Any:
        """Features (items, d) in which functions are linear and weigh ``alpha ||v||^2``, without a common offset."""
        raise NotImplementedError

    @property
    def rounding(self) -> tuple[Array, Array]:
        """How margins of :attr:`item_features` are rounded; see :func:`hold_out_items`."""
        return feature_rounding(self.item_features)

    def weights(self, equations: Equations, values: Array) -> Array:
        """Weights of :attr:`item_features` for several alphas, (values, d, 1)."""
        return equations.smoother().path(values)

    def hold_out_items(self, folds: Sequence[tuple[Index, Index]], values: Array) -> list[Array]:
        """Margins (preferences, values) of the second preferences of each fold, fitted to the first."""
        assert isinstance(self.graph, PreferenceGraph)

        def weights(equations: Equations) -> Array:
            return self.weights(equations, values)[:, :, 0].T

        return hold_out_items(self.item_features, self.graph, folds, weights, self.rounding)

    def _in_order(self, folds: Sequence[Index] | None) -> tuple[Graph, Index | None]:
        """The graph with the queries of each fold together, and the boundaries of the folds; all queries for None."""
        if folds is None:
            return self.graph, None
        bounds = np.concatenate(([0], np.cumsum([len(fold) for fold in folds]))).astype(np.intp)
        return self.graph.take(np.concatenate(folds)), bounds


class PrimalForm(Form):
    """One weight for each feature."""

    @cached_property
    def equations(self) -> Equations:
        return normal_equations(self.graph, self.features)

    @cached_property
    def item_features(self) -> Any:
        return without_offset(self.X)

    def read(self, coefficients: Array) -> Scorer:
        return Scorer(moved(coefficients, self.X))


@dataclass(frozen=True, eq=False)
class SignedForm(PrimalForm):
    """One weight for each feature, under constraints on signs."""

    signs: NDArray[np.int8]

    def solve(self, alpha: float) -> Array:
        return self.path(np.array([alpha]))[0]

    def path(self, values: Array) -> Array:
        return self.weights(self.equations, values)

    def weights(self, equations: Equations, values: Array) -> Array:
        return signed_path(equations, values, self.signs)

    def hold_out(self, values: Array, judge: Judge, folds: Sequence[Index] | None, means: bool) -> list[Any]:
        graph, units = self._in_order(folds)
        bounds = np.arange(len(graph.starts)) if units is None else units
        held = hold_out_signed(self.equations, graph, self.X, values, self.signs, units=bounds, means=means)
        return [judge(graph, held)]


@dataclass(frozen=True, eq=False)
class BasisForm(PrimalForm):
    """One coefficient for each item of a basis: primal in orthonormal features."""

    basis: Basis

    @cached_property
    def features(self) -> Any:
        return self.basis.features(self.X)

    @cached_property
    def equations(self) -> Equations:
        return normal_equations(self.graph, self.features).whitened(self.basis.whitening)

    @cached_property
    def item_features(self) -> Any:
        Z = dense_rows(self.features, slice(None))
        return Z if self.basis.whitening is None else Z @ self.basis.whitening

    def weights(self, equations: Equations, values: Array) -> Array:
        return equations.smoother(own=False).path(values)

    def read(self, coefficients: Array) -> Scorer:
        return self.basis.scorer(coefficients)


@dataclass(frozen=True, eq=False)
class DualForm(Form):
    """One coefficient for each item."""

    kernel: Kernel

    @property
    def equations(self) -> DualEquations:
        """The equations of all data, made each time, because to decompose or solve them destroys them."""
        if self.kernel.is_linear:
            return DualEquations.of_features(self.X, self.graph)
        return DualEquations.of_kernel(self.kernel(self.X), self.graph)

    @cached_property
    def moved(self) -> Any:
        """The items without a common offset, which changes no difference and is not squared then."""
        return without_offset(self.X) if self.kernel.is_linear else self.X

    @cached_property
    def item_features(self) -> Any:
        return kernel_features(self.kernel(self.moved))

    @property
    def rounding(self) -> tuple[Array, Array]:
        return kernel_rounding(self.item_features)

    def weights(self, equations: Equations, values: Array) -> Array:
        return equations.smoother(own=False).path(values)

    def read(self, coefficients: Array) -> Scorer:
        if self.kernel.is_linear:
            weights = feature_weights(self.graph, self.X, coefficients)
            return Scorer(moved(weights, self.X), moved(coefficients, self.X))
        return Scorer(
            None, moved(coefficients, self.X), self.kernel, None if self.kernel.name == "precomputed" else self.X
        )


@dataclass(frozen=True, eq=False)
class ItemForm(DualForm):
    """One coefficient for each item, from more preferences than items."""

    @cached_property
    def smoother(self) -> ItemSmoother:
        assert isinstance(self.graph, PreferenceGraph)
        return ItemSmoother.of_kernel(self.kernel(self.moved), self.graph)

    @property
    def item_features(self) -> Any:
        return self.smoother.features

    def read(self, coefficients: Array) -> Scorer:
        if self.kernel.is_linear:
            return Scorer(np.asarray(self.moved.T @ coefficients, dtype=np.float64), coefficients)
        return super().read(coefficients)

    @property
    def features(self) -> Any:
        return self.smoother.features

    def solve(self, alpha: float) -> Array:
        return self.smoother.path(np.array([alpha]))[0]


@dataclass(frozen=True, eq=False)
class Solutions:
    """Functions for several values of alpha: those of each form side by side."""

    forms: Sequence[PathSolutions]

    def scores(self, X: Any) -> Array:
        """Scores of items, (rows, values, targets)."""
        return _side_by_side([form.scores(X) for form in self.forms])

    def __getitem__(self, k: int) -> Scorer:
        return Scorer.side_by_side([form[k] for form in self.forms])


@dataclass(frozen=True, eq=False)
class LeastSquaresProblem:
    """The problem of one candidate on some data: its path over alpha, and its exact hold-out.

    Attributes
    ----------
    forms : sequence of Form
        One for all targets, or one for each.
    """

    forms: Sequence[Form]

    parameter = "alpha"

    def axis(self) -> Array:
        """An automatic grid that spans all targets' spectra, the largest alpha first."""
        smoothers = [form.smoother for form in self.forms]
        return np.asarray(max(smoothers, key=lambda smoother: smoother.top).grid())

    def solve(self, alpha: float) -> Scorer:
        """The function of one alpha, without a decomposition."""
        return Scorer.side_by_side([form.read(form.solve(alpha)) for form in self.forms])

    def path(self, values: Array) -> Solutions:
        """The functions of several alphas, from one decomposition."""
        return Solutions([PathSolutions(form.path(values), form.read) for form in self.forms])

    def unresolved(self, values: Array) -> NDArray[np.bool_]:
        """Which alphas are lost in rounding where the model fits every label: their held-out scores mean nothing."""
        out = np.zeros(len(values), dtype=bool)
        for form in self.forms:
            s, graph = form.smoother, form.graph
            free = graph.n_observations - int(np.diff(graph.starts).max(initial=0))
            if np.count_nonzero(s.values) >= free:
                out |= values < _UNRESOLVED * s.top
        if out.any():
            warnings.warn(
                InputWarning(
                    f"alpha = {values[out].max():.3g} and smaller are not evaluated: they are below "
                    f"{_UNRESOLVED:g} of the largest eigenvalue, where rounding errors dominate. Scale the features, "
                    "or use larger values.",
                    parameter="alphas",
                ),
                stacklevel=7,
            )
        return out

    @property
    def lost_feature(self) -> int | None:
        """The number of a feature that is lost in rounding beside others."""
        return self.forms[0].smoother.lost_feature

    def hold_out(
        self, values: Array, judge: Judge, folds: Sequence[Index] | None = None, *, means: bool = False
    ) -> list[list[Any]]:
        """``judge`` of each chunk of held-out scores, for each form.

        Parameters
        ----------
        values : ndarray
        judge : callable
            See :data:`Judge`.
        folds : sequence of ndarray of int, optional
            Numbers of the queries (groups of preferences) that are held out together, each at most once. By default
            each query by itself.
        means : bool
            Whether scores are those of the model itself, and not measured from the means of their queries.
        """
        check_positive(values)
        return [form.hold_out(values, judge, folds, means) for form in self.forms]

    def held_out_scores(self, values: Array, folds: Sequence[Index] | None = None) -> Array:
        """Held-out scores of items (margins of preferences), (rows, values, targets); NaN for rows not held out."""

        def kept(part: Graph, scores: Array) -> tuple[Index, Array]:
            return part.rows, scores

        out = self._in_rows(self.hold_out(values, kept, folds, means=True))
        out[:, self.unresolved(values)] = np.nan
        return out

    def _in_rows(self, forms: list[list[tuple[Index, Array]]]) -> Array:
        """Scores (targets, values, rows) of chunks of rows in one array, (rows, values, targets)."""
        columns = []
        for chunks in forms:
            columns.append(np.full((self.forms[0].graph.n_rows, *chunks[0][1].shape[1::-1]), np.nan))
            for rows, scores in chunks:
                columns[-1][rows] = scores.transpose(2, 1, 0)
        return _side_by_side(columns)

    def hold_out_items(self, folds: Sequence[tuple[Index, Index]], values: Array) -> list[Array]:
        """Margins of held-out preferences; see :meth:`Form.hold_out_items`."""
        return self.forms[0].hold_out_items(folds, values)

    def held_out_curve(self, measure: Measure, folds: Sequence[Index] | None, values: Array) -> Curve:
        """Evaluate every alpha with held-out queries (groups of preferences); see :meth:`hold_out`.

        The scores of all alphas are kept if they take no more memory than dense items do; otherwise those of the chosen
        one are found again.
        """
        if isinstance(self.forms[0].graph, PreferenceGraph):
            return self._curve_of_preferences(measure, folds, values)
        X, rows, n_queries = self.forms[0].X, self.forms[0].graph.n_rows, len(self.forms[0].graph.starts) - 1
        room = X.nbytes if isinstance(X, np.ndarray) else 8 * X.shape[0] * X.shape[1] if on_device(X) else 0
        keeps = 8 * rows * len(values) * sum(form.graph.target.shape[1] for form in self.forms) <= room

        def judge(part: Any, scores: Array) -> tuple[Array, Any]:
            return judge_queries(measure, part, scores), (part.rows, scores) if keeps else None

        found, kept = [], []
        for chunks in self.hold_out(values, judge, folds, means=keeps or callable(measure.name)):
            judged, scores_of_chunks = zip(*chunks, strict=True)
            kept.append(scores_of_chunks)
            of_targets = np.concatenate(judged, axis=1)
            each = np.full((len(of_targets), n_queries, len(values)), np.nan)
            each[:, slice(None) if folds is None else np.concatenate(folds)] = of_targets
            found += list(each)
        each_query, mean = mean_of_targets(found), mean_of_targets([mean_of_judged(each) for each in found])
        mean[self.unresolved(values)] = np.nan

        def scores(k: int) -> Array:
            if keeps:
                chosen = [[(rows, of_all[:, k : k + 1]) for rows, of_all in chunks] for chunks in kept]
                return self._in_rows(chosen)[:, 0]
            return self.held_out_scores(values[k : k + 1], folds)[:, 0]

        return Curve(mean, mean_and_error(each_query)[1], each_query, scores=scores)

    def _curve_of_preferences(self, measure: Measure, folds: Sequence[Index] | None, values: Array) -> Curve:
        (chunks,) = self.hold_out(values, partial(judge_preferences, measure), folds)
        sizes = np.diff(self.forms[0].graph.starts)
        curve = of_preferences(chunks, sizes if folds is None else np.array([sizes[fold].sum() for fold in folds]))
        curve.mean[self.unresolved(values)] = np.nan
        return replace(curve, scores=lambda k: self.held_out_scores(values[k : k + 1], folds)[:, 0])


def _side_by_side(scores: list[Array]) -> Array:
    """The scores of all targets, (rows, values, targets)."""
    return scores[0] if len(scores) == 1 else np.concatenate(scores, axis=2)


def check_positive(alphas: Array) -> None:
    """Refuse alphas that nothing is held out for without refitting."""
    if not (alphas > 0.0).all():
        raise InputError(f"Hold-out without refitting needs alphas > 0; got {alphas.min():g}.", parameter="alphas")
