"""Scores rows by a model that rankrls exported as JSON; needs nothing but Python 3.11.

    import json, score
    model = json.load(open("model.json"))
    scores = score.score(model, [{"brand": "Acme", "price": 9.5}, {"brand": None, "price": 12}])

A row is a dict of cells by columns, or a list of numbers. None and NaN are missing cells. Higher scores are better.
"""

import math
import re
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any

Json = dict[str, Any]

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_DATES = ("%Y/%m/%d", "%Y-%m-%d", "%d.%m.%Y")
_TRUTH = {"true": 1.0, "false": 0.0}
_STEPS: dict[str, Callable[..., float]] = {
    "multiply": lambda value, by: value * by,
    "add": lambda value, by: value + by,
    "pow": lambda value, by: value**by,
    "exp": math.exp,
    "tanh": math.tanh,
}
_MEASURES: dict[str, Callable[[Sequence[float], Sequence[float]], float]] = {
    "product": lambda x, z: sum(a * b for a, b in zip(x, z, strict=True)),
    "square": lambda x, z: sum((a - b) ** 2 for a, b in zip(x, z, strict=True)),
    "manhattan": lambda x, z: sum(abs(a - b) for a, b in zip(x, z, strict=True)),
}


def score(model: Json, rows: Iterable[Any]) -> list[float]:
    """The scores of some rows."""
    if (model["format"], model["version"]) != ("rankrls-scorer", 1):
        raise ValueError("This is not a model that this scorer knows.")
    return [_function(model["function"], _scaled(model, features(model, row))) + model["offset"] for row in rows]


def features(model: Json, row: Any) -> list[float]:
    """The features of a row, before they are scaled."""
    if model["encoder"] is not None:
        query = row.get(model["query"])
        parts = [_ENCODERS[spec["kind"]](spec, _cell(model, row[spec["column"]]), query) for spec in model["encoder"]]
        return [value for part in parts for value in part]
    cells = [row[name] for name in model["columns"]] if isinstance(row, dict) else row
    values = [float(cell) for cell in cells]
    if not all(map(math.isfinite, values)):
        raise ValueError(f"Numbers must be finite; got {values}.")
    return values


def _cell(model: Json, value: Any) -> Any:
    """A cell without blanks around it; None if it is missing."""
    if isinstance(value, str):
        value = value.strip()
        return None if value.lower() in model["missing"] else value
    return None if isinstance(value, float) and math.isnan(value) else value


def _scaled(model: Json, x: list[float]) -> list[float]:
    for step in model["scaling"]:
        x = [math.asinh(value) for value in x] if step["logarithm"] else x
        x = [(value - c) / s for value, c, s in zip(x, step["centre"], step["spread"], strict=True)]
    return x


def _function(function: Json, x: list[float]) -> float:
    if "expansions" in function:
        return sum(_expansion(part, x) for part in function["expansions"])
    if "thresholds" not in function:
        return _MEASURES["product"](function["weights"], x)
    stumps = zip(function["features"], function["thresholds"], function["weights"], strict=True)
    return float(sum(weight for j, threshold, weight in stumps if x[j] > threshold))


def _expansion(part: Json, x: list[float]) -> float:
    x = x if part["features"] is None else [x[j] for j in part["features"]]
    total = 0.0
    for item, coefficient in zip(part["items"], part["coefficients"], strict=True):
        value = _MEASURES[part["measure"]](x, item)
        for operation, *numbers in part["steps"]:
            value = _STEPS[operation](value, *numbers)
        total += coefficient * value
    return total


def _number(spec: Json, cell: Any, query: Any) -> list[float]:
    value = _value(spec["fill"] if cell is None else cell)
    if math.isnan(value):
        raise ValueError(f"The cell {cell!r} of column {spec['column']!r} is not a finite number.")
    return [value] + [float(cell is None)] * spec["flag"]


def _value(cell: Any) -> float:
    """A finite number or a truth value as a number; NaN for anything else."""
    try:
        value = float(_TRUTH.get(str(cell).lower(), cell))
    except (TypeError, ValueError):
        return math.nan
    return value if math.isfinite(value) and "_" not in str(cell) else math.nan


def _date(spec: Json, cell: Any, query: Any) -> list[float]:
    age = None if cell is None else spec["origin"] - _days(spec, cell)
    waves = []
    for period in spec["periods"]:
        angle = 2.0 * math.pi / period * (age or 0.0)
        waves += [0.0, 0.0] if age is None else [math.sin(angle), math.cos(angle)]
    return _number(spec, age, query) + waves


def _days(spec: Json, cell: Any) -> float:
    """Days since 1970 of a date, at UTC."""
    for form in (None, *_DATES):
        with suppress(ValueError):
            found = datetime.strptime(cell, form) if form else datetime.fromisoformat(str(cell))
            return ((found if found.tzinfo else found.replace(tzinfo=UTC)) - _EPOCH).total_seconds() / 86_400.0
    raise ValueError(f"The cell {cell!r} of column {spec['column']!r} is not a date.")


def _category(spec: Json, cell: Any, query: Any) -> list[float]:
    wanted: str | float | None = None if cell is None else _spelled(cell)
    if isinstance(wanted, str) and spec["by_value"]:
        wanted = _spelled_value(wanted)
    place = next((place for key, place in spec["places"] if key == wanted), spec["others"])
    return [float(place == k) for k in range(spec["width"])]


def _spelled(cell: Any) -> str:
    """A cell as a text: whole numbers without a point, truth values in lower case."""
    if isinstance(cell, bool):
        return "true" if cell else "false"
    return str(int(cell)) if isinstance(cell, float) and cell.is_integer() and abs(cell) < 2.0**64 else str(cell)


def _spelled_value(word: str) -> float:
    """The value of a number as it would be written, or of a truth value; NaN for other texts."""
    value = _value(word)
    return value if word.lower() in _TRUTH or word in (_spelled(value), repr(value)) else math.nan


def _text(spec: Json, cell: Any, query: Any) -> list[float]:
    words = _words(cell)
    asked = _words(query)
    return [value for part in spec["texts"] for value in _text_part(part, words, asked)]


def _words(text: Any) -> list[str]:
    return re.findall(r"\w+", ("" if text is None else str(text)).lower())


def _text_part(part: Json, words: list[str], asked: list[str]) -> list[float]:
    match part["kind"]:
        case "matches":
            return [float(len({*words} & {*asked}))]
        case "word":
            return [float(word in words) for word in part["words"]]
        case "tfidf":
            return _weights(part, words)
    return [_MEASURES["product"](_weights(part, words), _weights(part, asked))]


def _weights(part: Json, words: list[str]) -> list[float]:
    counts = [words.count(word) * idf for word, idf in zip(part["words"], part["idf"], strict=True)]
    norm = math.hypot(*counts)
    return [count / norm for count in counts] if norm else counts


_ENCODERS: dict[str, Callable[[Json, Any, Any], list[float]]] = {
    "number": _number,
    "date": _date,
    "category": _category,
    "text": _text,
}
