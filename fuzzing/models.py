"""Model files: flipped, cut, and rebuilt with hostile trees.

A changed file is refused with one InputError, or it is a model that predicts finite numbers, can be saved again and
then predicts the same.
"""

from __future__ import annotations

import copy
import json
import tempfile
import warnings
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.random import Generator
from scipy import sparse
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import RobustScaler, StandardScaler

from fuzzing.campaign import Refused, Target, Wrong
from fuzzing.cases import chance, choice, damaged, packed, text, unpacked
from fuzzing.model_files import DOCUMENT, Changed, archived, npy, paths_of
from rankrls import (
    AutoRankRLS,
    CoRankRLS,
    InputError,
    RankBoost,
    RankingPursuit,
    RankRLS,
    RankRLSCV,
    SparseRankRLSCV,
    load,
    save,
)
from rankrls.persistence import read_info
from rankrls.persistence._files import CLASSES
from rankrls.preprocessing import QueryMinMaxScaler, TableEncoder

_LARGE = 1e100
_STRANGE = ("0_", "1_0", "\uff12", "\u0662", "1\t2", "1\xa02", " 1", "+1", "nan", "-inf", "1e999", "0x1p3", "1e", "")
"""Texts that one program reads as a number and another one as another number, or not at all."""


@cache
def seeds() -> dict[str, tuple[bytes, Any]]:
    """Right files, and what their models predict for."""
    rng = np.random.default_rng(5)
    X, y, qid = rng.normal(size=(120, 4)), rng.normal(size=120), np.repeat(np.arange(30), 4)
    table = {
        "brand": [*"xyzz"] * 30,
        "price": [None, *X[1:, 0]],
        "place": X[:, :2].tolist(),
        "added": [f"2024-{k % 12 + 1:02d}-03" for k in range(120)],
        "title": [" ".join(f"word{k % (i + 2)}" for k in range(i, i + 5)) for i in range(120)],
        "query": ["word1 word2", "word3"] * 60,
    }
    kinds = {"text_features": ["matches", "similarity", "word", "tfidf"], "query_text": "query"}
    made: dict[str, tuple[Any, Any]] = {
        "linear": (RankRLSCV(), X),
        "sparse rows": (RankRLSCV(kernel="rbf"), sparse.csr_array(np.where(X > 0, X, 0.0))),
        "precomputed": (RankRLS(kernel="precomputed"), X @ X.T),
        "boost": (RankBoost(5), X),
        "pursuit": (RankingPursuit(3), X),
        "views": (CoRankRLS(n_views=2, kernel="rbf"), X),
        "basis": (SparseRankRLSCV(n_basis=5), X),
        "query scaler": (make_pipeline(QueryMinMaxScaler(), RankRLS()), X),
        "scalers": (make_pipeline(RobustScaler(), StandardScaler(), RankRLS()), X),
        "trees": (AutoRankRLS(families="trees", scoring="disagreement"), X),
        "table": (make_pipeline(TableEncoder(**kinds, text="title", min_frequency=2), RankRLS()), table),
    }
    found = {}
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name, (model, rows) in made.items():
            save(model.fit(rows, y) if hasattr(model, "steps") else model.fit(rows, y, qid=qid), f"{folder}/m")
            changed = Changed(Path(folder, "m").read_bytes())
            changed.document["created"] = "2020-01-01T00:00:00+00:00"
            rows = {k: v[:4] for k, v in rows.items()} if isinstance(rows, dict) else rows[:4]
            found[name] = (changed.content(), rows)
    return found


def judge(case: bytes) -> None:
    """Load, and predict if that goes."""
    options, data = unpacked(case)
    right, rows = seeds()[options["seed"]]
    with tempfile.TemporaryDirectory() as folder:
        path = f"{folder}/m.rankrls"
        Path(path).write_bytes(data)
        try:
            model = load(path)
        except InputError as error:
            if error.file != path or "\n" in str(error) or len(str(error)) > 1000:
                raise Wrong(f"the error is {str(error)[:100]!r}") from None
            if data == right:
                raise Wrong(f"a right file is refused: {error}") from None
            raise Refused from None
        read_info(path)
        if hasattr(rows, "shape") and model.n_features_in_ != rows.shape[1]:  # a right model of other data
            raise Refused
        with np.errstate(all="ignore"):
            try:
                scores = model.predict(copy.deepcopy(rows))
            except InputError:  # another one
                raise Refused from None
        if len(scores) != 4 or not (np.isfinite(scores).all() or _holds_large(data)):
            raise Wrong(f"the scores are {scores}"[:200])
        if np.abs(scores).max(initial=0.0) < _LARGE:
            save(model, path)
            if not np.array_equal(load(path).predict(copy.deepcopy(rows)), scores, equal_nan=True):
                raise Wrong("predicts otherwise when it has been saved again")


