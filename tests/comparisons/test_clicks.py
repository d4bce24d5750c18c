"""The experiment on clicks, with small simulated collections."""

import numpy as np
import pytest

from comparisons import clicks

# the older ranking is a function of the features, which the estimate warns of
pytestmark = pytest.mark.filterwarnings("ignore::rankrls.InputWarning")


def queries(seed, n=60, size=25):
    """Queries whose grades follow one feature; the older ranking can see it too."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n * size, 3))
    return X, np.digitize(X[:, 0] + rng.normal(size=len(X)), [0.5, 1.5]).astype(float), np.repeat(np.arange(n), size)


def test_what_an_older_ranking_shows():
    X, y, qid = queries(0)
    (rows, grades, of_query), position = clicks.logged((X, y, qid), 0.1, np.random.default_rng(1))
    for query in range(60):
        assert position[of_query == query].tolist() == list(range(1, clicks.SHOWN + 1))
        assert {tuple(row) for row in rows[of_query == query]} <= {tuple(row) for row in X[qid == query]}
    assert grades[position <= 3].mean() > grades[position > 17].mean() + 0.5  # it knows some of what is relevant


def test_methods_are_judged_by_true_labels(monkeypatch):
    """Without the trees: known propensities and the true labels are what the simulation says they are."""
    monkeypatch.setattr(clicks, "trees", lambda tool, X, clicked, group, test, position=None: np.zeros(len(test)))
    found = clicks.judged(queries(0), queries(1), share=0.1, sessions=50, seed=0)
    error = found.pop("error")
    assert all(values.shape == (60,) for values in found.values())
    mean = {name: float(np.nanmean(values)) for name, values in found.items()}
    assert mean["true labels"] > mean["LightGBM"] + 0.1
    assert mean[clicks.OURS] == pytest.approx(mean["true labels"], abs=0.03)
    assert mean["known propensities"] == pytest.approx(mean["true labels"], abs=0.03)
    assert error.mean() < 0.1


def test_the_table_of_one_collection(monkeypatch, capsys, tmp_path):
    monkeypatch.setattr(clicks, "trees", lambda tool, X, clicked, group, test, position=None: np.zeros(len(test)))
    monkeypatch.setattr(clicks, "collections", lambda data, only: [("made up", [(queries(0), queries(1))])])
    monkeypatch.setattr(clicks, "SETTINGS", [(0.1, 100)])
    monkeypatch.setattr("sys.argv", ["clicks.py", "--data", str(tmp_path), "--draws", "2"])
    clicks.main()
    printed = capsys.readouterr().out
    assert "made up, policy of 10%, 100 sessions" in printed
    assert clicks.OURS in printed
