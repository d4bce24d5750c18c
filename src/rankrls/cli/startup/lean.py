"""The imports of a command, which are most of what a small one takes.

Scikit-learn imports ``scipy.stats`` and pandas, which commands seldom use: by themselves they take as long as the rest.
"""

from __future__ import annotations

import gc
import sys
from importlib import import_module
from types import ModuleType
from typing import Any

__all__ = ["imported"]

_SELDOM = "scipy.stats"
_ABSENT = "pandas"


class _Later(ModuleType):
    """Stands for a module until something of it is asked for."""

    def __getattr__(self, name: str) -> Any:
        if sys.modules.get(self.__name__) is self:
            del sys.modules[self.__name__]
        return getattr(import_module(self.__name__), name)


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
    """Import scikit-learn's base, with ``scipy.stats`` left for its first use and without looking for pandas.

    scikit-learn works without pandas, and looks for it again where it is given a data frame. A process that has any of
    the three already is left as it is.
    """
    if not {"sklearn", _SELDOM, _ABSENT}.isdisjoint(sys.modules):
        return
    sys.modules[_SELDOM] = _Later(_SELDOM)
    sys.modules[_ABSENT] = None  # type: ignore[assignment]  # importing it is then an ImportError
    try:
        import sklearn.base  # noqa: F401
    finally:
        del sys.modules[_ABSENT]
