"""Features of a TableEncoder as a search engine computes them: one table of rules for engines of one form."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any, ClassVar, Protocol

import numpy as np

from rankrls._errors import InputError
from rankrls.export._linear import OFFSET_FEATURE, LinearScorer
from rankrls.preprocessing import EncodedFeature

QUERY_TEXT = "query_text"
"""What the text of the query is called that an engine puts into definitions."""

AGES = "Ages count from {origin}, not from today: this changes no order."

_EPOCH = datetime(1970, 1, 1)


class Engine(Protocol):
    """A search engine whose features are scores of queries, which are never negative."""

    name: str
    one: Any
    """A feature that is always 1."""
    conditions: ClassVar[Mapping[str, str]]
    """What has to hold in the engine for definitions to mean the same: of all features (""), and of kinds of them."""

    def refused(self, feature: EncodedFeature) -> str:
        """Why a column or a value cannot be named there; empty if it can."""
        ...

    def field(self, feature: EncodedFeature) -> Any:
        """The number of a field as it is, if the engine can give it without a function; else None."""
        ...

    def positive(self, feature: EncodedFeature, sign: int) -> Any:
        """The positive part of a number or an age, or of its negative."""
        ...

    def wave(self, feature: EncodedFeature) -> Any:
        """1 + sine or cosine of a date in its period; 1 where it is missing."""
        ...

    def absent(self, feature: EncodedFeature) -> Any:
        """1 where the field is missing."""
        ...

    def term(self, feature: EncodedFeature) -> Any:
        """1 where the field has the value."""
        ...

    def matches(self, feature: EncodedFeature) -> Any:
        """How many words of the query the field has."""
        ...


def _parts(engine: Engine, feature: EncodedFeature) -> list[tuple[str, Any, float]]:
    """The engine's features that add up to an encoded one, each with the end of its name and its factor."""
    if feature.kind in ("number", "age"):
        own = engine.field(feature) if feature.kind == "number" else None
        parts = [("", engine.positive(feature, 1) if own is None else own, 1.0)]
        if own is None and (feature.kind == "age" or feature.least < 0.0):
            parts.append(("_below_0", engine.positive(feature, -1), -1.0))
        return parts
    make = {
        "sine": engine.wave,
        "cosine": engine.wave,
        "missing": engine.absent,
        "none": engine.absent,
        "category": engine.term,
        "word": engine.term,
        "matches": engine.matches,
    }[feature.kind]
    return [("", make(feature), 1.0)]


_NEVER = {
    "element": "a list's numbers are not seen there",
    "similarity": "TF-IDF is computed otherwise there",
    "tfidf": "TF-IDF is computed otherwise there",
}


def defined(scorer: LinearScorer, engine: Engine) -> tuple[LinearScorer, list[tuple[str, Any]]]:
    """The model as a sum over an engine's own features, and their definitions by name.

    Raises
    ------
    InputError
        One for all features that the engine cannot compute.
    """
    why = {f: _NEVER.get(f.kind) or engine.refused(f) for f in scorer.encoded}
    refused = {f.column if f.kind in (*_NEVER, "word") else f.name: (f, text) for f, text in why.items() if text}
    if refused:
        listed = "; ".join(f"{name!r} ({text})" for name, (_, text) in refused.items())
        texts = any(f.kind in ("similarity", "word", "tfidf") for f, _ in refused.values())
        remedy = "Fit with text_features='matches', or leave" if texts else "Rename or leave"
        problem = f"{engine.name} cannot compute what the model needs: {listed}. {remedy} the columns out (ignore)."
        raise InputError(problem, parameter="model", column=next(iter(refused.values()))[0].column)
    names = engine_names([feature.name for feature in scorer.encoded])
    parts = [_parts(engine, feature) for feature in scorer.encoded]
    counts = [len(some) for some in parts]
    shifts = np.array([-1.0 if f.kind in ("sine", "cosine") else 0.0 for f in scorer.encoded])
    whole = (np.array(counts) < 2) & (shifts == 0.0)  # a sum of several takes its scale into the weights
    weights = np.where(whole, scorer.weights, scorer.weights / scorer.spreads)
    flat = [(name + end, made, factor) for name, some in zip(names, parts, strict=True) for end, made, factor in some]
    out = replace(
        scorer,
        names=tuple(name for name, _, _ in flat),
        weights=np.repeat(weights, counts) * [factor for _, _, factor in flat],
        centres=np.repeat(np.where(whole, scorer.centres, 0.0), counts),
        spreads=np.repeat(np.where(whole, scorer.spreads, 1.0), counts),
        constant=scorer.constant + float(np.where(whole, 0.0, weights) @ (shifts - scorer.centres)),
        encoded=(),
    )
    return out, [(name, made) for name, made, _ in flat]


def for_engine(scorer: LinearScorer, engine: Engine, offset: Any) -> tuple[LinearScorer, Any, list[str]]:
    """The model for an engine without an intercept, its features' definitions if it defines them, and notes."""
    notes, definitions = scorer.notes(), None
    if scorer.encoded:
        kinds = {"": scorer.encoded[-1], **{feature.kind: feature for feature in scorer.encoded}}
        found = [(kinds[kind], text) for kind, text in engine.conditions.items() if kind in kinds]
        notes += dict.fromkeys(text.format(column=f.column, origin=instant(f.origin)) for f, text in found)
        scorer, definitions = defined(scorer, engine)
    if offset is not None:
        scorer = scorer.with_offset_feature()
        if definitions is not None:
            definitions.append((OFFSET_FEATURE, engine.one))
    elif scorer.constant != 0.0:
        problem = f"{engine.name}'s linear model has no intercept: its scores are those of predict"
        notes.append(f"{problem} {-scorer.constant:+.6g}, which changes no order.")
    return scorer, definitions, notes


def engine_names(names: Sequence[str]) -> list[str]:
    """Names of letters, digits and underscores, all different, that still tell what they name."""
    out: list[str] = []
    for name in names:
        plain = re.sub(r"[^A-Za-z0-9]+", "_", name).strip("_") or "feature"
        plain = plain if not plain[0].isdigit() else f"f_{plain}"
        tried, number = plain, 1
        while tried in out:
            number += 1
            tried = f"{plain}_{number}"
        out.append(tried)
    return out


def instant(days: float) -> str:
    """A day, counted from 1970, as ISO 8601 in UTC."""
    return (_EPOCH + timedelta(days=days)).isoformat(timespec="milliseconds") + "Z"
