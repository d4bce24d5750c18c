"""The features that a table becomes, one by one: what each is, of which column."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from rankrls.preprocessing._texts import NEED_QUERY

PERIODS = {"year": 365.25, "week": 7.0}
"""The circles on which dates are placed, and their lengths in days."""

_NAMES = {
    "number": "{column}",
    "missing": "{column} (missing)",
    "element": "{column}[{value}]",
    "age": "{column} (age in days)",
    "sine": "{column} (time of {value}, sine)",
    "cosine": "{column} (time of {value}, cosine)",
    "category": "{column}={value}",
    "other": "{column}=(other)",
    "none": "{column}=(missing)",
    "matches": "{column} (words of the query)",
    "similarity": "{column} (TF-IDF cosine with the query)",
    "word": "{column}: {value}",
    "tfidf": "{column}: {value} (TF-IDF)",
}


@dataclass(frozen=True)
class EncodedFeature:
    """One feature of an encoded table.

    Attributes
    ----------
    column : str
        The column that it is made of.
    kind : str
        ``number``; ``element`` of a list; ``missing`` (1 where the cell is missing); ``age`` in days; ``sine`` and
        ``cosine`` of a date in a period; ``category``, ``other`` (rare and unseen ones) and ``none`` (a missing cell)
        are 1 or 0; ``matches`` (how many words of the query the text has), ``similarity``; ``word`` (1 where the text
        has it), ``tfidf``.
    value : str
        The category, the word or the period; the place in a list, from 0.
    fill : float
        What a missing cell counts as.
    least : float
        The least training value of a number.
    gaps : bool
        Whether training rows had missing cells.
    origin : float
        Of dates: the day, counted from 1970, of age 0.
    days : float
        The length of the period.
    """

    column: str
    kind: str
    value: str = ""
    fill: float = 0.0
    least: float = 0.0
    gaps: bool = False
    origin: float = 0.0
    days: float = 0.0

    @property
    def name(self) -> str:
        """A name for people, in the column's and the category's words."""
        return _NAMES[self.kind].format(column=self.column, value=self.value)


def features_of(encoder: Any) -> Iterator[EncodedFeature]:
    """The features of a fitted encoder, in the order in which it makes them."""
    gaps = {use.name: use.n_missing > 0 for use in encoder.columns_}
    for names, imputer in encoder.imputers_:
        for name, fill in zip(names, imputer.statistics_.tolist(), strict=True):
            kind = "age" if name in encoder.origins_ else "number"
            least, origin = encoder.least_[name], encoder.origins_.get(name, 0.0)
            yield EncodedFeature(name, kind, fill=fill, least=least, gaps=gaps[name], origin=origin)
        if imputer.indicator_ is not None:
            yield from (EncodedFeature(names[j], "missing") for j in imputer.indicator_.features_)
    for name, periods in encoder.periods_.items():
        for period in periods:
            for wave in ("sine", "cosine"):
                yield EncodedFeature(name, wave, period, origin=encoder.origins_[name], days=PERIODS[period])
    for name, imputer in encoder.lists_.items():
        for k, fill in enumerate(imputer.statistics_.tolist()):
            yield EncodedFeature(name, "element", str(k), fill=fill, gaps=gaps[name])
        if gaps[name]:
            yield EncodedFeature(name, "missing")
    if encoder.one_hot_ is not None:
        categories, rare = encoder.one_hot_.categories_, encoder.one_hot_.infrequent_categories_
        named = [use.name for use in encoder.columns_ if use.kind == "category"]
        for name, words, others in zip(named, categories, rare, strict=True):
            left = set() if others is None else set(others)
            yield from (
                EncodedFeature(name, "category" if word else "none", word) for word in words if word not in left
            )
            if left:
                yield EncodedFeature(name, "other")
    for name, made in encoder.vectorizers_.items():
        for kind in encoder.text_features_:
            words = [""] if kind in NEED_QUERY else made[kind].get_feature_names_out()
            yield from (EncodedFeature(name, kind, word) for word in words)
