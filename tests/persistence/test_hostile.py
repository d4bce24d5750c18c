"""Reading a damaged or hostile file is one ValueError that names it, and runs nothing."""

import copy
import io
import json
import pickle
import struct
import subprocess
import sys
import time
import tracemalloc
import zipfile

import numpy as np
import pytest
import sklearn
from attack.model_files import Changed, archived, described, header, hostile_nodes, members, npy, paths_of
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse
from sklearn.compose import ColumnTransformer
from sklearn.decomposition import TruncatedSVD
from sklearn.feature_extraction.text import CountVectorizer, TfidfVectorizer
from sklearn.feature_selection import SelectKBest, f_regression
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline, make_union
from sklearn.preprocessing import (
    OneHotEncoder,
    OrdinalEncoder,
    PolynomialFeatures,
    QuantileTransformer,
    SplineTransformer,
    StandardScaler,
    TargetEncoder,
)

from rankrls import (
    CGRankRLS,
    CoRankingPursuit,
    RankBoost,
    RankingPursuit,
    RankRLS,
    RankRLSCV,
    RankSVM,
    SparseRankRLS,
    load,
    save,
)
from rankrls.persistence import ModelFileError, read_info
from rankrls.preprocessing import QueryMinMaxScaler, TableEncoder

PWNED = []
CODES = np.array([["a"], ["b"], ["c"]] * 4, dtype=object)


def SelectKBestOf():
    return SelectKBest(f_regression, k=2)


def FeatureUnionOf():
    return make_union(StandardScaler(), PolynomialFeatures())


def pwn(*args, **kwargs):
    PWNED.append(args)


def content_of(model, folder):
    path = folder / "good.rankrls"
    save(model, path)
    return path.read_bytes()


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(3)
    return rng.normal(size=(12, 3)), rng.normal(size=12), np.repeat(np.arange(4), 3)


@pytest.fixture(scope="module")
def content(data, tmp_path_factory):
    X, y, qid = data
    return content_of(RankRLSCV(kernel="rbf").fit(sparse.csr_array(X), y, qid=qid), tmp_path_factory.mktemp("good"))


def refuse(tmp_path, content, match=None, parameter=None):
    """The file is refused, in one line that names it; nothing that it says has run."""
    path = tmp_path / "bad.rankrls"
    path.write_bytes(content)
    with pytest.raises(ModelFileError, match=match) as caught:
        load(path)
    error = caught.value
    assert isinstance(error, ValueError)
    assert error.file == str(path)
    assert str(error).startswith(f"{path}: ")
    assert "\n" not in str(error)
    assert len(str(error)) < 1000
    if parameter is not None:
        assert error.parameter == parameter
    assert not PWNED
    return str(error)


