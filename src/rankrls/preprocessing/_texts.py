"""Columns of texts: how many words of the query they have, how alike they are, and their own words."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from sklearn.feature_extraction.text import CountVectorizer, HashingVectorizer, TfidfVectorizer

from rankrls._errors import InputError
from rankrls.preprocessing._cells import Column

TEXT_FEATURES = ("matches", "similarity", "word", "tfidf")
NEED_QUERY = ("matches", "similarity")
_WORD = r"(?u)\b\w+\b"


def vectorizers(column: Column, wanted: Sequence[str], max_words: int) -> dict[str, Any]:
    """What is learned of the different texts of a column, for each kind of feature that learns anything."""
    words = [word for word in column.as_texts()[0] if word]
    out = {}
    for kind in wanted:
        if kind == "matches":
            continue  # words are hashed, so that those count too that training rows do not have
        options: dict[str, Any] = {"binary": True} if kind == "word" else {}
        if kind != "similarity":
            options |= {"max_features": max_words, "min_df": min(2, len(words))}
        made = (CountVectorizer if kind == "word" else TfidfVectorizer)(token_pattern=_WORD, **options)
        try:
            out[kind] = made.fit(words)
        except ValueError:
            problem, remedy = "No word is in two texts of column {0!r}.", "Leave the column out ({ignore})."
            raise InputError(problem, column.name, remedy=remedy, parameter="text", column=column.name) from None
    return out


def text_features(column: Column, query: Column | None, kind: str, vectorizer: Any) -> Any:
    """The features of one kind of a column's rows."""
    words, codes = column.as_texts()
    if kind == "matches":
        vectorizer = HashingVectorizer(token_pattern=_WORD, binary=True, norm=None, alternate_sign=False)
    texts = vectorizer.transform(words)
    if kind not in NEED_QUERY or query is None:
        return texts[codes]
    asked, queries = query.as_texts()
    products = texts[codes].multiply(vectorizer.transform(asked)[queries])
    return np.asarray(products.sum(axis=1), dtype=np.float64).reshape(-1, 1)
