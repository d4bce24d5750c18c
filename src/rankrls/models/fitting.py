"""What the estimators do around a solver, as plain functions: check data, read parameters, store results.

Data are checked here, once, where they come in through an estimator's methods.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from copy import deepcopy
from dataclasses import fields, replace
from functools import cache, partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.sparse.linalg import LinearOperator
from sklearn import get_config
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import _num_samples, column_or_1d, validate_data

from rankrls._arrays import host_only, in_place, moved, namespace, on_device, to_host
from rankrls._checks import LARGEST, LEAST, check_magnitude, numbers_of
from rankrls._comparisons import Comparisons, LabelledItems, PreferredItems, Setting
from rankrls._errors import InputError, InputWarning
from rankrls._missing import unmasked
from rankrls._preferences import check_preferences
from rankrls._queries import in_words, label_varies, query_layout
from rankrls._rows import check_finite_features, refuse_container
from rankrls.clicks import Propensities, corrected_clicks
from rankrls.kernels import Kernel, kernel_parameters, resolve_kernel
from rankrls.metrics import Measure
from rankrls.metrics._values import check_weights as check_row_weights
from rankrls.models.parameters import check_grid, combinations, options, signs_of
from rankrls.numerics.basis import Basis
from rankrls.numerics.scorer import Scorer
from rankrls.selection.basis import generator, make_basis
from rankrls.selection.curves import judged_queries, logistic_slope
from rankrls.selection.least_squares import LeastSquares
from rankrls.selection.optimism import search_bias
from rankrls.selection.plans import Plan, validation_plan
from rankrls.selection.search import Results


class NotConverged(InputWarning, ConvergenceWarning):
    """An iteration ended before its tolerance was reached."""


def labelled(
    model: Any,
    X: Any,
    y: Any,
    qid: Any,
    sample_weight: Any,
    *,
    comparable: bool = True,
    reset: bool = True,
    shown: tuple[Any, Any, Any] = (None, None, None),
) -> LabelledItems:
    """Checked items with labels, without rows of weight zero.

    ``comparable`` asks for labels that order something; ``reset`` has the model remember the features of X; ``shown``
    are the positions, impressions and propensities of clicks.
    """
    kernel = data_kernel(model)
    Y, one_target = check_labels(model, y)
    given = check_features(model, X, kernel=kernel, reset=reset, products=True)
    X, m = in_place(given), _num_samples(given)
    if m != len(Y):
        raise InputError(f"X has {m} items but y has {len(Y)} labels; it needs one label per item.", parameter="y")
    layout, weights = query_layout(qid, m), check_weights(sample_weight, m)
    propensities = None
    if any(given is not None for given in shown):
        host_only(X, "The correction of clicks")
        Y, factors, propensities = _corrected(model, X, Y, qid, shown)
        weights = factors if weights is None else weights * factors
    like = None if X is given else given[:0, :]
    data = LabelledItems(X, None, qid is not None, one_target, Y, layout, weights, propensities, like)
    data = data.of_positive_weight(square=is_precomputed(kernel))
    if comparable:
        check_comparable(data, float(getattr(model, "regression_weight", 0.0)))
    return data


def _corrected(
    model: Any, X: Any, Y: NDArray[np.float64], qid: Any, shown: tuple[Any, Any, Any]
) -> tuple[NDArray[np.float64], NDArray[np.float64], Propensities]:
    """Clicks as labels and weights without the bias of position."""
    position, impressions, propensities = shown
    if not model._squared_loss:
        problem = f"{type(model).__name__} cannot be fitted on clicks. Use a squared loss, as in RankRLSCV."
        raise InputError(problem, parameter="position")
    if position is None:
        raise InputError("impressions and propensities need position, the position of each row.", parameter="position")
    if Y.shape[1] > 1:
        raise InputError(f"Clicks must be one target; y has {Y.shape[1]}.", parameter="y")
    given = {"qid": qid, "impressions": impressions, "propensities": propensities}
    labels, weights, found = corrected_clicks(X, Y[:, 0], position, **given)
    return labels[:, None], weights, found


def preferred(
    model: Any,
    X: Any,
    winners: Any,
    losers: Any,
    strength: Any,
    weight: Any,
    *,
    groups: Any = None,
    item_id: Any = None,
) -> PreferredItems:
    """Checked items with preferences between them; preferences of weight zero are dropped."""
    X = check_features(model, X, kernel=data_kernel(model), reset=True, products=True)
    host_only(X, "A fit of preferences")
    given = check_preferences(winners, losers, _num_samples(X), strength, weight)
    if groups is not None:
        given = replace(given, groups=query_layout(groups, given.n_rows, name="groups").codes)
    kept = given.weight > 0.0
    if not kept.any():
        name = "weight" if len(kept) else "winners"
        raise InputError("There are no preferences, or all of them have weight zero.", parameter=name)
    check_magnitude("strength", given.strength)
    check_magnitude("weight", given.weight)
    given = given if kept.all() else given.take(kept)
    if not given.strength.any():
        raise InputError("Every strength is 0: at least one preference must not be a tie.", parameter="strength")
    identity = query_layout(np.arange(given.n_items) if item_id is None else item_id, given.n_items, name="item_id")
    return PreferredItems(X, None, False, True, given, identity.codes)


def warn_of_one_ranking(measure: Measure, data: LabelledItems) -> None:
    """Warn if positions of one ranking of all rows decide: its folds have other positions than any query has."""
    if data.has_qid or callable(measure.name) or measure.uses_sample_weight:
        return
    problem = f"Without qid, {measure} looks at the first positions of one ranking of all {data.n_rows} rows."
    remedy = "Pass qid, or choose by pairs (scoring)."
    warnings.warn(InputWarning(f"{problem} {remedy}", parameter="qid"), stacklevel=4)


def validation(model: Any, measure: Measure, data: Any, X_val: Any, y_val: Any, qid_val: Any) -> Plan | None:
    """Validation data as a plan; None if none are given."""
    if X_val is None and y_val is None and qid_val is None:
        return None
    if getattr(model, "cv", None) is not None:
        raise InputError("Give either cv or validation data (X_val), not both.", parameter="cv")
    if X_val is None or y_val is None:
        raise InputError("Validation data need X_val and y_val, and qid_val if fit has qid.", parameter="X_val")
    if data.has_qid and qid_val is None:
        problem = "The training data have query ids (qid), so the validation data need them too. Pass qid_val, one id"
        raise InputError(f"{problem} per row of X_val.", parameter="qid_val")
    try:
        items = labelled(model, X_val, y_val, qid_val, None, comparable=False, reset=False)
    except InputError as error:
        name = None if error.parameter is None else f"{error.parameter}_val"
        raise error.replace(message=f"Validation data: {error.message}", parameter=name) from None
    targets = data.Y.shape[1] if hasattr(data, "Y") else 1
    if items.Y.shape[1] != targets:
        raise InputError(f"y_val has {items.Y.shape[1]} targets, and y {targets}.", parameter="y_val")
    if is_precomputed(data_kernel(model)) and data.kept is not None and not isinstance(data.X, LinearOperator):
        items = replace(items, X=items.X[:, data.kept])  # the columns that a model of the kept rows takes
    if not judged_queries(measure, items.Y[:, 0], items.layout).any():
        raise InputError("The validation data have no query with two different labels.", parameter="y_val")
    return validation_plan(measure, items, f"validation data with {in_words(items.n_queries)}")


def data_kernel(model: Any) -> Any:
    """What X means: objects for a function, a kernel matrix, or features."""
    if hasattr(model, "views") or getattr(model, "dictionary", "kernel") == "features":
        return "linear"
    kernels = options(getattr(model, "kernel", "linear"), "kernel")
    special = [k for k in kernels if callable(k) or k == "precomputed"]
    if special and len(kernels) > 1:
        problem = "A callable or precomputed kernel cannot be one of several: X has another meaning for it."
        raise InputError(problem, parameter="kernel")
    return kernels[0]


def is_precomputed(kernel: Any) -> bool:
    """Whether X is a kernel matrix."""
    return isinstance(kernel, str) and kernel == "precomputed"


def check_features(model: Any, X: Any, *, kernel: Any, reset: bool = False, products: bool = False) -> Any:
    """Check items against what ``fit`` saw, or remember them (``reset``); ``products`` says they are there to learn."""
    if callable(kernel) and not _is_matrix(X):
        X = list(X)
        if products and not X:
            raise InputError("X is empty: at least one row is needed.", parameter="X")
        return X
    if isinstance(X, LinearOperator) and is_precomputed(kernel) and getattr(model, "_accepts_operators", False):
        validate_data(model, X, reset=reset, skip_check_array=True)
        return X
    return check_matrix(model, X, reset=reset, products=products)


def _is_matrix(X: Any) -> bool:
    """Whether X holds features, and not objects for a callable kernel."""
    numbers = isinstance(X, np.ndarray) and X.ndim == 2 and X.dtype.kind in "fiub"
    return numbers or on_device(X) or sparse.issparse(X) or hasattr(X, "iloc")


def check_matrix(model: Any, X: Any, *, reset: bool, products: bool = False) -> Any:
    """A dense C-ordered or CSR matrix of finite features, whose ``products`` are finite too; float32 stays float32."""
    if hasattr(X, "__dask_graph__"):
        problem = "X is a Dask collection, which would be loaded into memory. Use the estimators of rankrls.dask."
        raise InputError(problem, parameter="X")
    if on_device(X) and get_config()["array_api_dispatch"]:
        return _check_on_device(model, X, reset=reset, products=products)
    refuse_container(X, "X")
    _refuse_dates(X)
    X = unmasked(X)
    try:  # whether all is finite is checked below, with the row and the column in the message
        dtypes = [np.float64, np.float32]
        checked = validate_data(
            model, X, reset=reset, accept_sparse="csr", dtype=dtypes, order="C", ensure_all_finite=False
        )
    except ValueError as error:
        _refuse_text(X, error)
        raise
    checked = sparse.csr_array(checked) if sparse.issparse(checked) else checked
    products = products and getattr(model, "_multiplies_features", True)
    if not getattr(model, "_takes_missing", False):
        check_finite_features(checked, getattr(model, "feature_names_in_", None), products=products)
    return checked


def _check_on_device(model: Any, X: Any, *, reset: bool, products: bool) -> Any:
    """:func:`check_matrix` for an array that stays on its device."""
    kernel, name = data_kernel(model), type(model).__name__
    if not getattr(model, "_takes_devices", False):
        host_only(X, name)
    if getattr(model, "positive", False) is not False:
        host_only(X, f"{name} with constraints on signs")
    if callable(kernel) or is_precomputed(kernel):
        host_only(X, "A kernel that is not a formula of features")
    xp = namespace(X)
    dtypes = [xp.float64, xp.float32]
    checked = validate_data(model, X, reset=reset, dtype=dtypes, ensure_all_finite=False)
    with np.errstate(over="ignore"):
        size = float(xp.linalg.vector_norm(checked))  # which squares, as products do
    if not LEAST <= size <= LARGEST:
        check_finite_features(to_host(checked), getattr(model, "feature_names_in_", None), products=products)
    return checked


def _refuse_dates(X: Any) -> None:
    """An error about the first column of dates or times of a data frame."""
    for name, kind in zip(getattr(X, "columns", ()), getattr(X, "dtypes", ()), strict=False):
        of_numpy, of_polars = getattr(kind, "kind", ""), getattr(kind, "is_temporal", None)
        if of_numpy in ("m", "M") or (of_polars is not None and of_polars()):
            problem = f"Column {str(name)!r} of X holds {kind}, not numbers."
            remedy = "Encode it (rankrls.preprocessing.TableEncoder), or drop it."
            raise InputError(f"{problem} {remedy}", parameter="X", column=str(name))


def _refuse_text(X: Any, error: ValueError) -> None:
    """An error about the first cell that is text, if there is one: scikit-learn's names no place."""
    cells = np.asarray(X)
    for place, value in np.ndenumerate(cells) if cells.ndim == 2 and cells.dtype.kind in "OU" else ():
        try:
            float(value) if isinstance(value, str) else 0.0
        except ValueError:
            row, number = place
            column = str(X.columns[number]) if hasattr(X, "columns") else number
            remedy = "Encode the column with TableEncoder, or drop it."
            problem = f"Input X holds the text {str(value)!r}: row {row}, column {column}. {remedy}"
            raise InputError(problem, parameter="X", row=row, column=column) from error


