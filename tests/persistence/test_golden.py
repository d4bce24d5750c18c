"""Models stored by every format version so far are read, and predict what they predicted then."""

import json
import re
from pathlib import Path

import numpy as np
import pytest
from tests.refusals import Refusal

from rankrls import load
from rankrls.persistence import FORMAT_VERSION, read_info
from rankrls.persistence._kinds import public_object
from rankrls.persistence._registry import FUNCTIONS, KINDS

GOLDEN = Path(__file__).parent.parent / "golden"
MODELS = sorted(path.stem for path in GOLDEN.glob("model_v*.rankrls"))


def stored(name):
    """The file as it was written, and what was expected of it."""
    return GOLDEN / f"{name}.rankrls", json.loads((GOLDEN / f"{name}.json").read_text())


def numbers(values):
    return np.array(
        [[float.fromhex(v) for v in row] if isinstance(row, list) else float.fromhex(row) for row in values]
    )


def test_every_version_has_its_models():
    for version in range(1, FORMAT_VERSION + 1):
        assert {f"model_v{version}_linear", f"model_v{version}_rbf"} <= set(MODELS)


def test_every_estimator_has_a_stored_model():
    """A new one: add it to tests/golden/make_models.py and run that."""
    found = {json.loads((GOLDEN / f"{name}.json").read_text())["estimator"] for name in MODELS}
    assert {name.rpartition(".")[2] for name, kind in KINDS.items() if kind.is_model} == found


def test_stored_models_are_small():
    assert sum(path.stat().st_size for path in GOLDEN.iterdir()) < 200_000


@pytest.mark.parametrize("name", MODELS)
def test_predicts_identically(name):
    path, expected = stored(name)
    model = load(path)
    assert type(model).__name__ == expected["estimator"]
    final = model[-1] if expected["estimator"] == "Pipeline" else model
    for attribute, value in expected["chosen"].items():
        assert getattr(final, attribute) == float.fromhex(value)
    predicted = model.predict(numbers(expected["inputs"])).ravel()
    wanted = numbers(expected["predictions"])
    np.testing.assert_allclose(predicted, wanted, rtol=1e-12, atol=1e-12)
    assert np.ptp(wanted) > 0.01
    if getattr(model, "coef_", np.eye(2)).ndim == 1:
        np.testing.assert_array_equal(predicted[:5], wanted[:5])  # unit rows: exact on every machine
        np.testing.assert_array_equal(model.coef_, wanted[:5])


@pytest.mark.parametrize("name", MODELS)
def test_still_says_where_it_comes_from(name):
    path, expected = stored(name)
    info = read_info(path)
    assert info["format_version"] == int(name.split("_")[1][1:])
    assert info["n_queries"] == expected["n_queries"]
    assert info["n_features"] == 5
    assert info["versions"]["rankrls"]
    assert (info["selection"] is not None) == expected["selected"]


def test_a_stored_model_goes_on_learning():
    model = load(GOLDEN / "model_v1_linear.rankrls")
    before = model.coef_.copy()
    model.partial_fit(np.eye(5), [1.0, 0.0, 0.0, 2.0, 0.0], qid=["new"] * 5)
    assert model.n_queries_ == 7
    assert not np.array_equal(model.coef_, before)
    with Refusal("'q0'", "seen", parameter="qid"):
        model.partial_fit(np.eye(5), [1.0, 0.0, 0.0, 2.0, 0.0], qid=["q0"] * 5)


@pytest.mark.parametrize("name", KINDS)
def test_registered_classes_are_where_they_say(name):
    assert KINDS[name].cls.__name__ == name.rpartition(".")[2]


@pytest.mark.parametrize("name", FUNCTIONS)
def test_registered_functions_are_where_they_say(name):
    assert public_object(name).__name__ == name.rpartition(".")[2]


@pytest.mark.parametrize("name", MODELS)
def test_files_name_no_module_of_the_inside(name):
    """A class may move to another file, and the models that name it stay readable."""
    text = (GOLDEN / f"{name}.rankrls").read_bytes().decode("latin-1")
    for found in re.findall(r'"object":"([^"]*)"', text):
        assert "._" not in found
        assert not found.startswith(("rankrls.models", "rankrls.problems", "rankrls.greedy", "rankrls.equations"))


@pytest.mark.parametrize("name", MODELS)
def test_every_fitted_attribute_has_a_form(name):
    """What an estimator learns is checked when it is loaded; a new attribute needs a form in the registry."""
    model = load(GOLDEN / f"{name}.rankrls")
    final = model[-1] if name.endswith("pipeline") else model
    forms = {key.rstrip("?") for key in KINDS[f"rankrls.{type(final).__name__}"].forms}
    arrays = {key for key, value in vars(final).items() if isinstance(value, np.ndarray)}
    assert arrays - set(final.get_params()) <= forms
