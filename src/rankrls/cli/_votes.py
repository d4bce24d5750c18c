"""Votes and right-censored times as rows of items and preferences between them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from rankrls._errors import InputError
from rankrls.cli._options import Options
from rankrls.cli._report import Report, Table
from rankrls.io import ColumnTable, PairTable, load_votes
from rankrls.io.data import Rows
from rankrls.models.inputs.encoded import encoder_of_items
from rankrls.survival import survival_pairs

_SHOWN = 10


def read_votes(path: Path, options: Options, encoder: Any, report: Report) -> tuple[ColumnTable, PairTable, Any]:
    """The items of a file of votes, the votes, and what made features of names or texts, if anything did.

    ``encoder`` is that of the training votes, if these are others.
    """
    if options.ties not in ("include", "exclude"):
        raise InputError("{ties} of votes is include or exclude; got {0!r}.", ",".join(options.ties), parameter="ties")
    sides = {side: getattr(options, side) for side in ("winner", "loser", "left", "right", "preferred")}
    how = {"group": options.group, "strength": options.strength_column, "ties": options.ties}
    with report.working("reading", f"reading {path}"):
        votes = load_votes(path, **sides, **how)
    if votes.n_left_out:
        report.note(f"{path}: {votes.n_left_out} votes are left out: ties, or between equal items.")
    X, names = votes.items, votes.feature_names
    if names is None:
        if encoder is None:
            encoder, kind = encoder_of_items(votes, options.sides)
            what = "names, each with a rating of its own" if kind == "names" else "texts, whose words are features"
            if options.sides is None:
                report.note(f"the sides of {path} are read as {what} (--sides says it).")
        X, names = encoder.transform({"item": votes.items}), tuple(encoder.get_feature_names_out().tolist())
    given: dict[str, Any] = {"y": None, "qid": None, "ids": None, "label": None, "qid_name": None, "id_name": None}
    table = ColumnTable(X=X, feature_names=names, path=votes.path, sha256=votes.sha256, **given)
    return table, votes.preferences(), encoder


def comparable_pairs(table: Rows) -> PairTable:
    """The pairs of right-censored times that can be compared; those that one event made are held out together."""
    event = getattr(table, "event", None)
    if event is None or table.y is None:
        raise InputError("{event} names a column of a table, and this is LETOR text.", file=table.path)
    try:
        winners, losers = survival_pairs(table.y, event, qid=table.qid)
    except InputError as error:
        raise error.renamed({"time": "label"}).located(file=table.path) from None
    return PairTable(winners, losers, None, None, losers, table.path, table.sha256)


def ratings(encoder: Any, estimator: Any, table: Rows, pairs: PairTable) -> list[dict[str, Any]]:
    """The rating of each name that votes are about, and in how many votes it is; the best first."""
    if encoder is None or encoder.categorical != "item" or not hasattr(estimator, "coef_"):
        return []
    names = [feature.value or "(missing)" for feature in encoder.features_]
    votes = np.bincount(np.concatenate((pairs.winners, pairs.losers)), minlength=table.n_rows)
    counts = (table.X.T @ votes).astype(int).tolist()
    order = np.argsort(-estimator.coef_, kind="stable").tolist()
    return [{"item": names[k], "rating": float(estimator.coef_[k]), "votes": counts[k]} for k in order]


def rating_table(found: list[dict[str, Any]]) -> list[Table]:
    """The best of them, for people."""
    if not found:
        return []
    rows = [[str(k), each["item"], f"{each['rating']:+.4f}", str(each["votes"])] for k, each in enumerate(found, 1)]
    title = "Ratings" if len(rows) <= _SHOWN else f"Ratings, the best {_SHOWN} of {len(rows)} (--json has all)"
    return [Table(title, ["", "item", "rating", "votes"], rows[:_SHOWN], left=2)]
