"""Running the methods of the LETOR experiment, and its tables."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

import numpy as np
from _letor_data import Collection, load_fold
from _letor_methods import Method
from _paper_tables import PAPER
from _text import aligned, headed

from rankrls.comparison import Comparison, compare_per_query
from rankrls.metrics import evaluate

MEASURES = ("map", *(f"ndcg@{k}" for k in range(1, 11)), *(f"p@{k}" for k in range(1, 11)))
_SHORT = ("map", "ndcg@1", "ndcg@5", "ndcg@10", "p@1", "p@10")


@dataclass(frozen=True)
class Outcome:
    """One method on one fold: what was chosen, seconds, and each measure of each test query."""

    fold: int
    settings: dict[str, Any]
    fit_seconds: float
    per_query: dict[str, Any]


@dataclass(frozen=True)
class Result:
    """Everything that was measured on one collection; ``outcomes`` by method, one a fold."""

    collection: Collection
    methods: tuple[Method, ...]
    outcomes: dict[str, list[Outcome]]

    def mean(self, method: str, measure: str) -> float:
        """Averaged over the folds, as the paper does."""
        return float(np.mean([o.per_query[measure].mean() for o in self.outcomes[method]]))

    def paper(self, method: Method, measure: str) -> float | None:
        """The paper's figure, which is an average over all five folds."""
        if method.paper is None or len(self.outcomes[method.name]) < 5 or self.collection.name not in PAPER:
            return None
        return PAPER[self.collection.name][measure][method.paper]

    def tests(self, measure: str = "map") -> Comparison:
        """Every pair of methods over the test queries of all folds, each of which is tested once."""
        values = {name: np.concatenate([o.per_query[measure] for o in runs]) for name, runs in self.outcomes.items()}
        return compare_per_query(values, random_state=0)


def run(collection: Collection, numbers: tuple[int, ...], methods: list[Method]) -> Result:
    """Every method on the given folds."""
    outcomes: dict[str, list[Outcome]] = {method.name: [] for method in methods}
    for number in numbers:
        fold = load_fold(collection, number)
        for method in methods:
            start = time.perf_counter()
            predict, settings = method.fit(fold)
            seconds, y, qid = time.perf_counter() - start, fold.test.y, fold.test.qid
            scores = np.asarray(predict(fold.test.X), dtype=float)
            values = evaluate(y, scores, qid=qid, measures=MEASURES, convention="letor", per_query=True)
            outcomes[method.name].append(Outcome(number, settings, seconds, values))
    return Result(collection, tuple(methods), outcomes)


def as_text(result: Result) -> str:
    folds = ", ".join(str(o.fold) for o in next(iter(result.outcomes.values())))
    parts = [headed(f"{result.collection.title}, average over the test queries of folds {folds}", "=")]
    rows = [["method", *(m.upper() for m in _SHORT), "fit, s"]]
    for method in result.methods:
        seconds = np.mean([o.fit_seconds for o in result.outcomes[method.name]])
        rows.append([method.name, *(f"{result.mean(method.name, m):.3f}" for m in _SHORT), f"{seconds:.2f}"])
    parts += [aligned(rows), *(f"  {m.name}: {m.what}" for m in result.methods)]
    compared = [m for m in result.methods if result.paper(m, "map") is not None]
    if compared:
        rows = [["measure", *(head for m in compared for head in (m.name, "paper", "diff"))]]
        for measure in MEASURES:
            row = [measure.upper()]
            for method in compared:
                ours, theirs = result.mean(method.name, measure), result.paper(method, measure) or 0.0
                row += [f"{ours:.3f}", f"{theirs:.3f}", f"{ours - theirs:+.3f}"]
            rows.append(row)
        parts += ["", "Beside the paper (diff: ours minus the paper's)", aligned(rows)]
    if len(result.methods) > 1:
        parts += ["", "Pairs of methods, MAP: Wilcoxon over the test queries", str(result.tests())]
    return "\n".join([*parts, ""])


def as_json(result: Result) -> dict[str, Any]:
    return {
        "collection": result.collection.name,
        "mean": {m.name: {measure: result.mean(m.name, measure) for measure in MEASURES} for m in result.methods},
        "paper": {m.name: {measure: result.paper(m, measure) for measure in MEASURES} for m in result.methods},
        "folds": {
            name: [
                {"fold": o.fold, "seconds": o.fit_seconds, "map": float(o.per_query["map"].mean()), **o.settings}
                for o in runs
            ]
            for name, runs in result.outcomes.items()
        },
    }
