"""What ``fit`` and ``cv`` have in common: reading, choosing, judging."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.pipeline import Pipeline

from rankrls._errors import InputError
from rankrls._items import Items
from rankrls.cli._files import read, read_items
from rankrls.cli._findings import asked_measures, check_measures, measure_of
from rankrls.cli._methods import METHODS, Method, build
from rankrls.cli._options import Options, flag_of
from rankrls.cli._report import Report
from rankrls.cli._supervisor import keeping_its_best
from rankrls.cli._together import TOLD
from rankrls.cli._votes import comparable_pairs, read_votes
from rankrls.comparison.judgement import PREFERENCES, Judgement, judge, judge_pairs, suitable_measures
from rankrls.inspection.doubts import doubtful_features
from rankrls.io import PairTable
from rankrls.io._rows import few
from rankrls.io.data import Reading, Rows, feature_columns, how_read, stacked
from rankrls.io.items import item_features, read_pairs
from rankrls.metrics import resolve_measure
from rankrls.metrics._scorer import predict_by_query
from rankrls.models.inputs.encoded import encoded_rows, encoder_fitted, in_one_error
from rankrls.preprocessing import TableEncoder
from rankrls.selection.search import ends_of_grids

_GRIDS = {
    "alpha": "--alphas lo:hi:n",
    "C": "--Cs lo:hi:n",
    "n_features": "--max-features K",
    "n_basis": "--max-basis P",
}
"""How the grid of what was chosen is widened, if no option is called after it."""
_SAME_DATA = {
    "unscored": "its rows are among the others already.",
    "validation": "the choice is that of the closest fit, which new queries need not bear out.",
    "test": "the measures on them say how close the fit is, not how well new queries are ranked.",
}


@dataclass
class Study:
    """What ``fit`` and ``cv`` do: the options, checked, and what they ask for; then what was read, and what came of it.

    Attributes
    ----------
    options : Options
    metric : str
        What chooses.
    estimator, scaler, encoder : Any
        Fitted in the end; None if there is none. The encoder makes features of the cells of tables, or of what stands
        on the sides of votes.
    tables, pairs : dict
        What was read, by its role: train, unscored, validation, test. The preferences of a role may be between train's
        rows.
    items : Rows or None
        The table of the items that each row of the others ranks.
    about, found : dict
        What the model's file says of the data besides, and what the result does.
    interrupted : bool
        Whether the search was cut short; then nothing is judged.
    judged : dict
        The measures by the role of what was judged.
    """

    options: Options
    metric: str
    estimator: Any
    scaler: Any
    encoder: Any
    tables: dict[str, Any] = field(default_factory=dict)
    pairs: dict[str, PairTable] = field(default_factory=dict)
    items: Any = None
    about: dict[str, Any] = field(default_factory=dict)
    found: dict[str, Any] = field(default_factory=dict)
    interrupted: bool = False
    judged: dict[str, dict[str, Judgement]] = field(default_factory=dict)

    @property
    def method(self) -> Method:
        """The learner."""
        return METHODS[self.options.method]

    @property
    def chosen_by(self) -> str:
        """The measure that chooses, with what was said of it."""
        return self.metric if self.options.by_pairs else str(measure_of(self.metric, self.options))

    @property
    def files(self) -> dict[str, Path]:
        """The files of rows by their role."""
        return self._given(train="train", unscored="unscored", validation="vali", test="test")

    @property
    def pair_files(self) -> dict[str, Path]:
        """The files of preferences by their role."""
        return self._given(train="pairs", validation="vali_pairs", test="test_pairs")

    def _given(self, **roles: str) -> dict[str, Path]:
        return {role: path for role, name in roles.items() if (path := getattr(self.options, name)) is not None}

    @property
    def training(self) -> Any:
        """The training data."""
        return self.tables["train"]

    def rows_of(self, role: str) -> Any:
        """The items that a role's preferences are between."""
        return self.tables.get(role, self.training)

    @property
    def model(self) -> Any:
        """What to save: the fitted estimator, or a pipeline that ends in it."""
        given = [("encode", self.encoder), ("scale", self.scaler), ("rank", self.estimator)]
        steps = [(name, step) for name, step in given if step is not None]
        return self.estimator if len(steps) == 1 else Pipeline(steps)


