"""Reading a damaged or hostile file is one ValueError that names it, and runs nothing."""

import io
import json
import os
import pickle
import struct
import zipfile

import numpy as np
import pytest
import skops.io
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse
from sklearn.linear_model import Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

from rankrls import RankRLS, RankRLSCV, load, save
from rankrls.persistence import ModelFileError, read_info
from rankrls.preprocessing import QueryMinMaxScaler

PWNED = []


def pwn(*args, **kwargs):
    PWNED.append(args)


@pytest.fixture(scope="module")
def model():
    rng = np.random.default_rng(3)
    X, qid = rng.normal(size=(12, 3)), np.repeat(np.arange(4), 3)
    return RankRLSCV(kernel="rbf").fit(sparse.csr_array(X), rng.normal(size=12), qid=qid)


@pytest.fixture(scope="module")
def content(model, tmp_path_factory):
    path = tmp_path_factory.mktemp("good") / "model.skops"
    save(model, path)
    return path.read_bytes()


def members(content):
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        return {m.filename: archive.read(m) for m in archive.infolist()}


def archived(parts, compression=zipfile.ZIP_STORED):
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", compression) as archive:
        for name, data in parts.items():
            archive.writestr(name, data)
    return out.getvalue()


def refuse(tmp_path, content, match):
    """The file is refused, in one line that names it; nothing that it says has run."""
    path = tmp_path / "bad.skops"
    path.write_bytes(content)
    with pytest.raises(ModelFileError, match=match) as caught:
        load(path)
    assert isinstance(caught.value, ValueError)
    assert str(caught.value).startswith(f"{path}: ")
    assert "\n" not in str(caught.value)
    assert not PWNED
    return str(caught.value)


def with_schema(content, change):
    parts = members(content)
    schema = json.loads(parts["schema.json"])
    changed = change(schema)
    parts["schema.json"] = json.dumps(schema if changed is None else changed).encode()
    return archived(parts)


def function(module, name):
    return {"__class__": name, "__module__": module, "__loader__": "FunctionNode", "__id__": 10**15}


def text(value):
    return {"__class__": "str", "__module__": "builtins", "__loader__": "JsonNode", "content": json.dumps(value)}


def sequence(loader, cls, items):
    return {"__class__": cls, "__module__": "builtins", "__loader__": loader, "content": items}


def mapping(entries, key_type="str"):
    types = [{"__class__": key_type, "__module__": "builtins", "__loader__": "TypeNode"} for _ in entries]
    return {
        **sequence("DictNode", "dict", entries),
        "key_types": sequence("ListNode", "list", types),
    }


def attack_nodes():
    """Ways to have something called or imported while a schema is turned into objects."""
    arguments = sequence("TupleNode", "tuple", [text("echo pwned > pwned")])
    yield "os.system", function("os", "system")
    yield "builtins.eval", function("builtins", "eval")
    yield "posix.system", {**function("posix", "system"), "__loader__": "TypeNode"}
    yield "numpy.absolute", function("numpy", "absolute")  # skops would trust it
    yield (
        "functools.partial",
        {
            "__class__": "partial",
            "__module__": "functools",
            "__loader__": "PartialNode",
            "content": {
                "func": function("os", "system"),
                "args": arguments,
                "kwds": mapping({}),
                "namespace": mapping({}),
            },
        },
    )
    yield (
        "os.system",
        {"__class__": "system", "__module__": "os", "__loader__": "ConstructorFromReduceNode", "content": arguments},
    )
    yield "os.system", {"__class__": "system", "__module__": "os", "__loader__": "ObjectNode"}
    yield (
        "operator.methodcaller",
        {"__class__": "methodcaller", "__module__": "operator", "__loader__": "OperatorFuncNode", "attrs": arguments},
    )
    yield (
        "subprocess.Popen",
        {**sequence("ListNode", "Popen", [text("true")]), "__module__": "subprocess"},
    )
    yield "subprocess.Popen", {**sequence("TupleNode", "Popen", []), "__module__": "subprocess"}
    yield "builtins.eval", mapping({"__import__('os').system('true')": text(1)}, key_type="eval")
    yield "builtins.exec", {**mapping({}), "__class__": "exec"}
    yield "builtins.map", sequence("ListNode", "map", [])
    yield (
        "sklearn.linear_model._ridge.Ridge",
        {
            "__class__": "Ridge",
            "__module__": "sklearn.linear_model._ridge",
            "__loader__": "ObjectNode",
        },
    )
    yield (
        "numpy.random.mtrand.RandomState",
        {
            "__class__": "RandomState",
            "__module__": "numpy.random.mtrand",
            "__loader__": "RandomStateNode",
            "content": mapping({}),
        },
    )
    yield "builtins.str", {**text("x"), "__loader__": "NoSuchNode"}


