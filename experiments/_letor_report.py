"""The tables and notes of the LETOR experiment."""

from __future__ import annotations

import textwrap
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from _letor_data import Collection
from _letor_protocol import MEASURES, NEARLY_EQUAL, Method, Outcome
from _paper_tables import METHODS, PAPER

from rankrls.comparison import Comparison, compare_per_query

__all__ = ["Result", "as_json", "as_text"]

_COMPARED = ("map", "ndcg@10", "p@10")
_SHORT = ("map", "ndcg@1", "ndcg@5", "ndcg@10", "p@1", "p@10")


@dataclass(frozen=True)
class Result:
    """Everything that was measured on one collection.

    Attributes
    ----------
    methods : tuple of Method
    outcomes : dict from a method's name to its outcomes, one a fold
    notes : tuple of str
        Of the methods' families, and of those that could not be run.
    """

    collection: Collection
    shape: tuple[int, int, int]
    methods: tuple[Method, ...]
    outcomes: dict[str, list[Outcome]]
    notes: tuple[str, ...]

    def mean(self, method: str, measure: str) -> float:
        """Averaged over the folds, as the paper does."""
        return float(np.mean([o.test[measure] for o in self.outcomes[method]]))

    def per_query(self, method: str, measure: str) -> Any:
        return np.concatenate([o.per_query[measure] for o in self.outcomes[method]])

    def range(self, method: str, measure: str) -> tuple[float, float]:
        """Least and largest figure of choices that the validation queries cannot tell from the best."""
        low, high = np.mean([o.ranges[measure] for o in self.outcomes[method]], axis=0)
        return float(low), float(high)

    @property
    def ranged(self) -> list[str]:
        return [name for name, outcomes in self.outcomes.items() if all(o.ranges for o in outcomes)]

    @property
    def paper(self) -> dict[str, dict[str, float]] | None:
        """The paper's figures, which are averages over all five folds."""
        complete = len(next(iter(self.outcomes.values()))) == 5
        return PAPER.get(self.collection.name) if complete else None

    @cached_property
    def tests(self) -> dict[str, Comparison]:
        """Every pair of methods (variants apart) over the test queries of all folds, each of which is tested once."""
        names = [m.name for m in self.methods if not m.variant]
        if len(names) < 2:
            return {}
        return {
            measure: compare_per_query(
                {name: self.per_query(name, measure) for name in names}, test="wilcoxon", random_state=0
            )
            for measure in _COMPARED
        }


def as_text(result: Result) -> str:
    documents, queries, features = result.shape
    folds = ", ".join(str(o.fold) for o in next(iter(result.outcomes.values())))
    head = (
        f"{result.collection.title}: {documents} documents, {queries} queries, {features} features; "
        f"average over folds {folds}"
    )
    parts = [head, "=" * len(head), _method_table(result), *(f"  {m.name}: {m.what}" for m in result.methods)]
    if result.paper:
        parts += ["", "Beside the paper (diff: ours minus the paper's)", _paper_table(result, result.paper)]
    parts += ["", "MAP fold by fold", _map_table(result), "", "What was chosen, by the MAP of the validation queries"]
    parts += [_choice_table(result)]
    if result.tests:
        parts += ["", "Pairs of methods, MAP: Wilcoxon over the test queries", str(result.tests["map"])]
    parts += ["", "Notes", *(_wrapped(note) for note in notes(result)), ""]
    return "\n".join(parts)


def as_json(result: Result) -> dict[str, Any]:
    return {
        "collection": result.collection.name,
        "documents": result.shape[0],
        "queries": result.shape[1],
        "features": result.shape[2],
        "mean": {m.name: {measure: result.mean(m.name, measure) for measure in MEASURES} for m in result.methods},
        "paper": result.paper,
        "folds": {
            name: [
                {
                    "fold": o.fold,
                    **o.settings,
                    "selection": o.selection,
                    "selection_map": _number(o.chosen_by),
                    "seconds": _number(o.fit_seconds),
                    "predict_seconds": _number(o.predict_seconds),
                    **o.test,
                }
                for o in outcomes
            ]
            for name, outcomes in result.outcomes.items()
        },
        "range_of_equal_choices": {
            name: {measure: result.range(name, measure) for measure in MEASURES} for name in result.ranged
        },
        "wilcoxon": {
            measure: [
                {
                    "first": p.first,
                    "second": p.second,
                    "difference": p.difference,
                    "low": p.low,
                    "high": p.high,
                    "p_value": p.p_value,
                    "p_holm": p.p_holm,
                }
                for p in comparison
            ]
            for measure, comparison in result.tests.items()
        },
        "notes": notes(result),
    }


