"""Model files on the command line: what they need of a file's rows, and the scores that they give."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.pipeline import Pipeline

from rankrls._errors import InputError
from rankrls._items import Items
from rankrls.cli._encoding import encoded
from rankrls.cli._files import read
from rankrls.cli._report import Report
from rankrls.io.data import Reading, Rows, few
from rankrls.io.scores import read_scores
from rankrls.metrics._scorer import final_step_inputs, predict_by_query
from rankrls.models._pipelines import table_encoder
from rankrls.persistence import load, read_info

__all__ = ["StoredModel", "load_model", "scores_of"]


@dataclass(frozen=True)
class StoredModel:
    """A model as its file has it: how it reads data, and what it makes of them.

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
        What the training data called the columns of labels, query ids and items' ids.
    ids : str or None
        What named an item in the preferences that it was fitted on or judged by (``--ids``).
    items : tuple of str
        The columns of the items that it ranks for each row, if it ranks the same ones for all.
    item_features : tuple of str, or None
        What it knows of these items.
    """

    path: Path
    model: Any
    n_features: int
    zero_based: Any
    names: tuple[str, ...] | None = None
    usual: dict[str, str] = field(default_factory=dict)
    ids: str | None = None
    whole: Any = None
    encoder: Any = None
    items: tuple[str, ...] = ()
    item_features: tuple[str, ...] | None = None

    @property
    def by_query(self) -> bool:
        """Whether its scores can be compared inside a query only."""
        final = self.model.steps[-1][1] if isinstance(self.model, Pipeline) else self.model
        return bool(getattr(final, "_fitted_with_qid", False))

    @property
    def scales_by_query(self) -> bool:
        """Whether it cannot score a row without the others of its query."""
        return isinstance(self.model, Pipeline) and any(
            getattr(step, "fitted_with_qid_", False) for _, step in self.model.steps
        )

    def read(self, path: Path, reading: Reading, report: Report) -> Rows:
        """A file's rows, with the features that the model was fitted on.

        Of a table the model's columns are taken by name, or in their order if it knows no names. In LETOR text a line
        that names a further feature is an error; features that no line names are 0, and noted.

        Raises
        ------
        InputError
            For one ranking of all rows (``queries="ignored"``) by a model that knows queries, and as
            :meth:`Reading.read`.
        """
        if reading.queries == "ignored" and (self.by_query or self.items):
            problem = "it was fitted with queries: {queries=ignored} would compare scores of different queries."
            raise InputError(problem, file=str(self.path))
        if self.items:
            for name in ("label", "qid", "sizes", "event"):
                if getattr(reading, name) is not None:
                    word = "group" if name == "sizes" else name
                    problem = f"a row is a query here, which ranks the items of the model: {{{word}}} means nothing."
                    raise InputError(problem, file=str(self.path), parameter=word)
            asked: dict[str, Any] = {"utilities": self.items, "labels": "partly"} if reading.labels != "ignored" else {}
            reading = replace(reading, queries="ignored", **asked)
        if self.names is not None and reading.features is not None:
            problem = "{features} means nothing here: the model names its features itself."
            raise InputError(problem, parameter="features")
        if self.encoder is not None:
            raw = replace(reading.called(self.usual), raw=True, names=tuple(self.encoder.columns_needed_))
            return encoded(self.encoder, read(path, raw, report), report)
        known: dict[str, Any] = {"names": self.names, "n_features": self.n_features, "zero_based": self.zero_based}
        fixed = f"(The model has {self.n_features} features.)"
        table = read(path, replace(reading.called(self.usual), fixed=fixed, **known), report)
        if table.feature_names is None and self.names is not None:
            report.note(f"{path} has features by number; the model's, in their order, are {few(self.names)}.")
        if table.feature_names is None and table.n_named < self.n_features:
            report.note(
                f"{path} names features up to number {table.first_feature + table.n_named - 1} only; the model has "
                f"{self.n_features}, and the others count as 0."
            )
        return table

    def check_queries(self, table: Rows) -> None:
        """Refuse rows without query ids if the scores mean something inside a query only."""
        if table.qid is None and (self.by_query or self.scales_by_query):
            raise InputError("the model was fitted with queries, so every line needs a qid.", file=table.path)

    def scores(self, table: Rows, report: Report, items: Items | None = None) -> NDArray[np.float64]:
        """Scores of a file's rows, (m,) or (m, targets), scaled as the training data were; if given, of other items."""
        if table.qid is None and self.scales_by_query:
            raise InputError("the model scales features inside each query, so every line needs a qid.", file=table.path)
        with report.working("scoring", f"scoring by {self.path}"):
            if items is None:
                return np.asarray(predict_by_query(self.model, table.X, table.qid))
            final, X = final_step_inputs(self.model, table.X, table.qid)
            return np.asarray(final.predict(X, items=items))


