"""A linear model written out as its sum: plain JSON, and Vespa's rank profiles."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from rankrls._errors import InputError
from rankrls.export._linear import Exported, json_text, linear_scorer

_ARGUMENT = r'(?:[A-Za-z0-9_.\-]+|"[^"\\\n]*")'
_FEATURE = re.compile(rf"[A-Za-z_]\w*(?:\(\s*{_ARGUMENT}(?:\s*,\s*{_ARGUMENT})*\s*\))?(?:\.[A-Za-z0-9_]+)*", re.A)


def to_json(
    model: Any,
    name: str = "rankrls",
    *,
    feature_names: Sequence[str] | None = None,
    offset: float | None = None,
    target: int | None = None,
) -> Exported:
    """A linear model as plain JSON: ``score = constant + sum_j weight_j (x_j - centre_j) / spread_j``.

    Parameters
    ----------
    model : fitted linear estimator of rankrls, or a Pipeline that ends in one
        Scalers before it may be scikit-learn's StandardScaler, MinMaxScaler, MaxAbsScaler and RobustScaler, and first
        of all there may be a TableEncoder without TF-IDF: "of" then says what a feature is made of, as
        :class:`~rankrls.preprocessing.EncodedFeature` does.
    name : str, default="rankrls"
    feature_names : sequence of str, optional
        One a column; those of the data frame by default.
    offset : float, optional
        A constant to add to every score.
    target : int, optional
        Which target, for a model of several.

    Returns
    -------
    Exported
        JSON; the numbers are float64 and read back the same.

    Raises
    ------
    ValueError
        For a model that is not linear, scaling by query, missing or repeated names, and TF-IDF.

    Examples
    --------
    >>> from rankrls import RankRLS
    >>> from rankrls.export import to_json
    >>> model = RankRLS(alpha=2.0).fit([[0.0], [2.0]], [0, 4])
    >>> to_json(model, "toy", feature_names=["length"]).json()["features"]
    [{'name': 'length', 'weight': 1.0, 'centre': 0.0, 'spread': 1.0}]
    """
    scorer = linear_scorer(model, feature_names, target, offset)
    words = next((f.column for f in scorer.encoded if f.kind in ("similarity", "tfidf")), None)
    if words is not None:
        problem = f"Plain JSON does not hold the words of {words!r}, of which TF-IDF is made."
        raise InputError(f"{problem} Fit with text_features='matches'.", parameter="model", column=words)
    made_of = [{"of": vars(each)} for each in scorer.encoded] or [{}] * len(scorer.names)
    value = {
        "name": name,
        "type": "linear",
        "score": "constant + sum of weight * (value - centre) / spread",
        "constant": scorer.constant,
        "features": [
            {"name": feature, "weight": weight, "centre": centre, "spread": spread, **of}
            for (feature, weight, centre, spread), of in zip(scorer.rows(), made_of, strict=True)
        ],
    }
    return Exported("json", json_text(value), tuple(scorer.notes()[1:]))


def to_vespa(
    model: Any,
    name: str = "rankrls",
    *,
    feature_names: Sequence[str] | None = None,
    offset: float | None = None,
    target: int | None = None,
) -> Exported:
    """A linear model as a Vespa rank profile.

    Parameters
    ----------
    model : fitted linear estimator of rankrls, or a Pipeline that ends in one
        Scalers before it may be scikit-learn's StandardScaler, MinMaxScaler, MaxAbsScaler and RobustScaler.
    name : str, default="rankrls"
        The rank profile's name.
    feature_names : sequence of str, optional
        Rank features or functions of the schema, one a column: ``bm25(title)``, ``attribute(popularity)``,
        ``query(weight)``, ``fieldMatch(title).completeness``, a function's name. Those of the data frame by default.
    offset : float, optional
        A constant to add to every score.
    target : int, optional
        Which target, for a model of several.

    Returns
    -------
    Exported
        The text of a ``rank-profile`` for the schema file, with the model in its second phase.

    Raises
    ------
    ValueError
        For a model that is not linear or behind a TableEncoder, scaling by query, and names that no rank feature can
        have.

    References
    ----------
    Vespa documentation, Ranking expressions; Schema reference, rank-profile.

    Examples
    --------
    >>> from rankrls import RankRLS
    >>> from rankrls.export import to_vespa
    >>> model = RankRLS(alpha=2.0).fit([[0.0, 1.0], [2.0, 1.0]], [0, 4])
    >>> print(to_vespa(model, "toy", feature_names=["bm25(title)", "attribute(age)"]).content)
    rank-profile toy inherits default {
        second-phase {
            expression {
                0.0
                + 1.0 * bm25(title)
            }
        }
    }
    <BLANKLINE>
    """
    if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_\-]*", name):
        raise InputError(f"{name!r} cannot be a rank profile's name: letters, digits, _ and - only.", parameter="name")
    scorer = linear_scorer(model, feature_names, target, offset)
    if scorer.encoded:
        problem = "Features of a TableEncoder are defined for Solr, Elasticsearch and OpenSearch only."
        raise InputError(f"{problem} For Vespa, define them in the schema and fit on their values.", parameter="model")
    bad = next((feature for feature in scorer.names if not _FEATURE.fullmatch(feature)), None)
    if bad is not None:
        like = "bm25(title), attribute(popularity), query(weight), fieldMatch(title).completeness, or a function"
        raise InputError(f"{bad!r} is no Vespa rank feature; they look like {like}.", parameter="feature_names")
    terms = [repr(scorer.constant)]
    for feature, weight, centre, spread in scorer.rows():
        value = feature if centre == 0.0 else f"({feature} {_signed(-centre)})"
        terms.append(f"{_signed(weight)} * {value}{'' if spread == 1.0 else f' / {spread!r}'}")
    lines = "\n".join(" " * 12 + term for term in terms)
    text = f"rank-profile {name} inherits default {{\n    second-phase {{\n        expression {{\n{lines}\n"
    return Exported("vespa", f"{text}        }}\n    }}\n}}\n", tuple(scorer.notes()[1:]))


def _signed(value: float) -> str:
    """``+ 0.5`` or ``- 0.5``."""
    return f"{'-' if value < 0.0 else '+'} {abs(value)!r}"
