"""
Which measurements order the patients
=====================================

Ranking pursuit with the features as its dictionary takes them one by one, each the one that explains most of what is
left of the differences between patients. The data are scikit-learn's: ten measurements of 442 patients, to be ranked by
how far their diabetes will have gone a year later.
"""

import matplotlib.pyplot as plt
from sklearn.datasets import load_diabetes
from sklearn.model_selection import train_test_split

from rankrls import RankingPursuit, RankingPursuitCV
from rankrls.plots import PursuitPathDisplay

X, y = load_diabetes(return_X_y=True, as_frame=True)
X_train, X_test, y_train, y_test = train_test_split(X, y, test_size=0.3, random_state=0)
names = {"s1": "cholesterol", "s2": "ldl", "s3": "hdl", "s4": "chol./hdl", "s5": "triglycerides", "s6": "glucose"}
X_train, X_test = X_train.rename(columns=names), X_test.rename(columns=names)

# %%
# One run judges every number of measurements: held out in five folds on the left, on patients kept apart on the right,
# where chance is 0.5. Few measurements do as well as all ten.

figure, (left, right) = plt.subplots(1, 2, figsize=(9, 4.2), sharey=True, layout="constrained")
model = RankingPursuitCV(10, dictionary="features", rule="one_se").fit(X_train, y_train)
PursuitPathDisplay.from_estimator(model, ax=left)
left.set(title="five folds", ylabel="disagreement error")
whole = RankingPursuit(10, dictionary="features").fit(X_train, y_train)
PursuitPathDisplay.from_estimator(whole, X_test, y_test, ax=right)
right.set(title="133 patients kept apart", ylabel="")
plt.show()

# %%
# With a kernel the terms are patients: each function says how like one of them a new patient is. The path is then the
# order in which the model found somebody worth comparing with. After a few of them further terms fit noise: their
# number is what regularizes.

figure, ax = plt.subplots(figsize=(9, 4.2), layout="constrained")
for gamma, color in ((1.0, "tab:green"), (10.0, "tab:blue"), (100.0, "tab:orange")):
    by_likeness = RankingPursuit(60, kernel="rbf", gamma=gamma).fit(X_train, y_train)
    PursuitPathDisplay.from_estimator(
        by_likeness, X_test, y_test, ax=ax, color=color, label=f"Gaussian, gamma = {gamma:g}"
    )
ax.axhline(1 - whole.score(X_test, y_test), color="black", linestyle=":", label="all ten measurements, linear")
ax.set(ylabel="disagreement error on patients kept apart")
ax.legend()
plt.show()
