"""What ``positive`` means for the features of X."""

from __future__ import annotations

from collections.abc import Mapping
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankrls._errors import InputError

_FORMS = (
    "positive must be True (all features), False (none), a list of feature numbers or names, a sign (-1, 0 or 1) for "
    "each feature, or a dict of features to signs"
)


def check_positive(positive: Any, kernels: tuple[Any, ...], solver: str) -> bool:
    """Whether any sign is constrained; refuse models that have no weights of features to constrain."""
    if isinstance(positive, (bool, np.bool_)):
        constrained = bool(positive)
    elif isinstance(positive, (str, bytes)) or not hasattr(positive, "__len__") or getattr(positive, "ndim", 1) != 1:
        raise InputError(f"{_FORMS}; got {positive!r}.", parameter="positive")
    else:
        constrained = len(positive) > 0
    if not constrained:
        return False
    other = [k for k in kernels if not (isinstance(k, str) and k == "linear")]
    if other:
        raise InputError(
            f"positive constrains the weights of features, which only kernel='linear' has; got kernel={other[0]!r}.",
            parameter="positive",
        )
    if solver not in ("auto", "primal"):
        raise InputError(
            f"positive is solved for in the weights of features; got {solver!r}. Use solver='auto' or 'primal'.",
            parameter="positive",
        )
    return True


def constrained_signs(positive: Any, n_features: int, names: NDArray[Any] | None) -> NDArray[np.int8] | None:
    """The sign of each feature's weight, 0 where it is free; None where all are.

    Parameters
    ----------
    positive : bool, sequence or dict
        See :class:`rankrls.RankRLS`.
    n_features : int
    names : ndarray of str, or None
        Of the features, where X had column names.
    """
    if isinstance(positive, (bool, np.bool_)):
        return np.ones(n_features, dtype=np.int8) if positive else None
    if isinstance(positive, Mapping):
        entries = [(key, _sign(value, key)) for key, value in positive.items()]
    else:
        given = positive.tolist() if isinstance(positive, np.ndarray) else list(positive)
        if _is_sign_for_each(given, n_features):
            _check_one_reading(given)
            out = np.array(given, dtype=np.int8)
            return out if out.any() else None
        entries = [(key, 1) for key in given]
    out = np.zeros(n_features, dtype=np.int8)
    seen: set[int] = set()
    for key, sign in entries:
        j = _feature(key, n_features, names)
        if j in seen:
            raise InputError(f"positive names feature {key!r} twice.", parameter="positive")
        seen.add(j)
        out[j] = sign
    return out if out.any() else None


def _is_sign_for_each(given: list[Any], n_features: int) -> bool:
    """Whether a list holds a sign for each feature (or a mask), not the numbers of some."""
    return len(given) == n_features and all(
        isinstance(v, (Integral, np.bool_, float)) and v in (-1, 0, 1) for v in given
    )


def _check_one_reading(given: list[Any]) -> None:
    """Refuse [0], [0, 1] and [1, 0] for so many features: the numbers of all of them, or their signs."""
    whole = [v for v in given if isinstance(v, Integral) and not isinstance(v, (bool, np.bool_))]
    if sorted(whole) == list(range(len(given))):
        raise InputError(
            f"positive={given} may be the numbers of all {len(given)} features or a sign for each. Pass "
            "True for all, or a dict of features to signs.",
            parameter="positive",
        )


def _sign(value: Any, key: Any) -> int:
    if isinstance(value, (Integral, float, np.bool_)) and value in (-1, 0, 1):
        return int(value)
    raise InputError(
        f"positive must give each feature 1 (not negative), -1 (not positive) or 0 (free); got {value!r} for {key!r}.",
        parameter="positive",
    )


def _feature(key: Any, n_features: int, names: NDArray[Any] | None) -> int:
    if isinstance(key, str):
        if names is None:
            raise InputError(
                f"positive names feature {key!r}, but X has no column names. Use feature numbers.", parameter="positive"
            )
        found = np.flatnonzero(np.asarray(names, dtype=object) == key)
        if not len(found):
            raise InputError(f"positive names feature {key!r}, which X does not have.", parameter="positive")
        return int(found[0])
    if isinstance(key, (bool, np.bool_)):
        raise InputError(
            f"positive as a mask needs one entry for each of the {n_features} features.", parameter="positive"
        )
    if not isinstance(key, Integral):
        raise InputError(f"{_FORMS}; got {key!r} in it.", parameter="positive")
    if not 0 <= int(key) < n_features:
        raise InputError(
            f"positive names feature {int(key)}, but the features are 0 to {n_features - 1}. A list of "
            "signs needs one for each feature.",
            parameter="positive",
        )
    return int(key)
