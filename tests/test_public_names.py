"""What reads the annotations of public functions finds them."""

import importlib
import inspect
import typing

import pytest

import rankrls

PACKAGES = ("comparison", "export", "inspection", "io", "metrics", "model_selection", "persistence", "plots")


def public_functions():
    for module in (rankrls, *(importlib.import_module(f"rankrls.{name}") for name in (*PACKAGES, "preprocessing"))):
        for name in module.__all__:
            if inspect.isfunction(found := getattr(module, name)):
                yield pytest.param(found, id=f"{module.__name__}.{name}")


@pytest.mark.parametrize("function", list(public_functions()))
def test_inspect_finds_functions_and_their_annotations(function):
    assert f"def {function.__name__}(" in inspect.getsource(function)
    assert typing.get_type_hints(function).keys() >= inspect.signature(function).parameters.keys()
