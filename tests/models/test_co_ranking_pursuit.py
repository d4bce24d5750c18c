"""The semi-supervised estimator: how rows, queries and views come in, and what its functions are."""

from __future__ import annotations

from functools import partial

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

from rankrls import CoRankingPursuit, RankingPursuit
from tests.learners.dense import DensePursuit
from tests.models.oracles import GRAPHS, by_view, graph_id, laplacian, ranking_data
from tests.oracles import gaussian
from tests.refusals import Refusal


def partly(seed=0, n=6, l=15):  # noqa: E741
    """Scored rows, unscored rows of queries of their own, new rows."""
    X, y, qid = ranking_data(seed, n=n)
    rng = np.random.default_rng(seed + 100)
    return X, y, qid, rng.normal(size=(l, n)), rng.integers(0, 4, l), rng.normal(size=(7, n))


def equation_three(model, X, y, qid, Xu, qu, nu, graph, w=None, views=None):
    """By the functions themselves and explicit Laplacians."""
    L = laplacian(y, qid, w, graph)
    bar = dict(graph, ties="include")
    Lbar = laplacian(np.zeros(len(qu)), qu, None, bar)
    f = by_view(model, X)
    fbar = by_view(model, Xu)
    loss = sum((y - g) @ L @ (y - g) for g in f)
    return loss + nu * sum((a - b) @ Lbar @ (a - b) for a in fbar for b in fbar)


def refitted(columns, L, y, columns_bar, Lbar, nu):
    """The mean function of two views over given columns, by least squares in equation (3)."""
    root, root_bar = (_root(A) for A in (L, Lbar))
    zero = np.zeros_like(root @ columns[0])
    A = np.vstack(
        (
            np.hstack((root @ columns[0], zero)),
            np.hstack((zero, root @ columns[1])),
            np.sqrt(2 * nu) * np.hstack((root_bar @ columns_bar[0], -root_bar @ columns_bar[1])),
        )
    )
    b = np.concatenate((root @ y, root @ y, np.zeros(len(Lbar))))
    return np.linalg.lstsq(A, b, rcond=None)[0].reshape(2, -1)


def _root(L):
    values, vectors = np.linalg.eigh(L)
    return np.sqrt(np.maximum(values, 0.0))[:, None] * vectors.T


@pytest.mark.parametrize("graph", GRAPHS[::4], ids=graph_id)
def test_minimises_equation_three_over_the_columns_taken(graph):
    X, y, qid, Xu, qu, X_new = partly()
    w = np.random.default_rng(0).uniform(0.3, 2.0, len(y))
    model = CoRankingPursuit(3, views=([0, 1, 2], [3, 4, 5]), nu=0.4, gamma=0.2, **graph)
    model.fit(**joined(X, y, qid, Xu, qu), sample_weight=np.r_[w, np.ones(len(qu))])
    rows = model.path_.indices[:, 0]
    np.testing.assert_allclose(model.path_.indices[:, 1], rows)
    np.testing.assert_allclose(model.X_fit_, X[rows])
    halves = (slice(0, 3), slice(3, 6))
    K = [gaussian(X[:, h], X[rows][:, h], 0.2) for h in halves]
    Kbar = [gaussian(Xu[:, h], X[rows][:, h], 0.2) for h in halves]
    L, Lbar = laplacian(y, qid, w, graph), laplacian(np.zeros(len(qu)), qu, None, dict(graph, ties="include"))
    a = refitted(K, L, y, Kbar, Lbar, 0.4)
    for v, scores in enumerate(by_view(model, X_new)):
        wanted = gaussian(X_new[:, halves[v]], X[rows][:, halves[v]], 0.2) @ a[v]
        np.testing.assert_allclose(scores, wanted, rtol=1e-6, atol=1e-8)
    np.testing.assert_allclose(
        model.path_.losses[-1], equation_three(model, X, y, qid, Xu, qu, 0.4, graph, w), rtol=1e-8
    )
    np.testing.assert_allclose(
        model.predict(X_new),
        np.mean(by_view(model, X_new), axis=0),
    )
    stages = list(model.staged_predict(X_new))
    assert len(stages) == 3
    np.testing.assert_allclose(stages[-1], model.predict(X_new), rtol=1e-10)
    shorter = CoRankingPursuit(2, views=([0, 1, 2], [3, 4, 5]), nu=0.4, gamma=0.2, **graph)
    shorter.fit(**joined(X, y, qid, Xu, qu), sample_weight=np.r_[w, np.ones(len(qu))])
    np.testing.assert_allclose(stages[1], shorter.predict(X_new), rtol=1e-8, atol=1e-10)


