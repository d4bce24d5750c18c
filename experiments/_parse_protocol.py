"""The protocols of section 3.2 of the 2007 paper and of the experiments of the 2008 paper, on any queries."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankrls import RankRLSCV, SparseRankRLSCV
from rankrls.io import load_letor
from rankrls.metrics import Measure, evaluate

__all__ = ["ALPHAS", "COLUMNS", "FOLDS", "GAMMAS", "Column", "Outcome", "Sentences", "drawn", "judge", "load", "split"]

ALPHAS = tuple(2.0**k for k in range(-20, 16, 2))
GAMMAS = tuple(2.0**k for k in range(-15, 2, 2))
"""Of the Gaussian; the linear kernel of the given features is tried too. The papers choose among the parameters of a
graph kernel, whose features are not public for their corpus."""
FOLDS = 10
MEASURES = {
    "kendall_tau": Measure("kendall_tau", empty=0.0),
    "disagreement": Measure("disagreement", tied_labels="half"),
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

    @property
    def shape(self) -> tuple[int, int]:
        """Parses and sentences."""
        return len(self.y), len(np.unique(self.sentence))

    @property
    def lengths(self) -> NDArray[np.int64]:
        """Parses of each sentence."""
        return np.unique(self.sentence, return_counts=True)[1]


@dataclass(frozen=True)
class Column:
    """A learner of one of the two tables, and the paper's figure for it.

    ``sparse`` learners see the further parses too, the others of 2008 the basis only; ``full`` sees all parses, and all
    are its basis, with the kernel that the sparse learner before it chose. ``measure`` chooses and judges.
    """

    name: str
    table: str
    measure: str
    paper: float | None
    regression_weight: float = 0.0
    sparse: bool = False
    full: bool = False


COLUMNS = (
    Column("RLS", "2007", "kendall_tau", 0.444, 1.0),
    Column("RankRLS", "2007", "kendall_tau", 0.500),
    Column("RLS", "2008", "disagreement", 0.27, 1.0),
    Column("sparse RLS", "2008", "disagreement", 0.24, 1.0, sparse=True),
    Column("RankRLS", "2008", "disagreement", 0.23),
    Column("sparse RankRLS", "2008", "disagreement", 0.21, sparse=True),
    Column("full RankRLS", "2008", "disagreement", None, full=True),
)


@dataclass(frozen=True)
class Outcome:
    """One learner, trained once: its choice, and one figure a test sentence (NaN where nothing is to be ordered)."""

    kernel: str
    kernels: dict[str, Any]
    alpha: float
    chosen_by: float
    at_edge: bool
    values: NDArray[np.float64] = field(repr=False)


def load(paths: list[Path]) -> list[Sentences]:
    """Read LETOR files, all with as many features as the widest has."""
    tables = [load_letor(path) for path in paths]
    zero_based = any(table.zero_based for table in tables)
    width = max(table.n_features + (zero_based and not table.zero_based) for table in tables)
    out = []
    for path, table in zip(paths, tables, strict=True):
        if table.qid is None:
            raise ValueError(f"{path} has no qid: it does not say which parses belong to one sentence.")
        if (table.n_features, table.zero_based) != (width, zero_based):
            table = load_letor(path, n_features=width, zero_based=zero_based)
        assert table.qid is not None
        out.append(Sentences(table.X, table.y, table.qid))
    return out


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
    column: Column,
    train: Sentences,
    test: Sentences,
    n_basis: int | None = None,
    kernels: Mapping[str, Any] | None = None,
) -> Outcome:
    """Choose kernel and alpha by 10-fold cross-validation over the sentences, train on all, judge on the test's.

    With ``n_basis`` the first so many rows are the basis of a sparse learner.
    """
    parameters: dict[str, Any] = {
        "alphas": ALPHAS,
        "cv": min(FOLDS, train.shape[1]),
        "scoring": MEASURES[column.measure],
        **(kernels or {"kernel": ("linear", "rbf"), "gamma": GAMMAS}),
        "balance": "pairs",
        "regression_weight": column.regression_weight,
    }
    if n_basis is None:
        model = RankRLSCV(**parameters)
    else:
        model = SparseRankRLSCV(basis_indices=np.arange(n_basis), **parameters)
    model.fit(train.X, train.y, qid=train.sentence)
    measure = MEASURES[column.measure]
    (values,) = evaluate(test.y, model.predict(test.X), qid=test.sentence, measures=(measure,), per_query=True).values()
    kernel = model.best_params_["kernel"]
    chosen = {name: model.best_params_[name] for name in ("kernel", "gamma") if name in model.best_params_}
    if kernel == "rbf":
        kernel += f" 2^{np.log2(model.best_params_['gamma']):.0f}"
    if column.measure == "kendall_tau":
        values = np.where(_ordered(test), values, np.nan)
    return Outcome(kernel, chosen, model.alpha_, model.best_score_, model.alpha_at_edge_, values)


def _ordered(data: Sentences) -> NDArray[np.bool_]:
    """Sentences, in the order of their first rows, whose parses differ in goodness."""
    names, first = np.unique(data.sentence, return_index=True)
    names = names[np.argsort(first)]
    return np.array([np.ptp(data.y[data.sentence == name]) > 0.0 for name in names])
