"""Features of very different spread, where a solver cannot keep them apart: say so."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankrls._errors import InputWarning
from rankrls.equations.graded import MOST_GRADED
from rankrls.problems.spreads import Spreads


def warn_of_lost_features(
    model: Any, spreads: Spreads | None, alphas: NDArray[np.float64] | None, *, pairs_held_out: bool = False
) -> None:
    """Warn where a feature should count, by its spread and alpha, but rounding of another one hides it.

    Parameters
    ----------
    model : estimator
        That was fitted.
    spreads : Spreads or None
        Of the problem of the first target.
    alphas : ndarray, or None for a grid that is chosen by the spectrum
    pairs_held_out : bool
        Whether scores came from pairs held out, under alphas of at least 1e-10 of the largest eigenvalue.
    """
    if spreads is None:
        return
    energy, names = spreads.energies, getattr(model, "feature_names_in_", None)
    lost = spreads.lost(0.0 if alphas is None else float(alphas.min()), pairs_held_out=pairs_held_out)
    if not len(lost):
        return
    largest, smallest = int(np.argmax(energy)), int(lost[np.argmin(energy[lost])])
    ratio = float(np.sqrt(energy[largest] / energy[smallest]))
    others = f" ({len(lost)} features are as small)" if len(lost) > 1 else ""
    primal_helps = not spreads.in_features and len(energy) <= MOST_GRADED and not pairs_held_out
    otherwise = " or take {solver='primal'}." if primal_helps else "."
    warnings.warn(
        InputWarning(
            "Feature {0} has {1:.1g} times the spread of feature {2}{3}: rounding of the large one hides what the "
            "small one says.",
            *(_called(largest, names), ratio, _called(smallest, names), others),
            remedy="Scale the features, as StandardScaler does" + otherwise,
            parameter="X",
            column=smallest if names is None else str(names[smallest]),
        ),
        stacklevel=4,
    )


def _called(j: int, names: Any) -> str:
    return f"{j}" if names is None else f"{j} ({names[j]!r})"
