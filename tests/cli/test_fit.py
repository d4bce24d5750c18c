"""``fit`` and ``cv`` choose, learn and print what the estimator says."""

import gzip
import os

import numpy as np
import pytest
from tests.refusals import Refusal

from rankrls import RankRLS, RankRLSCV, load, save
from rankrls.cli import _values
from rankrls.io import load_letor
from rankrls.metrics import evaluate, resolve_measure
from rankrls.persistence import read_info
from rankrls.preprocessing import QueryMinMaxScaler, QueryStandardScaler


def same_choice(result, estimator):
    assert result.json["chosen"]["alpha"] == estimator.alpha_
    assert result.json["selection"]["value"] == pytest.approx(estimator.best_score_, rel=1e-12)
    assert result.json["selection"]["standard_error"] == pytest.approx(estimator.best_score_error_, rel=1e-12)
    assert result.json["selection"]["how"] == estimator.selection_
    for name, value in estimator.best_params_.items():
        assert result.json["chosen"][name] == value


def test_leave_query_out_by_default(files, rankrls):
    result = rankrls("fit", files / "train.txt", "--model", files / "m.rankrls", "--json")
    assert result.status == 0
    table = load_letor(files / "train.txt")
    expected = RankRLSCV().fit(table.X, table.y, qid=table.qid)
    assert result.json["selection"]["how"] == "leave-query-out over 12 queries"
    same_choice(result, expected)
    np.testing.assert_array_equal(load(files / "m.rankrls").predict(table.X), expected.predict(table.X))
    found = result.json["measures"]["held_out"]
    wanted = evaluate(
        table.y, expected.held_out_scores_, qid=table.qid, measures=["map", "ndcg@5", "p@10", "mrr", "disagreement"]
    )
    for name, value in wanted.items():
        assert found[name]["value"] == pytest.approx(value, rel=1e-12)
    assert result.json["model"] == str(files / "m.rankrls")
    assert result.json["seconds"].keys() == {"reading", "fitting", "judging", "saving"}
    assert not result.err


@pytest.mark.parametrize("scale", ["none", "minmax", "standard"])
def test_validation_and_test_data(scale, files, rankrls):
    train, vali, test = (load_letor(files / f"{name}.txt") for name in ("train", "vali", "test"))
    result = rankrls(
        *("fit", files / "train.txt", "--vali", files / "vali.txt", "--test", files / "test.txt", "--scale", scale),
        *("--metric", "ndcg@3", "--kernel", "rbf", "--gamma", "0.01,0.1,auto", "-m", files / "m.rankrls", "--json"),
    )
    scaler = {"none": None, "minmax": QueryMinMaxScaler(), "standard": QueryStandardScaler()}[scale]

    def scaled(table):
        return table.X if scaler is None else scaler.fit(table.X, qid=table.qid).transform(table.X, qid=table.qid)

    expected = RankRLSCV(kernel="rbf", gamma=(0.01, 0.1, None), scoring="ndcg@3").fit(
        scaled(train), train.y, qid=train.qid, X_val=scaled(vali), y_val=vali.y, qid_val=vali.qid
    )
    same_choice(result, expected)
    assert result.json["measures"].keys() == {"validation", "test"}
    for role, table in (("validation", vali), ("test", test)):
        values = evaluate(table.y, expected.predict(scaled(table)), qid=table.qid, measures=["ndcg@3"], per_query=True)[
            "ndcg@3"
        ]
        found = result.json["measures"][role]["ndcg@3"]
        assert found["value"] == pytest.approx(values.mean(), rel=1e-12)
        assert found["standard_error"] == pytest.approx(values.std(ddof=1) / np.sqrt(12), rel=1e-12)
        assert found["queries"] == 12
    assert result.json["measures"]["validation"]["ndcg@3"]["value"] == pytest.approx(expected.best_score_)
    assert result.json["data"]["test"]["sha256"] == test.sha256
    assert result.json["data"]["train"]["labels"] == {f"{v:g}": int((train.y == v).sum()) for v in np.unique(train.y)}


