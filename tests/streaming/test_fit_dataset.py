"""Streamed fits against fits of all rows in memory, for parts of every kind."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

import rankrls
from rankrls import RankRLS, RankRLSCV, RankSVM
from rankrls.metrics import Measure, pair_squared_error
from rankrls.streaming.equation_sums import fold_of
from tests.oracles import explicit_laplacian, ridge
from tests.refusals import Refusal
from tests.streaming.arrays import ArrayDataset, example

ONE_ROW, FIVE_PARTS, MID_QUERY = "one row", "one query over five parts", "cut mid-query"
CUTS = {
    "one part": lambda m: (),
    ONE_ROW: lambda m: tuple(range(1, m)),
    FIVE_PARTS: lambda m: (4, 8, 12, 16, 20),
    MID_QUERY: lambda m: tuple(range(7, m, 7)),
    "empty, and only ties": lambda m: (23, 24, 24, 30, 30),
}
GRAPHS = [
    {"ties": ties, "balance": balance, "regression_weight": beta}
    for ties, balance, beta in product(("include", "exclude"), ("pairs", "examples", "queries"), (0.0, 0.3))
]


def centred(scores, qid):
    _, codes = np.unique(qid, return_inverse=True)
    return scores - (np.bincount(codes, scores) / np.bincount(codes))[codes]


def assert_same_choice(streamed, fitted, X, qid, offset=0.0):
    a, b = (centred((X - offset) @ model.coef_, qid) for model in (streamed, fitted))
    np.testing.assert_allclose(a, b, rtol=0, atol=1e-10 * np.abs(b).max())
    for name in ("mean_score", "standard_error"):
        np.testing.assert_allclose(streamed.cv_results_[name], fitted.cv_results_[name], rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(streamed.alpha_, fitted.alpha_, rtol=1e-9)
    assert streamed.best_index_ == fitted.best_index_
    for name in ("selection_", "n_queries_", "n_features_in_", "alpha_at_edge_"):
        assert getattr(streamed, name) == getattr(fitted, name), name
    assert streamed.best_params_.keys() == fitted.best_params_.keys()


@pytest.mark.parametrize("cuts", CUTS)
@pytest.mark.parametrize("graph", GRAPHS, ids=lambda g: "-".join(map(str, g.values())))
def test_the_choice_is_that_of_all_rows(graph, cuts):
    first = (GRAPHS.index(graph) + [*CUTS].index(cuts)) % 2  # each of them with every graph and with every cut
    for seed, (weights, labels) in enumerate([((False, 4), (True, 0)), ((False, 0), (True, 4))][first]):
        X, y, qid, w = example(seed, weights=weights, labels=labels)
        model = RankRLSCV(**graph, scoring="map" if labels else "disagreement")
        fitted = model.fit(X, y, qid=qid, sample_weight=w)
        streamed = RankRLSCV(**model.get_params()).fit_dataset(ArrayDataset(X, y, qid, w, CUTS[cuts](len(y))))
        assert_same_choice(streamed, fitted, X, qid)


@pytest.mark.parametrize("ties", ["include", "exclude"])
@pytest.mark.parametrize("cuts", CUTS)
def test_an_offset_of_a_million_changes_nothing(ties, cuts):
    X, y, qid, w = example(7, offset=1e6, weights=True)
    y = y + 1e6 * (qid % 7)
    fitted = RankRLSCV(ties=ties).fit(X, y, qid=qid, sample_weight=w)
    streamed = RankRLSCV(ties=ties).fit_dataset(ArrayDataset(X, y, qid, w, CUTS[cuts](len(y))))
    assert_same_choice(streamed, fitted, X, qid, 1e6)


@pytest.mark.parametrize("kind", ["float32", "sparse", "uneven features"])
@pytest.mark.parametrize("cuts", CUTS)
def test_other_features(kind, cuts):
    X, y, qid, w = example(3, dtype=np.float32 if kind == "float32" else np.float64, csr=kind == "sparse", weights=True)
    alphas = "auto"
    if kind == "uneven features":
        X = X * [1e7, 1.0, 1e-3, 1e3]
        alphas = (1e-9, 1e-3, 1.0, 1e3)
    fitted = RankRLSCV(alphas).fit(X, y, qid=qid, sample_weight=w)
    streamed = RankRLSCV(alphas).fit_dataset(ArrayDataset(X, y, qid, w, CUTS[cuts](len(y))))
    assert_same_choice(streamed, fitted, X.toarray() if kind == "sparse" else X, qid)


@pytest.mark.parametrize("cuts", CUTS)
def test_one_alpha_is_the_dense_solution(cuts):
    X, y, qid, w = example(5, weights=True)
    data = ArrayDataset(X, y, qid, w, CUTS[cuts](len(y)), feature_names=("a", "b", "c", "d"))
    for graph in GRAPHS:
        model = RankRLS(alpha=0.7, **graph).fit_dataset(data)
        kept = w > 0
        names = {"ties": graph["ties"], "balance": graph["balance"], "beta": graph["regression_weight"]}
        L = explicit_laplacian(y[kept], qid[kept], w[kept], **names)
        np.testing.assert_allclose(model.coef_, ridge(X[kept], L, y[kept], 0.7), rtol=1e-8, atol=1e-10)
        assert model.n_queries_ == len(set(qid[kept]))
        assert model.feature_names_in_.tolist() == ["a", "b", "c", "d"]


def test_one_global_ranking_in_pieces():
    X, y, _, _ = example(11)
    fitted = RankRLS().fit(X, y, qid=np.zeros(len(y)))
    streamed = RankRLS().fit_dataset(ArrayDataset(X, y, np.zeros(len(y)), cuts=(10, 20, 50)))
    np.testing.assert_allclose(streamed.coef_, fitted.coef_, rtol=1e-10)


def test_several_graphs_are_tried_in_two_passes():
    X, y, qid, _ = example(2, queries=20)
    model = RankRLSCV(ties=("include", "exclude"), balance=("pairs", "queries"), rule="one_se")
    fitted = model.fit(X, y, qid=qid)
    reads.clear()
    data = Counted(X, y, qid, cuts=(10, 40, 41))
    streamed = RankRLSCV(**model.get_params()).fit_dataset(data)
    assert_same_choice(streamed, fitted, X, qid)
    assert streamed.best_params_["ties"] == fitted.best_params_["ties"]
    assert len(reads) == 2 * len(data.parts)


reads = []


class Counted(ArrayDataset):
    def read(self, address, names=False):
        reads.append(address.number)
        return super().read(address, names)


def test_constrained_signs():
    X, y, qid, _ = example(4)
    fitted = RankRLS(alpha=0.1, positive=True).fit(-X, y, qid=qid)
    streamed = RankRLS(alpha=0.1, positive=True).fit_dataset(ArrayDataset(-X, y, qid, cuts=(5, 30)))
    assert (fitted.coef_ == 0).any()
    np.testing.assert_allclose(streamed.coef_, fitted.coef_, atol=1e-12)


@pytest.mark.parametrize("measure", ["ndcg@3", "tau", "pair_squared_error", Measure("map", convention="trec")])
def test_measures(measure):
    X, y, qid, w = example(9, weights=True)
    fitted = RankRLSCV(scoring=measure).fit(X, y, qid=qid, sample_weight=w)
    streamed = RankRLSCV(scoring=measure).fit_dataset(ArrayDataset(X, y, qid, w, cuts=(4, 8, 30, 50)))
    assert_same_choice(streamed, fitted, X, qid)


def test_a_function_of_a_user_is_a_measure():
    X, y, qid, _ = example(9)
    first = lambda labels, scores: float(labels[np.argmax(scores)])
    fitted = RankRLSCV(scoring=first).fit(X, y, qid=qid)
    streamed = RankRLSCV(scoring=first).fit_dataset(ArrayDataset(X, y, qid, cuts=(4, 8, 30, 50)))
    assert_same_choice(streamed, fitted, X, qid)


@pytest.mark.parametrize("cuts", CUTS)
def test_validation_data(cuts):
    X, y, qid, _ = example(1)
    V, labels, other, _ = example(2)
    fitted = RankRLSCV(scoring="map").fit(X, y, qid=qid, X_val=V, y_val=labels, qid_val=other)
    data, validation = (ArrayDataset(*d, cuts=CUTS[cuts](len(d[1]))) for d in ((X, y, qid), (V, labels, other)))
    streamed = RankRLSCV(scoring="map").fit_dataset(data, validation=validation)
    assert_same_choice(streamed, fitted, X, qid)


@pytest.mark.parametrize("cuts", CUTS)
def test_folds_are_refits_without_each_fold(cuts):
    X, y, qid, _ = example(6, queries=24)
    model = RankRLSCV((0.1, 1.0, 10.0), cv=3).fit_dataset(ArrayDataset(X, y, qid, cuts=CUTS[cuts](len(y))))
    folds = np.array([fold_of(str(q), 3) for q in qid])
    assert set(folds) == {0, 1, 2}
    splits = [(np.flatnonzero(folds != k), np.flatnonzero(folds == k)) for k in range(3)]
    fitted = RankRLSCV((0.1, 1.0, 10.0), cv=splits).fit(X, y, qid=qid)
    np.testing.assert_allclose(model.cv_results_["mean_score"], fitted.cv_results_["mean_score"], rtol=1e-12)
    np.testing.assert_allclose(model.coef_, fitted.coef_, rtol=1e-9)
    assert model.selection_ == "3 folds of 24 queries"


@pytest.mark.parametrize("cuts", CUTS)
@pytest.mark.parametrize("graph", GRAPHS[::3], ids=lambda g: "-".join(map(str, g.values())))
def test_the_squared_error_of_folds_takes_one_pass(graph, cuts):
    """The mean is that of the rows' held-out scores; the error is that of the sums of the folds."""
    for offset, weights in product((0.0, 0.0 if graph["regression_weight"] else 1e6), (False, True)):
        X, y, qid, w = example(6, queries=24, weights=weights, offset=offset, labels=0)
        model = RankRLSCV((0.1, 1.0, 10.0), cv=3, scoring="pair_squared_error", **graph)
        reads.clear()
        data = Counted(X, y, qid, w, cuts=CUTS[cuts](len(y)))
        model.fit_dataset(data)
        assert len(reads) == len(data.parts)
        folds = np.array([fold_of(str(q), 3) for q in qid])
        splits = [(np.flatnonzero(folds != k), np.flatnonzero(folds == k)) for k in range(3)]
        fitted = RankRLSCV(**{**model.get_params(), "cv": splits}).fit(X, y, qid=qid, sample_weight=w)
        kept = np.isfinite(fitted.held_out_scores_)
        rows = {"qid": qid[kept], "sample_weight": None if w is None else w[kept]}
        values = pair_squared_error(y[kept], fitted.held_out_scores_[kept], **rows, per_query=True)
        np.testing.assert_allclose(model.cv_results_["mean_score"], fitted.cv_results_["mean_score"], rtol=1e-8)
        assert model.alpha_ == fitted.alpha_
        known = ~np.isnan(values)
        fold_of_query = folds[kept][np.sort(np.unique(qid[kept], return_index=True)[1])]  # in the order of the rows
        sums, counts = (np.bincount(fold_of_query[known], v, 3) for v in (values[known], np.ones(known.sum())))
        spread = np.linalg.norm(sums - counts * model.best_score_) * np.sqrt(3 / 2) / known.sum()
        np.testing.assert_allclose(model.best_score_error_, spread, rtol=1e-6)