@pytest.mark.parametrize("backfit", [True, False])
@pytest.mark.parametrize("views", [None, ["rbf"], [slice(None)]])
def test_one_view_is_ranking_pursuit(views, backfit):
    X, y, qid, Xu, qu, X_new = partly(1)
    if views is None:
        X, Xu, X_new = X[:, :1], Xu[:, :1], X_new[:, :1]
    model = CoRankingPursuit(4, views=views, gamma=0.3, backfit=backfit)
    model.fit(**joined(X, y, qid, Xu, qu))
    alone = RankingPursuit(4, gamma=0.3, backfit=backfit).fit(X, y, qid=qid)
    np.testing.assert_allclose(model.path_.indices[:, 0], alone.path_.indices)
    np.testing.assert_allclose(model.predict(X_new), alone.predict(X_new), rtol=1e-8, atol=1e-10)


def joined(X, y, qid, Xu, qu):
    """Labelled rows and then unlabelled ones."""
    return {"X": np.vstack((X, Xu)), "y": np.r_[y, np.full(len(qu), np.nan)], "qid": np.r_[qid, qu]}


def same(one, other, X_new):
    np.testing.assert_allclose(one.path_.losses, other.path_.losses, rtol=1e-9)
    np.testing.assert_allclose(one.predict(X_new), other.predict(X_new), rtol=1e-7, atol=1e-9)


def test_unlabelled_rows_come_in_any_order_and_form():
    X, y, qid, Xu, qu, X_new = partly(2)
    base, given = partial(CoRankingPursuit, 4, nu=0.3, gamma=0.2), joined(X, y, qid, Xu, qu + 1000)
    model = base().fit(**given)
    order = np.random.default_rng(0).permutation(len(given["y"]))
    mixed = base().fit(**{name: values[order] for name, values in given.items()})
    same(model, mixed, X_new)
    np.testing.assert_allclose(order[mixed.basis_indices_], model.basis_indices_)
    framed = base().fit(**given | {"X": pd.DataFrame(given["X"], columns=list("abcdef"))})
    np.testing.assert_allclose(framed.predict(pd.DataFrame(X_new, columns=list("abcdef"))), model.predict(X_new))
    same(model, base().fit(**given | {"X": sparse.csr_array(given["X"])}), X_new)
    everything = base().fit(**given | {"qid": None})  # without queries: one ranking of each
    assert np.isfinite(everything.predict(X_new)).all()


@pytest.mark.parametrize("shared", [True, False])
def test_is_the_greedy_search_by_dense_systems(shared):
    X, y, qid, Xu, qu, X_new = partly(9)
    model = CoRankingPursuit(3, views=({}, {"gamma": 1.0}), nu=0.4, gamma=0.2, shared_basis=shared)
    model.fit(**joined(X, y, qid, Xu, qu))
    L, Lbar = (laplacian(labels, ids, None, GRAPHS[3]) for labels, ids in ((y, qid), (np.zeros(len(qu)), qu)))
    columns, columns_bar = ([gaussian(Z, X, gamma) for gamma in (0.2, 1.0)] for Z in (X, Xu))
    taken, a, losses = DensePursuit(y, [L, L], Lbar, columns, columns_bar).greedy(3, 0.4, shared=shared)
    np.testing.assert_array_equal(model.path_.indices, taken)
    np.testing.assert_allclose(model.path_.losses, losses, rtol=1e-8)
    for scores, gamma, own, rows in zip(by_view(model, X_new), (0.2, 1.0), a, taken.T, strict=True):
        np.testing.assert_allclose(scores, gaussian(X_new, X[rows], gamma) @ own, rtol=1e-6, atol=1e-8)