@pytest.mark.parametrize(("name", "node"), list(hostile_nodes()), ids=lambda v: v if isinstance(v, str) else "node")
@pytest.mark.parametrize("place", ["parameter", "list", "object array", "root"])
def test_classes_that_are_not_listed(name, node, place, content, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    changed = Changed(content)
    if place == "root":
        changed.document["model"] = node
    else:
        inside = {"parameter": node, "list": [1, node], "object array": {"objects": [node], "shape": [1]}}
        changed.state["kernel"] = inside[place]
    message = refuse(tmp_path, changed.content(), "no model of rankrls" if place == "root" else "not among the classes")
    assert name in message
    assert not (tmp_path / "pwned").exists()


@pytest.mark.parametrize(
    "node",
    [
        {"function": "os.system"},
        {"function": "sklearn.feature_selection.SelectKBest"},
        {"type": "os.system"},
        {"type": "type"},
        {"dtype": "O8,i4"},
        {"float": "1.0"},
        {"float": ["nan"]},
        {"scalar": "float64", "value": "1.5"},
        {"scalar": "int8", "value": 300},
        {"scalar": "object_", "value": 1},
        {"scalar": "int64", "value": [1, 2]},
        {"slice": [1, 2, 3, 4]},
        {"slice": 5},
        {"tuple": {"0": 1}},
        {"tuple": "ab"},
        {"dict": {"a": 1}},
        {"dict": [["a"]]},
        {"dict": [["a", 1], ["a", 2]]},
        {"dict": [[[], 1]]},
        {"objects": [1, 2], "shape": [3]},
        {"objects": [1, 2], "shape": [-1, 2]},
        {"objects": [1, 2], "shape": [True, 2]},
        {"objects": [], "shape": [10**18, 0, 10**18]},
        {"array": "no.npy"},
        {"array": "model.json"},
        {"array": ["0.npy"]},
        {"array": None},
        {"csr": [], "shape": [1, 1]},
        {"csr": [1.0, 2.0, 3.0], "shape": [1, 1]},
        {"object": "rankrls.RankRLS"},
        {"object": "rankrls.RankRLS", "state": []},
        {"object": "rankrls.RankRLS", "state": {"alpha": 1.0}},
        {"object": ["rankrls.RankRLS"], "state": {}},
        {"object": "rankrls.kernels.Kernel", "state": {"name": "rbf", "evil": 1}},
        {"object": "rankrls.metrics.Measure", "state": {"name": "no measure"}},
        {"py/object": "os.system"},
        {"__class__": "x", "__id__": 1},
        {},
    ],
    ids=json.dumps,
)
def test_nodes_that_save_did_not_write(node, content, tmp_path):
    changed = Changed(content)
    changed.state["kernel"] = node
    refuse(tmp_path, changed.content())


@pytest.mark.parametrize(
    "model", [None, [], {}, "text", 3, {"object": None, "state": {}}, {"object": "rankrls.RankRLS"}]
)
def test_roots_that_save_did_not_write(model, content, tmp_path):
    changed = Changed(content)
    changed.document["model"] = model
    refuse(tmp_path, changed.content(), "no model of rankrls|damaged|unknown form")


def test_documents_that_are_not_plain_json(content, tmp_path):
    text = members(content)["model.json"].decode()
    for before, after, match in (
        ('"alphas":"auto"', '"alphas":"auto","alphas":1', "a name twice"),
        ('"rule":"best"', '"rule":NaN', "NaN"),
        ('"rule":"best"', '"rule":-Infinity', "Infinity"),
        ('"rule":"best"', '"rule":1e999', "too large"),
        ('"rule":"best"', '"rule":' + "9" * 5000, "damaged"),
        ('"rule":"best"', '"rule":best', "damaged"),
        ('"rule":"best"', '"rule":"\\ud8"', "damaged"),
    ):
        assert text.rpartition(before)[1]  # the model's, which comes after the description's
        changed = after.join(text.rsplit(before, 1))
        refuse(tmp_path, archived({**members(content), "model.json": changed}), match)


def test_nested_too_deeply(content, tmp_path):
    for wrap in (lambda node: [node], lambda node: {"tuple": [node]}, lambda node: {"dict": [["a", node]]}):
        changed, node = Changed(content), 1
        for _ in range(100):
            node = wrap(node)
        changed.state["kernel"] = node
        refuse(tmp_path, changed.content(), "too deeply")
    refuse(tmp_path, archived({**members(content), "model.json": b"[" * 200_000}), "damaged")
    refuse(tmp_path, archived({**members(content), "model.json": b'{"a":' * 200_000}), "damaged")


def test_keys_made_to_collide_take_no_quadratic_time(content, tmp_path):
    period = sys.hash_info.modulus
    changed = Changed(content)
    changed.state["kernel"] = {"dict": [[k * period, 1] for k in range(50_000)]}
    started = time.process_time()
    refuse(tmp_path, changed.content(), "made to be slow|damaged")
    # a tenth of what that many collisions take in a dictionary
    assert time.process_time() - started < 10.0


def test_a_subtree_cannot_be_named_twice(content, tmp_path):
    """Nodes that refer to others would double what a few bytes stand for with each level; there are none."""
    changed = Changed(content)
    node = 1
    for level in range(40):
        node = [{"__id__": level, "list": node}, {"__id__": level}]
    changed.state["kernel"] = node
    started = time.process_time()
    refuse(tmp_path, changed.content(), "unknown form|too deeply")
    assert time.process_time() - started < 5.0


def test_an_array_is_named_once(content, tmp_path):
    changed = Changed(content)
    big = changed.add(np.zeros(500_000))
    changed.state["kernel"] = [big] * 300
    tracemalloc.start()
    try:
        refuse(tmp_path, changed.content(), "named twice")
        assert tracemalloc.get_traced_memory()[1] < 5 * 4_000_000
    finally:
        tracemalloc.stop()
    for place in ("data", "X_fit_"):
        changed = Changed(content)
        twice = changed.state["dual_coef_"] if place == "data" else changed.state["X_fit_"]["csr"][0]
        changed.state["positive"] = twice
        refuse(tmp_path, changed.content(), "named twice")


def test_an_array_that_no_value_names(content, tmp_path):
    refuse(tmp_path, archived({**members(content), "99.npy": npy(np.ones(3))}), "no part of the model")


class Evil:
    def __reduce__(self):
        return pwn, ("pickle",)


def test_a_pickle(tmp_path):
    for protocol in (2, 4, 5):
        refuse(tmp_path, pickle.dumps(Evil(), protocol), "pickle")
    refuse(tmp_path, pickle.dumps(Evil(), 0), "not a model file")


def test_a_pickle_inside(content, tmp_path):
    parts = members(content)
    refuse(tmp_path, archived({**parts, "0.npy": pickle.dumps(Evil())}), "no header")
    objects = io.BytesIO()
    np.save(objects, np.array([Evil()], dtype=object), allow_pickle=True)
    refuse(tmp_path, archived({**parts, "0.npy": objects.getvalue()}), "no header of an array of numbers or text")


@pytest.mark.parametrize(
    "member",
    [
        header(b"-" * 8000 + b"1\n"),  # the parser of Python takes gigabytes for it
        header(b"(" * 8000 + b"\n"),
        header(b"-" * 1000 + b"1\n"),
        header(b""),
        b"",
        b"\x93NUMPY",
        b"\x93NUMPY\x01\x00\xff\xff",
        b"\x93NUMPY\x02\x00" + struct.pack("<I", 2**31) + described(),
        b"\x93NUMPY\x03\x00" + struct.pack("<I", 118) + described() + bytes(16),
        *(
            header(described(shape=shape), bytes(16))
            for shape in ("(1000000000000,)", "(10, -2)", "(3, 3)", "()", "2", "(2, 10**9)", "(" + "9, " * 30 + ")")
        ),
        *(
            header(described(descr=descr), bytes(16))
            for descr in ("'|O'", "'<V8'", "'<c16'", "'<M8[s]'", "'<f16'", "'<U0'", "[('a', '<f8')]", "('<f8', (2,))")
        ),
        header(described(order="1"), bytes(16)),
        header(described(descr="'|b1'"), b"\x00\x02"),
        header(described(descr="'<U2'"), b"\xff" * 16),
        header(described(shape="(0, 1000000000000000)")),
    ],
    ids=lambda member: repr(member[10:80]),
)
def test_arrays_that_are_none(member, content, tmp_path):
    tracemalloc.start()
    try:
        refuse(tmp_path, archived({**members(content), "0.npy": member}))
        assert tracemalloc.get_traced_memory()[1] < 20_000_000
    finally:
        tracemalloc.stop()


def test_what_is_no_archive(tmp_path):
    refuse(tmp_path, b"", "the file is empty")
    refuse(tmp_path, b"hello world\n" * 50, "not a model file")
    refuse(tmp_path, b"PK\x03\x04" + bytes(range(256)) * 2, "truncated or damaged")
    refuse(tmp_path, b"PK\x05\x06" + bytes(18), r"without 'model\.json'")


def test_the_format_of_development_versions(tmp_path):
    old = archived({"schema.json": b"{}", "rankrls.json": b"{}", "4711.npy": npy(np.ones(2))})
    assert "Fit the model again" in refuse(tmp_path, old, "development version")
    with pytest.raises(ModelFileError, match="development version"):
        read_info(tmp_path / "bad.rankrls")


def test_truncated_anywhere(content, tmp_path):
    for length in {*range(0, len(content), 997), len(content) - 1, len(content) - 22, len(content) - 23, 1, 2, 4, 30}:
        refuse(tmp_path, content[:length], "empty|not a model file|truncated|damaged|without|claims")


def test_longer_than_it_was(content, tmp_path):
    """A comment behind an archive, or bytes before it, change nothing in it; what loads is the model."""
    path = tmp_path / "m.rankrls"
    for changed in (content + b"\n", b"#!x\n" + content):
        path.write_bytes(changed)
        try:
            loaded = load(path)
        except ModelFileError:
            continue
        assert isinstance(loaded, RankRLSCV)


def test_every_byte_of_the_outside_flipped(content, data, tmp_path):
    """A deterministic sample: a flip is found, or changes nothing that the model predicts."""
    X = data[0]
    path = tmp_path / "flipped.rankrls"
    path.write_bytes(content)
    wanted = load(path).predict(X)
    refused = 0
    for place in range(0, len(content), 23):
        for bit in (place % 8, (place // 23) % 8):
            changed = bytearray(content)
            changed[place] ^= 1 << bit
            path.write_bytes(changed)
            try:
                loaded = load(path)
            except ModelFileError:
                refused += 1
                continue
            np.testing.assert_array_equal(loaded.predict(X), wanted)
    assert refused > len(content) / 23


@given(st.data())
def test_flipped_bytes_never_do_anything_else_than_be_refused_or_read(content, tmp_path_factory, data):
    changed = bytearray(content)
    for _ in range(data.draw(st.integers(1, 4))):
        changed[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
    path = tmp_path_factory.getbasetemp() / "flipped.rankrls"
    path.write_bytes(changed)
    try:
        loaded = load(path)  # a byte of a name or a time stamp in the archive's directory matters to nobody
    except ModelFileError:
        return
    assert isinstance(loaded, RankRLSCV)


@given(st.data())
def test_changed_trees_are_refused_or_predict(content, tmp_path_factory, data):
    """Nodes replaced by other nodes, names and numbers, with checksums that are right."""
    changed = Changed(content)
    paths = [path for path in paths_of(changed.root) if path]
    names = st.sampled_from(["", "coef_", "0.npy", "rbf", "linear", "rankrls.RankRLS", "rankrls.kernels.Kernel"])
    values = st.one_of(st.none(), st.booleans(), st.integers(-5, 5), st.floats(-3, 3), names, st.just([]), st.just({}))
    for _ in range(data.draw(st.integers(1, 2))):
        *way, last = data.draw(st.sampled_from(paths))
        node = changed.root
        try:
            for key in way:
                node = node[key]
            other = data.draw(st.sampled_from(paths))
            value = changed.root
            for key in other:
                value = value[key]
            node[last] = data.draw(values) if data.draw(st.booleans()) else copy.deepcopy(value)
        except (KeyError, IndexError, TypeError):
            continue
    path = tmp_path_factory.getbasetemp() / "changed.rankrls"
    path.write_bytes(changed.content())
    try:
        loaded = load(path)
    except ModelFileError:
        return
    scores = loaded.predict(np.ones((2, loaded.n_features_in_)))
    assert scores.shape[0] == 2
    assert np.isfinite(scores).all()


def test_bombs(content, tmp_path):
    parts = members(content)
    refuse(tmp_path, archived(parts, zipfile.ZIP_DEFLATED), "compressed or encrypted")
    bomb = archived({**parts, "9.npy": bytes(50_000_000)}, zipfile.ZIP_DEFLATED)
    tracemalloc.start()
    try:
        refuse(tmp_path, bomb, "compressed or encrypted")
        assert tracemalloc.get_traced_memory()[1] < 5_000_000
    finally:
        tracemalloc.stop()
    # a directory that claims more bytes than there are
    stored = bytearray(content)
    entry = stored.rindex(b"PK\x01\x02")
    stored[entry + 20 : entry + 28] = struct.pack("<II", 2**31, 2**31)
    refuse(tmp_path, bytes(stored), "claims to hold|damaged|truncated")


def test_foreign_and_doubled_members(content, tmp_path):
    parts = members(content)
    for name in ("../../etc/passwd", "/abs", "../0.npy", "a.npz", "sub/1.npy", "x.py", "code.pyc", "-1.npy", "x.npy"):
        refuse(tmp_path, archived({**parts, name: b"x"}), "which no rankrls model has")
    for name in ("model.json", "0.npy"):
        out = io.BytesIO(content)
        with zipfile.ZipFile(out, "a") as archive, pytest.warns(UserWarning, match="Duplicate name"):
            archive.writestr(name, "{}")
        refuse(tmp_path, out.getvalue(), "two members of the same name")
    del parts["model.json"]
    refuse(tmp_path, archived(parts), r"without 'model\.json'")


def test_sparse_features_are_checked(content, tmp_path):
    def change(what):
        changed = Changed(content)
        node = changed.state["X_fit_"]
        data, indices, indptr = (changed.array(part) for part in node["csr"])
        if what == "columns":
            node["shape"][1] = 1  # the indices then point outside
        elif what == "indices":
            changed.put(node["csr"][1], indices + 1)
        elif what == "negative":
            changed.put(node["csr"][1], indices - 1)
        elif what == "indptr":
            changed.put(node["csr"][2], indptr[::-1].copy())
        else:
            changed.put(node["csr"][0], data[:-1])
        return changed.content()

    for what in ("columns", "indices", "negative", "indptr", "data"):
        refuse(tmp_path, change(what), "damaged")


FITTED = {
    "linear": (lambda: RankRLS(), ["coef_"]),
    "dual": (lambda: RankRLS(solver="dual"), ["coef_"]),
    "rbf": (lambda: RankRLS(kernel="rbf"), ["dual_coef_", "X_fit_"]),
    "sparse": (lambda: SparseRankRLS(kernel="rbf", n_basis=4), ["dual_coef_", "X_fit_"]),
    "cg": (lambda: CGRankRLS(alphas=(1.0,), selection="tikhonov"), ["coef_"]),
    "svm": (lambda: RankSVM(), ["coef_"]),
    "pursuit": (lambda: RankingPursuit(2), ["dual_coef_", "X_fit_"]),
    "co_pursuit": (lambda: CoRankingPursuit(2), ["X_fit_"]),
    "boost": (lambda: RankBoost(3), ["thresholds_", "weights_"]),
}


@pytest.mark.parametrize(("name", "attribute"), [(name, a) for name, (_, found) in FITTED.items() for a in found])
@pytest.mark.parametrize(
    "how", ["nan", "infinity", "shorter", "another axis", "whole numbers", "text", "a list", "missing"]
)
def test_values_that_do_not_fit_the_model(name, attribute, how, data, tmp_path):
    """What would fail at predict, or predict nonsense, is refused with the attribute's name when it is loaded."""
    X, y, qid = data
    changed = Changed(content_of(FITTED[name][0]().fit(X, y, qid=qid), tmp_path))
    node = changed.state[attribute]
    value = changed.array(node)
    if how in ("nan", "infinity"):
        value.flat[-1] = np.nan if how == "nan" else np.inf
        changed.put(node, value)
    elif how == "shorter":
        changed.put(node, value[..., :-1].copy())
    elif how == "another axis":
        changed.put(node, value[..., None, None])
    elif how == "whole numbers":
        changed.put(node, np.ones(value.shape, dtype=np.int64))
    elif how == "text":
        changed.put(node, np.full(value.shape, "1.5"))
    else:
        del changed.parts[node["array"]]
        if how == "missing":
            del changed.state[attribute]
        else:
            changed.state[attribute] = value.tolist()
    message = refuse(tmp_path, changed.content())
    named = {attribute} | (
        {"dual_coef_", "X_fit_", "features_", "weights_", "basis_indices_"} if how == "shorter" else set()
    )
    assert any(name in message for name in named)


def numbered(**changes):
    def change(changed):
        changed.state.update(changes)

    return change


def replaced(attribute, make, index=None):
    def change(changed):
        node = changed.state[attribute]
        node = node if index is None else node[0]["state"][index] if isinstance(node, list) else node["state"][index]
        changed.put(node, make(changed.array(node)))

    return change


@pytest.mark.parametrize(
    ("model", "change", "attribute"),
    [
        (RankRLS(), numbered(n_features_in_=4), "coef_"),
        (RankRLS(), numbered(n_features_in_=True), "n_features_in_"),
        (RankRLS(), numbered(n_features_in_=-3), "n_features_in_"),
        (RankRLS(), numbered(n_queries_=0), "n_queries_"),
        (RankRLS(), numbered(n_queries_="many"), "n_queries_"),
        (RankRLS(), numbered(alpha_={"float": "nan"}), "alpha_"),
        (RankRLS(), numbered(_fitted_with_qid="yes"), "_fitted_with_qid"),
        (RankRLS(), numbered(_kernel_="rbf"), "_kernel_"),
        (RankRLS(), numbered(feature_names_in_={"objects": ["a", "b"], "shape": [2]}), "feature_names_in_"),
        (RankRLS(), numbered(feature_names_in_={"objects": ["a", "b", 3], "shape": [3]}), "feature_names_in_"),
        (RankRLS(), numbered(extra_={"float": "inf"}), "extra_"),
        (RankRLS(), numbered(predict=1), "predict"),
        (RankRLS(), numbered(__class__="x"), "__class__"),
        (RankRLS(), numbered(__dict__={"dict": []}), "__dict__"),
        (RankRLS(), numbered(_seen_=None), "_seen_"),
        (RankRLS(), replaced("_equations_", lambda a: a[:-1], "gram"), "gram"),
        (RankRLS(), replaced("_equations_", lambda a: np.full_like(a, np.nan), "energy"), "energy"),
        (RankRLS(), replaced("_seen_", lambda a: a[:-1], "rows"), "rows"),
        (SparseRankRLS(n_basis=4), numbered(_basis_parts_={"dict": []}), "to_items"),
        (RankRLSCV(kernel="rbf"), lambda c: c.state["_kernel_"]["state"].update(name="linear"), "coef_"),
        (RankRLSCV(kernel="rbf"), lambda c: c.state["_kernel_"]["state"].update(name="evil"), "name"),
        (RankRLSCV(kernel="rbf"), lambda c: c.state["_kernel_"]["state"].update(gamma={"float": "nan"}), "gamma"),
        (RankRLSCV(kernel="rbf"), lambda c: c.state["_kernel_"]["state"].update(params={"dict": [["a", 1]]}), "params"),
        (RankRLSCV(kernel="rbf"), lambda c: c.state["_kernel_"]["state"].update(name="precomputed"), "dual_coef_"),
        (RankBoost(3), replaced("features_", lambda a: a + 3), "features_"),
        (RankBoost(3), replaced("features_", lambda a: a - 3), "features_"),
        (RankBoost(3), numbered(n_estimators_=2), "n_estimators_"),
        (RankingPursuit(2), replaced("basis_indices_", lambda a: a + 1), "basis_indices_"),
        (RankingPursuit(2), replaced("path_", lambda a: a[:, :-1].copy(), "coefficients"), "coefficients"),
        (RankingPursuit(2), replaced("path_", lambda a: a[:-1], "losses"), "losses"),
        (RankingPursuit(2), replaced("path_", lambda a: a - 50, "indices"), "indices"),
        (CoRankingPursuit(2), replaced("basis_indices_", lambda a: a + 20), "basis_indices_"),
        (CoRankingPursuit(2), lambda c: c.state["_view_kernels_"].append("rbf"), "_view_kernels_"),
        (CoRankingPursuit(2), lambda c: c.state["_view_kernels_"].pop(), "_view_kernels_"),
        (CoRankingPursuit(2), lambda c: c.state.update(_view_kernels_=["rbf", "rbf"]), "_view_kernels_"),
        (CoRankingPursuit(2), lambda c: c.state.update(_view_features_=[5, None]), "_view_features_"),
        (RankRLS(), lambda c: c.state["_equations_"].append(5), "_equations_"),
        (CoRankingPursuit(2), lambda c: c.state["_view_kernels_"][0]["state"].update(name="precomputed"), "X_fit_"),
        (RankRLSCV(kernel="poly"), lambda c: c.state["_kernel_"]["state"].update(degree=-1.5), "degree"),
        (RankRLSCV(kernel="poly"), lambda c: c.state["_kernel_"]["state"].update(gamma=-1.0), "gamma"),
    ],
    ids=lambda v: type(v).__name__ if hasattr(v, "fit") else v if isinstance(v, str) else "",
)
def test_attributes_that_do_not_agree(model, change, attribute, data, tmp_path):
    X, y, qid = data
    changed = Changed(content_of(model.fit(X, y, qid=qid), tmp_path))
    change(changed)
    refuse(tmp_path, changed.content(), attribute, attribute)


def test_what_compiled_loops_read_is_checked(data, tmp_path):
    X, y, _ = data
    changed = Changed(content_of(make_pipeline(QueryMinMaxScaler(), RankRLS()).fit(X, y), tmp_path))
    scaler = changed.root["state"]["steps"][0]["tuple"][1]["state"]
    scaler["n_features_in_"] = 5000
    refuse(tmp_path, changed.content(), "_statistics", "_statistics")
    scaler["n_features_in_"] = 3
    changed.put(scaler["_statistics"], np.ones((3, 3)))
    refuse(tmp_path, changed.content(), "_statistics", "_statistics")

    changed = Changed(content_of(make_pipeline(QueryMinMaxScaler(), RankRLS()).fit(X, y), tmp_path))
    for ends in ({"tuple": [1, 0]}, {"tuple": [0, {"float": "nan"}]}, {"tuple": [0]}, "01", None):
        changed.root["state"]["steps"][0]["tuple"][1]["state"]["feature_range"] = ends
        refuse(tmp_path, changed.content(), "feature_range", "feature_range")

    texts = ["a cat sat", "the dog sat", "birds fly high"] * 4
    model = make_pipeline(CountVectorizer(), TruncatedSVD(2), RankRLS())
    changed = Changed(content_of(model.fit(texts, y), tmp_path))
    vocabulary = changed.root["state"]["steps"][0]["tuple"][1]["state"]["vocabulary_"]["dict"]
    vocabulary[0][1] = 10**6  # a column that does not exist, in an array whose products do not look
    refuse(tmp_path, changed.content(), "vocabulary_", "vocabulary_")

    codes = np.array([["a"], ["b"], ["c"]] * 4, dtype=object)
    changed = Changed(content_of(make_pipeline(OneHotEncoder(), RankRLS()).fit(codes, y), tmp_path))
    changed.root["state"]["steps"][0]["tuple"][1]["state"]["_n_features_outs"] = [1]
    refuse(tmp_path, changed.content(), "_n_features_outs", "_n_features_outs")


def test_steps_are_checked(data, tmp_path):
    X, y, _ = data
    content = content_of(make_pipeline(StandardScaler(), RankRLS()).fit(X, y), tmp_path)
    for steps in ([], None, ["ab"], [{"tuple": ["a"]}], [{"tuple": [1, "passthrough"]}]):
        changed = Changed(content)
        changed.root["state"]["steps"] = steps
        changed.parts = {"model.json": b""}
        refuse(tmp_path, changed.content(), "steps", "steps")
    changed = Changed(content)
    changed.root["state"]["steps"].reverse()
    refuse(tmp_path, changed.content(), "does not transform", "steps")
    changed = Changed(content)
    scaler = changed.root["state"]["steps"][0]["tuple"][1]["state"]
    changed.put(scaler["scale_"], np.full(3, np.nan))
    refuse(tmp_path, changed.content(), "scale_", "scale_")


def nodes_of(node):
    yield node
    for child in node.values() if isinstance(node, dict) else node if isinstance(node, list) else ():
        yield from nodes_of(child)


def test_a_file_does_not_say_how_many_processes_work(data, tmp_path):
    X, y, _ = data
    model = make_pipeline(FeatureUnionOf().set_params(n_jobs=2), RankRLS()).fit(X, y)
    changed = Changed(content_of(model, tmp_path))
    step(changed)["n_jobs"] = 10**6
    path = tmp_path / "many.rankrls"
    path.write_bytes(changed.content())
    loaded = load(path)
    assert loaded[0].n_jobs is None
    np.testing.assert_array_equal(loaded.predict(X), model.predict(X))


def step(changed):
    return changed.root["state"]["steps"][0]["tuple"][1]["state"]


@pytest.mark.parametrize(
    ("make", "change", "attribute"),
    [
        (PolynomialFeatures, {"order": 5}, "order"),
        (TfidfVectorizer, {"token_pattern": ["a"]}, "token_pattern"),
        (TfidfVectorizer, {"dtype": {"slice": [0, 1, 2]}}, "dtype"),
        (TfidfVectorizer, {"token_pattern": None}, "token_pattern"),
        (TfidfVectorizer, {"token_pattern": "("}, "token_pattern"),
        (QuantileTransformer, {"output_distribution": "evil"}, "output_distribution"),
        (OrdinalEncoder, {"_missing_indices": []}, "_missing_indices"),
        (OrdinalEncoder, {"_missing_indices": {"dict": [[9, 0]]}}, "_missing_indices"),
        (OrdinalEncoder, {"_infrequent_enabled": None}, "_infrequent_enabled"),
        (OneHotEncoder, {"categories_": [{"objects": [["a"], "b"], "shape": [2]}]}, "categories_"),
        (OneHotEncoder, {"_drop_idx_after_grouping": ""}, "_drop_idx_after_grouping"),
        (OneHotEncoder, {"_missing_indices": {"dict": []}}, "_missing_indices"),
        (PolynomialFeatures, {"_max_degree": -1}, "_max_degree"),
        (OneHotEncoder, {"drop_idx_": {"objects": [9, None], "shape": [2]}}, "drop_idx_"),
        (TargetEncoder, {"encodings_": []}, "encodings_"),
        (StandardScaler, {"_sklearn_output_config": 5}, "_sklearn_output_config"),
        (FeatureUnionOf, {"transformer_list": [{"tuple": ["a", "drop"]}, 5]}, "transformer_list"),
        (FeatureUnionOf, {"transformer_list": [{"tuple": ["a", [1]]}]}, "transformer_list"),
        (FeatureUnionOf, {"transformer_weights": "chi2"}, "transformer_weights"),
        (TfidfVectorizer, {"ngram_range": {"tuple": [1, "a"]}}, "ngram_range"),
        (PolynomialFeatures, {"_min_degree": "a"}, "_min_degree"),
        (PolynomialFeatures, {"_n_out_full": 2**31}, "_n_out_full"),
        (SplineTransformer, {"degree": 2**31}, "bsplines_"),
        (SplineTransformer, {"n_features_out_": 2**31}, "n_features_out_"),
        (TfidfVectorizer, {"strip_accents": {"type": "object"}}, "strip_accents"),
        (SimpleImputer, {"_fit_dtype": {"dict": []}}, "_fit_dtype"),
        (SimpleImputer, {"statistics_": 5}, "statistics_"),
        (SelectKBestOf, {"scores_": {"objects": [], "shape": [0, 3]}}, "scores_"),
        (QueryMinMaxScaler, {"a b": 1}, "'a b'"),
        (QueryMinMaxScaler, {"a\n": 1}, "'a\\n'"),
    ],
    ids=lambda v: v.__name__ if callable(v) else v if isinstance(v, str) else "",
)
def test_what_transformers_hold_is_checked(make, change, attribute, data, tmp_path):
    """What would fail inside scikit-learn when it predicts is refused when it is loaded."""
    X, y, _ = data
    features = {"OrdinalEncoder": CODES, "OneHotEncoder": CODES, "TargetEncoder": CODES}.get(make.__name__, X)
    features = ["a cat sat", "the dog sat"] * 6 if make is TfidfVectorizer else features
    options = {"target_type": "continuous"} if make is TargetEncoder else {}
    options |= {"n_quantiles": 5} if make is QuantileTransformer else {}
    model = make_pipeline(make(**options), RankRLS()).fit(features, y)
    changed = Changed(content_of(model, tmp_path))
    step(changed).update(change)
    named = {node["array"] for node in nodes_of(changed.root) if isinstance(node, dict) and "array" in node}
    changed.parts = {name: part for name, part in changed.parts.items() if name in named or name == "model.json"}
    assert attribute in refuse(tmp_path, changed.content(), parameter=attribute)


def test_columns_of_transformers_are_checked(data, tmp_path):
    X, y, _ = data
    model = make_pipeline(ColumnTransformer([("a", StandardScaler(), [0, 1])]), RankRLS()).fit(X, y)
    content = content_of(model, tmp_path)
    for attribute, value in (
        ("transformers_", []),
        ("transformers_", [{"tuple": ["a", 5, [0]]}]),
        ("_transformer_to_input_indices", {"dict": [["b", [0]]]}),
        ("_transformer_to_input_indices", {"dict": [["a", [7]]]}),
        ("output_indices_", {"dict": [["a", 5]]}),
        ("sparse_output_", 1),
        ("_remainder", None),
    ):
        changed = Changed(content)
        step(changed)[attribute] = value
        if attribute == "transformers_":
            changed.parts = {name: part for name, part in changed.parts.items() if not name.endswith(".npy")}
        refuse(tmp_path, changed.content())


def test_a_scaler_that_would_divide_by_0(data, tmp_path):
    X, y, _ = data
    changed = Changed(content_of(make_pipeline(QueryMinMaxScaler(), RankRLS()).fit(X, y), tmp_path))
    changed.put(step(changed)["_statistics"], np.zeros((4, 3)))
    refuse(tmp_path, changed.content(), parameter="_statistics")


@pytest.mark.parametrize(
    ("make", "attribute"), [(StandardScaler, "mean_"), (StandardScaler, "scale_"), (QueryMinMaxScaler, "_statistics")]
)
def test_what_a_scaler_learned_is_there(make, attribute, data, tmp_path):
    X, y, _ = data
    changed = Changed(content_of(make_pipeline(make(), RankRLS()).fit(X, y), tmp_path))
    del changed.parts[step(changed).pop(attribute)["array"]]
    refuse(tmp_path, changed.content(), parameter=attribute)


@pytest.mark.parametrize("attribute", ["_one_target", "best_score_", "best_params_"])
def test_what_predict_and_save_need_is_there(attribute, content, tmp_path):
    changed = Changed(content)
    del changed.state[attribute]
    changed.parts = {"model.json": b""} if attribute == "best_params_" else changed.parts
    refuse(tmp_path, changed.content())


def test_queries_are_checked(data, tmp_path):
    X, y, qid = data
    content = content_of(RankRLS().fit(X, y, qid=qid), tmp_path)
    for ids in (
        [1, 2, {"type": "object"}, 3],
        [1, 2, {"scalar": "str_", "value": "a"}, 3],
        [1, 2, 3],
        [1, 1, 2, 3],
        [1, 2, 3, []],
        5,
        [1, 2, 3, {"tuple": [[]]}],
    ):
        changed = Changed(content)
        changed.state["_seen_"]["state"]["ids"] = ids
        refuse(tmp_path, changed.content())


def test_metadata_requests_are_checked(data, tmp_path):
    X, y, qid = data
    with sklearn.config_context(enable_metadata_routing=True):
        content = content_of(RankRLS().set_fit_request(sample_weight=True).fit(X, y, qid=qid), tmp_path)
    for requests in (
        [["__class__", {"dict": [["a", True]]}]],
        [["fit", {"dict": [["a", "not a name"]]}]],
        [["fit", 5]],
    ):
        changed = Changed(content)
        changed.state["_metadata_request"] = {"dict": requests}
        refuse(tmp_path, changed.content(), "damaged")


def test_documents_of_other_versions(content, tmp_path):
    def document(**changes):
        changed = Changed(content)
        changed.document.update(changes)
        return changed.content()

    message = refuse(tmp_path, document(format_version=2), "format version 2")
    assert "Update rankrls" in message
    for version in (0, -1, "1", True, None, 1.5):
        refuse(tmp_path, document(format_version=version), "does not exist")
    for bad in (document(format="other"), document(info=None), document(info=[])):
        refuse(tmp_path, bad, "does not describe a rankrls model")
    for text in (b"[]", b"{}", b"\xff\xfe\x00"):
        refuse(tmp_path, archived({**members(content), "model.json": text}), "does not describe|damaged")


def test_read_info_refuses_the_same_files(content, tmp_path):
    path = tmp_path / "bad.rankrls"
    changed = Changed(content)
    changed.document["format_version"] = 9
    for bad in (b"", pickle.dumps(Evil()), content[:200], changed.content()):
        path.write_bytes(bad)
        with pytest.raises(ModelFileError):
            read_info(path)
    assert not PWNED


def test_files_that_cannot_be_opened(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"none\.rankrls"):
        load(tmp_path / "none.rankrls")
    with pytest.raises(IsADirectoryError):
        load(tmp_path)


WATCHED = """
import sys
from rankrls.persistence import ModelFileError, load

load(sys.argv[1])  # what a good file imports has been imported
seen = []
harmless = ("object.", "builtins.id", "sys._getframe", "os.fspath", "marshal.", "code.__new__")
sys.addaudithook(lambda event, args: None if event.startswith(harmless) else seen.append((event, args)))
for path in sys.argv[2:]:
    try:
        load(path)
    except ModelFileError:
        continue
    raise AssertionError(path)
done, paths = seen[:], set(sys.argv[2:])
for event, args in done:
    assert event == "open" and args[0] in paths and args[1] in ("r", "rb"), (event, args)
assert {args[0] for _, args in done} == paths
print("nothing else")
"""


def test_nothing_is_run_imported_or_opened(content, tmp_path):
    """What the interpreter tells an audit hook while hostile files are read: each is opened, and no more."""
    (tmp_path / "good").write_bytes(content)
    paths = []
    for number, (_, node) in enumerate(hostile_nodes()):
        for place in ("kernel", "_kernel_", "cv"):
            changed = Changed(content)
            changed.state[place] = node
            paths.append(tmp_path / f"{place}{number}")
            paths[-1].write_bytes(changed.content())
    for number, node in enumerate(({"function": "os.system"}, {"type": "os.system"}, {"dtype": "os.system"})):
        changed = Changed(content)
        changed.state["kernel"] = node
        paths.append(tmp_path / f"name{number}")
        paths[-1].write_bytes(changed.content())
    paths.append(tmp_path / "pickle")
    paths[-1].write_bytes(archived({**members(content), "0.npy": pickle.dumps(Evil())}))
    command = [sys.executable, "-c", WATCHED, str(tmp_path / "good"), *map(str, paths)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.stdout == "nothing else\n", done.stderr


@pytest.mark.parametrize(
    ("name", "node"),
    [
        ("columns_", []),
        ("columns_", [{"tuple": ["price", "number"]}]),
        ("feature_names_in_", {"objects": ["a"], "shape": [1]}),
        ("imputers_", []),
        ("imputers_", [["price", 1]]),
        ("imputers_", [{"tuple": [["price", "more"], None]}]),
        ("least_", {"dict": []}),
        ("origins_", {"dict": []}),
        ("origins_", {"dict": [["added", {"float": "nan"}]]}),
        ("periods_", {"dict": [["price", ["year"]]]}),
        ("lists_", {"dict": []}),
        ("lists_", {"dict": [["emb", None]]}),
        ("one_hot_", None),
        ("one_hot_", {"object": "sklearn.preprocessing.StandardScaler", "state": {}}),
        ("vectorizers_", {"dict": []}),
        ("vectorizers_", {"dict": [["title", {"dict": [["word", None]]}]]}),
        ("sparse_output_", "yes"),
    ],
    ids=str,
)
def test_a_table_encoder_whose_parts_disagree(name, node, tmp_path):
    table = {
        **{"price": [1.0, 2.0, 4.0, 8.0], "brand": ["a", "a", "b", "b"], "title": ["one two", "two", "one", "two"]},
        **{"added": ["2024-03-01", "2024-03-02", "2024-03-03", "2024-03-04"], "emb": [[1, 2], [1, 3], [0, 2], [5, 5]]},
    }
    encoder = TableEncoder(min_frequency=1, categorical="brand", text="title")
    good = content_of(make_pipeline(encoder, RankRLS()).fit(table, [0, 1, 2, 3]), tmp_path)
    changed = Changed(good)
    changed.root["state"]["steps"][0]["tuple"][1]["state"][name] = node
    refuse(tmp_path, changed.content())
