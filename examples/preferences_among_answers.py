"""
Which answers people prefer: votes on language models
=====================================================

People saw two answers to the same prompt, by two language models, and voted for one of them or for a tie. A small
reward model is fitted to these votes, so that it can score answers. It is evaluated on held-out prompts and compared
with two baselines: the length of the answer, and its author.

The votes are those of the LLMFAO study: 8931 votes by 124 people on answers of 59 models to 13 prompts. The data are by
Dmitry Ustalov, the prompts and answers by llmonitor.com, both under CC BY 4.0. They are not part of this library: get
``crowd-comparisons.csv`` and ``results.jsonl`` from https://github.com/dustalov/llmfao (here: commit ``9e224e94``) and
run ::

    python preferences_among_answers.py FOLDER

This page shows the program and, in the last section, its output.
"""

# sphinx_gallery_thumbnail_path = '_static/preferences_among_answers.png'

from __future__ import annotations

import csv
import json
import re
import sys
from collections import Counter, defaultdict
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from sklearn.feature_extraction.text import TfidfVectorizer

from rankrls import RankRLSCV
from rankrls.comparison import bootstrap_interval, compare_per_query
from rankrls.metrics import preference_accuracy
from rankrls.plots import CoefficientsDisplay
from rankrls.preprocessing import QueryStandardScaler

# %%
# The votes
# ---------
# A row is an answer. A vote names two rows; a tie is a preference of strength 0.


@dataclass
class Votes:
    """Answers with their prompts and authors; votes as row numbers of winners and losers."""

    texts: list[str]
    prompt: np.ndarray  # of each answer
    author: np.ndarray
    winners: np.ndarray
    losers: np.ndarray
    strength: np.ndarray  # 1, or 0 for a tie

    @property
    def prompt_of_vote(self):
        return self.prompt[self.winners]


def read_votes(folder):
    """The votes of a folder with the two files."""
    with open(Path(folder) / "crowd-comparisons.csv", encoding="utf-8", newline="") as file:
        votes = list(csv.DictReader(file))
    shown = {(int(vote["prompt"]), int(vote[side])) for vote in votes for side in ("model_x", "model_y")}
    answers = {}
    with open(Path(folder) / "results.jsonl", encoding="utf-8") as file:
        for answer in map(json.loads, file):
            if (answer["prompt"], answer["model"]) in shown:
                answers[answer["prompt"], answer["model"]] = answer["result"].strip()
    row = {key: k for k, key in enumerate(answers)}
    left, right = ([row[int(v["prompt"]), int(v[side])] for v in votes] for side in ("model_x", "model_y"))
    right_wins = np.array([vote["winner"] == "right" for vote in votes])
    prompts, authors = np.array(list(answers)).T
    return Votes(
        texts=list(answers.values()),
        prompt=prompts,
        author=authors,
        winners=np.where(right_wins, right, left),
        losers=np.where(right_wins, left, right),
        strength=np.array([float(vote["winner"] != "tie") for vote in votes]),
    )


def agreement(votes):
    """How often two people agree who both took a side on the same two answers; prompts count the same."""
    sides = defaultdict(Counter)
    for winner, loser, strength in zip(votes.winners, votes.losers, votes.strength, strict=True):
        if strength:
            sides[min(winner, loser), max(winner, loser)][winner] += 1
    by_prompt = defaultdict(list)
    for (item, _), counts in sides.items():
        n = counts.total()
        if n > 1:
            same = sum(k * (k - 1) for k in counts.values()) / (n * (n - 1))
            by_prompt[votes.prompt[item]].append(same)
    return float(np.mean([np.mean(shares) for shares in by_prompt.values()]))


# %%
# What an answer looks like
# -------------------------
# Fourteen numbers describe the form of an answer, independently of the prompt's subject. They are standardized among
# the answers to the same prompt, so that an answer is long or short for this prompt. This uses all answers to a
# prompt, which are known when they are ranked, but no votes.

