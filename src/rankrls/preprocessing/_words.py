"""Texts as words: how many words of the query they have, TF-IDF cosines, and words as features."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from rankrls._cached import cached_property

_WORD = re.compile(r"\b\w+\b")


def words_of(text: str) -> list[str]:
    """The words of a text in small letters: runs of letters, digits and underscores."""
    return _WORD.findall(text.lower())


@dataclass(frozen=True, eq=False)
class Vocabulary:
    """The words of training texts, and their inverse document frequencies.

    Attributes
    ----------
    words : list of str
        In alphabetical order.
    idf : ndarray of float64, shape (n_words,)
        ``ln((1 + texts) / (1 + texts with the word)) + 1``, as in scikit-learn's TfidfVectorizer.
    """

    words: list[str]
    idf: NDArray[np.float64]

    @classmethod
    def of(cls, texts: Sequence[str], *, most: int | None = None, least: int = 1, binary: bool = False) -> Vocabulary:
        """The ``most`` frequent of the words that ``least`` texts have; ``binary`` counts texts, not occurrences."""
        counts: Counter[str] = Counter()
        having: Counter[str] = Counter()
        for text in texts:
            words = words_of(text)
            counts.update(words)
            having.update(set(words))
        frequent = [word for word, n in having.items() if n >= least]
        frequent.sort(key=lambda word: (-(having if binary else counts)[word], word))
        words = sorted(frequent[:most])
        found = np.array([having[word] for word in words], dtype=np.float64)
        return cls(words, np.log((1.0 + len(texts)) / (1.0 + found)) + 1.0)

    def __post_init__(self) -> None:
        if self.idf.shape != (len(self.words),) or not ((self.idf >= 0.0) & (self.idf < 1e3)).all():
            raise ValueError("one frequency a word")

    @cached_property
    def _places(self) -> dict[str, int]:
        return {word: place for place, word in enumerate(self.words)}

    def counts(self, texts: Sequence[str]) -> Any:
        """How often each text has each word, a CSR array of shape (texts, words)."""
        places = self._places
        rows = [[places[word] for word in words_of(text) if word in places] for text in texts]
        starts = np.concatenate([[0], np.cumsum([len(row) for row in rows])])
        flat = np.array([place for row in rows for place in row], dtype=np.intp)
        out = sparse.csr_array((np.ones(len(flat)), flat, starts), shape=(len(texts), len(self.words)))
        out.sum_duplicates()
        return out

    def tfidf(self, texts: Sequence[str]) -> Any:
        """The counts times the inverse document frequencies, each text of Euclidean norm 1."""
        out = self.counts(texts)
        out.data *= self.idf[out.indices]
        rows = np.repeat(np.arange(len(texts)), np.diff(out.indptr))
        norms = np.sqrt(np.bincount(rows, out.data**2, minlength=len(texts)))
        out.data /= norms[rows]
        return out


def shared_words(texts: Sequence[str], queries: Sequence[str]) -> NDArray[np.float64]:
    """How many different words of a query the text beside it has."""
    found = [set(words_of(text)).intersection(words_of(query)) for text, query in zip(texts, queries, strict=True)]
    return np.array([len(both) for both in found], dtype=np.float64)
