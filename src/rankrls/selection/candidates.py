"""Candidate models: a kernel and a graph's setting, and how their problem is solved on any comparisons."""

from __future__ import annotations

from abc import ABC
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from rankrls._cached import cached_property
from rankrls._comparisons import Comparison, Comparisons, LabelledItems, Setting
from rankrls._errors import InputError
from rankrls._sparse import offset_columns, shift_columns
from rankrls.features.columns import rows_of
from rankrls.greedy.copursuit_problem import CoPursuit, CoPursuitProblem
from rankrls.greedy.forward_problem import ForwardProblem
from rankrls.greedy.pursuit_problem import Pursuit, PursuitProblem
from rankrls.hinge.ranksvm import HingeProblem
from rankrls.holdout.transductive_problem import TransductiveProblem
from rankrls.kernels import Kernel
from rankrls.problems.consensus import Consensus, ConsensusProblem
from rankrls.problems.dual import DualProblem
from rankrls.problems.krylov_problem import KrylovProblem
from rankrls.problems.primal import PrimalProblem
from rankrls.problems.problem import Expansion, JointProblem, Problem
from rankrls.problems.reduced import ReducedProblem
from rankrls.problems.signed import SignedProblem
from rankrls.problems.subset import Basis, SubsetProblem
from rankrls.problems.subset_cg import SubsetCGProblem
from rankrls.selection.costs import Cost, dense_cost, hinge_cost, primal_cost, pursuit_cost, transductive_cost
from rankrls.selection.judging import Judge


@dataclass(frozen=True, eq=False, kw_only=True)
class Candidate(ABC):
    """One combination of what is chosen beside the axis of its problem. It costs nothing until a problem is made.

    Attributes
    ----------
    kernel : Kernel
    setting : Setting
    choices : dict
        What was chosen, by parameter, for people and for tables of results.
    """

    kernel: Kernel
    setting: Setting = field(default_factory=Setting)
    choices: dict[str, Any] = field(default_factory=dict)
    items_are_columns: ClassVar[bool] = True

    def problem(self, comparisons: Comparisons) -> Problem:
        """The problem of all targets."""
        return JointProblem.of([self.part(comparisons.X, part) for part in comparisons.graphs(self.setting)])

    def part(self, X: Any, comparison: Comparison) -> Problem:
        """The problem of one graph, for candidates that have one for each."""
        raise NotImplementedError

    def cost(self, data: Comparisons, lengths: NDArray[np.intp] | None, values: int) -> Cost:
        """What solving for some values takes, with blocks of such lengths held out; None for a single solution."""
        return Cost()

    @property
    def square(self) -> bool:
        """Whether X is a kernel matrix with a column for each training item."""
        return self.items_are_columns and self.kernel.name == "precomputed"


@dataclass(frozen=True, eq=False)
class SharedMatrix:
    """The kernel matrix of items that several graphs compare, evaluated once."""

    kernel: Kernel
    X: Any

    @cached_property
    def values(self) -> NDArray[np.float64]:
        return self.kernel(self.X)


@dataclass(frozen=True, eq=False, kw_only=True)
class LeastSquares(Candidate):
    """RankRLS: ``||F (y - f)||^2 + alpha ||f||^2``, in the form that suits the shape of the data.

    Attributes
    ----------
    solver : {"auto", "primal", "dual", "cg"}
    signs : ndarray of shape (n,) or None
        Constraints on the signs of a linear function's weights.
    shared : SharedMatrix, optional
        Of the items that others solve for too.
    """

    solver: str = "auto"
    signs: NDArray[np.int8] | None = None
    shared: SharedMatrix | None = None

    def cost(self, data: Comparisons, lengths: NDArray[np.intp] | None, values: int) -> Cost:
        """Nothing is said of constraints on signs, nor of iterations but for the matrix that they multiply by."""
        m, n = data.n_rows, multiplications_a_value(self.kernel, data.X)
        if self.signs is not None or (self.solver == "cg" and self.kernel.is_linear):
            return Cost()
        parts = len(data.target_parts(self.setting))
        if is_primal(self.kernel, data.X, data.n_units, self.solver):
            return primal_cost(data.n_units, data.X.shape[1], 0.0, lengths, values).times(parts)
        if self.solver == "cg":
            return Cost(float(m) ** 2 * n, bytes=8.0 * m**2, matrix=m)
        out = dense_cost(m, n, lengths, values)
        if data.n_units > m:  # more preferences than items: their rows over the eigenvectors are held, too
            held = 44.0 * m**2 + (0.0 if lengths is None else 28.0 * m * data.n_units)
            out = Cost(out.products + float(m) ** 2 * data.n_units, 2.0 * out.cubes, held, m)
        return Cost(parts * out.products, parts * out.cubes, parts * out.bytes, m)

    def part(self, X: Any, comparison: Comparison) -> Problem:
        graph, target = comparison.graph, comparison.target
        if self.signs is not None:  # of weights that a linear kernel has, in the primal
            return SignedProblem(X, graph, target, self.signs)
        read = Expansion(self.kernel, X, graph)
        if self.solver == "cg":
            if self.kernel.is_linear:
                return KrylovProblem(X, graph, target)
            return KrylovProblem(self.kernel(X), graph, target, read)
        if is_primal(self.kernel, X, graph.n_rows, self.solver):
            return PrimalProblem(X, graph, target, own_units=True)
        many = graph.n_rows > graph.n_items
        if self.kernel.is_linear and not many:
            return DualProblem.from_features(X, graph, target)
        if self.kernel.is_linear:
            # Differences do not change, no offset is squared, and the item coefficients need not sum to zero.
            X = shift_columns(X, *offset_columns(X)) if sparse.issparse(X) else X - X.mean(axis=0, dtype=np.float64)
        shared = self.shared
        matrix = shared.values.copy() if shared is not None and shared.X is X else self.kernel(X)
        if many:
            return ReducedProblem(matrix, graph, target, read)
        return DualProblem.from_kernel(matrix, graph, target, read)


