"""Masked entries are missing values wherever arrays are taken."""

import numpy as np
import pytest

from rankrls import ConditionalRankRLS, Items, RankRLS, RankRLSCV, TransductiveRankRLS
from rankrls._cells import unmasked
from rankrls.io import save_letor, save_table
from rankrls.metrics import evaluate
from rankrls.preprocessing import LogScaler, QueryMinMaxScaler, QueryStandardScaler
from rankrls.ranking import rank_scores

RNG = np.random.default_rng(0)
ITEMS, LABELS = RNG.normal(size=(7, 2)), RNG.normal(size=(12, 7))
X, Y, QID = RNG.normal(size=(12, 2)), RNG.permutation(np.arange(12.0)), np.repeat([0, 1, 2], 4)
ROW = 5


def masked(values):
    """The values, with row 5 hidden by a mask."""
    out = np.ma.array(values)
    out[ROW] = np.ma.masked
    return out


fitted = RankRLS().fit(X, Y, qid=QID)
TAKEN = {
    "fit X": (lambda: RankRLS().fit(masked(X), Y, qid=QID), "X"),
    "fit y": (lambda: RankRLS().fit(X, masked(Y), qid=QID), "y"),
    "fit qid": (lambda: RankRLS().fit(X, Y, qid=masked(QID)), "qid"),
    "fit weights": (lambda: RankRLS().fit(X, Y, qid=QID, sample_weight=masked(np.ones(12))), "sample_weight"),
    "validation": (lambda: RankRLSCV().fit(X, Y, qid=QID, X_val=masked(X), y_val=Y, qid_val=QID), "X_val"),
    "clicks": (lambda: RankRLS().fit(X, Y > 5, qid=QID, position=masked(np.arange(12) % 4 + 1)), "position"),
    "winners": (lambda: RankRLS().fit_pairs(X, masked(np.arange(8)), np.arange(8) + 1), "winners"),
    "strength": (lambda: RankRLS().fit_pairs(X, np.arange(8), np.arange(8) + 1, strength=masked(np.ones(8))), None),
    "predict": (lambda: fitted.predict(masked(X)), "X"),
    "items": (
        lambda: ConditionalRankRLS().fit(X, RNG.normal(size=(12, 7)), items=Items(masked(RNG.normal(size=(7, 2))))),
        "items",
    ),
    "evaluate labels": (lambda: evaluate(masked(Y), Y, qid=QID), "y_true"),
    "evaluate scores": (lambda: evaluate(Y, masked(Y), qid=QID), "y_score"),
    "rank": (lambda: rank_scores(masked(Y), qid=QID), None),
    "minmax": (lambda: QueryMinMaxScaler().fit(masked(X), qid=QID), None),
    "standard": (lambda: QueryStandardScaler().fit(X, qid=QID).transform(masked(X), qid=QID), None),
    "save X": (lambda: save_letor("out.txt", masked(X), Y), "X"),
    "save ids": (lambda: save_table("out.csv", X, Y, ids=masked(np.array([f"d{k}" for k in range(12)]))), None),
}


@pytest.mark.parametrize("name", TAKEN)
def test_masked_entries_are_refused_like_missing_ones(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    call, parameter = TAKEN[name]
    with pytest.raises(ValueError, match="row 5|preference 5|contains NaN|whole row numbers|missing") as caught:
        call()
    assert parameter in (None, getattr(caught.value, "parameter", None))
    assert not [*tmp_path.iterdir()]


def test_masked_labels_are_unlabelled_rows():
    hidden = np.where(QID == 1, np.nan, Y)
    labels = np.ma.array(Y, mask=QID == 1)
    scores = [TransductiveRankRLS().fit(X, y, qid=QID).predict(X) for y in (labels, hidden)]
    np.testing.assert_array_equal(*scores)
    np.testing.assert_array_equal(LogScaler().fit(masked(X)).transform(masked(X))[ROW], np.nan)


def test_a_mask_that_hides_nothing_changes_nothing():
    whole = np.ma.array(X)
    assert np.shares_memory(unmasked(whole), whole)
    np.testing.assert_array_equal(RankRLS().fit(whole, np.ma.array(Y), qid=np.ma.array(QID)).coef_, fitted.coef_)
