"""
Choosing alpha by leave-query-out
=================================

One factorization gives the held-out scores of every query for every regularization value. After ``fit``, the held-out
measure and its standard error over queries are known for the whole grid. Here 40 queries of 5 items have 150 features,
and each feature contributes a little to the utility.
"""

import matplotlib.pyplot as plt
import numpy as np

from rankrls import RankRLS, RankRLSCV
from rankrls.metrics import Measure
from rankrls.plots import AlphaSelectionDisplay

rng = np.random.default_rng(0)
utility_weights = rng.normal(size=150) / np.sqrt(150)


def some_queries(n):
    X = rng.normal(size=(n * 5, 150))
    y = X @ utility_weights + 0.5 * rng.normal(size=len(X))
    return X, y, np.repeat(np.arange(n), 5)


X, y, qid = some_queries(40)
model = RankRLSCV().fit(X, y, qid=qid)

# %%
# The held-out curve, and the measure of the same models on new queries. The one-standard-error rule, ``rule="one_se"``,
# selects the largest alpha within one standard error of the best.

X_new, y_new, qid_new = some_queries(500)
alphas = model.cv_results_["alpha"]
on_new = [
    Measure("disagreement")(y_new, RankRLS(alpha).fit(X, y, qid=qid).predict(X_new), qid=qid_new) for alpha in alphas
]

figure, axes = plt.subplots(figsize=(8, 4.2), layout="constrained")
axes.plot(alphas, on_new, color="black", linestyle="--", label="500 new queries")
AlphaSelectionDisplay.from_estimator(model, ax=axes, label="leave-query-out on 40 queries, one fit")
axes.set(ylabel="disagreement error")
plt.show()
