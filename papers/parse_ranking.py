"""Ranking the parses of a sentence: table 8 of the 2007 paper, and table 1 of the 2008 paper.

Pahikkala, Tsivtsivadze, Airola, Boberg, Salakoski: Learning to Rank with Pairwise Regularized Least-Squares (SIGIR 2007
workshop), section 3.2, Kendall's tau-b of a sentence; Tsivtsivadze, Pahikkala, Airola, Boberg, Salakoski: A Sparse
Regularized Least-Squares Preference Learning Algorithm (SCAI 2008), disagreement error, where basic learners train on 5
parses of a sentence and sparse ones on 15 further parses too. Kernel and alpha are chosen by 10-fold cross-validation
over the sentences. BioInfer is public, but the papers' candidate parses of its sentences and their goodness are not.
RLScore's sample has 42 sentences; so the order of the learners can be compared, and not the figures. The claim of 2008,
that items beyond the basis help, is also tried on MQ2008, whose queries have more items.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from papers import letor
from papers._tables import MissingDataError, Table, p_text, paper_figures
from rankrls import RankRLSCV, SparseRankRLSCV
from rankrls.comparison import bootstrap_interval, compare_per_query
from rankrls.io import load_letor
from rankrls.metrics import Measure, evaluate

ALPHAS = tuple(2.0**k for k in range(-20, 16, 2))
GAMMAS = tuple(2.0**k for k in range(-15, 2, 2))
"""Of the Gaussian; the linear kernel of the given features is tried too. The papers choose among the parameters of a
graph kernel, whose features are not public for their corpus."""
FOLDS = 10
MEASURES = {
    "2007": Measure("kendall_tau", empty=0.0),
    "2008": Measure("disagreement", tied_labels="half"),
}
"""Where all scores of a sentence are tied tau-b is 0/0. Left out, a kernel that tells no two parses apart would be
chosen by the few sentences where it does; so it counts 0.

The disagreement error is equation (1) of 2008: a pair of equally good parses that the scores keep apart is half an
error, and all pairs are in N. With the paper's W = BB' the pairs (i, i) are in N too, n^2 instead of n^2 - n for a
sentence of n parses, which would multiply that sentence's error by (n - 1) / n, for every learner alike; they are left
out here."""


@dataclass(frozen=True)
class Sentences:
    """Parses with their goodness, grouped by sentence."""

    X: Any
    y: NDArray[np.float64]
    sentence: NDArray[Any]

    def take(self, rows: NDArray[np.intp]) -> Sentences:
        return Sentences(self.X[rows], self.y[rows], self.sentence[rows])


@dataclass(frozen=True)
class Learner:
    """A row of one of the two tables.

    ``sparse`` learners see the further parses too, the others of 2008 the basis only; ``full`` sees all parses, and all
    are its basis, with the kernel that the sparse learner before it chose.
    """

    name: str
    table: str
    regression_weight: float = 0.0
    sparse: bool = False
    full: bool = False


LEARNERS = (
    Learner("RLS", "2007", 1.0),
    Learner("RankRLS", "2007"),
    Learner("RLS", "2008", 1.0),
    Learner("sparse RLS", "2008", 1.0, sparse=True),
    Learner("RankRLS", "2008"),
    Learner("sparse RankRLS", "2008", sparse=True),
    Learner("full RankRLS", "2008", full=True),
)
_BEST = {"2007": "RankRLS", "2008": "sparse RankRLS"}


@dataclass(frozen=True)
class Outcome:
    """One learner, trained once: its choice, and one figure a test sentence (NaN where nothing is to be ordered)."""

    kernel: dict[str, Any]
    alpha: float
    values: NDArray[np.float64] = field(repr=False)


def load(paths: Sequence[Path]) -> list[Sentences]:
    """Read LETOR files, all with as many features as the widest has."""
    width = max(load_letor(path, zero_based=False).n_features for path in paths)
    tables = [load_letor(path, zero_based=False, n_features=width) for path in paths]
    return [Sentences(table.X, table.y, table.qid) for table in tables]


def sample(data: Path) -> list[Path]:
    """RLScore's two files."""
    for path in sorted(data.rglob("rank_train.light")):
        return [path, path.with_name("rank_test.light")]
    raise MissingDataError("no rank_train.light and rank_test.light")


def split(data: Sentences, share: float, rng: np.random.Generator) -> tuple[Sentences, Sentences]:
    """Random sentences to choose parameters and train on, and the others to judge on."""
    names = rng.permutation(np.unique(data.sentence))
    chosen = np.isin(data.sentence, names[: round(share * len(names))])
    return data.take(np.flatnonzero(chosen)), data.take(np.flatnonzero(~chosen))


