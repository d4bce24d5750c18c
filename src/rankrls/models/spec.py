"""Specifications: an estimator's parameters, checked and frozen, and the steps from there to a fitted model."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, partial
from typing import Generic, Literal, Self, TypeAlias, cast

import numpy as np
from numpy.typing import NDArray

from rankrls._arrays import host_only
from rankrls._comparisons import Data, Features, GraphSetting, GraphSettings, LabelledItems, PreferredItems
from rankrls._errors import InputError
from rankrls._problems import Candidate, S
from rankrls._typing import Array, ExactFoldsLike, Matrix, Values
from rankrls.kernels import Kernel, check_kernel, kernel_parameters, resolve_kernel
from rankrls.metrics import Measure, resolve_measure
from rankrls.models.fitted import Fitted
from rankrls.models.parameters import Feature, KernelLike, Positive, Scoring, Several, combinations, options
from rankrls.selection.basis import BasisSpec, basis_numbers, make_basis
from rankrls.selection.least_squares import LeastSquares, LeastSquaresSolutions
from rankrls.selection.plans import Plan, Planner, PreferencePlanner, QueryPlanner
from rankrls.selection.search import SearchState, search

XKind: TypeAlias = Literal["features", "kernel", "objects"]
"""Kind of X: features, a precomputed kernel matrix, or objects for a callable kernel."""
KernelSettings: TypeAlias = Sequence[Values]
"""``kernel``, ``gamma``, ``degree`` and ``coef0`` of each kernel to try."""


@dataclass(frozen=True, kw_only=True)
class Accepts:
    """Kinds of data that an estimator can be fitted to.

    Attributes
    ----------
    devices : bool
        Arrays of libraries other than numpy, on their device.
    operators : bool
        A LinearOperator as the kernel matrix.
    missing_features : bool
        NaN in X.
    missing_labels : bool
        NaN in y, for rows without a label.
    several_targets : bool
        y with several columns.
    clicks : bool
        Clicks, corrected by weights of a squared loss.
    overflowing_products : bool
        Features whose products overflow, because they are only compared.
    """

    devices: bool = False
    operators: bool = False
    missing_features: bool = False
    missing_labels: bool = False
    several_targets: bool = True
    clicks: bool = True
    overflowing_products: bool = False


def kind_of(kernel: KernelLike) -> XKind:
    """Kind of X of a kernel."""
    if callable(kernel):
        return "objects"
    return "kernel" if kernel == "precomputed" else "features"


def kernel_settings(
    kernel: Several[KernelLike], gamma: Several[float | None], degree: Several[int], coef0: Several[float]
) -> KernelSettings:
    """Every kernel of an estimator's parameters, which are checked."""
    settings = list(combinations({"kernel": kernel, "gamma": gamma, "degree": degree, "coef0": coef0}))
    for each in settings:
        check_kernel(**each)
    names = options(kernel)
    if len(names) > 1 and {kind_of(name) for name in names} != {"features"}:
        problem = "A callable or precomputed kernel cannot be one of several: X has another meaning for it."
        raise InputError(problem, parameter="kernel")
    return settings


def kernels_for(settings: KernelSettings, X: Matrix) -> list[tuple[Kernel, Values]]:
    """Every kernel, with default parameters computed from X, and the parameter values that it represents."""
    found: dict[tuple[object, ...], tuple[Kernel, Values]] = {}
    for values in settings:
        kernel = resolve_kernel(X, **values)
        known = {**values, "gamma": kernel.gamma}
        choices = {name: known[name] for name in ("kernel", *kernel_parameters(values["kernel"]))}
        found.setdefault(tuple(choices.items()), (kernel, choices))
    return list(found.values())


def graph_settings(ties: Several[str], balance: Several[str], regression_weight: float) -> GraphSettings:
    """Every graph of an estimator's parameters, with the parameter values that it represents."""
    beta = float(regression_weight)
    both = combinations({"ties": ties, "balance": balance})
    return tuple((GraphSetting(**values, regression_weight=beta), values) for values in both)


