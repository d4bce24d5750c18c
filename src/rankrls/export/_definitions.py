"""Features of a TableEncoder as a search engine computes them."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any

import numpy as np

from rankrls._errors import InputError
from rankrls.export._linear import OFFSET_FEATURE, LinearScorer
from rankrls.preprocessing import EncodedFeature

QUERY_TEXT = "query_text"
"""What the text of the query is called that an engine puts into definitions."""

_NEVER = {
    "element": "a list's numbers are not seen there",
    "similarity": "TF-IDF is computed otherwise there",
    "tfidf": "TF-IDF is computed otherwise there",
}


@dataclass(frozen=True)
class Engine:
    """A search engine whose features are scores of queries, which are never negative.

    Attributes
    ----------
    name : str
    one : object
        The definition of a feature that is always 1.
    conditions : mapping of str to str
        What has to hold in the engine for definitions to mean the same: of all features (""), and of kinds of them.
    refused : callable
        Why a column or a value cannot be named there; empty if it can.
    define : callable
        Definitions of a feature, the rules by its kind: of a number or an age the value itself, or its positive part
        and that of its negative; of a sine or cosine 1 more than it, and 1 where the date is missing.
    """

    name: str
    one: Any
    conditions: Mapping[str, str]
    refused: Callable[[EncodedFeature], str]
    define: Callable[[EncodedFeature], list[Any]]


def for_engine(scorer: LinearScorer, engine: Engine, offset: Any) -> tuple[LinearScorer, Any, list[str]]:
    """The model for an engine without an intercept, its features' definitions if it defines them, and notes."""
    notes, definitions = scorer.notes(), None
    if scorer.encoded:
        kinds = {"": scorer.encoded[-1], **{feature.kind: feature for feature in scorer.encoded}}
        found = [(kinds[kind], text) for kind, text in engine.conditions.items() if kind in kinds]
        notes += [text.format(column=f.column, origin=instant(f.origin)) for f, text in found]
        scorer, definitions = _defined(scorer, engine)
    if offset is not None:
        scorer = scorer.with_offset_feature()
        if definitions is not None:
            definitions.append((OFFSET_FEATURE, engine.one))
    elif scorer.constant != 0.0:
        problem = f"{engine.name}'s linear model has no intercept: its scores are those of predict"
        notes.append(f"{problem} {-scorer.constant:+.6g}, which changes no order.")
    return scorer, definitions, notes


def _defined(scorer: LinearScorer, engine: Engine) -> tuple[LinearScorer, list[tuple[str, Any]]]:
    """The model as a sum over an engine's own features, with the scalers in the weights, and their definitions."""
    why = {f: _NEVER.get(f.kind) or engine.refused(f) for f in scorer.encoded}
    refused = {f.column if f.kind in (*_NEVER, "word") else f.name: (f, text) for f, text in why.items() if text}
    if refused:
        listed = "; ".join(f"{name!r} ({text})" for name, (_, text) in refused.items())
        texts = any(f.kind in ("similarity", "word", "tfidf") for f, _ in refused.values())
        remedy = "Fit with text_features='matches', or leave" if texts else "Rename or leave"
        problem = f"{engine.name} cannot compute what the model needs: {listed}. {remedy} the columns out (ignore)."
        raise InputError(problem, parameter="model", column=next(iter(refused.values()))[0].column)
    weights = scorer.weights / scorer.spreads
    constant = scorer.constant - float(weights @ scorer.centres)
    definitions, factors = [], []
    names = engine_names([feature.name for feature in scorer.encoded])
    for feature, name, weight in zip(scorer.encoded, names, weights.tolist(), strict=True):
        constant -= weight if feature.kind in ("sine", "cosine") else 0.0
        for end, made, sign in zip(("", "_below_0"), engine.define(feature), (1.0, -1.0), strict=False):
            if sign > 0.0 or feature.kind == "age" or feature.least < 0.0:
                definitions.append((name + end, made))
                factors.append(sign * weight)
    zeros = np.zeros(len(factors))
    arrays: Any = {"weights": np.array(factors), "centres": zeros, "spreads": zeros + 1.0}
    return replace(scorer, names=tuple(dict(definitions)), **arrays, constant=constant, encoded=()), definitions


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
    return (datetime(1970, 1, 1) + timedelta(days=days)).isoformat(timespec="milliseconds") + "Z"
