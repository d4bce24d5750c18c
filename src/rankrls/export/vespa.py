"""Vespa: a rank profile with the model as its ranking expression."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from typing import Any

from rankrls._checks import check_word
from rankrls._errors import InputError
from rankrls.export._definitions import Defined, Part, conditions, defined
from rankrls.export._exported import Exported
from rankrls.export._linear import linear_scorer
from rankrls.preprocessing import EncodedFeature

_SECONDS = 86_400.0
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")
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
        Scalers before it may be scikit-learn's StandardScaler, MinMaxScaler, MaxAbsScaler and RobustScaler, and first
        of all there may be a TableEncoder, whose features become functions of the rank profile.
    name : str, default="rankrls"
        The rank profile's name.
    feature_names : sequence of str, optional
        Rank features or functions of the schema, one a column: ``bm25(title)``, ``attribute(popularity)``,
        ``query(weight)``, ``fieldMatch(title).completeness``, a function's name. Those of the data frame by default.
    phase : {"second-phase", "first-phase", "global-phase"}, default="second-phase"
    scaler : {"beside", "fold"}, default="beside"
        Scales written out in the expression, or folded into weights and one constant. Folded sums lose digits if a
        feature's mean is much larger than its spread.
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
    check_word("phase", phase, PHASES)
    if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_\-]*", name):
        problem = "{0!r} cannot be a rank profile's name: letters, digits, _ and - only."
        raise InputError(problem, name, parameter="name")
    scorer = linear_scorer(model, feature_names, target, scaler, offset)
    functions, notes = "", list(scorer.notes()[1:])
    if scorer.encoded:
        notes += conditions(scorer.encoded, _CONDITIONS)
        scorer, definitions = defined(scorer, "Vespa", _defined)
        functions = "".join(
            f"    function {feature}() {{\n        expression: {text}\n    }}\n" for feature, text in definitions
        )
    for feature in scorer.names:
        if not _FEATURE.fullmatch(feature):
            raise InputError(
                "{0!r} is no Vespa rank feature; names look like bm25(title), attribute(popularity), query(weight), "
                "fieldMatch(title).completeness, or a function of the rank profile.",
                feature,
                parameter="feature_names",
                column=feature,
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
        f"rank-profile {name} inherits default {{\n{functions}"
        f"    {phase} {{\n"
        f"        expression {{\n{lines}\n"
        "        }\n    }\n}\n"
    )
    return Exported("vespa", text, tuple(notes))


def _defined(feature: EncodedFeature) -> Defined | str:
    """A feature as a ranking expression over attributes."""
    column, fill = feature.column, repr(feature.fill)
    if not re.fullmatch(_NAME, column):
        return "this is no name of a field there"
    field, one = f"attribute({column})", lambda text: Defined([Part(text)])
    is_missing = f"isNan({field}) == 1"
    age = f"({feature.origin * _SECONDS!r} - {field}) / {_SECONDS!r}"
    if feature.kind in ("number", "age"):
        return one(f"if ({is_missing}, {fill}, {field if feature.kind == 'number' else age})")
    if feature.kind in ("sine", "cosine"):
        return one(f"if ({is_missing}, 0.0, {feature.kind[:3]}({2.0 * math.pi / feature.days!r} * {age}))")
    if feature.kind == "missing":
        return one(f"if ({is_missing}, 1.0, 0.0)")
    if feature.kind in ("category", "none"):
        if _CONTROL.search(feature.value):
            return "a control character is in the category"
        text = feature.value.replace("\\", "\\\\").replace('"', '\\"')
        return one(f'if ({field} == "{text}", 1.0, 0.0)')
    if feature.kind == "matches":
        return one(f"fieldMatch({column}).matches")
    if feature.kind == "element":
        return "a list's numbers are not seen there"
    return "words of a document are not seen there" if feature.kind == "word" else "TF-IDF is computed otherwise there"


_CATEGORIES = "Categories are attributes of type string with match: cased, and empty where they are missing."
_CONDITIONS = {
    "": "The expressions name each attribute as the table names its column; numbers and dates are of type double.",
    "age": "Dates are seconds since 1970 (UTC).",
    "category": _CATEGORIES,
    "none": _CATEGORIES,
    "matches": "fieldMatch counts the words of the query as the query asks for them: in a field that is searched.",
}


def _signed(value: float) -> str:
    """``+ 0.5`` or ``- 0.5``."""
    return f"{'-' if value < 0.0 else '+'} {abs(float(value))!r}"
