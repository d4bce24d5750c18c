"""Public classes under their public names, whatever file defines them."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any, ForwardRef


def on_first_use(package: str, homes: Mapping[str, str]) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """``__getattr__`` and ``__dir__`` of a package that imports its public names when they are asked for.

    Parameters
    ----------
    package : str
    homes : mapping
        The module of each name.
    """

    def found(name: str) -> Any:
        if name not in homes:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        return getattr(import_module(homes[name]), name)

    return found, lambda: sorted({*vars(sys.modules[package]), *homes})


def publish(module: str, names: Mapping[str, Any]) -> None:
    """Give the classes of a package the public module as their ``__module__``.

    Pickles, reprs and tracebacks then name what people import, and files can move. The annotations of a class are
    still evaluated in the module that defines it, and doctest still finds its examples there. Of a class itself,
    ``inspect`` knows no file but that of its ``__module__``: it finds the source of methods, and of a class none.

    Parameters
    ----------
    module : str
        The public module.
    names : mapping
        The contents of a package, at the end of its ``__init__.py``. Classes that are defined in the package's own
        modules are published, and no others.
    """
    package = names["__name__"]
    for name in names["__all__"]:
        cls = names.get(name)
        if not isinstance(cls, type) or not cls.__module__.startswith(f"{package}."):
            continue
        home = sys.modules[cls.__module__]
        home.__dict__.setdefault("__test__", {})[name] = cls
        for annotated, hint in vars(cls).get("__annotations__", {}).items():
            if isinstance(hint, str):
                cls.__annotations__[annotated] = ForwardRef(hint, False, module=home.__name__, is_class=True)
        if "__firstlineno__" in vars(cls):  # since Python 3.13; inspect would take the line for one of the public file
            del cls.__firstlineno__  # type: ignore[attr-defined]
        cls.__module__ = module
