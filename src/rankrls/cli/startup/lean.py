"""The imports of a command, which are most of what a small one takes.

Scikit-learn imports ``scipy.stats``, ``scipy.interpolate`` and pandas, which commands seldom use: by themselves they
take as long as the rest.
"""

from __future__ import annotations

import gc
import sys
from importlib import import_module
from types import ModuleType
from typing import Any

_SELDOM = ("scipy.stats", "scipy.interpolate")
_ABSENT = "pandas"


class _Later(ModuleType):
    """Stands for a module until something of it is used; while others are imported, they get what stands for a name."""

    importing = True

    def __getattr__(self, name: str) -> Any:
        if self.importing:
            if name.startswith("__"):  # whether it is a package
                raise AttributeError(name)
            return _Name(self.__name__, name)
        if sys.modules.get(self.__name__) is self:
            del sys.modules[self.__name__]
        return getattr(import_module(self.__name__), name)


class _Name:
    """Stands for a function or a class, which are there when they are called or asked for something."""

    def __init__(self, module: str, name: str) -> None:
        self._where = module, name

    def _found(self) -> Any:
        return getattr(import_module(self._where[0]), self._where[1])

    def __call__(self, *args: Any, **options: Any) -> Any:
        return self._found()(*args, **options)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._found(), name)


def imported(name: str) -> ModuleType:
    """A module, imported without looking for garbage, of which imports make none."""
    collects = gc.isenabled()
    gc.disable()
    try:
        _import_scikit_learn()
        return import_module(name)
    finally:
        if collects:
            gc.enable()


def _import_scikit_learn() -> None:
    """Import scikit-learn's pipelines, with some modules left for their first use and without looking for pandas.

    scikit-learn works without pandas, and looks for it again where it is given a data frame. A process that has any of
    them already is left as it is.
    """
    if not {"sklearn", *_SELDOM, _ABSENT}.isdisjoint(sys.modules):
        return
    later = [_Later(name) for name in _SELDOM]
    sys.modules.update({module.__name__: module for module in later})
    sys.modules[_ABSENT] = None  # type: ignore[assignment]  # importing it is then an ImportError
    try:
        import sklearn.pipeline  # noqa: F401
    finally:
        del sys.modules[_ABSENT]
        for module in later:
            module.importing = False
