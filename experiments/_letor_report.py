"""The tables and notes of the LETOR experiment."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from _letor_data import Collection
from _letor_protocol import ALPHAS, COLUMNS, MEASURES, NEARLY_EQUAL, Outcome
from _paper_tables import METHODS, PAPER
from _text import aligned, p_text, wrapped

from rankrls.comparison import Comparison, compare_per_query

__all__ = ["Result", "as_json", "as_text"]

_COMPARED = ("map", "ndcg@10", "p@10")
_PER_FOLD = ("map", "ndcg@1", "ndcg@10", "p@1", "p@10")


@dataclass(frozen=True)
class Result:
    """Everything that was measured on one collection.

    Attributes
    ----------
    outcomes : dict from a column's name to its outcomes, one a fold
    ranges : dict from a column's name and a measure to the least and largest figure that equally good choices give
    """

    collection: Collection
    shape: tuple[int, int, int]
    outcomes: dict[str, list[Outcome]]
    ranges: dict[str, dict[str, tuple[float, float]]]

    def mean(self, column: str, measure: str) -> float:
        """Averaged over the folds, as the paper does."""
        return float(np.mean([o.test[measure] for o in self.outcomes[column]]))

    def per_query(self, column: str, measure: str) -> Any:
        return np.concatenate([o.per_query[measure] for o in self.outcomes[column]])

    @property
    def paper(self) -> dict[str, dict[str, float]] | None:
        """The paper's figures, which are averages over all five folds."""
        complete = len(next(iter(self.outcomes.values()))) == 5
        return PAPER.get(self.collection.name) if complete else None

    def tests(self) -> dict[str, Comparison]:
        """RankRLS against RLS over the test queries of all folds, each of which is tested once."""
        return {
            measure: compare_per_query(
                {"RankRLS": self.per_query("RankRLS", measure), "RLS": self.per_query("RLS", measure)},
                test="wilcoxon",
                random_state=0,
            )
            for measure in _COMPARED
        }


def as_text(result: Result) -> str:
    documents, queries, features = result.shape
    folds = ", ".join(str(o.fold) for o in result.outcomes["RankRLS"])
    head = (
        f"{result.collection.title}: {documents} documents, {queries} queries, {features} features; "
        f"average over folds {folds}"
    )
    parts = [head, "=" * len(head), _main_table(result), *(f"  {c.name}: {c.what}" for c in COLUMNS)]
    if result.paper:
        parts.append("  diff: ours minus the paper's")
    parts += ["", "Fold by fold", _fold_table(result), "", "Is RankRLS better than RLS? Wilcoxon over the test queries"]
    parts += [_test_table(result), "", "Notes", *(wrapped(note) for note in notes(result)), ""]
    return "\n".join(parts)


def as_json(result: Result) -> dict[str, Any]:
    return {
        "collection": result.collection.name,
        "documents": result.shape[0],
        "queries": result.shape[1],
        "features": result.shape[2],
        "alphas": list(ALPHAS),
        "mean": {c.name: {m: result.mean(c.name, m) for m in MEASURES} for c in COLUMNS},
        "paper": result.paper,
        "folds": {
            name: [
                {
                    "fold": o.fold,
                    "alpha": o.alpha,
                    "ties": o.ties,
                    "selection": o.selection,
                    "selection_map": o.chosen_by,
                    "seconds": o.seconds,
                    **o.test,
                }
                for o in outcomes
            ]
            for name, outcomes in result.outcomes.items()
        },
        "range_of_equal_choices": result.ranges,
        "wilcoxon": {
            m: {
                "difference": test.pairs[0].difference,
                "low": test.pairs[0].low,
                "high": test.pairs[0].high,
                "p_value": test.pairs[0].p_value,
            }
            for m, test in result.tests().items()
        },
        "notes": notes(result),
    }


