"""Model files: flipped, cut, and rebuilt with hostile trees; loaded under an audit hook.

A changed file is refused with a ModelFileError, or it is a model that predicts finite numbers or refuses its input
with a ValueError. While it is read, nothing is run, imported, written or opened but the file itself.
"""

from __future__ import annotations

import copy
import json
import tempfile
import warnings
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.random import Generator
from scipy import sparse
from sklearn.compose import ColumnTransformer
from sklearn.decomposition import PCA, TruncatedSVD
from sklearn.feature_extraction.text import HashingVectorizer, TfidfVectorizer
from sklearn.feature_selection import SelectKBest
from sklearn.impute import SimpleImputer
from sklearn.kernel_approximation import Nystroem
from sklearn.pipeline import make_pipeline, make_union
from sklearn.preprocessing import (
    KBinsDiscretizer,
    MaxAbsScaler,
    OneHotEncoder,
    OrdinalEncoder,
    PolynomialFeatures,
    PowerTransformer,
    QuantileTransformer,
    RobustScaler,
    SplineTransformer,
    StandardScaler,
    TargetEncoder,
)

from attack.audit import watched
from attack.campaign import ROOT, Refused, Target, Wrong
from attack.cases import chance, choice, damaged, packed, text, unpacked
from attack.model_files import Changed, archived, described, header, hostile_nodes, paths_of
from rankrls import RankRLS, RankRLSCV, load, save
from rankrls.persistence import ModelFileError, read_info
from rankrls.persistence._kinds import public_object
from rankrls.persistence._registry import FUNCTIONS, KINDS
from rankrls.preprocessing import QueryMinMaxScaler, QueryStandardScaler

__all__ = ["TARGET"]

_ACTS = ("subprocess.", "os.", "socket.", "shutil.", "pickle.", "ctypes.", "webbrowser.", "urllib.", "ftplib.")
_LARGE = 1e100


def _is_harmless_in_predict(event: str, arguments: Any) -> bool:
    if event == "open":
        return not any(mode in str(arguments[1]) for mode in "wax+")
    return not event.startswith(_ACTS) or event in ("os.listdir", "os.scandir")


def _data() -> tuple[Any, Any, Any]:
    rng = np.random.default_rng(5)
    return rng.normal(size=(24, 4)), rng.normal(size=24), np.repeat(np.arange(6), 4)


def _texts(count: int) -> list[str]:
    return [" ".join(f"word{k % (i + 2)}" for k in range(i, i + 5)) for i in range(count)]


