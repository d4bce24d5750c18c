"""The bars are the weights."""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from tests.refusals import Refusal

from rankrls import RankRLS, RankSVM
from rankrls.plots import CoefficientsDisplay


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(60, 5)) * [1, 10, 0.1, 1, 1], columns=["a", "b", "c", "d", "e"])
    y = X.to_numpy() @ [2.0, -0.3, 10.0, -1.0, 0.5] + rng.normal(size=60)
    return X, y, np.repeat(np.arange(12), 5)


def labels(display):
    return [text.get_text() for text in display.ax_.get_yticklabels()]


def widths(display):
    return [bar.get_width() for bar in display.bars_]


def test_positive_above_negative_each_by_magnitude(data):
    X, y, qid = data
    model = RankRLS().fit(X, y, qid=qid)
    display = CoefficientsDisplay.from_estimator(model)
    weights = dict(zip(X.columns, model.coef_, strict=True))
    up = sorted((name for name in weights if weights[name] > 0), key=lambda name: -weights[name])
    down = sorted((name for name in weights if weights[name] < 0), key=lambda name: weights[name])
    assert len(up) >= 2
    assert len(down) == 2
    assert labels(display) == up + down
    assert widths(display) == [weights[name] for name in up + down]
    colours = {bar.get_facecolor() for bar in display.bars_[: len(up)]}
    assert len(colours) == 1
    assert colours.isdisjoint({bar.get_facecolor() for bar in display.bars_[len(up) :]})
    top, bottom = display.ax_.get_ylim()
    assert top > bottom  # the first bar is the uppermost
    assert display.ax_.get_xlabel() == "weight"


def test_some_of_them():
    weights = [0.1, -2.0, 0.0, 3.0, -4.0]
    figure, ax = plt.subplots()
    display = CoefficientsDisplay(weights, top=3).plot(ax=ax, color="black")
    assert display.indices.tolist() == [3, 4, 1]
    assert labels(display) == ["x3", "x4", "x1"]
    assert display.ax_.get_xlabel() == "weight (3 of 5 features)"
    assert display.ax_ is ax
    assert display.figure_ is figure
    assert {bar.get_facecolor() for bar in display.bars_} == {(0.0, 0.0, 0.0, 1.0)}
    everything = CoefficientsDisplay(weights, top=None)
    assert everything.indices.tolist() == [3, 0, 4, 1]  # a weight of 0 is no bar


@pytest.mark.parametrize("kind", ["dense", "sparse"])
def test_weights_that_can_be_compared(data, kind):
    X, y, qid = data
    values = X.to_numpy() if kind == "dense" else sparse.csr_array(X.to_numpy())
    model = RankRLS().fit(values, y, qid=qid)
    display = CoefficientsDisplay.from_estimator(model, values, names=X.columns)
    wanted = dict(zip(X.columns, model.coef_ * X.to_numpy().std(axis=0), strict=True))
    assert {name: pytest.approx(w) for name, w in zip(labels(display), widths(display), strict=True)} == wanted
    assert "standard deviation" in display.ax_.get_xlabel()


def test_a_pipeline_names_what_its_steps_make(data):
    texts = ["a red fox", "a lazy dog", "red wine", "dog food", "red dog", "lazy wine"]
    model = make_pipeline(TfidfVectorizer(), RankRLS(alpha=0.1)).fit(texts, [3, 0, 2, 0, 1, 1])
    display = CoefficientsDisplay.from_estimator(model, texts)
    X = model[0].transform(texts).toarray()
    wanted = dict(zip(model[0].get_feature_names_out(), model[-1].coef_ * X.std(axis=0), strict=True))
    assert {name: pytest.approx(w) for name, w in zip(labels(display), widths(display), strict=True)} == wanted
    X, y, _ = data
    model = make_pipeline(StandardScaler(), RankSVM()).fit(X, np.digitize(y, [0.0]))
    assert set(labels(CoefficientsDisplay.from_estimator(model))) == set(X.columns)
    nameless = make_pipeline(StandardScaler(), RankRLS()).fit(X.to_numpy(), y)
    assert set(labels(CoefficientsDisplay.from_estimator(nameless))) == {f"x{j}" for j in range(5)}
    alone = make_pipeline(RankRLS()).fit(X, y)
    assert set(labels(CoefficientsDisplay.from_estimator(alone, X))) == set(X.columns)


def test_several_targets(data):
    X, y, qid = data
    model = RankRLS().fit(X, np.column_stack([y, -2 * y]), qid=qid)
    display = CoefficientsDisplay.from_estimator(model, target=1)
    np.testing.assert_allclose(np.sort(widths(display)), np.sort(model.coef_[1]))
    with Refusal("2 targets", parameter="target"):
        CoefficientsDisplay.from_estimator(model)


def test_errors(data):
    X, y, qid = data
    with Refusal("not linear", "weights of features"):
        CoefficientsDisplay.from_estimator(RankRLS(kernel="rbf").fit(X, y, qid=qid))
    model = RankRLS().fit(X, y, qid=qid)
    with Refusal(parameter="names"):
        CoefficientsDisplay.from_estimator(model, names=["a", "b"])
    with Refusal("feature names should match", kind=ValueError):
        CoefficientsDisplay.from_estimator(model, X[["a", "b", "c"]])
