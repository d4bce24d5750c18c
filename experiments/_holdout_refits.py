"""Every hold-out shortcut beside its refits: do they agree, and how many times faster is one than the other?"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from _letor_data import Fold, find_collections, load_fold
from numpy.typing import NDArray
from sklearn.datasets import load_breast_cancer, load_diabetes
from sklearn.preprocessing import StandardScaler

from rankrls import RankRLS
from rankrls.model_selection import (
    leave_pair_out,
    leave_preference_out,
    leave_query_out,
    tournament_leave_pair_out,
)

__all__ = ["Agreement", "agreements", "clinical"]

ALPHAS = 2.0 ** np.arange(-5, 16)
"""What a refit is repeated for; shortcuts serve all at once."""


@dataclass(frozen=True)
class Agreement:
    """One shortcut on one data set.

    ``gap`` is the largest difference between a held-out score by the shortcut and by refitting, in units of the scores'
    standard deviation, over ``tried`` of ``held`` parts that are held out in turn and some of the alphas. The seconds
    of refits are those of ``tried`` parts at those alphas, times what is missing to all parts at every alpha.
    """

    data: str
    what: str
    held: int
    tried: int
    alphas: int
    gap: float
    seconds: float
    refit_seconds: float

    @property
    def faster(self) -> float:
        """Refits' seconds over the shortcut's."""
        return self.refit_seconds / self.seconds


def clinical() -> dict[str, tuple[NDArray[np.float64], NDArray[np.float64]]]:
    """The data sets inside scikit-learn, features standardised: a diagnosis and a progression."""
    out = {}
    for name, load in (("breast cancer", load_breast_cancer), ("diabetes", load_diabetes)):
        X, y = load(return_X_y=True)
        out[name] = StandardScaler().fit_transform(X), np.asarray(y, dtype=np.float64)
    return out


def agreements(data: Path | None, *, quick: bool) -> list[Agreement]:
    """Every shortcut; those for queries need the LETOR collection OHSUMED. Quick ones take a quarter of the rows."""
    tried = 5 if quick else 40
    fold = None if data is None else _first_fold(data)
    out = []
    tables = {name: (X[::4], y[::4]) if quick else (X, y) for name, (X, y) in clinical().items()}
    for name, (X, y) in tables.items():
        for kernel in ("linear", "rbf"):
            out.append(_pairs(f"{name}, {kernel}", X, y, kernel, tried))
        out.append(_preferences(name, X, y, tried, 300 if quick else 3000))
    X, y = tables["breast cancer"]
    some = np.random.default_rng(0).permutation(len(y))[: 12 if quick else 40]
    out.append(_tournament("breast cancer", X[some], y[some]))
    if fold is not None:
        out += _queries(fold, quick=quick)
    return out


def _compare(
    data: str,
    what: str,
    run: Callable[[], NDArray[np.float64]],
    parts: Sequence[Any],
    refit: Callable[[Any, float], NDArray[np.float64]],
    take: Callable[[NDArray[np.float64], Any], NDArray[np.float64]],
    tried: Sequence[Any],
    alphas: NDArray[np.float64],
) -> Agreement:
    """``run`` gives (..., alphas); ``take`` its entries for a part, and ``refit`` the same at one alpha."""
    run()
    start = time.perf_counter()
    held_out = run()
    seconds = time.perf_counter() - start
    some = np.unique(np.linspace(0, len(alphas) - 1, 3).round().astype(int))
    gap, spread = 0.0, float(np.nanstd(held_out))
    start = time.perf_counter()
    refits = {(p, k): refit(part, float(alphas[k])) for p, part in enumerate(tried) for k in some}
    took = time.perf_counter() - start
    for (p, k), expected in refits.items():
        gap = max(gap, float(np.abs(take(held_out, tried[p])[..., k] - expected).max()))
    scale = len(parts) / len(tried) * len(alphas) / len(some)
    return Agreement(data, what, len(parts), len(tried), len(alphas), gap / spread, seconds, took * scale)


def _sample(parts: Sequence[Any], count: int) -> list[Any]:
    chosen = np.random.default_rng(0).permutation(len(parts))[:count]
    return [parts[int(k)] for k in np.sort(chosen)]


def _pairs(name: str, X: NDArray[np.float64], y: NDArray[np.float64], kernel: str, tried: int) -> Agreement:
    """All pairs of different labels; the scores of the tried ones are asked for beside them."""
    model = RankRLS(kernel=kernel, balance="pairs")
    i, j = np.nonzero(y[:, None] > y)
    pairs = list(zip(i.tolist(), j.tolist(), strict=True))
    some = _sample(pairs, tried)
    place = {pair: e for e, pair in enumerate(some)}

    def run() -> NDArray[np.float64]:
        leave_pair_out(model, X, y, alphas=ALPHAS)
        return np.asarray(leave_pair_out(model, X, y, alphas=ALPHAS, pairs=some).differences)

    def refit(pair: tuple[int, int], alpha: float) -> NDArray[np.float64]:
        rest = ~np.isin(np.arange(len(y)), pair)
        f = RankRLS(alpha, kernel=kernel, balance="pairs").fit(X[rest], y[rest]).predict(X[list(pair)])
        return np.asarray(f[0] - f[1])

    return _compare(name, "leave-pair-out", run, pairs, refit, lambda d, p: d[place[p]], some, ALPHAS)


def _tournament(name: str, X: NDArray[np.float64], y: NDArray[np.float64]) -> Agreement:
    """Wins of every item, against a refit for every pair."""
    m = len(y)
    pairs = [(i, j) for i in range(m) for j in range(i)]

    def run() -> NDArray[np.float64]:
        return tournament_leave_pair_out(RankRLS(), X, y).scores[:, None]

    def refit(part: None, alpha: float) -> NDArray[np.float64]:
        wins = np.zeros(m)
        for i, j in pairs:
            rest = ~np.isin(np.arange(m), (i, j))
            f = RankRLS(alpha).fit(X[rest], y[rest]).predict(X[[i, j]])
            wins[i if f[0] > f[1] else j] += 1.0
        return wins

    one = _compare(name, "tournament", run, [None], refit, lambda scores, _: scores, [None], np.ones(1))
    return Agreement(one.data, one.what, len(pairs), len(pairs), 1, one.gap, one.seconds, one.refit_seconds)


def _preferences(name: str, X: NDArray[np.float64], y: NDArray[np.float64], tried: int, count: int) -> Agreement:
    """Some pairs of the data as preferences, each left out alone."""
    i, j = np.nonzero(y[:, None] > y)
    drawn = np.random.default_rng(1).permutation(len(i))[:count]
    winners, losers = i[drawn], j[drawn]

    def run() -> NDArray[np.float64]:
        return leave_preference_out(RankRLS(), X, winners, losers, alphas=ALPHAS)

    def refit(e: int, alpha: float) -> NDArray[np.float64]:
        rest = np.arange(len(winners)) != e
        f = RankRLS(alpha).fit_pairs(X, winners[rest], losers[rest]).predict(X[[winners[e], losers[e]]])
        return np.asarray(f[0] - f[1])

    parts = list(range(len(winners)))
    return _compare(name, "preferences", run, parts, refit, lambda d, e: d[e], _sample(parts, tried), ALPHAS)


def _first_fold(data: Path) -> Fold:
    """The first fold of OHSUMED."""
    (collection,) = find_collections(data, "ohsumed")
    return load_fold(collection, collection.folds[0])


def _queries(fold: Fold, *, quick: bool) -> list[Agreement]:
    """OHSUMED: single queries and folds of them, in the primal and with a Gaussian kernel."""
    X = np.concatenate([part.X for part in (fold.train, fold.validation, fold.test)])
    y = np.concatenate([part.y for part in (fold.train, fold.validation, fold.test)])
    qid = np.concatenate([part.qid for part in (fold.train, fold.validation, fold.test)])
    queries = np.unique(qid)
    few = np.isin(qid, queries[: 3 if quick else 12])
    everything = np.ones(len(y), dtype=bool)
    cases: list[tuple[str, NDArray[np.bool_], int, dict[str, Any]]] = [
        ("linear", everything, len(queries), {}),
        ("linear, ties excluded, pairs", everything, len(queries), {"ties": "exclude", "balance": "pairs"}),
        ("linear, mixture", everything, len(queries), {"regression_weight": 0.3}),
        ("linear, 5 folds", everything, 5, {}),
        ("Gaussian, some queries", few, len(queries), {"kernel": "rbf"}),
        ("Gaussian, some queries, 3 folds", few, 3, {"kernel": "rbf", "ties": "exclude"}),
    ]
    out = []
    for name, rows, folds, options in cases:
        Z, z, ids = X[rows], y[rows], qid[rows]
        groups = np.searchsorted(queries, ids) % folds
        parts = np.unique(groups).tolist()

        def run(Z: Any = Z, z: Any = z, ids: Any = ids, g: Any = groups, o: Any = options) -> Any:
            return leave_query_out(RankRLS(**o), Z, z, qid=ids, groups=g, alphas=ALPHAS)

        def refit(
            part: int, alpha: float, Z: Any = Z, z: Any = z, ids: Any = ids, g: Any = groups, o: Any = options
        ) -> Any:
            rest = g != part
            return RankRLS(alpha, **o).fit(Z[rest], z[rest], qid=ids[rest]).predict(Z[~rest])

        some = _sample(parts, 3 if quick else 12)
        out.append(
            _compare(
                f"OHSUMED, {name}",
                "leave-query-out",
                run,
                parts,
                refit,
                lambda scores, part, g=groups: scores[g == part],  # type: ignore[misc]
                some,
                ALPHAS,
            )
        )
    return out
