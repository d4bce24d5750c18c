"""What ``fit`` and ``cv`` have in common: reading, choosing, judging."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.pipeline import Pipeline

from rankrls._errors import InputError
from rankrls._items import Items
from rankrls._kernel_table import PARAMETERS
from rankrls.cli._doubts import doubts
from rankrls.cli._encoding import TOLD, encoded, encoder_for, fitted, in_one_error
from rankrls.cli._files import read, read_items
from rankrls.cli._findings import check_measures, measure_of, measures_for
from rankrls.cli._methods import METHODS, Method, build
from rankrls.cli._options import Options, flag_of
from rankrls.cli._report import Report, Say
from rankrls.cli._supervisor import keeping_its_best
from rankrls.cli._votes import comparable_pairs, read_votes
from rankrls.comparison.judgement import PREFERENCES, Judgement, judge, judge_pairs
from rankrls.io import PairTable
from rankrls.io.data import Reading, Rows, feature_columns
from rankrls.io.items import item_features, read_pairs
from rankrls.metrics import resolve_measure
from rankrls.metrics._scorer import predict_by_query
from rankrls.selection.search import choices_at_edges

__all__ = ["Data", "Plan", "Trained", "judge_all", "note_edges", "plan", "progress", "read_data", "train"]

_VOTES = ("winner", "loser", "left", "right", "preferred")
_SAME_DATA = {
    "unscored": "its rows are among the others already.",
    "validation": "the choice is that of the closest fit, which new queries need not bear out.",
    "test": "the measures on them say how close the fit is, not how well new queries are ranked.",
}


@dataclass(frozen=True)
class Plan:
    """The options, checked, and what they ask for: nothing has been read yet."""

    options: Options
    metric: str
    estimator: Any
    scaler: Any
    encoder: Any = None

    @property
    def method(self) -> Method:
        """The learner."""
        return METHODS[self.options.method]

    @property
    def chosen_by(self) -> str:
        """The measure that chooses, with what was said of it."""
        return self.metric if self.options.by_pairs else str(measure_of(self.metric, self.options))

    @property
    def files(self) -> dict[str, Path | None]:
        """The files of rows by their role."""
        options = self.options
        return {
            "train": options.train, "unscored": options.unscored, "validation": options.vali, "test": options.test
        }  # fmt: skip

    @property
    def pair_files(self) -> dict[str, Path | None]:
        """The files of preferences by their role."""
        options = self.options
        return {"train": options.pairs, "validation": options.vali_pairs, "test": options.test_pairs}


@dataclass(frozen=True)
class Data:
    """What was read, by its role: train, unscored, validation, test.

    The preferences of a role may be between train's rows.

    ``ids`` is what names an item in all of them; None where that was said by nobody, and there were no ids to name it.
    ``items`` is the table of the items that each row of the others ranks. ``encoder`` made the
    features of what stands on the sides of votes, if they are no numbers.
    """

    tables: dict[str, Rows]
    pairs: dict[str, PairTable]
    ids: str | None = None
    encoder: Any = None
    items: Any = None

    @property
    def items_ranked(self) -> tuple[str, ...]:
        """The names of the items that each row ranks, if it ranks several."""
        return getattr(self.tables["train"], "utility_names", ())

    def rows_of(self, role: str) -> Rows:
        """The items that a role's preferences are between."""
        return self.tables.get(role, self.tables["train"])


@dataclass(frozen=True)
class Trained:
    """The fitted estimator; the model to save, which is the same or a pipeline that ends in it; was it cut short."""

    estimator: Any
    model: Any
    interrupted: bool = False


def plan(options: Options) -> Plan:
    """Check the options before any file is read."""
    by_pairs = options.leave_pair_out or options.by_pairs
    metric = options.metric or (PREFERENCES if by_pairs else "disagreement")
    check_measures((*(options.metrics or ()), *(() if by_pairs else (metric,))), options)
    choice = metric if by_pairs else measure_of(metric, options)
    how = {"cv": "leave_pair_out"} if options.leave_pair_out else {}
    own = replace(options, ties="include") if options.votes else options  # of votes it says which are read
    estimator = build(own, scoring=resolve_measure(choice, options.convention), **how)
    out = Plan(options, metric, estimator, _scaler(options.scale), encoder_for(options))
    _check_pairs(out)
    return out


def _scaler(word: str) -> Any:
    """A scaler that looks at one query at a time, or at all training rows together; or None."""
    from sklearn import preprocessing as of_rows

    from rankrls import preprocessing as of_queries

    if word == "none":
        return None
    name = {"minmax": "MinMaxScaler", "standard": "StandardScaler"}[word.removesuffix("-all")]
    return getattr(of_rows, name)() if word.endswith("-all") else getattr(of_queries, f"Query{name}")()


