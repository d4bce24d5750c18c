"""Lines of LETOR text: accepted ids and values, and descriptions of bad lines."""

from __future__ import annotations

import math

import numpy as np

from rankrls._errors import InputError
from rankrls.io._text import LARGEST_SINGLE, is_utf8, quoted
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
    if not math.isfinite(number_of(label)):
        return InputError(f"a line begins with the label, a finite number; got {quoted(label)}.", column="label")
    has_qid = False
    ids = set[int]()
    for token in tokens:
        name, colon, value = token.partition(b":")
        if name == b"qid" and colon:
            if has_qid or not value or b"\0" in value or not is_utf8(value):
                problem = f"{quoted(token)} is not a query id: a line has one, in UTF-8 and without NUL bytes."
                return InputError(problem, column="qid")
            has_qid = True
        elif not colon or not name.isdigit() or len(name) > 18:
            problem = f"{quoted(token)} is not 'feature:value' with a whole number as feature id (nor 'qid:id')."
            return InputError(problem)
        else:
            feature = int(name)
            least, largest = ids_taken(schema)
            if not least <= feature <= largest:
                return out_of_range(feature, schema)
            if not abs(number_of(value)) < value_limit(schema):
                problem = f"the value {quoted(value)} of feature {feature} is not a finite number ({schema.dtype})."
                return InputError(problem, column=feature)
            if feature in ids:
                return InputError(f"feature {feature} is named twice.", column=feature)
            ids.add(feature)
    has = "no" if with_qid else "a"
    return InputError(f"the line has {has} query id, unlike the lines before it.", column="qid")


def number_of(word: bytes) -> float:
    """The number that Python reads, but without underscores; NaN for other words."""
    try:
        return math.nan if b"_" in word else float(word)
    except ValueError:
        return math.nan


def out_of_range(feature: int, schema: Schema) -> InputError:
    """Error about a feature that is not among those that are read."""
    least, largest = ids_taken(schema)
    problem = f"feature {feature} is not among those that are read, from {least} to {largest}."
    return InputError(problem, column=feature, parameter="n_features" if feature > largest else "zero_based")
