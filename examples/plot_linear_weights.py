"""
What a linear ranker looks at
=============================

A linear model is read feature by feature. The data are scikit-learn's: ten measurements of 442 patients, to be ranked
by how far their diabetes will have gone a year later. All measurements have one scale, so that their weights can be
compared.
"""

# sphinx_gallery_thumbnail_number = 2

import matplotlib.pyplot as plt
from sklearn.datasets import load_diabetes

from rankrls import RankRLSCV
from rankrls.plots import AlphaSelectionDisplay, CoefficientsDisplay, RegularizationPathDisplay

X, y = load_diabetes(return_X_y=True, as_frame=True)
names = {"s1": "cholesterol", "s2": "ldl", "s3": "hdl", "s4": "chol./hdl", "s5": "triglycerides", "s6": "glucose"}
X = (X / X.std()).rename(columns=names)
best = RankRLSCV().fit(X, y)
simplest = RankRLSCV(rule="one_se").fit(X, y)

# %%
# Held-out pairs of patients do not tell the smaller values of alpha apart.

figure, axes = plt.subplots(figsize=(8, 4.2), layout="constrained")
AlphaSelectionDisplay.from_estimator(simplest, ax=axes)
plt.show()

# %%
# The weights do. Cholesterol and ldl rise and fall together in patients
# (their correlation is 0.9), and where little keeps them small their weights grow large with opposite signs, to say
# nearly the same. The one-standard-error rule stops before that.

figure, axes = plt.subplots(figsize=(8, 4.6), layout="constrained")
RegularizationPathDisplay.from_estimator(simplest, X, y, ax=axes)
plt.show()

# %%
# The two models by their weights. They order nearly as many held-out pairs rightly, but the left one would have it
# that cholesterol does good.

figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.8), layout="constrained")
CoefficientsDisplay.from_estimator(best, ax=left)
left.set_title(f"best: alpha = {best.alpha_:.3g}, {1 - best.best_score_:.3f} of pairs right")
CoefficientsDisplay.from_estimator(simplest, ax=right)
right.set_title(f"one standard error: alpha = {simplest.alpha_:.3g}, {1 - simplest.best_score_:.3f}")
plt.show()
