"""A file that is damaged or hostile is refused by one error that names it, and runs nothing; or it works."""

import io
import json
import pickle
import subprocess
import sys
import tracemalloc
import zipfile

import numpy as np
import pytest
from fuzzing.model_files import DOCUMENT, Changed, archived, header, hostile_nodes, members, npy
from hypothesis import given, strategies as st
from scipy import sparse

from rankrls import InputError, RankBoost, RankRLS, RankRLSCV, load, save
from rankrls.persistence import read_info


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("models")


@pytest.fixture(scope="module")
def content(folder):
    rng = np.random.default_rng(3)
    X, y, qid = sparse.csr_array(rng.normal(size=(12, 3))), rng.normal(size=12), np.repeat(np.arange(4), 3)
    save(RankRLSCV(kernel="rbf").fit(X, y, qid=qid), folder / "good", provenance={"columns": {"label": "grade"}})
    return (folder / "good").read_bytes()


def refuse(folder, content, *words):
    """The file is refused, in one line that names it."""
    path = folder / "bad"
    path.write_bytes(content)
    for read in (load, read_info):
        with pytest.raises(InputError) as caught:
            read(path)
        text = str(caught.value)
        assert caught.value.file == str(path)
        assert text.startswith(f"{path}: ")
        assert "\n" not in text
        assert len(text) < 1000
        assert all(word in text for word in words), text


@pytest.mark.parametrize("node", [*hostile_nodes()], ids=lambda node: node["object"])
@pytest.mark.parametrize("place", ["parameter", "list", "root"])
def test_classes_that_are_not_listed(node, place, content, folder, monkeypatch):
    monkeypatch.chdir(folder)
    changed = Changed(content)
    if place == "root":
        changed.document["model"] = node
    else:
        changed.state["kernel"] = node if place == "parameter" else [1, node]
    refuse(folder, changed.content(), "not among the classes")
    assert not (folder / "pwned").exists()


@pytest.mark.parametrize(
    "node",
    [
        {"float": "1.0"},
        {"tuple": "ab"},
        {"dict": [["a", 1]]},
        {"objects": [1, 2], "shape": [3]},
        {"objects": [], "shape": [10**18, 0, 10**18]},
        {"array": "no.npy"},
        {"array": ["0.npy"]},
        {"csr": [1.0, 2.0, 3.0], "shape": [1, 1]},
        {"object": "RankRLS"},
        {"object": "Kernel", "state": {"name": "rbf", "evil": 1}},
        {"object": "Measure", "state": {"name": "no measure"}},
        {"py/object": "os.system"},
        {},
    ],
    ids=json.dumps,
)
def test_nodes_that_save_did_not_write(node, content, folder):
    changed = Changed(content)
    changed.state["kernel"] = node
    refuse(folder, changed.content())


@pytest.mark.parametrize("name", ["__class__", "__dict__", "predict", "features_", "a b"])
def test_attributes_that_no_model_has(name, content, folder):
    changed = Changed(content)
    changed.state[name] = "text"
    if name != "features_":
        refuse(folder, changed.content(), "not an attribute")


@pytest.mark.parametrize("part", ["format_version", "created", "versions", "given", "model", "format"])
def test_a_document_with_a_part_that_is_missing_or_something_else(part, content, folder):
    changed = Changed(content)
    changed.document[part] = [1]
    if part not in ("created", "versions"):  # which are only shown
        refuse(folder, changed.content())
    del changed.document[part]
    refuse(folder, changed.content())


@pytest.mark.parametrize("value", ["[" * 100_000, '{"a":' * 5000, "9" * 5000, '"\\ud8"', "NaN", "1e999", "null", ""])
def test_documents_that_are_not_plain_json(value, content, folder):
    refuse(folder, archived(members(content) | {DOCUMENT: value.encode()}))


def test_every_array_is_named_once(content, folder):
    changed = Changed(content)
    node = changed.state["dual_coef_"]
    changed.state["more"] = node
    refuse(folder, changed.content())


