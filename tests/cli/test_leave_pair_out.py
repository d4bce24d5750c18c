"""``cv --leave-pair-out`` says what leave_pair_out finds."""

import numpy as np
import pytest
from tests.refusals import Refusal

from rankrls import RankRLS, SparseRankRLS
from rankrls.io import load_letor
from rankrls.model_selection import leave_pair_out


@pytest.fixture
def patients(tmp_path, letor):
    rng = np.random.default_rng(4)
    y = rng.integers(2, size=24)
    return letor(tmp_path / "patients.txt", rng.normal(size=(24, 40)) + 0.3 * y[:, None], y)


def test_one_ranking(patients, rankrls):
    table = load_letor(patients)
    found = rankrls("cv", patients, "--global", "--leave-pair-out", "--alphas", "1:100:3", "--json")
    assert found.status == 0, found.err
    expected = leave_pair_out(RankRLS(), table.X, table.y, alphas=[100.0, 10.0, 1.0])
    curve = found.json["curve"]
    np.testing.assert_allclose([e["alpha"] for e in curve], expected.alpha)
    np.testing.assert_allclose([e["c_index"] for e in curve], expected.score)
    np.testing.assert_allclose([e["standard_error"] for e in curve], expected.standard_error)
    np.testing.assert_allclose([(e["low"], e["high"]) for e in curve], np.column_stack(expected.interval))
    assert found.json["how"] == f"leave-pair-out over {expected.n_pairs} pairs"
    assert found.json["interval_method"] == expected.interval_method
    best = curve[found.json["best_index"]]
    assert best["c_index"] == max(expected.score)
    assert best["alpha"] == expected.alpha[expected.score == max(expected.score)].max()
    shown = rankrls("cv", patients, "--global", "--leave-pair-out", "--alphas", "1:100:3")
    assert f"{best['c_index']:.4f}" in shown.out
    assert "95 % interval" in shown.out


def test_pairs_inside_queries_and_several_candidates(files, rankrls):
    table = load_letor(files / "train.txt")
    command = ("--leave-pair-out", "--kernel", "linear,rbf", "--gamma", "0.1", "--alphas", "2")
    found = rankrls("cv", files / "train.txt", *command, "--json")
    for entry, kernel in zip(found.json["curve"], ("linear", "rbf"), strict=True):
        model = RankRLS(2.0, kernel=kernel, gamma=0.1)
        assert entry["c_index"] == pytest.approx(leave_pair_out(model, table.X, table.y, qid=table.qid).score)
        assert entry["kernel"] == kernel
    assert "rbf" in rankrls("cv", files / "train.txt", *command).out


@pytest.mark.parametrize("basis", ["random", "kmeans", "pursuit"])
def test_a_basis(patients, rankrls, basis):
    table = load_letor(patients)
    options = ("--method", "sparse", "--kernel", "rbf", "--gamma", "0.01,0.1", "--n-basis", "9", "--random-state", "3")
    command = ("--global", "--leave-pair-out", "--alphas", "0.1,1", *options, "--basis", basis)
    found = rankrls("cv", patients, *command, "--json")
    assert found.status == 0, found.err
    curve = found.json["curve"]
    for part, gamma in zip((curve[:2], curve[2:]), (0.01, 0.1), strict=True):
        model = SparseRankRLS(kernel="rbf", gamma=gamma, n_basis=9, basis=basis, random_state=3)
        expected = leave_pair_out(model, table.X, table.y, alphas=[1.0, 0.1])
        np.testing.assert_allclose([e["c_index"] for e in part], expected.score)
        assert [e["gamma"] for e in part] == [gamma, gamma]
    assert found.json["notes"] == ["the basis was chosen with the labels of the held-out rows in view."] * (
        basis == "pursuit"
    )


def test_an_automatic_grid_and_a_note_about_scaling(patients, rankrls):
    found = rankrls("cv", patients, "--global", "--leave-pair-out", "--scale", "standard", "--json")
    assert len(found.json["curve"]) == 21
    assert found.json["notes"][0] == "the features were scaled with the held-out rows in view."


def test_the_simplest_within_one_standard_error(files, rankrls):
    command = ("cv", files / "train.txt", "--leave-pair-out", "--rule", "one_se", "--json")
    found = rankrls(*command).json
    curve = found["curve"]
    top = max(curve, key=lambda entry: entry["c_index"])
    enough = [e for e in curve if e["c_index"] >= top["c_index"] - top["standard_error"]]
    assert curve[found["best_index"]]["alpha"] == max(e["alpha"] for e in enough) > top["alpha"]


@pytest.mark.parametrize(
    ("options", "refusal"),
    [
        ((), Refusal("--global")),
        (("--global", "--cv", "3"), Refusal("--leave-pair-out", "--cv", "exclude", parameter="leave_pair_out")),
        (("--global", "--vali", "x.txt"), Refusal("--leave-pair-out", "--vali", "exclude", parameter="leave_pair_out")),
        (
            ("--global", "--metric", "map"),
            Refusal("--leave-pair-out", "--metric", "exclude", parameter="leave_pair_out"),
        ),
        (("--global", "--ties", "both"), Refusal("--ties exclude", parameter="cv")),
        (("--global", "--alphas", "0"), Refusal("alpha > 0", parameter="alpha")),
        (("--global", "--method", "sparse"), Refusal("kernel other than linear")),
        (("--global", "--method", "cg"), Refusal("--method rankrls and sparse", "cg would need")),
        (("--global", "--method", "ranksvm"), Refusal("ranksvm would need", "--cv or --vali")),
        (("--global", "--method", "rankrsl"), Refusal("--method", "one of", parameter="method")),
    ],
)
def test_refusals(options, refusal, patients, refused):
    refused("cv", patients, "--leave-pair-out", *options, refusal)
