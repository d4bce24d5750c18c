"""The table of selected features, against models fitted on these features alone."""

import numpy as np
import pandas as pd
import pytest
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from rankrls import GreedyRankRLS, RankingPursuit, RankingPursuitCV, RankRLS
from rankrls._errors import InputError
from rankrls.inspection import selected_features
from rankrls.model_selection import leave_query_out

RNG = np.random.default_rng(0)
X, QID = RNG.normal(size=(120, 12)), np.repeat(np.arange(12), 10)
Y = X[:, 3] - 2 * X[:, 11] + 0.5 * X[:, 6] + RNG.normal(size=120)


def held_out_error(columns):
    """The squared error of rows less the means of their queries, each by a model without the query."""
    scores = leave_query_out(RankRLS(alpha=1.0), X[:, columns], Y, qid=QID) if columns else np.zeros(len(Y))
    apart = pd.Series(Y - scores).groupby(QID).transform(lambda values: values - values.mean())
    return float((apart**2).sum())


def test_greedy_gains_are_those_of_leave_query_out():
    model = GreedyRankRLS(3, alphas=[1.0]).fit(X, Y, qid=QID)
    found = pd.DataFrame(selected_features(model))
    errors = [held_out_error(found.feature[:k].tolist()) for k in range(4)]
    np.testing.assert_allclose(found.held_out, np.array(errors[1:]) / errors[0], rtol=1e-8)
    np.testing.assert_allclose(found.gain, -np.diff(errors) / errors[0], rtol=1e-8)
    np.testing.assert_array_equal(found.weight, model.coef_[model.selected_])
    assert found.name.tolist() == ["x11", "x3", "x6"]


@pytest.mark.parametrize("backfit", [True, False])
def test_pursuit_gains_are_those_of_its_folds(backfit):
    names = [f"gene{k}" for k in range(12)]
    model = RankingPursuitCV(8, dictionary="features", backfit=backfit, scoring="pair_accuracy")
    model.fit(pd.DataFrame(X, columns=names), Y, qid=QID)
    found = pd.DataFrame(selected_features(model))
    assert found.name.tolist() == [names[k] for k in model.basis_indices_]
    curve = model.cv_results_["mean_score"]
    first = [model.path_.indices.tolist().index(k) for k in found.feature]
    np.testing.assert_array_equal(found.held_out, curve[first])
    np.testing.assert_array_equal(found.gain[1:], [curve[k] - curve[k - 1] for k in first[1:]])
    assert np.isnan(found.gain[0])


def test_names_come_from_the_pipeline_and_others_are_refused():
    frame = pd.DataFrame(X, columns=[f"gene{k}" for k in range(12)])
    model = make_pipeline(StandardScaler(), RankingPursuit(2, dictionary="features")).fit(frame, Y)
    found = pd.DataFrame(selected_features(model))
    assert found.name.tolist() == ["gene11", "gene3"]
    assert found.gain.isna().all()
    for other in (RankRLS(), RankingPursuit(2)):
        with pytest.raises(InputError, match="does not select features"):
            selected_features(other.fit(X, Y))
