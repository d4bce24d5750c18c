"""A shop's products as a table and as documents: categories, booleans, numbers as categories, gaps, dates, texts."""

import numpy as np
from sklearn.pipeline import make_pipeline

from rankrls import RankRLS
from rankrls.preprocessing import TableEncoder

BRANDS = ["H&M", 'The "Best"', "back\\slash", "it's {odd}", "Acme", "Müller & Söhne", None]
WORDS = ["red", "blue", "shoe", "shirt", "running", "summer", "Größe", "été", "a_b", "x9"]
QUERIES = [
    "red shoe",
    "summer  Shirt, summer!",
    '-red +running "blue"',
    "GRÖSSE größe été",
    "a_b x9 red OR blue",
    "...",
]
DAY = 86_400.0
CATEGORIES = ["brand", "colour", "in_stock", "size"]
ODD = {
    "brand": "größe.cm",
    "size": "back\\slash",
    "price": "list price (€)",
    "drift": "it's",
    "added": 'the "best" day',
    "title": "title, {odd}",
}
"""Names of columns that only some engines take."""
DATES = ("added", ODD["added"])


def renamed(rows):
    """The same rows under odd names."""
    return {ODD.get(name, name): values for name, values in rows.items()}


def shop(m=150, seed=0, new=False):
    """Raw rows; dates in seconds since 1970. New rows have unseen categories, negative numbers and more gaps."""
    rng = np.random.default_rng(seed)
    pick = lambda values: [values[k] for k in rng.integers(len(values), size=m)]
    gaps = lambda values, share: [None if rng.random() < share else value for value in values]
    floats = lambda values: [float(value) for value in values]
    more = 0.1 if new else 0.0
    sign = rng.choice([1.0, -1.0], m) if new else np.ones(m)
    days = rng.integers(18_000, 21_000 if new else 19_900, m) + (rng.random(m) if new else 0.0)
    return {
        "brand": pick([*BRANDS, *(["never seen", ""] if new else [])]),
        "colour": gaps(pick(["red", "blue", "sand"]), more),
        "in_stock": gaps([bool(v) for v in rng.integers(0, 2, m)], 0.2 if new else 0.0),
        "size": gaps(pick([36.0, 37.5, 38.0, 40.0, *([41.0] if new else [])]), 0.1),
        "price": gaps(floats(sign * rng.lognormal(3, 1, m).round(2)), 0.1),
        "stock": gaps(floats(sign * rng.integers(0, 50, m)), more),
        "change": gaps(floats(rng.normal(size=m).round(3)), more),
        "drift": gaps(floats(rng.normal(-1.0, 1.0, m).round(3)), 0.2),
        "added": gaps([float(round(day * DAY)) for day in days], 0.05),
        "title": gaps([" ".join(pick(WORDS)[:4]) + rng.choice(["", "!", " - RED"]) for _ in range(m)], more),
        "query": pick(QUERIES),
    }


def table_of(rows):
    """The same rows as a table: dates as texts."""
    spelled = lambda s: None if s is None else str(np.datetime64(int(s), "s"))
    return {name: [*map(spelled, values)] if name in DATES else values for name, values in rows.items()}


def documents_of(rows):
    """The same rows as JSON documents: an empty cell is no field."""
    spelled = lambda name, value: str(np.datetime64(int(value), "s")) + "Z" if name in DATES else value
    names = [name for name in rows if name != "query"]
    count = len(rows["query"])
    return [
        {"id": str(i), **{name: spelled(name, rows[name][i]) for name in names if rows[name][i] is not None}}
        for i in range(count)
    ]


def fitted(steps=(), seed=0, alpha=1.0, odd=False, **options):
    """A pipeline from the table to scores, fitted on the shop, under odd names perhaps."""
    rows = shop(seed=seed)
    names = ODD if odd else {}
    rng = np.random.default_rng(1)
    options = {
        "query_text": "query",
        "text_features": ["matches", "word"],
        "text": names.get("title", "title"),
        **options,
    }
    categories = [names.get(name, name) for name in CATEGORIES]
    encoder = TableEncoder(categorical=categories, dates=names.get("added", "added"), **options)
    words = lambda text: {*(text or "").lower().split()}
    grades = rng.integers(0, 4, 150).astype(float)
    grades += [2.0 * (brand == "H&M") for brand in rows["brand"]]
    grades += [len(words(title) & words(query)) for title, query in zip(rows["title"], rows["query"], strict=True)]
    return make_pipeline(encoder, *steps, RankRLS(alpha=alpha)).fit(table_of(renamed(rows) if odd else rows), grades)
