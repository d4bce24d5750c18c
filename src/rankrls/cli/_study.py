"""The steps that ``fit`` and ``cv`` share: check the options, read, choose, fit, evaluate."""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse
from sklearn import config_context
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import MinMaxScaler, StandardScaler

import rankrls
from rankrls._arrays import on_device, to_host
from rankrls._errors import InputError
from rankrls._typing import Array
from rankrls.cli._files import check_streamed, comparable_pairs, is_dataset, read, read_votes, score_parts
from rankrls.cli._options import METHODS, UNLABELLED, Options, flag, given
from rankrls.cli._proposal import with_proposal
from rankrls.cli._report import Report
from rankrls.clicks import corrected_clicks
from rankrls.comparison.report import Judgement, judge, judge_pairs, suitable_measures
from rankrls.inspection.suspicious import suspicious_features
from rankrls.io import PairTable, Rows, open_dataset
from rankrls.io._text import few
from rankrls.io.columns import feature_columns
from rankrls.io.files import positions_beside
from rankrls.io.preferences import read_pairs
from rankrls.io.reading import ReadOptions
from rankrls.io.rows import Schema, stack_rows
from rankrls.io.tables import CellError
from rankrls.metrics import resolve_measure
from rankrls.metrics._scorer import predict_by_query
from rankrls.persistence.stored import columns_error, encoded_rows, encoder_fitted
from rankrls.preprocessing import LogScaler, QueryMinMaxScaler, QueryStandardScaler, TableEncoder
from rankrls.streaming import fit_scaler, scaled

_COLUMNS = ("columns", "categorical", "dates", "text")
_SCALERS = {
    "minmax": QueryMinMaxScaler,
    "standard": QueryStandardScaler,
    "minmax-all": MinMaxScaler,
    "standard-all": StandardScaler,
    "log-all": LogScaler,
}
_ROLES = {"train": "train", "unlabelled": "unlabelled", "vali": "validation", "test": "test"}
"""The roles of the files that options name."""
_EXCLUSIVE = {
    "preferred": (
        *("label", "qid", "id", "features", "ignore", "all_rows"),
        *("unlabelled", "vali", "pairs", "event"),
    ),
    "pairs": ("event",),
    "position": ("preferred", "pairs", "event", "unlabelled"),
    "vali": ("cv",),
}


@dataclass
class Study:
    """Data read by ``fit`` and ``cv``, by role (train, unlabelled, validation, test), and the fitted steps."""

    options: Options
    report: Report
    estimator: Any
    scaler: Any
    encoder: Any
    tables: dict[str, Any] = field(default_factory=dict)
    pairs: dict[str, PairTable] = field(default_factory=dict)
    about: dict[str, Any] = field(default_factory=dict)
    judged: dict[str, dict[str, Judgement]] = field(default_factory=dict)
    positions: dict[str, Any] = field(default_factory=dict)

    @property
    def training(self) -> Any:
        """The training data."""
        return self.tables["train"]

    @property
    def files(self) -> dict[str, Path]:
        """The files of rows by their role."""
        return {_ROLES[name]: path for name, path in self.options.given(*_ROLES).items()}

    @property
    def attributes(self) -> dict[str, Any]:
        """The estimator's parameters and fitted attributes."""
        known: dict[str, Any] = vars(self.estimator)
        return known

    @property
    def model(self) -> Any:
        """The model to save: the fitted estimator, or a pipeline that ends in it."""
        steps = [("encode", self.encoder), ("scale", self.scaler), ("rank", self.estimator)]
        steps = [(name, step) for name, step in steps if step is not None]
        return self.estimator if len(steps) == 1 else Pipeline(steps)

    @property
    def measure(self) -> str:
        """Name of the measure that selects the model."""
        return self.options.called(self.options.measures[0])

    @property
    def protocol(self) -> str:
        """Description of how the model was chosen."""
        return str(self.attributes.get("selection_", ""))


