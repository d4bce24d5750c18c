"""Transductive RankRLS beside the supervised model on LETOR collections, a part of the queries unlabelled.

The paper (Pahikkala, Suominen, Boberg, Salakoski: Transductive Ranking via Pairwise Regularized Least-Squares, MLG
2007) proposes the method and reports no experiment. Here the test queries of each official fold are unlabelled, and so
are the training queries but for a part; the two models share the regularization, which RankRLSCV chooses by
leave-query-out on the labelled queries alone. Both rank every test query, and a Wilcoxon signed-rank test over these
queries compares their disagreement errors, for several penalties.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from papers._tables import Table, p_text
from papers.letor import Collection, Fold, joined
from rankrls import RankRLSCV, TransductiveRankRLS
from rankrls.comparison import paired_wilcoxon
from rankrls.metrics import Measure

PENALTIES = (0.01, 0.1, 1.0, 10.0, 100.0)
SHARES = (0.02, 0.1, 0.5, 1.0)
"""Parts of the training queries that are labelled."""
ALPHAS = tuple(2.0**k for k in range(-10, 21))


def errors_of(fold: Fold, share: float, penalties: tuple[float, ...]) -> tuple[int, NDArray[np.float64]]:
    """Keep the labels of a part of the training queries, drawn with a fixed seed, and rank the test queries.

    Returns the number of labelled queries, and the disagreement errors of the test queries, (1 + 2 penalties, queries):
    supervised, and for each penalty by the labels found and by the new model.
    """
    queries = np.unique(fold.train.qid)
    labelled = np.random.default_rng(fold.number).permutation(queries)[: max(4, round(share * len(queries)))]
    rows = joined(fold.train, fold.test)
    is_test = np.arange(len(rows.y)) >= len(fold.train.y)
    has_labels = np.isin(rows.qid, labelled) & ~is_test
    chosen = RankRLSCV(ALPHAS).fit(rows.X[has_labels], rows.y[has_labels], qid=rows.qid[has_labels])
    y = np.where(has_labels, rows.y, np.nan)
    scores = [chosen.predict(rows.X)]
    for penalty in penalties:
        model = TransductiveRankRLS(chosen.alpha_, penalty=penalty).fit(rows.X, y, qid=rows.qid)
        scores += [model.transduction_, model.predict(rows.X)]
    measure = Measure("disagreement")
    errors = [measure(fold.test.y, each[is_test], qid=fold.test.qid, per_query=True) for each in scores]
    return len(labelled), np.array(errors)


def run(collection: Collection, *, quick: bool = False) -> Iterator[Table]:
    """Every share and penalty, over the test queries of all folds."""
    shares, penalties = (SHARES[1:3], PENALTIES[1:4:2]) if quick else (SHARES, PENALTIES)
    folds = [collection.load(number) for number in (collection.folds[:1] if quick else collection.folds)]
    ours, notes = {}, []
    for share in shares:
        found = [errors_of(fold, share, penalties) for fold in folds]
        errors = np.concatenate([each for _, each in found], axis=1)
        means = np.nanmean(errors, axis=1)
        queries = np.mean([count for count, _ in found])
        for k, penalty in enumerate(penalties):
            name = f"{queries:g} labelled queries ({share:.0%}), penalty {penalty:g}"
            columns = ("supervised", "labels found", "predicted")
            ours[name] = dict(zip(columns, (means[0], means[1 + 2 * k], means[2 + 2 * k]), strict=True))
            test = paired_wilcoxon(errors[0], errors[1 + 2 * k])
            notes.append(
                f"{name}: {test.wins} better, {test.ties} the same, {test.losses} worse, {p_text(test.p_value)}"
            )
    title = f"Transduction on {collection.name}: disagreement error of the unlabelled test queries"
    yield Table(title, ours, digits=4, notes=tuple(notes))
