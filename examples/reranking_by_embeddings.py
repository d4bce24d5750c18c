"""
Re-ranking by embeddings
========================

The only input is a vector of each text. Queries are functions and classes of numpy, scipy and scikit-learn, as in
:doc:`search_documentation`, and those that a "See Also" section lists are relevant. The candidates of a query are the
30 other texts with the largest cosine. Models rerank them: linear and Gaussian models of
:func:`~rankrls.preprocessing.pair_features`, and LightGBM's trees.

The vectors are those of latent semantic analysis, which needs no download. Vectors of a language model take their place
in ``embed``; nothing else changes. The figures depend on the versions of the three packages.
"""

# sphinx_gallery_thumbnail_path = '_static/search_documentation.png'

from __future__ import annotations

import hashlib
import sys
from dataclasses import dataclass

import numpy as np
from installed_pages.features import words_of_name
from installed_pages.pages import PACKAGES, Library
from sklearn.decomposition import TruncatedSVD
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.preprocessing import normalize

from rankrls import RankRLSCV, SparseRankRLSCV
from rankrls.comparison import RankingReport, compare_rankings
from rankrls.preprocessing import pair_features


def embed(library: Library, n_components: int) -> np.ndarray:
    """A vector of length 1 for each page; its See Also section is left out."""
    texts = [f"{words_of_name(page.short_name)} {page.text('Examples', 'References')}" for page in library.pages]
    words = TfidfVectorizer(sublinear_tf=True, stop_words="english").fit_transform(texts)
    svd = TruncatedSVD(min(n_components, min(words.shape) - 1), random_state=0)
    return normalize(svd.fit_transform(words))


# %%
# The data. The name of a query decides whether it is a training query.


@dataclass(frozen=True)
class Pairs:
    """Rows of queries and candidates."""

    queries: np.ndarray  # page numbers
    items: np.ndarray
    y: np.ndarray  # 1: under See Also

    def some(self, n_queries: int | None) -> Pairs:
        """The pairs of some queries, drawn at random; None is all."""
        drawn = np.random.default_rng(0).permutation(np.unique(self.queries))[:n_queries]
        rows = np.isin(self.queries, drawn)
        return Pairs(self.queries[rows], self.items[rows], self.y[rows])


def candidates(library: Library, vectors: np.ndarray, n_candidates: int) -> tuple[Pairs, Pairs]:
    """Training and test queries with their nearest pages; queries without an answer among them are left out."""
    parts: tuple[list, list] = ([], [])
    for query, answers in enumerate(library.see_also()):
        cosines = vectors @ vectors[query]
        cosines[query] = -2
        nearest = np.argsort(-cosines, kind="stable")[:n_candidates]
        nearest = nearest[nearest != query]
        y = np.isin(nearest, [*answers]).astype(float)
        if y.any():
            digest = hashlib.sha256(library.pages[query].name.encode()).digest()
            parts[digest[0] % 2].append((np.full(len(nearest), query), nearest, y))
    train, test = (Pairs(*map(np.concatenate, zip(*part, strict=True))) for part in parts)
    return train, test


# %%
# The models. Alpha is chosen by exact leave-query-out. The Gaussian's width is its default.


def rank(train: Pairs, test: Pairs, vectors: np.ndarray, n_basis: int) -> dict[str, np.ndarray]:
    """Scores of the test pairs by each method."""

    def features(pairs: Pairs) -> np.ndarray:
        return pair_features(vectors[pairs.queries], vectors[pairs.items])

    X = features(train)
    X_test = features(test)
    scores = {"cosine": (vectors[test.queries] * vectors[test.items]).sum(axis=1)}
    models = {"linear": RankRLSCV(scoring="ndcg@10"), "Gaussian": SparseRankRLSCV(n_basis=n_basis, scoring="ndcg@10")}
    for name, model in models.items():
        scores[name] = model.fit(X, train.y, qid=train.queries).predict(X_test)
        print(f"{name}: held out {model.best_score_:.3f}, alpha {model.alpha_:.3g}")
    try:
        from lightgbm import LGBMRanker
    except ImportError:
        return scores
    sizes = np.unique(train.queries, return_counts=True)[1]  # the pairs are in the order of the queries
    trees = LGBMRanker(learning_rate=0.05, random_state=0, n_jobs=1, verbose=-1)
    scores["LightGBM"] = trees.fit(X, train.y, group=sizes).predict(X_test)
    return scores


# %%
# The whole program:


def main(
    packages: tuple[str, ...] = PACKAGES,
    n_train: int | None = None,
    n_components: int = 200,
    n_candidates: int = 30,
    n_basis: int = 500,
) -> RankingReport:
    """Fit on n_train queries, by default all; returns the comparison on the test queries."""
    library = Library.installed(packages)
    vectors = embed(library, n_components)
    train, test = candidates(library, vectors, n_candidates)
    train = train.some(n_train)
    n_train, n_test = (len(np.unique(pairs.queries)) for pairs in (train, test))
    print(f"{len(library)} pages, {n_train} training queries, {n_test} test queries, {vectors.shape[1]} components")
    scores = rank(train, test, vectors, n_basis)
    report = compare_rankings(test.y, scores, qid=test.queries, measures=["ndcg@10"], n_resamples=2000)
    print(report)
    return report


if __name__ == "__main__":
    main(n_train=int(sys.argv[1]) if len(sys.argv) > 1 else None)
    sys.exit(0)
