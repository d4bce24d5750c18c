"""``read_info``: apart from ``load``, because it needs none of the scientific libraries that a model needs."""

from __future__ import annotations

import os
from typing import Any

from rankrls.persistence._archive import opened, read_header

__all__ = ["read_info"]


def read_info(path: str | os.PathLike[str]) -> dict[str, Any]:
    """What a model file says about its model, without loading the model.

    Parameters
    ----------
    path : path

    Returns
    -------
    dict
        ``format_version``, ``created`` (UTC), ``versions``, ``estimator``, ``steps`` before it, ``parameters``,
        ``alpha``, ``kernel``, ``n_queries``, ``n_features``, ``feature_names``, ``n_targets``, ``n_training_items``
        (kernel models), ``selection`` (how it was chosen, the measure, its value and standard error; None where
        nothing was chosen), ``given`` (what the caller of ``save`` added) and ``updatable``.

    Raises
    ------
    ModelFileError, OSError
        As :func:`load`.
    """
    with opened(os.fspath(path)) as (_, archive):
        header = read_header(archive)
    return {"format_version": header["format_version"], **header["info"]}