@cache
def seeds() -> dict[str, tuple[bytes, Any]]:
    """Right files, and what their models predict for."""
    X, y, qid = _data()
    found = {}
    for path in sorted((ROOT / "tests" / "golden").glob("*.rankrls")):
        stored = json.loads(path.with_suffix(".json").read_text())
        rows = [[float.fromhex(v) for v in row] for row in stored["inputs"]]
        found[path.stem] = (path.read_bytes(), np.array(rows)[-4:])
    codes = np.array(list("abcd"), dtype=object)[np.arange(48).reshape(24, 2) % 4]
    frame = pd.DataFrame(X, columns=list("abcd")).assign(kind=[*"xyz"] * 8, text=_texts(24))
    columns = ColumnTransformer(
        [
            ("scaled", StandardScaler(), ["a", "b"]),
            ("kinds", OneHotEncoder(), ["kind"]),
            ("words", TfidfVectorizer(), "text"),
        ]
    )
    K = X @ X.T
    kernel_less = {"sparse rows": sparse.csr_array(np.where(X > 0, X, 0.0)), "precomputed": K}
    made = {
        "sparse rows": (RankRLSCV(kernel="rbf"), kernel_less["sparse rows"]),
        "precomputed": (RankRLS(kernel="precomputed"), K),
        "targets": (RankRLS(), X),
        "query scaler": (make_pipeline(QueryStandardScaler(), QueryMinMaxScaler(), RankRLS()), X),
        "columns": (make_pipeline(columns, RankRLS()), frame),
        "texts": (make_pipeline(TfidfVectorizer(), TruncatedSVD(2), RankRLS()), _texts(24)),
        "hashes": (make_pipeline(HashingVectorizer(n_features=8), RankRLS()), _texts(24)),
        "scalers": (make_pipeline(RobustScaler(), MaxAbsScaler(), PowerTransformer(), PCA(2), RankRLS()), X),
        "union": (make_pipeline(make_union(StandardScaler(), PolynomialFeatures()), SelectKBest(k=3), RankRLS()), X),
        "bins": (make_pipeline(KBinsDiscretizer(3), RankRLS()), X),
        "splines": (make_pipeline(SplineTransformer(n_knots=4), Nystroem(n_components=3), RankRLS()), X),
        "quantiles": (make_pipeline(QuantileTransformer(n_quantiles=5), RankRLS()), X),
        "imputed": (make_pipeline(SimpleImputer(add_indicator=True), RankRLS()), np.where(X > 1.5, np.nan, X)),
        "one hot": (make_pipeline(OneHotEncoder(handle_unknown="ignore"), RankRLS()), codes),
        "ordinal": (make_pipeline(OrdinalEncoder(), RankRLS()), codes),
        "target": (make_pipeline(TargetEncoder(target_type="continuous"), RankRLS()), codes),
    }
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name, (model, rows) in made.items():
            labels = np.column_stack((y, -y)) if name == "targets" else y
            save(
                model.fit(rows, labels) if hasattr(model, "steps") else model.fit(rows, labels, qid=qid), f"{folder}/m"
            )
            changed = Changed(Path(folder, "m").read_bytes())
            changed.document["info"]["created"] = "2020-01-01T00:00:00+00:00"
            found[name] = (changed.content(), rows[:4])
    return found


def judge(case: bytes) -> None:
    """Load, and predict if that goes."""
    options, data = unpacked(case)
    right, rows = seeds()[options["seed"]]
    taken = lambda: copy.deepcopy(rows)  # a transformer with ``copy=False`` may write into its input
    with tempfile.TemporaryDirectory() as folder:
        path = f"{folder}/m.rankrls"
        Path(path).write_bytes(data)
        parses = lambda event, given: event == "compile" and given[1] == "<unknown>"  # a signature, which is not run
        opens = lambda event, given: event == "open" and given[0] == path and given[1] in ("r", "rb")
        only_the_file = lambda event, given: opens(event, given) or parses(event, given)
        try:
            with watched(only_the_file):
                model = load(path)
        except ModelFileError as error:
            if error.file != path or "\n" in str(error) or len(str(error)) > 1000:
                raise Wrong(f"the error is {str(error)[:100]!r}") from None
            if data == right:
                raise Wrong(f"a right file is refused: {error}") from None
            with watched(only_the_file):
                _describes(path)
            raise Refused from None
        _describes(path)
        with watched(_is_harmless_in_predict):
            try:
                scores = model.predict(taken())
            except ValueError:
                raise Refused from None
            except AttributeError as error:  # as scikit-learn's vectorizers answer to numbers
                if "'lower'" not in str(error) or isinstance(rows, list | pd.DataFrame):
                    raise
                raise Refused from None
        size = np.abs(scores[np.isfinite(scores)]).max(initial=0.0)
        if len(scores) != len(rows) if isinstance(rows, list) else scores.shape[0] != rows.shape[0]:
            raise Wrong(f"{len(scores)} scores")
        if not np.isfinite(scores).all() and not options.get("large") and not _holds_large(data):
            raise Wrong("scores that are not finite")
        if size > _LARGE:
            return
        save(model, path)
        again = load(path).predict(taken())
        if not np.array_equal(again, scores, equal_nan=True):
            raise Wrong("predicts otherwise when it has been saved again")


