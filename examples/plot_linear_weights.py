"""
The weights of a linear model
=============================

The weights of a linear model show what each feature contributes. The data are scikit-learn's: ten measurements of 442
patients, who are ranked by the progression of their diabetes one year later. All measurements are standardized, so
their weights can be compared.
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
# On held-out pairs of patients, the smaller values of alpha are equally good.

figure, axes = plt.subplots(figsize=(8, 4.2), layout="constrained")
AlphaSelectionDisplay.from_estimator(simplest, ax=axes)
plt.show()

# %%
# The weights differ, however. Cholesterol and ldl have a correlation of 0.9. If alpha is small, their weights become
# large and have opposite signs, and nearly cancel. The one-standard-error rule chooses a larger alpha.

figure, axes = plt.subplots(figsize=(8, 4.6), layout="constrained")
RegularizationPathDisplay.from_estimator(simplest, X, y, ax=axes)
plt.show()

# %%
# The weights of the two models. Both order nearly the same share of held-out pairs correctly, but according to the left
# one, high cholesterol is beneficial.

figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.8), layout="constrained")
CoefficientsDisplay.from_estimator(best, ax=left)
left.set_title(f"best: alpha = {best.alpha_:.3g}, {1 - best.best_score_:.3f} of pairs right")
CoefficientsDisplay.from_estimator(simplest, ax=right)
right.set_title(f"one standard error: alpha = {simplest.alpha_:.3g}, {1 - simplest.best_score_:.3f}")
plt.show()
