"""Pursuit of several views against dense systems, explicit Laplacians and refits."""

from __future__ import annotations

import numpy as np
import pytest

from rankrls.learners import pursuit
from rankrls.learners.paths import Dictionary
from rankrls.learners.pursuit import View, co_pursue, pursue, pursue_in_turn
from rankrls.numerics.graph import LabelledGraph
from tests.learners.dense import DensePursuit
from tests.oracles import explicit_laplacian, gaussian
from tests.refusals import Refusal


class Case(DensePursuit):
    """M views of scored and unscored rows with their matrices, plainly."""

    def __init__(self, M, seed=0, n=9, l=12, sizes=None, ties="exclude", balance="pairs"):  # noqa: E741
        rng = np.random.default_rng(seed)
        y = rng.integers(0, 4, n) + 0.1 * rng.normal(size=n).round()
        qid, ubar = rng.integers(0, 2, n), rng.integers(0, 3, l)
        L = explicit_laplacian(y, list(qid), ties=ties, balance=balance)
        Lbar = explicit_laplacian(np.zeros(l), list(ubar), balance=balance)
        graph = LabelledGraph.build(y, np.unique(qid, return_inverse=True)[1], ties=ties, balance=balance)
        agreement = LabelledGraph.build(np.zeros(l), np.unique(ubar, return_inverse=True)[1], balance=balance)
        K, Kbar, self.views = [], [], []
        for v in range(M):
            Z = rng.normal(size=(n + l, 2))
            centres = Z[: (n if sizes is None else sizes[v])]
            K.append(gaussian(Z[:n], centres, 0.7))
            Kbar.append(gaussian(Z[n:], centres, 0.7))
            self.views.append(
                View(
                    Dictionary(K[v], graph),
                    graph.target[:, 0],
                    Dictionary(Kbar[v], agreement),
                )
            )
        super().__init__(y, [L] * M, Lbar, K, Kbar)


@pytest.mark.parametrize("nu", [0.03, 1.0, 20.0])
@pytest.mark.parametrize("backfit", [True, False])
@pytest.mark.parametrize(("M", "shared"), [(1, True), (2, True), (2, False), (3, True), (3, False)])
def test_is_the_greedy_search_by_dense_systems(M, shared, nu, backfit):
    case = Case(M, seed=M, n=7)
    path = co_pursue(case.views, 4, nu, shared=shared, backfit=backfit)
    taken, a, losses = case.greedy(4, nu, shared=shared, backfit=backfit)
    np.testing.assert_array_equal(path.indices, taken)
    np.testing.assert_allclose(path.losses, losses, rtol=1e-8, atol=1e-9 * losses[0])
    f, fbar = case.functions(taken, path.coefficients[-1].T)
    wanted, wanted_bar = case.functions(taken, a)
    for v in range(M):
        centre = lambda x: x - x.mean()
        np.testing.assert_allclose(centre(case.L[v] @ f[v]), centre(case.L[v] @ wanted[v]), atol=1e-6)
        np.testing.assert_allclose(case.Lbar @ fbar[v], case.Lbar @ wanted_bar[v], atol=1e-6)
        own = [(case.y - g) @ case.L[v] @ (case.y - g) for g in (f[v],)]
        np.testing.assert_allclose(path.view_losses[-1, v], own[0], rtol=1e-7, atol=1e-9 * losses[0])


@pytest.mark.parametrize("backfit", [True, False])
def test_without_agreement_the_views_are_on_their_own(backfit):
    case = Case(3, seed=2)
    path = co_pursue(case.views, 5, 0.0, shared=False, backfit=backfit)
    for v, view in enumerate(case.views):
        alone = pursue(view.labelled, view.target, 5, backfit=backfit)
        np.testing.assert_array_equal(path.indices[:, v], alone.indices)
        np.testing.assert_allclose(path.coefficients[:, :, v], alone.coefficients, rtol=1e-8, atol=1e-12)
        np.testing.assert_allclose(path.view(v).losses, alone.losses, rtol=1e-8)