@pytest.mark.parametrize(
    "member",
    [
        b"",
        b"text",
        pickle.dumps([1, 2]),
        header(descr="'|O'", data=pickle.dumps([1])),
        header(shape="(10**9,)"),
        header(shape="(1000000000000,)", data=b"0" * 16),
        header(shape="(3,)", data=b"0" * 16),
        header(shape="(1,)", data=b"0" * 16),
        header(shape="(-1,)", data=b"0" * 16),
        header(descr="'<U99999999'", shape="()", data=b"0" * 16),
        header(descr="[('a', '<f8')]", data=b"0" * 16),
        header(shape="(" * 500, data=b"0" * 16),
        npy(np.full(12, np.nan)),
        npy(np.ones(11)),
        npy(np.ones((12, 2, 2))),
    ],
    ids=range(15),
)
def test_arrays_that_are_none_or_do_not_fit(member, content, folder):
    changed = Changed(content)
    changed.parts[changed.state["dual_coef_"]["array"]] = member
    refuse(folder, changed.content())


def test_what_compiled_loops_read_is_checked(content, folder):
    for part, value in ((1, 3), (1, -1), (2, 100), (2, -1)):
        changed = Changed(content)
        name = changed.state["X_fit_"]["csr"][part]["array"]
        array = changed.array(name)
        array[-1] = value
        changed.parts[name] = npy(array)
        refuse(folder, changed.content())
    rng = np.random.default_rng(0)
    save(RankBoost(5).fit(rng.normal(size=(20, 3)), rng.normal(size=20)), folder / "boost")
    for value in (3, -4, 2**40):
        changed = Changed((folder / "boost").read_bytes())
        name = changed.state["features_"]["array"]
        changed.parts[name] = npy(np.full_like(changed.array(name), value))
        refuse(folder, changed.content())


def test_what_is_no_archive(content, folder):
    refuse(folder, b"")
    refuse(folder, b"text")
    refuse(folder, pickle.dumps({"a": 1}))
    for size in (10, 500, len(content) // 2, len(content) - 1):
        refuse(folder, content[:size])
    refuse(folder, archived(members(content), zipfile.ZIP_DEFLATED), "compressed")
    refuse(folder, archived({"evil.py": b"", **members(content)}))
    refuse(folder, archived({name: part for name, part in members(content).items() if name != DOCUMENT}))
    for path in (folder / "none", folder):
        with pytest.raises(OSError, match=str(path)):
            load(path)


def test_bombs(content, folder):
    """What claims to be large takes no memory."""
    bomb = io.BytesIO()
    with zipfile.ZipFile(bomb, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("0.npy", bytes(100_000_000))
        archive.writestr(DOCUMENT, members(content)[DOCUMENT])
    changed = Changed(content)
    changed.state["n_features_in_"] = 10**12
    wide = Changed(content)
    wide.state["X_fit_"]["shape"][1] = wide.state["n_features_in_"] = 10**12
    tracemalloc.start()
    for bad in (bomb.getvalue(), changed.content(), wide.content()):
        refuse(folder, bad)
    assert tracemalloc.get_traced_memory()[1] < 50_000_000
    tracemalloc.stop()


@given(place=st.integers(0, 10**6), value=st.integers(1, 255))
def test_a_flipped_byte_is_refused_or_changes_nothing(place, value, content, folder):
    damaged = bytearray(content)
    damaged[place % len(content)] ^= value
    path = folder / "flipped"
    path.write_bytes(bytes(damaged))
    X = np.random.default_rng(0).normal(size=(4, 3))
    try:
        model = load(path)
    except InputError:
        return
    np.testing.assert_array_equal(model.predict(X), load(folder / "good").predict(X))


def test_nothing_is_run_imported_or_opened(content, folder):
    """Under an audit hook: after a first file, loading opens that file and does nothing else."""
    program = """
import sys
from rankrls import load
good, bad = sys.argv[1:]
load(good)
seen = []
sys.addaudithook(lambda event, given: seen.append((event, given)))
for path in (good, bad):
    try:
        load(path)
    except ValueError:
        pass
found = {e for e, g in seen if e.startswith(("import", "exec", "os.", "subprocess", "socket", "pickle", "ctypes"))}
opened = {g[0] for e, g in seen if e == "open"}
print(sorted(found), sorted(opened - {good, bad}))
"""
    changed = Changed(content)
    changed.state["kernel"] = next(hostile_nodes())
    (folder / "bad").write_bytes(changed.content())
    given = [sys.executable, "-c", program, str(folder / "good"), str(folder / "bad")]
    done = subprocess.run(given, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[] []"


@pytest.mark.parametrize("n", [1, 5])
def test_a_linear_model_of_other_features(n, folder):
    save(RankRLS().fit(np.eye(4), [1, 2, 3, 4]), folder / "linear")
    changed = Changed((folder / "linear").read_bytes())
    changed.state["n_features_in_"] = n
    refuse(folder, changed.content())