def load_model(path: Path, report: Report) -> StoredModel:
    """Load a model file."""
    with report.working("loading", f"loading {path}"):
        given, model = read_info(path)["given"], load(path)
    whole, encoder = model, table_encoder(model)
    if encoder is not None:
        model = model[1:] if len(model.steps) > 2 else model.steps[-1][1]
    steps = [step for _, step in model.steps] if isinstance(model, Pipeline) else [model]
    n_features = next(step.n_features_in_ for step in steps if hasattr(step, "n_features_in_"))
    names = getattr(steps[0], "feature_names_in_", None)
    usual = given.get("columns")
    usual = usual if isinstance(usual, dict) else {}
    about = given.get("items")
    known = tuple(map(str, about["features"])) if isinstance(about, dict) and "features" in about else None
    items = tuple(map(str, found)) if isinstance(found := usual.get("utilities"), list) else ()
    usual = {k: v for k, v in usual.items() if isinstance(v, str)}
    names = None if names is None else tuple(str(name) for name in names)
    ids = given.get("ids") if given.get("ids") in ("row", "docid", "comment") else None
    zero_based = given.get("zero_based", "auto")
    return StoredModel(path, model, int(n_features), zero_based, names, usual, ids, whole, encoder, items, known)


def scores_of(
    data: Path, models: Sequence[StoredModel], files: Sequence[Path], reading: Reading, report: Report
) -> tuple[Rows, dict[Path, NDArray[np.float64]]]:
    """The rows of a file, and their scores by models of one target and from files of scores.

    What nobody has said about columns is said by the models, and then by the files of scores.
    """
    for stored in models:
        reading = reading.called({role: name for role, name in stored.usual.items() if role not in reading.usual})
    given = {path: read_scores(path, reading) for path in files}
    for found in given.values():
        reading = found.data(reading)
    table, shape = None, None
    scores = {}
    for stored in models:
        read_like = (stored.n_features, stored.zero_based, stored.names, stored.usual, stored.encoder, stored.items)
        if table is None or shape != read_like:  # models of the same training data share one reading
            table, shape = stored.read(data, reading, report), read_like
        values = stored.scores(table, report)
        if not stored.items and values.size != table.n_rows:
            problem = "The model gives {0} scores a row, one for each target; judging needs one."
            raise InputError(problem, values.shape[1])
        scores[stored.path] = values.reshape(-1)
    if table is None:
        table = read(data, reading, report)
    if models and models[0].items:
        table, kept = _by_item(table, models)
        scores = {path: values[kept] for path, values in scores.items()}
    return table, scores | {path: found.of_rows(table, report.note) for path, found in given.items()}


def _by_item(table: Any, models: Sequence[StoredModel]) -> tuple[Rows, NDArray[np.intp]]:
    """Rows and items of models that rank the same items for each row, where these are known."""
    first, *others = models
    odd = next((stored for stored in others if stored.items != first.items), None)
    if odd is not None:
        problem = "it does not rank the items that {0} ranks for each row ({1})."
        raise InputError(problem, first.path, few(first.items), file=str(odd.path))
    if table.y is None:
        problem = "it ranks the items that it was fitted to for each row: it is judged by their labels alone."
        raise InputError(problem, file=str(first.path), parameter="judged_pairs")
    found: tuple[Rows, NDArray[np.intp]] = table.by_item(first.items)
    return found
