"""leave_pair_out through its public face: refits, other tools, intervals, refusals."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import binomtest

from rankrls import RankRLS, RankRLSCV
from rankrls.model_selection import leave_pair_out
from rankrls.numerics.concordance import concordance_interval, disjoint_pairs, greedy_matching
from tests.refusals import Refusal

RNG = np.random.default_rng(40)
M = 13
X = RNG.normal(size=(M, 4))
Y = np.round(X[:, 0] + RNG.normal(size=M))
BINARY = (X[:, 1] + RNG.normal(size=M) > 0).astype(int)
W = RNG.random(M) + 0.4
QID = np.array(["b", "a", "a", "b", "a", "b", "c", "a", "b", "c", "a", "b", "b"])
ALPHAS = [0.05, 3.0]
KINDS = [{"solver": "primal"}, {"solver": "dual"}, {"kernel": "rbf", "gamma": 0.3}]


def refitted(i, j, make, y, **given):
    """f_i - f_j by a model fitted without the two."""
    train = ~np.isin(np.arange(M), (i, j))
    rest = {name: values[train] for name, values in given.items() if values is not None}
    return np.subtract(*make().fit(X[train], y[train], **rest).predict(X[[i, j]]))


def pairs_of(y, qid=None):
    return [
        (i, j) for i in range(M) for j in range(M) if y[i] > y[j] and (qid is None or qid[i] == qid[j])
    ]  # fmt: skip


@pytest.mark.parametrize("kind", KINDS, ids=str)
@pytest.mark.parametrize(
    ("options", "weights", "qid"),
    [
        ({"balance": "pairs"}, None, None),
        ({"balance": "queries"}, None, None),
        ({"balance": "examples"}, W, None),
        ({"balance": "examples"}, W, QID),
        ({"regression_weight": 1.0, "balance": "pairs"}, W, QID),
        ({"regression_weight": 1.0, "ties": "exclude", "balance": "queries"}, None, None),
    ],
    ids=["pairs", "balanced", "weights", "queries", "regression of queries", "regression"],
)
def test_equals_refits(kind, options, weights, qid):
    result = leave_pair_out(RankRLS(**options, **kind), X, Y, alphas=ALPHAS, sample_weight=weights, qid=qid)
    pairs = pairs_of(Y, qid)
    given = leave_pair_out(
        RankRLS(**options, **kind), X, Y, alphas=ALPHAS, sample_weight=weights, qid=qid, pairs=[p[::-1] for p in pairs]
    )
    assert result.differences is None
    assert result.n_pairs == given.n_pairs == len(pairs)
    weight = np.array([1.0 if weights is None else weights[i] * weights[j] for i, j in pairs])
    for k, alpha in enumerate(ALPHAS):
        make = lambda a=alpha: RankRLS(a, **options, **kind)
        leads = np.array([refitted(i, j, make, Y, qid=qid, sample_weight=weights) for i, j in pairs])
        np.testing.assert_allclose(given.differences[:, k], -leads, rtol=1e-6, atol=1e-9)
        assert result.score[k] == pytest.approx(weight @ (leads > 0) / weight.sum())
    np.testing.assert_allclose(given.score, result.score)
    np.testing.assert_allclose(given.standard_error, result.standard_error)
    assert (result.interval[0] < result.score).all()
    assert (result.score < result.interval[1]).all()


def test_shapes_and_the_estimators_own_alpha():
    model = RankRLS(3.0)
    one = leave_pair_out(model, X, Y, pairs=[(0, 1)] if Y[0] != Y[1] else [(0, 2)])
    many = leave_pair_out(model, X, Y, alphas=ALPHAS)
    assert isinstance(one.score, float)
    assert one.differences.shape == (1,)
    assert leave_pair_out(model, X, Y).score == many.score[1]
    assert not hasattr(model, "coef_")
    column = leave_pair_out(model, X, Y[:, None])
    assert column.score == many.score[1]


@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_an_automatic_grid_is_that_of_rankrlscv(kind):
    chosen = RankRLSCV(**kind).fit(X, Y)
    result = leave_pair_out(RankRLS(**kind), X, Y, alphas="auto")
    np.testing.assert_allclose(result.alpha, chosen.cv_results_["alpha"])
    np.testing.assert_allclose(1.0 - result.score, chosen.cv_results_["mean_score"])
    assert leave_pair_out(RankRLS(), X, Y, alphas=ALPHAS).alpha.tolist() == ALPHAS


def test_rows_of_weight_zero_play_no_part():
    w = W.copy()
    w[[2, 5]] = 0.0
    kept = w > 0
    a = leave_pair_out(RankRLS(), X, BINARY, sample_weight=w)
    b = leave_pair_out(RankRLS(), X[kept], BINARY[kept], sample_weight=w[kept])
    assert (a.score, a.n_pairs) == (b.score, b.n_pairs)
    number = np.cumsum(kept) - 1
    far = [(i, j) for i, j in pairs_of(BINARY) if kept[[i, j]].all()]
    a = leave_pair_out(RankRLS(), X, BINARY, sample_weight=w, pairs=far)
    b = leave_pair_out(RankRLS(), X[kept], BINARY[kept], sample_weight=w[kept], pairs=number[np.array(far)])
    np.testing.assert_allclose(a.differences, b.differences)
    with Refusal("Pair 0", "weight zero", parameter="pairs", row=0):
        leave_pair_out(RankRLS(), X, BINARY, sample_weight=w, pairs=[(0, 2)])


def test_the_error_is_delongs_for_a_binary_label():
    """With n for n - 1: the structural components of DeLong et al. from refits."""
    result = leave_pair_out(RankRLS(), X, BINARY)
    positive, negative = np.flatnonzero(BINARY), np.flatnonzero(BINARY == 0)
    right = np.array([[refitted(i, j, RankRLS, BINARY) > 0 for j in negative] for i in positive], dtype=float)
    variance = right.mean(axis=1).var() / len(positive) + right.mean(axis=0).var() / len(negative)
    assert result.standard_error == pytest.approx(np.sqrt(variance))


def test_the_interval():
    score, error = np.array([0.7]), np.array([0.05])
    low, high = concordance_interval(score, error, 9, 0.95)
    odds = np.log(0.7 / 0.3)
    reach = 1.959963984540054 * 0.05 / (0.7 * 0.3)
    np.testing.assert_allclose([low[0], high[0]], 1 / (1 + np.exp(-(odds + np.array([-reach, reach])))))
    for n in (1, 6, 40):
        for right in (0, n):
            exact = binomtest(right, n).proportion_ci(0.9, method="exact")
            ends = concordance_interval(np.array([right / n]), np.zeros(1), n, 0.9)
            np.testing.assert_allclose([ends[0][0], ends[1][0]], [exact.low, exact.high], atol=1e-12)
    wider = leave_pair_out(RankRLS(), X, Y, confidence=0.99).interval
    narrow = leave_pair_out(RankRLS(), X, Y, confidence=0.5).interval
    assert wider[0] < narrow[0] < narrow[1] < wider[1]


def test_pairs_without_a_common_item_are_counted():
    assert greedy_matching(np.array([0, 0, 0]), np.array([1, 2, 3])) == 1
    assert greedy_matching(np.array([0, 1, 2]), np.array([1, 2, 3])) == 2
    assert greedy_matching(np.array([0, 4]), np.array([1, 3])) == 2


def test_disjoint_pairs_are_the_largest_matching():
    assert disjoint_pairs(np.array([0.0, 0, 0, 1]), np.zeros(4, dtype=int)) == 1
    assert disjoint_pairs(np.array([0.0, 1, 2, 3, 3]), np.zeros(5, dtype=int)) == 2
    assert disjoint_pairs(np.array([0.0, 1, 0, 1, 5]), np.array([0, 0, 1, 1, 1])) == 2


def test_perfect_order_has_an_interval():
    y = np.arange(M)
    result = leave_pair_out(RankRLS(1e-3), np.column_stack((y, y**2)).astype(float), y)
    assert result.score == 1.0
    assert result.interval == (pytest.approx(0.025 ** (1 / 6)), 1.0)


OTHER = next(j for j in range(M) if Y[j] != Y[0])
SAME = next(j for j in range(1, M) if Y[j] == Y[0])


@pytest.mark.parametrize(
    ("arguments", "refusal"),
    [
        ({"y": np.ones(M)}, Refusal("Nothing to compare", parameter="y")),
        ({"pairs": [(0, OTHER), (0, SAME)]}, Refusal(f"rows 0 and {SAME}", "labels are equal", parameter="pairs")),
        ({"pairs": [(0, M)]}, Refusal(f"rows 0 and {M}", f"0 to {M - 1}", parameter="pairs")),
        ({"pairs": [(-1, 0)]}, Refusal("rows -1", parameter="pairs", row=-1)),
        ({"pairs": [(3, 3)]}, Refusal("with itself", parameter="pairs", row=3)),
        ({"pairs": []}, Refusal("shape (p, 2)", parameter="pairs")),
        ({"pairs": [(0.5, 1.0)]}, Refusal("dtype float64", parameter="pairs")),
        ({"pairs": [(0, 1)], "qid": QID, "y": np.arange(M)}, Refusal("different queries", parameter="pairs", row=0)),
        ({"estimator": RankRLS(ties="exclude")}, Refusal("ties='exclude'")),
        ({"estimator": RankRLS(balance="pairs"), "sample_weight": W}, Refusal("sample_weight and balance='pairs'")),
        ({"estimator": RankRLS(balance="pairs"), "qid": QID}, Refusal("several queries", "balance='pairs'")),
        ({"estimator": RankRLSCV()}, Refusal("got RankRLSCV", parameter="estimator")),
        ({"alphas": [0.0]}, Refusal("alphas > 0", parameter="alphas")),
        ({"y": np.eye(M)[0]}, Refusal("labels but 1", parameter="y")),
        ({"y": np.column_stack((Y, Y))}, Refusal("one target", parameter="y")),
        ({"y": np.where(np.arange(M) == 4, np.nan, Y)}, Refusal("contains NaN", parameter="y", row=4)),
        ({"confidence": 1.0}, Refusal("above 0", "below 1", parameter="confidence")),
    ],
)
def test_refusals(arguments, refusal):
    given = {"estimator": RankRLS(), "y": Y, **arguments}
    with refusal:
        leave_pair_out(given.pop("estimator"), X, given.pop("y"), **given)


@pytest.mark.parametrize("scoring", ["pair_accuracy", "disagreement"])
@pytest.mark.parametrize("qid", [None, QID], ids=["global", "queries"])
def test_a_choice_by_pairs(scoring, qid):
    """What is searched is what leave_pair_out says of each candidate."""
    model = RankRLSCV(alphas=ALPHAS, cv="leave_pair_out", scoring=scoring, kernel=("linear", "rbf"), gamma=0.3)
    found = model.fit(X, Y, qid=qid).cv_results_
    for k, (kernel, alpha) in enumerate((kernel, alpha) for kernel in ("linear", "rbf") for alpha in ALPHAS[::-1]):
        one = leave_pair_out(RankRLS(alpha, kernel=kernel, gamma=0.3), X, Y, qid=qid)
        ends = one.interval if scoring == "pair_accuracy" else (1.0 - one.interval[1], 1.0 - one.interval[0])
        expected = (one.score if scoring == "pair_accuracy" else 1.0 - one.score, one.standard_error, *ends)
        row = [found[name][k] for name in ("mean_score", "standard_error", "low", "high")]
        np.testing.assert_allclose(row, expected, rtol=1e-8)
    over = f"{len(Y)} items" if qid is None else f"{len(pairs_of(Y, qid))} pairs"
    assert model.selection_ == f"leave-pair-out over {over}"
    np.testing.assert_allclose(model.best_score_, found["mean_score"][model.best_index_])


@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_several_targets_are_chosen_for_by_the_mean_over_their_pairs(kernel):
    rng = np.random.default_rng(5)
    targets = np.column_stack((Y, rng.integers(0, 2, len(Y)), np.ones(len(Y)), X[:, 0] + rng.normal(size=len(Y))))
    found = RankRLSCV(alphas=ALPHAS, scoring="pair_accuracy", kernel=kernel, gamma=0.3).fit(X, targets)
    assert found.selection_ == f"leave-pair-out over {len(Y)} items"
    for k, alpha in enumerate(ALPHAS[::-1]):
        scores, influence = [], np.zeros(len(Y))
        for y in targets.T[[0, 1, 3]]:  # nothing is compared in the other one
            i, j = np.nonzero(y[:, None] > y)
            pairs = np.column_stack((i, j))
            one = leave_pair_out(RankRLS(alpha, kernel=kernel, gamma=0.3), X, y, pairs=pairs)
            right = (one.differences > 0) + 0.5 * (one.differences == 0)
            scores.append(right.mean())
            for ends in pairs.T:
                np.add.at(influence, ends, (right - right.mean()) / len(right) / 3)
        row = [found.cv_results_[name][k] for name in ("mean_score", "standard_error")]
        np.testing.assert_allclose(row, [np.mean(scores), np.linalg.norm(influence)], rtol=1e-8)


@pytest.mark.parametrize(
    ("options", "arguments", "refusal"),
    [
        ({"scoring": "map"}, {}, Refusal("disagreement")),
        ({"ties": "exclude"}, {}, Refusal("ties='exclude'")),
        ({"positive": True}, {}, Refusal("signs of weights", parameter="cv")),
    ],
)
@pytest.mark.filterwarnings("ignore:Without qid")
def test_choices_that_pairs_cannot_make(options, arguments, refusal):
    with refusal:
        RankRLSCV(cv="leave_pair_out", **options).fit(X, arguments.pop("y", Y), **arguments)


@pytest.mark.parametrize("solver", ["primal", "dual"])
@pytest.mark.parametrize("size", [1e3, 1e4, 1e5])
def test_an_item_with_a_large_feature_of_its_own_among_items_that_are_repeated(size, solver):
    """Eigenvectors of small and of missing eigenvalues mix, and nothing but alpha determines the item's own feature."""
    kind = np.array([3, 7, 7, 0, 3, 2, 1, 7, 6, 3, 4, 4, 7, 0])
    X = np.eye(8)[kind] * np.where(kind == 1, size, 1.0)[:, None]
    y = np.array([2.0, 4.0, 0.0, 1.0, 2.0, 4.0, 0.0, 0.0, 2.0, 4.0, 1.0, 0.0, 3.0, 0.0])
    pairs = [(6, 1), (6, 3), (1, 3), (6, 8)]
    model = RankRLS(100.0, balance="pairs", solver=solver)
    found = leave_pair_out(model, X, y, pairs=pairs).differences
    for pair, difference in zip(pairs, found, strict=True):
        rest = np.setdiff1d(np.arange(14), pair)
        first, second = model.fit(X[rest], y[rest]).predict(X[list(pair)])
        assert difference == pytest.approx(first - second, abs=1e-6)