@pytest.mark.parametrize(("name", "node"), list(attack_nodes()), ids=lambda v: v if isinstance(v, str) else "node")
@pytest.mark.parametrize("place", ["parameter", "list", "object array"])
def test_types_that_are_not_trusted(name, node, place, content, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(os, "system", pwn)

    def put(schema):
        inside = {
            "parameter": node,
            "list": sequence("ListNode", "list", [text(1), node]),
            "object array": {
                "__class__": "ndarray",
                "__module__": "numpy",
                "__loader__": "NdArrayNode",
                "type": "json",
                "content": [node],
                "shape": sequence("TupleNode", "tuple", [text(1)]),
            },
        }[place]
        schema["content"]["content"]["kernel"] = inside

    message = refuse(tmp_path, with_schema(content, put), "not among the types that a model file may hold")
    assert name in message
    assert "at kernel" in message
    assert not (tmp_path / "pwned").exists()


@pytest.mark.parametrize(("name", "node"), list(attack_nodes()), ids=lambda v: v if isinstance(v, str) else "node")
def test_a_root_that_is_no_model(name, node, content, tmp_path, monkeypatch):
    monkeypatch.setattr(os, "system", pwn)
    refuse(tmp_path, with_schema(content, lambda schema: node), "which is no model of rankrls")


def test_a_root_that_names_a_model_with_another_loader(content, tmp_path):
    fake = {"__class__": "RankRLS", "__module__": "rankrls.models.rankrls", "__loader__": "FunctionNode"}
    refuse(tmp_path, with_schema(content, lambda schema: fake), "not among the types")


def test_skops_files_of_other_objects(tmp_path):
    for other in (Ridge().fit([[1.0], [2.0]], [1, 2]), FunctionTransformer(os.system), [1, 2], os.system):
        refuse(tmp_path, skops.io.dumps(other), "a zip archive without 'rankrls.json'")
        parts = {**members(skops.io.dumps(other)), "rankrls.json": header()}
        refuse(tmp_path, archived(parts), "which is no model of rankrls")


def header(**changes):
    return json.dumps({"format": "rankrls model", "format_version": 1, "info": {}, **changes})


class Evil:
    def __reduce__(self):
        return pwn, ("pickle",)


def test_a_pickle(tmp_path):
    for protocol in (2, 4, 5):
        refuse(tmp_path, pickle.dumps(Evil(), protocol), "pickle")
    refuse(tmp_path, pickle.dumps(Evil(), 0), "not a model file")


def test_a_pickle_inside(content, tmp_path):
    parts = members(content)
    name = next(n for n in parts if n.endswith(".npy"))
    refuse(tmp_path, archived({**parts, name: pickle.dumps(Evil())}), "damaged")
    objects = io.BytesIO()
    np.save(objects, np.array([Evil()], dtype=object), allow_pickle=True)
    refuse(tmp_path, archived({**parts, name: objects.getvalue()}), "holds object, not numbers or text")


def test_what_is_no_archive(tmp_path):
    refuse(tmp_path, b"", "the file is empty")
    refuse(tmp_path, b"hello world\n" * 50, "not a model file")
    refuse(tmp_path, b"PK\x03\x04" + os.urandom(500), "truncated or damaged")
    refuse(tmp_path, b"PK\x05\x06" + bytes(18), "without 'rankrls.json'")


def test_truncated_anywhere(content, tmp_path):
    for length in {*range(0, len(content), 997), len(content) - 1, len(content) - 22, len(content) - 23, 1, 2, 4, 30}:
        refuse(tmp_path, content[:length], "empty|not a model file|truncated|damaged|without|claims")


def test_longer_than_it_was(content, tmp_path):
    """A comment behind an archive, or bytes before it, change nothing in it; what loads is the model."""
    path = tmp_path / "m.skops"
    for changed in (content + b"\n", b"#!x\n" + content):
        path.write_bytes(changed)
        try:
            loaded = load(path)
        except ModelFileError:
            continue
        assert isinstance(loaded, RankRLSCV)


@given(st.data())
def test_flipped_bytes_never_do_anything_else_than_be_refused_or_read(content, tmp_path_factory, data):
    changed = bytearray(content)
    for _ in range(data.draw(st.integers(1, 4))):
        changed[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
    path = tmp_path_factory.getbasetemp() / "flipped.skops"
    path.write_bytes(changed)
    try:
        loaded = load(path)  # a byte of a name or a time stamp in the archive's directory matters to nobody
    except ModelFileError:
        return
    assert isinstance(loaded, RankRLSCV)


def test_bombs(content, tmp_path):
    parts = members(content)
    refuse(tmp_path, archived(parts, zipfile.ZIP_DEFLATED), "compressed or encrypted")
    # a directory that claims more bytes than there are
    stored = bytearray(content)
    entry = stored.rindex(b"PK\x01\x02")
    stored[entry + 20 : entry + 28] = struct.pack("<II", 2**31, 2**31)
    refuse(tmp_path, bytes(stored), "claims to hold|damaged|truncated")
    # an array that claims more numbers than there are
    name = next(n for n in parts if n.endswith(".npy"))
    for shape in ("(1000000000000,)", "(10, -2)", "(3, 3)", "()"):
        fake = io.BytesIO()
        text_header = f"{{'descr': '<f8', 'fortran_order': False, 'shape': {shape}, }}".ljust(117) + "\n"
        fake.write(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(text_header)) + text_header.encode() + bytes(16))
        refuse(tmp_path, archived({**parts, name: fake.getvalue()}), "claims the shape|damaged")


def test_foreign_and_doubled_members(content, tmp_path):
    parts = members(content)
    for name in ("../../etc/passwd", "/abs", "a.npz", "sub/1.npy", "x.py", "code.pyc"):
        refuse(tmp_path, archived({**parts, name: b"x"}), "which no rankrls model has")
    out = io.BytesIO(content)
    with zipfile.ZipFile(out, "a") as archive, pytest.warns(UserWarning, match="Duplicate name"):
        archive.writestr("schema.json", "{}")
    refuse(tmp_path, out.getvalue(), "two members of the same name")
    del parts["schema.json"]
    refuse(tmp_path, archived(parts), r"without 'schema\.json'")


def test_nested_too_deeply(content, tmp_path):
    def deep(levels):
        node = text(1)
        for _ in range(levels):
            node = sequence("ListNode", "list", [node])
        return lambda schema: schema["content"]["content"].update(kernel=node)

    refuse(tmp_path, with_schema(content, deep(60)), "nested too deeply")
    parts = {**members(content), "schema.json": b"[" * 200_000}
    refuse(tmp_path, archived(parts), "damaged")
    refuse(tmp_path, archived({**parts, "rankrls.json": b"[" * 200_000}), "damaged")


@pytest.mark.parametrize(
    "schema",
    [
        [],
        {},
        "text",
        None,
        {"__class__": 1, "__module__": "a", "__loader__": "b"},
        {"__class__": "RankRLS", "__module__": "rankrls.models.rankrls", "__loader__": "ObjectNode"},
        {"__class__": "RankRLS", "__module__": "rankrls.models.rankrls", "__loader__": "ObjectNode", "content": 3},
        {"__class__": "Pipeline", "__module__": "sklearn.pipeline", "__loader__": "ObjectNode", "content": mapping({})},
        {
            "__class__": "Pipeline",
            "__module__": "sklearn.pipeline",
            "__loader__": "ObjectNode",
            "content": mapping({"steps": sequence("ListNode", "list", [])}),
            "protocol": 2,
        },
    ],
    ids=repr,
)
def test_schemas_that_skops_did_not_write(schema, content, tmp_path):
    parts = {**members(content), "schema.json": json.dumps(schema)}
    refuse(tmp_path, archived(parts), "damaged|no model of rankrls")


def test_structures_where_values_should_be(content, tmp_path):
    def change(schema):
        schema["content"]["content"]["kernel"] = {**text(1), "content": "[1, [2]]"}

    refuse(tmp_path, with_schema(content, change), "a structure where a single value")

    def keys(schema):
        schema["content"]["key_types"]["content"].pop()

    refuse(tmp_path, with_schema(content, keys), "keys and key types differ")

    def cycle(schema):
        attributes = schema["content"]["content"]
        attributes["kernel"] = sequence("ListNode", "list", [{**mapping({}), "__id__": schema["content"]["__id__"]}])

    refuse(tmp_path, with_schema(content, cycle), "damaged")


def test_packed_values_are_checked(content, tmp_path):
    def change(what):
        def apply(schema):
            packed = schema["content"]["content"]["X_fit_"]["content"]
            if what == "shape":
                packed["columns"] = text(1)  # the indices then point outside
            elif what == "mark":
                packed["rankrls"] = text("no such thing")
            else:
                packed["indptr"] = packed["indices"]

        return apply

    for what in ("shape", "mark", "indptr"):
        refuse(tmp_path, with_schema(content, change(what)), "damaged")


def test_what_compiled_loops_read_is_checked(tmp_path):
    rng = np.random.default_rng(3)
    path = tmp_path / "m.skops"
    save(make_pipeline(QueryMinMaxScaler(), RankRLS()).fit(rng.normal(size=(12, 3)), rng.normal(size=12)), path)
    good = path.read_bytes()

    def change(schema):
        steps = schema["content"]["content"]["steps"]["content"]
        scaler = steps[0]["content"][1]["content"]["content"]
        scaler["n_features_in_"] = text(5000)

    refuse(tmp_path, with_schema(good, change), "statistics do not fit")


def test_queries_are_checked(tmp_path):
    rng = np.random.default_rng(3)
    path = tmp_path / "m.skops"
    save(RankRLS().fit(rng.normal(size=(12, 3)), rng.normal(size=12), qid=np.repeat(np.arange(4), 3)), path)
    good = path.read_bytes()
    for ids in ("[1, 2, 3]", "[1, 1, 2, 3]", "[1, 2, 3, {}]", "5"):

        def change(schema, ids=ids):
            schema["content"]["content"]["_seen"]["content"]["ids"] = text(ids)

        refuse(tmp_path, with_schema(good, change), "damaged")


def test_headers(content, tmp_path):
    parts = members(content)
    refuse(
        tmp_path,
        archived({**parts, "rankrls.json": header(format_version=2)}),
        "format version 2; rankrls .* reads versions up to 1. Update rankrls",
    )
    for version in (0, -1, "1", True, None, 1.5):
        refuse(tmp_path, archived({**parts, "rankrls.json": header(format_version=version)}), "does not exist")
    for bad in (b"[]", b"{}", header(format="other"), header(info=None)):
        refuse(tmp_path, archived({**parts, "rankrls.json": bad}), "does not describe a rankrls model")
    refuse(tmp_path, archived({**parts, "rankrls.json": b"\xff\xfe\x00"}), "damaged")


def test_read_info_refuses_the_same_files(content, tmp_path):
    path = tmp_path / "bad.skops"
    parts = members(content)
    for bad in (
        b"",
        pickle.dumps(Evil()),
        content[:200],
        archived({**parts, "rankrls.json": header(format_version=9)}),
    ):
        path.write_bytes(bad)
        with pytest.raises(ModelFileError):
            read_info(path)
    assert not PWNED


def test_files_that_cannot_be_opened(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"none\.skops"):
        load(tmp_path / "none.skops")
    with pytest.raises(IsADirectoryError):
        load(tmp_path)
