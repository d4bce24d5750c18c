"""Models stored by every format version so far are read, and predict what they predicted then."""

import importlib
import json
from pathlib import Path

import numpy as np
import pytest

from rankrls import load
from rankrls.persistence import FORMAT_VERSION, read_info
from rankrls.persistence._trusted import TRUSTED

GOLDEN = Path(__file__).parent.parent / "golden"
MODELS = sorted(GOLDEN.glob("model_v*.skops"))


def numbers(values):
    return np.array(
        [[float.fromhex(v) for v in row] if isinstance(row, list) else float.fromhex(row) for row in values]
    )


def test_every_version_has_its_models():
    names = {path.stem for path in MODELS}
    for version in range(1, FORMAT_VERSION + 1):
        assert {f"model_v{version}_linear", f"model_v{version}_rbf"} <= names


@pytest.mark.parametrize("path", MODELS, ids=lambda p: p.stem)
def test_predicts_identically(path):
    expected = json.loads(path.with_suffix(".json").read_text())
    model = load(path)
    assert type(model).__name__ == expected["estimator"]
    assert model.alpha_ == float.fromhex(expected["alpha"])
    predicted = model.predict(numbers(expected["inputs"]))
    wanted = numbers(expected["predictions"])
    np.testing.assert_allclose(predicted, wanted, rtol=1e-12, atol=1e-12)
    if "linear" in path.stem:
        np.testing.assert_array_equal(predicted[:5], wanted[:5])  # unit rows: exact on every machine
        np.testing.assert_array_equal(model.coef_, wanted[:5])


@pytest.mark.parametrize("path", MODELS, ids=lambda p: p.stem)
def test_still_says_where_it_comes_from(path):
    info = read_info(path)
    assert info["format_version"] == int(path.stem.split("_")[1][1:])
    assert info["n_queries"] == 6
    assert info["n_features"] == 5
    assert info["versions"]["rankrls"]
    assert (info["selection"] is not None) == (info["estimator"] == "RankRLSCV")


def test_a_stored_model_goes_on_learning():
    model = load(GOLDEN / "model_v1_linear.skops")
    before = model.coef_.copy()
    model.partial_fit(np.eye(5), [1.0, 0.0, 0.0, 2.0, 0.0], qid=["new"] * 5)
    assert model.n_queries_ == 7
    assert not np.array_equal(model.coef_, before)
    with pytest.raises(ValueError, match="'q0' has been seen"):
        model.partial_fit(np.eye(5), [1.0, 0.0, 0.0, 2.0, 0.0], qid=["q0"] * 5)


@pytest.mark.parametrize("name", TRUSTED)
def test_trusted_names_are_where_they_say(name):
    module, _, cls = name.rpartition(".")
    found = getattr(importlib.import_module(module), cls)
    assert f"{found.__module__}.{found.__qualname__}" == name  # what skops writes