def test_folds_do_not_depend_on_the_order_of_the_queries():
    X, y, qid, _ = example(6, queries=24)
    order = np.argsort(qid, kind="stable")
    a = RankRLSCV(cv=4).fit_dataset(ArrayDataset(X, y, qid, cuts=(20, 40)))
    b = RankRLSCV(cv=4).fit_dataset(ArrayDataset(X[order], y[order], qid[order], cuts=(11,)))
    np.testing.assert_allclose(a.cv_results_["mean_score"], b.cv_results_["mean_score"], rtol=1e-12)


def test_a_streamed_model_is_saved_and_loaded(tmp_path):
    X, y, qid, _ = example(8)
    data = ArrayDataset(X, y, qid, cuts=(30,))
    for model in (RankRLS().fit_dataset(data), RankRLSCV().fit_dataset(data)):
        rankrls.save(model, tmp_path / "model.rankrls")
        loaded = rankrls.load(tmp_path / "model.rankrls")
        np.testing.assert_array_equal(loaded.predict(X), model.predict(X))
        assert model.rank(X, qid=qid).shape == (len(y),)
    with Refusal("data set"):
        RankRLS().fit_dataset(data).partial_fit(X, y, qid=-qid - 1)


def test_progress_counts_every_row_twice(capsys):
    X, y, qid, _ = example(8)
    steps = []
    data = ArrayDataset(X, y, qid, cuts=(10, 40))
    RankRLSCV(verbose=steps.append).fit_dataset(data)
    assert [steps[0].done, steps[-1].done, steps[-1].total] == [0, 2 * len(y), 2 * len(y)]
    assert len(steps) == 1 + 2 * len(data.parts)
    assert steps[-1].rate > 0
    assert steps[-1].left == 0
    assert "rows a second" in steps[-1].words()
    RankRLSCV(verbose=1).fit_dataset(data)
    assert "GiB of memory" in capsys.readouterr().err
    assert 0 < steps[0].memory == steps[-1].memory