def _check_pairs(plan: Plan) -> None:
    options, method = plan.options, plan.method
    if options.votes or options.event is not None:
        _check_alone(options)
    if not options.by_pairs:
        if options.vali_pairs is not None:
            problem = "{vali_pairs} needs {pairs}: a model of labels is chosen by {vali} or {cv}."
            raise InputError(problem, parameter="vali_pairs")
        if method.needs_vali and options.rule not in (None, "best") and options.vali is None:
            raise InputError("{rule} needs validation data.", remedy="Give {vali}.", parameter="rule")
        return
    whose, pairs = f"--method {method.name}", f"{{{_compared_by(options)}}}"
    if (options.vali is not None or options.vali_pairs is not None) and not method.validates_pairs:
        if method.needs_vali:
            raise InputError(
                f"{{0}} takes {pairs} without validation data: give its options.", whose, parameter="pairs"
            )
        able = ", ".join(m.name for m in METHODS.values() if m.validates_pairs)
        raise InputError(
            f"{{0}} chooses among {pairs} by leaving some out; validation data are for --method {{1}}.", whose, able
        )
    for name in options.changed():
        if name in ("patience", "rule") and method.needs_vali:
            problem = flag_of(name) + f" needs validation data, and {{0}} takes {pairs} without."
            raise InputError(problem, whose, parameter=name)
        if name in ("balance", "regression_weight") or (name == "ties" and not options.votes):
            raise InputError(flag_of(name) + f" is about labels, and means nothing with {pairs}.", parameter=name)


def _compared_by(options: Options) -> str:
    """The option that says what preferences are learned from."""
    return next(name for name in ("pairs", *_VOTES, "event") if getattr(options, name) is not None)


def _check_alone(options: Options) -> None:
    """Votes, and comparable pairs of times, are all that is compared, and votes have no columns of rows."""
    others: tuple[str, ...] = ("vali_pairs", "test_pairs", "metrics")
    if options.votes:
        others += ("event", "label", "qid", "id", "ids", "features", "ignore", "input_format", *TOLD)
    elif options.group is not None and options.everything:
        others += ("group",)
    of = _compared_by(options)
    for name in options.changed():
        if name in others and name != of:
            raise InputError(flag_of(name) + f" means nothing with {{{of}}}.", parameter=name)


def read_data(plan: Plan, report: Report) -> Data:
    """Read and scale the files that are there; all take the shape of the training data, which come first."""
    options, files = plan.options, plan.files
    tables: dict[str, Rows] = {}
    pairs: dict[str, PairTable] = {}
    encoder, dense = plan.encoder, "auto" if plan.scaler is None else True  # scaling fills zeros
    queries = (
        "ignored"
        if options.everything or options.utilities is not None
        else "optional"
        if options.by_pairs
        else "required"
    )
    reading = options.reading(queries=queries, dense=dense, raw=encoder is not None)
    for role, path in files.items():
        if path is None:
            continue
        labels: Any = "required" if plan.pair_files.get(role) is None else "ignored"
        if plan.method.learns_unscored:
            labels = {"train": "partly", "unscored": "ignored"}.get(role, labels)
        if plan.method.ranks_columns:
            labels = "partly"
        table: Rows
        if options.votes:
            with report.working("reading", f"reading {path}"):
                table, pairs[role], encoder = read_votes(path, options, encoder, report)
        else:
            table = _rows(path, replace(reading, labels=labels), report, first=not tables)
        if role == "unscored":
            table = replace(table, y=np.full(table.n_rows, np.nan))  # LETOR text always has some
        if plan.encoder is not None:
            table = (encoded if tables else fitted)(plan.encoder, table, report)
        if options.event is not None:
            pairs[role] = comparable_pairs(table)
        if not tables:
            for doubt in doubts(table):
                report.note(doubt)
        if plan.scaler is not None:
            with report.working("scaling", f"scaling {path}"):
                # the raw features are given back: only one copy of large data stays
                table = replace(table, X=_scaled(plan.scaler, table, first=not tables))
        if not tables:
            reading = reading.like(table)
            if plan.encoder is not None:
                reading = replace(reading, names=tuple(plan.encoder.columns_needed_))
        elif not options.by_pairs and table.sha256 == tables["train"].sha256:
            report.note(f"{path} holds the same data as {files['train']}: {_SAME_DATA[role]}")
        tables[role] = table
    data, ids = Data(tables, pairs, encoder=encoder, items=read_items(options, report)), options.item_ids
    for role, path in plan.pair_files.items():
        if path is not None:
            with report.working("reading", f"reading {path}"):
                data.pairs[role], ids = read_pairs(path, data.rows_of(role), ids, report.note)
    known = ids if options.pairs is not None and (ids != "row" or options.item_ids is not None) else None
    return replace(data, ids=known)