def test_every_option_reaches_the_estimator(files, rankrls):
    result = rankrls(
        *("fit", files / "train.txt", "-m", files / "m.rankrls", "--json", "--kernel", "poly", "--degree", "2,3"),
        *("--coef0", "0.5,2", "--alphas", "0.1:1000:9", "--ties", "both", "--balance", "pairs,queries"),
        *("--regression-weight", "0.1", "--metric", "map", "--convention", "trec", "--rule", "one_se", "--cv", "4"),
    )
    table = load_letor(files / "train.txt")
    expected = RankRLSCV(
        tuple(np.geomspace(0.1, 1000, 9)),
        cv=4,
        scoring=resolve_measure("map", "trec"),
        rule="one_se",
        kernel="poly",
        degree=(2, 3),
        coef0=(0.5, 2.0),
        ties=("include", "exclude"),
        balance=("pairs", "queries"),
        regression_weight=0.1,
    ).fit(table.X, table.y, qid=table.qid)
    assert result.json["chosen"]["alpha"] == pytest.approx(expected.alpha_, rel=1e-12)
    assert result.json["selection"]["how"] == expected.selection_
    saved = load(files / "m.rankrls")
    for name in ("ties", "balance", "degree", "coef0"):
        assert saved.best_params_[name] == expected.best_params_[name]
    np.testing.assert_allclose(saved.predict(table.X), expected.predict(table.X), rtol=1e-9)


def test_the_model_file_says_where_it_comes_from(files, rankrls):
    rankrls(
        *("fit", files / "train.txt", "--test", files / "test.txt", "-m", files / "m.rankrls", "--scale", "minmax"),
        *("--metric", "map"),
    )
    info = read_info(files / "m.rankrls")
    assert info["steps"] == ["QueryMinMaxScaler"]
    assert info["selection"]["measure"] == "map"
    assert info["given"]["data"]["train"]["sha256"] == load_letor(files / "train.txt").sha256
    assert info["given"]["measures"]["test"]["map"]["queries"] == 12
    shown = rankrls("info", files / "m.rankrls")
    assert shown.status == 0
    for word in ("map", "leave-query-out over 12 queries", "QueryMinMaxScaler", "numpy", "minmax", "train.txt"):
        assert word in shown.out
    assert rankrls("info", files / "m.rankrls", "--json").json == {"file": str(files / "m.rankrls"), **info}


@pytest.mark.parametrize(
    "given",
    [
        {"measures": {"test": {"ndcg": {"value": "told"}}}},
        {"measures": {"test": {"ndcg": {"value": 1.0, "standard_error": ["told"]}}}},
        {"measures": {"test": {"ndcg": "told"}}},
        {"measures": {"test": "told"}},
        {"columns_used": "told"},
        {"columns_used": {"price": "told"}},
        {"columns_used": ["told"]},
        {"data": "told"},
        {"pairs": {"train": "told"}},
    ],
    ids=str,
)
def test_what_others_saved_under_the_names_of_fit_is_shown_as_it_is(given, files, rankrls):
    save(RankRLS().fit([[1.0], [0.0]], [1, 0]), files / "other.rankrls", provenance=given)
    shown = rankrls("info", files / "other.rankrls")
    assert (shown.status, shown.err) == (0, "")
    assert "told" in shown.out


def test_what_people_read(files, rankrls):
    result = rankrls("fit", files / "train.txt", "--test", files / "test.txt", "-m", files / "m.rankrls")
    for word in ("Data", "Chosen by leave-query-out over 12 queries, from 21 candidates", "alpha", "ndcg@10", "± 0."):
        assert word in result.out
    assert "held out" in result.out
    assert f"Saved {files / 'm.rankrls'}" in result.out
    assert result.err == ""
    assert max(map(len, result.out.splitlines())) <= 200


def test_quiet_and_verbose(files, rankrls):
    quiet = rankrls("fit", files / "train.txt", "-m", files / "m.rankrls", "--alphas", "1,2,3", "--quiet")
    assert (quiet.status, quiet.out, quiet.err) == (0, "", "")
    verbose = rankrls("fit", files / "train.txt", "-m", files / "m.rankrls", "--verbose")
    for word in ("reading", "choosing and fitting", "judging", "saving"):
        assert word in verbose.err


def test_a_choice_at_the_edge_is_noted(files, rankrls):
    result = rankrls("fit", files / "train.txt", "-m", files / "m.rankrls", "--alphas", "1e6,1e7,1e8", "--json")
    assert result.json["alpha_at_edge"] is True
    assert "is the largest of its grid" in result.json["notes"][0]
    assert result.err.startswith("rankrls: note: the chosen alpha")


