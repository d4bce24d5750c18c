"""Scoring 100 rows of a table through a fitted TableEncoder, as a service does for each search.

The rival is a pipeline of scikit-learn's ColumnTransformer for the same columns, without the query's text.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from sklearn.compose import ColumnTransformer
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.impute import SimpleImputer
from sklearn.linear_model import Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from benchmarks._harness import alternate, at_most
from rankrls import RankRLSCV
from rankrls.preprocessing import TableEncoder


def shop(m: int, seed: int) -> pd.DataFrame:
    """Products of searches: three columns of categories, four of numbers, a date, a title and a query."""
    rng = np.random.default_rng(seed)
    words = lambda n: [" ".join(f"w{k}" for k in rng.integers(0, 300, n).tolist()) for _ in range(m)]
    days = pd.Timestamp("2024-06-01") - pd.to_timedelta(rng.integers(0, 900, m), "D")
    return pd.DataFrame(
        {
            **{
                name: [f"{name}{k}" for k in rng.integers(0, size, m)]
                for name, size in (("a", 60), ("b", 20), ("c", 8))
            },
            "price": np.where(rng.random(m) < 0.1, np.nan, rng.lognormal(3, 1, m)),
            **{name: rng.normal(size=m) for name in ("stock", "clicks", "rating")},
            **{"added": days.strftime("%Y-%m-%d"), "title": words(6), "query": np.repeat(words(2)[: m // 20], 20)},
        }
    )


def jobs(quick: bool = False) -> list[dict[str, Any]]:
    m = 1000 if quick else 6000
    table, new = shop(m, 0), shop(100, 1)
    y, qid = np.random.default_rng(2).integers(0, 4, m), np.arange(m) // 20
    model = make_pipeline(TableEncoder(query_text="query"), StandardScaler(), RankRLSCV())
    model.fit(table, y, rankrlscv__qid=qid)
    columns = ColumnTransformer(
        [
            ("numbers", SimpleImputer(strategy="median", add_indicator=True), ["price", "stock", "clicks", "rating"]),
            ("categories", OneHotEncoder(handle_unknown="ignore", min_frequency=5), ["a", "b", "c"]),
            ("words", TfidfVectorizer(), "title"),
        ]
    )
    rival = make_pipeline(columns, Ridge()).fit(table, y)
    ours, theirs = alternate(lambda: model.predict(new), lambda: rival.predict(new), repeats=5 if quick else 51)
    return [at_most("scoring 100 rows of a table", ours, "ColumnTransformer, Ridge", theirs, 1.0)]
