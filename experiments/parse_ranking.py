"""Ranking the parses of a sentence, beside the published figures.

Reproduces section 3.2 (table 8) of Pahikkala, Tsivtsivadze, Airola, Boberg, Salakoski: Learning to Rank with Pairwise
Regularized Least-Squares (SIGIR 2007 workshop), Kendall's tau-b of a sentence, and table 1 of Tsivtsivadze, Pahikkala,
Airola, Boberg, Salakoski: A Sparse Regularized Least-Squares Preference Learning Algorithm (SCAI 2008), disagreement
error, where basic learners train on 5 parses of a sentence and sparse ones on 15 further parses too. Kernel and alpha
are chosen by 10-fold cross-validation over the sentences.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from _parse_protocol import ALPHAS, COLUMNS, FOLDS, GAMMAS, Column, Outcome, Sentences, drawn, judge, load, split
from _text import aligned, headed, p_text, wrapped
from numpy.typing import NDArray

from rankrls.comparison import bootstrap_interval, compare_per_query

_HELP = """\
where the data come from:
  BioInfer is public, but the papers' candidate parses of its sentences and their goodness are not. RLScore publishes a
  sample with its examples: rank_train.light and rank_test.light, 42 sentences. Any LETOR file will do: a line a parse,
  its goodness as the label, its sentence as the qid.

examples:
  python experiments/parse_ranking.py --data ~/data
  python experiments/parse_ranking.py --train train.txt --test test.txt
  python experiments/parse_ranking.py --train all.txt --share 0.4545
  cat mq2008_letor4/Fold?/test.txt > all.txt
  python experiments/parse_ranking.py --train all.txt --share 0.6378 --tables 2008 --repetitions 1