def check_labels(model: Any, y: Any) -> tuple[NDArray[np.float64], bool]:
    """Labels as (m, targets) float64, NaN if the model takes unlabelled rows; and whether they came as (m,)."""
    if y is None:
        raise InputError(f"{type(model).__name__} requires y to be passed, but the target y is None.", parameter="y")
    if sparse.issparse(y):
        numbers_of("y", y)  # which refuses it
    y = to_host(y) if on_device(y) else unmasked(y)
    given = column_or_1d(y, warn=True) if getattr(model, "_single_target", False) else np.asarray(y)
    if given.dtype.kind == "c":
        raise InputError("Complex data not supported: y must hold real numbers.", parameter="y")
    Y = numbers_of("y", given)
    if Y.ndim not in (1, 2) or 0 in Y.shape[1:]:
        raise InputError(f"y must have shape (m,) or (m, targets); got {Y.shape}.", parameter="y")
    good = np.isfinite(Y) | (np.isnan(Y) & getattr(model, "_takes_unlabelled", False))
    if not good.all():
        row, *target = np.argwhere(~good)[0].tolist()
        value = "NaN" if np.isnan(Y[row, *target]) else "infinity"
        where = f"row {row}{f', target {target[0]}' if target else ''}"
        raise InputError(f"Input y contains {value} in {where}: every label must be finite.", parameter="y", row=row)
    check_magnitude("y", Y)
    return (Y[:, None], True) if Y.ndim == 1 else (Y, False)