def has_signs(positive: Positive, kernels: KernelSettings, solver: str) -> bool:
    """Whether ``positive`` assigns a sign to the weight of any feature.

    Raises
    ------
    InputError
        If ``positive`` is invalid, or if there are no weights of features.
    """
    listed = np.asarray(positive)
    if isinstance(positive, Mapping):
        given = any(sign != 0 for sign in positive.values())
    elif listed.dtype == np.bool_:
        given = bool(listed.any())
    elif listed.ndim == 1:
        given = listed.size > 0
    else:
        problem = f"positive must be True, False, a list of features, or a dict of their signs; got {positive!r}."
        raise InputError(problem, parameter="positive")
    others = [each["kernel"] for each in kernels if each["kernel"] != "linear"]
    if given and (others or solver == "dual"):
        given_as = f"kernel={others[0]!r}" if others else f"solver={solver!r}"
        raise InputError(
            f"positive needs kernel='linear', and solver='auto' or 'primal'; got {given_as}.", parameter="positive"
        )
    return given


def feature_signs(positive: Positive, features: Features) -> NDArray[np.int8]:
    """Sign assigned by ``positive`` to the weight of each feature, 0 if free."""
    n = features.count or 0
    mask = np.asarray(positive)
    given = positive
    if mask.dtype == np.bool_:
        if mask.shape not in ((), (n,)):
            raise InputError(f"positive is a mask of shape {mask.shape}; X has {n} features.", parameter="positive")
        given = np.flatnonzero(np.broadcast_to(mask, n)).tolist()
    asked = given if isinstance(given, Mapping) else dict.fromkeys(cast(Sequence[Feature], given), 1)
    known: dict[Feature, int] = {number: number for number in range(n)}
    if features.names is not None:
        known |= {name: number for number, name in enumerate(features.names)}
    signs = np.zeros(n, dtype=np.int8)
    for feature, sign in asked.items():
        if feature not in known or sign not in (-1, 0, 1):
            problem = f"positive names feature {feature!r} with sign {sign!r}: no feature of X, or not -1, 0 or 1."
            raise InputError(problem, parameter="positive")
        signs[known[feature]] = sign
    return signs


@dataclass(frozen=True, eq=False, kw_only=True)
class Spec(ABC):
    """Specification of an estimator. Later steps use it instead of the estimator.

    Attributes
    ----------
    name : str
        Name of the estimator, for messages.
    accepts : Accepts
    kind : {"features", "kernel", "objects"}
        Kind of X.
    signed : bool
        Whether weights have constrained signs.
    graphs : sequence of (GraphSetting, dict)
        Graphs to try, with the parameters that they represent.
    grid : ndarray or None
        Values of the problem's parameter, the simplest model first; None for an automatic grid. An estimator without
        selection has one value.
    measure : Measure or None
        Measure used for selection; None if nothing is selected.
    rule : str
    cv : None, int, "leave_pair_out", splitter or iterable
        Held-out units if there are no validation data.
    """

    name: str
    accepts: Accepts = field(default_factory=Accepts)
    kind: XKind = "features"
    signed: bool = False
    graphs: GraphSettings = ((GraphSetting(), {}),)
    grid: Array | None = None
    measure: Measure | None = None
    rule: str = "best"
    cv: ExactFoldsLike = None

    @property
    def regression_weight(self) -> float:
        """Share of the loss that is regression. If it is 0, some query must have two different labels."""
        return self.graphs[0][0].regression_weight

    @property
    def required_measure(self) -> Measure:
        """The measure of an estimator with selection."""
        assert self.measure is not None
        return self.measure

    def choosing(self, grid: Array | None, scoring: Scoring, rule: str, cv: ExactFoldsLike = None) -> Self:
        """A copy for an estimator that selects from a grid, with its parameters of these names."""
        return replace(self, grid=grid, measure=resolve_measure(scoring), rule=rule, cv=cv)

    def for_preferences(self) -> Self:
        """The specification for preferences instead of labels."""
        return self

    def query_plan(self, data: LabelledItems) -> Plan | None:
        """Plan of the comparison of models without validation data; None if there is nothing to select."""
        if self.measure is None:
            return None
        return self.plan(QueryPlanner(self.measure, data, self.regression_weight))

    def preference_plan(self, data: PreferredItems) -> Plan | None:
        """The same for preferences."""
        return self.plan(PreferencePlanner(self.required_measure, data))

    @abstractmethod
    def plan(self, planner: Planner[Data]) -> Plan | None:
        """Plan for the data of a planner; None if there is nothing to select."""

    @abstractmethod
    def fit(self, data: Data, plan: Plan | None = None) -> Fitted:
        """Fit the data: with a plan, select the best model; without one, fit the only model."""


