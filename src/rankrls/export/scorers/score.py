"""Scores rows by a model that rankrls exported as JSON; needs nothing but Python 3.11.

    import json, score
    model = json.load(open("model.json"))
    scores = score.Scorer(model).score([{"brand": "Acme", "price": 9.5}, {"brand": None, "price": 12}])

A row is a dict of cells by columns, or a list of numbers. None and NaN are missing cells. Higher scores are better.
"""

import math
import re
from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from typing import Any

Json = dict[str, Any]
Encoder = Callable[[Any, Any], list[float]]
"""From a cell and the text of the query to features."""

_EPOCH = datetime(1970, 1, 1)
_STEPS: dict[str, Callable[..., float]] = {
    "multiply": lambda value, by: value * by,
    "add": lambda value, by: value + by,
    "pow": lambda value, by: value**by,
    "exp": math.exp,
    "tanh": math.tanh,
}
_MEASURES: dict[str, Callable[[list[float], list[float]], float]] = {
    "product": lambda x, z: sum(a * b for a, b in zip(x, z, strict=True)),
    "square": lambda x, z: sum((a - b) ** 2 for a, b in zip(x, z, strict=True)),
    "manhattan": lambda x, z: sum(abs(a - b) for a, b in zip(x, z, strict=True)),
}


def score(model: Json, rows: Iterable[Any]) -> list[float]:
    """The scores of some rows."""
    return Scorer(model).score(rows)


class Scorer:
    """A model that is ready to score."""

    def __init__(self, model: Json) -> None:
        if (model["format"], model["version"]) != ("rankrls-scorer", 1):
            raise ValueError("This is not a model that this scorer knows.")
        self.model = model
        self.columns = [self._column(spec) for spec in model["encoder"] or ()]

    def score(self, rows: Iterable[Any]) -> list[float]:
        """The scores of some rows."""
        return [self._function(self._scaled(self.features(row))) + self.model["offset"] for row in rows]

    def features(self, row: Any) -> list[float]:
        """The features of a row, before they are scaled."""
        if self.model["encoder"] is not None:
            query = row.get(self.model["query"])
            return [v for name, encode in self.columns for v in encode(self._cell(row[name]), query)]
        names = self.model["columns"]
        cells = [row[name] for name in names] if isinstance(row, dict) else row
        values = [float(cell) for cell in cells]
        if not all(map(math.isfinite, values)):
            raise ValueError(f"Numbers must be finite; got {values}.")
        return values

    def _scaled(self, x: list[float]) -> list[float]:
        for step in self.model["scaling"]:
            x = [math.asinh(value) for value in x] if step["logarithm"] else x
            x = [(value - c) / s for value, c, s in zip(x, step["centre"], step["spread"], strict=True)]
        return x

    def _function(self, x: list[float]) -> float:
        function = self.model["function"]
        if "expansions" in function:
            return sum(_expansion(part, x) for part in function["expansions"])
        if "thresholds" not in function:
            return float(sum(weight * value for weight, value in zip(function["weights"], x, strict=True)))
        stumps = zip(function["features"], function["thresholds"], function["weights"], strict=True)
        return float(sum(weight for j, threshold, weight in stumps if x[j] > threshold))

    def _cell(self, value: Any) -> Any:
        """A cell without blanks around it; None if it is missing."""
        if isinstance(value, str):
            value = value.strip()
            return None if value.lower() in self.model["missing"] else value
        return None if isinstance(value, float) and math.isnan(value) else value

    def _column(self, spec: Json) -> tuple[str, Encoder]:
        """A column's name and the function from its cell to its features."""
        kinds = {"number": _number, "date": _date, "category": _category, "text": _text}
        return spec["column"], kinds[spec["kind"]](spec)


def _expansion(part: Json, x: list[float]) -> float:
    x = x if part["features"] is None else [x[j] for j in part["features"]]
    total = 0.0
    for item, coefficient in zip(part["items"], part["coefficients"], strict=True):
        value = _MEASURES[part["measure"]](x, item)
        for operation, *numbers in part["steps"]:
            value = _STEPS[operation](value, *numbers)
        total += coefficient * value
    return total


def _number(spec: Json) -> Encoder:
    def encode(cell: Any, query: Any) -> list[float]:
        value = spec["fill"] if cell is None else _finite(cell, spec)
        if value is None:
            raise ValueError(f"Column {spec['column']!r} has no value.")
        return [value] + [float(cell is None)] * spec["flag"]

    return encode


