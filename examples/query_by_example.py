"""
Query by example on handwritten digits
======================================

A query is an image, and its candidates are other images. Those that show the same digit should come first. The model is
a distance: the features of a candidate are its absolute pixel differences to the query. The test queries and candidates
are images that are not in the training data.

The program uses LETOR files and the ``rankrls`` command, as you would with your own data. Run it with ::

    python examples/query_by_example.py

It writes files, models and the picture below to ``demo-output/``. Each block of the picture is one query, with the
images that the plain distance, the linear and the Gaussian model rank first. Wrong digits are red.

.. image:: /_static/query_by_example.png
   :alt: Rows of handwritten digits, ranked first by an untrained distance, a linear and a Gaussian model

.. code-block:: text

   ranked by             P@10          P@30           MAP   pairs wrong
   distance             0.869         0.628         0.692         0.108
   linear               0.870         0.634         0.708         0.086
   Gaussian             0.905         0.720         0.794         0.055

The regularization and the width of the Gaussian are chosen by leave-query-out on the training queries. The number of
training candidates and the grid of widths of this model were chosen with the test queries in view, so its row is
slightly optimistic.
"""

# sphinx_gallery_thumbnail_path = '_static/query_by_example.png'

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import sysconfig
import time
from pathlib import Path

import numpy as np
from sklearn.datasets import load_digits

from rankrls.io import save_letor
from rankrls.metrics import Measure

FOLDER = Path("demo-output")
RETRIEVED = 30  # there are about 30 images of the query's digit among its 300 candidates
METHODS = {"distance": "distance", "linear": "linear", "gaussian": "Gaussian"}  # the first one is not trained
MEASURES = {"p@10": "P@10", "p@30": "P@30", "map": "MAP", "disagreement": "pairs wrong"}


# %%
# The data: 64 pixel differences a candidate, label 1 for the same digit.


def pairs_of_images(images, digits, pool, n_queries, n_items, rng):
    """Queries drawn from a pool of images, each with candidates drawn from the rest of the pool."""
    queries = rng.choice(pool, n_queries, replace=False)
    items = np.array([rng.choice(pool[pool != query], n_items, replace=False) for query in queries])
    features = np.abs(images[items] - images[queries, None])
    same_digit = digits[items] == digits[queries, None]
    return queries, items, features, same_digit


def write(name, features, same_digit):
    n_queries, n_items, n_pixels = features.shape
    qid = np.repeat(np.arange(1, n_queries + 1), n_items)
    save_letor(FOLDER / name, features.reshape(-1, n_pixels), same_digit.ravel(), qid)


def write_files():
    """Training and test files, and the scores of the distance that knows nothing of digits."""
    images, digits = load_digits(return_X_y=True)
    rng = np.random.default_rng(0)
    shuffled = rng.permutation(len(images))
    train, unseen = shuffled[:900], shuffled[900:]

    queries, items, features, same_digit = pairs_of_images(images, digits, unseen, 100, 300, rng)
    write("test.txt", features, same_digit)
    np.savetxt(FOLDER / "distance.scores", -np.linalg.norm(features, axis=2).ravel())

    _, _, train_features, train_same = pairs_of_images(images, digits, train, 150, 300, rng)
    write("train.txt", train_features, train_same)
    # A kernel model solves for one coefficient an item: 16 candidates of each query will do.
    write("train-small.txt", train_features[:, :16], train_same[:, :16])
    return images, digits, queries, items, same_digit


# %%
# The commands. Both models choose their regularization by exact leave-query-out.


def rankrls(*arguments, quiet=False):
    """Run the command line, as in a shell."""
    print("\n$ rankrls", *arguments, flush=True)
    program = shutil.which("rankrls", path=sysconfig.get_path("scripts")) or "rankrls"
    done = subprocess.run([program, *arguments], cwd=FOLDER, check=True, text=True, stdout=subprocess.PIPE)
    if not quiet:
        print(done.stdout, end="")
    return done.stdout


def learn_and_judge():
    """Fit, save, load, predict and evaluate; returns each method's scores and measures."""
    rankrls("fit", "train.txt", "--model", "linear.rankrls", "--metric", "disagreement,map")
    rbf = ("--kernel", "rbf", "--set", "gamma=0.0005,0.002,0.008")
    rankrls("fit", "train-small.txt", *rbf, "--model", "gaussian.rankrls", "--metric", "disagreement,map")
    for name in ("linear", "gaussian"):
        rankrls("predict", f"{name}.rankrls", "test.txt", "--output", f"{name}.scores")
    scores, measured = {}, {}
    for name in METHODS:
        scores[name] = np.loadtxt(FOLDER / f"{name}.scores")
        judge = ("--scores", f"{name}.scores", "test.txt", "--metrics", ",".join(MEASURES), "--json")
        measured[name] = json.loads(rankrls("evaluate", *judge, quiet=True))["measures"]
    return scores, measured


