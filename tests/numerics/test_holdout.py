"""Solutions and held-out scores of every regularization value against refits in extended precision."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, strategies as st
from scipy import sparse

from rankrls import RankRLS, RankRLSCV
from rankrls.model_selection import leave_preference_out, leave_query_out
from rankrls.numerics.graph import LabelledGraph, PreferenceGraph
from rankrls.numerics.holdout import hold_out, hold_out_chunks
from rankrls.numerics.smoother import (
    DualEquations,
    DualSmoother,
    Equations,
    ItemSmoother,
    feature_weights,
    normal_equations,
)
from tests.numerics.cases import Case, cases, refitted_weights, rounding, solve_extended
from tests.oracles import explicit_laplacian, gaussian, refined_dual_coefficients

SHARES = np.geomspace(1e6, 1e-9, 6)
"""Alphas, in units of the largest eigenvalue."""


def forms(case, graph, X=None):
    """The smoothers of one problem: primal and dual."""
    X = case.X if X is None else X
    yield normal_equations(graph, X).smoother()
    yield DualEquations.of_features(X, graph).smoother()
    if np.abs(case.X).max() < 100.0:  # a kernel matrix squares offsets
        Z = case.X if graph.e3 else case.X * (np.ptp(case.X, axis=0) > 0.0)
        yield DualEquations.of_kernel(Z @ Z.T, graph).smoother()


@given(cases(offset=1.0))
def test_paths_and_single_solutions_are_those_of_dense_solves(case):
    graph, everything = case.graph, np.ones(len(case.y), dtype=bool)
    smoothers = list(forms(case, graph))
    alphas = SHARES * max(smoothers[0].top, 1.0)
    wanted = [refitted_weights(case, everything, alpha).astype(float) for alpha in alphas]
    for smoother in smoothers:
        for alpha, expected, w in zip(alphas, wanted, weights_of(case, smoother, alphas), strict=True):
            limit = rounding(case, smoother, everything, alpha, expected, w)
            np.testing.assert_allclose(case.X @ w, case.X @ expected, rtol=0, atol=limit)
    for equations, smoother in zip(
        (normal_equations(graph, case.X), DualEquations.of_features(case.X, graph)), smoothers, strict=False
    ):
        w = equations.solve(alphas[3])
        w = (w if isinstance(equations, Equations) else feature_weights(graph, case.X, w))[:, 0]
        limit = rounding(case, smoother, everything, alphas[3], wanted[3], w)
        np.testing.assert_allclose(case.X @ w, case.X @ wanted[3], rtol=0, atol=limit)


def weights_of(case, smoother, alphas):
    """Weights of features for every alpha."""
    coefficients = smoother.path(alphas)
    if isinstance(smoother, DualSmoother):
        return [feature_weights(smoother.graph, case.X, a)[:, 0] for a in coefficients]
    return coefficients[:, :, 0]


@given(cases(), st.sampled_from([0.0, 1e7]), st.sampled_from([1.0, 1e5]))
def test_held_out_queries_are_scored_as_by_refits(case, offset, spread):
    offset = 0.0 if case.setting["regression_weight"] else offset  # a constant would count
    case = Case(
        case.X * np.where(np.arange(case.X.shape[1]) == 0, spread, 1.0) + offset, case.y, case.q, case.w, case.setting
    )
    graph = case.graph
    for smoother in forms(case, graph):
        if smoother.lost_feature is not None or (spread > 1.0 and hasattr(smoother, "graph")):
            continue  # the dual knows no features
        alphas = SHARES * max(smoother.top, 1e-3)
        held = graph.restore(hold_out(smoother, graph, case.X, alphas)[0])
        check_held_out(case, smoother, alphas, held, [case.q == query for query in set(case.q)])


def check_held_out(case, smoother, alphas, held, units, *, means=False):
    """Scores of units of rows, each left out in its turn, against refits in extended precision."""
    full = weights_of(case, smoother, alphas)
    for out in units:
        for k, alpha in enumerate(alphas):
            if out.all():
                continue
            w = refitted_weights(case, ~out, alpha).astype(float)
            X = case.X[out] if means else case.X[out] - case.X[out].mean(axis=0)
            found, wanted = held[k, out], X @ w
            limit = rounding(case, smoother, ~out, alpha, w, full[k])
            if not means:
                limit += 4.0 * np.finfo(float).eps * np.abs(found).max()  # an offset of the columns is in the scores
                found, wanted = case.centred(found, out), case.centred(wanted, out)
            np.testing.assert_allclose(found, wanted, rtol=0, atol=limit)


@given(cases(regression=(0.0, 0.3)))
def test_scores_with_means_are_those_of_the_refitted_model_itself(case):
    graph = case.graph
    for smoother in forms(case, graph):
        alphas = SHARES[1:4] * max(smoother.top, 1e-3)
        found = hold_out(smoother, graph, case.X, alphas)
        held = graph.restore(found[0])
        check_held_out(case, smoother, alphas, held, [case.q == case.q[0]], means=True)


@given(cases(features=3), st.integers(0, 2**32))
def test_folds_of_queries_and_chunks(case, seed):
    rng = np.random.default_rng(seed)
    queries = case.q.max() + 1
    order, cut = rng.permutation(queries), int(rng.integers(1, queries))
    units = np.array([0, cut, queries])
    graph = case.graph.take(order)
    for smoother in forms(case, graph):
        alphas = SHARES[1:5] * max(smoother.top, 1e-3)
        parts = hold_out_chunks(smoother, graph, case.X, alphas, lambda part, held: held, units=units)
        held = graph.restore(np.concatenate(list(parts), axis=-1))[0]
        check_held_out(case, smoother, alphas, held, [np.isin(case.q, fold) for fold in (order[:cut], order[cut:])])


def long_queries(m=2000, n=12, queries=5, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(m, n))
    y = X[:, 0] + 0.3 * rng.normal(size=m)
    return X, y, np.repeat(np.arange(queries), m // queries)


@pytest.mark.parametrize("n", [3, 100, 450])
def test_queries_shorter_and_longer_than_features(n):
    X, y, q = long_queries(600, n, 4)
    graph = LabelledGraph.build(y, q)
    smoother = normal_equations(graph, X).smoother()
    alphas = np.geomspace(1e3, 1e-6, 5) * smoother.top
    held = hold_out(smoother, graph, X, alphas)[0]
    out = q == 1
    rest = LabelledGraph.build(y[~out], np.unique(q[~out], return_inverse=True)[1])
    for k, alpha in enumerate(alphas):
        w = normal_equations(rest, X[~out]).solve(alpha)[:, 0]
        wanted = X[out] @ w
        np.testing.assert_allclose(graph.restore(held)[k, out], wanted, atol=1e-7)


def test_containers_targets_and_thread_chunks_agree():
    X, y, q = long_queries(400, 6, 40)
    Y = np.column_stack((y, -2.0 * y, np.random.default_rng(1).normal(size=len(y))))
    graph = LabelledGraph.build(Y, q, balance="pairs")
    smoother = normal_equations(graph, X).smoother()
    alphas = smoother.grid()
    held = graph.restore(hold_out(smoother, graph, X, alphas))
    assert held.shape == (3, 21, 400)
    np.testing.assert_allclose(held[1], -2.0 * held[0], atol=1e-9)
    for container in (X.astype(np.float32).astype(np.float64), sparse.csr_array(X), np.asfortranarray(X)):
        again = normal_equations(graph, container).smoother()
        other = graph.restore(hold_out(again, graph, container, alphas))
        np.testing.assert_allclose(other, held, atol=1e-4 if container.dtype == np.float32 else 1e-6)
    for k in range(3):
        one = LabelledGraph.build(Y[:, k], q, balance="pairs")
        alone = hold_out(normal_equations(one, X).smoother(), one, X, alphas)
        np.testing.assert_allclose(one.restore(alone)[0], held[k], atol=1e-9)


def test_thin_sparse_rows_have_the_equations_of_dense_ones():
    rng = np.random.default_rng(0)
    X = sparse.random_array((300, 40), density=0.05, rng=rng).tolil()
    X[:, 3] = 1e6 + rng.normal(size=300)  # stored everywhere, with an offset
    X = sparse.csr_array(X)
    y, q, w = rng.integers(0, 3, 300), rng.integers(0, 20, 300), rng.uniform(0.5, 2, 300)
    q = np.unique(q, return_inverse=True)[1]
    for ties in ("include", "exclude"):
        graph = LabelledGraph.build(y, q, weights=w, ties=ties)
        dense, thin = Equations.of(graph, X.toarray()), Equations.of(graph, X)
        np.testing.assert_allclose(thin.gram, dense.gram, atol=1e-8)
        np.testing.assert_allclose(thin.right, dense.right, atol=1e-8)
    votes = PreferenceGraph.build(*rng.integers([[0], [150]], [[150], [300]], (2, 100)), 300)
    dense, thin = Equations.of(votes, X.toarray()), Equations.of(votes, X)
    np.testing.assert_allclose(thin.gram, dense.gram, atol=1e-8)
    np.testing.assert_allclose(thin.right, dense.right, atol=1e-8)


@pytest.mark.parametrize("ties", ["include", "exclude"])
@pytest.mark.parametrize("labels", [2, 50, 100_000])
@pytest.mark.parametrize("beta", [0.0, 0.3])
def test_a_query_longer_than_a_chunk_is_added_up_in_pieces(ties, labels, beta):
    rng = np.random.default_rng(labels)
    X, y = rng.normal(size=(2600, 300)), rng.integers(0, labels, 2600).astype(float)
    q, w = np.repeat([0, 1], [2500, 100]), rng.uniform(0.5, 2, 2600)
    graph = LabelledGraph.build(y, q, weights=w, ties=ties, balance="queries", regression_weight=beta)
    found = normal_equations(graph, X)
    ordered, t = X[graph.rows], y[graph.rows][:, None]
    np.testing.assert_allclose(found.gram, ordered.T @ graph.laplacian(ordered), atol=1e-9 * np.abs(found.gram).max())
    np.testing.assert_allclose(found.right, ordered.T @ graph.laplacian(t), atol=1e-9 * np.abs(found.right).max())


def preferences(p, items, n, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(items, n))
    i = rng.integers(0, items, p)
    j = (i + rng.integers(1, items, p)) % items
    return X, i, j, rng.uniform(0.5, 2, p), rng.normal(size=p), rng.integers(0, max(2, p // 3), p)


def stacked_solution(Z, t, alpha):
    n = Z.shape[1]
    both = np.vstack((Z, np.sqrt(alpha) * np.eye(n))), np.concatenate((t, np.zeros(n)))
    return np.linalg.lstsq(*both, rcond=None)[0]


@pytest.mark.parametrize(("p", "items", "n"), [(12, 30, 4), (12, 30, 20), (60, 8, 4), (60, 8, 20)])
@pytest.mark.parametrize("grouped", [False, True])
def test_held_out_preferences_are_those_of_refits(p, items, n, grouped):
    X, i, j, c, s, g = preferences(p, items, n)
    groups = np.unique(g if grouped else np.arange(p), return_inverse=True)[1]
    graph = PreferenceGraph.build(i, j, items, strength=s, weights=c, groups=groups)
    smoothers = [normal_equations(graph, X).smoother()]
    if p > items:
        smoothers.append(ItemSmoother.of_kernel(X @ X.T, graph))
    else:
        smoothers += [
            DualEquations.of_kernel(X @ X.T, graph).smoother(),
            DualEquations.of_features(X, graph).smoother(),
        ]
    F, t = np.sqrt(c)[:, None] * (X[i] - X[j]), np.sqrt(c) * s
    alphas = np.geomspace(1e3, 1e-4, 5) * smoothers[0].top
    for smoother in smoothers:
        parts = hold_out_chunks(smoother, graph, X, alphas, lambda part, held: held)
        held = graph.restore(np.concatenate(list(parts), axis=-1))[0]
        path = smoother.path(alphas)[:, :, 0]
        for k, alpha in enumerate(alphas):
            w = path[k] if len(path[k]) == n and smoother is smoothers[0] else X.T @ path[k]
            np.testing.assert_allclose(w, stacked_solution(F, t, alpha), atol=1e-7)
            for group in range(groups.max() + 1):
                out = groups == group
                np.testing.assert_allclose(
                    held[k, out], (X[i] - X[j])[out] @ stacked_solution(F[~out], t[~out], alpha), atol=1e-6
                )


@pytest.mark.parametrize("gamma", [0.02, 1.0])
def test_new_items_are_scored_where_a_kernel_has_lost_eigenvalues(gamma):
    """Far outside of the items, coefficients count whose eigenvalues are below rounding."""
    rng = np.random.default_rng(0)
    X, new = np.sort(rng.random((14, 1)), axis=0), np.linspace(-1.0, 3.0, 9)[:, None]
    y = np.sin(5.0 * X[:, 0]) + 0.1 * rng.normal(size=14)
    i, j = np.nonzero(y[:, None] > y)
    graph = PreferenceGraph.build(i, j, 14, strength=y[i] - y[j])
    smoother = ItemSmoother.of_kernel(gaussian(X, X, gamma), graph)
    alpha = 1e-6 * smoother.top
    exact = X.astype(np.longdouble)
    a = refined_dual_coefficients(gaussian(exact, exact, gamma), graph.matrix.toarray(), y, alpha)
    wanted = (gaussian(new.astype(np.longdouble), exact, gamma) @ a).astype(float)
    found = gaussian(new, X, gamma) @ smoother.path(np.array([alpha]))[0, :, 0]
    np.testing.assert_allclose(found - found[0], wanted - wanted[0], rtol=0, atol=1e-6)


def test_votes_between_clusters_of_items_with_large_offsets_lose_nothing():
    X, i, j, *_ = preferences(200, 10, 3)
    i, j = np.concatenate((i, i + 10)), np.concatenate((j, j + 10))
    items = np.vstack((X, X[::-1] + 1e8))
    graph = PreferenceGraph.build(i, j, 20)
    D = items[i] - items[j]
    equations = normal_equations(graph, items)
    np.testing.assert_allclose(equations.gram, D.T @ D, rtol=1e-6, atol=1e-4)


def test_weights_of_few_preferences_do_not_see_offsets():
    X, i, j, *_ = preferences(12, 30, 40)
    X = np.round(3.0 * X)
    graph, found = PreferenceGraph.build(i, j, 30), []
    for items in (X, X + 1e12):
        found.append(feature_weights(graph, items, DualEquations.of_features(items, graph).solve(0.5)))
    np.testing.assert_allclose(found[1], found[0], atol=1e-6)


def test_a_grid_reaches_where_the_smallest_feature_is_fitted():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 3)) * [1.0, 1e-7, 1e-3]
    graph = LabelledGraph.build(X @ [1.0, 1e7, 1e3], np.arange(400) // 10)
    smoother = normal_equations(graph, X).smoother()
    alphas = smoother.grid()
    w = smoother.path(alphas[-1:])[0, :, 0]
    np.testing.assert_allclose(w, [1.0, 1e7, 1e3], rtol=0.01)
    np.testing.assert_allclose(alphas[1:] / alphas[:-1], alphas[1] / alphas[0])


def test_every_alpha_of_the_grid_of_an_indefinite_kernel_has_a_solution():
    rng = np.random.default_rng(0)
    U = np.linalg.qr(rng.normal(size=(20, 20)))[0]
    K = U @ np.diag(np.append(np.linspace(1.0, 10.0, 18), [-0.5, 0.0])) @ U.T
    smoother = DualEquations.of_kernel(K, LabelledGraph.build(rng.normal(size=20))).smoother()
    assert smoother.values.min() < -0.1
    assert np.isfinite(smoother.path(smoother.grid())).all()


def test_a_spread_of_1e6_leaves_other_features_their_weight_in_long_queries():
    """As with the features scaled by hand, and an alpha for each of them."""
    rng = np.random.default_rng(0)
    q = np.repeat(np.arange(5), 1000)
    X = rng.normal(size=(5000, 3)) * [1e6, 1, 1]
    y = X[:, 1] + 0.1 * rng.normal(size=5000)
    check_against_refits(X, y, q, np.array([1e6, 1e3, 1.0, 1e-3]))


@pytest.mark.parametrize("sentinel", [1e9, 2147483647.0])
@pytest.mark.parametrize("lengths", [20, 300])
def test_a_price_with_a_sentinel_is_held_out_as_by_refits(sentinel, lengths):
    rng = np.random.default_rng(1)
    q = np.repeat(np.arange(1200 // lengths), lengths)
    X = rng.normal(size=(1200, 5))
    X[:, 2] = rng.integers(1, 500, 1200)
    X[rng.random(1200) < 0.02, 2] = sentinel
    y = np.round(X[:, 0] + 0.5 * rng.normal(size=1200))
    smoother = normal_equations(LabelledGraph.build(y, q), X).smoother()
    check_against_refits(X, y, q, smoother.grid()[::3])


def check_against_refits(X, y, q, alphas):
    graph = LabelledGraph.build(y, q)
    smoother = normal_equations(graph, X).smoother()
    assert smoother.lost_feature is None
    held = graph.restore(hold_out(smoother, graph, X, alphas)[0])
    case = Case(X, y, q, None, {"ties": "include", "balance": "examples", "regression_weight": 0.0})
    for query in range(0, q.max() + 1, max(1, (q.max() + 1) // 4)):
        out = q == query
        rest = LabelledGraph.build(y[~out], np.unique(q[~out], return_inverse=True)[1])
        D = rest.factor_rows(X[~out]).astype(np.longdouble)
        for k, alpha in enumerate(alphas):
            A, b = D.T @ D, D.T @ rest.target[:, 0]
            A[np.diag_indices(len(b))] += alpha
            wanted = case.centred((X[out] @ solve_extended(A, b)).astype(float), out)
            np.testing.assert_allclose(
                case.centred(held[k, out], out), wanted, atol=1e-7 * np.abs(wanted).max() + 1e-12
            )


def test_a_feature_that_rounding_hides_is_named():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(30, 40)) * np.where(np.arange(40) == 7, 1e-9, 1.0)
    graph = LabelledGraph.build(rng.normal(size=30), None)
    assert DualEquations.of_features(X, graph).smoother().lost_feature == 7
    assert DualEquations.of_features(X[:, 8:], graph).smoother().lost_feature is None
    wide = rng.normal(size=(400, 301))
    wide[:, 5] *= 1e-8
    smoother = normal_equations(LabelledGraph.build(rng.normal(size=400), None), wide).smoother()
    assert smoother.lost_feature is None
    assert smoother.least < 1e-12


@pytest.mark.parametrize("first", [[0.0, 2.0], [3.0]])
def test_an_alpha_that_is_lost_beside_what_one_query_alone_determines(first):
    X = np.array([*first, 0.0, 0.0])[:, None]
    y, q = np.array([0.0, 1.0, 1.0, 0.0])[-len(X) :], np.repeat([0, 1], [len(first), 2])
    graph = LabelledGraph.build(y, q, balance="pairs", regression_weight=float(len(first) == 1))
    smoother = normal_equations(graph, X).smoother()
    assert np.isfinite(hold_out(smoother, graph, X, np.array([1e-20, 1.0]))).all()


def test_several_queries_without_anything_to_compare():
    graph = LabelledGraph.build(np.ones(6), np.arange(6))
    smoother = normal_equations(graph, np.eye(6)).smoother()
    assert (smoother.grid() == 1.0).all()
    assert not hold_out(smoother, graph, np.eye(6), np.ones(2)).any()


def check_ties(held, numbers):
    """Scores of items of one number are the same number; in the order of the graph."""
    for number in np.unique(numbers):
        same = np.flatnonzero(numbers == number)
        assert (held[0][:, same] == held[0][:, same[:1]]).all()


def test_equal_items_are_tied_beside_outliers():
    rng = np.random.default_rng(3)
    X = rng.normal(size=(60, 4))
    X[::7] *= 1e5
    X[30:40] = X[20:30]
    y, q = rng.normal(size=60), np.repeat(np.arange(3), 20)
    X[21] = X[22]
    for ties, beta in (("include", 0.0), ("exclude", 0.0), ("include", 0.4)):
        graph = LabelledGraph.build(np.round(y), q, ties=ties, regression_weight=beta)
        for smoother in forms(Case(X, y, q, None, {}), graph):
            check_ties(hold_out(smoother, graph, X, smoother.grid()), np.where(graph.rows == 22, 21, graph.rows))


@pytest.mark.parametrize(("ties", "beta"), [("include", 0.0), ("exclude", 0.0), ("include", 0.4)])
def test_a_feature_that_varies_far_more_than_others_ties_only_equal_items(ties, beta):
    rng = np.random.default_rng(5)
    X, y, q = rng.normal(size=(60, 4)), rng.integers(0, 3, 60).astype(float), np.repeat(np.arange(3), 20)
    X[:, 1] *= 1e15
    X[21] = X[22]
    graph = LabelledGraph.build(y, q, ties=ties, regression_weight=beta)
    held = hold_out(normal_equations(graph, X).smoother(), graph, X, np.array([1e4, 1.0]))
    check_ties(held, np.where(graph.rows == 22, 21, graph.rows))
    assert [len(np.unique(scores)) for scores in held[0]] == [59, 59]


def test_held_out_preferences_are_not_tied_by_a_feature_that_varies_far_more_than_others():
    rng = np.random.default_rng(6)
    X, (i, j) = rng.normal(size=(20, 4)), rng.integers(0, 20, (2, 200))
    i, j = i[i != j], j[i != j]
    X[:, 1] *= 1e15
    model = RankRLSCV((1e4, 1.0), scoring="pair_accuracy").fit_pairs(X, i, j, new="votes")
    found = model.cv_results_["mean_score"]
    expected = (leave_preference_out(RankRLS(), X, i, j, alphas=[1e4, 1.0]) > 0).mean(axis=0)
    np.testing.assert_allclose(found, expected)


@pytest.mark.parametrize("ties", ["include", "exclude"])
@pytest.mark.parametrize("beta", [0.0, 0.5, 1.0])
def test_items_with_equal_features_are_tied_in_either_form(ties, beta):
    for seed in range(5):
        rng = np.random.default_rng(seed)
        X, y = rng.integers(0, 2, size=(24, 3)).astype(float), rng.normal(size=24).round()
        graph = LabelledGraph.build(y, np.arange(24) // 6, ties=ties, regression_weight=beta)
        numbers = np.unique(X[graph.rows] @ [1, 2, 4] + 8 * (graph.rows // 6), return_inverse=True)[1]
        for smoother in forms(Case(X, y, None, None, {}), graph):
            check_ties(hold_out(smoother, graph, X, np.geomspace(1e3, 1e-6, 7) * smoother.top), numbers)


def test_items_that_a_kernel_matrix_rounds_are_tied_if_they_are_equal():
    for seed in range(5):
        rng = np.random.default_rng(seed)
        X, q = rng.integers(0, 2, size=(40, 3)).astype(float), np.arange(40) // 8
        noise = 2.2e-16 * rng.integers(-1, 2, size=(40, 40))
        K = gaussian(X, X, 0.3) * (1.0 + noise + noise.T)
        w = np.where(rng.random(40) < 0.3, 1e-9, 1.0)  # the scores of some items are not read from F f
        graph = LabelledGraph.build(rng.normal(size=40), q, weights=w, balance="pairs")
        smoother = DualEquations.of_kernel(K, graph).smoother()
        held = hold_out(smoother, graph, None, np.geomspace(1e3, 1e-9, 9) * smoother.top)
        check_ties(held, (X @ [1, 2, 4] + 8 * q)[graph.rows])


@pytest.mark.parametrize(("ties", "beta"), [("include", 0.0), ("exclude", 0.0), ("include", 0.3)])
def test_parts_and_orders_of_a_dual_smoother_have_its_scores(ties, beta):
    rng = np.random.default_rng(0)
    X, y, q = rng.normal(size=(40, 6)), rng.integers(0, 3, 40), rng.integers(0, 6, 40)
    w = np.where(rng.random(40) < 0.3, 1e-9, 1.0)  # next to no weight
    graph = LabelledGraph.build(y, q, weights=w, ties=ties, balance="pairs", regression_weight=beta)
    smoother = DualEquations.of_kernel(gaussian(X, X, 0.1), graph).smoother()
    alphas, order = np.array([1.0, 1e-3]) * smoother.top, rng.permutation(6)
    whole, taken = hold_out(smoother, graph, None, alphas), graph.take(order)
    again = hold_out(smoother, taken, None, alphas)
    parts = [hold_out(smoother, graph.part(k, k + 1), None, alphas) for k in range(6)]
    wanted = graph.restore(whole)
    np.testing.assert_allclose(taken.restore(again), wanted, atol=1e-10)
    np.testing.assert_allclose(graph.restore(np.concatenate(parts, axis=-1)), wanted, atol=1e-10)


@pytest.mark.parametrize("gamma", [0.1, 0.01, 1e-5])
def test_equal_items_are_tied_in_preferences_by_a_kernel(gamma):
    for seed in range(5):
        rng = np.random.default_rng(seed)
        X = np.tile(rng.normal(size=(20, 3)), (2, 1))
        i, j = np.triu_indices(40, 1)
        graph = PreferenceGraph.build(i, j, 40, strength=rng.normal(size=780))
        smoother = ItemSmoother.of_kernel(gaussian(X, X, gamma), graph)
        alphas = np.geomspace(1.0, 1e-6, 4) * smoother.top
        for part, held in hold_out_chunks(smoother, graph, X, alphas, lambda part, held: (part, held)):
            equal = part.losers == part.winners + 20
            assert not held[0][:, equal].any()
            assert held[0][:, ~equal].any(axis=0).all()


def test_outliers_and_large_labels_do_not_part_equal_items():
    """A query of outliers decides how large alphas and eigenvalues are; other queries' scores are small beside both."""
    for seed in range(5):
        rng = np.random.default_rng(seed)
        q = np.arange(60) // 10
        X = np.column_stack((1e5 * rng.normal(size=60) * (q == 0), rng.integers(0, 2, size=(60, 5))))
        w = np.where(rng.random(60) < 0.2, 1e-8, 1.0)  # and items of next to no weight
        graph = LabelledGraph.build(rng.normal(size=60), q, weights=w, balance="pairs")
        smoother = DualEquations.of_kernel(X @ X.T, graph).smoother()
        held = hold_out(smoother, graph, None, np.array([5e-3, 1e-4, 1e-6]) * smoother.top)
        check_ties(held, np.where(q == 0, 1000 + np.arange(60), X[:, 1:] @ [1, 2, 4, 8, 16] + 32 * q)[graph.rows])


