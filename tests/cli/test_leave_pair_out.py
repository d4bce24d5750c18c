"""``cv --leave-pair-out`` says what leave_pair_out finds."""

import numpy as np
import pytest

from rankrls import RankRLS
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
    expected = leave_pair_out(RankRLS(), table.X, table.y, alphas=[1.0, 10.0, 100.0])
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


def test_an_automatic_grid_and_a_note_about_scaling(patients, rankrls):
    found = rankrls("cv", patients, "--global", "--leave-pair-out", "--scale", "standard", "--json")
    assert len(found.json["curve"]) == 21
    assert found.json["notes"] == ["the features were scaled with the held-out rows in view."]


@pytest.mark.parametrize(
    ("options", "match"),
    [
        ((), "--global"),
        (("--global", "--cv", "3"), "--leave-pair-out and --cv exclude each other"),
        (("--global", "--vali", "x.txt"), "--leave-pair-out and --vali exclude"),
        (("--global", "--metric", "map"), "--leave-pair-out and --metric exclude"),
        (("--global", "--rule", "one_se"), "--rule means nothing to --leave-pair-out"),
        (("--global", "--ties", "both"), "--ties exclude makes the graph depend"),
        (("--global", "--alphas", "0"), "needs alpha > 0"),
    ],
)
def test_refusals(options, match, patients, refused):
    refused("cv", patients, "--leave-pair-out", *options, match=match)