def test_without_unlabelled_rows_the_labelled_ones_agree():
    X, y, qid, *_ = partly(6)
    model = CoRankingPursuit(3, nu=0.5, gamma=0.2, ties="exclude").fit(X, y, qid=qid)
    L = laplacian(y, qid, None, dict(GRAPHS[0], ties="exclude", balance="examples"))
    f = by_view(model, X)
    loss = sum((y - g) @ L @ (y - g) for g in f) + 2 * 0.5 * (f[0] - f[1]) @ L @ (f[0] - f[1])
    np.testing.assert_allclose(model.path_.losses[-1], loss, rtol=1e-8)


def test_views_by_kernel_and_by_name():
    X, y, qid, Xu, qu, X_new = partly(7)

    def product(a, b):
        return float((1 + a @ b) ** 2)

    one = CoRankingPursuit(
        3,
        views=(
            "linear",
            product,
            {"kernel": "poly", "degree": 2, "gamma": 1},
        ),
    ).fit(**joined(X, y, qid, Xu, qu))
    rows = one.path_.indices[:, 0]
    kernels = (X_new @ X[rows].T, (1 + X_new @ X[rows].T) ** 2, (1 + X_new @ X[rows].T) ** 2)
    for v, scores in enumerate(by_view(one, X_new)):
        np.testing.assert_allclose(scores, kernels[v] @ one.path_.coefficients[-1, :, v], rtol=1e-7)
    names = pd.DataFrame(np.vstack((X, Xu)), columns=list("abcdef"))
    mask = np.array([False, True, True, True, True, False])
    named = CoRankingPursuit(3, views=(["a", "f"], mask)).fit(**joined(X, y, qid, Xu, qu) | {"X": names})
    numbered = CoRankingPursuit(3, views=([0, 5], slice(1, 5))).fit(**joined(X, y, qid, Xu, qu))
    np.testing.assert_allclose(named.path_.losses, numbered.path_.losses)


@pytest.mark.parametrize("dictionary", ["kernel", "features"])
def test_nothing_to_take_is_the_zero_function(dictionary):
    model = CoRankingPursuit(3, dictionary=dictionary).fit(np.ones((6, 2)), np.arange(6.0))
    assert model.path_.n_stages == 0
    assert model.predict(np.ones((4, 2))).tolist() == [0.0] * 4
    assert model.predict(np.ones((4, 2)), view=1).tolist() == [0.0] * 4


@pytest.mark.parametrize(
    ("parameters", "refusal"),
    [
        ({"views": ([0, 9], [1])}, Refusal("views[0]", "names", parameter="views")),
        ({"views": (["a"],)}, Refusal("views[0]", "slice", parameter="views")),
        ({"views": ({"kernle": "rbf"},)}, Refusal("'kernle'", "view", parameter="views")),
        ({"views": ("gaussian",)}, Refusal("'rbf'", "views[0]: kernel", parameter="views")),
        ({"views": ("precomputed", "rbf")}, Refusal("views[0]", "features", parameter="kernel")),
        ({"kernel": "precomputed"}, Refusal("views[0]", "features", parameter="kernel")),
        ({"views": ({"rows": [1]},)}, Refusal("'rows'", "view", parameter="views")),
    ],
)
def test_bad_parameters(parameters, refusal):
    X, y, qid, Xu, qu, _ = partly(8)
    with refusal:
        CoRankingPursuit(**parameters).fit(**joined(X, y, qid, Xu, qu))
