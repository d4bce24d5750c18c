"""What is wrong with a line, in words."""

from __future__ import annotations

import math

from rankrls.io._parse import Problem

__all__ = ["PARAMETERS", "describe"]

PARAMETERS = {Problem.LABEL: "y", Problem.ID_ZERO: "zero_based", Problem.ID_TOO_HIGH: "n_features"}
"""What a problem is about, if it is a parameter or the labels."""

_SHOWN = 40


def describe(problem: int, token: bytes, number: int, columns: int, first_id: int) -> str:
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
    shown = _quote(token)
    if problem == Problem.LABEL:
        if b":" in token:
            return f"the line starts with {shown}, but a label has to come first."
        return f"the label {shown} {_not_a_value(token)}."
    if problem == Problem.VALUE:
        value = token.partition(b":")[2]
        if not value:
            return f"feature {number} has no value ({shown})."
        return f"the value {_quote(value)} of feature {number} {_not_a_value(value)}."
    return {
        Problem.TOKEN: f"{shown} is not 'feature:value' with a whole number as feature id (nor 'qid:id').",
        Problem.ID_TOO_LONG: f"the feature id of {shown} is too large.",
        Problem.ID_ZERO: f"feature id 0 ({shown}), but ids start at 1 here.",
        Problem.ID_TOO_HIGH: (
            f"feature {number} ({shown}) is beyond the {columns} features that are read, with ids from {first_id} on."
        ),
        Problem.TWICE: f"feature {number} is named twice.",
        Problem.QID_EMPTY: "the query id behind 'qid:' is missing.",
        Problem.QID_TWICE: f"there is a second query id, {shown}.",
        Problem.QID_MISSING: "the line has no qid, but the lines before it have one.",
        Problem.QID_UNEXPECTED: f"the line has a query id, {shown}, but the lines before it have none.",
        Problem.QID_NUL: f"the query id {shown} holds a NUL byte.",
    }[problem]


def _quote(token: bytes) -> str:
    try:
        text = token.decode()
    except UnicodeDecodeError:
        return repr(token)[1:]
    return repr(text if len(text) <= _SHOWN else text[: _SHOWN - 3] + "...")


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