@dataclass(frozen=True, eq=False, kw_only=True)
class OverItems(Candidate):
    """A candidate whose function expands over a basis of items, whatever it is learned from.

    Attributes
    ----------
    make : callable, optional
        Makes the basis when it is first needed; None if weights of features are learned instead.
    size : int
        Items in it, about.
    """

    make: Callable[[], Basis] | None = None
    size: int = 0

    @cached_property
    def basis(self) -> Basis | None:
        return None if self.make is None else self.make()

    items_are_columns = False


@dataclass(frozen=True, eq=False, kw_only=True)
class OverBasis(OverItems):
    """Sparse RankRLS over a basis of items. ``tol`` and ``max_iter`` ask for conjugate gradients."""

    tol: float | None = None
    max_iter: int = 0

    def cost(self, data: Comparisons, lengths: NDArray[np.intp] | None, values: int) -> Cost:
        size, each = self.size, multiplications_a_value(self.kernel, data.X) + 20.0
        return Cost(size**2 * each, float(size) ** 3) + primal_cost(data.n_units, size, size * each, lengths, values)

    def part(self, X: Any, comparison: Comparison) -> Problem:
        assert self.basis is not None
        graph, target = comparison.graph, comparison.target
        if self.tol is not None:
            return SubsetCGProblem(X, self.basis, graph, target, tol=self.tol, max_iter=self.max_iter)
        return SubsetProblem(X, self.basis, graph, target)


@dataclass(frozen=True, eq=False, kw_only=True)
class HingeLoss(OverItems):
    """RankSVM: hinge losses of the ordered pairs, of features or over a basis of items."""

    loss: str
    tol: float
    max_iter: int

    def cost(self, data: Comparisons, lengths: NDArray[np.intp] | None, values: int) -> Cost:
        """Nothing is said of features, which need no matrix."""
        if self.make is None:
            return Cost()
        return hinge_cost(data.n_rows, multiplications_a_value(self.kernel, data.X), self.size, values)

    def problem(self, comparisons: Comparisons) -> HingeProblem:
        pairs = comparisons.ordered(self.setting.balance)
        return HingeProblem(comparisons.X, pairs, self.loss, tol=self.tol, max_iter=self.max_iter, basis=self.basis)


@dataclass(frozen=True, eq=False, kw_only=True)
class Pursued(Candidate):
    """Ranking pursuit: one dictionary, walked on one graph."""

    pursuit: Pursuit
    n_basis: int

    def cost(self, data: Comparisons, lengths: NDArray[np.intp] | None, values: int) -> Cost:
        """Nothing is said of features, which need no matrix."""
        kernel, centres = self.pursuit.kernel, self.pursuit.centres
        if kernel is None:
            return Cost()
        always = callable(kernel.name) or kernel.name == "precomputed"
        columns = data.n_rows if centres is None else rows_of(centres)
        most = np.inf if always else self.pursuit.cache_bytes
        return pursuit_cost(data.n_rows, multiplications_a_value(kernel, data.X), columns, self.n_basis, most)

    def part(self, X: Any, comparison: Comparison) -> PursuitProblem:
        return PursuitProblem(self.pursuit, X, comparison.graph, comparison.target[:, 0], self.n_basis)


