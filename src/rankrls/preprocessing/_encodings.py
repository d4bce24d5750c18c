"""Encodings of columns: their features, and feature values for other rows."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.preprocessing import normalize

from rankrls._cached import cached_property
from rankrls._cells import cell_number
from rankrls._errors import InputError
from rankrls._typing import Array, Index
from rankrls.preprocessing._columns import Column, spelled_cell

TEXT_FEATURES = ("matches", "similarity", "word", "tfidf")
NEED_QUERY = ("matches", "similarity")
STRATEGIES: dict[str, Callable[..., Any]] = {"median": np.nanmedian, "mean": np.nanmean}
"""Replacements of missing numbers."""
PERIODS = {"year": 365.25, "week": 7.0}
"""Periods of dates that are encoded as positions on a circle, and their lengths in days."""
_WORD = re.compile(r"\b\w+\b")

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
    """A feature of an encoded table.

    Attributes
    ----------
    column : str
        Name of its column.
    kind : str
        Kind of feature. ``number``; ``missing`` (1 if the cell is missing); ``age`` in days; ``sine`` and ``cosine`` of
        a date in a period; ``category``, ``other`` (rare and unseen ones) and ``none`` (a missing cell) are 1 or 0;
        ``matches`` (number of words of the query in the text), ``similarity``; ``word`` (1 if in the text), ``tfidf``.
    value : str
        Category, word or period.
    fill : float
        Replacement of a missing cell.
    origin : float
        Day of age 0 for dates, counted from 1970.
    days : float
        Length of the period.
    """

    column: str
    kind: str
    value: str = ""
    fill: float = 0.0
    origin: float = 0.0
    days: float = 0.0

    @property
    def name(self) -> str:
        """Name for users, from the names of the column and the category."""
        return _NAMES[self.kind].format(column=self.column, value=self.value)


@dataclass(frozen=True, eq=False)
class Numbers:
    """A column of numbers, or of dates as ages in days.

    Attributes
    ----------
    column : str
    kind : {"number", "date"}
    gaps : bool
        Whether training rows had missing cells.
    fill : float, or None
        Replacement of a missing cell; None if cells may not be missing.
    origin : float
        Latest training day, for dates.
    periods : list of str
    formats : tuple of str
    """

    column: str
    kind: str
    gaps: bool
    fill: float | None
    origin: float = 0.0
    periods: Sequence[str] = ()
    formats: Sequence[str] = ()

    def __post_init__(self) -> None:
        if not np.isfinite(self.fill or 0.0):
            raise ValueError("a finite fill")

    @classmethod
    def fitted(cls, column: Column, kind: str, impute: Any, formats: Sequence[str]) -> Numbers:
        """Encoding of a training column."""
        values = _numbers(column, kind, formats, impute is not None)
        origin = 0.0
        periods = []
        if kind == "date":
            origin = float(np.nanmax(values))
            span = float(np.nanmax(values) - np.nanmin(values))
            periods = [period for period, length in PERIODS.items() if span >= 2 * length]
            values = origin - values
        fill = STRATEGIES[impute](values) if isinstance(impute, str) else impute
        gaps = bool(column.missing.any())
        return cls(column.name, kind, gaps, None if fill is None else float(fill), origin, periods, formats)

    def features(self) -> Iterator[EncodedFeature]:
        """Features, in order."""
        kind = "age" if self.kind == "date" else "number"
        yield EncodedFeature(self.column, kind, fill=self.fill or 0.0, origin=self.origin)
        if self.gaps and self.fill is not None:
            yield EncodedFeature(self.column, "missing")
        for period in self.periods:
            for wave in ("sine", "cosine"):
                yield EncodedFeature(self.column, wave, period, origin=self.origin, days=PERIODS[period])

    def transform(self, column: Column, query: Column | None) -> Array:
        """Values of the features, (rows, features)."""
        values = _numbers(column, self.kind, self.formats, self.fill is not None)
        missing = column.missing
        values = self.origin - values if self.kind == "date" else values
        parts = [values if self.fill is None else np.where(missing, self.fill, values)]
        if self.gaps and self.fill is not None:
            parts.append(missing)
        for period in self.periods:
            angle = 2.0 * np.pi / PERIODS[period] * values
            parts += [np.where(missing, 0.0, np.sin(angle)), np.where(missing, 0.0, np.cos(angle))]
        return np.column_stack(parts)


def _numbers(column: Column, kind: str, formats: Sequence[str], fills: bool) -> Array:
    """Numbers, or days since 1970; any other cell is an error."""
    found, bad = column.read(kind, formats)
    if bad.any():
        row = int(np.argmax(bad))
        wanted = "a finite number" if kind == "number" else "a date (3/1/2024 is ambiguous without date_format)"
        words, codes = column.as_texts()
        cell = column.odd or repr(words[codes[row]])
        problem = f"The cell {cell} of column {column.name!r}, row {row}, is not {wanted}."
        raise InputError(problem, parameter="X", column=column.name, row=row)
    if not fills and column.missing.any():
        row = int(np.argmax(column.missing))
        problem = f"Column {column.name!r} has no value in row {row}. Set impute='median'."
        settings = {"impute": "median"}
        raise InputError(problem, parameter="impute", column=column.name, row=row, settings=settings)
    return found


@dataclass(frozen=True, eq=False)
class Categories:
    """A column of categories: one feature for each frequent one, and one for all others. None is a missing cell.

    A category is the text of its cells: ``str(int)`` or ``repr(float)`` for numbers, "true" or "false" for truth
    values. If all training categories are such texts, other cells match them by value, whatever their type: 1, 1.0 and
    "1" are the same category, and so are True, "True" and 1.

    Attributes
    ----------
    column : str
    known : list of str or None
        Categories with their own feature, in alphabetical order.
    rare : list of str or None
        Other training categories.
    """

    column: str
    known: list[str | None]
    rare: list[str | None]

    @classmethod
    def fitted(cls, column: Column, least: int, most: int) -> Categories:
        """Categories with at least ``least`` rows; including one for all others, there are at most ``most``."""
        totals = Counter[str | None]()
        counts = column.counts()
        boolean = all(word.lower() in ("true", "false") for word in counts)
        for word, count in counts.items():
            totals[word.lower() if boolean else word] += count
        if column.missing.any():
            totals[None] = int(column.missing.sum())
        frequent = [word for word in totals if totals[word] >= least]
        frequent.sort(key=lambda word: (-totals[word], word or ""))
        if not frequent:
            text = f"No value of column {column.name!r} occurs in {least} or more rows."
            remedy = "Leave the column out (ignore), or lower min_frequency."
            raise InputError(f"{text} {remedy}", parameter="categorical", column=column.name)
        if len(frequent) + (len(frequent) < len(totals)) > most:
            frequent = frequent[: most - 1]
        known, rare = (sorted(words, key=_missing_first) for words in (frequent, set(totals) - set(frequent)))
        return cls(column.name, known, rare)

    def features(self) -> Iterator[EncodedFeature]:
        """Features, in order."""
        for word in self.known:
            yield EncodedFeature(self.column, "none" if word is None else "category", word or "")
        if self.rare:
            yield EncodedFeature(self.column, "other")

    @cached_property
    def _by_value(self) -> bool:
        """Whether categories are compared by value: all are numbers or truth values, and their values differ."""
        words = {*self.known, *self.rare} - {None}
        values = {_value(word or "") for word in words}
        return None not in values and len(values) == len(words)

    @cached_property
    def _places(self) -> dict[str | float | None, int]:
        """Feature number of each training category; the last one for rare categories."""
        places = {word: place for place, word in enumerate(self.known)} | dict.fromkeys(self.rare, len(self.known))
        return {self._key(word): place for word, place in places.items()}

    def _key(self, word: str | None) -> str | float | None:
        """Key shared by the cells of a category."""
        value = _value(word) if word is not None and self._by_value else None
        return word if value is None else value

    def transform(self, column: Column, query: Column | None) -> Any:
        """0 and 1, a CSR array of shape (rows, features)."""
        words, codes = column.as_texts()
        width = len(self.known) + bool(self.rare)
        found = [self._places.get(self._key(word), len(self.known)) for word in words]
        places = np.array(found, dtype=np.intp)[codes]
        rows = np.flatnonzero(places < width)
        return sparse.csr_array((np.ones(len(rows)), (rows, places[rows])), shape=(len(codes), width))

    def unseen(self, column: Column) -> int:
        """Number of cells whose category is not among the training rows."""
        return sum(n for word, n in column.counts().items() if self._key(word) not in self._places)


def _missing_first(word: str | None) -> tuple[bool, str]:
    return word is not None, word or ""


def _value(word: str) -> float | None:
    """Value of a number in the form of :func:`spelled_cell` or ``repr``, or of a truth value; None for other texts."""
    value = cell_number(word)
    known = word.lower() in ("true", "false") or word in (spelled_cell(value), repr(value))
    return value if known and np.isfinite(value) else None


@dataclass(frozen=True, eq=False)
class Vocabulary:
    """Words of training texts, and their inverse document frequencies.

    Attributes
    ----------
    words : list of str
        Words in alphabetical order.
    idf : ndarray of float64, shape (n_words,)
        ``ln((1 + texts) / (1 + texts with the word)) + 1``, as in scikit-learn's TfidfVectorizer.
    """

    words: list[str]
    idf: Array

    @classmethod
    def of(cls, texts: Sequence[str], most: int | None = None, least: int = 1) -> Vocabulary:
        """The ``most`` words that occur in most texts, among those that occur in at least ``least`` texts."""
        having = Counter(word for text in texts for word in set(_words(text)))
        frequent = sorted((word for word in having if having[word] >= least), key=lambda word: (-having[word], word))
        words = sorted(frequent[:most])
        found = np.array([having[word] for word in words], dtype=np.float64)
        return cls(words, np.log((1.0 + len(texts)) / (1.0 + found)) + 1.0)

    def __post_init__(self) -> None:
        if self.idf.shape != (len(self.words),) or not ((self.idf >= 0.0) & (self.idf < 1e3)).all():
            raise ValueError("one frequency a word")

    def counts(self, texts: Sequence[str]) -> Any:
        """Counts of the words in each text, a CSR array of shape (texts, words)."""
        counter = CountVectorizer(vocabulary=self.words, token_pattern=_WORD.pattern, dtype=np.float64)
        return sparse.csr_array(counter.transform(texts))

    def tfidf(self, texts: Sequence[str]) -> Any:
        """Counts times inverse document frequencies, normalized to Euclidean norm 1 for each text."""
        out = self.counts(texts)
        out.data *= self.idf[out.indices]
        return normalize(out, copy=False)


def _words(text: str) -> list[str]:
    """Words of a text in lower case: runs of letters, digits and underscores."""
    return _WORD.findall(text.lower())


@dataclass(frozen=True, eq=False)
class Texts:
    """A column of texts: features of several kinds, see ``text_features`` of TableEncoder.

    Attributes
    ----------
    column : str
    vocabularies : dict of str to Vocabulary or None
        Words of training texts for each kind; None for "matches".
    """

    column: str
    vocabularies: Mapping[str, Any]

    @classmethod
    def fitted(cls, column: Column, kinds: Sequence[str], max_words: int) -> Texts:
        """Vocabularies of the different texts of a training column."""
        texts = [*column.counts()]
        found: dict[str, Any] = {}
        for kind in kinds:
            limits = () if kind == "similarity" else (max_words, min(2, len(texts)))
            vocabulary = None if kind == "matches" else Vocabulary.of(texts, *limits)
            if vocabulary is not None and not vocabulary.words:
                problem = f"No word occurs in two texts of column {column.name!r}. Leave the column out (ignore)."
                raise InputError(problem, parameter="text", column=column.name)
            found[kind] = vocabulary
        return cls(column.name, found)

    def features(self) -> Iterator[EncodedFeature]:
        """Features, in order."""
        for kind, vocabulary in self.vocabularies.items():
            words = [""] if kind in NEED_QUERY else vocabulary.words
            yield from (EncodedFeature(self.column, kind, word) for word in words)

    def transform(self, column: Column, query: Any) -> Any:
        """Values of the features, (rows, features)."""
        texts, codes = _texts_of(column)
        parts: list[Any] = []
        for kind, vocabulary in self.vocabularies.items():
            if kind == "word":
                parts.append((vocabulary.counts(texts) > 0.0).astype(np.float64)[codes])
            elif kind == "tfidf":
                parts.append(vocabulary.tfidf(texts)[codes])
            else:
                asked, queries = _texts_of(query)
                if kind == "similarity":
                    found = vocabulary.tfidf(texts)[codes].multiply(vocabulary.tfidf(asked)[queries]).sum(axis=1)
                else:
                    ours = [{*_words(text)} for text in texts]
                    wanted = [{*_words(text)} for text in asked]
                    found = np.array([len(ours[i] & wanted[j]) for i, j in zip(codes, queries, strict=True)], float)
                parts.append(sparse.csr_array(found[:, None]))
        return sparse.csr_array(sparse.hstack(parts))


def _texts_of(column: Column) -> tuple[list[str], Index]:
    """Different texts of a column, and the number of each row's text; a missing cell is an empty text."""
    words, codes = column.as_texts()
    return [word or "" for word in words], codes


Encoding = Numbers | Categories | Texts
