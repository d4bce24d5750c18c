"""
Several sparse models that are equally good
===========================================

If a sparse model uses a few genes, other genes may be as good. In these simulated data, two groups of three genes
follow the same three processes, so either group can rank the patients. Ranking pursuit finds one model. Two views of
all genes that may not share a gene find two models. Finding several near-optimal solutions is the second contribution
of "Semi-supervised ranking pursuit" (Tsivtsivadze and Heskes).
"""

import matplotlib.pyplot as plt
import numpy as np

from rankrls import CoRankingPursuit, RankingPursuit
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
# A view of all genes is ``{}``. With ``disjoint=True`` a gene can be selected by one view only. With ``nu=0`` the views
# need not agree. Each stage selects one gene per view.

alone = RankingPursuit(6, dictionary="features").fit(genes[learn], outcome[learn])
several = CoRankingPursuit(6, views=({}, {}), dictionary="features", disjoint=True, nu=0.0)
several.fit(genes[learn], outcome[learn])

figure, (left, right) = plt.subplots(1, 2, figsize=(9, 4.2), layout="constrained")
stages = np.arange(1, 7)
for name, staged, look in (
    ("ranking pursuit", alone.staged_predict(genes[new]), {"color": "black", "linestyle": ":", "linewidth": 4}),
    ("first view", several.staged_predict(genes[new], view=0), {"color": "tab:blue"}),
    ("second view", several.staged_predict(genes[new], view=1), {"color": "tab:orange"}),
    ("mean of both", several.staged_predict(genes[new]), {"color": "tab:green"}),
):
    errors = [Measure("disagreement")(outcome[new], scores) for scores in staged]
    left.plot(stages, errors, marker=".", label=name, **look)
left.set(xlabel="genes of a view", ylabel="disagreement error on new patients")
left.legend()

for view, (weights, color) in enumerate(zip(several.view_coef_, ("tab:blue", "tab:orange"), strict=True), 1):
    selected = np.flatnonzero(weights)
    right.stem(selected, weights[selected], linefmt=color, markerfmt="o", basefmt=" ", label=f"view {view}")
for name, group in groups.items():
    right.axvspan(group.start - 15, group.stop + 15, color="0.9", zorder=0)
    right.annotate(name, (group.start, right.get_ylim()[1]), ha="center", va="top", fontsize=8)
right.set(xlabel="gene", ylabel="weight")
right.legend(loc="lower right")
plt.show()

# %%
# The first three genes of each view follow the three processes, and can be from either group. A gene and its
# counterpart in the other group are nearly equally good, so noise decides which of them is selected. Genes after the
# third only fit noise; :class:`~rankrls.CoRankingPursuitCV` chooses the number of genes.
#
# Combining the views
# -------------------
# Each view alone is a solution. The model predicts the mean of their scores, which is better: the noise of a gene is
# not that of its counterpart.

first_three = CoRankingPursuit(3, views=({}, {}), dictionary="features", disjoint=True, nu=0.0)
found = {
    "ranking pursuit, 3 genes": RankingPursuit(3, dictionary="features")
    .fit(genes[learn], outcome[learn])
    .predict(genes[new])
}
model = first_three.fit(genes[learn], outcome[learn])
found |= {"first view": model.predict(genes[new], view=0), "second view": model.predict(genes[new], view=1)}
found["mean of both"] = model.predict(genes[new])
for name, scores in found.items():
    print(f"{name:25} {Measure('disagreement')(outcome[new], scores):.3f}")
print("genes:", *[np.flatnonzero(weights).tolist() for weights in model.view_coef_])
