"""A stored model and files: reading of rows for it, and its scores."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankrls._errors import InputError
from rankrls.io import Rows, open_dataset
from rankrls.io._rows import few
from rankrls.io.data import ReadOptions
from rankrls.metrics._scorer import predict_by_query, scales_by_query
from rankrls.models._pipelines import table_encoder
from rankrls.persistence._files import read_model, steps_of
from rankrls.persistence.table_rows import encoded_rows


@dataclass(frozen=True)
class StoredModel:
    """A model from a file, which reads data and scores them.

    Attributes
    ----------
    path : Path
    model : Any
        The estimator, or a pipeline that ends in one; without an encoder of tables that it begins with.
    whole : Any
        The same with it.
    n_features : int
        Features that it takes.
    zero_based : bool or "auto"
        Whether the training data counted features from 0; "auto" where the file does not say.
    names : tuple of str, or None
        The features' names, where it knows them.
    usual : dict
        Names of the columns of labels, query ids and items' ids in the training data.
    """

    path: Path
    model: Any
    n_features: int
    zero_based: Any
    names: tuple[str, ...] | None = None
    usual: dict[str, str] = field(default_factory=dict)
    whole: Any = None
    encoder: Any = None

    @property
    def by_query(self) -> bool:
        """Whether its scores can be compared only within a query."""
        return bool(vars(steps_of(self.model)[-1]).get("fitted_with_qid_"))

    def read(self, path: Path, reading: ReadOptions, note: Callable[[str], object], *, source: Any = None) -> Rows:
        """A file's rows, with the features that the model was fitted on.

        From a table, the model's columns are read by name, or in their order if it knows no names. In LETOR text a line
        that names a further feature is an error; features that no line names are 0, and noted.

        Parameters
        ----------
        path, note, source : as for :meth:`ReadOptions.read`
        reading : ReadOptions
            Roles of the columns.

        Raises
        ------
        InputError
            For one ranking of all rows (``queries="ignored"``) by a model that knows queries, and as
            :meth:`ReadOptions.read`.
        """
        if reading.queries == "ignored" and self.by_query:
            problem = "the model cannot compare scores of different queries. Leave this option out (global)."
            raise InputError(problem, file=str(self.path))
        if self.names is not None and reading.features is not None:
            raise InputError(
                "features cannot be used: the model file contains the feature names.", parameter="features"
            )
        reading = reading.called(self.usual)
        if self.encoder is not None:
            names = tuple(self.encoder.columns_needed_)
            missing = self.encoder.missing_words()
            raw = replace(reading, raw=True, names=names, missing=missing)
            return encoded_rows(self.encoder, raw.read(path, note, source=source), note)
        known: dict[str, Any] = {"names": self.names, "n_features": self.n_features, "zero_based": self.zero_based}
        try:
            table = replace(reading, **known).read(path, note, source=source)
        except InputError as error:
            if error.parameter != "features":
                raise
            raise error.replace(message=f"{error.message} The model needs its features.", parameter=None) from error
        if table.feature_names is None and self.names is not None:
            note(f"{path} has numbers for features; they are taken in the model's order: {few(self.names)}.")
        if table.n_named is not None and table.n_named < self.n_features:
            last = table.n_named - int(table.zero_based)
            note(f"{path} names features up to number {last} only; the others of {self.n_features} count as 0.")
        return table

    def open(self, path: Path, **how: Any) -> Any:
        """Data that are read a part at a time, with the features that the model was fitted on.

        Parameters
        ----------
        path : path
        **how
            As for :func:`rankrls.io.open_dataset`; columns that are not named are called as in the training data.

        Raises
        ------
        InputError
            For a model that needs all rows in memory, and for data with another number of features.
        """
        if self.encoder is not None:
            raise InputError("the model encodes tables, which needs all rows in memory.", file=str(self.path))
        roles = ("qid", "id") if how.get("labels") == "ignored" else ("label", "qid", "id")
        how |= {role: how.get(role) or self.usual.get(role) for role in roles}
        how["features"] = how.get("features") or self.names
        data = open_dataset(path, **how)
        if data.n_features != self.n_features:
            raise InputError(
                f"the data have {data.n_features} features, but the model needs {self.n_features}.", file=str(path)
            )
        return data

    def check_queries(self, table: Rows) -> None:
        """Refuse rows without query ids if the model was fitted with queries."""
        if table.qid is None and scales_by_query(self.model):
            raise InputError("the model was fitted with queries, so every line needs a qid.", file=table.path)

    def scores(self, table: Rows) -> NDArray[np.float64]:
        """Scores of a file's rows, (m,) or (m, targets), scaled as the training data were."""
        self.check_queries(table)
        return np.asarray(predict_by_query(self.model, table.X, table.qid))


def stored_model(path: Path) -> StoredModel:
    """Load a model file, with what it says of the data that it was fitted on."""
    model, about = read_model(path)
    given = about["given"]
    whole = model
    encoder = table_encoder(model)
    if encoder is not None:
        model = model[1:]
    first = steps_of(model)[0]
    usual = given.get("columns")
    zero_based = given.get("zero_based")
    names = vars(first).get("feature_names_in_")
    names = None if names is None else tuple(map(str, names))
    usual = {k: v for k, v in usual.items() if isinstance(v, str)} if isinstance(usual, dict) else {}
    zero_based = zero_based if isinstance(zero_based, bool) else "auto"
    return StoredModel(path, model, int(first.n_features_in_), zero_based, names, usual, whole, encoder)