def test_a_dual_hold_out_loses_as_many_digits_as_alpha_has():
    rng = np.random.default_rng(0)
    X, y, q = rng.normal(size=(40, 6)), rng.normal(size=40), np.arange(40) // 5
    K = gaussian(X.astype(np.longdouble), X.astype(np.longdouble), 1.0)
    graph = LabelledGraph.build(y, q)
    smoother = DualEquations.of_kernel(K.astype(float), graph).smoother()
    shares = np.array([1e2, 1e-2, 1e-4, 1e-6])
    held = graph.restore(hold_out(smoother, graph, None, shares * smoother.top)[0])
    out, rest = q == 2, q != 2
    L = explicit_laplacian(y[rest], q[rest].tolist(), balance="examples")
    for k, share in enumerate(shares):
        a = refined_dual_coefficients(K[np.ix_(rest, rest)], L, y[rest], share * smoother.top)
        wanted = (K[np.ix_(out, rest)] @ a).astype(float)
        limit = max(1e-13, 8.0 * 2.2e-16 / share) * np.abs(wanted).max()
        np.testing.assert_allclose(held[k, out], wanted, rtol=0, atol=limit)


def rare_features(seed, queries, items):
    """Items that differ only in two features which no other query has are equal for the model without their query."""
    rng = np.random.default_rng(seed)
    q = np.repeat(np.arange(queries), items)
    common = np.repeat(rng.integers(0, 2, (queries, 3)), items, axis=0).astype(float)
    common[:: items - 1] = rng.integers(0, 2, common[:: items - 1].shape)
    X = np.zeros((len(q), 3 + 2 * queries))
    X[:, :3] = common
    X[np.arange(len(q)), 3 + 2 * q + rng.integers(0, 2, len(q))] = rng.integers(0, 3, len(q))
    return X, common, rng.normal(size=len(q)).round(), q