def check_weights(sample_weight: Any, m: int) -> NDArray[np.float64] | None:
    """Row weights, not all zero; or None where none were given. One number is the weight of every row."""
    given = sample_weight if sample_weight is None or sparse.issparse(sample_weight) else to_host(sample_weight)
    weights = check_row_weights(np.full(m, given) if given is not None and given.ndim == 0 else given, m)
    if weights is not None and not weights.any():
        problem = "All values of sample_weight are zero: at least one must be positive."
        raise InputError(problem, parameter="sample_weight")
    if weights is not None:
        check_magnitude("sample_weight", weights)
    return weights


def check_no_extra_qid(fitted_with_qid: bool, qid: Any, what: str) -> None:
    """A model of queries cannot be judged as if everything were one query."""
    if fitted_with_qid and qid is None:
        raise InputError(
            f"This model was fitted with qid, but {what} was called without: scores of different queries cannot be "
            f"compared. Pass qid to {what}, one id per row. If scikit-learn makes the call (pipelines, searches, "
            "cross_validate), call sklearn.set_config(enable_metadata_routing=True) first.",
            parameter="qid",
        )


def check_comparable(data: LabelledItems, regression_weight: float) -> None:
    """Refuse labels that order nothing."""
    if regression_weight == 0.0 and not label_varies(data.Y, data.layout).any():
        m, q = data.layout.n_rows, data.layout.n_queries
        where = f"none of the {q} queries holds" if q > 1 else "the data do not hold"
        problem = f"Nothing to compare: {where} two items with different labels ({m} sample{'s' if m != 1 else ''})."
        raise InputError(f"{problem} Check the labels and the query ids.", parameter="y")


