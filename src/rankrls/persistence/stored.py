"""Stored models with data files: reading of rows for a model, and its scores; tables as its features."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from rankrls._errors import InputError
from rankrls._typing import Array
from rankrls.io import Dataset, PairTable, Rows, open_dataset
from rankrls.io._text import few
from rankrls.io.reading import ReadOptions
from rankrls.io.rows import Schema
from rankrls.io.tables import CellError
from rankrls.metrics._scorer import predict_by_query
from rankrls.models._pipelines import table_encoder
from rankrls.persistence._files import read_model, steps_of
from rankrls.preprocessing import TableEncoder
from rankrls.preprocessing._table_encoder import names_of

_WORDS_OF_TEXT = 1.5
"""Mean number of words without digits from which query ids count as texts of queries."""
_WORD = re.compile(r"[^\W\d_]{2,}")
_VOTES_OF_A_NAME = 5
_LONG = 80


@dataclass(frozen=True)
class StoredModel:
    """A model from a file, which reads data and scores them.

    Attributes
    ----------
    path : Path
    model : Any
        The estimator, or a pipeline that ends in one, without an encoder of tables at its start.
    whole : Any
        The same with this encoder.
    schema : Schema
        Names of the features and columns, and numbering of features, of the training data, as far as known.
    """

    path: Path
    model: Any
    schema: Schema
    whole: Any = None
    encoder: Any = None

    @property
    def by_query(self) -> bool:
        """Whether its scores are comparable only within a query."""
        return bool(vars(steps_of(self.model)[-1]).get("fitted_with_qid_"))

    def read(self, path: Path, reading: ReadOptions, note: Callable[[str], object]) -> Rows:
        """Read the rows of a file, with the features that the model was fitted to.

        In a table, the model's columns are read by name, or in their order if it has no names. In LETOR text, a line
        with a further feature is an error; features that occur in no line are 0, with a note.

        Parameters
        ----------
        path, note : as for :meth:`ReadOptions.read`
        reading : ReadOptions
            Roles of the columns.

        Raises
        ------
        InputError
            If one ranking of all rows (``queries="ignored"``) is requested from a model fitted with queries, and as for
            :meth:`ReadOptions.read`.
        """
        if reading.queries == "ignored" and self.by_query:
            problem = "the model cannot compare scores of different queries. Leave this option out (global)."
            raise InputError(problem, file=str(self.path))
        if self.schema.features is not None and reading.features is not None:
            raise InputError(
                "features cannot be used: the model file contains the feature names.", parameter="features"
            )
        columns = {**reading.known.columns, **self.schema.columns}
        reading = replace(reading, known=replace(self.schema, columns=columns))
        if self.encoder is not None:
            reading = replace(reading, missing=self.encoder.missing_words())
        try:
            table = reading.read(path, note)
        except InputError as error:
            if error.parameter != "features":
                raise
            raise error.replace(message=f"{error.message} The model needs its features.", parameter=None) from error
        if self.encoder is not None:
            return encoded_rows(self.encoder, table, note)
        if table.feature_names is None and self.schema.features is not None:
            note(f"{path} has numbers for features; they are taken in the model's order: {few(self.schema.features)}.")
        if table.n_named is not None and table.n_named < table.n_features:
            last = table.n_named - int(table.zero_based)
            note(f"{path} names features up to number {last} only; the others of {table.n_features} count as 0.")
        return table

    def open(self, path: Path, **how: Any) -> Dataset:
        """Open data that are read in parts, with the features that the model was fitted to.

        Parameters
        ----------
        path : path
        **how
            Options of :func:`rankrls.io.open_dataset`; by default, columns have the names of the training data.

        Raises
        ------
        InputError
            If the model encodes tables.
        """
        if self.encoder is not None:
            raise InputError(
                "the model encodes tables, and here it needs whole queries. Name one file.", file=str(self.path)
            )
        roles = ("qid", "id") if how.get("labels") == "ignored" else ("label", "qid", "id")
        how |= {role: how.get(role) or self.schema.columns.get(role) for role in roles}
        how["features"] = how.get("features") or self.schema.features
        return open_dataset(path, **how)

    def check_queries(self, table: Rows) -> None:
        """Refuse rows without query ids if the model was fitted with queries."""
        if table.qid is None and self.by_query:
            raise InputError("the model was fitted with queries, so every line needs a qid.", file=table.path)

    def scores(self, table: Rows) -> Array:
        """Scores of the rows of a file, (m,) or (m, targets), scaled like the training data."""
        self.check_queries(table)
        return np.asarray(predict_by_query(self.model, table.X, table.qid))


def stored_model(path: Path) -> StoredModel:
    """Load a model file, with its description of the training data."""
    model, about = read_model(path)
    given = about["given"]
    whole = model
    encoder = table_encoder(model)
    if encoder is not None:
        model = model[1:]
    first = steps_of(model)[0]
    columns = given.get("columns")
    zero_based = given.get("zero_based")
    names = vars(first).get("feature_names_in_") if encoder is None else encoder.columns_needed_
    schema = Schema(
        features=None if names is None else tuple(map(str, names)),
        columns={k: v for k, v in columns.items() if isinstance(v, str)} if isinstance(columns, dict) else {},
        n_features=int(first.n_features_in_),
        first_feature=int(not zero_based) if isinstance(zero_based, bool) else None,
    )
    return StoredModel(path, model, schema, whole, encoder)


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
    names = tuple(encoder.get_feature_names_out().tolist())
    return replace(table, X=X, schema=replace(table.schema, features=names))
