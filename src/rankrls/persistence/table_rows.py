"""Rows of tables with categories, dates and texts, encoded as features; errors name the file and line."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from rankrls._errors import InputError
from rankrls.io import PairTable, Rows
from rankrls.io.tables import CellError
from rankrls.preprocessing import TableEncoder
from rankrls.preprocessing._table_encoder import names_of

_WORDS_OF_TEXT = 1.5
"""Mean number of words without digits from which query ids count as texts of queries."""
_WORD = re.compile(r"[^\W\d_]{2,}")
_VOTES_OF_A_NAME = 5
_LONG = 80


def encoder_fitted(encoder: TableEncoder, table: Rows, *, by_query: bool = True) -> Rows:
    """Training rows as features; the encoder is fitted to them, and to their queries if only these are compared.

    Wordy query ids serve as query text unless configured otherwise; other query ids are not features. ``columns_``
    contains the decision.
    """
    asked = table.schema.columns.get("qid")
    fit = partial(encoder.fit_transform, qid=table.qid if by_query else None)
    if asked not in table.X.column_names or asked in encoder.columns_named():
        out = _features(fit, encoder, table)
    else:
        words = _words_of_ids(table.qid)
        if encoder.query_text is None and words >= _WORDS_OF_TEXT:
            encoder.set_params(query_text=asked)
            reason = f"query ids of {words:.1f} words read like text"
        else:
            encoder.set_params(ignore=(*names_of("ignore", encoder.ignore), asked))
            reason = "query ids" if encoder.query_text is not None else "query ids do not read like text"
        out = _features(fit, encoder, table)
        encoder.columns_ = [replace(use, reason=reason) if use.name == asked else use for use in encoder.columns_]
    return out


def encoded_rows(encoder: TableEncoder, table: Rows, note: Callable[[str], object]) -> Rows:
    """Encode other rows as features; missing and unseen cells are counted in a note."""
    out = _features(encoder.transform, encoder, table)
    unusual = encoder.count_unusual(table.X)
    if unusual:
        cells = ", ".join(
            f"{name} {' and '.join(f'{count} {what}' for what, count in counts.items())}"
            for name, counts in unusual.items()
        )
        note(
            f"{table.path} has cells that are missing or unseen in training: {cells}. They are encoded as in training."
        )
    return out


def encoder_of_items(votes: PairTable, kind: str | None = None) -> tuple[TableEncoder, str]:
    """Encoder of the sides of votes, and a description of its reading of them.

    Parameters
    ----------
    votes : PairTable
    kind : {"names", "texts"}, optional
        One feature for each different name, or features for the words of texts. By default names if all are single
        words, if they are short and occur in several votes on average, or if no word occurs in two of them.
    """
    if kind is None:
        single = all(len(item.split()) <= 1 for item in votes.items)
        short = np.median([len(item) for item in votes.items]) <= _LONG
        often = short and 2 * votes.n_pairs >= _VOTES_OF_A_NAME * len(votes.items)
        try:
            return encoder_of_items(votes, "names" if single or often else "texts")
        except InputError:
            return encoder_of_items(votes, "names")
    encoder = TableEncoder(columns="named", min_frequency=1, max_categories=len(votes.items) + 1)
    encoder.set_params(**{"categorical" if kind == "names" else "text": "item"})
    return encoder.fit({"item": votes.items}), kind


def columns_error(error: CellError) -> InputError:
    """Error of a cell that is not a number, or of all columns of the rows around it that are not numbers."""
    try:
        TableEncoder(columns="named", impute=None).fit(dict(error.cells))
    except InputError as columns:
        same = columns.row == error.row
        return columns.replace(file=error.file, line=error.line if same else None)
    return error


def _words_of_ids(qid: Any) -> float:
    """Mean number of words, of letters only, in the query ids; 0 if ids are not texts."""
    ids = {value for value in np.unique(qid).tolist() if isinstance(value, str)} if qid is not None else set()
    lengths = [sum(_WORD.fullmatch(part) is not None for part in value.split()) for value in ids]
    return float(np.mean(lengths)) if lengths else 0.0


def _features(encode: Callable[[Any], Any], encoder: TableEncoder, table: Rows) -> Rows:
    """Table with features in place of its cells."""
    try:
        X = encode(table.X)
    except InputError as error:
        raise error.replace(file=table.path, line=table.line_of(error.row)) from error
    return table.with_features(X, encoder.get_feature_names_out().tolist())
