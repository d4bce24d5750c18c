"""Vespa: a rank profile with the model as its ranking expression."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from rankrls._errors import InputError
from rankrls.export._exported import Exported
from rankrls.export._linear import linear_scorer

__all__ = ["to_vespa"]

PHASES = ("first-phase", "second-phase", "global-phase")
_NAME = r"[A-Za-z_][A-Za-z0-9_]*"
_ARGUMENT = r'(?:[A-Za-z0-9_.\-]+|"[^"\\\n]*")'
_FEATURE = re.compile(rf"{_NAME}(?:\(\s*{_ARGUMENT}(?:\s*,\s*{_ARGUMENT})*\s*\))?(?:\.[A-Za-z0-9_]+)*")


def to_vespa(
    model: Any,
    name: str = "rankrls",
    *,
    feature_names: Sequence[str] | None = None,
    phase: str = "second-phase",
    scaler: str = "beside",
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
    phase : {"second-phase", "first-phase", "global-phase"}, default="second-phase"
    scaler : {"beside", "fold"}, default="beside"
        Scales written out in the expression, or folded into weights and one constant. Folded sums lose digits where a
        feature's mean dwarfs its spread.
    offset : float, optional
        A constant to add to every score.
    target : int, optional
        Which target, for a model of several.

    Returns
    -------
    Exported
        The text of a ``rank-profile`` for the schema file.

    Raises
    ------
    ValueError
        For a model that is not linear, scaling by query, and names that no rank feature can have.

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
                1.0 * bm25(title)
            }
        }
    }
    <BLANKLINE>
    """
    if phase not in PHASES:
        raise InputError(
            "{phase} must be one of {0}; got {1!r}.", ", ".join(map(repr, PHASES)), phase, parameter="phase"
        )
    if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_\-]*", name):
        raise ValueError(f"{name!r} cannot be a rank profile's name: letters, digits, _ and - only.")
    scorer = linear_scorer(model, feature_names, target, scaler, offset)
    for feature in scorer.names:
        if not _FEATURE.fullmatch(feature):
            raise ValueError(
                f"{feature!r} is no Vespa rank feature; names look like bm25(title), attribute(popularity), "
                "query(weight), fieldMatch(title).completeness, or a function of the rank profile."
            )
    terms = []
    for feature, w, centre, spread in zip(scorer.names, scorer.weights, scorer.centres, scorer.spreads, strict=True):
        value = feature if centre == 0.0 else f"({feature} {_signed(-centre)})"
        scale = "" if spread == 1.0 else f" / {float(spread)!r}"
        terms.append(f"{_signed(w)} * {value}{scale}")
    if scorer.constant != 0.0:
        terms.append(_signed(scorer.constant))
    terms[0] = terms[0].removeprefix("+ ") if terms[0][0] == "+" else f"-{terms[0].removeprefix('- ')}"
    lines = "\n".join(" " * 12 + term for term in terms)
    text = (
        f"rank-profile {name} inherits default {{\n"
        f"    {phase} {{\n"
        f"        expression {{\n{lines}\n"
        "        }\n    }\n}\n"
    )
    return Exported("vespa", text, scorer.notes()[1:])


def _signed(value: float) -> str:
    """``+ 0.5`` or ``- 0.5``."""
    return f"{'-' if value < 0.0 else '+'} {abs(float(value))!r}"