def _rows(path: Path, reading: Reading, report: Report, *, first: bool) -> Rows:
    """A file's rows; of the first table that holds more than numbers one error says all that has to be said."""
    try:
        return read(path, reading, report)
    except InputError as error:
        table = first and error.column is not None and reading.format_of(path) != "letor" and str(path) != "-"
        raise in_one_error(error, reading, path) if table and not reading.raw else error from error


def _scaled(scaler: Any, table: Rows, *, first: bool) -> Any:
    scale = scaler.fit_transform if first else scaler.transform
    return scale(table.X, qid=table.qid) if scaler.__module__.startswith("rankrls.") else scale(table.X)


def train(plan: Plan, data: Data, report: Report) -> Trained:
    """Choose and fit. Where the user interrupts and the estimator has kept its best model so far, that is it."""
    estimator, interrupted = plan.estimator, False
    if getattr(estimator, "positive", False):
        estimator.positive = _positive(estimator.positive, data.tables["train"])
    with report.working("fitting", "choosing and fitting") as say:
        if hasattr(estimator, "verbose"):
            estimator.verbose = progress(say, plan.chosen_by)
        try:
            with keeping_its_best() if plan.method.keeps_best else nullcontext():
                _fit(estimator, data)
        except InputError as error:
            raise _placed(error, data) from error
        except KeyboardInterrupt:
            if not getattr(estimator, "interrupted_", False):
                raise
            interrupted = True
        finally:
            if hasattr(estimator, "verbose"):
                estimator.verbose = 0
    if interrupted:
        report.note(
            f"interrupted: the best model found so far is kept, alpha {estimator.alpha_:.3g} after {estimator.n_iter_} "
            "iterations; it is saved without further judgement."
        )
    else:
        note_edges(plan.method, estimator, report)
    names = data.tables["train"].feature_names
    given = [("encode", data.encoder), ("scale", plan.scaler), ("rank", estimator)]
    steps = [(name, step) for name, step in given if step is not None]
    if names is not None and data.encoder is None:
        # arrays went in; who loads the model finds the names where data frames would have left them
        steps[0][1].feature_names_in_ = np.array(names, dtype=object)
    return Trained(estimator, estimator if len(steps) == 1 else Pipeline(steps), interrupted)


def _positive(words: bool | tuple[str, ...], table: Rows) -> bool | dict[int, int]:
    """Columns with their sign: a mapping, because a list of two numbers for two features may be read as their signs."""
    if isinstance(words, bool):
        return words
    found = feature_columns(words, table, "positive")
    out = dict.fromkeys((column for columns in found.values() for column in columns), 1)
    if table.feature_names is None and len(out) < len(words):
        twice = next(word for k, word in enumerate(words) if found[word] in [found[w] for w in words[:k]])
        raise InputError("{positive} names feature {0!r} twice.", twice, parameter="positive")
    return out


def _placed(error: InputError, data: Data) -> InputError:
    """An error about a row, by its place in a file, if it is known."""
    if error.parameter not in ("X", "X_val", "y") or error.row is None:
        return error
    table, row = data.tables["validation" if error.parameter == "X_val" else "train"], error.row
    if "unscored" in data.tables and row >= table.n_rows:
        table, row = data.tables["unscored"], row - table.n_rows
    if error.parameter != "y":
        return error if error.column is None else _too_large(error, table, row)
    if table is data.tables["train"] or table.qid is None:
        return error.located(file=table.path)
    problem = "row {0}, counted from 0: query {1!r} has labels in {2}, and is scored in all its rows or in none."
    return InputError(
        problem, row, table.qid[[row]].tolist()[0], data.tables["train"].path, file=table.path, row=row, parameter="y"
    )


def _too_large(error: InputError, table: Rows, row: int) -> InputError:
    """A value that cannot be used, by its place in a file."""
    assert isinstance(error.column, int)
    name = table.feature_ids[error.column]
    return InputError(
        "row {0}, counted from 0: the value {1:g} of feature {2} is so large that products overflow.",
        *(row, table.X[row, error.column], repr(name) if table.feature_names else name),
        remedy="Scale the features (see {scale}), or leave this one out.",
        file=table.path,
        row=row,
        column=name,
    )


