"""A linear model over the features of a search engine: their names, definitions, and the fields that they read."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from itertools import chain, count
from typing import Any

from rankrls.export._linear import Exported, Term, json_text, linear_model, refuse
from rankrls.preprocessing import EncodedFeature, TableEncoder
from rankrls.preprocessing._table_encoder import Categories, Encoding, Numbers

OFFSET_FEATURE = "rankrls_offset"
QUERY_TEXT = "query_text"
"""Parameter of the definitions that contains the text of the query."""
MS_PER_DAY = 86_400_000
LETTER = r"[\p{L}\p{N}_]"
"""A letter of a word, as TableEncoder splits texts, in Java's regular expressions."""
WORDS = "rankrls_words"
"""Name of the analyzer that splits texts into these words."""
EVERY_FIELD = (
    "Each field must have the name of its column, and one value. fields.json defines all of them. Index an empty cell "
    "as no field."
)
ONE_NAME = "Names of models cannot be used twice: give every new model a new one, such as shop_v2."
_NUMBER = re.compile(r"-?(0|[1-9]\d{0,14})(\.\d+)?")


@dataclass(frozen=True)
class Engine:
    """A search engine, whose features are scores of queries.

    Attributes
    ----------
    name : str
    one : mapping
        Definition of a feature that is always 1, without its name.
    conditions : mapping of str to str
        Conditions under which definitions mean the same in the engine: for all features (""), and for kinds of them.
    refused : callable
        Reason why the engine cannot name a column or a value; empty if it can.
    define : callable
        Definitions of a feature, the rules by its kind: the value itself; or, if scores cannot be negative, its
        positive part and that of its negative, and for a sine or cosine, the value plus 1.
    fields : callable
        Content of ``fields.json`` for columns of "number", "date", "category", "boolean" or "words".
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

    terms: list[Term]
    factor: float
    definitions: list[dict[str, Any]] | None
    fields: dict[str, Any]
    notes: list[str]

    def exported(self, model: Any, definitions: Any, notes: Sequence[str]) -> Exported:
        """The model, the definitions of features in the engine's format, and the fields of the index."""
        files = {}
        if definitions is not None:
            files = {"features.json": json_text(definitions), "fields.json": json_text(self.fields)}
        return Exported(json_text(model), (*notes, ONE_NAME), self.factor, files)


def engine_model(
    model: Any,
    engine: Engine,
    feature_names: Sequence[str] | None,
    offset: float | None,
    target: int | None,
) -> EngineModel:
    """A linear model over an engine's features, with an offset as the weight of a feature that is always 1."""
    linear = linear_model(model, feature_names, target)
    notes = linear.notes(offset)
    terms = linear.terms
    definitions = None
    fields: dict[str, Any] = {}
    if linear.encoder is not None:
        refuse(engine.name, ((term.feature, engine.refused(term.feature)) for term in linear.terms))
        terms, definitions = _defined(linear.terms, engine)
        notes += conditions(linear.terms, engine.conditions)
        fields = engine.fields(uses(linear.encoder, (term.feature for term in linear.terms)))
    if offset is not None:
        always_one = EncodedFeature(OFFSET_FEATURE, "number")
        terms = [*terms, Term(OFFSET_FEATURE, always_one, offset + linear.constant)]
        one = {"name": OFFSET_FEATURE, **engine.one}
        if definitions is None:
            notes.append(f"Define {OFFSET_FEATURE} in the engine: {json.dumps(one)}.")
        else:
            definitions.append(one)
    elif linear.constant != 0.0:
        problem = f"{engine.name}'s linear model has no intercept: its scores are lower by {linear.constant:.6g}"
        notes.append(f"{problem}. The ranking is the same.")
    return EngineModel(terms, linear.factor, definitions, fields, notes)


def uses(encoder: TableEncoder | None, features: Iterable[EncodedFeature]) -> dict[str, str]:
    """Contents of the fields of some features: "number", "date", "category", "boolean" or "words"."""
    encodings = [] if encoder is None else encoder.encodings_
    columns = {feature.column for feature in features}
    return {encoding.column: _use(encoding) for encoding in encodings if encoding.column in columns}


def _use(encoding: Encoding) -> str:
    """Contents of a column; categories that are all numbers, or all truth values, count as such."""
    if isinstance(encoding, Numbers):
        return encoding.kind
    if not isinstance(encoding, Categories):
        return "words"
    words = [word for word in (*encoding.known, *encoding.rare) if word is not None]
    if all(word in ("true", "false") for word in words):
        return "boolean"
    return "number" if all(map(_NUMBER.fullmatch, words)) else "category"


def conditions(terms: Sequence[Term], texts: Mapping[str, str]) -> list[str]:
    """Conditions of an engine that apply to the features of some terms."""
    kinds = {"": terms[-1].feature, **{term.feature.kind: term.feature for term in terms}}
    found = [(kinds[kind], text) for kind, text in texts.items() if kind in kinds]
    return [text.format(column=feature.column, origin=instant(feature.origin)) for feature, text in found]


def _defined(terms: Sequence[Term], engine: Engine) -> tuple[list[Term], list[dict[str, Any]]]:
    """The sum over an engine's own features, and their definitions."""
    parts = list[Term]()
    definitions = list[dict[str, Any]]()
    for term in terms:
        bodies = engine.define(term.feature)
        above = replace(term, centre=term.centre + (term.feature.kind in ("sine", "cosine")))
        below = replace(term, name=f"{term.name}_below_0", weight=-term.weight, centre=0.0)
        parts += [above, below][: len(bodies)]
        definitions += bodies
    names = _engine_names(part.name for part in parts)
    parts = [replace(part, name=name) for part, name in zip(parts, names, strict=True)]
    return parts, [{"name": name, **body} for name, body in zip(names, definitions, strict=True)]


def _engine_names(wanted: Iterable[str]) -> list[str]:
    """Unique names of letters, digits and underscores, close to the wanted ones."""
    taken = [OFFSET_FEATURE]
    for text in wanted:
        plain = re.sub(r"[^A-Za-z0-9]+", "_", text).strip("_") or "feature"
        plain = f"f_{plain}" if plain[0].isdigit() else plain
        numbered = (f"{plain}_{k}" for k in count(2))
        taken.append(next(name for name in chain([plain], numbered) if name not in taken))
    return taken[1:]


def instant(days: float) -> str:
    """A day, counted from 1970, as ISO 8601 in UTC."""
    return (datetime(1970, 1, 1) + timedelta(days=days)).isoformat(timespec="milliseconds") + "Z"
