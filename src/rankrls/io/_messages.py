"""What is wrong with a line, as an error without its place."""

from __future__ import annotations

import math

from rankrls.io._parse import Problem
from rankrls.io._rows import quoted
from rankrls.io._table import LetorError

__all__ = ["describe"]


def describe(problem: int, token: bytes, number: int, columns: int, first_id: int) -> LetorError:
    """Word what :func:`rankrls.io._parse.parse_block` found.

    Parameters
    ----------
    problem : int
        One of :class:`rankrls.io._parse.Problem`.
    token : bytes
        The bad token as it stands in the file.
    number : int
        The feature id concerned.
    columns, first_id : int
        How many columns there are, and the id of column 0.
    """
    shown = quoted(token)
    if problem == Problem.LABEL:
        # a first cell with separators is that of a table
        parameter = "format" if b"," in token or b";" in token else None
        if b":" in token:
            return LetorError("the line starts with {0}, but a label has to come first.", shown, parameter=parameter)
        return LetorError("the label {0} {1}.", shown, _not_a_value(token), column="label", parameter=parameter)
    if problem == Problem.VALUE:
        value = token.partition(b":")[2]
        if not value:
            return LetorError("feature {1} has no value ({0}).", shown, number, column=number)
        facts = (quoted(value), number, _not_a_value(value))
        return LetorError("the value {0} of feature {1} {2}.", *facts, column=number)
    template, parameter = {
        Problem.TOKEN: ("{0} is not 'feature:value' with a whole number as feature id (nor 'qid:id').", None),
        Problem.ID_TOO_LONG: ("the feature id of {0} is too large.", None),
        Problem.ID_ZERO: ("feature id 0 ({0}), but {zero_based=False} says that ids start at 1.", "zero_based"),
        Problem.ID_TOO_HIGH: (
            f"feature {{1}} ({{0}}) is beyond the {columns} features that are read, with ids from {first_id} on.",
            "n_features",
        ),
        Problem.TWICE: ("feature {1} is named twice.", None),
        Problem.QID_EMPTY: ("the query id behind 'qid:' is missing.", None),
        Problem.QID_TWICE: ("there is a second query id, {0}.", None),
        Problem.QID_MISSING: ("the line has no qid, but the lines before it have one.", None),
        Problem.QID_UNEXPECTED: ("the line has a query id, {0}, but the lines before it have none.", None),
        Problem.QID_NUL: ("the query id {0} holds a NUL byte.", None),
    }[problem]
    return LetorError(template, shown, number, parameter=parameter)


def _not_a_value(token: bytes) -> str:
    try:
        value = float(token)
    except ValueError:
        return "is not a number"
    if math.isnan(value) or token.lower().lstrip(b"+-").startswith(b"inf"):
        return "is not finite"
    if math.isinf(value):
        return "is too large for a float64"
    return "is too large for float32" if abs(value) > 1e38 else "is not a number"  # 1_000 is none here
