"""Transductive RankRLS beside the supervised model on LETOR collections, a part of the queries unscored.

The paper (Pahikkala, Suominen, Boberg, Salakoski: Transductive Ranking via Pairwise Regularized Least-Squares, MLG
2007) proposes the method and reports no experiment. Here the test queries of each official fold are unscored, and so
are the training queries but for a part; the two models share the regularization, which RankRLSCV chooses by
leave-query-out on the scored queries alone. Both rank every test query, and a Wilcoxon signed-rank test over these
queries compares their disagreement errors, for several penalties.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
from _letor_data import COLLECTIONS, Collection, Fold, find_collections, joined, load_fold
from _text import aligned, headed, p_text
from numpy.typing import NDArray

from rankrls import RankRLSCV, TransductiveRankRLS
from rankrls.comparison import paired_wilcoxon
from rankrls.metrics import Measure

PENALTIES = (0.01, 0.1, 1.0, 10.0, 100.0)
SHARES = (0.02, 0.1, 0.5, 1.0)
"""Parts of the training queries that are scored."""
ALPHAS = tuple(2.0**k for k in range(-10, 21))


@dataclass(frozen=True)
class Row:
    """One penalty at one share of scored queries, over the test queries of all folds."""

    share: float
    scored: float
    penalty: float
    supervised: float
    transductive: float
    predicted: float
    wins: int
    ties: int
    losses: int
    p_value: float


@dataclass(frozen=True)
class Errors:
    """Disagreement error of each test query of a fold: supervised, and by the labels found and the new model."""

    scored: int
    supervised: NDArray[np.float64]
    found: NDArray[np.float64]
    predicted: NDArray[np.float64]


def run_fold(fold: Fold, share: float, penalties: tuple[float, ...]) -> Errors:
    """Score a part of the training queries, drawn with a fixed seed, and rank the test queries."""
    queries = np.unique(fold.train.qid)
    wanted = max(4, round(share * len(queries)))
    scored = np.random.default_rng(fold.number).permutation(queries)[:wanted]
    rows = joined(fold.train, fold.test)
    is_test = np.arange(len(rows.y)) >= len(fold.train.y)
    has_labels = np.isin(rows.qid, scored) & ~is_test
    chosen = RankRLSCV(ALPHAS).fit(rows.X[has_labels], rows.y[has_labels], qid=rows.qid[has_labels])
    y = np.where(has_labels, rows.y, np.nan)

    def judge(scores: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.asarray(Measure("disagreement")(fold.test.y, scores[is_test], qid=fold.test.qid, per_query=True))

    found, predicted = [], []
    for penalty in penalties:
        model = TransductiveRankRLS(chosen.alpha_, penalty=penalty).fit(rows.X, y, qid=rows.qid)
        found.append(judge(model.transduction_))
        predicted.append(judge(model.predict(rows.X)))
    return Errors(len(scored), judge(chosen.predict(rows.X)), np.array(found), np.array(predicted))


def run(
    collection: Collection, numbers: tuple[int, ...], shares: tuple[float, ...], penalties: tuple[float, ...]
) -> list[Row]:
    """Every share and penalty, over the test queries of all folds."""
    folds = [load_fold(collection, number) for number in numbers]
    rows = []
    for share in shares:
        results = [run_fold(fold, share, penalties) for fold in folds]
        supervised = np.concatenate([r.supervised for r in results])
        for k, penalty in enumerate(penalties):
            found = np.concatenate([r.found[k] for r in results])
            predicted = np.concatenate([r.predicted[k] for r in results])
            test = paired_wilcoxon(supervised, found)
            rows.append(
                Row(
                    share,
                    float(np.mean([r.scored for r in results])),
                    penalty,
                    float(np.nanmean(supervised)),
                    float(np.nanmean(found)),
                    float(np.nanmean(predicted)),
                    *(test.wins, test.ties, test.losses, test.p_value),
                )
            )
    return rows


def as_text(collection: Collection, rows: list[Row], seconds: float) -> str:
    """The table of a collection."""
    head = ["scored queries", "penalty", "supervised", "labels found", "predicted", "better/same/worse", "p"]
    lines = [
        [
            f"{row.scored:g} ({row.share:.0%})",
            f"{row.penalty:g}",
            f"{row.supervised:.4f}",
            f"{row.transductive:.4f}",
            f"{row.predicted:.4f}",
            f"{row.wins}/{row.ties}/{row.losses}",
            p_text(row.p_value),
        ]
        for row in rows
    ]
    title = f"{collection.title}: disagreement error on the unscored test queries ({seconds:.0f} s)"
    return f"{headed(title)}\n\n{aligned([head, *lines])}\n"


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--data",
        type=Path,
        default=os.environ.get("RANKRLS_DATA"),
        help="folder of the collections (default: the environment variable RANKRLS_DATA; see letor.py --help)",
    )
    parser.add_argument("--dataset", choices=tuple(COLLECTIONS), help="default: OHSUMED and MQ2008")
    parser.add_argument("--quick", action="store_true", help="one fold, two shares and two penalties")
    parser.add_argument("--json", action="store_true", help="print one JSON object instead of the tables")
    options = parser.parse_args(arguments)
    if options.data is None:
        parser.error("give the folder of the data: --data DIR, or set RANKRLS_DATA.")
    shares, penalties = (SHARES[1:3], PENALTIES[1:4:2]) if options.quick else (SHARES, PENALTIES)
    out = {}
    try:
        for name in (options.dataset,) if options.dataset else ("ohsumed", "mq2008"):
            (collection,) = find_collections(Path(options.data).expanduser(), name)
            start = time.perf_counter()
            rows = run(collection, collection.folds[:1] if options.quick else collection.folds, shares, penalties)
            out[name] = [asdict(row) for row in rows]
            if not options.json:
                print(as_text(collection, rows, time.perf_counter() - start), flush=True)
    except (ValueError, OSError) as error:
        print(f"transductive.py: {error}", file=sys.stderr)
        return 2
    if options.json:
        print(json.dumps(out, indent=2))
    return 0


if __name__ == "__main__":
    sys.exit(main())