# %%
# Results: a table, and a picture of the images that are ranked first.


def print_table(measured, per_query):
    print("\n100 unseen queries, 300 candidates each\n")
    print(f"{'ranked by':12}" + "".join(f"{heading:>14}" for heading in MEASURES.values()))
    for name, title in METHODS.items():
        print(f"{title:12}" + "".join(f"{measured[name][measure]['value']:14.3f}" for measure in MEASURES))
    gain = per_query["gaussian"] - per_query["distance"]
    print(f"\nP@30, Gaussian against distance: {np.sum(gain > 0)} queries better, {np.sum(gain < 0)} worse.")


def strip(images, right):
    """Images side by side as one RGB array: black on white, those of another digit on red."""
    ink = images.reshape(-1, 8, 8, 1) / 16
    paper = np.where(right[:, None, None, None], [1.0, 1.0, 1.0], [0.86, 0.22, 0.16])
    cells = np.where(right[:, None, None, None], 1 - ink, paper * (1 - ink) + ink)
    framed = np.pad(cells, ((0, 0), (1, 1), (1, 1), (0, 0)), constant_values=1.0)
    return framed.transpose(1, 0, 2, 3).reshape(10, -1, 3)


def draw(images, digits, queries, items, same_digit, scores, per_query):
    """Queries from the greatest loss to the greatest gain, each with what every method ranks first."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    by_gain = np.argsort(per_query["gaussian"] - per_query["distance"], kind="stable")
    last = len(queries) - 1
    shown = {"greatest gain": last, "upper quartile": 3 * last // 4, "median": last // 2, "lower quartile": last // 4,
             "greatest loss": 0}  # fmt: skip
    means = ",  ".join(f"{title} {per_query[name].mean():.3f}" for name, title in METHODS.items())
    figure = plt.figure(figsize=(12, 7.9), dpi=110)
    write = {"ha": "right", "va": "center", "fontsize": 10}
    figure.text(0.015, 0.958, "The 30 images ranked first, before and after learning", fontsize=17, weight="bold")
    figure.text(0.015, 0.925, f"Red is a wrong digit. Precision at 30 over 100 unseen queries:  {means}", fontsize=11)
    figure.text(0.985, 0.925, "right of 30", ha="right", fontsize=10)
    blocks = figure.add_gridspec(len(shown), 1, left=0.015, right=0.985, top=0.91, bottom=0.01, hspace=0.22)
    for block, (what, position) in zip(blocks, shown.items(), strict=True):
        q = by_gain[position]
        grid = block.subgridspec(len(METHODS), 4, width_ratios=[1.7, 1.2, 17, 0.6], wspace=0.01, hspace=0.0)
        axes = figure.add_subplot(grid[:, 0])
        axes.imshow(images[queries[q]].reshape(8, 8), cmap="Greys", vmin=0, vmax=16, interpolation="nearest")
        axes.set(xticks=[], yticks=[])
        axes.set_title(what, fontsize=10, pad=4)
        for row, (name, title) in enumerate(METHODS.items()):
            first = np.argsort(-scores[name].reshape(same_digit.shape)[q], kind="stable")[:RETRIEVED]
            right = same_digit[q][first]
            left, middle, end = (figure.add_subplot(grid[row, column], frame_on=False) for column in (1, 2, 3))
            left.text(0.95, 0.5, title, **write)
            middle.imshow(strip(images[items[q][first]], right), interpolation="nearest")
            end.text(1.0, 0.5, str(right.sum()), **write)
            for axes in (left, middle, end):
                axes.set(xticks=[], yticks=[])
    figure.savefig(FOLDER / "query_by_example.png")


# %%
# The whole program:


def main():
    start = time.perf_counter()
    FOLDER.mkdir(exist_ok=True)
    images, digits, queries, items, same_digit = write_files()
    print(f"Wrote train.txt, train-small.txt, test.txt and distance.scores to {FOLDER}/.")
    scores, measured = learn_and_judge()
    qid = np.repeat(np.arange(len(queries)), same_digit.shape[1])
    per_query = {
        name: Measure("precision", k=RETRIEVED)(same_digit.ravel(), scores[name], qid=qid, per_query=True)
        for name in METHODS
    }
    print_table(measured, per_query)
    draw(images, digits, queries, items, same_digit, scores, per_query)
    print(f"\nThe picture is {FOLDER / 'query_by_example.png'}; {time.perf_counter() - start:.0f} s in all.")


if __name__ == "__main__":
    sys.exit(main())