# What cannot be done -------------------------------------------------------------------------------------------------

X, y, qid, _ = example(0)
DATA = ArrayDataset(X, y, qid, cuts=(10, 40))


@pytest.mark.parametrize(
    ("model", "refusal"),
    [
        (RankRLS(kernel="rbf"), Refusal("linear", parameter="kernel", remedy="SparseRankRLSCV")),
        (RankRLSCV(kernel=("linear", "rbf")), Refusal("linear", parameter="kernel")),
        (RankRLS(solver="dual"), Refusal(parameter="solver", remedy="primal")),
        (RankRLS(solver="cg"), Refusal(parameter="solver", remedy="CGRankRLS")),
        (RankRLSCV(positive=True), Refusal("positive", parameter="positive")),
        (RankRLSCV(cv="leave_pair_out"), Refusal(parameter="cv", remedy="validation")),
        (RankRLSCV(cv=[([0], [1])]), Refusal(parameter="cv")),
        (RankRLSCV(scoring=Measure("disagreement", average="pair")), Refusal(parameter="scoring", remedy="query")),
        (RankSVM(), Refusal("all rows", parameter="data", remedy="RankRLSCV")),
    ],
)
def test_what_needs_all_rows_says_so_at_once(model, refusal):
    with refusal:
        model.fit_dataset(Unread(X, y, qid))