def study(options: Options) -> Study:
    """Check the options before any file is read."""
    by_pairs = options.leave_pair_out or options.by_pairs
    metric = options.metric or (PREFERENCES if by_pairs else "disagreement")
    check_measures((*(options.metrics or ()), *(() if by_pairs else (metric,))), options)
    choice = metric if by_pairs else measure_of(metric, options)
    how = {"cv": "leave_pair_out"} if options.leave_pair_out else {}
    own = replace(options, ties="include") if options.votes else options  # of votes it says which are read
    estimator = build(own, scoring=resolve_measure(choice, options.convention), **how)
    return Study(options, metric, estimator, _scaler(options.scale), _encoder(options))


def carry_out(found: Study, report: Report, way: Any) -> None:
    """Read, choose, fit and judge: ``read_data``, ``learn`` and ``judge_all`` are the way's own."""
    way.read_data(found, report)
    train(found, report, way.learn)
    if not found.interrupted:
        with report.working("judging", "judging"):
            found.judged = way.judge_all(found)


def _scaler(word: str) -> Any:
    """A scaler that looks at one query at a time, or at all training rows together; or None."""
    from sklearn import preprocessing as of_rows

    from rankrls import preprocessing as of_queries

    if word == "none":
        return None
    name = {"minmax": "MinMaxScaler", "standard": "StandardScaler"}[word.removesuffix("-all")]
    return getattr(of_rows, name)() if word.endswith("-all") else getattr(of_queries, f"Query{name}")()


def _encoder(options: Options) -> Any:
    """The encoder that the options ask for; None if they say nothing of columns."""
    told = {name: getattr(options, name) for name in TOLD if getattr(options, name) is not None}
    if not told:
        return None
    told.setdefault("columns", "named")
    if told["columns"] == "named":
        told.setdefault("impute", None)
    return TableEncoder(**told, sparse_output="auto" if options.scale == "none" else False)


def read_data(found: Study, report: Report) -> None:
    """Read and scale the files that are there; all take the shape of the training data, which come first."""
    options, encoder = found.options, found.encoder
    queries = "optional" if options.by_pairs else "required"
    queries = "ignored" if options.everything or options.utilities is not None else queries
    dense = "auto" if found.scaler is None else True  # scaling fills zeros
    reading = options.reading(queries=queries, dense=dense, raw=encoder is not None)
    table: Rows
    for role, path in found.files.items():
        first = role == "train"
        if options.votes:
            table, found.pairs[role], found.encoder = read_votes(path, options, found.encoder, report)
        else:
            table = _rows(path, replace(reading, labels=_labels(role, found)), report, first=first)
        if role == "unscored":
            table = replace(table, y=np.full(table.n_rows, np.nan))  # LETOR text always has some
        if encoder is not None:
            with report.working("encoding", f"encoding {path}"):
                table = encoder_fitted(encoder, table) if first else encoded_rows(encoder, table, report.note)
        if options.event is not None:
            found.pairs[role] = comparable_pairs(table)
        if first:
            _note_doubts(table, report)
            reading = reading.like(table)
            reading = reading if encoder is None else replace(reading, names=tuple(encoder.columns_needed_))
        elif not options.by_pairs and table.sha256 == found.training.sha256:
            report.note(f"{path} holds the same data as {options.train}: {_SAME_DATA[role]}")
        if found.scaler is not None:
            with report.working("scaling", f"scaling {path}"):
                # the raw features are given back: only one copy of large data stays
                table = replace(table, X=_scaled(found.scaler, table, first=first))
        found.tables[role] = table
    found.items, ids = read_items(options, report), options.item_ids
    for role, path in found.pair_files.items():
        with report.working("reading", f"reading {path}"):
            found.pairs[role], ids = read_pairs(path, found.rows_of(role), ids, report.note)
    found.about = how_read(found.training)
    if options.pairs is not None and (ids != "row" or options.item_ids is not None):
        found.about["ids"] = ids