def _holds_large(data: bytes) -> bool:
    """Whether a number is so large that sums and products may overflow."""
    changed = Changed(data)
    if any(abs(number) > _LARGE for number in _numbers(changed.document)):
        return True
    arrays = [changed.array({"array": name}) for name in changed.parts if name.endswith(".npy")]
    return any(np.abs(array).max(initial=0.0) > _LARGE for array in arrays if array.dtype.kind == "f")


def _numbers(node: Any) -> Iterator[float]:
    """The floating point numbers of a tree."""
    if isinstance(node, float):
        yield node
    elif isinstance(node, dict | list):
        for part in node.values() if isinstance(node, dict) else node:
            yield from _numbers(part)


def _describes(path: str) -> None:
    try:
        read_info(path)
    except ModelFileError:
        return


def make(rng: Generator) -> bytes:
    """A right file, changed in one of several ways."""
    name = choice(rng, [*seeds()])
    content = seeds()[name][0]
    kind = int(rng.integers(10))
    options: dict[str, Any] = {"seed": name}
    if kind == 0:
        return packed(options, damaged(rng, content, 1))
    changed = Changed(content)
    if kind == 1:
        member = choice(rng, [*changed.parts])
        changed.parts[member] = damaged(rng, changed.parts[member])
        return packed(options, archived(changed.parts))
    if kind == 2:
        member = choice(rng, [*changed.parts])
        changed.parts[member] = _member(rng)
    for _ in range(int(rng.integers(1, 4)) if kind > 2 else 0):
        if chance(rng, 0.35):
            options["large"] = _change_array(rng, changed) or options.get("large", False)
        else:
            _change_node(rng, changed)
    try:
        text_of = json.dumps(changed.document)
    except (ValueError, RecursionError):
        text_of = "{}"
    if kind != 2:
        changed.parts["model.json"] = text_of.encode()
    return packed(options, archived(changed.parts))


def _member(rng: Generator) -> bytes:
    """A member that claims what it does not hold."""
    shape = choice(rng, ["(2,)", "(10**9,)", "(1000000000000,)", "()", "(0, 999999999999999999)", "(2, -1)", "(1, 2)"])
    descr = choice(rng, ["'<f8'", "'>f8'", "'|O'", "'<U1'", "'<U99999999'", "'|b1'", "'<i8'", "'<f2'", "'<m8[s]'"])
    texts = [described(descr, choice(rng, ["False", "True", "1"]), shape), b"-" * 8000 + b"1\n", b"(" * 2000 + b"\n"]
    return header(choice(rng, texts), bytes(rng.integers(0, 256, 16, dtype=np.uint8)))


def _change_array(rng: Generator, changed: Changed) -> bool:
    """Other values, shapes and types of an array; whether a value is so large that scores may overflow."""
    names = [name for name in changed.parts if name.endswith(".npy")]
    if not names:
        return False
    node = {"array": choice(rng, names)}
    try:
        array = changed.array(node)
    except ValueError:
        return False
    large = False
    kind = int(rng.integers(9))
    if kind <= 1 and array.size and array.dtype.kind in "fiu":
        values = [np.nan, np.inf, 1e308, -1e308, 5e-324, -0.0, -1.0, 1e9] if array.dtype.kind == "f" else [0, 1, 100]
        value = choice(rng, values)
        array = array.copy()
        array.flat[int(rng.integers(array.size))] = value
        if array.dtype.kind == "i" and chance(rng, 0.5):
            array = -array - 1
        large = abs(value) > _LARGE
    elif kind == 2:
        array = array[..., :-1] if array.ndim else array
    elif kind == 3:
        array = array.T if array.ndim > 1 else array[:, None] if array.ndim else array
    elif kind == 4:
        array = np.concatenate([array, array]) if array.ndim else array
    elif kind == 5:
        array = (
            array.astype(choice(rng, [np.int64, np.float32, np.uint8, bool, "U3"]))
            if array.dtype.kind != "U"
            else array
        )
    elif kind == 6:
        array = array[:0] if array.ndim else array
    elif kind == 7:
        array = array[::-1] if array.ndim else array
    else:
        array = np.zeros_like(array)
    changed.put(node, np.ascontiguousarray(array))
    return large


