"""Public classes carry public names, and what reads a class's module to find things still finds them."""

import importlib
import inspect
import pickle
import re
import subprocess
import sys
import typing

import numpy as np
import pytest

import rankrls
from rankrls.metrics import Measure

PACKAGES = ("comparison", "export", "graph", "inspection", "io", "metrics", "model_selection", "persistence", "plots")


def public_classes():
    for module in (rankrls, *(importlib.import_module(f"rankrls.{name}") for name in (*PACKAGES, "preprocessing"))):
        for name in module.__all__:
            found = getattr(module, name)
            if isinstance(found, type) and found.__name__ == name != "Ranking":  # of rankrls.ranking
                yield pytest.param(module.__name__, found, id=f"{module.__name__}.{name}")


def public_functions():
    for module in (rankrls, *(importlib.import_module(f"rankrls.{name}") for name in (*PACKAGES, "preprocessing"))):
        for name in module.__all__:
            if inspect.isfunction(found := getattr(module, name)):
                yield pytest.param(found, id=f"{module.__name__}.{name}")


def test_there_are_classes():
    assert len(list(public_classes())) > 45
    assert len(list(public_functions())) > 45


@pytest.mark.parametrize("function", list(public_functions()))
def test_inspect_finds_functions_and_their_annotations(function):
    assert f"def {function.__name__}(" in inspect.getsource(function)
    assert typing.get_type_hints(function).keys() >= inspect.signature(function).parameters.keys()


@pytest.mark.parametrize(("module", "cls"), list(public_classes()))
def test_a_class_carries_its_public_module(module, cls):
    assert cls.__module__ == module
    assert getattr(importlib.import_module(module), cls.__qualname__) is cls
    assert pickle.loads(pickle.dumps(cls)) is cls


@pytest.mark.parametrize(("module", "cls"), list(public_classes()))
def test_annotations_are_evaluated_where_they_were_written(module, cls):
    hints = typing.get_type_hints(cls)
    assert hints.keys() >= vars(cls).get("__annotations__", {}).keys()
    assert not any(isinstance(hint, str | typing.ForwardRef) for hint in hints.values())


def test_annotations_of_a_dataclass():
    hints = typing.get_type_hints(Measure)
    assert hints["name"] is str
    assert hints["k"] == int | None
    assert typing.get_type_hints(Measure.__init__)["relevant"] == float | None


@pytest.mark.parametrize(("module", "cls"), list(public_classes()))
def test_inspect_finds_methods_and_signatures(module, cls):
    assert inspect.getmodule(cls).__name__ == module
    own = [found for name, found in vars(cls).items() if inspect.isfunction(found) and not name.startswith("__")]
    for method in own:
        assert f"def {method.__name__}(" in inspect.getsource(method)
        assert inspect.getfile(method) != inspect.getfile(cls)
    with pytest.raises(OSError, match="could not find class|not available"):  # and nothing wrong
        inspect.getsource(cls)


def test_the_examples_of_a_class_are_found_in_its_file():
    home = importlib.import_module(rankrls.RankRLS._candidate.__module__)
    assert home.__test__["RankRLS"] is rankrls.RankRLS


def test_pickles_and_reprs_name_no_file():
    model = rankrls.RankRLS().fit(np.eye(3), [1, 0, 2])
    assert repr(rankrls.RankRLS) == "<class 'rankrls.RankRLS'>"
    pickled = pickle.dumps(model, protocol=4)
    values = re.sub(rb"rankrls\.models\.(inputs|families)\.", b"", pickled)  # values inside have no public class
    assert b"rankrls.models" not in values
    np.testing.assert_array_equal(pickle.loads(pickled).coef_, model.coef_)


def test_a_class_is_public_by_whatever_way_it_is_imported():
    home = rankrls.RankRLS._candidate.__module__
    code = f"import {home} as home; print(home.RankRLS.__module__)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "rankrls\n"