def test_the_whole_objective_never_rises_and_a_long_path_ends():
    case = Case(2, seed=7, n=6, l=4)
    path = co_pursue(case.views, 100, 0.5, shared=False)
    assert path.n_stages <= 12
    assert (np.diff(path.losses) < 1e-10).all()
    a = case.refit(np.stack([np.arange(6)] * 2, axis=1), 0.5)
    f, fbar = case.functions(np.stack([np.arange(6)] * 2, axis=1), a)
    np.testing.assert_allclose(path.losses[-1], case.objective(f, fbar, 0.5), atol=1e-8)


def test_columns_without_sight_are_skipped():
    case = Case(2, seed=1)
    blind = Dictionary(np.ones((9, 9)), LabelledGraph.build(case.y))
    graph = LabelledGraph.build(np.zeros(12))
    nowhere = View(blind, case.views[0].target, Dictionary(np.full((12, 9), 0.3), graph))
    assert co_pursue([nowhere, nowhere], 3, 1.0, shared=False).n_stages == 0
    assert co_pursue([case.views[0], nowhere], 3, 1.0).n_stages == 0  # every system is singular
    half = View(blind, case.views[0].target, case.views[1].agreement)
    assert co_pursue([case.views[0], half], 3, 1.0).n_stages == 3  # seen by the agreement alone


def test_equal_columns_go_to_the_lowest_index():
    case = Case(2, seed=3, n=5)
    double = []
    for v, view in enumerate(case.views):
        order = [0, 0, 1, 1, 2, 3, 3, 4, 2]
        graph = LabelledGraph.build(case.y)
        bar = LabelledGraph.build(np.zeros(12))
        K, B = case.K[v][:, order] * np.linspace(1, 3, 9), case.Kbar[v][:, order] * np.linspace(1, 3, 9)
        double.append(View(Dictionary(K, graph), view.target, Dictionary(B, bar)))
    for shared in (True, False):
        path = co_pursue(double, 4, 0.4, shared=shared)
        assert set(path.indices.ravel()) <= {0, 2, 4, 5, 7}


@pytest.mark.parametrize("nu", [0.0, 0.3, 20.0])
@pytest.mark.parametrize("disjoint", [False, True])
@pytest.mark.parametrize("backfit", [True, False])
@pytest.mark.parametrize("M", [1, 2, 3])
def test_views_in_turn_are_the_greedy_search_by_dense_systems(M, nu, disjoint, backfit):
    case = Case(M, seed=M + 10, n=10)
    ids = [np.arange(10)] * M if disjoint else None
    path = pursue_in_turn(case.views, 3, nu, backfit=backfit, ids=ids)
    taken, a, losses = case.in_turn(3, nu, disjoint=disjoint, backfit=backfit)
    assert [(v, j) for stage in path.indices for v, j in enumerate(stage)] == taken
    np.testing.assert_allclose(path.losses, losses, rtol=1e-8)
    np.testing.assert_allclose(path.coefficients[-1].ravel(), a, rtol=1e-6, atol=1e-8)
    if disjoint:
        chosen = path.indices.T.tolist()
        assert not any(set(chosen[v]) & set(chosen[u]) for v in range(M) for u in range(v))


def test_a_view_in_turn_to_which_nothing_is_left_stays():
    case = Case(2, seed=1, sizes=(9, 2))
    path = pursue_in_turn(case.views, 6, 0.2)
    assert set(path.indices[:, 1]) == {0, 1}
    assert (path.indices[2:, 1] == path.indices[1, 1]).all()
    taken = [(0, j) for j in dict.fromkeys(path.indices[:, 0].tolist())] + [(1, 0), (1, 1)]
    a = case.fitted(taken, 0.2)
    np.testing.assert_allclose(path.losses[-1], case.objective(*case._sums(taken, a), 0.2), rtol=1e-8)
    blind = Dictionary(np.ones((9, 9)), LabelledGraph.build(case.y))
    nowhere = View(
        blind,
        case.views[0].target,
        Dictionary(np.ones((12, 9)), LabelledGraph.build(np.zeros(12))),
    )
    assert pursue_in_turn([nowhere, nowhere], 3, 1.0).n_stages == 0


def test_too_many_combinations_are_refused(monkeypatch):
    monkeypatch.setattr(pursuit, "MAX_COMBINATIONS", 80)
    case = Case(2)
    with Refusal("81 small systems", "more than 80", parameter="shared_basis"):
        co_pursue(case.views, 2, 1.0, shared=False)
    assert co_pursue(case.views, 2, 1.0).n_stages == 2