def notes(result: Result) -> list[str]:
    """What a reader must know to compare the figures, computed from them."""
    queries = result.shape[1]
    out = [
        f"alpha is one of {len(ALPHAS)} powers of two from 2^{np.log2(ALPHAS[0]):.0f} to 2^{np.log2(ALPHAS[-1]):.0f} "
        "(the paper does not give its grid), chosen with the ties by the MAP of the validation queries; measures are "
        "LETOR's: relevant is label >= 1, gain 2^label - 1, tied scores in file order.",
        f"One query of the {queries} moves NDCG@1 and P@1 by up to {1 / queries:.4f}.",
    ]
    edges = [f"{name} fold {o.fold}" for name, outcomes in result.outcomes.items() for o in outcomes if o.at_edge]
    if edges:
        out.append(
            f"The chosen alpha is at an end of the grid, where MAP no longer changes with it: {', '.join(edges)}."
        )
    if result.paper is not None:
        out += _differences(result, result.paper)
    if result.collection.name == "ohsumed":
        strict = float(np.mean([o.map_of_label_2 for o in result.outcomes["RankRLS"]]))
        out.append(
            "The paper says that only label 2 counts as relevant for MAP. Counted so the MAP of RankRLS is "
            f"{strict:.3f}; with label >= 1, as LETOR's own evaluation counts, it is "
            f"{result.mean('RankRLS', 'map'):.3f}, which agrees with the paper's 0.447."
        )
    return out


def _differences(result: Result, paper: dict[str, dict[str, float]]) -> list[str]:
    out = []
    for column in (c for c in COLUMNS if c.paper):
        assert column.paper is not None
        larger = [m for m in MEASURES if abs(result.mean(column.name, m) - paper[m][column.paper]) > NEARLY_EQUAL]
        gap = result.mean(column.name, "map") - paper["map"][column.paper]
        text = f"{column.name}: MAP is {gap:+.4f} from the paper."
        if larger:
            inside, outside = [], []
            for m in larger:
                low, high = result.ranges[column.name][m]
                is_inside = low - 0.0005 <= paper[m][column.paper] <= high + 0.0005  # the paper has three digits
                (inside if is_inside else outside).append(
                    f"{_label(m)} {paper[m][column.paper]:.3f} ({low:.3f}..{high:.3f})"
                )
            text += f" {len(larger)} of {len(MEASURES)} measures differ by more than {NEARLY_EQUAL}."
            if inside:
                text += (
                    f" Within reach of choices whose validation MAP is no more than {NEARLY_EQUAL} below the best, so "
                    f"of another grid: {', '.join(inside)}."
                )
            if outside:
                text += f" Out of their reach: {', '.join(outside)}."
        out.append(text)
    return out


def _main_table(result: Result) -> str:
    paper = result.paper
    header = ["measure"]
    for column in COLUMNS:
        header += [column.name, "diff"] if column.paper and paper else [column.name]
    if paper:
        header += [f"paper: {METHODS[0]}", *METHODS[1:]]
    rows = [header]
    for measure in MEASURES:
        row = [_label(measure)]
        for column in COLUMNS:
            ours = result.mean(column.name, measure)
            row.append(f"{ours:.3f}")
            if column.paper and paper:
                row.append(f"{ours - paper[measure][column.paper]:+.3f}")
        if paper:
            row += [f"{paper[measure][m]:.3f}" for m in METHODS]
        rows.append(row)
    return aligned(rows)


def _fold_table(result: Result) -> str:
    rows = [["learner", "fold", "alpha", "ties", "selection", *(_label(m) for m in _PER_FOLD), "seconds"]]
    for column in COLUMNS:
        for o in result.outcomes[column.name]:
            ties = o.ties if isinstance(column.parameters.get("ties"), tuple) else "-"
            figures = [f"{o.test[m]:.3f}" for m in _PER_FOLD]
            alpha = f"2^{np.log2(o.alpha):.0f}"
            rows.append([column.name, str(o.fold), alpha, ties, f"{o.chosen_by:.3f}", *figures, f"{o.seconds:.2f}"])
    return aligned(rows)


def _test_table(result: Result) -> str:
    rows = [["measure", "difference", "95% interval", "p", "won/tied/lost"]]
    for measure, test in result.tests().items():
        pair = test.pairs[0]
        rows.append(
            [
                _label(measure),
                f"{pair.difference:+.4f}",
                f"[{pair.low:+.4f}, {pair.high:+.4f}]",
                p_text(pair.p_value),
                f"{pair.wins}/{pair.ties}/{pair.losses}",
            ]
        )
    return aligned(rows)


def _label(measure: str) -> str:
    return measure.upper()