FORM = {
    "length in words": lambda text, words: np.log1p(len(words)),
    "lines": lambda text, words: np.log1p(text.count("\n")),
    "list items": lambda text, words: np.log1p(len(re.findall(r"(?m)^\s*(?:\d+[.)]|[-*•])\s", text))),
    "digits": lambda text, words: np.log1p(len(re.findall(r"\d", text))),
    "letters a word": lambda text, words: np.mean([len(word) for word in words]) if words else 0.0,
    "share of distinct words": lambda text, words: len({word.lower() for word in words}) / max(len(words), 1),
    "share of capitals": lambda text, words: sum(map(str.isupper, text)) / max(len(text), 1),
    "code block": lambda text, words: "```" in text,
    "question mark": lambda text, words: "?" in text,
    "exclamation mark": lambda text, words: "!" in text,
    "says I": lambda text, words: "I" in words,
    "excuses itself": lambda text, words: re.search(r"(?i)\bsorry|apologi[sz]e|as an ai\b", text) is not None,
    "ends like a sentence": lambda text, words: text.endswith((".", "!", "?", '"', "'", ")", "]", "}")),
    "empty": lambda text, words: not text,
}


def form(votes):
    rows = [(text, re.findall(r"\w+", text)) for text in votes.texts]
    X = np.array([[feature(*row) for feature in FORM.values()] for row in rows], dtype=float)
    return QueryStandardScaler().fit_transform(X, qid=votes.prompt)


# %%
# Words are weighted by TF-IDF, with a vocabulary of the training prompts. The third set of features is the author of
# the answer.


def words(votes, known):
    """TF-IDF of all answers, and its vocabulary, from those that ``known`` marks."""
    vectorizer = TfidfVectorizer(min_df=10, sublinear_tf=True)
    vectorizer.fit([text for text, learn in zip(votes.texts, known, strict=True) if learn])
    return vectorizer.transform(votes.texts).toarray(), vectorizer.get_feature_names_out()


def features(votes, known, sets):
    """The chosen sets of features side by side, and their names."""
    blocks = []
    if "form" in sets:
        blocks.append((form(votes), list(FORM)))
    if "words" in sets:
        X, vocabulary = words(votes, known)
        blocks.append((X, [f"“{word}”" for word in vocabulary]))
    if "author" in sets:
        authors = np.unique(votes.author)
        blocks.append(((votes.author[:, None] == authors).astype(float), [f"model {k}" for k in authors]))
    return np.hstack([X for X, _ in blocks]), [name for _, names in blocks for name in names]


# %%
# Held-out prompts
# ----------------
# Each prompt is held out once. The model is fitted to the votes on the other prompts, and alpha is chosen by leaving
# out each of them, exactly and without refits. The held-out prompt influences neither the weights nor alpha. Ties are
# either dropped, or fitted as differences of 0. They are never evaluated.


def learn(votes, X, used, ties):
    """A scorer of answers from the votes that ``used`` marks."""
    if ties == "dropped":
        used = used & (votes.strength > 0)
    return RankRLSCV(scoring="pair_accuracy").fit_pairs(
        X, votes.winners[used], votes.losers[used], strength=votes.strength[used], groups=votes.prompt_of_vote[used]
    )


def share_right(votes, scores, prompt):
    """The share of a prompt's decided votes whose winner has the higher score."""
    own = (votes.prompt_of_vote == prompt) & (votes.strength > 0)
    return preference_accuracy(scores, votes.winners[own], votes.losers[own])


def held_out(votes, sets, ties="dropped"):
    """One share a prompt, by a model that never saw the prompt."""
    shares = []
    for prompt in np.unique(votes.prompt):
        X, _ = features(votes, votes.prompt != prompt, sets)
        model = learn(votes, X, votes.prompt_of_vote != prompt, ties)
        shares.append(share_right(votes, model.predict(X), prompt))
    return np.array(shares)


