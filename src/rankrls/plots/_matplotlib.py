"""Matplotlib, when something is drawn and not before."""

from __future__ import annotations

from typing import Any

__all__ = ["axes_to_draw_on"]


def axes_to_draw_on(ax: Any = None) -> Any:
    """The axes given, or those of a new figure.

    Raises
    ------
    ImportError
        Where matplotlib is not installed, with the command that installs it.
    """
    try:
        import matplotlib.pyplot as plt
    except ImportError:
        raise ImportError("Drawing needs matplotlib: pip install 'rankrls[plots]'.") from None
    if ax is not None:
        return ax
    return plt.subplots(layout="constrained")[1]