def notes(result: Result) -> list[str]:
    """What a reader must know to compare the figures, computed from them."""
    queries = result.shape[1]
    out = [
        "Everything is chosen by the MAP of the validation queries; measures are LETOR's: relevant is label >= 1, gain "
        "2^label - 1, tied scores in file order. Seconds are those of one fold, choosing included, on one thread.",
        *result.notes,
        f"One query of the {queries} moves NDCG@1 and P@1 by up to {1 / queries:.4f}.",
    ]
    edges = [f"{name} fold {o.fold}" for name, outcomes in result.outcomes.items() for o in outcomes if o.at_edge]
    if edges:
        out.append(f"The choice is at an end of its grid: {', '.join(edges)}.")
    if result.paper is not None:
        out += [_difference(result, m, result.paper) for m in result.methods if m.paper]
    if result.collection.name == "ohsumed" and "RankRLS" in result.outcomes:
        strict = float(np.mean([o.map_of_label_2 for o in result.outcomes["RankRLS"]]))
        out.append(
            "The paper says that only label 2 counts as relevant for MAP. Counted so the MAP of RankRLS is "
            f"{strict:.3f}; with label >= 1, as LETOR's own evaluation counts, it is "
            f"{result.mean('RankRLS', 'map'):.3f}, which agrees with the paper's 0.447."
        )
    return out


def _difference(result: Result, method: Method, paper: dict[str, dict[str, float]]) -> str:
    theirs = {m: paper[m][str(method.paper)] for m in MEASURES}
    larger = [m for m in MEASURES if abs(result.mean(method.name, m) - theirs[m]) > NEARLY_EQUAL]
    text = f"{method.name}: MAP is {result.mean(method.name, 'map') - theirs['map']:+.4f} from the paper."
    if not larger:
        return text
    text += f" {len(larger)} of {len(MEASURES)} measures differ by more than {NEARLY_EQUAL}."
    if method.name not in result.ranged:
        return text
    inside, outside = [], []
    for m in larger:
        low, high = result.range(method.name, m)
        is_inside = low - 0.0005 <= theirs[m] <= high + 0.0005  # the paper has three digits
        (inside if is_inside else outside).append(f"{_label(m)} {theirs[m]:.3f} ({low:.3f}..{high:.3f})")
    if inside:
        text += (
            f" Within reach of choices whose validation MAP is no more than {NEARLY_EQUAL} below the best: "
            f"{', '.join(inside)}."
        )
    if outside:
        text += f" Out of their reach: {', '.join(outside)}."
    return text


def _method_table(result: Result) -> str:
    rows = [["method", *(_label(m) for m in _SHORT), "fit, s", "predict, ms"]]
    for method in result.methods:
        outcomes = result.outcomes[method.name]
        fit = float(np.mean([o.fit_seconds for o in outcomes]))
        predict = 1000.0 * float(np.mean([o.predict_seconds for o in outcomes]))
        figures = [f"{result.mean(method.name, m):.3f}" for m in _SHORT]
        rows.append([method.name, *figures, *("" if np.isnan(t) else f"{t:.2f}" for t in (fit, predict))])
    return _aligned(rows)


def _paper_table(result: Result, paper: dict[str, dict[str, float]]) -> str:
    """The paper's methods, each with ours of the same name."""
    ours = [name for name in METHODS if name in result.outcomes]
    header = ["measure"]
    for name in METHODS:
        header += [name, "paper", "diff"] if name in ours else [f"{name}: paper"]
    rows = [header]
    for measure in MEASURES:
        row = [_label(measure)]
        for name in METHODS:
            theirs = paper[measure][name]
            if name in ours:
                mean = result.mean(name, measure)
                row += [f"{mean:.3f}", f"{theirs:.3f}", f"{mean - theirs:+.3f}"]
            else:
                row.append(f"{theirs:.3f}")
        rows.append(row)
    return _aligned(rows)


def _map_table(result: Result) -> str:
    folds = [str(o.fold) for o in next(iter(result.outcomes.values()))]
    rows = [["method", *folds, "mean"]]
    for method in result.methods:
        figures = [f"{o.test['map']:.4f}" for o in result.outcomes[method.name]]
        rows.append([method.name, *figures, f"{result.mean(method.name, 'map'):.4f}"])
    return _aligned(rows)


def _choice_table(result: Result) -> str:
    rows = [["method", "fold", "choice", "validation MAP", "fit, s"]]
    for method in result.methods:
        for o in result.outcomes[method.name]:
            known = ["" if np.isnan(v) else f"{v:.{d}f}" for v, d in ((o.chosen_by, 4), (o.fit_seconds, 2))]
            rows.append([method.name, str(o.fold), method.words(o.settings), *known])
    return _aligned(rows)


def _number(value: float) -> float | None:
    return None if np.isnan(value) else value


def _wrapped(note: str) -> str:
    return textwrap.fill(note, 118, initial_indent="- ", subsequent_indent="  ", break_on_hyphens=False)


def _label(measure: str) -> str:
    return measure.upper()


def _aligned(rows: list[list[str]]) -> str:
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    return "\n".join(
        "  ".join(
            cell.ljust(w) if i == 0 else cell.rjust(w) for i, (cell, w) in enumerate(zip(row, widths, strict=True))
        )
        for row in rows
    )
