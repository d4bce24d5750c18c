"""Streamed fits over a basis against fits in memory over the same basis."""

from __future__ import annotations

import numpy as np
import pytest

import rankrls
from rankrls import SparseRankRLS, SparseRankRLSCV
from tests.refusals import Refusal
from tests.streaming.arrays import ArrayDataset, example
from tests.streaming.test_fit_dataset import CUTS, centred


@pytest.mark.parametrize("cuts", CUTS)
@pytest.mark.parametrize("kind", ["dense", "sparse", "float32"])
def test_one_alpha(kind, cuts):
    X, y, qid, w = example(3, csr=kind == "sparse", dtype=np.float32 if kind == "float32" else float, weights=True)
    for ties in ("include", "exclude"):
        given = {"ties": ties, "alpha": 0.3, "gamma": 0.2, "balance": "pairs"}
        streamed = SparseRankRLS(n_basis=12, **given).fit_dataset(ArrayDataset(X, y, qid, w, CUTS[cuts](len(y))))
        assert len(set(streamed.basis_indices_)) == 12
        assert (w[streamed.basis_indices_] > 0).all()
        fitted = SparseRankRLS(basis_indices=streamed.basis_indices_, **given).fit(X, y, qid=qid, sample_weight=w)
        a, b = (centred(model.predict(X), qid) for model in (streamed, fitted))
        np.testing.assert_allclose(a, b, atol=1e-8 * np.abs(b).max())
        assert streamed.n_iter_ == 1


@pytest.mark.parametrize("cuts", CUTS)
def test_the_choice_of_alpha_and_kernel(cuts):
    X, y, qid, w = example(4, weights=True, queries=20)
    model = SparseRankRLSCV(n_basis=10, kernel=("rbf", "linear"), gamma=(0.05, 0.5), scoring="map")
    streamed = model.fit_dataset(ArrayDataset(X, y, qid, w, CUTS[cuts](len(y))))
    fitted = SparseRankRLSCV(**{**model.get_params(), "basis_indices": streamed.basis_indices_})
    fitted.fit(X, y, qid=qid, sample_weight=w)
    for name in ("mean_score", "standard_error"):
        np.testing.assert_allclose(streamed.cv_results_[name], fitted.cv_results_[name], rtol=1e-9)
    assert streamed.best_index_ == fitted.best_index_
    assert streamed.best_params_.keys() == fitted.best_params_.keys()
    a, b = (centred(m.predict(X), qid) for m in (streamed, fitted))
    np.testing.assert_allclose(a, b, atol=1e-8 * np.abs(b).max())


def test_the_basis_depends_on_names_and_places_alone():
    X, y, qid, _ = example(6, queries=20)
    order = np.argsort(qid, kind="stable")
    taken = []
    for rows, cuts in ((np.arange(len(y)), ()), (np.arange(len(y)), tuple(range(5, len(y), 5))), (order, (20,))):
        data = ArrayDataset(X[rows], y[rows], qid[rows], cuts=cuts)
        model = SparseRankRLS(n_basis=9).fit_dataset(data)
        np.testing.assert_array_equal(model.X_fit_, X[rows][model.basis_indices_])
        taken.append(model.X_fit_)
    np.testing.assert_array_equal(taken[0], taken[1])
    np.testing.assert_array_equal(taken[0], taken[2])
    other = SparseRankRLS(n_basis=9, random_state=1).fit_dataset(ArrayDataset(X, y, qid))
    assert not np.array_equal(other.X_fit_, taken[0])


def test_rows_are_drawn_evenly():
    """Each row is drawn as often as another, over many seeds."""
    from rankrls.streaming import merged, run_leaf
    from rankrls.streaming.basis_rows import BasisJob

    X, y, qid, _ = example(6)
    data, counts = ArrayDataset(X, y, qid, cuts=(30,)), np.zeros(len(y))
    for seed in range(400):
        job = BasisJob(10, seed)
        counts[merged(job, [run_leaf(job, data, address) for address in data.parts]).numbers] += 1
    expected = 4000 / len(y)
    assert np.abs(counts - expected).max() < 5 * np.sqrt(expected)


@pytest.mark.parametrize("csr", [False, True])
def test_all_rows_in_the_basis_and_checkpoints(csr, tmp_path):
    X, y, qid, _ = example(2, csr=csr)
    data = ArrayDataset(X, y, qid, cuts=(30, 40))
    a = SparseRankRLSCV(n_basis=1000).fit_dataset(data, checkpoint=tmp_path)
    b = SparseRankRLSCV(n_basis=1000).fit_dataset(data, checkpoint=tmp_path)
    assert sorted(a.basis_indices_) == list(range(len(y)))
    np.testing.assert_array_equal(a.dual_coef_, b.dual_coef_)
    rankrls.save(a, tmp_path / "m.rankrls")
    np.testing.assert_array_equal(rankrls.load(tmp_path / "m.rankrls").predict(X), a.predict(X))


@pytest.mark.parametrize(
    ("model", "refusal"),
    [
        (SparseRankRLS(kernel="precomputed"), Refusal(parameter="kernel")),
        (SparseRankRLS(basis="kmeans"), Refusal(parameter="basis", remedy="random")),
        (SparseRankRLSCV(basis_indices=[1, 2]), Refusal(parameter="basis_indices", remedy="n_basis")),
        (SparseRankRLS(solver="cg"), Refusal(parameter="solver", remedy="direct")),
    ],
)
def test_what_needs_all_rows(model, refusal):
    X, y, qid, _ = example(2)
    with refusal:
        model.fit_dataset(ArrayDataset(X, y, qid))
