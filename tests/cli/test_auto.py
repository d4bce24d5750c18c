"""``--method auto``: the table of models, honest figures, query-wise scales through every command, refusals."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from rankrls import AutoRankRLS, load
from rankrls.selection import costs


@pytest.fixture
def table(tmp_path: Path) -> Path:
    rng = np.random.default_rng(0)
    qid = np.repeat(np.arange(24), 8)
    X = rng.normal(size=(192, 2))
    y = np.digitize(X @ [1.0, 0.5] + 0.3 * rng.normal(size=192), [0.3, 1.2])
    X = X * np.exp(1.5 * rng.normal(size=(24, 2)))[qid] + 30.0 * rng.normal(size=(24, 2))[qid]
    rows = [f"{label},{q},{a},{b}" for label, q, (a, b) in zip(y, qid, X.tolist(), strict=True)]
    path = tmp_path / "rows.csv"
    path.write_text("label,qid,a,b\n" + "\n".join(rows) + "\n")
    return path


def test_fit_prints_every_model_and_saves_the_chosen_one(rankrls: Any, table: Path, tmp_path: Path) -> None:
    model = tmp_path / "m.rankrls"
    command = ["fit", table, "--method", "auto", "--metric", "ndcg@5", "--within-query", "--nested", 3, "-m", model]
    out = rankrls(*command, "--json")
    assert out.status == 0
    found = json.loads(out.out)
    assert [row["model"] for row in found["models"]] == [m for m in ("linear", "degree 2", "gaussian") for _ in "rsq"]
    assert found["chosen"]["scale"] == "query"
    own = next(row for row in found["models"] if row["chosen"])
    assert found["selection"]["value"] == pytest.approx(own["mean_score"] - found["chosen"]["optimism"])
    assert found["selection"]["rule"] == "one_se"
    assert 0.0 < found["chosen"]["nested_score"] <= 1.0
    assert found["skipped"] == {}
    assert "held_out" not in found["measures"]
    assert type(load(model)) is AutoRankRLS
    scores = rankrls("predict", model, table)
    assert scores.status == 0
    assert len(scores.out.split()) == 192
    judged = rankrls("evaluate", model, table, "--metrics", "ndcg@5", "--json")
    assert judged.status == 0
    refused = rankrls("export", model, tmp_path / "m.json", "--format", "solr")
    assert refused.status == 2
    assert not (tmp_path / "m.json").exists()


def test_the_table_is_for_people_too(rankrls: Any, table: Path, tmp_path: Path) -> None:
    out = rankrls("fit", table, "--method", "auto", "--rule", "best", "-m", tmp_path / "m.rankrls")
    assert out.status == 0
    assert "behind" in out.out
    assert "optimism" in out.out
    assert out.out.count("gaussian") >= 2


@pytest.mark.parametrize(
    ("extra", "words"),
    [
        (["--vali", "TABLE"], ["labels", "--vali", "--test"]),
        (["--pairs", "TABLE"], ["labels", "preferences"]),
        (["--event", "a"], ["labels", "--event"]),
        (["--winner", "a", "--loser", "b"], ["labels", "preferences"]),
        (["--alphas", "1,2"], ["--alphas", "auto"]),
        (["--kernel", "rbf"], ["--kernel", "auto"]),
        (["--nested", "1"], ["--nested"]),
    ],
)
def test_what_means_nothing_to_it_is_refused(
    rankrls: Any, table: Path, tmp_path: Path, extra: list[str], words: list[str]
) -> None:
    extra = [str(table) if word == "TABLE" else word for word in extra]
    out = rankrls("fit", table, "--method", "auto", *extra, "-m", tmp_path / "m.rankrls")
    assert out.status == 2
    assert all(word in out.err for word in words)
    assert not (tmp_path / "m.rankrls").exists()


def test_skipped_models_are_noted(rankrls: Any, table: Path, tmp_path: Path) -> None:
    out = rankrls("fit", table, "--method", "auto", "--time-limit", "1e-9", "-m", tmp_path / "m.rankrls", "--json")
    assert out.status == 0
    assert len(json.loads(out.out)["skipped"]) == 5
    assert "skipped" in out.err


def test_a_matrix_that_does_not_fit_is_refused_with_what_to_take(
    rankrls: Any, table: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(costs, "free_memory", lambda: 1e5)
    monkeypatch.setattr(costs, "SURELY_SHORT", 0.0)
    out = rankrls("fit", table, "--kernel", "rbf", "-m", tmp_path / "m.rankrls")
    assert out.status == 2
    assert "--kernel" in out.err
    assert "--method sparse" in out.err
    assert out.err.count("\n") == 1
