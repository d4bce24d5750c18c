"""Models stored by an earlier version: each is refused with one sentence that says what to do."""

import pickle
import re
from pathlib import Path
from zipfile import ZipFile

import numpy as np
import pytest
from sklearn.base import clone

import rankrls
from rankrls import InputError, RankRLS, RankRLSCV, load

STORED = Path(__file__).with_name("models_of_version_1.zip")
"""A pickle and a model file of every estimator, each fitted on twelve rows, as format version 1 had them."""


def names(ending):
    with ZipFile(STORED) as archive:
        return [name for name in archive.namelist() if name.endswith(ending)]


def content(name):
    with ZipFile(STORED) as archive:
        return archive.read(name)


def test_every_estimator_is_there():
    estimators = {name for name in rankrls.__all__ if hasattr(getattr(rankrls, name), "fit")}
    for ending in (".pickle", ".rankrls"):
        assert {name.removesuffix(ending) for name in names(ending)} >= estimators


@pytest.mark.filterwarnings("ignore:Trying to unpickle estimator")  # of scikit-learn, inside a pipeline
@pytest.mark.parametrize("name", names(".pickle"))
def test_a_pickle_of_version_1_is_refused(name):
    """By its version, or by Python if the module of its class has another name now."""
    with pytest.raises((InputError, ModuleNotFoundError)) as caught:
        pickle.loads(content(name))
    if isinstance(caught.value, InputError):
        assert re.search(r"format version 1, .* Fit the model again\.$", str(caught.value))
    else:
        assert caught.value.name.startswith("rankrls.")


@pytest.mark.parametrize("name", names(".rankrls"))
def test_a_model_file_of_version_1_is_refused(name, tmp_path):
    path = tmp_path / name
    path.write_bytes(content(name))
    with pytest.raises(InputError, match=r"format version 1, .* Fit the model again\.$") as caught:
        load(path)
    assert caught.value.file == str(path)


def test_a_model_of_a_later_version_needs_an_update():
    state = RankRLS().fit([[1.0], [2.0]], [0, 1]).__getstate__()
    later = {name: value + 1 if name == "_format_version" else value for name, value in state.items()}
    with pytest.raises(InputError, match=r"Update rankrls\.$"):
        RankRLS().__setstate__(later)


def test_pickles_and_clones_of_this_version_are_the_same_models():
    X = np.random.default_rng(0).normal(size=(12, 3))
    model = RankRLSCV().fit(X, X[:, 0], qid=np.repeat(np.arange(4), 3))
    again = pickle.loads(pickle.dumps(model))
    assert vars(again).keys() == vars(model).keys()
    np.testing.assert_array_equal(again.predict(X), model.predict(X))
    unfitted = pickle.loads(pickle.dumps(clone(model)))
    assert unfitted.get_params() == model.get_params()