def shorter_wins(votes):
    length = np.array([len(re.findall(r"\w+", text)) for text in votes.texts])
    return np.array([share_right(votes, -length, prompt) for prompt in np.unique(votes.prompt)])


# %%
# The whole program
# -----------------
# All prompts have the same weight, and the intervals are over prompts. With thirteen prompts, the intervals are wide.


def main(folder, picture=None):
    votes = read_votes(folder)
    decided = int(votes.strength.sum())
    print(f"{len(votes.texts)} answers, {len(votes.winners)} votes, {decided} of them decided")
    print(f"two people who both took a side agreed: {agreement(votes):.3f}\n")
    shares = {
        "shorter answer": shorter_wins(votes),
        "author": held_out(votes, ["author"]),
        "form": held_out(votes, ["form"]),
        "words": held_out(votes, ["words"]),
        "form, words": held_out(votes, ["form", "words"]),
        "form, words, ties": held_out(votes, ["form", "words"], ties="strength 0"),
    }
    for name, values in shares.items():
        interval = bootstrap_interval(values, random_state=0)
        print(f"{name:18} {interval.value:.3f} [{interval.low:.3f}, {interval.high:.3f}]")
    print(f"\n{compare_per_query(shares, baseline='form, words', random_state=0)}")

    everything = np.full(len(votes.texts), True)
    X, names = features(votes, everything, ["form", "words"])
    model = learn(votes, X, np.full(len(votes.winners), True), "dropped")
    display = CoefficientsDisplay.from_estimator(model, X, names=names, top=20)
    if picture:
        display.figure_.savefig(picture, dpi=90)
    return shares, display


# %%
# Results
# -------
# .. code-block:: text
#
#    750 answers, 8931 votes, 5460 of them decided
#    two people who both took a side agreed: 0.668
#
#    shorter answer     0.579 [0.484, 0.673]
#    author             0.656 [0.593, 0.710]
#    form               0.670 [0.590, 0.744]
#    words              0.497 [0.446, 0.552]
#    form, words        0.671 [0.591, 0.745]
#    form, words, ties  0.667 [0.588, 0.743]
#
#                                     difference            interval  won/tied/lost  p randomization  p Wilcoxon
#    shorter answer - form, words        -0.0925  -0.1349 to -0.0559         0/0/13           0.0012      0.0012
#    author - form, words                -0.0151  -0.0522 to +0.0190          7/0/6           0.7500      0.6562
#    form - form, words                  -0.0014  -0.0033 to +0.0000         0/10/3           0.7500      0.6562
#    words - form, words                 -0.1740  -0.2622 to -0.0905         2/0/11           0.0088      0.0098
#    form, words, ties - form, words     -0.0039  -0.0100 to +0.0010          2/7/4           0.7500      0.6562
#
# - Votes are noisy. If two people both preferred one of the same two answers, they agreed in two of three cases.
# - The longer answer does not win here: on nine of the thirteen prompts it lost most of the decided votes.
# - On held-out prompts, the fourteen numbers about an answer's form predict the votes as well as its author does, as
#   far as thirteen prompts can show. Together with words they are better than length on each prompt. Unlike the
#   author, they need no votes on other answers of the same model.
# - Words from twelve prompts do not help on the thirteenth, because they are about the prompts' subjects. Alone they
#   are no better than chance, and together with the form they change almost nothing.
# - It makes no measurable difference whether ties are dropped or fitted as differences of 0.
#
# The figure shows the largest weights of a model of all votes. Answers that repeat themselves, break off, have many
# lines or mention the model itself are less popular. These are weights of one sum, not causes.
#
# .. image:: /_static/preferences_among_answers.png
#    :alt: Weights of the most telling features of answers
#    :width: 560

if __name__ == "__main__":
    if len(sys.argv) not in (2, 3):
        sys.exit("usage: preferences_among_answers.py FOLDER [PICTURE]")
    main(*sys.argv[1:])
