"""A report as one HTML page that needs nothing else."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from html import escape
from importlib.metadata import version
from typing import TYPE_CHECKING

from rankrls.comparison._charts import differences_chart, intervals_chart
from rankrls.comparison.per_query import COLUMNS, PairComparison

if TYPE_CHECKING:
    from rankrls.comparison.report import MeasureReport, RankingReport

Row = Sequence[str | tuple[str, bool]]
"""Cells of text, some of them marked."""

_MAX_PAIRS = 12
_STYLE = """
body { font: 16px/1.5 system-ui, sans-serif; color: #1a202c; background: #fff; margin: 0 auto; max-width: 46rem;
  padding: 1rem; }
h2 { margin: 2.2rem 0 .4rem; border-bottom: 2px solid #e2e8f0; }
h3, p { overflow-wrap: anywhere; } .quiet, .value, .tick { color: #4a5568; fill: #4a5568; }
.wide { overflow-x: auto; } table { border-collapse: collapse; font-size: .9rem; width: 100%; }
th, td { padding: .25rem .5rem; text-align: right; border-bottom: 1px solid #e2e8f0; }
th:first-child, td:first-child { text-align: left; } .strong { font-weight: 700; color: #22543d; }
svg { width: 100%; height: auto; display: block; font: 12px system-ui, sans-serif; }
.grid { stroke: #e2e8f0; } .whisker { stroke: #718096; stroke-width: 3; } .dot { fill: #718096; }
.whisker.best { stroke: #2b6cb0; } .dot.best, .first { fill: #2b6cb0; } .second { fill: #c05621; }
nav a { margin-right: .8rem; }
@media print { nav, details { display: none; } section, svg, tr { break-inside: avoid; } }
"""


def page(report: RankingReport, title: str, top: int, about: Mapping[str, str], date: str) -> str:
    """The whole page; ``about`` says where the data and the rankings came from."""
    names = [m.name for m in report.measures]
    links = " ".join(f'<a href="#m{k}">{escape(name)}</a>' for k, name in enumerate(names))
    origin = _table(["", "from"], [[name, text] for name, text in about.items()]) if about else ""
    body = [
        f"<h1>{escape(title)}</h1>",
        f"<p>{len(report.names)} rankings of {len(report.qid)} queries with {int(report.items.sum())} items; "
        f"measures by the {escape(report.convention)} convention.</p>",
        f"<p>{_verdict(report)}</p>",
        f"<nav>{links}</nav>",
        _summary(report),
        *(_measure(report, m, k, top) for k, m in enumerate(report.measures)),
        "<h2>How to read this</h2>",
        f'<p class="quiet">Intervals are {report.confidence:.0%} bootstrap intervals over queries. p values are '
        "two-sided and paired by query: Fisher's randomization test, which asks whether the signs of the differences "
        "could be coin tosses, and Wilcoxon's signed-rank test. Both are adjusted by Holm for the number of pairs "
        "within a measure, not for the number of measures. A query counts as won if its value is better, by "
        "however little. A ranking is marked if the randomization test says that it is better than every other "
        "one.</p>",
        f"<h2>Where it comes from</h2>{origin}",
        f'<p class="quiet">Made by rankrls {escape(version("rankrls"))} on {escape(date)}.</p>',
    ]
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{escape(title)}</title>\n<style>{_STYLE}</style>\n</head>\n<body>\n"
        + "\n".join(body)
        + "\n</body>\n</html>\n"
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
    chart = differences_chart(m.per_query[r.first] - m.per_query[r.second], r.first, r.second, m.greater_is_better)
    return f"{title}{chart}{_table(('query that changed most', 'items', r.first, r.second, 'difference'), changed)}"


def _table(head: Sequence[str], rows: Iterable[Row]) -> str:
    titles = "".join(f"<th>{escape(title)}</th>" for title in head)
    body = "".join(f"<tr>{''.join(map(_cell, row))}</tr>" for row in rows)
    return f'<div class="wide"><table><thead><tr>{titles}</tr></thead><tbody>{body}</tbody></table></div>'


def _cell(cell: str | tuple[str, bool]) -> str:
    text, strong = (cell, False) if isinstance(cell, str) else cell
    return f"<td{' class=strong' if strong else ''}>{escape(text)}</td>"
