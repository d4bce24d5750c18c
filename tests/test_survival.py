"""Right-censored times: comparable pairs and Harrell's C-index, against their definitions and refits."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, strategies as st

from rankrls import InputError, RankRLS, RankRLSCV, survival_pairs
from rankrls.metrics import preference_accuracy
from rankrls.model_selection import leave_pair_out
from rankrls.models.intake import preferred_items
from rankrls.numerics.pairs import hold_out_preferred_pairs
from rankrls.numerics.smoother import Equations
from tests.refusals import Refusal

ITEMS = st.lists(st.tuples(st.integers(0, 4), st.booleans(), st.integers(0, 2)), min_size=1, max_size=12)


def comparable(time, event, qid):
    """By the definition: (winner, loser)."""
    return {
        (j, i)
        for i in range(len(time))
        for j in range(len(time))
        if qid[i] == qid[j] and event[i] and (time[i] < time[j] or (time[i] == time[j] and not event[j]))
    }


@given(ITEMS)
def test_pairs_are_those_of_the_definition(items):
    time, event, qid = zip(*items, strict=True)
    expected = comparable(time, event, qid)
    if not expected:
        with pytest.raises(InputError) as error:
            survival_pairs(time, event, qid=qid)
        assert error.value.parameter == "event"
        return
    pairs = [*zip(*(rows.tolist() for rows in survival_pairs(time, event, qid=qid)), strict=True)]
    assert len(pairs) == len(set(pairs))
    assert set(pairs) == expected


@given(ITEMS, st.integers(1, 30), st.integers(0, 3))
def test_drawn_pairs_are_some_of_all(items, most, seed):
    time, event, qid = zip(*items, strict=True)
    every = comparable(time, event, qid)
    if not every:
        return
    drawn = survival_pairs(time, event, qid=qid, max_pairs=most, random_state=seed)
    pairs = [*zip(*(rows.tolist() for rows in drawn), strict=True)]
    assert len(pairs) == len(set(pairs)) == min(most, len(every))
    assert set(pairs) <= every


def test_every_pair_is_as_likely_to_be_drawn():
    time, event = np.arange(8.0), np.ones(8)
    counts = np.zeros((8, 8))
    rng = np.random.default_rng(0)
    for _ in range(2000):
        counts[survival_pairs(time, event, max_pairs=10, random_state=rng)] += 1
    share = counts[counts > 0] / 2000
    assert len(share) == 28
    np.testing.assert_allclose(share, 10 / 28, atol=0.16)  # of runs of two or three pairs
    assert share.sum() == pytest.approx(10)


@pytest.mark.parametrize(
    ("time", "event", "parameter", "row"),
    [
        ([1.0, np.nan], [1, 0], "time", 1),
        ([1.0, np.inf], [1, 0], "time", 1),
        ([1.0, 2.0], [1, 2], "event", 1),
        ([1.0, 2.0], [np.nan, 1], "event", 0),
        ([1.0, 2.0], [1], "event", None),
        ([1.0, 2.0], ["yes", "no"], "event", None),
        (["soon", "late"], [1, 0], "time", None),
        ([1.0, 2.0], [0, 0], "event", None),
        ([1.0, 1.0], [1, 1], "event", None),
    ],
)
def test_what_cannot_be_compared(time, event, parameter, row):
    with pytest.raises(InputError) as error:
        survival_pairs(time, event)
    assert (error.value.parameter, error.value.row) == (parameter, row)


def data(m, n, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(m, n)) + 100.0
    lasts = np.exp(X[:, 0] - 100.0 + 0.5 * rng.normal(size=m))
    seen_until = rng.exponential(2.0, size=m)
    return X, np.round(np.minimum(lasts, seen_until), 1), lasts <= seen_until


def refit_leads(model, X, time, event, qid, i, j):
    """Train without both items, for each pair."""
    out = []
    for a, b in zip(i, j, strict=True):
        left = np.setdiff1d(np.arange(len(X)), [a, b])
        fitted = model.fit_pairs(
            X[left], *survival_pairs(time[left], event[left], qid=None if qid is None else qid[left])
        )
        out.append(np.subtract(*fitted.predict(X[[a, b]])))
    return np.array(out)


@pytest.mark.parametrize("strata", [False, True])
@pytest.mark.parametrize(
    ("shape", "model"),
    [
        ((14, 3), RankRLS(alpha=0.5)),
        ((14, 3), RankRLS(alpha=1e-7)),
        ((12, 30), RankRLS(alpha=2.0)),
        ((12, 30), RankRLS(alpha=1e-3)),
        ((12, 3), RankRLS(alpha=0.3, kernel="rbf", gamma=0.2)),
    ],
)
def test_held_out_pairs_are_those_of_refits(shape, model, strata):
    X, time, event = data(*shape)
    qid = np.arange(len(X)) % 2 if strata else None
    i, j = survival_pairs(time, event, qid=qid)
    expected = refit_leads(model, X, time, event, qid, i, j)
    items = preferred_items(model._spec(), X, i, j, None, None)
    (solver,) = next(model._spec().candidates(items)).problem(items).solvers
    Z = solver.item_features
    smoother = Equations.of(items.graph, Z).smoother(own=solver.own_rounding)
    alphas = np.array([model.alpha])
    margins = hold_out_preferred_pairs(smoother, items.graph, Z, alphas, i, j, solver.rounding)[:, 0]
    np.testing.assert_allclose(margins, expected, rtol=1e-6, atol=1e-8 * np.abs(expected).max())
    found = leave_pair_out(model, X, time, event=event, qid=qid)
    assert (found.n_pairs, found.differences) == (len(i), None)
    assert found.score == pytest.approx(np.mean(expected > 0))


def test_a_pair_that_is_all_there_is():
    with pytest.raises(InputError) as error:
        leave_pair_out(RankRLS(), np.eye(4), [1, 2, 3, 4], event=[0, 1, 0, 0])
    assert (error.value.parameter, error.value.row) == ("event", None)  # neither row alone is at fault
    assert "rows" in error.value.message


def test_items_without_a_time_are_refused():
    with pytest.raises(InputError, match="inconsistent numbers"):
        leave_pair_out(RankRLS(), np.eye(4), [1, 2, 3], event=[1, 1, 0])


def test_every_alpha_and_the_interval():
    X, time, event = data(40, 5)
    found = leave_pair_out(RankRLS(), X, time, event=event, alphas=[0.1, 10.0])
    for k, alpha in enumerate(found.alpha):
        one = leave_pair_out(RankRLS(alpha=alpha), X, time, event=event)
        assert (one.score, one.interval) == (found.score[k], (found.interval[0][k], found.interval[1][k]))
        assert one.interval[0] < one.score < one.interval[1]
    assert len(leave_pair_out(RankRLS(), X, time, event=event, alphas="auto").alpha) > 5


@pytest.mark.parametrize(
    ("model", "given", "parameter"),
    [
        (RankRLS(), {"pairs": [(0, 1)]}, "event"),
        (RankRLS(), {"sample_weight": np.ones(14)}, "event"),
        (RankRLS(positive=True), {}, "estimator"),
        (RankRLSCV(), {}, "estimator"),
    ],
)
def test_what_cannot_be_held_out(model, given, parameter):
    X, time, event = data(14, 3)
    with pytest.raises(InputError) as error:
        leave_pair_out(model, X, time, event=event, **given)
    assert error.value.parameter == parameter


def test_longer_times_get_greater_scores():
    X, time, event = data(60, 3)
    winners, losers = survival_pairs(time, event)
    model = RankRLSCV(scoring="pair_accuracy").fit_pairs(X, winners, losers)
    assert model.coef_[0] > 0.0
    scores = model.predict(X)
    pairs = comparable(time, event, np.zeros(60))
    c_index = np.mean([(scores[w] > scores[v]) + 0.5 * (scores[w] == scores[v]) for w, v in pairs])
    assert preference_accuracy(scores, winners, losers) == pytest.approx(c_index, abs=1e-12)


@pytest.mark.parametrize("kernel", ["linear", "rbf"])
@pytest.mark.parametrize("scoring", ["pair_accuracy", "disagreement"])
def test_a_choice_by_pairs_of_weighted_preferences(kernel, scoring):
    """Both items of each preference left out, with all that is known of either, by refits; ties order nothing."""
    rng = np.random.default_rng(3)
    X, i, j = rng.normal(size=(9, 3)), *rng.integers(0, 9, (2, 40))
    i, j = i[i != j], j[i != j]
    strength, weight = rng.integers(-1, 3, len(i)).astype(float), rng.uniform(0.5, 2.0, len(i))
    how = {"alphas": (0.3, 30.0), "kernel": kernel, "gamma": 0.2, "scoring": scoring}
    model = RankRLSCV(cv="leave_pair_out", **how).fit_pairs(X, i, j, strength=strength, weight=weight)
    judged = np.flatnonzero(strength)
    for alpha, found in zip(model.cv_results_["alpha"], model.cv_results_["mean_score"], strict=True):
        right = []
        for e in judged:
            rest = ~(np.isin(i, (i[e], j[e])) | np.isin(j, (i[e], j[e])))
            refit = RankRLS(alpha, kernel=kernel, gamma=0.2)
            refit.fit_pairs(X, i[rest], j[rest], strength=strength[rest], weight=weight[rest])
            lead = np.subtract(*refit.predict(X[[i[e], j[e]]]))
            right.append((lead * strength[e] > 0) == (scoring == "pair_accuracy"))
        assert found == pytest.approx(np.average(right, weights=weight[judged]), abs=1e-12)
    assert model.selection_ == f"leave-pair-out over {len(judged)} comparable pairs: new items"


@pytest.mark.parametrize(("given", "parameter"), [({"scoring": "map"}, "scoring"), ({"positive": True}, "cv")])
def test_choices_that_pairs_of_preferences_cannot_make(given, parameter):
    with pytest.raises(InputError) as error:
        RankRLSCV(cv="leave_pair_out", **given).fit_pairs(np.eye(4), [0, 1, 2], [1, 2, 3])
    assert error.value.parameter == parameter


def test_more_comparable_pairs_than_memory_are_refused(monkeypatch):
    monkeypatch.setattr("rankrls._checks.available_memory", lambda: 2.0**30)
    with Refusal("12497500 comparable pairs", "sample", parameter="time"):
        survival_pairs(np.arange(5000.0), np.ones(5000))