def drawn(
    data: Sentences, basis: int, further: int, rng: np.random.Generator
) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Rows of up to ``basis`` random parses of every sentence, and of up to ``further`` others."""
    first, second = [], []
    for sentence in np.unique(data.sentence):
        rows = rng.permutation(np.flatnonzero(data.sentence == sentence))
        first.append(rows[:basis])
        second.append(rows[basis : basis + further])
    return np.concatenate(first), np.concatenate(second)


def judge(
    learner: Learner,
    train: Sentences,
    test: Sentences,
    n_basis: int | None = None,
    kernel: dict[str, Any] | None = None,
) -> Outcome:
    """Choose kernel and alpha by 10-fold cross-validation over the sentences, train on all, judge on the test's.

    With ``n_basis`` the first so many rows are the basis of a sparse learner.
    """
    measure = MEASURES[learner.table]
    parameters: dict[str, Any] = {
        "cv": min(FOLDS, len(np.unique(train.sentence))),
        "scoring": measure,
        "balance": "pairs",
        "regression_weight": learner.regression_weight,
        **(kernel or {"kernel": ("linear", "rbf"), "gamma": GAMMAS}),
    }
    if n_basis is None:
        model = RankRLSCV(ALPHAS, **parameters)
    else:
        model = SparseRankRLSCV(ALPHAS, basis_indices=np.arange(n_basis), **parameters)
    model.fit(train.X, train.y, qid=train.sentence)
    (values,) = evaluate(test.y, model.predict(test.X), qid=test.sentence, measures=(measure,), per_query=True).values()
    chosen = {name: model.best_params_[name] for name in ("kernel", "gamma") if name in model.best_params_}
    if learner.table == "2007":
        values = np.where(_ordered(test), values, np.nan)
    return Outcome(chosen, model.alpha_, values)


def _ordered(data: Sentences) -> NDArray[np.bool_]:
    """Sentences, in the order of their first rows, whose parses differ in goodness."""
    return np.array([np.ptp(data.y[data.sentence == name]) > 0.0 for name in dict.fromkeys(data.sentence)])


Outcomes = dict[str, dict[str, list[Outcome]]]
"""By table, learner and repetition."""


def outcomes_of(
    train: Sentences,
    test: Sentences,
    *,
    tables: Sequence[str],
    basis: int,
    repetitions: int,
    further: int = 15,
    kernels: dict[str, Any] | None = None,
) -> Outcomes:
    """Learn the tables' learners; of 2007 from up to 20 parses of a sentence, of 2008 from repeated draws."""
    found: Outcomes = {table: {} for table in tables}
    for learner in LEARNERS:
        if learner.table == "2007" in tables:
            rows, _ = drawn(train, 20, 0, np.random.default_rng([0, 0]))
            found["2007"][learner.name] = [judge(learner, train.take(np.sort(rows)), test, None, kernels)]
    for number in range(repetitions if "2008" in tables else 0):
        first, second = drawn(train, basis, further, np.random.default_rng([0, 1 + number]))
        basic, more = train.take(first), train.take(np.concatenate((first, second)))
        for learner in LEARNERS:
            if learner.table == "2008":
                runs = found["2008"].setdefault(learner.name, [])
                if learner.full:
                    runs.append(judge(learner, more, test, kernel=found["2008"]["sparse RankRLS"][-1].kernel))
                elif learner.sparse:
                    runs.append(judge(learner, more, test, len(first), kernels))
                else:
                    runs.append(judge(learner, basic, test, None, kernels))
    return found


def tables_of(what: str, found: Outcomes) -> Iterator[Table]:
    """Each table with intervals over the test sentences, and the best learner against the others."""
    for table, learners in found.items():
        column = "tau-b" if table == "2007" else "error"
        values = {name: np.mean([run.values for run in runs], axis=0) for name, runs in learners.items()}
        notes = []
        for name, each in values.items():
            interval = bootstrap_interval(each, random_state=0)
            note = f"{name}: 95 % interval {interval.low:.3f} to {interval.high:.3f}"
            if name != _BEST[table]:
                both = {_BEST[table]: values[_BEST[table]], name: each}
                (pair,) = compare_per_query(both, greater_is_better=table == "2007", random_state=0).pairs
                note += f"; {_BEST[table]} is {pair.difference:+.3f} from it ({pair.low:+.3f} to {pair.high:+.3f}), "
                note += p_text(pair.p_wilcoxon)
            first = learners[name][0]
            kernel = " ".join(f"{value:.4g}" if name == "gamma" else value for name, value in first.kernel.items())
            notes.append(f"{note}; first choice: {kernel}, alpha 2^{np.log2(first.alpha):.0f}.")
        ours = {name: {column: float(np.nanmean(each))} for name, each in values.items()}
        paper = paper_figures("parses", table)
        yield Table(f"{what}, {column} ({table})", ours, paper, 3, tuple(notes))


def run(data: Path, *, quick: bool = False) -> Iterator[Table]:
    """RLScore's sample: two random parses of a sentence are the basis, the other three the further ones."""
    train, test = load(sample(data))
    found = outcomes_of(train, test, tables=("2007", "2008"), basis=2, repetitions=1 if quick else 10)
    yield from tables_of("Parses", found)


def more_items(data: Path, share: float = 0.16, repetitions: int = 2) -> Iterator[Table]:
    """MQ2008: five documents of a query are the basis, up to 15 more are further items."""
    collection = letor.find(data, "mq2008")
    parts = load([collection.folder / f"Fold{number}" / "test.txt" for number in collection.folds])
    queries = Sentences(*(np.concatenate([getattr(part, name) for part in parts]) for name in ("X", "y", "sentence")))
    train, test = split(queries, share, np.random.default_rng(0))
    kernels = {"kernel": ("linear", "rbf"), "gamma": (2.0**-9, 2.0**-6, 2.0**-3, 1.0)}
    found = outcomes_of(train, test, tables=("2008",), basis=5, repetitions=repetitions, kernels=kernels)
    yield from tables_of(f"MQ2008, {len(np.unique(train.sentence))} queries to learn from", found)