def _fit(estimator: Any, data: Data) -> None:
    given: dict[str, Any] = {}
    if "validation" in data.tables:
        vali = data.tables["validation"]
        given["X_val"] = vali.X
        if "validation" not in data.pairs:
            given |= {"y_val": vali.y, "qid_val": vali.qid}
    table = data.tables["train"]
    if "train" not in data.pairs:
        X, y, qid = table.X, table.y, table.qid
        if data.items is not None:
            given["items"] = Items(item_features(data.items, data.items_ranked))
        if "unscored" in data.tables:
            X, y, qid = _together(table, data.tables["unscored"])
        estimator.fit(X, y, **({} if qid is None else {"qid": qid}), **given)
        return
    pairs, judging = data.pairs["train"], data.pairs.get("validation")
    given |= {"strength": pairs.strength, "weight": pairs.weight}
    if pairs.groups is not None and "groups" in inspect.signature(estimator.fit_pairs).parameters:
        given["groups"] = pairs.groups
    if judging is not None:
        given |= {"winners_val": judging.winners, "losers_val": judging.losers}
        given |= {"strength_val": judging.strength, "weight_val": judging.weight}
    estimator.fit_pairs(table.X, pairs.winners, pairs.losers, **given)


def _together(scored: Rows, more: Rows) -> tuple[Any, NDArray[np.float64], NDArray[Any] | None]:
    """Rows, labels and query ids of rows with labels and further ones without."""
    assert scored.y is not None
    dense = isinstance(scored.X, np.ndarray) and isinstance(more.X, np.ndarray)
    X = np.vstack((scored.X, more.X)) if dense else sparse.csr_array(sparse.vstack((scored.X, more.X)))
    y = np.concatenate((scored.y, np.full(more.n_rows, np.nan)))
    if scored.qid is None or more.qid is None:
        if scored.qid is not more.qid:
            odd = scored if scored.qid is None else more
            problem = "there are no query ids, and the other file has some: rows with labels and without need both."
            raise InputError(problem, file=odd.path, parameter="qid")
        return X, y, None
    qid = np.empty(len(y), dtype=object)
    qid[:] = [*scored.qid.tolist(), *more.qid.tolist()]
    return X, y, qid


def progress(say: Say, metric: str) -> Callable[[Any], None]:
    """What a learner that goes step by step tells after each step."""
    return lambda step: say(step.words(metric), step.left)


def note_edges(method: Method, estimator: Any, report: Report) -> None:
    """What was chosen from a grid, and may be better outside of it."""
    for name, at_edge in choices_at_edges(estimator).items():
        if not at_edge:
            continue
        value, tried = estimator.best_params_[name], estimator.cv_results_[name]
        numbers = [v for v in tried.tolist() if v is not None]  # other kernels may not have it
        low, high = min(numbers), max(numbers)  # of all combinations: an automatic grid is each one's own
        end = "largest" if value == high or (value != low and value**2 > low * high) else "smallest"
        own = name in PARAMETERS or name in method.takes.split()
        widen = f"{flag_of(name)} a,b,c" if own else method.widen
        report.note(
            f"the chosen {name.replace('_', ' ')}, {value:.3g}, is the {end} of its grid: a wider one ({widen}) may do "
            "better."
        )


def judge_all(plan: Plan, data: Data, trained: Trained, report: Report) -> dict[str, dict[str, Judgement]]:
    """The measures on validation data or held-out training queries, and on the test data."""
    with report.working("judging", "judging"):
        out = {role: _judged(role, plan, data, trained.estimator) for role in ("train", "validation", "test")}
    return {"held out" if role == "train" else role: found for role, found in out.items() if found is not None}


def _judged(role: str, plan: Plan, data: Data, estimator: Any) -> dict[str, Judgement] | None:
    table = data.rows_of(role)
    if role == "train":
        scores = getattr(estimator, "held_out_scores_", None)
        if scores is None or {"train", "validation"} & data.pairs.keys() or "validation" in data.tables:
            return None
        scores = scores[: table.n_rows]
    elif role not in data.pairs and role not in data.tables:
        return None
    else:
        scores = predict_by_query(estimator, table.X, table.qid)
    if role in data.pairs:
        qid = table.qid if "train" not in data.pairs else None
        return {plan.options.pair_measure: judge_pairs(data.pairs[role], scores, qid)}
    wide: Any = table
    if getattr(table, "utility_names", ()):
        table, kept = wide.by_item(wide.utility_names)
        scores = np.ravel(scores)[kept]
    wanted = plan.options.metrics
    first = (plan.metric,) if wanted is None else ()
    assert table.y is not None
    labels = table.y[~np.isnan(table.y)]
    names = [measure_of(name, plan.options) for name in wanted or measures_for(labels, first)]
    return judge(names, plan.options.convention, table, scores, must_judge=names if wanted else ())
