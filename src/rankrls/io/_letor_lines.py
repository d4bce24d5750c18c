"""Lines of LETOR text: accepted ids and values, and descriptions of bad lines."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from rankrls._errors import InputError
from rankrls.io._text import LARGEST_SINGLE, SAVE_AS_UTF8, is_utf8, quoted
from rankrls.io.rows import Schema

NO_ID = 10**18


def ids_taken(schema: Schema) -> tuple[int, int]:
    """Smallest and largest accepted feature id."""
    largest = NO_ID if schema.n_features is None else schema.n_features - int(schema.first_feature == 0)
    return int(schema.first_feature == 1), largest


def value_limit(schema: Schema) -> float:
    """Bound from which values are too large."""
    return LARGEST_SINGLE if schema.dtype == np.float32 else math.inf


def described(line: bytes, with_qid: bool | None, schema: Schema) -> InputError:
    """Error that describes a bad line."""
    label, *tokens = line.partition(b"#")[0].split()
    if b":" in label:
        problem = f"the line starts with {quoted(label)}, but a label has to come first."
        return InputError(problem, column="label")
    if why := _not_a_value(label, math.inf):
        return InputError(f"the label {quoted(label)} {why}.", column="label")
    least, largest = ids_taken(schema)
    has_qid = False
    ids = set[int]()
    for token in tokens:
        shown, (name, colon, value) = quoted(token), token.partition(b":")
        if name == b"qid" and colon:
            problems = {
                "the query id behind 'qid:' is missing.": not value,
                f"there is a second query id, {shown}.": has_qid,
                f"the query id {quoted(value)} is not UTF-8 text: {SAVE_AS_UTF8}": not is_utf8(value),
                f"the query id {shown} contains a NUL byte.": b"\0" in value,
                f"the line has a query id, {shown}, but the lines before it have none.": with_qid is False,
            }
            facts: dict[str, Any] = {"column": "qid"}
            has_qid = True
        elif not colon or not name.isdigit() or len(name) > 18:
            return InputError(f"{shown} is not 'feature:value' with a whole number as feature id (nor 'qid:id').")
        elif (feature := int(name)) > largest:
            return beyond(f"feature {feature} ({shown})", feature, schema.n_features, schema.first_feature != 0)
        else:
            why = _not_a_value(value, value_limit(schema)) if value else ""
            problems = {
                f"feature id 0 ({shown}), but zero_based=False means that ids start at 1.": feature < least,
                f"feature {feature} has no value ({shown}).": not value,
                f"the value {quoted(value)} of feature {feature} {why}.": bool(why),
                f"feature {feature} is named twice.": feature in ids,
            }
            facts = {"column": feature, "parameter": "zero_based" if feature < least else None}
            ids.add(feature)
        if problem := next((text for text, wrong in problems.items() if wrong), ""):
            return InputError(problem, **facts)
    return InputError("the line has no qid, but the lines before it have one.", column="qid")


def number_of(word: bytes) -> float:
    """The number that Python reads, but without underscores; NaN for other words."""
    try:
        return math.nan if b"_" in word else float(word)
    except ValueError:
        return math.nan


def _not_a_value(word: bytes, limit: float) -> str:
    """Reason why a word is not an accepted number; "" if it is one."""
    value = number_of(word)
    if b"n" in word.lower():
        return "is not finite"
    if math.isnan(value):
        return "is not a number"
    return f"is too large for {'a float64' if math.isinf(value) else 'float32'}" if abs(value) >= limit else ""


def beyond(what: str, feature: int, n_features: int | None, first: int) -> InputError:
    problem = f"{what} is beyond the {n_features} features that are read, with ids from {int(first)} on."
    return InputError(problem, column=feature, parameter="n_features")
