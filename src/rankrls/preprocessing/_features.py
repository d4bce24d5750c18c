"""The features that a table becomes, one by one: what each is, of which column."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["EncodedFeature"]

_NAMES = {
    "number": "{column}",
    "missing": "{column} (missing)",
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
        ``number``; ``missing`` (1 where the cell is missing); ``age`` in days; ``sine`` and ``cosine`` of a date in a
        period; ``category``, ``other`` (rare and unseen ones) and ``none`` (a missing cell) are 1 or 0; ``matches``
        (how many words of the query the text has), ``similarity``; ``word`` (1 where the text has it), ``tfidf``.
    value : str
        The category, the word or the period.
    fill : float
        What a missing cell counts as.
    origin : float
        Of dates: the day, counted from 1970, of age 0.
    days : float
        The length of the period.
    """

    column: str
    kind: str
    value: str = ""
    fill: float = 0.0
    origin: float = 0.0
    days: float = 0.0

    @property
    def name(self) -> str:
        """A name for people, in the column's and the category's words."""
        return _NAMES[self.kind].format(column=self.column, value=self.value)