def fit_and_evaluate(options: Options, report: Report) -> Study:
    """Check the options, read, choose, fit and evaluate."""
    _check_together(options)
    parameters = dict(options.parameters)
    encoding = options.given(*_COLUMNS)
    encoding |= {name: parameters.pop(name) for name in TableEncoder().get_params() if name in parameters}
    scaler = None if options.scale == "none" else _SCALERS[options.scale]()
    estimator = _estimator(options, parameters)
    study = Study(options, report, estimator, scaler, _encoder(encoding, scaler))
    try:
        if is_dataset(options.train):
            _open(study)
        else:
            _read(study)
    except InputError as error:
        raise (with_proposal(error, options) if "train" not in study.tables else error) from error
    with report.working("fitting", bars=options.method != "rankboost"):
        _fit(study)
    for name, value in study.attributes.get("best_params_", {}).items():
        if study.attributes.get(f"{name}_at_edge_"):
            report.note(f"the chosen {name}, {value:.3g}, is at an end of its grid. Try a wider grid.")
    feature_names = study.training.feature_names
    if feature_names is not None and study.encoder is None:  # arrays went in; names are stored as if data frames had
        study.attributes.pop("feature_names_in_", None)
        (study.scaler or estimator).feature_names_in_ = np.array(feature_names, dtype=object)
    with report.working("evaluating"):
        roles = {"held out": "train", "validation": "validation", "test": "test"}
        study.judged = {name: judged for name, role in roles.items() if (judged := _evaluated(role, study)) is not None}
    return study


def _check_together(options: Options) -> None:
    """Refuse options that exclude each other, or need others."""
    for one in options.given(*_EXCLUSIVE):
        for other in options.given(*_EXCLUSIVE[one]):
            raise InputError(f"{flag(one)} and {flag(other)} cannot be used together.", parameter=one)
    if options.new is not None and not options.by_pairs:
        problem = "--new is for preferences and censored times. For labelled rows, queries are held out."
        raise InputError(problem, parameter="new")
    if options.unlabelled is not None and options.method not in UNLABELLED:
        able = " or ".join(UNLABELLED)
        raise InputError(f"{options.method} cannot use unlabelled rows. Use --method {able}.", parameter="unlabelled")


def _estimator(options: Options, given_parameters: dict[str, Any]) -> Any:
    """The estimator, with the parameters that were given."""
    cls = getattr(rankrls, METHODS[options.method])
    estimator = cls()
    if "scoring" in given_parameters:
        raise InputError("Name the measure by its own option (metric).", parameter="scoring")
    scoring, *_ = [resolve_measure(name, options.tool) for name in options.measures]
    kernel = options.kernel[0] if options.kernel and len(options.kernel) == 1 else options.kernel
    parameters = given({"kernel": kernel}) | options.given("alphas", "cv") | given_parameters
    if options.method in ("pursuit", "co-pursuit") and "kernel" not in parameters:
        parameters.setdefault("dictionary", "features")  # a command selects features, unless a kernel is given
    if options.method == "auto" and parameters.get("families") == "all" and not options.by_pairs:
        parameters.setdefault("scales", "all")  # predict has the queries
    if "scoring" in estimator.get_params():
        parameters["scoring"] = scoring
    estimator.set_params(**parameters)
    if options.by_pairs and not hasattr(estimator, "fit_pairs"):
        raise InputError(f"{cls.__name__} is fitted to labels, not to preferences.", parameter="method")
    if options.vali is not None and (options.by_pairs or "X_val" not in inspect.signature(estimator.fit).parameters):
        how = "preferences" if options.by_pairs else "held-out queries"
        raise InputError(f"{cls.__name__} chooses by {how}, not by validation data.", parameter="vali")
    return estimator


def _encoder(parameters: dict[str, Any], scaler: Any) -> Any:
    """The encoder of tables that the options ask for, or None."""
    if not parameters:
        return None
    if parameters.setdefault("columns", "named") == "named":
        parameters.setdefault("impute", None)
    parameters.setdefault("sparse_output", "auto" if scaler is None else False)
    return TableEncoder(**parameters)


