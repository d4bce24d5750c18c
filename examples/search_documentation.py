"""
Search over installed documentation
===================================

A query is a function or class of numpy, scipy or scikit-learn. Its candidates are the 100 others whose documentation
has the most similar words. Those that its "See Also" section lists are relevant; this section is removed from every
text. Half of the queries are training queries. The best model is chosen on them, by leave-query-out. The other half is
used once, for the test.

Run it with ``make demo``. It writes a report, a picture, the models and an export to ``demo-output/``. It reads the
installed documentation, so the figures depend on the versions of the three packages. The modules in
``examples/installed_pages`` make the pages and features.
"""

# sphinx_gallery_thumbnail_path = '_static/search_documentation.png'

from __future__ import annotations

import hashlib
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path

import numpy as np
from installed_pages.features import Table, build
from installed_pages.pages import PACKAGES, Library
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import QuantileTransformer, StandardScaler

from rankrls import RankRLSCV, SparseRankRLSCV, save
from rankrls.comparison import compare_rankings
from rankrls.export import to_solr
from rankrls.metrics import Measure

FOLDER = Path("demo-output")
SHOWN = 8  # candidates in a list
SHORTLIST = 30  # candidates that the second models order anew
GAMMAS = (0.003, 0.01, 0.03)
WELL_KNOWN = (  # the first of each row that is not for learning is shown
    ("numpy.sort", "numpy.linalg.svd", "numpy.mean", "numpy.concatenate", "numpy.linspace", "numpy.linalg.qr"),
    ("scipy.linalg.cholesky", "scipy.optimize.minimize", "scipy.stats.ttest_ind", "scipy.fft.fft", "scipy.linalg.qr"),
    ("sklearn.linear_model.Ridge", "sklearn.cluster.KMeans", "sklearn.decomposition.PCA", "sklearn.svm.SVC"),
)


# %%
# The data. The name of a query decides whether it is a training query, so the split is the same on every machine.


@dataclass(frozen=True)
class Data:
    library: Library
    train: Table
    test: Table

    def name(self, page: int) -> str:
        return self.library.pages[page].name


def read_documentation(packages: tuple[str, ...] = PACKAGES) -> Data:
    library = Library.installed(packages)
    table = build(library, library.see_also())
    digests = [hashlib.sha256(library.pages[query].name.encode()).digest() for query in table.queries]
    learn = np.array([digest[0] % 2 == 0 for digest in digests])
    return Data(library, table.of(learn), table.of(~learn))


# %%
# The models. A linear model ranks all candidates. A second model, which is linear in the ranks of the features or
# Gaussian, ranks the first 30 of them again. For a training query, the first 30 are chosen by the exact held-out
# scores, that is, by a model that was fitted without this query.


def first_of(scores: np.ndarray) -> np.ndarray:
    return np.argsort(-scores, axis=1, kind="stable")[:, :SHORTLIST]


def put_first(scores: np.ndarray, kept: np.ndarray, again: np.ndarray) -> np.ndarray:
    """All candidates in one order: those ``kept`` by the scores ``again``, below them the others by ``scores``."""
    merged = scores - scores.max(axis=1, keepdims=True) - 1
    np.put_along_axis(merged, kept, again - again.min(axis=1, keepdims=True), axis=1)
    return merged


@dataclass(frozen=True)
class Ranker:
    """A fitted model, what it makes of training queries held out, and how it scores others."""

    pipeline: object
    held_out: np.ndarray
    score: Callable[[Table], np.ndarray]


def linear(train: Table) -> Ranker:
    X, y, qid = train.rows()
    pipeline = make_pipeline(StandardScaler(), RankRLSCV(scoring="ndcg@10"))
    pipeline.fit(X, y, rankrlscv__qid=qid)
    held_out = pipeline[-1].held_out_scores_.reshape(train.labels.shape)
    return Ranker(pipeline, held_out, lambda table: pipeline.predict(table.rows()[0]).reshape(table.labels.shape))


