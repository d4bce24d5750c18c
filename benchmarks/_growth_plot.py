"""One page of lines on doubly logarithmic axes, whose slope is the exponent of growth."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Sequence
from pathlib import Path
from typing import Any

__all__ = ["draw"]

_ACROSS = 3


def draw(lines: Sequence[dict[str, Any]], path: Path) -> None:
    """Those of the lines that :func:`benchmarks._harness.exponent` made, with the slope that the bound allows."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    lines = [line for line in lines if "sizes" in line]
    if not lines:
        return
    down = math.ceil(len(lines) / _ACROSS)
    figure, axes = plt.subplots(down, _ACROSS, figsize=(4.0 * _ACROSS, 3.2 * down), layout="constrained", squeeze=False)
    for axis in axes.flat[len(lines) :]:
        axis.remove()
    for axis, line in zip(axes.flat, lines, strict=False):
        x, v = line["sizes"], line["values"]
        axis.loglog(x, v, "o-", color="C0", label=f"measured: {line['ours']:.2f}")
        bound = [v[-1] * (size / x[-1]) ** line["rival_seconds"] for size in x]
        axis.loglog(x, bound, "--", color="0.6", label=f"the bound's exponent: {line['rival_seconds']:g}")
        axis.set_title(textwrap.fill(line["job"].split(":")[0], 44), fontsize="small")
        axis.set_ylabel("seconds", fontsize="small")
        axis.tick_params(labelsize="x-small", which="both")
        axis.set_xticks(x, [f"{size:g}" for size in x])
        axis.minorticks_off()
        axis.legend(fontsize="x-small")
    figure.savefig(path, dpi=110)
    plt.close(figure)
