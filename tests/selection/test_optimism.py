"""The bias of a choice, against what the chosen entry is worth on new queries."""

import numpy as np
import pytest

from rankrls import AutoRankRLS, RankRLS, RankRLSCV, survival_pairs
from rankrls._curves import Curve
from rankrls.metrics import Measure
from rankrls.selection.optimism import Dropped, Entries, bias_of_choice, search_bias
from rankrls.selection.search import SearchState


@pytest.mark.parametrize("rule", ["best", "one_se"])
@pytest.mark.parametrize("greater", [True, False])
def test_the_estimate_is_the_bias_of_choosing_among_equals(rule, greater):
    """Entries of equal worth: by how much the chosen one's mean is above it, on average over samples."""
    rng = np.random.default_rng(0)
    biases, estimates = [], []
    for _ in range(60):
        results = SearchState(greater, rule)
        for name in "ab":
            values = 0.5 + 0.1 * rng.normal(size=(40, 8))
            error = values.std(axis=0, ddof=1) / np.sqrt(40)
            results.add({"kernel": name}, np.arange(8.0), Curve(values.mean(axis=0), error, values))
        biases.append((results.best_score - 0.5) * (1.0 if greater else -1.0))
        estimates.append(search_bias(results))
    assert np.mean(estimates) == pytest.approx(np.mean(biases), abs=0.006)
    assert np.mean(biases) > (0.015 if rule == "best" else -0.01)


def _of_one_entry(values):
    results = SearchState(True, "best")
    error = values.std(ddof=1) / np.sqrt(len(values))
    results.add({}, np.array([1.0]), Curve(np.array([values.mean()]), np.array([error]), values[:, None]))
    return results


def test_models_that_were_dropped_after_a_screening_are_part_of_the_choice():
    """Ten models of equal worth: the two best in a cheaper form are fitted, which adds 0.2, and the best is chosen."""
    rng = np.random.default_rng(0)
    biases, estimates, alone = [], [], []
    for _ in range(150):
        cheap = 0.5 + 0.1 * rng.normal(size=(40, 10))
        order = np.argsort(cheap.mean(axis=0))
        fitted = [_of_one_entry(cheap[:, k] + 0.2 + 0.02 * rng.normal(size=40)) for k in order[-2:]]
        dropped = [Dropped(2, _of_one_entry(cheap[:, k]), 0.2) for k in order[:-2]]
        entries = Entries.of(fitted, "best", dropped)
        biases.append(fitted[entries.chosen()].best_score - 0.7)
        estimates.append(entries.optimism())
        alone.append(Entries.of(fitted, "best").optimism())
    assert np.mean(estimates) == pytest.approx(np.mean(biases), abs=0.006)
    assert np.mean(alone) < 0.5 * np.mean(biases)


@pytest.mark.parametrize("kernel", ["linear", ("linear", "rbf")])
def test_the_bias_does_not_depend_on_the_order_of_rows(kernel):
    rng = np.random.default_rng(5)
    X = rng.normal(size=(90, 6))
    y = rng.integers(0, 3, size=90)
    qid = rng.integers(0, 10, size=90)
    order = rng.permutation(90)
    model = RankRLSCV(kernel=kernel).fit(X, y, qid=qid)
    permuted = RankRLSCV(kernel=kernel).fit(X[order], y[order], qid=qid[order])
    assert model.optimism_ > 0.0
    assert permuted.optimism_ == pytest.approx(model.optimism_, rel=1e-9)


def test_what_is_drawn_adds_little_to_the_bias():
    """Entries of equal blocks that differ by a constant: whatever is drawn, the best is selected, without any bias."""
    blocks = np.random.default_rng(0).normal(size=(10, 1))
    best = lambda values, counts, mean, error: int(np.argmax(mean))
    assert bias_of_choice(blocks + [0.0, 0.1], 1, best, mutual=False) == 0.0


def test_there_is_none_of_two_blocks():
    results = SearchState(True, "best")
    values = np.array([[0.1, 0.3, 0.2], [0.2, 0.1, 0.3]])
    results.add({}, np.arange(3.0), Curve(values.mean(axis=0), np.full(3, np.nan), values))
    assert np.isnan(search_bias(results))


def test_ranklscv_says_by_how_much_its_score_is_too_good():
    rng = np.random.default_rng(1)
    w, gaps, optimism = rng.normal(size=12), [], []
    for _ in range(12):
        X, qid = rng.normal(size=(1200, 12)), np.repeat(np.arange(200), 6)
        y = np.round(X @ w + 6 * rng.normal(size=1200))
        train = qid < 30
        model = RankRLSCV(kernel=("linear", "rbf"), gamma=(0.01, 0.1, 1.0)).fit(X[train], y[train], qid=qid[train])
        gaps.append(Measure("disagreement")(y[~train], model.predict(X[~train]), qid=qid[~train]) - model.best_score_)
        optimism.append(model.optimism_)
    assert (np.array(optimism) >= 0.0).all()
    assert np.mean(optimism) == pytest.approx(np.mean(gaps), abs=0.03)