def _labels(role: str, found: Study) -> Any:
    """What labels a file of rows needs."""
    if found.method.has("utilities") or (found.method.has("unscored") and role == "train"):
        return "partly"
    return "ignored" if role in found.pair_files or role == "unscored" else "required"


def _note_doubts(table: Rows, report: Report) -> None:
    """What about the features should be looked at twice."""
    if not isinstance(table.X, np.ndarray):
        return
    y = None if table.y is None or table.y.ndim > 1 else table.y
    found, names = doubtful_features(table.X, y, table.qid, feature_names=table.feature_names), table.feature_ids
    if ids := [names[k] for k in found.ids]:
        remedy = f"(--ignore {','.join(ids[:3])} leaves it out)"
        report.note(f"{few(ids)}: a different whole number in each row is a feature, and looks like an id {remedy}.")
    if leaks := [names[k] for k in found.leaks]:
        what = "this feature alone puts all rows in the order of their labels."
        report.note(f"{few(leaks)}: {what} Was it made from them, or after them?")


def _rows(path: Path, reading: Reading, report: Report, *, first: bool) -> Rows:
    """A file's rows; of the first one, if it is a table, one error says all that is wrong."""
    try:
        return read(path, reading, report)
    except InputError as error:
        raise in_one_error(error, reading, path) if first else error from error


def _scaled(scaler: Any, table: Rows, *, first: bool) -> Any:
    scale = scaler.fit_transform if first else scaler.transform
    return scale(table.X, qid=table.qid) if scaler.__module__.startswith("rankrls.") else scale(table.X)


def train(found: Study, report: Report, learn: Callable[[Study], None]) -> None:
    """Fit; where the user interrupts, the model is the best so far, if the estimator keeps that."""
    estimator = found.estimator
    with report.working("fitting", "choosing and fitting") as say:
        if hasattr(estimator, "verbose"):
            estimator.verbose = lambda step: say(step.words(found.chosen_by), step.left)
        try:
            learn(found)
        except KeyboardInterrupt:
            if not getattr(estimator, "interrupted_", False):
                raise
            found.interrupted = True
        finally:
            if hasattr(estimator, "verbose"):
                estimator.verbose = 0
    if found.interrupted:
        report.note(
            f"interrupted: the best model found so far is kept, alpha {estimator.alpha_:.3g} after {estimator.n_iter_} "
            "iterations; it is saved without further judgement."
        )
    else:
        _note_edges(estimator, report)
    names = found.training.feature_names
    if names is not None and found.encoder is None:
        # arrays went in; who loads the model finds the names where data frames would have left them
        vars(estimator).pop("feature_names_in_", None)
        (found.scaler or estimator).feature_names_in_ = np.array(names, dtype=object)


def learn(found: Study) -> None:
    """Fit the estimator to the rows; errors name the file of a row that is wrong."""
    if isinstance(found.options.positive, tuple):
        columns = feature_columns(found.options.positive, found.training, "positive").values()
        # a mapping, because a list of two numbers for two features may be read as their signs
        found.estimator.positive = dict.fromkeys(chain.from_iterable(columns), 1)
    try:
        with keeping_its_best() if found.method.has("keeps_best") else nullcontext():
            _fit(found)
    except InputError as error:
        raise _placed(error, found.tables) from error