def _holds_large(data: bytes) -> bool:
    """Whether a number is so large that sums and products may overflow."""
    changed = Changed(data)
    arrays = [changed.array(name) for name in changed.parts]
    floats = [array.ravel() for array in arrays if array.dtype.kind == "f"]
    plain = [float(word) for word in _numbers(changed.document)]
    return any(np.abs(values).max(initial=0.0) > _LARGE for values in (*floats, plain))


def _numbers(node: Any) -> list[float]:
    inside = node.values() if isinstance(node, dict) else node if isinstance(node, list) else ()
    return [node] if isinstance(node, float) else [number for part in inside for number in _numbers(part)]


def make(rng: Generator) -> bytes:
    """A right file, changed in one of several ways."""
    name = choice(rng, [*seeds()])
    content, options, kind = seeds()[name][0], {"seed": name}, int(rng.integers(10))
    if kind == 0:
        return packed(options, damaged(rng, content, 1))
    changed = Changed(content)
    if kind <= 2:
        member = choice(rng, [*changed.parts, DOCUMENT])
        if member == DOCUMENT:
            right = json.dumps(changed.document).encode()
            return packed(options, archived({**changed.parts, DOCUMENT: damaged(rng, right)}))
        changed.parts[member] = damaged(rng, changed.parts[member])
    for _ in range(int(rng.integers(1, 4)) if kind > 2 else 0):
        if chance(rng, 0.35):
            member = choice(rng, [*changed.parts])
            changed.parts[member] = npy(np.ascontiguousarray(_other_array(rng, changed.array(member))))
        else:
            _change_node(rng, changed)
    try:
        return packed(options, changed.content())
    except (ValueError, RecursionError):
        return packed(options, content)


def _other_array(rng: Generator, array: Any) -> Any:
    """Other values, shapes and types of an array."""
    kind = int(rng.integers(7))
    if kind <= 1 and array.size and array.dtype.kind in "biuf":
        values = [np.nan, np.inf, 1e308, -1e308, -0.0, -1.0, 1e9] if array.dtype.kind == "f" else [0, 1, 100, -1]
        array = array.copy()
        array.flat[int(rng.integers(array.size))] = np.array(choice(rng, values)).astype(array.dtype)
        return array
    if not array.ndim:
        return array[None]
    if kind == 2 and array.dtype.kind in "biuf":
        return array.astype(choice(rng, [np.int64, np.float32, np.uint8, bool, "U3"]))
    return choice(
        rng, [array[..., :-1], array.T, array[:, None], np.concatenate([array, array]), array[:0], array[::-1]]
    )


def _change_node(rng: Generator, changed: Changed) -> None:
    """Another node in the place of one, or a name more or less."""
    paths = [path for path in paths_of(changed.document) if path]
    *way, last = choice(rng, paths)
    node = changed.document
    for key in way:
        node = node[key]
    kind = int(rng.integers(7))
    if kind == 0:
        other = changed.document
        for key in choice(rng, paths):
            other = other[key]
        node[last] = copy.deepcopy(other)
    elif kind == 1 and isinstance(node, dict):
        del node[last]
    elif kind == 2 and isinstance(node, dict):
        node[text(rng)] = node.pop(last) if chance(rng, 0.5) else node[last]
    elif kind == 3 and isinstance(node[last], str):
        node[last] = choice(rng, [*CLASSES, "linear", "rbf", "precomputed", "mean", "passthrough", text(rng)])
    elif kind == 4 and isinstance(node, dict):
        names = ["__class__", "__dict__", "predict", "fit", "coef_", "n_features_in_", "_kernel_"]
        node[choice(rng, names)] = _value(rng)
    else:
        node[last] = _value(rng)


def _value(rng: Generator) -> Any:
    """A value of any form."""
    if chance(rng, 0.1):
        return choice(rng, _STRANGE)
    plain = [None, True, False, 0, 1, -1, 3, 2**31, 2**63, 10**30, 0.5, -2.5, 1e308, "", "auto", [], {}, [1, 2, 3]]
    forms = [
        *({"float": "nan"}, {"float": "inf"}, {"tuple": []}, {"tuple": [1, 2]}, {"dict": {}}),
        *({"objects": ["a", None], "shape": [2]}, {"objects": [], "shape": [0, 10**12]}, {"objects": [1], "shape": []}),
        *({"array": "0.npy"}, {"array": "1.npy"}, {"object": choice(rng, [*CLASSES]), "state": {}}, text(rng)),
        {"csr": [{"array": "0.npy"}] * 3, "shape": [10**9, 10**9]},
        {"object": "Trees", "state": {"texts": {"tuple": [f"left_child={choice(rng, _STRANGE)}"]}, "n_features": 4}},
    ]
    return choice(rng, plain if chance(rng, 0.5) else forms)


def warm_up() -> None:
    """Use every right model once."""
    for name, (content, _) in seeds().items():
        judge(packed({"seed": name}, content))


TARGET = Target("models", make, judge, warm_up, share=3.0, seconds=20.0, memory=1 << 30)
