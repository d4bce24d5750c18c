"""``rankrls fit`` and ``rankrls cv``: read, choose, fit and evaluate; then save, or print every candidate."""

from __future__ import annotations

import os
from dataclasses import dataclass, field, replace
from functools import partial
from inspect import signature
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse
from sklearn import config_context
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import MinMaxScaler, StandardScaler

import rankrls
from rankrls._arrays import on_device, to_host
from rankrls._errors import InputError, did_you_mean
from rankrls._shown import records
from rankrls._typing import Params
from rankrls.cli._files import check_streamed, comparable_pairs, is_dataset, read, read_votes, score_parts
from rankrls.cli._options import METHODS, UNLABELLED, Options, flag, given
from rankrls.cli._proposal import advised, call_to_copy
from rankrls.cli._report import Report, Result, Table, features_table, measure_text, plain_json, values_table
from rankrls.clicks import corrected_clicks
from rankrls.comparison import Evaluation, evaluate_preferences, evaluate_rows, suitable_measures
from rankrls.inspection import leaderboard, selected_features
from rankrls.inspection.suspicious import suspicious_features
from rankrls.io import PairTable, Rows, open_dataset
from rankrls.io._text import few
from rankrls.io.columns import feature_columns
from rankrls.io.files import positions_beside
from rankrls.io.preferences import read_pairs
from rankrls.io.rows import Schema, stack_rows
from rankrls.metrics import resolve_measure
from rankrls.metrics._scorer import predict_by_query
from rankrls.model_selection import held_out_score, nested_estimate, permutation_test
from rankrls.models._pipelines import selects_features
from rankrls.numerics.concordance import CONFIDENCE, METHOD
from rankrls.persistence import save
from rankrls.persistence.stored import encoded_rows, encoder_fitted
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
_EXCLUSIVE = {
    "preferred": (
        "label",
        "qid",
        "id",
        "features",
        "ignore",
        "all_rows",
        "unlabelled",
        "vali",
        "pairs",
        "event",
    ),
    "pairs": ("event",),
    "position": ("preferred", "pairs", "event", "unlabelled"),
    "vali": ("cv", "pairs", "event"),
}
_REACHED = ("alpha", "C", "n_features", "n_iter", "n_support", "n_estimators")
"""Fitted attributes that are shown with the selected parameters."""
_SAVED = ("data", "pairs", "columns_used", "method", "scale", "measures")
_SCORES = ("mean_score", "standard_error", "low", "high")
_MODELS = ("chosen", "model", "scale", "mean_score", "standard_error", "behind", "behind_error", "export")
_SHOWN = 10


@dataclass
class Study:
    """Data of ``fit`` and ``cv`` by role (train, unlabelled, vali, test), and the fitted steps."""

    options: Options
    report: Report
    estimator: Any
    scaler: Any
    encoder: Any
    tables: dict[str, Any] = field(default_factory=dict)
    pairs: dict[str, PairTable] = field(default_factory=dict)
    evaluated: dict[str, dict[str, Evaluation]] = field(default_factory=dict)

    @property
    def files(self) -> dict[str, Path]:
        """The files of rows by their role."""
        return self.options.given("train", "unlabelled", "vali", "test")

    @property
    def training(self) -> Any:
        """The training data."""
        return self.tables["train"]

    @property
    def attributes(self) -> dict[str, Any]:
        """The estimator's parameters and fitted attributes."""
        attributes: dict[str, Any] = vars(self.estimator)
        return attributes

    @property
    def model(self) -> Any:
        """The model to save: the fitted estimator, or a pipeline that ends in it."""
        steps = given({"encode": self.encoder, "scale": self.scaler, "rank": self.estimator})
        return self.estimator if len(steps) == 1 else Pipeline([*steps.items()])


