"""Charts of a report as SVG text: no library, no script, text that can be read and selected."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

import numpy as np
from numpy.typing import NDArray

from rankrls.comparison.significance import Interval

_WIDTH = 480
_MAX_BARS = 800


def intervals_chart(rows: Sequence[tuple[str, Interval]], best: str | None) -> str:
    """Means with their intervals, one row a ranking; the best is marked, if there is one."""
    low = min(interval.low for _, interval in rows)
    high = max(interval.high for _, interval in rows)
    pad = 0.06 * (high - low) or 0.01
    low, high = low - pad, high + pad
    left, right, step, top = 8, 74, 40, 6
    height = top + step * len(rows) + 24
    x = lambda value: left + (value - low) / (high - low) * (_WIDTH - left - right)
    parts = [_open(height, "Means with confidence intervals")]
    bottom = top + step * len(rows)
    for tick in tick_values(low, high, 5):
        parts.append(f'<line class="grid" x1="{x(tick):.1f}" x2="{x(tick):.1f}" y1="{top}" y2="{bottom}"/>')
        shown = f"{tick:g}".replace("-", "−")
        parts.append(f'<text class="tick" x="{x(tick):.1f}" y="{bottom + 16}" text-anchor="middle">{shown}</text>')
    for k, (name, interval) in enumerate(rows):
        y = top + step * k
        mark = " best" if name == best else ""
        middle = y + 28
        parts.append(f'<text class="name" x="{left}" y="{y + 14}">{escape(_shortened(name, 52))}</text>')
        parts.append(
            f'<line class="whisker{mark}" x1="{x(interval.low):.1f}" x2="{x(interval.high):.1f}" y1="{middle}" '
            f'y2="{middle}"/>'
        )
        parts.append(f'<circle class="dot{mark}" cx="{x(interval.estimate):.1f}" cy="{middle}" r="5"/>')
        parts.append(
            f'<text class="value{mark}" x="{_WIDTH - right + 10}" y="{middle + 5}">{interval.estimate:.4f}</text>'
        )
    return "".join(parts) + "</svg>"


def differences_chart(gap: NDArray[np.float64], first: str, second: str, greater_is_better: bool) -> str:
    """Differences of the judged queries, sorted: above zero one ranking is ahead, below it the other."""
    gap = np.sort(gap[~np.isnan(gap)])[::-1]
    top, height, left = 22, 200, 52
    plot = height - top - 22
    reach = float(np.abs(gap).max(initial=0.0)) or 1.0
    y = lambda value: top + plot / 2 - value / reach * plot / 2
    wide = (_WIDTH - left - 8) / max(len(gap), 1)
    parts = [_open(height, f"Differences by query, {first} minus {second}")]
    for value in (reach, 0.0, -reach):
        parts.append(f'<line class="grid" x1="{left}" x2="{_WIDTH - 8}" y1="{y(value):.1f}" y2="{y(value):.1f}"/>')
        parts.append(
            f'<text class="tick" x="{left - 6}" y="{y(value) + 4:.1f}" text-anchor="end">{signed(value, "+.2g")}</text>'
        )
    edges = np.linspace(0, len(gap), min(len(gap), _MAX_BARS) + 1).astype(int)
    for a, b in zip(edges[:-1], edges[1:], strict=True):
        value = float(gap[a:b].mean())
        if value == 0.0:
            continue
        ahead = (value > 0.0) == greater_is_better
        y0, y1 = sorted((y(value), y(0.0)))
        shape = f'x="{left + a * wide:.2f}" y="{y0:.2f}" width="{max((b - a) * wide * 0.9, 0.3):.2f}"'
        parts.append(f'<rect class="{"first" if ahead else "second"}" {shape} height="{max(y1 - y0, 0.5):.2f}"/>')
    words = {True: _shortened(first, 28), False: _shortened(second, 28)}
    parts.append(
        f'<text class="name" x="{left + 4}" y="14">{escape(words[greater_is_better])} better</text>'
        f'<text class="name" x="{_WIDTH - 8}" y="{height - 6}" text-anchor="end">'
        f"{escape(words[not greater_is_better])} better</text>"
    )
    return "".join(parts) + "</svg>"


def tick_values(low: float, high: float, most: int) -> list[float]:
    """At most ``most`` round numbers between two ends."""
    power = 10.0 ** np.floor(np.log10((high - low) / most))
    for step in (power, 2.0 * power, 5.0 * power, 10.0 * power):
        numbers = np.arange(np.ceil(low / step), np.floor(high / step) + 1)
        if len(numbers) <= most:
            break
    return [float(f"{k * step:.10g}") for k in numbers]


def _open(height: float, label: str) -> str:
    return f'<svg viewBox="0 0 {_WIDTH} {height:.0f}" role="img" aria-label="{escape(label, quote=True)}">'


def signed(value: float, spec: str = "+.4f") -> str:
    """A difference with its sign; the minus is as wide as the plus."""
    return "0" if value == 0.0 else format(value, spec).replace("-", "−")


def _shortened(text: str, most: int) -> str:
    return text if len(text) <= most else "…" + text[1 - most :]