"""
_TITLES = {"2007": "Kendall's tau-b (2007, table 8)", "2008": "Disagreement error (2008, table 1)"}
_PAPER_SENTENCES = (500, 600)
_COMPARED = (("2007", "RankRLS"), ("2008", "sparse RankRLS"))


@dataclass(frozen=True)
class Result:
    """What was measured; ``outcomes[table, learner]`` has one outcome a repetition."""

    train: Sentences
    test: Sentences
    basis: int
    further: int
    sizes: tuple[float, float]
    outcomes: dict[tuple[str, str], list[Outcome]]
    repetitions: int
    gammas: tuple[float, ...]

    @property
    def titles(self) -> dict[str, str]:
        """Of the tables that are there."""
        found = {table for table, _ in self.outcomes}
        return {table: title for table, title in _TITLES.items() if table in found}

    def values(self, table: str, name: str) -> NDArray[np.float64]:
        """One figure a test sentence: the mean over the repetitions."""
        return np.mean([o.values for o in self.outcomes[table, name]], axis=0)

    def comparisons(self) -> list[tuple[str, Any]]:
        """RankRLS against RLS, and sparse RankRLS against the others, over the test sentences."""
        out = []
        for table, best in _COMPARED:
            names = [name for at, name in self.outcomes if at == table]
            others = {name: self.values(table, name) for name in names if name != best}
            for name, values in others.items():
                (pair,) = compare_per_query(
                    {best: self.values(table, best), name: values},
                    greater_is_better=table == "2007",
                    random_state=0,
                ).pairs
                out.append((table, pair))
        return out


def run(
    train: Sentences,
    test: Sentences,
    basis: int,
    further: int,
    most: int,
    repetitions: int,
    seed: int,
    tables: Sequence[str] = tuple(_TITLES),
    gammas: Sequence[float] = GAMMAS,
) -> Result:
    """The tables; the draw of the parses is repeated."""
    kernels = {"kernel": ("linear", "rbf"), "gamma": tuple(gammas)}
    columns = [c for c in COLUMNS if c.table in tables]
    outcomes: dict[tuple[str, str], list[Outcome]] = {(c.table, c.name): [] for c in columns}
    sizes = []
    all_rows, _ = drawn(train, most, 0, np.random.default_rng([seed, 0]))
    for column in columns:
        if column.table == "2007":
            outcome = judge(column, train.take(np.sort(all_rows)), test, kernels=kernels)
            outcomes[column.table, column.name].append(outcome)
    for number in range(repetitions):
        first, second = drawn(train, basis, further, np.random.default_rng([seed, 1 + number]))
        sizes.append((len(first), len(second)))
        basic, more = train.take(first), train.take(np.concatenate((first, second)))
        for column in columns:
            if column.table == "2008":
                if column.full:
                    outcome = judge(column, more, test, kernels=outcomes["2008", "sparse RankRLS"][-1].kernels)
                elif column.sparse:
                    outcome = judge(column, more, test, len(first), kernels)
                else:
                    outcome = judge(column, basic, test, kernels=kernels)
                outcomes[column.table, column.name].append(outcome)
    return Result(train, test, basis, further, tuple(np.mean(sizes, axis=0)), outcomes, repetitions, kernels["gamma"])  # type: ignore[arg-type]


def as_text(result: Result) -> str:
    (m, q), (n, s) = result.train.shape, result.test.shape
    parts = [headed(f"{m} parses of {q} sentences to learn from, {n} parses of {s} sentences to be judged on", "=")]
    for table, title in result.titles.items():
        parts += ["", headed(title), _table(result, table)]
    parts += ["", headed("Wilcoxon's signed ranks over the test sentences")]
    rows = [["table, learners", "difference", "95% interval", "p", "won/tied/lost"]]
    for table, pair in result.comparisons():
        rows.append(
            [
                f"{table}: {pair.first} - {pair.second}",
                f"{pair.difference:+.3f}",
                f"[{pair.low:+.3f}, {pair.high:+.3f}]",
                p_text(pair.p_wilcoxon),
                f"{pair.wins}/{pair.ties}/{pair.losses}",
            ]
        )
    parts += [aligned(rows), "", "Notes", *(wrapped(note) for note in notes(result)), ""]
    return "\n".join(parts)


def notes(result: Result) -> list[str]:
    learnt, judged = result.train.shape[1], result.test.shape[1]
    out = [
        f"The papers train on {_PAPER_SENTENCES[0]} sentences of BioInfer and judge on {_PAPER_SENTENCES[1]}, by a "
        "graph kernel; its candidate parses are not public. Here are "
        f"{learnt} and {judged} sentences with the features that the file gives, so not the figures can be compared "
        "but the order of the learners; the intervals, over sentences, say how little so few can tell.",
        f"2008: up to {result.basis} random parses of each sentence are the basis ({result.sizes[0]:.0f} in all), up "
        f"to {result.further} others the further parses ({result.sizes[1]:.0f} in all); averaged over "
        f"{result.repetitions} draws. The papers' sizes are 5 and 15. Full RankRLS sees all of them, all are its "
        "basis, and its kernel is the one that sparse RankRLS chose; the paper has no figure for it.",
        f"Chosen by {FOLDS}-fold cross-validation over the sentences (fewer folds where there are fewer): linear or "
        f"Gaussian kernel, gamma from 2^{np.log2(result.gammas[0]):.0f} to 2^{np.log2(result.gammas[-1]):.0f}, alpha "
        f"from 2^{np.log2(ALPHAS[0]):.0f} to 2^{np.log2(ALPHAS[-1]):.0f}. Sentences whose parses are all equally good "
        "are not judged by tau-b.",
        "The disagreement error is equation (1) of 2008: equally good parses that the scores keep apart are half an "
        "error, and in N. With the paper's W = BB' each parse beside itself is in N too, n^2 instead of n^2 - n pairs "
        "of a sentence of n parses: its errors are (n - 1) / n of those here, 0.8 of them for five parses.",
    ]
    if result.sizes[1] == 0:
        out.append("No sentence has further parses: the sparse learners are the basic ones. Give a smaller --basis.")
    return out


def _table(result: Result, table: str) -> str:
    rows = [["learner", "mean", "95% interval", "paper", "kernel", "alpha", "cross-validated"]]
    for column in _columns(table):
        outcomes = result.outcomes[table, column.name]
        interval = bootstrap_interval(result.values(table, column.name), random_state=0)
        one = outcomes[0]
        rows.append(
            [
                column.name,
                f"{interval.estimate:.3f}",
                f"[{interval.low:.3f}, {interval.high:.3f}]",
                "" if column.paper is None else f"{column.paper:.3f}" if table == "2007" else f"{column.paper:.2f}",
                one.kernel if len({o.kernel for o in outcomes}) == 1 else "differs",
                f"2^{np.log2(one.alpha):.0f}" if len({o.alpha for o in outcomes}) == 1 else "differs",
                f"{np.mean([o.chosen_by for o in outcomes]):.3f}",
            ]
        )
    return aligned(rows)


def _columns(table: str) -> list[Column]:
    return [c for c in COLUMNS if c.table == table]


def as_json(result: Result) -> dict[str, Any]:
    return {
        "train": result.train.shape,
        "test": result.test.shape,
        "basis": result.basis,
        "further": result.further,
        "tables": {
            table: {
                c.name: {
                    "mean": float(np.nanmean(result.values(table, c.name))),
                    "paper": c.paper,
                    "outcomes": [
                        {"kernel": o.kernel, "alpha": o.alpha, "cross_validated": o.chosen_by, "at_edge": o.at_edge}
                        for o in result.outcomes[table, c.name]
                    ],
                }
                for c in _columns(table)
            }
            for table in result.titles
        },
        "wilcoxon": [{"table": table, **vars(pair)} for table, pair in result.comparisons()],
        "notes": notes(result),
    }


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, epilog=_HELP, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--data",
        type=Path,
        default=os.environ.get("RANKRLS_DATA"),
        help="folder of the sample (default: the environment variable RANKRLS_DATA)",
    )
    parser.add_argument("--train", type=Path, help="a LETOR file instead")
    parser.add_argument("--test", type=Path, help="its test sentences (default: a random part of --train)")
    parser.add_argument("--share", type=float, default=500 / 1100, help="part to train on without --test (0.4545)")
    parser.add_argument("--basis", type=int, help="parses of a sentence (default: 5; 2 where most have no more than 5)")
    parser.add_argument("--further", type=int, default=15, help="further parses for the sparse learners (default: 15)")
    parser.add_argument("--most", type=int, default=20, help="parses of a sentence for the table of 2007 (default: 20)")
    parser.add_argument("--tables", nargs="+", choices=tuple(_TITLES), default=tuple(_TITLES), help="default: both")
    parser.add_argument(
        "--gammas",
        type=float,
        nargs="+",
        default=GAMMAS,
        help="of the Gaussian kernel (default: 2^-15, 2^-13, ... 2^1)",
    )
    parser.add_argument("--repetitions", type=int, default=10, help="random draws of the parses (default: 10)")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--json", action="store_true", help="print one JSON object instead of the tables")
    options = parser.parse_args(arguments)
    if options.data is None and options.train is None:
        parser.error("give the folder of the sample: --data DIR, or set RANKRLS_DATA; or a file: --train FILE.")
    try:
        train, test = _read(options)
        for name, least in (("further", 0), ("most", 2), ("repetitions", 1)):
            if getattr(options, name) < least:
                raise ValueError(f"--{name} must be at least {least}; got {getattr(options, name)}.")
        basis = (5 if np.median(train.lengths) > 5 else 2) if options.basis is None else options.basis
        if basis < 2:
            raise ValueError(f"--basis must be at least 2: one parse of a sentence makes no pair; got {basis}.")
        result = run(
            train,
            test,
            basis,
            options.further,
            options.most,
            options.repetitions,
            options.seed,
            options.tables,
            options.gammas,
        )
        print(json.dumps(as_json(result), indent=2) if options.json else as_text(result), flush=True)
    except (ValueError, OSError) as error:
        print(f"parse_ranking.py: {error}", file=sys.stderr)
        return 2
    return 0


def _read(options: argparse.Namespace) -> tuple[Sentences, Sentences]:
    if options.train is None:
        folder = Path(options.data).expanduser()
        places = [place for place in (folder, folder / "parse_ranking") if (place / "rank_train.light").is_file()]
        if not places:
            raise ValueError(f"No rank_train.light in {folder} or {folder / 'parse_ranking'}; see --help.")
        train, test = load([places[0] / "rank_train.light", places[0] / "rank_test.light"])
        return train, test
    if options.test is not None:
        train, test = load([options.train, options.test])
        return train, test
    if not 0.0 < options.share < 1.0:
        raise ValueError(f"--share must lie between 0 and 1; got {options.share}.")
    (data,) = load([options.train])
    return split(data, options.share, np.random.default_rng(options.seed))


if __name__ == "__main__":
    sys.exit(main())