def check_square(X: Any, kernel: Any) -> None:
    """A kernel matrix to fit has a row and a column for each item."""
    if is_precomputed(kernel) and X.shape[0] != X.shape[1]:
        raise InputError(f"A precomputed kernel matrix must be square to fit; got shape {X.shape}.", parameter="X")


def setting_of(model: Any) -> Setting:
    """How labels become a graph, if each parameter is one value."""
    return Setting(model.ties, model.balance, float(model.regression_weight))


def settings_of(model: Any, data: Comparisons) -> list[tuple[Setting, dict[str, Any]]]:
    """The graphs to try, and what each chooses."""
    if isinstance(data, PreferredItems):  # labels play no part
        return [(Setting(), {})]
    both = combinations(model, ("ties", "balance"))
    return [(Setting(**values, regression_weight=float(model.regression_weight)), values) for values in both]


def kernels_of(model: Any, X: Any) -> list[tuple[Kernel, dict[str, Any]]]:
    """Every kernel to try, and what each chooses."""
    found: dict[Any, tuple[Kernel, dict[str, Any]]] = {}
    for values in combinations(model, ("kernel", "gamma", "degree", "coef0")):
        check_square(X, values["kernel"])
        name, gamma, degree, coef0 = values.values()
        kernel = resolve_kernel(X, name, gamma, degree, coef0, model.kernel_params)
        known = {**values, "gamma": kernel.gamma}
        choices = {name: known[name] for name in ("kernel", *kernel_parameters(values["kernel"]))}
        found.setdefault(tuple(choices.items()), (kernel, choices))
    return list(found.values())


def least_squares(model: Any, data: Comparisons) -> Iterator[LeastSquares]:
    """RankRLS with every kernel and every graph; those of one kernel share its basis, if the model asks for one."""
    over_basis = any(getattr(model, name, None) is not None for name in ("n_basis", "basis_indices"))
    start = generator(model.random_state) if over_basis else None
    given: dict[str, Any] = {"solver": getattr(model, "solver", "auto"), "signs": signs_of(model)}
    for kernel, choices in kernels_of(model, data.X):  # the same random basis for every kernel
        if over_basis:
            given["make_basis"] = cache(partial(make_basis, model, data, kernel, deepcopy(start)))
        for setting, chosen in settings_of(model, data):
            yield LeastSquares(kernel=kernel, setting=setting, choices={**choices, **chosen}, **given)


