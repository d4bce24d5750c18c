"""A report as one HTML page that needs nothing else."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from html import escape
from importlib.metadata import version
from importlib.resources import files
from string import Template
from typing import TYPE_CHECKING

import numpy as np

from rankrls.comparison.significance import COLUMNS, Interval, PairComparison

if TYPE_CHECKING:
    from rankrls.comparison.report import MeasureReport, RankingReport

Row = Sequence[str | tuple[str, bool]]
"""Cells of text, some of them marked."""

_MAX_PAIRS = 12
_WIDTH = 480  # of a chart


def page(report: RankingReport, title: str, top: int, about: Mapping[str, str]) -> str:
    """The whole page; ``about`` says where the data and the rankings came from."""
    links = " ".join(f'<a href="#m{k}">{escape(m.name)}</a>' for k, m in enumerate(report.measures))
    return Template(files("rankrls.comparison").joinpath("page.html").read_text("utf-8")).substitute(
        title=escape(title),
        rankings=len(report.names),
        queries=len(report.qid),
        items=int(report.items.sum()),
        convention=escape(report.convention),
        verdict=_verdict(report),
        links=links,
        summary=_summary(report),
        measures="\n".join(_measure(report, m, k, top) for k, m in enumerate(report.measures)),
        confidence=f"{report.confidence:.0%}",
        origin=_table(["", "from"], about.items()) if about else "",
        version=escape(version("rankrls")),
        date=datetime.now(UTC).strftime("%Y-%m-%d"),
    )


def _verdict(report: RankingReport) -> str:
    """One sentence on the main measure, and no more than was tested."""
    main = report.measures[0]
    best, p_values = main.best, main.p_values(main.best)
    others = [name for name in report.names if name != best]
    equal = [name for name in others if main.intervals[name].estimate == main.intervals[best].estimate]
    if equal:
        listed = escape(", ".join([best, *equal]))
        return f"By {escape(main.name)}, no ranking is ahead of all others: {listed} have the same mean."
    doubtful = [name for name in others if p_values.get(name, 1.0) >= 1.0 - report.confidence]
    lead = f"its lead over {escape(', '.join(doubtful))} may be chance, or was not tested"
    lead = lead if doubtful else "it is better than all others, beyond what chance explains"
    head = f"By {escape(main.name)}, <strong>{escape(best)}</strong> has the best mean"
    return f"{head}: {lead} (randomization test, Holm)."


def _summary(report: RankingReport) -> str:
    rows: list[Row] = []
    for m in report.measures:
        winner = m.winner(report.confidence)
        values = ((f"{m.intervals[name].estimate:.4f}", name == winner) for name in report.names)
        rows.append([m.name + ("" if m.greater_is_better else " (less is better)"), *values])
    return _table(["", *report.names], rows)


def _measure(report: RankingReport, m: MeasureReport, number: int, top: int) -> str:
    chart = intervals_chart([(name, m.intervals[name]) for name in report.names], m.winner(report.confidence))
    pairs = "".join(_pair(report, m, r, top) for r in m.comparison.pairs[:_MAX_PAIRS])
    if number > 0:  # the main measure is open; the others on a tap
        pairs = f"<details><summary>{escape(m.name)}, query by query</summary>{pairs}</details>"
    table = _table(COLUMNS, m.comparison.rows())
    return f'<section><h2 id="m{number}">{escape(m.name)}</h2>{chart}{table}</section>{pairs}'


def _pair(report: RankingReport, m: MeasureReport, r: PairComparison, top: int) -> str:
    title = f"<h3>{escape(r.first)} − {escape(r.second)}, query by query</h3>"
    changed = report.changed_cells(m.name, r.first, r.second, top=top)
    if not changed:
        return f"{title}<p>No query differs.</p>"
    return f"{title}{_table(('query that changed most', 'items', r.first, r.second, 'difference'), changed)}"


def _table(head: Sequence[str], rows: Iterable[Row]) -> str:
    titles = "".join(f"<th>{escape(title)}</th>" for title in head)
    body = "".join(f"<tr>{''.join(map(_cell, row))}</tr>" for row in rows)
    return f'<div class="wide"><table><thead><tr>{titles}</tr></thead><tbody>{body}</tbody></table></div>'


def _cell(cell: str | tuple[str, bool]) -> str:
    text, strong = (cell, False) if isinstance(cell, str) else cell
    return f"<td{' class=strong' if strong else ''}>{escape(text)}</td>"


def intervals_chart(rows: Sequence[tuple[str, Interval]], best: str | None) -> str:
    """Means with their intervals as SVG, one row a ranking; the best is marked, if there is one."""
    low, high = min(interval.low for _, interval in rows), max(interval.high for _, interval in rows)
    pad = 0.06 * (high - low) or 0.01
    low, high, bottom = low - pad, high + pad, 6 + 40 * len(rows)
    x = lambda value: round(8 + (value - low) / (high - low) * (_WIDTH - 82), 1)
    parts = []
    for tick in tick_values(low, high, 5):
        parts.append(_line("grid", x(tick), 6, x(tick), bottom))
        parts.append(_text("tick", x(tick), bottom + 16, f"{tick:g}", "middle"))
    for k, (name, interval) in enumerate(rows):
        mark, y = " best" if name == best else "", 34 + 40 * k
        parts.append(_text("name", 8, y - 14, _shortened(name, 52)))
        parts.append(_line(f"whisker{mark}", x(interval.low), y, x(interval.high), y))
        parts.append(f'<circle class="dot{mark}" cx="{x(interval.estimate)}" cy="{y}" r="5"/>')
        parts.append(_text(f"value{mark}", _WIDTH - 64, y + 5, f"{interval.estimate:.4f}"))
    return _svg(bottom + 24, "Means with confidence intervals", parts)


def tick_values(low: float, high: float, most: int) -> list[float]:
    """At most ``most`` round numbers between two ends."""
    power = 10.0 ** np.floor(np.log10((high - low) / most))
    for step in (power, 2.0 * power, 5.0 * power, 10.0 * power):
        numbers = np.arange(np.ceil(low / step), np.floor(high / step) + 1)
        if len(numbers) <= most:
            break
    return [float(f"{k * step:.10g}") for k in numbers]


def _svg(height: float, label: str, parts: Iterable[str]) -> str:
    head = f'<svg viewBox="0 0 {_WIDTH} {height}" role="img" aria-label="{escape(label)}">'
    return f"{head}{''.join(parts)}</svg>"


def _line(kind: str, x1: float, y1: float, x2: float, y2: float) -> str:
    return f'<line class="{kind}" x1="{x1}" y1="{y1}" x2="{x2}" y2="{y2}"/>'


def _text(kind: str, x: float, y: float, text: str, anchor: str = "start") -> str:
    return f'<text class="{kind}" x="{x}" y="{y}" text-anchor="{anchor}">{escape(text)}</text>'


def _shortened(text: str, most: int) -> str:
    return text if len(text) <= most else "…" + text[1 - most :]
