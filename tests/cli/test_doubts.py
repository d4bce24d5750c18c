"""Features of which fit says that they should be looked at twice."""

import numpy as np
import pandas as pd
import pytest


@pytest.fixture
def table(tmp_path):
    rng = np.random.default_rng(0)
    grade = rng.integers(0, 3, 120)
    frame = pd.DataFrame({"label": grade, "qid": np.repeat(np.arange(10), 12)})
    frame = frame.assign(price=rng.normal(size=120).round(3) + grade, clicks=rng.integers(0, 50, 120))

    def write(**columns):
        frame.assign(**columns).to_csv(tmp_path / "t.csv", index=False)
        return tmp_path / "t.csv"

    return write, frame


@pytest.mark.parametrize(
    ("columns", "word"),
    [
        (lambda f: {"product_id": np.random.default_rng(1).permutation(9000)[:120]}, "product_id"),
        (lambda f: {"place": np.random.default_rng(1).permutation(120) + 7}, "place"),
        (lambda f: {"sold": f.label * 2.5 + 0.1 * f.qid}, "sold"),
        (lambda f: {"rank": -f.label}, "rank"),
    ],
)
def test_ids_and_leaks_are_noted(table, tmp_path, rankrls, columns, word):
    write, frame = table
    result = rankrls("fit", write(**columns(frame)), "-m", tmp_path / "m.rankrls")
    assert result.status == 0, result.err
    notes = [line for line in result.err.splitlines() if word in line]
    assert len(notes) == 1
    assert "price" not in notes[0]


def test_honest_features_are_listed_and_not_doubted(table, tmp_path, rankrls):
    write, frame = table
    many = {f"f{k}": np.random.default_rng(k).normal(size=120) for k in range(8)}
    result = rankrls("fit", write(**many, amount=frame.label + 0.4 * frame.price), "-m", tmp_path / "m.rankrls")
    assert "price, clicks, f0, f1, f2, f3 and 5 more" in result.out
    assert [line for line in result.err.splitlines() if "looks like" in line or "alone" in line] == []


def test_cv_says_so_too_and_flags_edges(table, rankrls):
    write, frame = table
    assert "sold" in rankrls("cv", write(sold=frame.label)).err
    assert "wider one" in rankrls("cv", write(), "--alphas", "1e6,1e7,1e8", "--metric", "pair_squared_error").err