@pytest.mark.parametrize(
    "name",
    [
        *("AutoRankRLS", "CoRankRLS", "CoRankingPursuit", "GreedyRankRLS", "RankBoost"),
        *("RankSVMCV", "RankingPursuit", "TransductiveRankRLS"),
    ],
)
def test_every_other_estimator_names_what_to_take(name):
    with Refusal("all rows", parameter="data", remedy="RankRLSCV"):
        getattr(rankrls, name)().fit_dataset(Unread(X, y, qid))


class Unread(ArrayDataset):
    def read(self, address, names=False):
        raise AssertionError("nothing is read")


def at(row, values, value):
    out = values.copy()
    out[row] = value
    return out


@pytest.mark.parametrize(
    ("data", "refusal"),
    [
        (ArrayDataset(X, at(42, y, np.nan), qid, cuts=(40,)), Refusal(parameter="y", row=42)),
        (ArrayDataset(at((42, 1), X, np.inf), y, qid, cuts=(40,)), Refusal("infinity", row=42, column=1)),
        (ArrayDataset(at((42, 1), X, 1e300), y, qid, cuts=(40,)), Refusal("overflow", row=42, column=1)),
        (ArrayDataset(X, y, qid, at(42, np.ones(len(y)), -1.0), (40,)), Refusal("negative", row=42)),
        (ArrayDataset(X, 0 * y, qid, cuts=(40,)), Refusal("Nothing to compare", parameter="y")),
        (ArrayDataset(X, y, np.zeros(len(y)), cuts=(40,)), Refusal("two queries", parameter="cv")),
        (ArrayDataset(X[:0], y[:0], qid[:0]), Refusal("no rows", parameter="data")),
    ],
)
def test_bad_data(data, refusal):
    with refusal:
        RankRLSCV().fit_dataset(data)


def test_memory_that_a_part_does_not_fit_into():
    with Refusal("GiB", parameter="memory", remedy="fewer rows"):
        RankRLSCV().fit_dataset(DATA, memory="1K")
    with Refusal("bytes", parameter="memory"):
        RankRLSCV().fit_dataset(DATA, memory="much")
    assert RankRLSCV().fit_dataset(DATA, memory="1G").n_queries_ == 14
