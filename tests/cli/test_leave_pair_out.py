"""``cv --leave-pair-out`` says what leave_pair_out finds."""

import numpy as np
import pytest

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
    ("options", "match"),
    [
        ((), "--global"),
        (("--global", "--cv", "3"), "--leave-pair-out and --cv exclude each other"),
        (("--global", "--vali", "x.txt"), "--leave-pair-out and --vali exclude"),
        (("--global", "--metric", "map"), "--leave-pair-out and --metric exclude"),
        (("--global", "--ties", "both"), "--ties exclude makes the graph depend"),
        (("--global", "--alphas", "0"), "needs alpha > 0"),
        (("--global", "--method", "sparse"), "give a kernel other than linear"),
        (("--global", "--method", "cg"), "--method rankrls and sparse can do; cg would need a refit for each pair"),
        (("--global", "--method", "ranksvm"), "ranksvm would need a refit for each pair. Judge it by --cv or --vali"),
        (("--global", "--method", "rankrsl"), "--method must be one of"),
    ],
)
def test_refusals(options, match, patients, refused):
    refused("cv", patients, "--leave-pair-out", *options, match=match)
