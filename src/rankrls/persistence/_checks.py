"""What the values of a model must be: forms of attributes, and sizes that agree.

A form says what an attribute is; a name with a question mark may be missing or None.

====================  ==================================================================================
``float n|t,n``       an array of finite floats of shape (n,) or (t, n); a letter is one size in the object
``rows k,n``          the same, dense or CSR
``scores n``          an array of floats, of which some may be missing
``whole s``           an array of integers
``index s``           an array of integers, each the number of a feature; ``_`` is any size
``names n``           an array of strings
``any n``             an array
``count``, ``flag``   a whole number of at least 1; true or false
``size s``            a whole number of at least 0, the size that a letter stands for
``number``            a finite number
``free``              anything, also what is not finite
``Kernel``, ``dict``  an object of that class
``[Kernel] n``        a list of n of them; ``[whole _?]``: a list in which some may be None
====================  ==================================================================================

The letter n is the number of features, ``n_features_in_``. Attributes without a form must be finite.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from rankrls.persistence._archive import ModelFileError

Facts = Iterator[tuple[Any, str, str]]
"""What has to hold of a state, one after another: a condition, the attribute, and what is wrong with it if not."""

_MOST_EQUAL_HASHES = 100
_ARRAYS = {
    "float": ("f", "floats"),
    "rows": ("f", "floats"),
    "scores": ("f", "floats"),
    "whole": ("iu", "integers"),
    "index": ("iu", "integers"),
    "names": ("O", "names"),
    "any": ("biufOUS", "numbers or names"),
}
"""Which types of numpy a form allows, and what they are."""


def shown_name(value: Any) -> str:
    """A name as a file gives it, in one line of ASCII."""
    name = str(value)[:200]
    return name if name.isascii() and name.isprintable() else ascii(name)


def bad_value(owner: str, name: str, problem: str) -> ModelFileError:
    """The error of an attribute whose value is not what its class asks for."""
    name = name if name.isidentifier() else ascii(name)
    return ModelFileError(
        "{0}.{1} " + problem.replace("{", "{{").replace("}", "}}") + ".",
        owner,
        name,
        parameter=name,
        remedy="The file is damaged, or rankrls did not write it.",
    )


def require(condition: Any, owner: str, name: str, problem: str) -> None:
    """Raise the error of an attribute where a condition does not hold."""
    if not condition:
        raise bad_value(owner, name, problem)


def check_forms(owner: str, state: Mapping[str, Any], forms: Mapping[str, str], settings: Iterable[str]) -> None:
    """Check an object's attributes against their forms.

    Parameters
    ----------
    owner : str
        The name of the object's class.
    state : mapping
        The attributes.
    forms : mapping
        The form of each attribute that has one.
    settings : iterable of str
        Attributes that are not learned; a missing value or an infinity may be one of them.

    Raises
    ------
    ModelFileError
    """
    sizes: dict[str, int] = {}
    if "n_features_in_" in state:
        _check("count", owner, "n_features_in_", state["n_features_in_"], sizes)
        sizes["n"] = int(state["n_features_in_"])
    for key, form in forms.items():
        name = key.rstrip("?")
        if state.get(name) is not None:
            _check(form, owner, name, state[name], sizes)
        elif not key.endswith("?"):
            raise bad_value(owner, name, "is missing")
    known = {key.rstrip("?") for key in forms}.union(settings)
    for name, value in state.items():
        require(name in known or is_finite(value), owner, name, "is not finite")


def is_finite(value: Any) -> bool:
    """Whether there is no NaN or infinity in a number, an array, or a container of them."""
    if sparse.issparse(value):
        value = value.data
    if isinstance(value, np.ndarray) and value.dtype == object:
        value = value.ravel().tolist()
    if isinstance(value, np.ndarray):
        return value.dtype.kind != "f" or bool(np.isfinite(value).all())
    if isinstance(value, float | np.floating):
        return bool(np.isfinite(value))
    if isinstance(value, dict):
        return all(map(is_finite, value.values()))
    return not isinstance(value, list | tuple) or all(map(is_finite, value))


def distinct(keys: Sequence[Any], values: Iterable[Any]) -> dict[Any, Any]:
    """A dictionary of keys that differ, and whose hashes do: many equal ones would take quadratic time."""
    hashes = np.fromiter((hash(key) for key in keys), dtype=np.int64, count=len(keys))
    if len(keys) and np.unique(hashes, return_counts=True)[1].max() > _MOST_EQUAL_HASHES:
        raise ModelFileError("has a dictionary of keys that are made to be slow.")
    out = dict(zip(keys, values, strict=True))
    if len(out) != len(keys):
        raise ModelFileError("has a dictionary that gives a key twice.")
    return out


def needs(state: Mapping[str, Any], *names: str) -> Facts:
    """Attributes that have to be there."""
    for name in names:
        yield state.get(name) is not None, name, "is missing"


def inside(places: NDArray[Any], n: int) -> bool:
    """Whether places are those of ``n`` things."""
    return bool(((places >= 0) & (places < n)).all())


def is_whole(value: Any) -> bool:
    """Whether a value is a whole number."""
    return isinstance(value, int | np.integer) and not isinstance(value, bool)


_VALUES: dict[str, tuple[Callable[[Any], bool], str]] = {
    "count": (lambda value: is_whole(value) and value >= 1, "is no whole number of at least 1"),
    "size": (lambda value: is_whole(value) and value >= 0, "is no whole number of at least 0"),
    "flag": (lambda value: isinstance(value, bool | np.bool), "is neither true nor false"),
    "number": (lambda value: is_whole(value) or isinstance(value, float | np.floating), "is no finite number"),
    "dtype": (lambda value: isinstance(value, np.dtype), "is no type"),
    "free": (lambda value: True, ""),
}


def _check(form: str, owner: str, name: str, value: Any, sizes: dict[str, int]) -> None:
    if form.startswith("["):
        each, _, shapes = form[1:].partition("]")
        require(isinstance(value, list), owner, name, "is no list")
        for part in value:
            if part is not None or not each.endswith("?"):
                _check(each.rstrip("?"), owner, name, part, sizes)
        _check_shape((len(value),), shapes.strip() or "_", owner, name, sizes)
        return
    kind, _, shapes = form.partition(" ")
    if kind in _ARRAYS:
        _check_array(kind, shapes, owner, name, value, sizes)
        return
    fits, problem = _VALUES.get(kind, (lambda value: type(value).__name__ == kind, f"is no {kind}"))
    require(fits(value), owner, name, problem)
    require(kind != "number" or is_finite(value), owner, name, problem)
    if shapes:
        _check_shape((int(value),), shapes, owner, name, sizes)


def _check_array(kind: str, shapes: str, owner: str, name: str, value: Any, sizes: dict[str, int]) -> None:
    types, contents = _ARRAYS[kind]
    right = isinstance(value, np.ndarray) or (kind == "rows" and sparse.issparse(value))
    require(right and value.dtype.kind in types, owner, name, f"is no array of {contents}")
    _check_shape(value.shape, shapes, owner, name, sizes)
    require(kind in ("scores", "any") or is_finite(value), owner, name, "is not finite")
    if kind == "names":
        require(all(type(text) is str for text in value), owner, name, "has a name that is no text")
    if kind == "index":
        require(inside(value, sizes.get("n", 0)), owner, name, "names a feature that does not exist")


def _check_shape(shape: tuple[int, ...], shapes: str, owner: str, name: str, sizes: dict[str, int]) -> None:
    """Bind the letters of the shape that has as many as there are axes, or compare them."""
    letters = next((s.split(",") for s in shapes.split("|") if len(s.split(",")) == len(shape)), None)
    wanted = (
        ()
        if letters is None
        else tuple(n if s == "_" else sizes.setdefault(s, n) for s, n in zip(letters, shape, strict=True))
    )
    meaning = ", ".join(f"{letter} = {n}" for letter, n in sizes.items())
    require(shape == wanted, owner, name, f"has shape {shape}, not ({shapes}) with {meaning}")
