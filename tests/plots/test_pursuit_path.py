"""A drawn path is the path."""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest

from rankrls import CoRankingPursuit, RankingPursuit, RankingPursuitCV
from rankrls._errors import InputError
from rankrls.metrics import disagreement_error, ndcg
from rankrls.plots import PursuitPathDisplay


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(80, 6)), columns=[f"word{k}" for k in range(6)])
    y = np.round(2 * X["word4"] + X["word1"] + rng.normal(size=80)).to_numpy()
    return X, y - y.min(), np.repeat(np.arange(16), 5)


def labels(display):
    return [text.get_text() for text in display.ax_.get_xticklabels()]


def test_a_path_by_the_loss_left(data):
    X, y, qid = data
    model = RankingPursuit(4, dictionary="features").fit(X, y, qid=qid)
    display = PursuitPathDisplay.from_estimator(model)
    np.testing.assert_allclose(display.line_.get_ydata(), model.path_.losses[1:] / model.path_.losses[0])
    assert display.line_.get_xdata().tolist() == [1, 2, 3, 4]
    assert labels(display) == [f"word{k}" for k in model.path_.indices]
    plain = PursuitPathDisplay.from_path(model.path_, color="black")
    assert labels(plain) == [str(k) for k in model.path_.indices]
    assert plain.line_.get_color() == "black"
    assert plain.chosen_ is None
    assert plain.band_ is None


def test_on_data_of_ones_own(data):
    X, y, qid = data
    model = RankingPursuit(3).fit(X, y, qid=qid)
    figure, ax = plt.subplots()
    names = [f"document {k}" for k in range(80)]
    display = PursuitPathDisplay.from_estimator(model, X, y, qid=qid, names=names, ax=ax)
    wanted = [disagreement_error(y, scores, qid=qid) for scores in model.staged_predict(X)]
    np.testing.assert_allclose(display.line_.get_ydata(), wanted)
    assert display.ax_ is ax
    assert display.figure_ is figure
    assert labels(display) == [names[k] for k in model.basis_indices_]
    display = PursuitPathDisplay.from_estimator(model, X, y, qid=qid, scoring="ndcg@3")
    wanted = [ndcg(y, scores, qid=qid, k=3) for scores in model.staged_predict(X)]
    np.testing.assert_allclose(display.line_.get_ydata(), wanted)
    assert display.ax_.get_ylabel() == "ndcg@3"


def test_the_held_out_curve_of_the_choice(data):
    X, y, qid = data
    model = RankingPursuitCV(5, gamma=(0.01, 0.3), cv=3).fit(X, y, qid=qid)
    display = PursuitPathDisplay.from_estimator(model)
    rows = model.cv_results_["gamma"] == model.best_params_["gamma"]
    np.testing.assert_array_equal(display.line_.get_ydata(), model.cv_results_["mean_score"][rows])
    stages = model.best_params_["n_basis"]
    assert display.chosen_.get_xdata().tolist() == [stages]
    assert display.chosen_.get_ydata().tolist() == [model.best_score_]
    assert display.band_ is not None
    assert labels(display) == [str(k) for k in model.path_.indices] + [""] * (5 - stages)
    assert "3 folds of 16 queries" in display.ax_.get_ylabel()


def test_several_views(data):
    X, y, qid = data
    model = CoRankingPursuit(3, shared_basis=False).fit(X, y, qid=qid)
    display = PursuitPathDisplay.from_estimator(model)
    assert labels(display)[0] == ", ".join(str(k) for k in np.unique(model.path_.indices[0]))
    assert len(PursuitPathDisplay.from_estimator(model, X, y, qid=qid).values) == 3


def test_many_stages_have_no_names():
    display = PursuitPathDisplay(np.linspace(1, 0, 60), names=range(60)).plot()
    assert display.ax_.get_xlabel() == "number of terms"


def test_lengths_must_agree():
    for name, given in (("names", ["a", "b"]), ("errors", [0.1])):
        with pytest.raises(InputError, match=f"3 stages .* {len(given)}") as error:
            PursuitPathDisplay([1, 2, 3], **{name: given})
        assert error.value.parameter == name