def fit(options: Options, report: Report) -> Result:
    """Fit a model and save it."""
    if options.save is None:
        call = call_to_copy(options) or ""
        raise InputError(f"Name the model file to write (model). {call}".strip(), parameter="model")
    study = _studied(options, report)
    found = _found(study) | {"model": str(options.save)}
    provenance = {name: found[name] for name in _SAVED if found[name]}
    if is_dataset(options.train):
        provenance["columns"] = options.given("label", "qid", "id")
    else:
        provenance |= study.training.schema.to_json()
    with report.working("saving", options.save):
        save(study.model, options.save, provenance=plain_json(provenance))
    models = [{**model, "chosen": "chosen" if model["chosen"] else ""} for model in found.get("models", ())]
    tables = [Table.of("Models: how far each is behind the best, by held-out scores", models, _MODELS, left=3)]
    if selects_features(study.estimator):
        found["selected_features"] = selected_features(study.model)
        tables.append(features_table(found["selected_features"]))
    if options.votes and study.encoder.categorical == "item":
        votes: Any = study.pairs["train"]
        board = leaderboard(
            votes.winners,
            votes.losers,
            strength=votes.strength,
            weight=votes.weight,
            groups=votes.groups,
            names=votes.items,
        )
        found |= {"leaderboard": records(board.columns), "leaderboard_confidence": board.confidence}
        title = f"Leaderboard of {len(board.rows)} items (--json has all)"
        tables.append(Table(title, board.head, board.rows[:_SHOWN], left=2))
    printed, text = _printed(study, found, *tables)
    took = ", ".join(f"{part} {seconds:.2f} s" for part, seconds in report.seconds.items())
    return Result(found, printed, [*text, f"Saved {options.save}   ({took})\n"], optional=True)


def cv(options: Options, report: Report) -> Result:
    """Evaluate every candidate."""
    study = _studied(options, report)
    held_out_score(study.estimator)
    curve = records(study.attributes["cv_results_"])
    best = study.attributes.get("best_index_")
    if best is None:
        best = [entry["alpha"] for entry in curve].index(study.attributes["alpha_"])
    found = _found(study) | {"curve": curve, "best_index": best}
    measure = found["selection"]["measure"]
    names = [name for name in curve[0] if name in ("alpha", *_SCORES) or len({str(entry[name]) for entry in curve}) > 1]
    candidates = [{"": "chosen" if k == best else "", **entry} for k, entry in enumerate(curve)]
    tables, text = _printed(study, found, Table.of(f"Candidates, by held-out {measure}", candidates, ["", *names]))
    if options.nested:
        with report.working("nested", "choice", bars=True):
            nested = replace(nested_estimate(**_rows(study, "nested")), measure=measure)
        found["nested"] = vars(nested)
        text.append(f"{nested}\n")
    if options.permutations is not None:
        with report.working("permuting", "labels", bars=True):
            test = permutation_test(**_rows(study, "permutations"), n_permutations=options.permutations)
        found["permutation_test"] = vars(test)
        text.append(f"{test}\n")
    if "low" in curve[0]:
        found |= {"confidence": CONFIDENCE, "interval_method": METHOD}
        text.append(f"{100 * CONFIDENCE:g} % interval from low to high: {METHOD}.\n")
    return Result(found, tables, text)


def _rows(study: Study, parameter: str) -> dict[str, Any]:
    """The estimator and the labelled rows, or times with events, that a study is repeated on."""
    options = study.options
    table = study.training
    others = ("pairs", "vali", "unlabelled", "left", "position")
    if is_dataset(options.train) or options.given(*others) or table.position is not None:
        problem = f"--{parameter} needs one file of labelled rows, without {few([f'--{name}' for name in others])}."
        raise InputError(problem, parameter=parameter)
    return {
        "estimator": study.estimator,
        "X": table.X,
        "y": table.y,
        "qid": table.qid,
        "event": table.event,
        "item_id": None if table.event is None else table.docids,
    }


def _found(study: Study) -> dict[str, Any]:
    """The whole result, for --json.

    Its score is the held-out one minus the estimated selection bias; ``best_score_`` of AutoRankRLS is corrected
    already.
    """
    known = study.attributes
    options = study.options
    score = float(known.get("best_score_", np.nan))
    bias = float(known.get("optimism_", np.nan))
    if not np.isnan(bias) and options.method != "auto":
        score += -bias if known["scoring"].greater_is_better else bias
    chosen = known.get("best_params_", {})
    reached = {name: known[f"{name}_"] for name in _REACHED if name not in chosen and f"{name}_" in known}
    uses = [] if study.encoder is None or options.votes else study.encoder.columns_
    found = {
        "data": {role: table.summary() for role, table in study.tables.items()},
        "pairs": {role: pairs.summary() for role, pairs in study.pairs.items()},
        "columns_used": {use.name: vars(use) for use in uses},
        "method": options.method,
        "scale": options.scale,
        "chosen": chosen | reached,
        "selection": {
            "how": known.get("selection_"),
            "measure": options.called(options.measures[0]),
            "convention": options.tool,
            "rule": known.get("rule"),
            "value": score,
            "standard_error": known.get("best_score_error_"),
            "optimism": bias,
        },
        "measures": {
            role: {name: each.as_dict() for name, each in of_role.items()} for role, of_role in study.evaluated.items()
        },
    }
    if "propensities_" in known:
        found["examination"] = known["propensities_"].as_dict()
    if "results_" in known:
        found |= {"models": records(known["results_"]), "skipped": known["skipped_"]}
    return found