@pytest.mark.parametrize(
    ("method", "options", "chosen", "end", "widen"),
    [
        ("cg", ["--alphas", "1e6,1e7,1e8"], "alpha", "largest", "--alphas lo:hi:n"),
        (
            "sparse",
            ["--kernel", "rbf", "--n-basis", "9", "--alphas", "1e6,1e7,1e8"],
            "alpha",
            "largest",
            "--alphas lo:hi:n",
        ),
        ("ranksvm", ["--Cs", "10,20,30"], "C", "smallest", "--Cs lo:hi:n"),
        ("pursuit", ["--max-basis", "1"], "n_basis", "largest", "--max-basis P"),
        ("rankrls", ["--kernel", "rbf", "--gamma", "1e4,2e4,3e4"], "gamma", "smallest", "--gamma a,b,c"),
    ],
    ids=["cg", "sparse", "ranksvm", "pursuit", "gamma"],
)
def test_every_method_notes_a_choice_at_the_edge(method, options, chosen, end, widen, files, rankrls):
    model = files / "m.rankrls"
    result = rankrls("fit", files / "train.txt", "-m", model, "--method", method, *options, "--json")
    assert result.json[f"{chosen}_at_edge"] is True
    [note] = [note for note in result.json["notes"] if f"chosen {chosen.replace('_', ' ')}, " in note]
    assert note.startswith(f"the chosen {chosen.replace('_', ' ')}, {result.json['chosen'][chosen]:.3g}, is the {end}")
    assert f"a wider one ({widen})" in note
    assert read_info(model)["selection"][f"{chosen}_at_edge"] is True


def test_one_alpha_is_judged_too(files, rankrls):
    result = rankrls("fit", files / "train.txt", "-m", files / "m.rankrls", "--alphas", "2.5", "--json")
    assert result.json["chosen"]["alpha"] == 2.5
    assert result.json["alpha_at_edge"] is False
    assert 0 < result.json["selection"]["value"] < 0.5


def test_global_ranking(files, rows, letor, rankrls, refused):
    X, y, _ = rows(1)
    letor(files / "flat.txt", X, y)
    message = refused("fit", files / "flat.txt", "-m", files / "m.rankrls", Refusal("no line has a qid"))
    assert "--global" in message
    result = rankrls("fit", files / "flat.txt", "-m", files / "m.rankrls", "--global", "--json")
    assert result.json["selection"]["how"].startswith("leave-pair-out")
    assert result.json["data"]["train"]["queries"] is None
    expected = RankRLSCV().fit(X, y)
    assert result.json["chosen"]["alpha"] == pytest.approx(expected.alpha_, rel=1e-9)
    # qid is not heeded where one ranking is asked for
    same = rankrls("fit", files / "train.txt", "-m", files / "m.rankrls", "--global", "--json")
    assert same.json["chosen"]["alpha"] == result.json["chosen"]["alpha"]


@pytest.mark.parametrize("scale", ["none", "minmax"])
def test_features_agree_between_files(scale, files, rankrls, refused):
    (files / "short.txt").write_text("1 qid:1 1:0.5 2:1\n0 qid:1 1:2\n2 qid:1 2:-1\n")
    common = ("--scale", scale, "-m", files / "m.rankrls", "--json")
    result = rankrls("fit", files / "train.txt", "--test", files / "short.txt", *common)
    assert result.json["data"]["test"]["features"] == 5
    (files / "long.txt").write_text("1 qid:1 1:0.5 2:1\n0 qid:1 9:2\n")
    line = refused(
        "fit",
        files / "train.txt",
        "--test",
        files / "long.txt",
        *common,
        Refusal(parameter="n_features", file="long.txt", line=2),
    )
    assert "has 5 features" in line
    assert rankrls("fit", files / "train.txt", "--test", files / "long.txt", "--features", 9, *common).status == 0
    assert load(files / "m.rankrls").n_features_in_ == 9


def test_feature_zero_stays_feature_zero(files, rankrls):
    (files / "zero.txt").write_text("1 qid:1 0:1 1:5\n0 qid:1 0:0 1:5\n2 qid:2 0:3 1:5\n1 qid:2 0:2 1:5\n")
    (files / "later.txt").write_text("1 qid:1 1:5\n0 qid:1 1:6\n")
    result = rankrls("fit", files / "zero.txt", "--test", files / "later.txt", "-m", files / "m.rankrls", "--json")
    assert result.json["data"]["test"]["features"] == 2
    scores = rankrls("predict", files / "m.rankrls", files / "later.txt")
    np.testing.assert_allclose([float(v) for v in scores.out.split()], [0.0, 0.0], atol=1e-12)  # feature 0 counts


