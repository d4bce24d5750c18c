"""
Is the result of a small study due to chance?
=============================================

Forty patients and 495 features: could the AUC be due to chance, and how optimistic is it after choosing alpha? The data
and the model are those of :doc:`/guide/small_clinical_data`.
"""

from __future__ import annotations

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.metrics import roc_auc_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import PolynomialFeatures, StandardScaler

from rankrls import RankRLSCV
from rankrls.model_selection import nested_estimate, permutation_test

# %%
# The study, and the patients outside of it.

X, benign = load_breast_cancer(return_X_y=True)
ill = 1 - benign
study = np.random.default_rng(0).permutation(len(ill)) < 40
expand = make_pipeline(StandardScaler(), PolynomialFeatures(2, include_bias=False), StandardScaler())
Z = expand.fit_transform(X[study])
model = RankRLSCV(scoring="pair_accuracy").fit(Z, ill[study])

# %%
# The choice is repeated on 999 permutations of the outcomes, which share one factorization, and without the patients of
# each of five folds.

permuted = permutation_test(model, Z, ill[study], n_permutations=999)
nested = nested_estimate(model, Z, ill[study])
elsewhere = roc_auc_score(ill[~study], model.predict(expand.transform(X[~study])))
print(permuted)

# %%
# Permuted outcomes have no relation to the features, so a value that is not optimistic would have a median of one half.

fig, ax = plt.subplots(figsize=(6.4, 3.4), layout="constrained")
ax.hist(permuted.permuted_scores, bins=30, color="#c3c9d1", label="permuted outcomes")
ax.axvline(np.median(permuted.permuted_scores), color="#6b7280", linestyle=":", label="their median")
ax.axvline(permuted.score, color="#2a6fb0", linewidth=5, alpha=0.4, label="score of the chosen alpha")
ax.axvline(nested.score, color="#2a6fb0", linestyle="--", label="nested estimate")
ax.axvline(elsewhere, color="#c8620a", label="patients outside the study")
ax.set(xlabel="AUC", ylabel="permutations")
ax.legend(frameon=False, loc="upper left", fontsize="small")
plt.show()
