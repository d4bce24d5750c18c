"""Sparse RankRLS with a Gaussian kernel in the LETOR experiment."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from _letor_data import Fold, joined
from _letor_protocol import CHOICE, Family, Fitted, Method, timed

from rankrls import SparseRankRLSCV

__all__ = ["ALPHAS", "FAMILY", "GAMMAS", "N_BASIS"]

ALPHAS = tuple(2.0**k for k in range(-12, 23, 2))
"""Wide enough for all balances: the eigenvalues of a query's pairs are up to its size squared times those where every
query weighs the same."""
GAMMAS = tuple(2.0**k for k in range(-5, 2))
N_BASIS = 600


@dataclass(frozen=True)
class Gaussian(Method):
    """SparseRankRLSCV, chosen by leave-query-out on the training and validation queries together.

    The test queries are judged by the model of all of them; no document of theirs is in the basis.
    """

    parameters: dict[str, Any] = field(default_factory=dict)

    def fit(self, fold: Fold) -> Fitted:
        model = SparseRankRLSCV(
            ALPHAS, scoring=CHOICE, n_basis=N_BASIS, kernel="rbf", gamma=GAMMAS, random_state=0, **self.parameters
        )
        rows = joined(fold.train, fold.validation)
        seconds, _ = timed(lambda: model.fit(rows.X, rows.y, qid=rows.qid))
        predict_seconds, scores = timed(lambda: model.predict(fold.test.X))
        return Fitted(
            scores,
            {name: model.best_params_[name] for name in ("gamma", "alpha", "balance", "ties")},
            model.selection_,
            model.best_score_,
            seconds,
            predict_seconds,
            at_edge=model.alpha_at_edge_,
        )

    def words(self, settings: dict[str, Any]) -> str:
        exponents = [f"{name} 2^{np.log2(settings[name]):.0f}" for name in ("gamma", "alpha")]
        return ", ".join((*exponents, settings["balance"], settings["ties"]))


FAMILY = Family(
    "sparse",
    (
        Gaussian(
            "Gaussian",
            f"sparse RankRLS, Gaussian kernel on {N_BASIS} random documents",
            {"balance": ("pairs", "examples", "queries"), "ties": ("include", "exclude")},
        ),
    ),
    f"Gaussian: {N_BASIS} random documents of the training and validation queries are the basis; gamma (a power of two "
    f"from 2^{np.log2(GAMMAS[0]):.0f} to 2^{np.log2(GAMMAS[-1]):.0f}), alpha (every other from "
    f"2^{np.log2(ALPHAS[0]):.0f} to 2^{np.log2(ALPHAS[-1]):.0f}), balance and ties are all chosen by exact "
    "leave-query-out on these queries. The other methods choose on the validation queries and learn from the training "
    "queries only, unless it is said.",
)
