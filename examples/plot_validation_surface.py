"""
Three ways to stop conjugate gradients
======================================

One run of conjugate gradients gives the model of every regularization value after every iteration. Here 442 patients
are ranked by the progression of their diabetes after one year. The features are all products of up to three of ten
measurements. With these 285 features, 220 patients are easily overfitted.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_diabetes
from sklearn.preprocessing import PolynomialFeatures

from rankrls import CGRankRLS
from rankrls.metrics import Measure
from rankrls.plots import AlphaSelectionDisplay

X, y = load_diabetes(return_X_y=True)
X = PolynomialFeatures(3, include_bias=False).fit_transform(X / X.std(axis=0))
X /= X.std(axis=0)
order = np.random.default_rng(0).permutation(len(y))
train, validation, test = order[:220], order[220:331], order[331:]
ALPHAS = (0.0, *2.0 ** np.arange(-6, 14, 2))


def fitted(**options):
    model = CGRankRLS(max_iter=300, **options)
    return model.fit(X[train], y[train], X_val=X[validation], y_val=y[validation])


# %%
# Each curve is one alpha. Its right end is Tikhonov regularization; if alpha is too small, the model overfits. The
# dashed curve, alpha = 0, is best after a few iterations, which is early stopping. The hybrid takes the best point of
# all curves. The three choices are about equally good: 111 patients are too few to separate them.

tikhonov = fitted(alphas=ALPHAS, selection="tikhonov", tol=1e-3)
early = fitted(selection="early_stopping")
hybrid = fitted(alphas=ALPHAS)

figure, axes = plt.subplots(figsize=(8, 4.5), layout="constrained")
AlphaSelectionDisplay.from_estimator(tikhonov, ax=axes)
for model, name, color in ((early, "early stopping", "black"), (hybrid, "hybrid", "tab:orange")):
    axes.plot([model.n_iter_], [model.best_score_], "s", color=color, label=name)
axes.set(ylabel="disagreement error on 111 patients", ylim=(0.2, 0.47))
axes.legend(handles=[axes.lines[0], *axes.lines[-3:]])
plt.show()

# %%
# On the test patients:

for name, model in (("Tikhonov", tikhonov), ("early stopping", early), ("hybrid", hybrid)):
    error = Measure("disagreement")(y[test], model.predict(X[test]))
    print(f"{name:15} alpha {model.alpha_:<6g} iterations {model.n_iter_:<4d} test error {error:.3f}")
