"""``rankrls fit``: choose, fit, evaluate and save."""

from __future__ import annotations

from typing import Any

import numpy as np

from rankrls.cli import _tables
from rankrls.cli._learning import Study, study
from rankrls.cli._options import Options
from rankrls.cli._report import Report, Result, Table, plain_json
from rankrls.persistence import save

_SAVED = ("data", "items", "pairs", "method", "scale", "columns_used")
_SHOWN = 10


def run(options: Options, report: Report) -> Result:
    """Fit a model and save it."""
    found = study(options, report)
    result = _tables.as_dict("fit", found, report) | {"model": str(options.save)}
    given = {name: result[name] for name in _SAVED if name in result} | found.about
    given["measures"] = _tables.measured(found)
    with report.working("saving", f"saving {options.save}"):
        save(found.model, options.save, provenance=plain_json(given))
    rated = ratings(found) if options.votes else []
    result |= {"ratings": rated} if rated else {}
    choice = [*_tables.model_tables(found), _tables.choice_table(found), *rating_table(rated)]
    took = ", ".join(f"{part} {seconds:.2f} s" for part, seconds in report.seconds.items())
    text = [*_tables.bias_line(found), f"Saved {options.save}   ({took})\n"]
    return Result(result, _tables.tables(found, *choice), text, optional=True)


def ratings(found: Study) -> list[dict[str, Any]]:
    """The rating of each name that votes are about, and the number of its votes, best first."""
    encoder, estimator, pairs = found.encoder, found.estimator, found.pairs["train"]
    if encoder is None or encoder.categorical != "item" or not hasattr(estimator, "coef_"):
        return []
    names = [feature.value or "(missing)" for feature in encoder.features_]
    votes = np.bincount(np.concatenate((pairs.winners, pairs.losers)), minlength=found.training.n_rows)
    counts = (found.training.X.T @ votes).astype(int).tolist()
    order = np.argsort(-estimator.coef_, kind="stable").tolist()
    return [{"item": names[k], "rating": float(estimator.coef_[k]), "votes": counts[k]} for k in order]


def rating_table(rated: list[dict[str, Any]]) -> list[Table]:
    """The best of them."""
    if not rated:
        return []
    rows = [[str(k), each["item"], f"{each['rating']:+.4f}", str(each["votes"])] for k, each in enumerate(rated, 1)]
    title = "Ratings" if len(rows) <= _SHOWN else f"Ratings, the best {_SHOWN} of {len(rows)} (--json has all)"
    return [Table(title, ["", "item", "rating", "votes"], rows[:_SHOWN], left=2)]
