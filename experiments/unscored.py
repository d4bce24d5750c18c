"""Few scored queries and many unscored ones: CoRankRLS beside RankRLS (``python experiments/unscored.py --data DIR``).

From the training part of a fold some queries are drawn that keep their labels and others that lose them. RankRLS
learns from the scored ones, "views" is CoRankRLS without the others, CoRankRLS learns from all. Each chooses by
leave-query-out of the scored queries (disagreement error), and is judged by the disagreement error of the fold's test
queries. Wilcoxon's test is over the draws. ``--collection ohsumed`` standardises features inside queries.
"""

from __future__ import annotations

import argparse
import os
import time
from pathlib import Path

import numpy as np
from scipy.stats import wilcoxon

from rankrls import CoRankRLS, RankRLSCV
from rankrls.io import load_letor
from rankrls.metrics import disagreement_error
from rankrls.preprocessing import QueryStandardScaler

FOLDERS = {
    "mq2008": ("mq2008_letor4", ("train.txt", "test.txt")),
    "ohsumed": ("ohsumed_letor1", ("trainingset.txt", "testset.txt")),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=os.environ.get("RANKRLS_DATA"), help="folder of the collections")
    parser.add_argument("--collection", choices=sorted(FOLDERS), default="mq2008")
    parser.add_argument("--scored", type=int, nargs="+", default=[4, 8, 16, 32])
    parser.add_argument("--unscored", type=int, default=40, help="queries without labels")
    parser.add_argument("--draws", type=int, default=6, help="a fold; there are five")
    parser.add_argument("--views", type=int, default=8)
    options = parser.parse_args()
    if options.data is None:
        parser.error("--data names the folder of the collections; so does RANKRLS_DATA.")
    folder, names = FOLDERS[options.collection]
    errors: dict[int, list[tuple[float, ...]]] = {count: [] for count in options.scored}
    start = time.perf_counter()
    for fold in range(1, 6):
        train, test = (load_letor(Path(options.data) / folder / f"Fold{fold}" / name) for name in names)
        parts = [_features(part, options.collection) for part in (train, test)]
        usable = [q for q in np.unique(train.qid) if len(np.unique(train.y[train.qid == q])) > 1]
        for draw in range(options.draws):
            order = np.random.default_rng((fold, draw)).permutation(usable)
            for count in options.scored:
                some = np.isin(train.qid, order[: count + options.unscored])
                X, qid = parts[0][some], train.qid[some]
                y = np.where(np.isin(qid, order[:count]), train.y[some], np.nan)
                known = ~np.isnan(y)
                models = (
                    RankRLSCV().fit(X[known], y[known], qid=qid[known]),
                    CoRankRLS(n_views=options.views, random_state=draw).fit(X[known], y[known], qid=qid[known]),
                    CoRankRLS(n_views=options.views, random_state=draw).fit(X, y, qid=qid),
                )
                errors[count].append(
                    tuple(disagreement_error(test.y, model.predict(parts[1]), qid=test.qid) for model in models)
                )
    print(f"{options.collection}, {options.unscored} unscored queries, {time.perf_counter() - start:.0f} s")
    print("scored  RankRLS  views   CoRankRLS  against RankRLS, better in, p      against views, better in, p")
    for count, found in errors.items():
        plain, views, both = np.array(found).T
        tests = "   ".join(
            f"{(both - other).mean():+.4f}   {(both < other).sum():3} of {len(found)}   "
            f"{wilcoxon(other, both).pvalue:<8.2g}"
            for other in (plain, views)
        )
        print(f"{count:6}  {plain.mean():.4f}   {views.mean():.4f}  {both.mean():.4f}     {tests}")


def _features(table: object, collection: str) -> np.ndarray:
    X = table.X.toarray() if hasattr(table.X, "toarray") else table.X
    return QueryStandardScaler().fit_transform(X, qid=table.qid) if collection == "ohsumed" else np.asarray(X)


if __name__ == "__main__":
    main()
