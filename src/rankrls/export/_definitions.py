"""Encoded features as an engine defines them: what each is made of there, and the weights that go with it."""

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

AGES = "Ages count from {origin}, not from today: this changes no order."

_EPOCH = datetime(1970, 1, 1)


@dataclass(frozen=True)
class Part:
    """A feature of the engine: an encoded feature is a sum of these, each times its factor."""

    definition: Any
    factor: float = 1.0
    suffix: str = ""


@dataclass(frozen=True)
class Defined:
    """An encoded feature in an engine's terms: ``shift + sum of factor * part``."""

    parts: Sequence[Part]
    shift: float = 0.0


def split_by_sign(value: Callable[[str], Any], feature: EncodedFeature, expression: str, negated: str) -> Defined:
    """A number as its positive and its negative part, for engines whose scores are never negative."""
    if feature.least >= 0.0 and feature.kind == "number":
        return Defined([Part(value(expression))])
    return Defined([Part(value(expression)), Part(value(negated), -1.0, "_below_0")])


def defined(
    scorer: LinearScorer, engine: str, define: Callable[[EncodedFeature], Defined | str]
) -> tuple[LinearScorer, list[tuple[str, Any]]]:
    """The model as a sum over an engine's own features, and their definitions by name.

    Parameters
    ----------
    scorer : LinearScorer
        Over encoded features.
    engine : str
        What it is called, for errors.
    define : callable
        An encoded feature in the engine's terms, or why it has none.

    Raises
    ------
    InputError
        One for all features that the engine cannot compute.
    """
    named = zip(engine_names([feature.name for feature in scorer.encoded]), scorer.encoded, strict=True)
    found = [(name, feature, define(feature)) for name, feature in named]
    refused = [(feature, made) for _, feature, made in found if isinstance(made, str)]
    if refused:
        cannot = {f.column if f.kind in ("word", "tfidf", "element") else f.name: why for f, why in reversed(refused)}
        of_texts = [f.kind in ("similarity", "word", "tfidf") for f, _ in refused]
        remedies = ["Fit with {text_features=matches}, or leave the columns of texts out ({ignore})."] * any(of_texts)
        if not all(of_texts):
            which = "other columns" if any(of_texts) else "columns"
            remedies.append(f"Rename the {which} and fit again, or leave them out ({{ignore}}).")
        raise InputError(
            "{0} cannot compute what the model needs: {1}.",
            engine,
            "; ".join(f"{name!r} ({why})" for name, why in reversed(cannot.items())),
            remedy=" ".join(remedies),
            parameter="model",
            column=refused[0][0].column,
        )
    sums = [(name, made) for name, _, made in found if isinstance(made, Defined)]
    parts = [(name + part.suffix, part) for name, made in sums for part in made.parts]
    counts, shifts = [len(made.parts) for _, made in sums], np.array([made.shift for _, made in sums])
    whole = (np.array(counts) < 2) & (shifts == 0.0)  # a sum of several takes its scale into the weights
    weights = np.where(whole, scorer.weights, scorer.weights / scorer.spreads)
    out = replace(
        scorer,
        names=tuple(name for name, _ in parts),
        weights=np.repeat(weights, counts) * [part.factor for _, part in parts],
        centres=np.repeat(np.where(whole, scorer.centres, 0.0), counts),
        spreads=np.repeat(np.where(whole, scorer.spreads, 1.0), counts),
        constant=scorer.constant + float(np.where(whole, 0.0, weights) @ (shifts - scorer.centres)),
        encoded=(),
    )
    out.in_single_precision()
    return out, [(name, part.definition) for name, part in parts]


def with_offset(
    scorer: LinearScorer, engine: str, define: Callable[[EncodedFeature], Defined | str], offset: Any, one: Any
) -> tuple[LinearScorer, list[tuple[str, Any]] | None]:
    """The model for an engine without an intercept, and the definitions of its features, if it defines them.

    ``one`` defines the feature that is always 1, whose weight is the constant if there is an offset.
    """
    definitions = None
    if scorer.encoded:
        scorer, definitions = defined(scorer, engine, define)
    if offset is not None:
        scorer = scorer.with_offset_feature()
        if definitions is not None:
            definitions.append((OFFSET_FEATURE, one))
    return scorer, definitions


def conditions(encoded: Sequence[EncodedFeature], said: Mapping[str, str]) -> list[str]:
    """What has to hold in the engine for definitions to mean the same: of all features (""), and of kinds of them."""
    kinds = {"": encoded[-1], **{feature.kind: feature for feature in encoded}} if encoded else {}
    found = [(kinds[kind], text) for kind, text in said.items() if kind in kinds]
    return [*dict.fromkeys(text.format(column=f.column, origin=instant(f.origin)) for f, text in found)]


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