def _printed(study: Study, found: Params, *middle: Table) -> tuple[list[Table], list[str]]:
    """The data, the tables of one command, the choice and the measures; and text after them."""
    known = study.attributes
    selection = found["selection"]
    names = study.training.feature_names
    choice = found["chosen"] if names is None else {"features": few(names), **found["chosen"]}
    title = "Fitted"
    if not np.isnan(selection["value"]):
        title = f"Chosen by {selection['how']}, from {len(known['cv_results_']['mean_score'])} candidates"
        held_out = measure_text(selection["value"], selection["standard_error"])
        choice = {**choice, f"held-out {selection['measure']}": held_out}
    measures = found["measures"]
    rows = []
    for name in dict.fromkeys(name for each in measures.values() for name in each):
        values = [each.get(name, {}) for each in measures.values()]
        rows.append([name, *(measure_text(each.get("value"), each.get("standard_error")) for each in values)])
    data = [{"role": role, **part} for role, part in found["data"].items()]
    pairs = [{"role": role, **part} for role, part in found["pairs"].items()]
    tables = [
        Table.of("Data", data, ("role", "path", "labels", "rows", "queries", "features"), left=3),
        Table.of("Preferences", pairs, ("role", "path", "preferences", "ties", "items", "groups"), left=2),
        Table.of(
            "Columns", found["columns_used"].values(), ("name", "kind", "reason", "n_missing", "n_features"), left=3
        ),
        *middle,
        values_table(title, choice),
        Table("Measures, ± standard error", ["", *(role.replace("_", " ") for role in measures)], rows),
    ]
    text = []
    if "propensities_" in known:
        text.append(f"Examination by position\n{known['propensities_']}\n\n")
    if not np.isnan(selection["optimism"]):
        text.append(f"The score is the held-out one minus the estimated selection bias, {selection['optimism']:.4f}.\n")
    return tables, text


def _studied(options: Options, report: Report) -> Study:
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
        raise advised(error, options) from error
    with report.working("fitting", bars=True):
        _fit(study)
    for name, value in study.attributes.get("best_params_", {}).items():
        if study.attributes.get(f"{name}_at_edge_"):
            report.note(f"the chosen {name}, {value:.3g}, is at an end of its grid. Try a wider grid.")
    feature_names = study.training.feature_names
    if feature_names is not None and study.encoder is None:  # arrays went in; names are stored as if data frames had
        study.attributes.pop("feature_names_in_", None)
        (scaler or estimator).feature_names_in_ = np.array(feature_names, dtype=object)
    with report.working("evaluating"):
        roles = {"held_out": "train", "vali": "vali", "test": "test"}
        study.evaluated = {name: evaluated for name, role in roles.items() if (evaluated := _evaluated(study, role))}
    return study