@dataclass(frozen=True, eq=False, kw_only=True)
class SearchSpec(Spec, Generic[S]):
    """Specification by candidates, one of which is solved or selected by a search."""

    def at(self, value: float) -> Self:
        """A copy with one value of the problem's parameter, for an estimator without selection."""
        return replace(self, grid=np.array([value], dtype=np.float64))

    def plan(self, planner: Planner[Data]) -> Plan | None:
        return planner.few(self.cv)

    @abstractmethod
    def candidates(self, data: Data) -> Iterator[Candidate[S]]:
        """Candidates for the given data."""

    @abstractmethod
    def fitted(self, data: Data, solved: Solved[S]) -> Fitted:
        """Attributes of the model that was solved or selected."""

    def fit(self, data: Data, plan: Plan | None = None) -> Fitted:
        if plan is None:
            candidate = next(self.candidates(data))
            problem = candidate.problem(data)
            value = float(problem.axis()[-1] if self.grid is None else self.grid[0])  # the most complex of an axis
            return self.fitted(data, Solved(candidate, problem.solve(value), value))
        return self.chosen(data, plan, self.search(data, plan))

    def search(self, data: Data, plan: Plan) -> SearchState[S]:
        """Evaluation of every candidate at every value, by a plan."""
        return search(self.candidates(data), data, plan, self.rule, self.grid)

    def chosen(self, data: Data, plan: Plan, found: SearchState[S]) -> Fitted:
        """Attributes of the model that a search has selected."""
        assert found.candidate is not None
        assert found.solutions is not None
        solved = Solved(found.candidate, found.solutions, found.best_value, found)
        return self.fitted(data, solved).chosen_by(plan, data, found)


@dataclass(frozen=True, eq=False)
class Solved(Generic[S]):
    """A candidate, a value of its parameter, and their solution; with the search that selected them, if any."""

    candidate: Candidate[S]
    solutions: S
    value: float
    found: SearchState[S] | None = None


@dataclass(frozen=True, eq=False, kw_only=True)
class LeastSquaresSpec(SearchSpec[LeastSquaresSolutions]):
    """RankRLS with every combination of kernel and graph. All graphs of a kernel share its basis, if any.

    Attributes
    ----------
    kernels : KernelSettings
    solver : {"auto", "primal", "dual"}
    positive : bool, sequence or dict
    basis : BasisSpec or None
    """

    kernels: KernelSettings
    solver: str = "auto"
    positive: Positive = False
    basis: BasisSpec | None = None

    def plan(self, planner: Planner[Data]) -> Plan | None:
        return planner.exact(self.cv, [setting for setting, _ in self.graphs], constrained=self.signed)

    def candidates(self, data: Data) -> Iterator[LeastSquares]:
        if self.signed:
            host_only(data.X, "A fit with constraints on signs (positive)")
        signs = feature_signs(self.positive, data.features) if self.signed else None
        numbers = None if self.basis is None else basis_numbers(self.basis, data)
        for kernel, choices in kernels_for(self.kernels, data.X):
            make = None if numbers is None else cache(partial(make_basis, data, kernel, numbers))
            settings = data.settings(self.graphs)
            together = [setting for setting, _ in settings]
            for setting, chosen in settings:
                yield LeastSquares(
                    kernel=kernel,
                    choices={**choices, **chosen},
                    setting=setting,
                    solver=self.solver,
                    signs=signs,
                    make_basis=make,
                    together=together,
                )

    def fitted(self, data: Data, solved: Solved[LeastSquaresSolutions]) -> Fitted:
        candidate = solved.candidate
        return Fitted.of(data, solved.solutions[0], candidate.kernel, candidate.basis, alpha_=solved.value)
