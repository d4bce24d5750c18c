"""Models as JSON, with scorers that need no packages."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.resources import files
from typing import Any

from rankrls._errors import InputError
from rankrls._typing import Values
from rankrls.export._model import (
    Expansion,
    Exported,
    Function,
    Steps,
    Weights,
    fitted_function,
    json_text,
    scaling_steps,
)
from rankrls.models._pipelines import check_target, fitted_names, fitted_ranker, names_of_features, table_encoder
from rankrls.preprocessing import TableEncoder
from rankrls.preprocessing._table_encoder import PERIODS, Categories, Encoding, Numbers

_SCORERS = ("score.py", "score.mjs")
FORMAT = "rankrls-scorer"
FORMAT_VERSION = 1


def to_json(
    model: Any,
    name: str = "rankrls",
    *,
    feature_names: Sequence[str] | None = None,
    offset: float | None = None,
    target: int | None = None,
) -> Exported:
    """Export a model as one JSON file, with scorers in plain Python and JavaScript.

    Parameters
    ----------
    model : fitted estimator of rankrls, or a Pipeline that ends in one
        Models with a named kernel, CoRankingPursuit and CoRankRLS with such views, and RankBoost. The pipeline can have
        a TableEncoder first, and LogScaler or scikit-learn's StandardScaler, MinMaxScaler, MaxAbsScaler and
        RobustScaler.
    name : str, default="rankrls"
        Name of the model.
    feature_names : sequence of str, optional
        Names of the features, one per column. By default those of the data frame; without names, rows are lists.
    offset : float, optional
        Constant to add to every score.
    target : int, optional
        Number of the target, for a model with several.

    Returns
    -------
    Exported
        The JSON, and the further files ``score.py`` and ``score.mjs``. Each has a function ``score(model, rows)`` from
        the parsed JSON and rows, which are objects of cells by columns or lists of numbers, to scores: those of
        ``predict`` in float64.

    Raises
    ------
    ValueError
        For kernel functions and precomputed kernels, scaling within queries, and formats of dates.

    Notes
    -----
    The keys of the JSON:

    ==========  =======================================================================================================
    columns     the names of numeric features, or null; with ``encoder`` null
    encoder     for each column of a table its ``kind`` and what it becomes: ``fill``, ``flag`` (whether a feature says
                that a cell is missing), ``origin`` and ``periods`` in days since 1970; ``places``, pairs of a category
                and its place among ``width`` features, where null is a missing cell, categories are numbers if
                ``by_value``, and ``others`` is the place of all others; ``texts``, lists of ``words`` and inverse
                document frequencies ``idf``
    missing     texts that are missing cells, in lower case
    query       the column with the text of the query, or null
    scaling     steps ``(x - centre) / spread``, of asinh(x) if ``logarithm``
    function    ``weights``; or stumps (``features``, ``thresholds``, ``weights``); or ``expansions``, sums over items
                of kernels: a ``measure`` of two rows and ``steps`` of its values
    offset      the constant
    ==========  =======================================================================================================

    Examples
    --------
    >>> from rankrls import RankRLS
    >>> from rankrls.export import to_json
    >>> exported = to_json(RankRLS(alpha=2.0).fit([[0.0, 1.0], [2.0, 1.0]], [0, 4]), "toy")
    >>> exported.json()["function"]
    {'weights': [1.0, 0.0]}
    >>> space = {}
    >>> exec(exported.files["score.py"], space)
    >>> space["score"](exported.json(), [[0.0, 1.0], [2.0, 1.0]])
    [0.0, 2.0]
    """
    final = fitted_ranker(model)
    function = fitted_function(final, "JSON")
    encoder = table_encoder(model)
    names = None
    if encoder is None and (feature_names is not None or fitted_names(model) is not None):
        names = list(names_of_features(model, feature_names, final.n_features_in_))
    n = len(encoder.features_) if encoder is not None else final.n_features_in_
    steps = scaling_steps(model, n)
    body = {
        "format": FORMAT,
        "version": FORMAT_VERSION,
        "name": name,
        "columns": names,
        **_table(encoder),
        "scaling": list(map(vars, steps)),
        "function": _function(function, target),
        "offset": float(offset or 0.0),
    }
    scorers = files("rankrls.export").joinpath("scorers")
    texts = {scorer: scorers.joinpath(scorer).read_text(encoding="utf-8") for scorer in _SCORERS}
    return Exported(json_text(body), ("Scores are those of predict in float64, up to rounding.",), files=texts)


def _table(encoder: TableEncoder | None) -> Values:
    """The columns of a table and what they become."""
    if encoder is None:
        return {"encoder": None, "missing": [], "query": None}
    if encoder.date_format is not None:
        problem = "The scorers read dates as ISO 8601, 2024/3/1 and 1.3.2024, and have no date_format."
        raise InputError(f"{problem} Fit on such dates.", parameter="model")
    missing = [word.lower() for word in encoder.missing_words()]
    return {"encoder": list(map(_encoding, encoder.encodings_)), "missing": missing, "query": encoder.query_text}


def _encoding(encoding: Encoding) -> Values:
    column = encoding.column
    if isinstance(encoding, Numbers):
        flag = encoding.gaps and encoding.fill is not None
        periods = [PERIODS[period] for period in encoding.periods]
        dates = {"origin": encoding.origin, "periods": periods}
        return {"kind": encoding.kind, "column": column, "fill": encoding.fill, "flag": flag, **dates}
    if isinstance(encoding, Categories):
        n = len(encoding.known)
        places = {"places": [*encoding.places.items()], "by_value": encoding.by_value}
        return {"kind": "category", "column": column, **places, "others": n, "width": n + bool(encoding.rare)}
    texts = [{"kind": kind, **({} if known is None else vars(known))} for kind, known in encoding.vocabularies.items()]
    return {"kind": "text", "column": column, "texts": texts}


def _function(function: Function, target: int | None) -> Values:
    match function:
        case Weights(weights):
            return {"weights": weights[:, check_target(target, weights.shape[1])]}
        case Steps():
            check_target(target, 1)
            return vars(function)
    return {"expansions": [_expansion(part, target) for part in function]}


def _expansion(part: Expansion, target: int | None) -> Values:
    return {
        "measure": part.formula.measure,
        "steps": part.formula.steps(part.kernel),
        "features": part.features,
        "items": part.items,
        "coefficients": part.coefficients[:, check_target(target, part.coefficients.shape[1])],
    }