def _read(study: Study) -> None:
    """Read, encode and scale the files; all use the columns of the training data, which come first."""
    options = study.options
    encoder = study.encoder
    report = study.report
    queries: Any = "ignored" if options.all_rows else "optional" if options.by_pairs else "required"
    missing = None if encoder is None else encoder.missing_words()
    known = Schema(dense=None if study.scaler is None else True)  # scaling fills zeros
    reading = options.reading(queries=queries, missing=missing, known=known)
    of_training = "partly" if options.method in UNLABELLED else "required" if options.pairs is None else "ignored"
    labels = dict.fromkeys(study.files, "required") | {"train": of_training, "unlabelled": "ignored"}
    for role, path in study.files.items():
        first = role == "train"
        if options.votes:
            table, study.pairs[role], study.encoder = read_votes(path, options, study.encoder, report)
        else:
            table = _encoded(study, path, replace(reading, labels=labels[role]), first=first)
        if role == "unlabelled":
            table = replace(table, y=None)  # LETOR text always has labels
        if options.event is not None:
            study.pairs[role] = comparable_pairs(table, report)
        if first:
            _note_suspicious(table, report)
            study.positions = _positions(study, path, table)
            known = table.schema
            if encoder is not None:
                known = replace(known, features=tuple(encoder.columns_needed_))
            reading = replace(reading, known=known, sizes=None, position=None, impressions=None)
        elif not options.by_pairs and table.sha256 == study.training.sha256:
            report.note(f"{path} has the same data as {options.train}, so its measures are optimistic.")
        if study.scaler is not None:
            with report.working("scaling", path):
                scale = study.scaler.fit_transform if first else study.scaler.transform
                by_query = {} if options.scale.endswith("-all") else {"qid": table.qid}
                table = replace(table, X=scale(table.X, **by_query))
        study.tables[role] = table
    study.about = study.training.schema.to_json()
    if options.pairs is not None:
        with report.working("reading", options.pairs):
            study.pairs["train"] = read_pairs(options.pairs, study.training, report.note)


def _encoded(study: Study, path: Path, reading: ReadOptions, *, first: bool) -> Rows:
    """The rows of a file, encoded if the options ask for it; the first file is that of the training data."""
    report = study.report
    encoder = study.encoder
    try:
        table = read(path, reading, report)
        if encoder is None:
            return table
        with report.working("encoding", path):
            if first:
                return encoder_fitted(encoder, table, by_query=not study.options.by_pairs)
            return encoded_rows(encoder, table, report.note)
    except InputError as error:
        known = columns_error(error) if first and isinstance(error, CellError) else error
        raise _with_ignored(known, study.options) from error


def _with_ignored(error: InputError, options: Options) -> InputError:
    """An error whose advice to ignore columns includes those that are ignored already."""
    advised = error.settings.get("ignore")
    if advised is None:
        return error
    return error.with_setting("ignore", [*(options.ignore or ()), *(name for name in advised if name != options.qid)])


def _positions(study: Study, path: Path, table: Rows) -> dict[str, Any]:
    """Positions and impressions of the training rows, if their labels are clicks."""
    shown = given({"position": table.position, "impressions": table.impressions})
    if not study.options.by_pairs and "position" not in shown:
        shown |= given({"position": positions_beside(path, table.n_rows, study.report.note)})
    if shown and "position" not in inspect.signature(study.estimator.fit).parameters:
        problem = f"{type(study.estimator).__name__} cannot be fitted to clicks. Leave the positions out (position)."
        raise InputError(problem, parameter="position")
    return shown


def _note_suspicious(table: Rows, report: Report) -> None:
    """Note features that look like ids, or that reveal the labels."""
    if not isinstance(table.X, np.ndarray):
        return
    found = suspicious_features(table.X, table.y, table.qid, feature_names=table.feature_names)
    names = table.feature_ids
    if ids := [names[k] for k in found.ids]:
        out = f"leave it out with --ignore {','.join(ids[:3])}"
        report.note(f"{few(ids)}: whole numbers that look like ids; {out}.")
    if leaks := [names[k] for k in found.leaks]:
        report.note(f"{few(leaks)}: this feature alone sorts all rows by label. It may be computed from the labels.")


def _fit(study: Study) -> None:
    """Fit the estimator to the rows, or to shards chunk by chunk; errors name the file of a row that is wrong."""
    options = study.options
    estimator = study.estimator
    table = study.training
    validation = study.tables.get("validation")
    if signs := _signs(study.attributes.get("positive"), table):
        estimator.positive = signs
    to_device = _to_device(options.device)
    try:
        with config_context(array_api_dispatch=options.device is not None):
            if is_dataset(options.train):
                estimator.fit_dataset(table, **given({"validation": validation}))
            elif "train" in study.pairs:
                pairs = study.pairs["train"]
                known = inspect.signature(estimator.fit_pairs).parameters
                held_out = {"groups": pairs.groups, "item_id": table.docids, "new": options.new}
                of_pairs = {"strength": pairs.strength, "weight": pairs.weight} | held_out
                of_pairs = {name: value for name, value in of_pairs.items() if name in known}
                estimator.fit_pairs(to_device(table.X), pairs.winners, pairs.losers, **of_pairs)
            else:
                rows = stack_rows([study.tables[role] for role in ("train", "unlabelled") if role in study.tables])
                extra = given({"qid": rows.qid}) | study.positions
                if validation is not None:
                    extra |= {"X_val": to_device(validation.X), "y_val": validation.y, "qid_val": validation.qid}
                estimator.fit(to_device(rows.X), rows.y, **extra)
    except InputError as error:
        raise _with_file(error, study.tables) from error
    for name, value in study.attributes.items():
        if on_device(value):  # the fit is done: what follows is numpy's
            setattr(estimator, name, to_host(value))


