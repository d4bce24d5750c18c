"""``rankrls fit`` and ``rankrls cv``: choose, fit, evaluate; and save, or print every candidate."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from rankrls._errors import InputError
from rankrls._shown import records
from rankrls.cli._files import is_dataset
from rankrls.cli._options import Options
from rankrls.cli._proposal import call_to_copy
from rankrls.cli._report import Report, Result, Table, cell_text, measure_text, plain_json
from rankrls.cli._study import Study, fit_and_evaluate
from rankrls.comparison.report import Judgement
from rankrls.inspection import leaderboard, selected_features
from rankrls.io._text import few
from rankrls.model_selection import nested_estimate, permutation_test
from rankrls.model_selection.repeated_selection import held_out_score
from rankrls.models._pipelines import selects_features
from rankrls.numerics.concordance import CONFIDENCE, METHOD
from rankrls.persistence import save

_REACHED = ("alpha", "C", "n_features", "n_iter", "n_support", "n_estimators")
"""Fitted attributes that are shown with the selected parameters."""
_SAVED = ("data", "pairs", "method", "scale", "measures")
_SCORES = ("mean_score", "standard_error", "low", "high")
_SHOWN = 10


def fit(options: Options, report: Report) -> Result:
    """Fit a model and save it."""
    if options.save is None:
        raise InputError(
            f"Name the model file to write (model). {call_to_copy(options) or ''}".strip(), parameter="model"
        )
    study = fit_and_evaluate(options, report)
    result = _as_dict("fit", study) | {"model": str(options.save)}
    provenance = {name: result[name] for name in _SAVED if name in result} | study.about
    provenance["columns_used"] = {use.pop("name"): use for use in map(dict, result.get("columns_used", ()))}
    with report.working("saving", options.save):
        save(study.model, options.save, provenance=plain_json(provenance))
    tables = [_choice_table(study)]
    if "models" in result:
        tables.insert(0, _models_table(study, result["models"]))
    if selects_features(study.estimator):
        chosen = selected_features(study.model)
        result["selected_features"] = chosen.records
        tables.append(Table("Features, in the order of selection", chosen.head, chosen.rows, left=2))
    if options.votes and study.encoder.categorical == "item":
        votes: Any = study.pairs["train"]
        about = {"strength": votes.strength, "weight": votes.weight, "groups": votes.groups}
        board = leaderboard(votes.winners, votes.losers, names=votes.items, **about)
        result |= {"leaderboard": records(board.columns), "leaderboard_confidence": board.confidence}
        title = f"Leaderboard, the best {_SHOWN} of {len(board.rows)} (--json has all)"
        title = "Leaderboard" if len(board.rows) <= _SHOWN else title
        tables.append(Table(title, board.head, board.rows[:_SHOWN], left=2))
    took = ", ".join(f"{part} {seconds:.2f} s" for part, seconds in report.seconds.items())
    text = [*_text(study), f"Saved {options.save}   ({took})\n"]
    return Result(result, _tables(study, result, *tables), text, optional=True)


def cv(options: Options, report: Report) -> Result:
    """Evaluate every candidate."""
    if options.method == "rankboost" and options.vali is None:
        raise InputError("RankBoost needs validation data (vali).", parameter="vali")
    study = fit_and_evaluate(options, report)
    held_out_score(study.estimator)
    curve = records(study.attributes["cv_results_"])
    best = study.attributes.get("best_index_")
    if best is None:
        best = [entry["alpha"] for entry in curve].index(study.attributes["alpha_"])
    result = _as_dict("cv", study) | {"curve": curve, "best_index": best}
    text = _text(study)
    if options.nested:
        with report.working("nested", "choice", bars=True):
            nested = replace(nested_estimate(**_rows(study, "nested")), measure=study.measure)
        result["nested"] = vars(nested)
        text.append(f"{nested}\n")
    if options.permutations is not None:
        with report.working("permuting", "labels", bars=True):
            test = permutation_test(**_rows(study, "permutations"), n_permutations=options.permutations)
        result["permutation_test"] = vars(test)
        text.append(f"{test}\n")
    if "low" in curve[0]:
        result |= {"confidence": CONFIDENCE, "interval_method": METHOD}
        text.append(f"Interval: {METHOD}.\n")
    return Result(result, _tables(study, result, _curve_table(study, curve, best), _choice_table(study)), text)


def _rows(study: Study, parameter: str) -> dict[str, Any]:
    """The estimator and the labelled rows, or times with events, that a study is repeated on."""
    options = study.options
    table = study.training
    others = ("pairs", "vali", "unlabelled", "left", "position")
    if is_dataset(options.train) or study.positions or options.given(*others):
        problem = f"--{parameter} needs one file of labelled rows, without {few([f'--{name}' for name in others])}."
        raise InputError(problem, parameter=parameter)
    event = table.event
    items = None if event is None else table.docids
    estimator = study.estimator
    return {"estimator": estimator, "X": table.X, "y": table.y, "qid": table.qid, "event": event, "item_id": items}


def _as_dict(command: str, study: Study) -> dict[str, Any]:
    """The whole result, for --json."""
    known = study.attributes
    options = study.options
    score, bias = _held_out(study)
    out: dict[str, Any] = {"command": command, "data": {role: table.summary() for role, table in study.tables.items()}}
    if study.pairs:
        out["pairs"] = {role: pairs.summary() for role, pairs in study.pairs.items()}
    if study.encoder is not None and not options.votes:
        out["columns_used"] = [vars(use) for use in study.encoder.columns_]
    out |= {
        "method": options.method,
        "scale": options.scale,
        "chosen": _chosen(known),
        "selection": {
            "how": study.protocol or None,
            "measure": study.measure,
            "convention": options.tool,
            "rule": known.get("rule"),
            "value": score,
            "standard_error": known.get("best_score_error_"),
            "optimism": bias,
        },
        "measures": {
            role.replace(" ", "_"): {name: each.as_dict() for name, each in judged.items()}
            for role, judged in study.judged.items()
        },
        "seconds": study.report.seconds,
        "notes": study.report.notes,
    }
    if "propensities_" in known:
        out["examination"] = known["propensities_"].as_dict()
    if "results_" in known:
        out |= {"models": records(known["results_"]), "skipped": known["skipped_"]}
    return out


def _held_out(study: Study) -> tuple[float, float]:
    """The held-out score minus the estimated selection bias, and that bias; NaN if there is none.

    ``best_score_`` of AutoRankRLS is corrected already.
    """
    score = float(study.attributes.get("best_score_", np.nan))
    bias = float(study.attributes.get("optimism_", np.nan))
    if np.isnan(bias) or study.options.method == "auto":
        return score, bias
    return score - bias if study.estimator.scoring.greater_is_better else score + bias, bias


def _text(study: Study) -> list[str]:
    """Text after the tables: examination of positions if labels are clicks, and an explanation of the printed score."""
    known = study.attributes.get("propensities_")
    bias = _held_out(study)[1]
    text = [] if known is None else [f"Examination by position\n{known}\n\n"]
    if not np.isnan(bias):
        text.append(f"The printed score is the held-out score minus the estimated selection bias ({bias:.4f}).\n")
    return text


def _chosen(known: Mapping[str, Any]) -> dict[str, Any]:
    """Chosen parameters and related fitted attributes of an estimator."""
    chosen = dict(known.get("best_params_", {}))
    reached = {name: known[f"{name}_"] for name in _REACHED if f"{name}_" in known}
    return chosen | reached | chosen


def _tables(study: Study, result: dict[str, Any], *middle: Table) -> list[Table]:
    """The data, the tables of one command, and the measures."""
    rows = [
        [role, part["path"], _labels_shown(part["labels"]), part["rows"], part["queries"] or "one ranking"]
        + [f"{part['features']}{' sparse' if part['sparse'] else ''}"]
        for role, part in result["data"].items()
    ]
    out = [Table("Data", ["", "file", "labels", "rows", "queries", "features"], rows, left=3)]
    if study.pairs:
        names = ("path", "preferences", "ties", "items", "groups")
        rows = [[role, *(cell_text(part[name], none="-") for name in names)] for role, part in result["pairs"].items()]
        out.append(Table("Preferences", ["", "file", "number", "ties", "items compared", "groups"], rows, left=2))
    if uses := result.get("columns_used"):
        rows = [[use[name] for name in ("name", "kind", "reason", "n_missing", "n_features")] for use in uses]
        out.append(Table("Columns", ["", "used as", "because", "missing", "features"], rows, left=3))
    return [*out, *middle, *_measure_table(study.judged)]


def _labels_shown(counts: Mapping[str, Any]) -> str:
    """Counts of the labels; a dash if they are not counted, as for shards."""
    if "distinct" in counts:
        none = f", {counts['none']} rows without" if "none" in counts else ""
        return f"{counts['distinct']} values from {counts['min']:g} to {counts['max']:g}{none}"
    return "  ".join(f"{label}: {count}" for label, count in counts.items()) or "-"


def _measure_table(judged: Mapping[str, Mapping[str, Judgement]]) -> list[Table]:
    """One line a measure, one column a set of rankings."""
    units = dict.fromkeys(each.unit for measures in judged.values() for each in measures.values())
    rows = []
    for name in dict.fromkeys(name for measures in judged.values() for name in measures):
        found = [measures.get(name) for measures in judged.values()]
        rows.append([name, *("" if each is None else measure_text(each.value, each.standard_error) for each in found)])
    title = f"Measures, ± standard error over {' or '.join(units)}"
    return [Table(title, ["", *judged], rows)] if judged else []


def _models_table(study: Study, models: list[dict[str, Any]]) -> Table:
    """Scores of the models that AutoRankRLS compared."""
    rows = []
    for model in models:
        score = measure_text(model["mean_score"], model["standard_error"])
        behind = measure_text(model["behind"], model["behind_error"])
        row = ["chosen" if model["chosen"] else "", model["model"], model["scale"], score, behind]
        rows.append([*row, f"{model['seconds']:.1f}", model["export"]])
    names = ["", "model", "scale", study.measure, "behind", "seconds", "export"]
    return Table("Models: held-out score, and how far it is behind the best", names, rows, left=3)


def _choice_table(study: Study) -> Table:
    """The choice, the number of candidates, and the held-out score."""
    names = study.training.feature_names
    rows = [] if names is None else [["features", few(names)]]
    rows += [[name.replace("_", " "), cell_text(value, 6)] for name, value in _chosen(study.attributes).items()]
    score = _held_out(study)[0]
    if np.isnan(score):
        return Table("Fitted", ["", ""], rows, left=2)
    rows.append([f"held-out {study.measure}", measure_text(score, study.attributes.get("best_score_error_"))])
    title = f"Chosen by {study.protocol}, from {len(study.attributes['cv_results_']['mean_score'])} candidates"
    return Table(title, ["", ""], rows, left=2)


def _curve_table(study: Study, curve: list[dict[str, Any]], best: int) -> Table:
    """A row per candidate; parameters that all share are in the title."""
    names = [name for name in curve[0] if name not in _SCORES]
    several = [name for name in names if len({str(entry[name]) for entry in curve}) > 1 or name == "alpha"]
    rows = []
    for k, entry in enumerate(curve):
        row = ["chosen" if k == best else "", *(cell_text(entry[name]) for name in several)]
        row += [measure_text(entry["mean_score"]), measure_text(entry["standard_error"])]
        rows.append(row + [f"{entry['low']:.4f} to {entry['high']:.4f}"] if "low" in entry else row)
    fixed = ", ".join(f"{name} {cell_text(curve[0][name])}" for name in names if name not in several)
    interval = [f"{100 * CONFIDENCE:g} % interval"] if "low" in curve[0] else []
    title = f"{study.measure} by {study.protocol}" + (f" ({fixed})" if fixed else "")
    return Table(title, ["", *several, study.measure, "std. error", *interval], rows)