def second(train: Table, before: Ranker, model) -> Ranker:
    """A model of the candidates that another one puts first."""
    kept = first_of(before.held_out)
    X, y, qid = train.rows(kept)
    pipeline = make_pipeline(QuantileTransformer(random_state=0), model)
    pipeline.fit(X, y, **{f"{pipeline.steps[-1][0]}__qid": qid})

    def score(table: Table) -> np.ndarray:
        scores = before.score(table)
        kept = first_of(scores)
        return put_first(scores, kept, pipeline.predict(table.rows(kept)[0]).reshape(kept.shape))

    held_out = pipeline[-1].held_out_scores_.reshape(kept.shape)
    return Ranker(pipeline, put_first(before.held_out, kept, held_out), score)


def gaussian(train: Table, before: Ranker, n_basis: int) -> Ranker:
    """Its width is chosen on a small basis, since every width is a fit; the model has a large one."""
    small = SparseRankRLSCV(gamma=list(GAMMAS), n_basis=n_basis // 4, scoring="ndcg@10")
    width = second(train, before, small).pipeline[-1].best_params_["gamma"]
    return second(train, before, SparseRankRLSCV(gamma=width, n_basis=n_basis, scoring="ndcg@10"))


def learn(train: Table, n_basis: int = 1600) -> dict[str, Ranker]:
    first = linear(train)
    again = second(train, first, RankRLSCV(scoring="ndcg@10"))
    return {"linear": first, "linear, ranks": again, "Gaussian": gaussian(train, first, n_basis)}


def measure(table: Table, scores: np.ndarray) -> float:
    _, y, qid = table.rows()
    return Measure("ndcg", k=10)(y, scores.ravel(), qid=qid)


# %%
# Results: a table, lists, and the weights of the linear model.


def print_table(data: Data, rankers: dict[str, Ranker], scores: dict[str, np.ndarray], chosen: str) -> None:
    print(f"\n{'NDCG@10':18}{'held out':>10}{'unseen':>10}")
    for name, values in scores.items():
        held_out = f"{measure(data.train, rankers[name].held_out):10.3f}" if name in rankers else f"{'':10}"
        mark = "   chosen on the training queries" if name == chosen else ""
        print(f"{name:18}{held_out}{measure(data.test, values):10.3f}{mark}")


def lists(data: Data, scores: dict[str, np.ndarray]) -> dict[str, list[list[tuple[str, bool]]]]:
    """For well-known functions the candidates in the order of each ranking, with whether they are relevant."""
    names = [data.name(query) for query in data.test.queries]
    found = [next((name for name in row if name in names), None) for row in WELL_KNOWN]
    shown = {}
    for name in [name for name in found if name is not None] or names[:1]:
        q = names.index(name)
        places = (data.test.candidates[q], data.test.labels[q])
        items = [(data.name(item), bool(label)) for item, label in zip(*places, strict=True)]
        shown[name] = [[items[c] for c in np.argsort(-s[q], kind="stable")] for s in scores.values()]
    return shown


def print_lists(shown: dict[str, list[list[tuple[str, bool]]]], titles: list[str]) -> None:
    for name, orders in shown.items():
        print(f"\n{name}  (* stands under its See Also)")
        print("   " + "".join(f"{title:50}" for title in titles).rstrip())
        for line in list(zip(*orders, strict=True))[:SHOWN]:
            print("   " + "".join(f"{'* ' if right else '  '}{item:48}" for item, right in line).rstrip())


def print_weights(ranker: Ranker, names: list[str], n: int = 10) -> None:
    weights = ranker.pipeline[-1].coef_
    print("\nThe linear model: what a standard deviation of a feature adds to the score")
    for number in np.argsort(-np.abs(weights), kind="stable")[:n]:
        print(f"   {weights[number]:+.3f}  {names[number]}")


def draw(shown: dict[str, list[list[tuple[str, bool]]]], titles: list[str], path: Path) -> None:
    """The lists of the well-known functions before and after, with lines from the old to the new places."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    right, other, dark = "#0b7a4b", "#8a8f98", "#1f2430"
    figure, axes = plt.subplots(len(shown), 1, figsize=(10, 2.6 * len(shown) + 0.5), dpi=110, squeeze=False)
    for ax, (name, (before, after)) in zip(axes[:, 0], shown.items(), strict=True):
        ax.set(xlim=(0, 1), ylim=(SHOWN + 1.2, -0.9), xticks=[], yticks=[])
        ax.set_frame_on(False)
        ax.text(0.5, -0.3, name, ha="center", fontsize=13, weight="bold", color=dark)
        places = {item: place for place, (item, _) in enumerate(before, start=1)}
        for x, side, order in ((0.4, "right", before), (0.6, "left", after)):
            for line, (item, relevant) in enumerate(order[:SHOWN], start=1):
                style = {"color": right, "weight": "bold"} if relevant else {"color": other}
                ax.text(x, line, item, ha=side, va="center", fontsize=10, family="monospace", **style)
        for line, (item, relevant) in enumerate(after[:SHOWN], start=1):
            if relevant:
                ax.plot([0.41, 0.59], [min(places[item], SHOWN + 1), line], color=right, lw=1.6, solid_capstyle="round")
            if relevant and places[item] > SHOWN:
                ax.text(0.4, SHOWN + 1, f"place {places[item]}", ha="right", va="center", fontsize=9, color=right)
    for x, title in zip((0.2, 0.8), titles, strict=True):
        figure.text(x, 0.985, title, ha="center", va="top", fontsize=11, style="italic", color=dark)
    figure.tight_layout(pad=0.6, rect=(0, 0, 1, 0.965))
    figure.savefig(path)
    plt.close(figure)


# %%
# The whole program:


def main(packages: tuple[str, ...] = PACKAGES, folder: Path = FOLDER, n_basis: int = 1600) -> dict[str, float]:
    """Run everything; returns the NDCG@10 of each ranking on the unseen queries."""
    start = time.perf_counter()
    folder.mkdir(parents=True, exist_ok=True)
    data = read_documentation(packages)
    train, test = data.train, data.test
    versions = ", ".join(f"{name} {version(name)}" for name in ("numpy", "scipy", "scikit-learn"))
    print(f"{len(data.library)} functions and classes of {versions}")
    n_items, n_features = train.features.shape[1:]
    print(f"{len(train.queries)} queries to learn from, {len(test.queries)} unseen; {n_items} candidates for each,")
    print(f"{n_features} features; read in {time.perf_counter() - start:.0f} s")

    rankers = learn(train, n_basis)
    chosen = max(rankers, key=lambda name: measure(train, rankers[name].held_out))
    words = {"words alone": test.features[:, :, test.names.index("words")]}
    scores = words | {name: ranker.score(test) for name, ranker in rankers.items()}
    print_table(data, rankers, scores, chosen)
    two = {name: scores[name] for name in ("words alone", chosen)}
    shown = lists(data, two)
    print_lists(shown, list(two))
    print_weights(rankers["linear"], train.names)

    _, y, qid = test.rows()
    report = compare_rankings(
        y,
        {name: values.ravel() for name, values in scores.items()},
        qid=np.array([data.name(query) for query in qid]),
        measures=["ndcg@10", "map", "p@5"],
        n_resamples=2000,
    )
    report.save_html(folder / "comparison.html")
    means = {name: measure(test, values) for name, values in scores.items()}
    titles = [f"{name}: NDCG@10 {means[name]:.2f}" for name in two]
    draw(shown, titles, folder / "search_documentation.png")
    for name, ranker in rankers.items():
        save(ranker.pipeline, folder / f"{name.replace(', ', '-')}.rankrls")
    exported = to_solr(rankers["linear"].pipeline, "see-also", feature_names=train.names)
    exported.save(folder / "solr-model.json")
    print(f"\nIn {folder}/: comparison.html, search_documentation.png, the models, solr-model.json;", end=" ")
    print(f"{time.perf_counter() - start:.0f} s in all.")
    return means


if __name__ == "__main__":
    main()
    sys.exit(0)