def _signs(positive: Any, table: Rows) -> dict[int, Any]:
    """Signs by column where ``positive`` names features, or patterns of them, instead of columns."""
    words = [positive] if isinstance(positive, str) else positive
    if not isinstance(words, list | tuple | dict) or not all(isinstance(word, str) for word in words):
        return {}
    signs = words if isinstance(words, dict) else dict.fromkeys(words, 1)
    return {column: sign for word, sign in signs.items() for column in feature_columns([word], table, "positive")}


def _to_device(device: str | None) -> Callable[[Any], Any]:
    """A function that moves features to a device of torch, on which estimators then compute; without one nothing."""
    if device is None:
        return lambda X: X
    os.environ.setdefault("SCIPY_ARRAY_API", "1")  # scikit-learn asks for it, for functions of scipy
    try:
        import torch

        torch.empty(0, device=device)
    except (ImportError, AssertionError, RuntimeError) as error:
        problem = f"torch cannot compute on {device!r} here: {str(error).splitlines()[0]}."
        raise InputError(problem, parameter="device") from None

    def put(X: Any) -> Any:
        if sparse.issparse(X):
            raise InputError("--device needs dense features, but these are sparse.", parameter="device")
        return torch.asarray(X, device=device)

    return put


def _with_file(error: InputError, tables: dict[str, Any]) -> InputError:
    """An error about the rows of a file, with its name, and the line of a row."""
    parameter = error.parameter or ""
    known = ("X", "y", "qid", "clicks", "position", "impressions")
    if error.file is not None or parameter.removesuffix("_val") not in known:
        return error
    table = tables["validation" if parameter.endswith("_val") else "train"]
    row = error.row
    if row is None:
        return error.replace(file=table.path)
    if "unlabelled" in tables and row >= table.n_rows:  # the rows without labels come last
        row -= table.n_rows
        table = tables["unlabelled"]
    column = table.feature_ids[error.column] if isinstance(error.column, int) else error.column
    return error.replace(file=table.path, line=table.line_of(row), row=row, column=column)


def _open(study: Study) -> None:
    """Open Parquet shards, and scale them."""
    options = study.options
    report = study.report
    check_streamed(options, options.train)
    if study.encoder is not None:
        problem = f"--columns needs all rows in memory, and {options.train} is a folder or a pattern."
        raise InputError(f"{problem} rankrls split draws single files from it, and --ignore leaves columns out.")
    with report.working("opening", options.train):
        study.tables = {role: open_dataset(path, **options.roles) for role, path in study.files.items()}
    if study.scaler is not None:
        with report.working("scaling", options.train):
            fit_scaler(study.scaler, study.training)
        study.tables = {role: scaled(data, study.scaler) for role, data in study.tables.items()}
    study.about = {"columns": options.given("label", "qid", "id"), "parts": len(study.training.parts)}


def _evaluated(role: str, study: Study) -> dict[str, Judgement] | None:
    """Measures on held-out training queries, validation data or test data."""
    estimator = study.estimator
    options = study.options
    weights = None
    table = study.tables.get(role)
    if table is None:
        return None
    if role == "train":
        scores = study.attributes.get("held_out_scores_")
        if scores is None or study.pairs or "validation" in study.tables:
            return None
        scores = scores[: table.n_rows]
        if study.positions:
            known = {**study.positions, "propensities": estimator.propensities_}
            labels, weights, _ = corrected_clicks(table.X, table.y, **known)
            table = replace(table, y=labels)
    elif is_dataset(options.train):

        def predicted(part: Rows) -> Array:
            return np.asarray(predict_by_query(estimator, part.X, part.qid))

        table, scores = score_parts((part.read() for part in table.parts), predicted, study.files[role])
    else:
        scores = predict_by_query(estimator, table.X, table.qid)
    if role in study.pairs:
        return {options.called("pair_accuracy"): judge_pairs(study.pairs[role], scores)}
    assert table.y is not None  # labels are required
    names = options.measures if len(options.measures) > 1 else suitable_measures(table.y, options.measures)
    judged = judge(names, options.tool, table, scores, weights=weights)
    return {options.called(name): each for name, each in judged.items()}
