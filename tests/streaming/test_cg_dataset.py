"""Conjugate gradients over data sets against those in memory."""

from __future__ import annotations

import numpy as np
import pytest

from rankrls import CGRankRLS, RankRLS
from rankrls.streaming.equation_sums import fold_of
from tests.refusals import Refusal
from tests.streaming.arrays import ArrayDataset, example
from tests.streaming.test_fit_dataset import CUTS, GRAPHS, Counted, reads

EXACT = {"selection": "tikhonov", "tol": 1e-11}


@pytest.mark.parametrize("cuts", CUTS)
@pytest.mark.parametrize("csr", [False, True])
def test_one_alpha_is_the_solution(csr, cuts):
    X, y, qid, w = example(3, weights=True, csr=csr)
    data = ArrayDataset(X, y, qid, w, CUTS[cuts](len(y)))
    for graph in GRAPHS:
        model = CGRankRLS((0.5,), **EXACT, **graph).fit_dataset(data)
        fitted = RankRLS(0.5, **graph).fit(X, y, qid=qid, sample_weight=w)
        np.testing.assert_allclose(model.coef_, fitted.coef_, rtol=1e-7, atol=1e-9)
        assert model.n_queries_ == fitted.n_queries_
        assert model.selection_ == "nothing held out"


@pytest.mark.parametrize("cuts", CUTS)
def test_validation_data_choose(cuts):
    X, y, qid, _ = example(1)
    V, labels, other, _ = example(2)
    given = {**EXACT, "scoring": "map"}
    fitted = CGRankRLS((0.1, 10.0, 1000.0), **given).fit(X, y, qid=qid, X_val=V, y_val=labels, qid_val=other)
    data, validation = (ArrayDataset(*d, cuts=CUTS[cuts](len(d[1]))) for d in ((X, y, qid), (V, labels, other)))
    model = CGRankRLS((0.1, 10.0, 1000.0), **given).fit_dataset(data, validation=validation)
    assert model.alpha_ == fitted.alpha_
    assert model.selection_ == fitted.selection_
    np.testing.assert_allclose(model.cv_results_["mean_score"], fitted.cv_results_["mean_score"], rtol=1e-9)
    np.testing.assert_allclose(model.coef_, fitted.coef_, rtol=1e-7, atol=1e-9)


@pytest.mark.parametrize("cuts", CUTS)
def test_a_fifth_of_the_queries_chooses(cuts):
    X, y, qid, _ = example(6, queries=24)
    model = CGRankRLS((0.1, 10.0, 1000.0), **EXACT).fit_dataset(ArrayDataset(X, y, qid, cuts=CUTS[cuts](len(y))))
    held = np.array([fold_of(str(q), 5) == 0 for q in qid])
    assert 0 < held.sum() < len(y)
    expected = [
        1 - RankRLS(alpha).fit(X[~held], y[~held], qid=qid[~held]).score(X[held], y[held], qid=qid[held])
        for alpha in (0.1, 10.0, 1000.0)
    ]
    np.testing.assert_allclose(model.cv_results_["mean_score"], expected, rtol=1e-9)
    best = RankRLS(model.alpha_).fit(X, y, qid=qid)
    np.testing.assert_allclose(model.coef_, best.coef_, rtol=1e-7, atol=1e-9)
    assert model.selection_ == f"{len(set(qid[held]))} of 24 queries held out"


def test_an_automatic_grid_and_the_bits():
    X, y, qid, w = example(4, weights=True, csr=True, n=30)
    data = ArrayDataset(X, y, qid, w, cuts=(5, 30, 60))
    given = {"selection": "tikhonov", "max_iter": 2000, "rule": "one_se"}
    a, b = (CGRankRLS(**given).fit_dataset(data) for _ in range(2))
    assert a.coef_.tobytes() == b.coef_.tobytes()
    assert len(a.alphas_) == 21
    fitted = CGRankRLS(**given).fit(X, y, qid=qid, sample_weight=w)
    np.testing.assert_allclose(a.alphas_, fitted.alphas_, rtol=1e-8)


def assert_same_surface(model, fitted):
    np.testing.assert_allclose(model.validation_surface_, fitted.validation_surface_, rtol=1e-8)
    np.testing.assert_allclose(model.coef_, fitted.coef_, rtol=1e-6, atol=1e-8)
    for name in ("alpha_", "n_iter_", "best_score_", "best_score_error_"):
        np.testing.assert_allclose(getattr(model, name), getattr(fitted, name), rtol=1e-8)
    assert model.status_ == fitted.status_