def alphas_of(model: Any, name: str = "alphas", *, positive: bool = False) -> NDArray[np.float64] | None:
    """The values to judge, the largest first; None for an automatic grid."""
    given = getattr(model, name)
    if isinstance(given, str) and given == "auto":
        return None
    return np.sort(check_grid(name, given, positive=positive))[::-1]


def begin(model: Any, data: Comparisons) -> None:
    """Forget an earlier fit, and keep what is known of the data."""
    parameters = {f.name for f in fields(model)}
    for name in set(vars(model)) - parameters:
        if name == "_update_state" or (name.endswith("_") and not name.endswith("_in_")):
            delattr(model, name)
    model._fitted_with_qid = data.has_qid
    model._one_target = data.one_target
    model.n_queries_ = data.n_queries
    propensities = getattr(data, "propensities", None)
    if propensities is not None:
        model.propensities_ = propensities


def described(description: str, data: Comparisons | None) -> str:
    """How a model was chosen, and that its clicks were corrected."""
    corrected = getattr(data, "propensities", None) is not None
    return f"{description}, clicks weighted by inverse propensities" if corrected else description


def keep(model: Any, scorer: Scorer, kernel: Kernel, data: Any = None, basis: Basis | None = None) -> None:
    """Keep a function as the model's public coefficients, and which rows of the data are its basis, if it has one."""
    model._kernel_, like = kernel, getattr(data, "like", None)
    scorer = scorer if data is None else scorer.over(data.kept)
    if basis is not None:
        model.basis_indices_ = data.given_numbers(basis.numbers)
    if scorer.weights is not None:
        model.coef_ = _kept(scorer.weights[:, 0] if model._one_target else scorer.weights.T, like)
    if scorer.coefficients is not None:
        a = scorer.coefficients
        model.dual_coef_ = _kept(a[:, 0] if model._one_target else a, like)
    if scorer.items is not None:
        model.X_fit_ = moved(scorer.items, like)


def _kept(values: Any, like: Any) -> Any:
    return values if on_device(values) else moved(np.ascontiguousarray(values), like)


def store(model: Any, results: Results, plan: Plan, data: Comparisons) -> None:
    """Keep the candidate that a search chose, what is known of the data, and how it was chosen."""
    begin(model, data)
    keep(model, results.solutions[0], results.candidate.kernel, data, results.candidate.basis)
    warn_of_lost_feature(model, results.lost_feature)
    publish(model, results, plan.description, data)


def publish(model: Any, results: Results, description: str, data: Comparisons | None = None) -> None:
    """Keep what was chosen, and how, as attributes."""
    name = results.parameter
    setattr(model, f"{name}_", results.best_value)
    for chosen, at_edge in results.edges.items():
        setattr(model, f"{chosen}_at_edge_", at_edge)
    model.best_params_ = {**results.best_choices, name: results.best_value}
    model.best_index_ = results.best_index
    model.best_score_, model.best_score_error_ = results.best_score, results.best_error
    model.optimism_ = search_bias(results)
    model.cv_results_ = results.table()
    model.selection_ = described(description, data)
    by_item = isinstance(data, PreferredItems) and data.new == "items"
    model.query_scores_ = None if by_item else results.best_values
    model.held_out_scores_ = None
    if results.best_scores is None or data is None:
        return
    if isinstance(data, PreferredItems):
        margins, table = results.best_scores[:, 0], data.graph
        held = np.isfinite(margins)
        model.win_slope_ = logistic_slope(margins[held], table.strength[held], table.weight[held])
    else:
        scores = moved(data.given_rows(results.best_scores), data.X if data.like is None else data.like)
        model.held_out_scores_ = scores[:, 0] if data.one_target else scores


def warn_of_lost_feature(model: Any, feature: int | None) -> None:
    """One warning if rounding of a large feature hides a small one."""
    if feature is None:
        return
    names = getattr(model, "feature_names_in_", None)
    called = f"{feature}" if names is None else f"{feature} ({names[feature]!r})"
    warnings.warn(
        InputWarning(
            f"Feature {called} varies so much less than others that rounding hides it. Scale the "
            "features, for example with StandardScaler.",
            parameter="X",
            column=feature if names is None else str(names[feature]),
        ),
        stacklevel=5,
    )