def _placed(error: InputError, tables: dict[str, Any]) -> InputError:
    """An error about a row, by its place in a file, if it is known."""
    if error.parameter not in ("X", "X_val", "y") or error.row is None:
        return error
    table, row = tables["validation" if error.parameter == "X_val" else "train"], error.row
    if "unscored" in tables and row >= table.n_rows:
        table, row = tables["unscored"], row - table.n_rows
    if error.parameter == "y":
        if table is tables["train"] or table.qid is None:
            return error.located(file=table.path)
        query, train = table.qid[[row]].tolist()[0], tables["train"].path
        problem = "row {0}, counted from 0: query {1!r} has labels in {2}, and is scored in all its rows or in none."
        return InputError(problem, row, query, train, file=table.path, row=row, parameter="y")
    if not isinstance(error.column, int):
        return error
    name = table.feature_ids[error.column]
    shown = repr(name) if table.feature_names else name
    problem = "row {0}, counted from 0: the value {1:g} of feature {2} is so large that products overflow."
    remedy, place = "Scale the features (see {scale}), or leave this one out.", {"file": table.path, "row": row}
    return InputError(problem, row, table.X[row, error.column], shown, remedy=remedy, column=name, **place)


def _fit(found: Study) -> None:
    estimator, table, validation = found.estimator, found.training, found.tables.get("validation")
    pairs, judging = found.pairs.get("train"), found.pairs.get("validation")
    given: dict[str, Any] = {} if validation is None else {"X_val": validation.X}
    if validation is not None and judging is None:
        given |= {"y_val": validation.y, "qid_val": validation.qid}
    if pairs is None:
        X, y, qid = table.X, table.y, table.qid
        if found.items is not None:
            given["items"] = Items(item_features(found.items, table.utility_names))
        if "unscored" in found.tables:
            X, y, qid = stacked(table, found.tables["unscored"])
        estimator.fit(X, y, **({} if qid is None else {"qid": qid}), **given)
        return
    if pairs.groups is not None and "groups" in inspect.signature(estimator.fit_pairs).parameters:
        given["groups"] = pairs.groups
    if judging is not None:
        given |= {f"{name}_val": getattr(judging, name) for name in ("winners", "losers", "strength", "weight")}
    estimator.fit_pairs(table.X, pairs.winners, pairs.losers, strength=pairs.strength, weight=pairs.weight, **given)


def _note_edges(estimator: Any, report: Report) -> None:
    """What was chosen from a grid, and may be better outside of it."""
    for name, end in ends_of_grids(estimator).items():
        wider = _GRIDS.get(name) or f"{flag_of(name)} a,b,c"
        value = f"the chosen {name.replace('_', ' ')}, {estimator.best_params_[name]:.3g},"
        report.note(f"{value} is the {end} of its grid: a wider one ({wider}) may do better.")


def judge_all(found: Study) -> dict[str, dict[str, Judgement]]:
    """The measures on validation data or held-out training queries, and on the test data."""
    roles = {"held out": "train", "validation": "validation", "test": "test"}
    return {name: judged for name, role in roles.items() if (judged := _judged(role, found)) is not None}


def _judged(role: str, found: Study) -> dict[str, Judgement] | None:
    estimator, options, table = found.estimator, found.options, found.rows_of(role)
    if role == "train":
        scores = getattr(estimator, "held_out_scores_", None)
        if scores is None or {"train", "validation"} & found.pairs.keys() or "validation" in found.tables:
            return None
        scores = scores[: table.n_rows]
    elif role not in found.pairs and role not in found.tables:
        return None
    else:
        scores = predict_by_query(estimator, table.X, table.qid)
    if role in found.pairs:
        qid = table.qid if "train" not in found.pairs else None
        return {options.pair_measure: judge_pairs(found.pairs[role], scores, qid)}
    if getattr(table, "utility_names", ()):
        table, kept = table.by_item(table.utility_names)
        scores = np.ravel(scores)[kept]
    measures = asked_measures(options, suitable_measures(table.y, (found.metric,)))
    return judge(measures, options.convention, table, scores, must_judge=options.metrics is not None)