SEARCHES = {
    "hybrid": {"alphas": (0.1, 10.0, 1000.0), "selection": "hybrid", "patience": 3},
    "hybrid, one_se": {"alphas": (0.1, 10.0, 1000.0), "selection": "hybrid", "rule": "one_se"},
    "early stopping": {"alphas": "auto", "selection": "early_stopping", "max_iter": 8},
}


@pytest.mark.filterwarnings("ignore:.*still getting better", "ignore:.*broke down")
@pytest.mark.parametrize("search", SEARCHES)
@pytest.mark.parametrize("cuts", CUTS)
def test_every_iterate_is_judged_as_in_memory(cuts, search):
    """By validation data, and by a fifth of the queries."""
    X, y, qid, w = example(6, queries=24, weights=True, n=9)
    V, labels, other, _ = example(2, n=9)
    data, validation = (ArrayDataset(*d, cuts=CUTS[cuts](len(d[1]))) for d in ((X, y, qid, w), (V, labels, other)))
    given = {**SEARCHES[search], "scoring": "disagreement"}
    fitted = CGRankRLS(**given).fit(X, y, qid=qid, sample_weight=w, X_val=V, y_val=labels, qid_val=other)
    model = CGRankRLS(**given).fit_dataset(data, validation=validation)
    assert_same_surface(model, fitted)
    assert model.selection_ == fitted.selection_
    held = np.array([fold_of(str(q), 5) == 0 for q in qid])
    split = [(np.flatnonzero(~held), np.flatnonzero(held))]
    fitted = CGRankRLS(**given, cv=split).fit(X, y, qid=qid, sample_weight=w)
    assert_same_surface(CGRankRLS(**given).fit_dataset(data), fitted)


def test_a_pass_an_iteration_judges_and_multiplies_for_both_runs():
    X, y, qid, _ = example(6, queries=24, n=9)
    data = Counted(X, y, qid, cuts=(30, 60))
    reads.clear()
    model = CGRankRLS((0.1, 10.0), selection="hybrid", patience=2).fit_dataset(data)
    iterations = model.validation_surface_.shape[1]
    pieces = 2  # what is cut needs a second pass for its right side
    before_the_first_look = 2 * pieces + 2
    assert len(reads) <= (before_the_first_look + iterations) * len(data.parts)
    assert iterations >= 4


@pytest.mark.parametrize(
    ("given", "refusal"),
    [
        ({"selection": "tikhonov", "kernel": "precomputed"}, Refusal(parameter="kernel")),
        ({"selection": "tikhonov", "cv": 3}, Refusal(parameter="cv")),
        ({"cv": 3}, Refusal(parameter="cv", remedy="None")),
    ],
)
def test_what_needs_all_rows(given, refusal):
    X, y, qid, _ = example(1)
    with refusal:
        CGRankRLS(**given).fit_dataset(ArrayDataset(X, y, qid))


@pytest.mark.parametrize("ties", ["include", "exclude"])
def test_nothing_to_compare(ties):
    X, y, qid, _ = example(1)
    with Refusal("Nothing to compare", parameter="y"):
        CGRankRLS((1.0,), **EXACT, ties=ties).fit_dataset(ArrayDataset(X, 0 * y, qid, cuts=(5,)))


def test_progress_of_rows_and_of_iterations():
    X, y, qid, _ = example(4)
    steps = []
    CGRankRLS((0.5,), **EXACT, verbose=steps.append).fit_dataset(ArrayDataset(X, y, qid, cuts=(30,)))
    rows = [step for step in steps if hasattr(step, "rate")]
    iterations = [step for step in steps if hasattr(step, "iteration")]
    assert rows[-1].done % len(y) == 0
    assert rows[-1].done >= len(y) * len(iterations) > 0
    assert rows[-1].words().endswith("rows a second")
    assert all(np.isnan(step.left) for step in rows)


def test_a_checkpoint_gives_the_same_bits(tmp_path):
    X, y, qid, w = example(4, weights=True)
    data = ArrayDataset(X, y, qid, w, cuts=(5, 30))
    a, b = (CGRankRLS((0.5, 50.0), **EXACT).fit_dataset(data, checkpoint=tmp_path) for _ in range(2))
    expected = CGRankRLS((0.5, 50.0), **EXACT).fit_dataset(data)
    assert a.coef_.tobytes() == b.coef_.tobytes() == expected.coef_.tobytes()