def _check_together(options: Options) -> None:
    """Refuse options that exclude each other, or need others."""
    for one in options.given(*_EXCLUSIVE):
        for other in options.given(*_EXCLUSIVE[one]):
            raise InputError(f"{flag(one)} and {flag(other)} cannot be used together.", parameter=one)
    if options.new is not None and not options.by_pairs:
        raise InputError(
            "--new is for preferences and censored times. For labelled rows, queries are held out.", parameter="new"
        )
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
    parameters = options.given("kernel", "alphas", "cv") | given_parameters
    if options.method in ("pursuit", "co-pursuit") and "kernel" not in parameters:
        parameters.setdefault("dictionary", "features")  # a command selects features, unless a kernel is given
    if options.method == "auto" and parameters.get("families") == "all" and not options.by_pairs:
        parameters.setdefault("scales", "all")  # predict has the queries
    known = estimator.get_params()
    if "scoring" in known:
        parameters["scoring"] = scoring
    for name in parameters:
        if name not in known:
            problem = f"{cls.__name__} has no parameter {name!r}.{did_you_mean(name, known)}"
            raise InputError(f"{problem} Its parameters are {', '.join(known)}.", parameter=name)
    estimator.set_params(**parameters)
    if options.by_pairs and not hasattr(estimator, "fit_pairs"):
        raise InputError(f"{cls.__name__} is fitted to labels, not to preferences.", parameter="method")
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
    labels = {"train": of_training, "unlabelled": "ignored"}
    for role, path in study.files.items():
        if options.votes:
            table, study.pairs[role], study.encoder = read_votes(path, options, study.encoder, report)
        else:
            table = read(path, replace(reading, labels=labels.get(role, "required")), report)
        if encoder is not None and not options.votes:
            with report.working("encoding", path):
                if role == "train":
                    table = encoder_fitted(encoder, table, by_query=not options.by_pairs)
                else:
                    table = encoded_rows(encoder, table, report.note)
        if role == "unlabelled":
            table = replace(table, y=None)  # LETOR text always has labels
        if options.event is not None:
            study.pairs[role] = comparable_pairs(table, report)
        if role == "train":
            _note_suspicious(table, report)
            if not options.by_pairs and table.position is None:
                table = replace(table, position=positions_beside(path, table.n_rows, report.note))
            known = table.schema
            if encoder is not None:
                known = replace(known, features=tuple(encoder.columns_needed_))
            reading = replace(reading, known=known, sizes=None, position=None, impressions=None)
        elif table.sha256 == study.training.sha256:
            report.note(f"{path} has the same data as {options.train}, so its measures are optimistic.")
        if study.scaler is not None:
            with report.working("scaling", path):
                scale = study.scaler.fit_transform if role == "train" else study.scaler.transform
                by_query = {} if options.scale.endswith("-all") else {"qid": table.qid}
                table = replace(table, X=scale(table.X, **by_query))
        study.tables[role] = table
    if options.pairs is not None:
        with report.working("reading", options.pairs):
            study.pairs["train"] = read_pairs(options.pairs, study.training, report.note)


def _open(study: Study) -> None:
    """Open Parquet shards, and scale them."""
    options = study.options
    report = study.report
    check_streamed(options, options.train)
    if study.encoder is not None:
        raise InputError("Columns are encoded in memory. rankrls split draws single files from a folder or a pattern.")
    with report.working("opening", options.train):
        study.tables = {role: open_dataset(path, **options.roles) for role, path in study.files.items()}
    if study.scaler is not None:
        with report.working("scaling", options.train):
            fit_scaler(study.scaler, study.training)
        study.tables = {role: scaled(data, study.scaler) for role, data in study.tables.items()}


def _note_suspicious(table: Rows, report: Report) -> None:
    """Note features that look like ids, or that reveal the labels."""
    if not isinstance(table.X, np.ndarray):
        return
    found = suspicious_features(table.X, table.y, table.qid, feature_names=table.feature_names)
    names = table.feature_ids
    if ids := [names[k] for k in found.ids]:
        report.note(f"{few(ids)}: whole numbers that look like ids. --ignore leaves columns out.")
    if leaks := [names[k] for k in found.leaks]:
        report.note(f"{few(leaks)}: this feature alone sorts all rows by label. It may be computed from the labels.")


