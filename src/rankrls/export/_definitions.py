"""A linear model over the features of a search engine: their names, definitions, and the fields that they read."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, NamedTuple

import numpy as np

from rankrls._errors import InputError
from rankrls.export._linear import LinearModel, Term, json_text, refuse
from rankrls.models.parameters import number
from rankrls.preprocessing import EncodedFeature, TableEncoder
from rankrls.preprocessing._encodings import Categories, Encoding, Numbers

OFFSET_FEATURE = "rankrls_offset"
QUERY_TEXT = "query_text"
"""The parameter of the definitions that takes the text of the query."""
MS_PER_DAY = 86_400_000
LETTER = r"[\p{L}\p{N}_]"
"""What words consist of, as TableEncoder finds them, in Java's regular expressions."""
WORDS = "rankrls_words"
"""The name of the analysis that finds these words."""
EVERY_FIELD = (
    "Each field must have the name of its column, and one value. fields.json defines all of them. Index an empty cell "
    "as no field."
)
ONE_NAME = "Names of models cannot be used twice: give every new model a new one, such as shop_v2."
_NUMBER = re.compile(r"-?(0|[1-9]\d{0,14})(\.\d+)?")


class Row(NamedTuple):
    """A feature of the engine and its part of the score, ``weight (x - centre) / spread``."""

    name: str
    weight: float
    centre: float = 0.0
    spread: float = 1.0


@dataclass(frozen=True)
class Engine:
    """A search engine, whose features are scores of queries.

    Attributes
    ----------
    name : str
    one : mapping
        The definition of a feature that is always 1, but for its name.
    conditions : mapping of str to str
        What has to hold in the engine for definitions to mean the same: of all features (""), and of kinds of them.
    refused : callable
        Why a column or a value cannot be named there; empty if it can.
    define : callable
        Definitions of a feature, the rules by its kind: the value itself; or, where scores cannot be negative, its
        positive part and that of its negative, and of a sine or cosine 1 more than it.
    fields : callable
        The text of ``fields.json`` for what each column holds: "number", "date", "category", "boolean" or "words".
    """

    name: str
    one: Mapping[str, Any]
    conditions: Mapping[str, str]
    refused: Callable[[EncodedFeature], str]
    define: Callable[[EncodedFeature], list[dict[str, Any]]]
    fields: Callable[[Mapping[str, str]], dict[str, Any]]


@dataclass(frozen=True)
class EngineModel:
    """A linear model over an engine's features; definitions are None if they are the user's own."""

    rows: list[Row]
    definitions: list[dict[str, Any]] | None
    fields: dict[str, Any]
    notes: list[str]


def engine_model(linear: LinearModel, engine: Engine, offset: float | None) -> EngineModel:
    """A linear model over an engine's features, with an offset as the weight of a feature that is always 1."""
    number(none=True)("offset", offset)
    notes = linear.notes(offset)
    definitions = None
    fields: dict[str, Any] = {}
    if linear.encoder is None:
        rows = [Row(term.feature.name, term.weight, term.centre, term.spread) for term in linear.terms]
    else:
        refuse(engine.name, ((term.feature, engine.refused(term.feature)) for term in linear.terms))
        rows, definitions = _defined(linear.terms, engine)
        notes += conditions(linear.terms, engine.conditions)
        fields = engine.fields(uses(linear.encoder, (term.feature for term in linear.terms)))
    if offset is not None:
        if any(row.name == OFFSET_FEATURE for row in rows):
            problem = f"A feature is called {OFFSET_FEATURE!r}, which is the name of the offset."
            raise InputError(problem, parameter="feature_names", column=OFFSET_FEATURE)
        rows.append(Row(OFFSET_FEATURE, offset + linear.constant))
        one = {"name": OFFSET_FEATURE, **engine.one}
        if definitions is None:
            notes.append(f"Define {OFFSET_FEATURE} in the engine: {json.dumps(one)}.")
        else:
            definitions.append(one)
    elif linear.constant != 0.0:
        problem = f"{engine.name}'s linear model has no intercept: its scores are lower by {linear.constant:.6g}"
        notes.append(f"{problem}. The ranking is the same.")
    check_float32(rows)
    return EngineModel(rows, definitions, fields, notes)


