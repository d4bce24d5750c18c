"""Whatever learns from preferences: what it refuses, in the same words, and which forms of the same input are one."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from scipy import sparse

import rankrls
from tests.models.forms import SPARSE
from tests.refusals import Refusal

RNG = np.random.default_rng(50)
X = np.where(RNG.random((14, 5)) < 0.5, RNG.normal(size=(14, 5)), 0.0)
WINNERS = RNG.integers(0, 12, size=40)
LOSERS = (WINNERS + RNG.integers(1, 12, size=40)) % 12
GOOD = {"X": X, "winners": WINNERS, "losers": LOSERS}
LEARNERS = [
    found
    for name in rankrls.__all__
    if isinstance(found := getattr(rankrls, name), type) and getattr(found, "fit_pairs", None)
]


def changed(values, position, value):
    out = np.array(values, dtype=float if isinstance(value, float) else None)
    out[position] = value
    return out


def fitted(learner, **arguments):
    model = learner()
    if "random_state" in model.get_params():
        model.set_params(random_state=0)
    if learner is rankrls.AutoRankRLS:  # whose own measure needs labels
        model.set_params(scoring="disagreement", families="linear")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return model.fit_pairs(**{**GOOD, **arguments})


@pytest.mark.parametrize(
    ("change", "refusal"),
    [
        ({"winners": changed(WINNERS, 3, 14)}, Refusal("winners[3]", "rows", parameter="winners", row=3)),
        ({"losers": changed(LOSERS, 4, -1)}, Refusal("losers[4]", "rows", parameter="losers", row=4)),
        ({"losers": np.full(40, 2**63, np.uint64)}, Refusal("losers[0]", parameter="losers", row=0)),
        (
            {"winners": changed(WINNERS, 5, LOSERS[5])},
            Refusal("with itself", parameter="losers", row=5),
        ),
        ({"winners": changed(WINNERS, 0, 0.5)}, Refusal("whole row numbers", "float64", parameter="winners")),
        ({"winners": WINNERS.astype(str)}, Refusal("row numbers", parameter="winners")),
        ({"winners": WINNERS[None]}, Refusal("one per preference", "(1, 40)", parameter="winners")),
        ({"winners": WINNERS > 5}, Refusal("row numbers", parameter="winners")),
        ({"winners": WINNERS[:-1]}, Refusal("39 entries", "winners", parameter="losers")),
        ({"winners": [], "losers": []}, Refusal("no preferences", parameter="winners")),
        ({"weight": np.zeros(40)}, Refusal("zero", parameter="weight")),
        ({"weight": changed(np.ones(40), 7, -2.0)}, Refusal("-2.0", "negative", parameter="weight", row=7)),
        ({"weight": changed(np.ones(40), 7, np.nan)}, Refusal("preference 7", "finite", parameter="weight", row=7)),
        ({"weight": np.ones(3)}, Refusal("shape (3,)", parameter="weight")),
        ({"strength": changed(np.ones(40), 8, np.inf)}, Refusal("preference 8", "finite", parameter="strength", row=8)),
        ({"strength": ["a"] * 40}, Refusal("numbers", parameter="strength")),
        ({"strength": np.zeros(40)}, Refusal("Every strength", parameter="strength")),
        ({"strength": np.arange(40) < 1, "weight": np.arange(40) > 0}, Refusal("Every strength", parameter="strength")),
        ({"X": changed(X, (6, 2), np.nan)}, Refusal("NaN", parameter="X", row=6, column=2)),
        ({"X": sparse.csr_array(changed(X, (6, 2), np.inf))}, Refusal("infinity", parameter="X", row=6, column=2)),
        ({"X": X[:0]}, Refusal("0 sample", kind=ValueError)),
        ({"X": X[:, :0]}, Refusal("0 feature", kind=ValueError)),
        ({"X": X[0]}, Refusal("2D array", kind=ValueError)),
    ],
    ids=lambda v: ",".join(v) if isinstance(v, dict) else str(v),
)
@pytest.mark.parametrize("learner", LEARNERS)
def test_refused(learner, change, refusal):
    with refusal:
        fitted(learner, **change)


FORMS = {
    **{name: SPARSE[name] for name in SPARSE if "array" not in name},
    "float32": lambda A: sparse.csr_array(A.astype("f4")),
}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("learner", LEARNERS)
def test_forms_of_the_same_features(learner, form):
    exact = X.astype(np.float32).astype(np.float64)
    A = FORMS[form](exact)
    np.testing.assert_array_equal(A.toarray(), exact)
    dense = exact.copy()
    expected = fitted(learner, X=dense).predict(exact)
    np.testing.assert_array_equal(dense, exact)  # left as it was
    given = A.copy()
    found = fitted(learner, X=A).predict(sparse.csr_array(exact))
    scale = np.abs(expected - expected.mean()).max()
    np.testing.assert_allclose(found - found.mean(), expected - expected.mean(), atol=1e-6 * scale)
    assert A.data.tobytes() == given.data.tobytes()  # left as it was


@pytest.mark.parametrize("learner", LEARNERS)
def test_preferences_of_weight_zero_are_as_if_they_were_not_there(learner):
    weight = np.ones(40)
    weight[::4] = 0.0
    kept = weight > 0
    some = fitted(learner, winners=WINNERS[kept], losers=LOSERS[kept])
    np.testing.assert_allclose(fitted(learner, weight=weight).predict(X), some.predict(X), atol=1e-9)
