"""Corners in which a model once went wrong, each against another form of itself."""

import numpy as np
import pytest
from scipy import sparse

from rankrls import (
    CGRankRLS,
    CoRankingPursuit,
    RankingPursuit,
    RankRLS,
    RankSVM,
    RankSVMCV,
    SparseRankRLS,
    load,
    save,
)
from rankrls.metrics import Measure
from rankrls.model_selection import leave_pair_out
from tests.models.oracles import ranking_data
from tests.refusals import Refusal

X, Y, QID = ranking_data(5, queries=20)


@pytest.mark.parametrize("density", [0.02, 0.05])
def test_ranksvm_on_features_of_low_density(density):
    noise = sparse.random_array((len(Y), 40), density=density, format="csr", rng=np.random.default_rng(1))
    S = sparse.csr_array(sparse.hstack(((Y * (np.arange(len(Y)) % 7 == 0))[:, None], noise)))
    models = [RankSVM(tol=1e-8).fit(Z, Y, qid=QID) for Z in (S, S.toarray())]
    np.testing.assert_allclose(models[0].predict(S), models[1].predict(S), atol=1e-3)


@pytest.mark.parametrize("scale", [1.0, 1e-3, 1e-5])
def test_ranksvm_ranks_however_small_its_weights(scale):
    """In value w = 0 is nearly optimal there, in its ranking it is not."""
    model = RankSVM().fit(scale * X, Y, qid=QID)
    assert np.linalg.norm(model.coef_) > 0.0
    tight = RankSVM(tol=1e-10).fit(scale * X, Y, qid=QID)
    distance = np.linalg.norm(model.coef_ - tight.coef_)
    assert distance <= 0.5 * np.linalg.norm(tight.coef_)
    errors = [Measure("disagreement")(Y, m.predict(X), qid=QID) for m in (model, tight)]
    assert errors[0] == pytest.approx(errors[1], abs=0.05)


def test_contradictory_preferences_still_end():
    model = RankSVM().fit_pairs(np.eye(3), [0, 1, 1, 2, 0, 2], [1, 0, 2, 1, 2, 0])
    np.testing.assert_allclose(model.coef_, 0.0, atol=1e-6)


def test_weighted_pairs_of_different_items_are_no_ties():
    x = np.array([1.0, 2.0, -3.0, -2.0, -1.0, 4.0])[:, None]
    y, w = [1.0, 2.0, 0.0, -1.0, 0.5, 0.3], [4.0, 1.0, 1.0, 2.0, 3.0, 1.0]
    found = [
        leave_pair_out(RankRLS(solver=solver), x, y, sample_weight=w, pairs=[(1, 0)]) for solver in ("primal", "dual")
    ]
    assert found[0].differences[0] == pytest.approx(0.1108, abs=1e-3)
    np.testing.assert_allclose(found[1].differences, found[0].differences)
    assert found[1].score == pytest.approx(found[0].score)


def test_a_linear_basis_of_zeros_is_refused():
    Z, y = np.r_[np.zeros((2, 2)), np.ones((3, 2))], np.arange(5.0)
    with Refusal("zero under this kernel", kind=ValueError):
        SparseRankRLS(kernel="linear", basis_indices=[0, 1]).fit(Z, y)


def test_automatic_cs_of_preferences_do_not_overflow():
    rng = np.random.default_rng(0)
    Z = rng.normal(size=(40, 3))
    pairs = rng.choice(40, size=(60, 2))
    pairs = pairs[pairs[:, 0] != pairs[:, 1]]
    winners, losers = np.where((Z[pairs[:, 0], 0] > Z[pairs[:, 1], 0])[:, None], pairs, pairs[:, ::-1]).T
    assert RankSVMCV().fit_pairs(Z, winners, losers).best_score_ < 0.1


def test_stages_of_a_model_whose_parameters_were_changed():
    model = RankingPursuit(3).fit(X, Y, qid=QID)
    stages = list(model.staged_predict(X))
    model.set_params(dictionary="features", kernel="linear")
    np.testing.assert_array_equal(list(model.staged_predict(X)), stages)


def test_views_by_slices_are_saved(tmp_path):
    n = X.shape[1]
    model = CoRankingPursuit(3, views=(slice(0, n // 2), {"features": slice(n // 2, n)})).fit(X, Y, qid=QID)
    save(model, tmp_path / "m.rankrls")
    again = load(tmp_path / "m.rankrls")
    assert again.views == model.views
    np.testing.assert_array_equal(again.predict(X), model.predict(X))


def test_conjugate_gradients_hold_out_the_same_queries_every_time():
    assert len({CGRankRLS().fit(X, Y, qid=QID).alpha_ for _ in range(3)}) == 1