@pytest.mark.parametrize(("queries", "items"), [(6, 3), (6, 5), (3, 12), (4, 120)])
@pytest.mark.parametrize("rotated", [False, True])
@pytest.mark.parametrize("means", [False, True])
def test_what_only_a_held_out_query_determines_gets_no_weight(queries, items, rotated, means):
    for seed in range(5):
        X, common, y, q = rare_features(seed, queries, items)
        turn = np.linalg.qr(np.random.default_rng(seed).normal(size=(X.shape[1],) * 2))[0] if rotated else 1.0
        X = X @ turn if rotated else X
        graph = LabelledGraph.build(y, q)
        smoother = normal_equations(graph, X).smoother()
        held = hold_out(smoother, graph, X, np.geomspace(1.0, 1e-9, 7) * smoother.top)
        numbers = np.unique(np.column_stack((common, q)), axis=0, return_inverse=True)[1].ravel()[graph.rows]
        check_ties(held, numbers)


def test_the_preferences_of_an_item_compared_once_say_nothing_of_it():
    """The margin of two items that are compared with nothing else is 0: both are equally good for all one knows."""
    rng = np.random.default_rng(0)
    i, j = np.append(rng.integers(0, 5, 60), 10), np.append(rng.integers(5, 10, 60), 11)
    graph = PreferenceGraph.build(i, j, 12, strength=rng.normal(size=61))
    smoother = normal_equations(graph, np.eye(12)).smoother()
    alphas = np.geomspace(1.0, 1e-9, 7) * smoother.top
    *_, last = hold_out_chunks(smoother, graph, np.eye(12), alphas, lambda part, held: held)
    assert not last[0, :, -1].any()
    assert last[0, :, :-1].all()