@pytest.mark.parametrize("mutual", [True, False])
def test_the_bias_is_larger_if_held_out_queries_teach_each_other(mutual):
    """The bias of the values that refits reach; 1.15 times it, unless one model of each alpha is evaluated."""
    rng = np.random.default_rng(3)
    X = rng.normal(size=(72, 8))
    y = np.round(X[:, 0] + 3.0 * rng.normal(size=72))
    qid = np.repeat(np.arange(12), 6)
    alphas = np.array([1000.0, 30.0, 1.0])
    measure = Measure("disagreement")
    held_out = range(12) if mutual else range(6, 12)
    values = np.empty((len(held_out), 3))
    for k, alpha in enumerate(alphas):
        for row, query in enumerate(held_out):
            train = qid != query if mutual else qid < 6
            model = RankRLS(alpha).fit(X[train], y[train], qid=qid[train])
            values[row, k] = -measure(y[qid == query], model.predict(X[qid == query]))
    choose = lambda values, counts, mean, error: int(np.argmax(np.round(mean, 9)))  # equal up to rounding
    own = int(np.argmax(values.mean(axis=0)))
    expected = (1.15 if mutual else 1.0) * bias_of_choice(values, own, choose, mutual=False)
    train = qid < 6
    validation = {} if mutual else {"X_val": X[~train], "y_val": y[~train], "qid_val": qid[~train]}
    rows = slice(None) if mutual else train
    model = RankRLSCV(alphas).fit(X[rows], y[rows], qid=qid[rows], **validation)
    assert model.optimism_ == pytest.approx(expected, rel=1e-6)
    assert expected > 0.0


def test_among_families_smaller_errors_are_better():
    """A curved function: the largest error and the largest gain belong to the linear model."""
    rng = np.random.default_rng(4)
    X = rng.normal(size=(160, 2))
    y = np.round(3.0 * (X**2).sum(axis=1))
    model = AutoRankRLS(scoring="disagreement", families=("linear", "gaussian"), scales="standard", rule="best")
    model.fit(X, y, qid=np.repeat(np.arange(20), 8))
    assert model.best_score_ < 0.1
    assert 0.0 <= model.optimism_ < 0.05


@pytest.mark.slow
@pytest.mark.parametrize("features", [3, 50])
def test_the_value_of_a_choice_and_its_bias_are_one_half_on_noise(features):
    """Queries that are held out one by one teach the models of all others: without 1.15 this is .476 for 3 features."""
    scores, corrected = [], []
    for seed in range(500, 560):
        rng = np.random.default_rng(seed)
        X, y, qid = rng.normal(size=(120, features)), rng.integers(0, 3, 120), np.repeat(np.arange(20), 6)
        model = RankRLSCV(kernel="rbf", gamma=(0.01, 0.1, 1.0)).fit(X, y, qid=qid)
        scores.append(model.best_score_)
        corrected.append(model.best_score_ + model.optimism_)
    assert np.mean(scores) < 0.47
    assert np.mean(corrected) == pytest.approx(0.5, abs=0.02)


@pytest.mark.slow
def test_the_choice_among_models_of_new_items_and_its_bias_are_one_half_on_noise():
    scores, corrected = [], []
    for seed in range(25):
        rng = np.random.default_rng(seed)
        X = rng.normal(size=(60, 30))
        pairs = survival_pairs(rng.exponential(size=60), rng.random(60) < 0.6)
        model = RankRLSCV(kernel="rbf", gamma=(0.01, 0.1, 1.0), scoring="pair_accuracy").fit_pairs(X, *pairs)
        scores.append(model.best_score_)
        corrected.append(model.best_score_ - model.optimism_)
    assert np.mean(scores) > 0.53
    assert np.mean(corrected) == pytest.approx(0.5, abs=0.03)


@pytest.mark.parametrize("labels", ["numbers", "two labels"])
def test_the_choice_by_pairs_of_one_ranking_and_its_bias_are_one_half_on_noise(labels):
    """Averages alone say nothing of the bias: without the values of items this is .45."""
    scores, corrected = [], []
    for seed in range(40):
        rng = np.random.default_rng(seed)
        X, y = rng.normal(size=(60, 10)), rng.normal(size=60) if labels == "numbers" else rng.permutation(60) % 2
        model = RankRLSCV(kernel="rbf", gamma=(0.01, 0.1, 1.0)).fit(X, y)
        assert model.selection_ == "leave-pair-out over 60 items"
        assert model.query_scores_ is None
        scores.append(model.best_score_)
        corrected.append(model.best_score_ + model.optimism_)
    assert np.mean(scores) < 0.475
    assert abs(np.mean(corrected) - 0.5) < 3.0 * np.std(corrected) / np.sqrt(40)