def test_sparse_and_compressed_files(tmp_path, rankrls):
    rng = np.random.default_rng(0)
    lines = []
    for i in range(120):
        columns = np.sort(rng.choice(400, size=6, replace=False)) + 1
        lines.append(f"{rng.integers(3)} qid:{i // 6} " + " ".join(f"{c}:{rng.normal():.3f}" for c in columns))
    path = tmp_path / "sparse.txt.gz"
    path.write_bytes(gzip.compress("\n".join(lines).encode()))
    result = rankrls("fit", path, "-m", tmp_path / "m.rankrls", "--kernel", "rbf,linear", "--json")
    assert result.status == 0, result.err
    assert result.json["data"]["train"]["sparse"] is True
    assert rankrls("fit", path, "-m", tmp_path / "m.rankrls", "--scale", "standard", "--json").status == 0


def test_measures_that_suit_the_labels(tmp_path, rows, letor, rankrls):
    X, y, qid = rows(2)
    letor(tmp_path / "real.txt", X, y - 1.25 * X[:, 0], qid)
    result = rankrls("fit", tmp_path / "real.txt", "-m", tmp_path / "m.rankrls", "--json")
    assert result.json["measures"]["held_out"].keys() == {"disagreement", "tau"}
    assert result.json["data"]["train"]["labels"]["distinct"] == len(y)
    named = rankrls("fit", tmp_path / "real.txt", "-m", tmp_path / "m.rankrls", "--metrics", "tau", "--json")
    assert named.json["measures"]["held_out"].keys() == {"tau"}


def test_threads_change_nothing_but_the_time(files, rankrls, monkeypatch):
    monkeypatch.delenv("RANKRLS_NUM_THREADS", raising=False)
    one, two = (
        rankrls("fit", files / "train.txt", "-m", files / "m.rankrls", "--json", "--threads", n).json for n in (1, 2)
    )
    assert one["chosen"]["alpha"] == pytest.approx(two["chosen"]["alpha"], rel=1e-9)
    assert "RANKRLS_NUM_THREADS" not in os.environ


def test_cv_prints_the_whole_curve(files, rankrls):
    table = load_letor(files / "train.txt")
    expected = RankRLSCV((0.1, 1.0, 10.0), ties=("include", "exclude"), scoring="map").fit(
        table.X, table.y, qid=table.qid
    )
    options = ("--alphas", "0.1,1,10", "--ties", "both", "--metric", "map")
    result = rankrls("cv", files / "train.txt", *options, "--json")
    curve = result.json["curve"]
    assert len(curve) == 6
    for name in ("alpha", "ties", "mean_score", "standard_error"):
        assert [entry[name] for entry in curve] == list(expected.cv_results_[name])
    assert result.json["best_index"] == expected.best_index_
    same_choice(result, expected)
    shown = rankrls("cv", files / "train.txt", *options)
    marked = [line for line in shown.out.splitlines() if line.startswith("chosen")]
    assert len(marked) == 1
    assert f"{expected.best_score_:.4f}" in marked[0]
    assert sorted(p.name for p in files.iterdir()) == ["test.txt", "train.txt", "vali.txt"]


def test_cv_by_folds_and_by_validation_data(files, rankrls):
    folds = rankrls("cv", files / "train.txt", "--cv", 3, "--json")
    assert folds.json["selection"]["how"].startswith("3 folds")
    vali = rankrls("cv", files / "train.txt", "--vali", files / "vali.txt", "--json")
    assert vali.json["selection"]["how"].startswith("validation data")
    assert vali.json["measures"].keys() == {"validation"}


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("auto", "auto"),
        (" auto ", "auto"),
        ("1", (1.0,)),
        ("0,1e-3, 5", (0.0, 1e-3, 5.0)),
        ("1:100:3", (1.0, 10.0, 100.0)),
        ("1e-3:1e3:2", (1e-3, 1e3)),
    ],
)
def test_grids(text, values):
    found = _values.grid("alphas", text)
    if values == "auto":
        assert found == "auto"
    else:
        np.testing.assert_allclose(found, values, rtol=1e-14)
        assert found[0] == values[0]
        assert found[-1] == values[-1]


def test_a_fine_grid_ends_where_it_should():
    found = _values.grid("alphas", "1e-7:12345.678:41")
    np.testing.assert_allclose(found, np.geomspace(1e-7, 12345.678, 41), rtol=1e-13)
    assert found[-1] == 12345.678


@pytest.mark.parametrize(
    "text", ["", "a", "1,,2", "nan", "inf", "-1", "1:2", "2:1:3", "0:1:3", "1:2:1", "1:2:3:4", "1:2:x"]
)
def test_grids_that_are_none(text):
    with Refusal("alphas", parameter="alphas"):
        _values.grid("alphas", text)