def _change_node(rng: Generator, changed: Changed) -> None:
    """Another node in the place of one, a name more or less, or a tree that is deep or repeats itself."""
    paths = [path for path in paths_of(changed.document["model"]) if path]
    if not paths:
        return
    *way, last = choice(rng, paths)
    node = changed.document["model"]
    for key in way:
        node = node[key]
    kind = int(rng.integers(12))
    if kind == 0:
        other = changed.document["model"]
        for key in choice(rng, paths):
            other = other[key]
        node[last] = copy.deepcopy(other)
    elif kind == 1:
        node[last] = choice(rng, [node for _, node in hostile_nodes()])
    elif kind == 2 and isinstance(node, dict):
        del node[last]
    elif kind == 3 and isinstance(node, dict):
        node[text(rng)] = node.pop(last) if chance(rng, 0.5) else node[last]
    elif kind == 4:
        node[last] = _nested(rng, node[last])
    elif kind == 5:
        node[last] = [node[last]] * int(rng.integers(2, 30))
    elif kind == 6 and isinstance(node[last], str):
        node[last] = choice(
            rng, [*KINDS, *FUNCTIONS, "linear", "rbf", "precomputed", "mean", "first", "drop", text(rng)]
        )
    elif kind == 7 and isinstance(node, dict) and "state" in node:
        names = ["__class__", "__dict__", "predict", "fit", "_validate_data", "coef_", "n_features_in_", "classes_"]
        if isinstance(node["state"], dict):
            node["state"][choice(rng, names)] = _value(rng)
    else:
        node[last] = _value(rng)


def _nested(rng: Generator, node: Any) -> Any:
    for _ in range(int(rng.integers(2, 90))):
        node = choice(rng, [lambda n: [n], lambda n: {"tuple": [n]}, lambda n: {"dict": [["a", n]]}])(node)
    return node


def _value(rng: Generator) -> Any:
    """A value of any form."""
    plain = [None, True, False, 0, 1, -1, 3, 2**31, 2**63, 10**30, 0.5, -2.5, 1e308, "", "auto", "passthrough", [], {}]
    forms = [
        *({"float": "nan"}, {"float": "inf"}, {"tuple": []}, {"tuple": [1, 2]}, {"dict": []}, {"dict": [["a", 1]]}),
        *({"scalar": "float64", "value": 2.5}, {"scalar": "int8", "value": 5}, {"scalar": "str_", "value": "a"}),
        *({"slice": [None, None, None]}, {"slice": [0, 10**9, 1]}, {"type": "numpy.float32"}, {"type": "object"}),
        *({"dtype": "<f4"}, {"dtype": "<U1000000"}, {"dtype": "|O"}, {"function": choice(rng, [*FUNCTIONS])}),
        *({"objects": ["a", None], "shape": [2]}, {"objects": [], "shape": [0, 10**12]}, {"objects": [1], "shape": []}),
        *({"array": "0.npy"}, {"array": "1.npy"}, {"object": choice(rng, [*KINDS]), "state": {}}, text(rng)),
        *({"csr": [{"array": "0.npy"}] * 3, "shape": [10**9, 10**9]}, [1, 2, 3], ["a"], {"__id__": 1}),
    ]
    return choice(rng, plain) if chance(rng, 0.5) else choice(rng, forms)


def warm_up() -> None:
    """Import every class that a file may name, and use every right model once."""
    for kind in KINDS.values():
        assert kind.cls is not None
    for name in FUNCTIONS:
        public_object(name)
    repr(StandardScaler())  # an error of scikit-learn shows a value, and imports what shows it
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name, (content, _) in seeds().items():
            for _ in range(2):
                try:
                    judge(packed({"seed": name}, content))
                except Wrong as error:
                    if not str(error).startswith("does "):
                        raise


TARGET = Target("models", make, judge, warm_up, share=3.0, seconds=20.0, memory=1 << 30)