def test_preferences_along_a_chain_of_items_are_held_out_as_by_refits():
    rng = np.random.default_rng(0)
    i = np.concatenate((np.arange(39), np.arange(39)))
    c = np.concatenate((np.where(np.arange(39) == 2, 1e-6, 1.0), np.full(39, 0.5)))
    s, X = rng.normal(size=78), rng.normal(size=(40, 40))
    graph = PreferenceGraph.build(i, i + 1, 40, strength=s, weights=c)
    F = np.sqrt(graph.weights)[:, None] * (X[graph.winners] - X[graph.losers])
    t = graph.target[:, 0]
    smoother = normal_equations(graph, X).smoother()
    alphas = np.geomspace(1.0, 1e-9, 4) * smoother.top
    held = hold_out_chunks(smoother, graph, X, alphas, lambda part, held: held)
    held = np.concatenate(list(held), axis=-1)[0]
    for k, alpha in enumerate(alphas):
        for e in range(0, graph.n_rows, 10):
            out = np.arange(graph.n_rows) == e
            wanted = F[e] @ stacked_solution(F[~out], t[~out], alpha) / np.sqrt(graph.weights[e])
            np.testing.assert_allclose(held[k, e], wanted, atol=1e-7)


@pytest.mark.parametrize("alpha", [1e-3, 1e-2, 1.0])
def test_a_direction_that_others_hardly_determine_is_kept_beside_one_that_rounding_hides(alpha):
    """Scores are of first order in what the others know, 7e-5; its square is all that tells it from rounding."""
    own = np.array([[1.0, 0.0, 0.0], [-1.0, 0.0, 0.0], [0.5, 1e-5, 0.0], [0.0, -1e-5, 0.0]])
    sides = 7e-5 * np.array([[1.0, 1e-5, 0.0], [1.0, -0.3e-5, 1e4], [0.3, 1e-5, -1e4]])
    X = np.vstack((own, *([side, -side] for side in sides)))
    y = np.array([1.0, 0.0, 2.0, 1.0, 1.0, 0.0, 0.0, 1.0, 2.0, 0.0])
    qid = np.array([0, 0, 0, 0, 1, 1, 2, 2, 3, 3])
    model = RankRLS(alpha, balance="pairs", solver="primal")
    found = leave_query_out(model, X, y, qid=qid)[:4]
    expected = model.fit(X[4:], y[4:], qid=qid[4:]).predict(X[:4])
    np.testing.assert_allclose(found - found.mean(), expected - expected.mean(), rtol=1e-6)
