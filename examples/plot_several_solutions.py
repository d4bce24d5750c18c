"""
Two groups of genes, each of which orders the patients
======================================================

A sparse model of a few genes does not say that no other genes would do. In these made data two groups of three genes
follow the same three processes, so that either group orders the patients. Ranking pursuit finds one model; two views of
all genes that may not share any find two. Such several near-optimal solutions are the second contribution of
"Semi-supervised ranking pursuit" (Tsivtsivadze and Heskes).
"""

import matplotlib.pyplot as plt
import numpy as np

from rankrls import CoRankingPursuit, RankingPursuit
from rankrls.inspection import borda_scores
from rankrls.metrics import Measure

rng = np.random.default_rng(0)
n_patients, n_genes = 260, 1000
processes = rng.normal(size=(n_patients, 3))
genes = rng.normal(size=(n_patients, n_genes))
groups = {"first group": slice(100, 103), "second group": slice(600, 603)}
for noise, group in zip((0.3, 0.4), groups.values(), strict=True):
    genes[:, group] = processes + noise * rng.normal(size=processes.shape)
outcome = processes @ [2.0, -1.4, 1.0] + 0.3 * rng.normal(size=n_patients)
learn, new = np.arange(60), np.arange(60, n_patients)

# %%
# One model, and two that share no gene
# -------------------------------------
# A view of all genes is ``{}``. With ``disjoint=True`` a gene that one view has taken is closed to the other;
# ``nu=0`` lets each go its own way. A stage takes one gene a view.

alone = RankingPursuit(6, dictionary="features").fit(genes[learn], outcome[learn])
several = CoRankingPursuit(6, views=({}, {}), dictionary="features", disjoint=True, nu=0.0)
several.fit(genes[learn], outcome[learn])
first, second = several.views_

figure, (left, right) = plt.subplots(1, 2, figsize=(9, 4.2), layout="constrained")
stages = np.arange(1, 7)
for name, model, look in (
    ("ranking pursuit", alone, {"color": "black", "linestyle": ":", "linewidth": 4}),
    ("first view", first, {"color": "tab:blue"}),
    ("second view", second, {"color": "tab:orange"}),
    ("mean of both", several, {"color": "tab:green"}),
):
    errors = [Measure("disagreement")(outcome[new], scores) for scores in model.staged_predict(genes[new])]
    left.plot(stages, errors, marker=".", label=name, **look)
left.set(xlabel="genes of a view", ylabel="disagreement error on new patients")
left.legend()

for height, (view, color) in enumerate(((first, "tab:blue"), (second, "tab:orange"))):
    right.stem(
        view.support_, view.coef_[view.support_], linefmt=color, markerfmt="o", basefmt=" ", label=f"view {height + 1}"
    )
for name, group in groups.items():
    right.axvspan(group.start - 15, group.stop + 15, color="0.9", zorder=0)
    right.annotate(name, (group.start, right.get_ylim()[1]), ha="center", va="top", fontsize=8)
right.set(xlabel="gene", ylabel="weight")
right.legend(loc="lower right")
plt.show()

# %%
# The first three genes of each view are one of each process, from either group: a gene and its counterpart in the
# other group are nearly as good, and which of them a single model takes is decided by noise. What follows after
# three is noise altogether; :class:`~rankrls.CoRankingPursuitCV` chooses the number of genes.
#
# Put together
# ------------
# Each view alone is a solution. Together they are better, since the noise of a gene is not that of its counterpart:
# the mean of their scores, which is the model's, and the positions that they give (Borda).

first_three = CoRankingPursuit(3, views=({}, {}), dictionary="features", disjoint=True, nu=0.0)
found = {
    "ranking pursuit, 3 genes": RankingPursuit(3, dictionary="features")
    .fit(genes[learn], outcome[learn])
    .predict(genes[new])
}
model = first_three.fit(genes[learn], outcome[learn])
parts = np.column_stack([view.predict(genes[new]) for view in model.views_])
found |= {"first view": parts[:, 0], "second view": parts[:, 1]}
found |= {"mean of both": model.predict(genes[new]), "Borda": borda_scores(parts)}
for name, scores in found.items():
    print(f"{name:25} {Measure('disagreement')(outcome[new], scores):.3f}")
print("genes:", *[view.support_.tolist() for view in model.views_])
