"""Clicks: click rates over eight decades, few clicks, orders of rows, and positions that are far apart.

Multiplying all impressions changes nothing, nor does another order of rows.
"""

from __future__ import annotations

import json
import warnings
from typing import Any

import numpy as np
from numpy.random import Generator

from fuzzing.campaign import Refused, Target, Wrong
from fuzzing.cases import chance, choice
from rankrls import InputError
from rankrls.clicks import ENOUGH, Propensities, estimate_propensities

_CLOSE = 1e-9
_ENOUGH = 30
"""Clicks at the first position; the iteration does not settle on fewer, which determine nothing."""


def make(rng: Generator) -> bytes:
    """Clicks of a position-based model, and what is changed."""
    case: dict[str, Any] = {
        "seed": int(rng.integers(2**32)),
        "queries": int(rng.integers(1, 60)),
        "length": int(rng.integers(1, 8)),
        "features": int(rng.integers(1, 5)),
        "sessions": int(choice(rng, [1, 10, 100, 10**6])),
        "rate": 10.0 ** float(rng.uniform(-8.0, 0.0)),
        "change": 10.0 ** float(rng.uniform(-8.0, 0.0)),
        "step": int(choice(rng, [1, 1, 7, 10**9])),
        "of": choice(rng, ["impressions", "rows"]),
        "by_query": chance(rng, 0.7),
    }
    return json.dumps(case).encode()


def judge(case: bytes) -> None:
    """Estimate twice, before and after a change that changes nothing."""
    given = json.loads(case)
    rng = np.random.default_rng(given["seed"])
    length, m = given["length"], given["queries"] * given["length"]
    X = rng.normal(size=(m, given["features"]))
    rank = np.tile(np.arange(length), given["queries"])
    qid = np.repeat(np.arange(given["queries"]), length)
    shown = rng.integers(0, given["sessions"] + 1, size=m).astype(float)
    chances = given["rate"] / (1.0 + rank) / (1.0 + np.exp(-X[:, 0]))
    clicks = rng.binomial(shown.astype(int), chances).astype(float)
    order = rng.permutation(m) if given["of"] == "rows" else np.arange(m)
    longer = 1.0 / given["change"] if given["of"] == "impressions" else 1.0

    def estimated(rows: Any, longer: float) -> Propensities:
        by_query = {"qid": qid[rows]} if given["by_query"] else {}
        position = given["step"] * (1 + rank[rows])
        return estimate_propensities(X[rows], clicks[rows], position, impressions=shown[rows] * longer, **by_query)

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            one = estimated(np.arange(m), 1.0)
        except InputError:
            if clicks[rank == 0].sum() > 0.0 and shown[rank == 0].sum() >= 50.0:
                raise Wrong("right clicks are refused") from None
            raise Refused from None
        other = estimated(order, longer)
    if (
        (one.impressions < ENOUGH) != (other.impressions < ENOUGH)
    ).any():  # more impressions are enough for a value of its own
        raise Refused
    for name in ("examination", "standard_error") if clicks[rank == 0].sum() >= _ENOUGH else ():
        before, after = vars(one)[name], vars(other)[name]
        if not np.allclose(before, after, rtol=_CLOSE, atol=_CLOSE, equal_nan=True):
            raise Wrong(f"{name} is {after}, and was {before}"[:300])
    if not (one.examination[0] == 1.0 and (one.examination > 0.0).all() and np.isfinite(one.examination).all()):
        raise Wrong(f"the examination is {one.examination}"[:200])


def warm_up() -> None:
    """Import what is imported late."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        estimate_propensities(np.ones((60, 1)), np.ones(60), np.ones(60))


TARGET = Target("clicks", make, judge, warm_up)
