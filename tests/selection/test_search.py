"""RankRLSCV on queries: every shortcut against a loop of refits."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.model_selection import GroupKFold, GroupShuffleSplit, KFold, LeaveOneGroupOut

from rankrls import CGRankRLS, RankBoost, RankRLS, RankRLSCV
from rankrls.metrics import Measure
from rankrls.selection.search import at_open_end
from tests.models.oracles import GRAPHS, graph_id, held_out_by_refits, query_rows, ranking_data
from tests.refusals import Refusal

X, Y, QID = ranking_data(20, queries=9)
W = np.random.default_rng(21).random(len(Y)) + 0.3
ALPHAS = (0.03, 1.0, 30.0)
QUERIES = query_rows(QID)


def type_name(value):
    return type(value).__name__


def errors_of(scores, y=Y, qid=QID, w=None):
    return Measure("disagreement")(y, scores, qid=qid, sample_weight=w, per_query=True)


@pytest.mark.parametrize("kind", [{"solver": "primal"}, {"solver": "dual"}, {"kernel": "rbf", "gamma": 0.3}], ids=str)
@pytest.mark.parametrize("graph", GRAPHS, ids=graph_id)
@pytest.mark.parametrize("weighted", [False, True])
def test_leave_query_out_equals_refits(graph, kind, weighted):
    w = W if weighted else None
    model = RankRLSCV(ALPHAS, **kind, **graph).fit(X, Y, qid=QID, sample_weight=w)
    means, spreads = [], []
    for alpha in sorted(ALPHAS, reverse=True):
        scores = held_out_by_refits(lambda a=alpha: RankRLS(a, **kind, **graph), X, Y, QID, QUERIES, weights=w)
        errors = errors_of(scores, w=w)
        means.append(np.nanmean(errors))
        judged = errors[~np.isnan(errors)]
        spreads.append(judged.std(ddof=1) / np.sqrt(len(judged)))
        if alpha == model.alpha_:
            np.testing.assert_allclose(model.held_out_scores_, scores, atol=1e-9)
            np.testing.assert_allclose(model.query_scores_, errors, atol=1e-12)
    np.testing.assert_allclose(model.cv_results_["mean_score"], means, atol=1e-12)
    np.testing.assert_allclose(model.cv_results_["standard_error"], spreads, atol=1e-12)
    np.testing.assert_array_equal(model.cv_results_["alpha"], sorted(ALPHAS, reverse=True))
    best = int(np.argmin(means))  # the first of equals is the largest alpha
    assert model.best_index_ == best
    assert model.alpha_ == sorted(ALPHAS, reverse=True)[best]
    assert model.best_score_ == pytest.approx(means[best])
    assert model.best_score_error_ == pytest.approx(spreads[best])
    assert model.selection_ == "leave-query-out over 9 queries"
    plain = RankRLS(model.alpha_, **kind, **graph).fit(X, Y, qid=QID, sample_weight=w)
    np.testing.assert_allclose(model.predict(X), plain.predict(X), atol=1e-9)


@pytest.mark.parametrize("kind", [{"solver": "primal"}, {"solver": "dual"}], ids=str)
@pytest.mark.parametrize("ties", ["include", "exclude"])
def test_folds_of_queries(kind, ties):
    options = {"alphas": ALPHAS, "ties": ties, **kind}
    model = RankRLSCV(**options, cv=4).fit(X, Y, qid=QID)
    assert model.selection_ == "4 folds of 9 queries"
    ids = np.unique(QID)
    folds = [np.flatnonzero(np.isin(QID, ids[test])) for _, test in KFold(4, shuffle=True, random_state=0).split(ids)]
    for k, alpha in enumerate(model.cv_results_["alpha"]):
        scores = held_out_by_refits(lambda a=alpha: RankRLS(a, ties=ties, **kind), X, Y, QID, folds)
        assert model.cv_results_["mean_score"][k] == pytest.approx(np.nanmean(errors_of(scores)))
        if alpha == model.alpha_:
            np.testing.assert_allclose(model.held_out_scores_, scores, atol=1e-9)


@pytest.mark.parametrize("as_list", [False, True])
@pytest.mark.parametrize("splitter", [GroupKFold(3), LeaveOneGroupOut()])
def test_a_splitter_of_whole_queries_is_exact_too(splitter, as_list):
    folds = list(splitter.split(X, Y, QID))
    for solver in ("primal", "dual"):
        given = folds if as_list else splitter
        model = RankRLSCV(ALPHAS, cv=given, solver=solver).fit(X, Y, qid=QID)
        assert "folds of whole queries" in model.selection_
        for k, alpha in enumerate(model.cv_results_["alpha"]):
            scores = held_out_by_refits(lambda a=alpha: RankRLS(a), X, Y, QID, [test for _, test in folds])
            assert model.cv_results_["mean_score"][k] == pytest.approx(np.nanmean(errors_of(scores)))


def test_folds_that_hold_out_some_queries_judge_only_those():
    train, test = next(GroupShuffleSplit(1, test_size=0.4, random_state=1).split(X, Y, QID))
    for scoring in ("disagreement", "ndcg@3", lambda y, f: float(y[np.argmax(f)])):
        model = RankRLSCV(ALPHAS, cv=[(train, test)], scoring=scoring).fit(X, Y, qid=QID)
        reference = RankRLSCV(ALPHAS, scoring=scoring).fit(
            X[train], Y[train], qid=QID[train], X_val=X[test], y_val=Y[test], qid_val=QID[test]
        )
        np.testing.assert_allclose(model.cv_results_["mean_score"], reference.cv_results_["mean_score"])
        np.testing.assert_allclose(model.cv_results_["standard_error"], reference.cv_results_["standard_error"])
        held = np.array([rows[0] in test for rows in QUERIES])
        assert np.isnan(model.query_scores_[~held]).all()
        np.testing.assert_array_equal(np.isnan(model.held_out_scores_), ~np.isin(np.arange(len(Y)), test))


def refit_curve(folds, w=None, **options):
    means = []
    for alpha in sorted(ALPHAS, reverse=True):
        values = []
        for train, test in folds:
            weights = None if w is None else w[train]
            model = RankRLS(alpha, **options).fit(X[train], Y[train], qid=QID[train], sample_weight=weights)
            inside = Measure("disagreement")(
                Y[test],
                model.predict(X[test]),
                qid=QID[test],
                per_query=True,
                sample_weight=None if w is None else w[test],
            )
            values.extend(inside[~np.isnan(inside)])
        means.append(np.mean(values))
    return means


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("kind", [{"solver": "primal"}, {"kernel": "rbf", "gamma": 0.3}], ids=str)
def test_folds_that_cut_queries_are_refitted(kind, weighted):
    folds = list(KFold(3, shuffle=True, random_state=2).split(X))
    w = W if weighted else None
    for cv in (folds, KFold(3, shuffle=True, random_state=2)):
        model = RankRLSCV(ALPHAS, cv=cv, **kind).fit(X, Y, qid=QID, sample_weight=w)
        assert "3 folds of rows" in model.selection_
        np.testing.assert_allclose(model.cv_results_["mean_score"], refit_curve(folds, w, **kind))
        assert model.held_out_scores_ is None


def test_folds_that_hold_a_query_out_more_than_once_are_refitted():
    cv = GroupShuffleSplit(4, test_size=0.4, random_state=3)
    folds = list(cv.split(X, Y, QID))
    assert max(np.bincount(np.concatenate([test for _, test in folds]))) > 1
    model = RankRLSCV(ALPHAS, cv=cv).fit(X, Y, qid=QID)
    assert "4 folds of rows" in model.selection_
    np.testing.assert_allclose(model.cv_results_["mean_score"], refit_curve(folds))


def test_training_rows_that_repeat_or_leave_rows_out_are_taken_as_they_are():
    test = np.concatenate(QUERIES[:2])
    rest = np.setdiff1d(np.arange(len(Y)), test)
    bootstrap = np.random.default_rng(3).choice(rest, len(rest))
    assert len(np.unique(bootstrap)) < len(rest)
    for train in (bootstrap, rest[5:]):
        model = RankRLSCV(ALPHAS, cv=[(train, test)]).fit(X, Y, qid=QID)
        np.testing.assert_allclose(model.cv_results_["mean_score"], refit_curve([(train, test)]))


def test_given_folds_number_the_rows_of_weight_zero_too():
    w = np.where(np.arange(len(Y)) % 4 == 1, 0.0, W)
    kept = np.flatnonzero(w)
    folds = [*KFold(3, shuffle=True, random_state=1).split(X)]
    model = RankRLSCV(ALPHAS, cv=folds).fit(X, Y, qid=QID, sample_weight=w)
    number = np.cumsum(w > 0.0) - 1
    own = [tuple(number[np.intersect1d(rows, kept)] for rows in fold) for fold in folds]
    alone = RankRLSCV(ALPHAS, cv=own).fit(X[kept], Y[kept], qid=QID[kept], sample_weight=w[kept])
    np.testing.assert_allclose(model.cv_results_["mean_score"], alone.cv_results_["mean_score"])


def test_precomputed_kernels_are_cut_on_both_sides():
    K = X @ X.T
    w = W.copy()
    w[[2, 9]] = 0.0
    folds = list(KFold(3, shuffle=True, random_state=2).split(X))
    for cv in (None, 3, folds):
        linear = RankRLSCV(ALPHAS, cv=cv, solver="dual").fit(X, Y, qid=QID, sample_weight=w)
        given = RankRLSCV(ALPHAS, cv=cv, kernel="precomputed").fit(K, Y, qid=QID, sample_weight=w)
        np.testing.assert_allclose(given.cv_results_["mean_score"], linear.cv_results_["mean_score"])
        np.testing.assert_allclose(given.predict(K), linear.predict(X), atol=1e-9)


@pytest.mark.parametrize("qid", [QID, None])
def test_validation_data(qid):
    Xv, yv, qv = ranking_data(22)
    qv = None if qid is None else qv
    w = W.copy()
    w[3] = 0.0
    for options in ({}, {"kernel": "rbf", "gamma": 0.2}, {"kernel": "precomputed"}):
        given = (X @ X.T, Xv @ X.T) if "precomputed" in options.values() else (X, Xv)
        model = RankRLSCV((0.0, *ALPHAS), **options)
        model.fit(given[0], Y, qid=qid, sample_weight=w, X_val=given[1], y_val=yv, qid_val=qv)
        means = []
        for alpha in model.cv_results_["alpha"]:
            plain = RankRLS(alpha, **options).fit(given[0], Y, qid=qid, sample_weight=w)
            means.append(Measure("disagreement")(yv, plain.predict(given[1]), qid=qv))
        np.testing.assert_allclose(model.cv_results_["mean_score"], means)
        assert model.best_score_ == min(means)
        assert model.held_out_scores_ is None
        assert model.selection_.startswith("validation data with")


@pytest.mark.parametrize(
    ("scoring", "function"),
    [
        ("pair_accuracy", lambda y, f, **o: 1 - Measure("disagreement")(y, f, **o)),
        ("ndcg@3", lambda y, f, **o: Measure("ndcg", k=3)(y, f, **o)),
        ("map", Measure("average_precision")),
        ("tau", Measure("kendall_tau")),
        (Measure("ndcg", k=2, convention="trec"), lambda y, f, **o: Measure("ndcg", k=2, convention="trec")(y, f, **o)),
        (
            Measure("disagreement", tied_labels="half"),
            lambda y, f, **o: Measure("disagreement", tied_labels="half")(y, f, **o),
        ),
    ],
    ids=lambda v: "" if callable(v) else str(v),
)
def test_any_measure(scoring, function):
    model = RankRLSCV(ALPHAS, scoring=scoring).fit(X, Y, qid=QID)
    means = []
    for alpha in model.cv_results_["alpha"]:
        scores = held_out_by_refits(lambda a=alpha: RankRLS(a), X, Y, QID, QUERIES)
        means.append(function(Y, scores, qid=QID))
    np.testing.assert_allclose(model.cv_results_["mean_score"], means)
    best = np.argmin(means) if "disagreement" in str(scoring) else np.argmax(means)
    assert model.best_index_ == best


def test_equal_scores_choose_the_largest_alpha_and_the_first_combination():
    y = np.where(QID % 3 == 0, X[:, 0], X[:, 0] + 1000.0 * QID)  # ranked without a mistake by any alpha
    grid = (1e-6, 1e-4, 1e-5)
    model = RankRLSCV(grid, balance=("pairs", "queries")).fit(X, y, qid=QID)
    assert set(model.cv_results_["mean_score"]) == {0.0}
    assert model.alpha_ == 1e-4
    assert model.best_params_["balance"] == "pairs"
    assert not model.alpha_at_edge_  # larger ones would be as good


def test_every_combination_is_tried_and_the_best_is_refitted():
    options = {"kernel": ("linear", "rbf", "polynomial"), "gamma": (0.1, 0.5), "degree": (2, 3)}
    options |= {"ties": ("include", "exclude"), "balance": ("pairs", "examples")}
    model = RankRLSCV(ALPHAS, **options).fit(X, Y, qid=QID)
    table = model.cv_results_
    assert len(table["alpha"]) == (1 + 2 + 4) * 4 * 3  # linear has no gamma, rbf no degree
    names = ("kernel", "gamma", "degree", "coef0", "ties", "balance", "alpha")
    for k in range(0, len(table["alpha"]), 7):
        row = {name: table[name][k] for name in names if table[name][k] is not None}
        if row.pop("coef0", None) is not None:
            row["coef0"] = 1.0
        scores = held_out_by_refits(lambda r=row: RankRLS(**r), X, Y, QID, QUERIES)
        assert table["mean_score"][k] == pytest.approx(np.nanmean(errors_of(scores)))
    assert model.best_score_ == table["mean_score"].min()
    assert model.best_params_ == {
        n: table[n][model.best_index_] for n in names if table[n][model.best_index_] is not None
    }
    plain = RankRLS(**model.best_params_).fit(X, Y, qid=QID)
    np.testing.assert_allclose(model.predict(X), plain.predict(X), atol=1e-9)


def test_gamma_none_may_be_one_of_several():
    model = RankRLSCV(ALPHAS, kernel="rbf", gamma=(None, 2.0)).fit(X, Y, qid=QID)
    assert set(model.cv_results_["gamma"]) == {1 / X.shape[1], 2.0}


@pytest.mark.parametrize("options", [{}, {"solver": "dual"}, {"kernel": "rbf"}, {"kernel": "sigmoid", "gamma": 0.1}])
@pytest.mark.parametrize("qid", [QID, None])
def test_the_automatic_grid(options, qid):
    if qid is None and options.get("kernel") == "sigmoid":
        with Refusal("not positive semidefinite"):  # pairs are not held out of an indefinite kernel
            RankRLSCV(**options).fit(X, Y)
        return
    model = RankRLSCV(**options).fit(X, Y, qid=qid)
    grid = model.cv_results_["alpha"]
    assert len(grid) == 21
    assert (np.diff(grid) < 0).all()
    assert model.alpha_ in grid
    assert not model.alpha_at_edge_ or model.alpha_ in (grid[0], grid[-1])
    if not options:
        scaled = RankRLSCV().fit(10 * X, Y, qid=qid)
        np.testing.assert_allclose(scaled.cv_results_["alpha"], 100 * grid)


def test_edge_of_the_grid():
    def edge(*alphas):
        model = RankRLSCV(alphas).fit(X, Y, qid=QID)
        return model.alpha_at_edge_, model.alpha_

    best = RankRLSCV(tuple(np.geomspace(1e-3, 1e3, 25))).fit(X, Y, qid=QID).alpha_
    assert edge(best, best * 1e6, best * 2e6) == (True, best)
    assert edge(best / 1e7, best, best * 1e7) == (False, best)
    assert edge(best, best * 1e7) == (False, best)  # two values have no inside
    assert edge(best) == (False, best)


@pytest.mark.parametrize(
    ("k", "goodness", "is_open"),
    [
        (0, [0.9, 0.5, 0.9], True),
        (2, [0.9, 0.5, 0.9], True),
        (2, [0.5, 0.9, 0.9], False),
        (0, [0.9, 0.9, 0.5], False),
        (1, [0.5, 0.9, 0.5], False),
        (1, [0.5, 0.9], False),
    ],
)
def test_an_end_is_open_if_its_neighbour_is_not_as_good(k, goodness, is_open):
    assert at_open_end(k, np.array(goodness), 1.0) == is_open


def test_edges_of_the_grids_of_a_kernel():
    def fitted(gamma):
        return RankRLSCV((0.1, 1.0, 10.0), kernel="rbf", gamma=gamma).fit(X, Y, qid=QID)

    inside = fitted((1e-4, 1e-2, 0.1, 1.0, 100.0))
    assert not inside.gamma_at_edge_
    best = inside.best_params_["gamma"]
    assert fitted((best, best * 1e6, best * 2e6)).gamma_at_edge_
    assert fitted((best * 1e-6, best * 1e-5, best)).gamma_at_edge_
    assert not fitted((best, best * 1e6)).gamma_at_edge_  # two values have no inside
    assert not hasattr(fitted(best), "gamma_at_edge_")


@pytest.mark.parametrize("ties", ["include", "exclude"])
@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_several_targets_are_averaged_query_by_query(kernel, ties):
    targets = np.column_stack((Y, np.random.default_rng(5).integers(0, 2, len(Y)).astype(float)))
    model = RankRLSCV(ALPHAS, kernel=kernel, ties=ties).fit(X, targets, qid=QID)
    for k, alpha in enumerate(model.cv_results_["alpha"]):
        scores = held_out_by_refits(lambda a=alpha: RankRLS(a, kernel=kernel, ties=ties), X, targets, QID, QUERIES)
        each = [np.nanmean(errors_of(scores[:, t], targets[:, t])) for t in range(2)]
        assert model.cv_results_["mean_score"][k] == pytest.approx(np.mean(each))
        if alpha == model.alpha_:
            np.testing.assert_allclose(model.held_out_scores_, scores, atol=1e-9)


def test_a_target_that_orders_nothing_is_not_judged():
    targets = np.column_stack((Y, np.ones(len(Y))))
    for ties in ("include", "exclude"):
        model = RankRLSCV(ALPHAS, ties=ties).fit(X, targets[:, ::-1], qid=QID)
        single = RankRLSCV(ALPHAS, ties=ties).fit(X, Y, qid=QID)
        np.testing.assert_allclose(model.cv_results_["mean_score"], single.cv_results_["mean_score"])
        np.testing.assert_allclose(model.query_scores_, single.query_scores_)


def test_each_target_may_be_comparable_in_queries_of_its_own():
    targets = np.column_stack((np.zeros(len(Y)), Y))
    targets[next(rows[0] for rows in QUERIES if len(rows) > 1), 0] = 1.0  # the first is comparable in one query only
    model = RankRLSCV(ALPHAS, ties="exclude").fit(X, targets, qid=QID)
    assert model.selection_ == "leave-query-out over 9 queries"


@pytest.mark.parametrize("kind", [{"solver": "primal"}, {"solver": "dual"}, {"kernel": "rbf"}], ids=str)
@pytest.mark.parametrize("graph", [g for g in GRAPHS if g["regression_weight"] != 0.3], ids=graph_id)
def test_items_with_equal_features_stay_tied_when_held_out(graph, kind):
    """Rounding must not order what no model can tell apart: a predicted tie is half an error."""
    rng = np.random.default_rng(6)
    features = rng.integers(0, 2, size=(40, 3)).astype(float)
    y, qid = rng.integers(0, 3, 40).astype(float), np.repeat(np.arange(5), 8)
    model = RankRLSCV((0.03, 30.0), **kind, **graph).fit(features, y, qid=qid)
    held = model.held_out_scores_
    for rows in query_rows(qid):
        for i in rows:
            for j in rows:
                if (features[i] == features[j]).all():
                    assert abs(held[i] - held[j]) <= 1e-10 * np.ptp(held[rows])
    expected = []
    for alpha in model.cv_results_["alpha"]:
        scores = held_out_by_refits(lambda a=alpha: RankRLS(a, **kind, **graph), features, y, qid, query_rows(qid))
        expected.append(np.nanmean(errors_of(np.round(scores, 10), y, qid)))
    np.testing.assert_allclose(model.cv_results_["mean_score"], expected)


@pytest.mark.filterwarnings("ignore:.*end of the grid")
@pytest.mark.parametrize(
    "estimator", [RankRLSCV(ALPHAS), CGRankRLS(ALPHAS, selection="tikhonov"), RankBoost(5)], ids=type_name
)
def test_validation_data_are_judged_by_kendalls_tau(estimator):
    """Which has no value where all scores are equal, and one for every query of two labels otherwise."""
    train, val = QID < 6, QID >= 6
    given = {"X_val": X[val], "y_val": Y[val], "qid_val": QID[val]}
    model = estimator.set_params(scoring="tau").fit(X[train], Y[train], qid=QID[train], **given)
    assert model.best_score_ == pytest.approx(Measure("kendall_tau")(Y[val], model.predict(X[val]), qid=QID[val]))
    with Refusal("two different labels", parameter="y_val"):
        model.fit(X[train], Y[train], qid=QID[train], **given | {"y_val": np.zeros(val.sum())})


def test_functions_without_a_number():
    X, y, qid = ranking_data(4, queries=15)
    for value, words in ((np.nan, "measure is NaN"), (np.inf, "infinity"), (-np.inf, "infinity")):
        with Refusal(words):
            RankRLSCV(scoring=lambda y, scores, value=value: value).fit(X, y, qid=qid)