def _fit(study: Study) -> None:
    """Fit the estimator to the rows, or to shards chunk by chunk; errors name the file of a row that is wrong."""
    options = study.options
    estimator = study.estimator
    table = study.training
    validation = study.tables.get("vali")
    positive = study.attributes.get("positive", False)
    if not isinstance(positive, bool) and isinstance(table, Rows):
        estimator.positive = _signs(positive, table)
    if options.device is not None:
        os.environ.setdefault("SCIPY_ARRAY_API", "1")  # scikit-learn asks for it, for functions of scipy
    try:
        with config_context(array_api_dispatch=options.device is not None):
            if is_dataset(options.train):
                estimator.fit_dataset(table, **given({"validation": validation}))
            elif "train" in study.pairs:
                pairs = study.pairs["train"]
                held_out = {"groups": pairs.groups, "item_id": table.docids, "new": options.new}
                known = signature(estimator.fit_pairs).parameters  # RankBoost holds nothing out
                held_out = {name: value for name, value in held_out.items() if name in known}
                about = {"strength": pairs.strength, "weight": pairs.weight} | held_out
                estimator.fit_pairs(_on_device(table.X, options.device), pairs.winners, pairs.losers, **about)
            else:
                rows = stack_rows([study.tables[role] for role in ("train", "unlabelled") if role in study.tables])
                data = {"qid": rows.qid, "position": table.position, "impressions": table.impressions}
                if validation is not None:
                    X_val = _on_device(validation.X, options.device)
                    data |= {"X_val": X_val, "y_val": validation.y, "qid_val": validation.qid}
                data = given(data)
                unused = [name for name in data if name not in signature(estimator.fit).parameters]
                if unused:
                    problem = (
                        f"{type(estimator).__name__} cannot use this ({unused[0]}). Choose another method (method)."
                    )
                    raise InputError(problem, parameter=unused[0])
                estimator.fit(_on_device(rows.X, options.device), rows.y, **data)
    except InputError as error:
        raise _located(error, study.tables) from error
    for name, value in study.attributes.items():
        if on_device(value):  # the fit is done: what follows is numpy's
            setattr(estimator, name, to_host(value))


def _signs(positive: Any, table: Rows) -> dict[int, Any]:
    """Signs by column of the features that ``positive`` names, by patterns, or numbers them as the file does."""
    words = positive if isinstance(positive, list | tuple | dict) else [positive]
    signs = words if isinstance(words, dict) else dict.fromkeys(map(str, words), 1)
    return {column: sign for word, sign in signs.items() for column in feature_columns([str(word)], table, "positive")}


def _on_device(X: Any, device: str | None) -> Any:
    """Features on a device of torch, on which estimators then compute; without one they stay."""
    if device is None:
        return X
    if sparse.issparse(X):
        raise InputError("--device needs dense features, but these are sparse.", parameter="device")
    try:
        import torch

        return torch.asarray(X, device=device)
    except (ImportError, AssertionError, RuntimeError) as error:
        raise InputError(
            f"torch cannot compute on {device!r} here: {str(error).splitlines()[0]}.", parameter="device"
        ) from None


def _located(error: InputError, tables: Params) -> InputError:
    """An error about the rows of a file, with its name, and the line of a row."""
    parameter = error.parameter or ""
    known = ("X", "y", "qid", "clicks", "position", "impressions")
    if error.file is not None or parameter.removesuffix("_val") not in known:
        return error
    table = tables["vali" if parameter.endswith("_val") else "train"]
    row = error.row
    if not isinstance(table, Rows):
        return error.replace(file=table.path)
    if row is not None and "unlabelled" in tables and row >= table.n_rows:  # the rows without labels come last
        row -= table.n_rows
        table = tables["unlabelled"]
    column = table.feature_ids[error.column] if isinstance(error.column, int) else error.column
    return error.replace(file=table.path, line=table.line_of(row), row=row, column=column)


def _evaluated(study: Study, role: str) -> dict[str, Evaluation]:
    """Measures on held-out training queries, validation data or test data; empty if there are none."""
    estimator = study.estimator
    options = study.options
    weights = None
    table: Any = study.tables.get(role)
    if table is None:
        return {}
    if role == "train":
        scores = study.attributes.get("held_out_scores_")
        if scores is None or study.pairs or "vali" in study.tables:
            return {}
        scores = scores[: table.n_rows]  # those of rows without labels follow
        if table.position is not None:
            known = {"position": table.position, "impressions": table.impressions}
            labels, weights, _ = corrected_clicks(table.X, table.y, propensities=estimator.propensities_, **known)
            table = replace(table, y=labels)
    else:
        parts = table if is_dataset(options.train) else [table]
        table, scores = score_parts(parts, partial(_scores, estimator), study.files[role])
    if role in study.pairs:
        return {options.called("pair_accuracy"): evaluate_preferences(study.pairs[role], scores)}
    names = options.measures if len(options.measures) > 1 else suitable_measures(table.y, options.measures)
    evaluated = evaluate_rows(names, options.tool, table, scores, weights=weights)
    return {options.called(name): each for name, each in evaluated.items()}


def _scores(estimator: Any, part: Rows) -> Any:
    """Scores of rows."""
    return np.asarray(predict_by_query(estimator, part.X, part.qid))