@dataclass(frozen=True, eq=False, kw_only=True)
class ForwardSelected(Candidate):
    """Greedy RankRLS: features taken one by one for one alpha.

    Attributes
    ----------
    alpha : float
    n_features : int
        The most that are taken.
    judge : callable, optional
        Makes the judge of held-out units, by which features are then taken, of comparisons; squared error by default.
    """

    alpha: float
    n_features: int
    judge: Callable[[Any], Judge] | None = None

    def problem(self, comparisons: Comparisons) -> ForwardProblem:
        (comparison,) = comparisons.graphs(self.setting)
        data = comparisons.X, comparison.graph, comparison.target[:, 0], self.alpha, self.n_features
        if self.judge is None:
            return ForwardProblem(*data)
        judge = self.judge(comparisons)
        blocks, _ = comparison.graph.blocks_to_hold_out()

        def measured(scores: NDArray[np.float64]) -> tuple[Any, Any]:
            curve = judge.of_blocks(scores, blocks)
            return curve.mean, curve.size

        return ForwardProblem(*data, measured, judge.greater_is_better)


_FUNCTION = 2e4
"""Multiplications that take as long as a call of a kernel that is a function of Python, about."""


def multiplications_a_value(kernel: Kernel, X: Any) -> float:
    """Of a kernel's value for two items, about."""
    if callable(kernel.name):
        return _FUNCTION
    return X.nnz / max(X.shape[0], 1) if sparse.issparse(X) else float(X.shape[1])


@dataclass(frozen=True, eq=False, kw_only=True)
class AmongAllRows(Candidate):
    """A candidate that knows all rows, scored or not: items are the numbers of the scored ones among them.

    What is held out stays among the unscored rows.
    """

    items_are_columns = False


@dataclass(frozen=True, eq=False, kw_only=True)
class Transducing(AmongAllRows):
    """Transductive RankRLS.

    Attributes
    ----------
    model : LeastSquares or OverBasis
    data : LabelledItems
        All rows, with any labels where there are none.
    folds : list of slices or row numbers
    penalty : float
    """

    model: LeastSquares | OverBasis
    data: LabelledItems
    folds: list[Any]
    penalty: float

    def cost(self, data: Comparisons, lengths: NDArray[np.intp] | None, values: int) -> Cost:
        own, hidden = self.model.cost(self.data, None, 1), self.data.n_rows - data.n_rows
        if own.matrix and hidden:
            each = multiplications_a_value(self.model.kernel, self.data.X)
            own = transductive_cost(self.data.n_rows, each, hidden)
        return own.times(values)

    def problem(self, comparisons: Comparisons) -> TransductiveProblem:
        assert isinstance(comparisons, LabelledItems)
        rows, codes = comparisons.X[:, 0].astype(np.intp), self.data.layout.codes
        labels = np.zeros((self.data.n_rows, comparisons.Y.shape[1]))
        labels[rows] = comparisons.Y
        hidden = ~np.isin(codes, codes[rows])
        data, folds, part = replace(self.data, Y=labels), self.folds, None
        if hidden.sum() + len(rows) < len(hidden):  # rows held out of scored queries cannot be labelled by themselves
            kept = hidden.copy()
            kept[rows] = True
            part, number = np.flatnonzero(kept), np.cumsum(kept) - 1
            data = data.take(part, square=self.model.square)
            folds = [left for fold in folds if len(left := number[fold][kept[fold]])]
            hidden, part = hidden[kept], part if self.model.square else None
        whole = self.model.problem(data)
        return TransductiveProblem(whole, self.data.X, data.Y, np.flatnonzero(hidden), folds, self.penalty, part)


@dataclass(frozen=True, eq=False, kw_only=True)
class CoPursued(AmongAllRows):
    """Ranking pursuit of several views."""

    pursuit: CoPursuit

    def problem(self, comparisons: Comparisons) -> CoPursuitProblem:
        assert isinstance(comparisons, LabelledItems)
        return CoPursuitProblem(self.pursuit, comparisons, self.setting)


@dataclass(frozen=True, eq=False, kw_only=True)
class Agreeing(AmongAllRows):
    """Co-regularised RankRLS: the views agree on all rows."""

    consensus: Consensus

    def part(self, X: Any, comparison: Comparison) -> ConsensusProblem:
        return ConsensusProblem(self.consensus, X[:, 0].astype(np.intp), comparison.graph, comparison.target)


def is_primal(kernel: Kernel, X: Any, n_rows: int, solver: str) -> bool:
    """Whether to solve for one coefficient a feature instead of one an item."""
    if not kernel.is_linear:
        if solver == "primal":
            raise InputError(
                "{solver='primal'} solves for feature weights and needs {kernel='linear'}; got {0!r}.", kernel.name
            )
        return False
    if solver != "auto":
        return solver == "primal"
    return bool(X.shape[1] <= min(n_rows, X.shape[0]))
