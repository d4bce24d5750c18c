"""
Ranking the parses of a sentence by a graph kernel
==================================================

A parser proposes several parses of a sentence, and a model ranks the best one first, as in the 2007 paper on RankRLS
for biomedical text. A query is a sentence. An item is a parse, which is a graph with labelled nodes, and its utility
is the share of correct links. Graphs are not rows of numbers, but a kernel that compares two graphs is enough for a
model.

The sentences are simulated: words are tags, and each word depends on another word by a rule. In a candidate parse, some
words depend on a wrong word.
"""

from dataclasses import dataclass
from functools import partial

import matplotlib.pyplot as plt
import numpy as np

from rankrls import RankRLS, RankRLSCV
from rankrls.metrics import Measure

TAGS = ("the", "adjective", "noun", "verb", "adverb", "of")
HEADS = {"the": ("noun",), "adjective": ("noun",), "noun": ("of", "verb"), "adverb": ("verb",), "of": ("noun",)}
NEXT = {
    "the": ("adjective", "noun"),
    "adjective": ("noun",),
    "noun": ("verb", "of", "adverb"),
    "adverb": ("verb", "adverb"),
    "verb": ("the", "noun", "adverb"),
    "of": ("the", "noun"),
}


@dataclass
class Parse:
    """The words' tags, and a link from each word to the one that it hangs on."""

    tags: np.ndarray
    links: np.ndarray


def parse_of(tags, heads):
    """A graph with a link from each word to its head; a word on itself has none."""
    links = np.zeros((len(tags), len(tags)))
    links[np.arange(len(tags)), heads] = np.arange(len(tags)) != heads
    return Parse(np.array([TAGS.index(tag) for tag in tags]), links)


def sentence(rng, length=10):
    """Tags, and the head of each: the nearest word that it may hang on."""
    tags = ["the"]
    while len(tags) < length:
        tags.append(str(rng.choice(NEXT[tags[-1]])))
    heads = []
    for k, tag in enumerate(tags):
        able = [j for j, other in enumerate(tags) if j != k and other in HEADS.get(tag, ())]
        heads.append(min(able, key=lambda j: (abs(j - k), -j)) if able else k)
    return tags, np.array(heads)


def candidates(rng, count=8):
    """Parses of one sentence, and the share of words of each that hang where they should."""
    tags, right = sentence(rng)
    parses, shares = [], []
    for _ in range(count):
        heads, wrong = right.copy(), rng.choice(len(tags), rng.integers(1, 7), replace=False)
        heads[wrong] = rng.integers(len(tags), size=len(wrong))
        parses.append(parse_of(tags, heads))
        shares.append(np.mean(heads == right))
    return parses, shares


rng = np.random.default_rng(0)
made = [candidates(rng) for _ in range(50)]
parses = [parse for some, _ in made for parse in some]
share = np.concatenate([shares for _, shares in made])
qid = np.repeat(np.arange(len(made)), 8)
learn, new = np.flatnonzero(qid < 30), np.flatnonzero(qid >= 30)

# %%
# The kernel
# ----------
# Two graphs are similar if they have many walks in common: from a noun to a verb, from "the" to a noun to a verb.
# Gärtner, Flach and Wrobel (2003) count the pairs of equal walks on the product of the graphs, here up to a given
# length.


def common_walks(a, b, longest=2, decay=0.5):
    """Pairs of walks with the same tags, weighted by ``decay`` to the power of their length."""
    same = (a.tags[:, None] == b.tags[None, :]).astype(float)
    ends, total = same, same.sum()
    for length in range(1, longest + 1):
        ends = same * (a.links.T @ ends @ b.links)
        total += decay**length * ends.sum()
    return float(total)


# %%
# As a function of two objects
# ----------------------------
# The parses are given as a list, and the kernel as a function of two of them.

model = RankRLS(10.0, kernel=partial(common_walks, longest=2))
model.fit([parses[k] for k in learn], share[learn], qid=qid[learn])
by_function = model.predict([parses[k] for k in new])

# %%
# As a matrix
# -----------
# If the kernel is expensive, compute its values once and fit several models to them. ``predict`` takes the values
# between new and training graphs.

matrices = {}
for longest in range(1, 5):
    values = np.array([[common_walks(a, parses[k], longest) for k in learn] for a in parses])
    matrices[longest] = values[learn], values[new]
inside, across = matrices[2]
by_matrix = RankRLS(10.0, kernel="precomputed").fit(inside, share[learn], qid=qid[learn]).predict(across)
print("the same scores:", np.allclose(by_function, by_matrix))

# %%
# The length of the walks
# -----------------------
# Leave-query-out holds out each sentence with all its parses and chooses the regularization, from one factorization.
# The tags alone are the same in every parse of a sentence, so they cannot rank parses. Walks of one step show which tag
# depends on which. The simulated errors are of this kind, so longer walks add nothing here.

held_out, on_new = [], []
for inside, across in matrices.values():
    chosen = RankRLSCV(kernel="precomputed", scoring="tau").fit(inside, share[learn], qid=qid[learn])
    held_out.append(chosen.best_score_)
    on_new.append(float(Measure("kendall_tau")(share[new], chosen.predict(across), qid=qid[new])))
figure, ax = plt.subplots(figsize=(7, 4), layout="constrained")
ax.plot(list(matrices), held_out, marker="o", label="sentences held out, 30")
ax.plot(list(matrices), on_new, marker="s", label="new sentences, 20")
ax.set(xlabel="longest walk", ylabel="Kendall's tau", xticks=list(matrices), ylim=(0, 1))
ax.legend(loc="lower right")
plt.show()