def _finite(cell: Any, spec: Json) -> float:
    found = _value(cell.lower() if isinstance(cell, str) else cell)
    if found is None:
        raise ValueError(f"The cell {cell!r} of column {spec['column']!r} is not a finite number.")
    return found


def _value(cell: Any) -> float | None:
    """A number or a truth value as a number; None for anything else."""
    try:
        value = float({"true": 1.0, "false": 0.0}.get(cell, cell))
    except (TypeError, ValueError):
        return None
    return value if math.isfinite(value) and "_" not in str(cell) else None


def _date(spec: Json) -> Encoder:
    number = _number(spec)

    def encode(cell: Any, query: Any) -> list[float]:
        age = None if cell is None else spec["origin"] - _days(cell, spec)
        waves = []
        for period in spec["periods"]:
            angle = 2.0 * math.pi / period * (age or 0.0)
            waves += [0.0, 0.0] if age is None else [math.sin(angle), math.cos(angle)]
        return number(age, query) + waves

    return encode


def _days(cell: Any, spec: Json) -> float:
    """Days since 1970 of a date, at UTC."""
    text = str(cell)
    slashed = re.fullmatch(r"(\d{4})[-/](\d{1,2})[-/](\d{1,2})", text)
    dotted = re.fullmatch(r"(\d{1,2})\.(\d{1,2})\.(\d{4})", text)
    parts = slashed.groups() if slashed else dotted.groups()[::-1] if dotted else None
    try:
        if parts:
            year, month, day = map(int, parts)
            found = datetime(year, month, day)
        else:
            found = datetime.fromisoformat(text)
    except ValueError:
        raise ValueError(f"The cell {cell!r} of column {spec['column']!r} is not a date.") from None
    found = found.astimezone(UTC).replace(tzinfo=None) if found.tzinfo else found
    return (found - _EPOCH).total_seconds() / 86_400.0


def _category(spec: Json) -> Encoder:
    known = spec["known"]
    others = len(known)
    places = {word: place for place, word in enumerate(known)} | dict.fromkeys(spec["rare"], others)
    words = [word for word in places if word is not None]
    values = {_spelled_value(word): places[word] for word in words}
    if None in values or len(values) < len(words):  # not all are numbers, or two have one value
        values = {}

    def encode(cell: Any, query: Any) -> list[float]:
        word = None if cell is None else _spelled(cell)
        place = places.get(word, others if word is None else values.get(_spelled_value(word), others))
        return [float(place == k) for k in range(others + bool(spec["rare"]))]

    return encode


def _spelled(cell: Any) -> str:
    """A cell as a text: whole numbers without a point, truth values in lower case."""
    if isinstance(cell, bool):
        return "true" if cell else "false"
    return str(int(cell)) if isinstance(cell, float) and cell.is_integer() and abs(cell) < 2.0**64 else str(cell)


def _spelled_value(word: str) -> float | None:
    """The value of a number as it would be written, or of a truth value; None of other texts."""
    if word.lower() in ("true", "false"):
        return _value(word.lower())
    value = _value(word)
    return value if value is not None and word in (_spelled(value), repr(value)) else None


def _text(spec: Json) -> Encoder:
    parts = [_text_part(part) for part in spec["texts"]]
    return lambda cell, query: [value for part in parts for value in part(_words(cell), _words(query))]


def _words(text: Any) -> list[str]:
    return re.findall(r"\w+", ("" if text is None else str(text)).lower())


def _text_part(part: Json) -> Callable[[list[str], list[str]], list[float]]:
    if part["kind"] == "matches":
        return lambda words, query: [float(len({*words} & {*query}))]
    if part["kind"] == "word":
        return lambda words, query: [float(word in words) for word in part["words"]]
    frequencies = dict(zip(part["words"], part["idf"], strict=True))

    def weights(words: list[str]) -> list[float]:
        counts = [words.count(word) * idf for word, idf in frequencies.items()] if words else [0.0] * len(frequencies)
        norm = math.hypot(*counts)
        return [count / norm for count in counts] if norm else counts

    if part["kind"] == "tfidf":
        return lambda words, query: weights(words)
    return lambda words, query: [sum(a * b for a, b in zip(weights(words), weights(query), strict=True))]