def further_files(definitions: Any, made: EngineModel) -> dict[str, str]:
    """The definitions of features and the fields of the index, if a model has them."""
    if definitions is None:
        return {}
    return {"features.json": json_text(definitions), "fields.json": json_text(made.fields)}


def check_float32(rows: Sequence[Row]) -> None:
    """Refuse numbers that are infinite, or spreads that are 0, in float32."""
    with np.errstate(over="ignore", under="ignore"):
        numbers = np.array([row[1:] for row in rows]).astype(np.float32)
    for row, values in zip(rows, numbers, strict=True):
        if not np.isfinite(values).all() or values[2] == 0.0:
            problem = f"The feature {row.name!r} has the weight {row.weight:.3g}, centre {row.centre:.3g} and spread "
            remedy = "which the engine's float32 cannot hold. Scale the column before the fit, or leave it out."
            raise InputError(f"{problem}{row.spread:.3g}, {remedy}", parameter="model", column=row.name)


def uses(encoder: TableEncoder | None, features: Iterable[EncodedFeature]) -> dict[str, str]:
    """What the fields of some features hold: "number", "date", "category", "boolean" or "words"."""
    encodings = [] if encoder is None else encoder.encodings_
    columns = {feature.column for feature in features}
    return {encoding.column: _use(encoding) for encoding in encodings if encoding.column in columns}


def _use(encoding: Encoding) -> str:
    """What a column holds; categories that are all numbers or truth values are such."""
    if isinstance(encoding, Numbers):
        return encoding.kind
    if not isinstance(encoding, Categories):
        return "words"
    words = [word for word in (*encoding.known, *encoding.rare) if word is not None]
    if all(word in ("true", "false") for word in words):
        return "boolean"
    return "number" if all(map(_NUMBER.fullmatch, words)) else "category"


def conditions(terms: Sequence[Term], texts: Mapping[str, str]) -> list[str]:
    """Those of an engine's conditions that concern the features of some terms."""
    kinds = {"": terms[-1].feature, **{term.feature.kind: term.feature for term in terms}}
    found = [(kinds[kind], text) for kind, text in texts.items() if kind in kinds]
    return [text.format(column=feature.column, origin=instant(feature.origin)) for feature, text in found]


def _defined(terms: Sequence[Term], engine: Engine) -> tuple[list[Row], list[dict[str, Any]]]:
    """The sum over an engine's own features, and their definitions."""
    made = [engine.define(term.feature) for term in terms]
    ends = ("", "_below_0")
    wanted = [term.feature.name + end for term, bodies in zip(terms, made, strict=True) for end in ends[: len(bodies)]]
    names = iter(_engine_names(wanted))
    rows = list[Row]()
    definitions = list[dict[str, Any]]()
    for term, bodies in zip(terms, made, strict=True):
        centre = term.centre + (term.feature.kind in ("sine", "cosine"))
        parts = [Row("", term.weight, centre, term.spread), Row("", -term.weight, 0.0, term.spread)]
        for part, body in zip(parts, bodies, strict=False):
            name = next(names)
            rows.append(part._replace(name=name))
            definitions.append({"name": name, **body})
    return rows, definitions


def _engine_names(wanted: Sequence[str]) -> list[str]:
    """Unique names of letters, digits and underscores, close to the wanted ones."""
    taken = {OFFSET_FEATURE}
    out = list[str]()
    for text in wanted:
        plain = re.sub(r"[^A-Za-z0-9]+", "_", text).strip("_") or "feature"
        plain = f"f_{plain}" if plain[0].isdigit() else plain
        name = next(name for name in (plain, *(f"{plain}_{k}" for k in range(2, len(out) + 3))) if name not in taken)
        taken.add(name)
        out.append(name)
    return out


def instant(days: float) -> str:
    """A day, counted from 1970, as ISO 8601 in UTC."""
    return (datetime(1970, 1, 1) + timedelta(days=days)).isoformat(timespec="milliseconds") + "Z"
