"""A report as one HTML page that needs nothing else."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape
from importlib.metadata import version
from typing import TYPE_CHECKING

from rankrls._shown import p_text
from rankrls.comparison._charts import differences_chart, intervals_chart
from rankrls.comparison.per_query import PairComparison

if TYPE_CHECKING:
    from rankrls.comparison.report import MeasureReport, RankingReport

__all__ = ["page"]

_MAX_PAIRS = 12
_STYLE = """
:root { color-scheme: light; }
body { font: 16px/1.5 system-ui, sans-serif; color: #1a202c; background: #fff; margin: 0 auto; max-width: 46rem;
  padding: 1rem; }
h1 { font-size: 1.6rem; line-height: 1.2; margin: .5rem 0; }
h2 { font-size: 1.25rem; margin: 2.2rem 0 .4rem; border-bottom: 2px solid #e2e8f0; }
h3 { font-size: 1.05rem; margin: 1.4rem 0 .3rem; overflow-wrap: anywhere; }
p { margin: .4rem 0; overflow-wrap: anywhere; } .quiet { color: #4a5568; font-size: .9rem; }
.wide { overflow-x: auto; } table { border-collapse: collapse; font-size: .9rem; margin: .4rem 0; width: 100%; }
th { white-space: normal; } td { white-space: nowrap; } summary { cursor: pointer; color: #2b6cb0; margin: .6rem 0; }
th, td { padding: .25rem .5rem; text-align: right; border-bottom: 1px solid #e2e8f0; vertical-align: bottom; }
th:first-child, td:first-child { text-align: left; white-space: normal; overflow-wrap: anywhere; min-width: 6rem; }
thead th { border-bottom: 2px solid #a0aec0; } .strong { font-weight: 700; color: #22543d; }
svg { width: 100%; max-width: 36rem; height: auto; display: block; margin: .3rem 0; font: 14px system-ui, sans-serif; }
.grid { stroke: #e2e8f0; } .tick { fill: #4a5568; font-size: 13px; } .name { fill: #1a202c; }
.whisker { stroke: #718096; stroke-width: 3; } .dot { fill: #718096; }
.value { fill: #4a5568; } .whisker.best { stroke: #2b6cb0; } .dot.best { fill: #2b6cb0; }
.value.best { fill: #2b6cb0; font-weight: 700; } .first { fill: #2b6cb0; } .second { fill: #c05621; }
nav a { margin-right: .8rem; } a { color: #2b6cb0; }
@media print { body { max-width: none; font-size: 10pt; padding: 0; } nav, details { display: none; }
  section, svg, tr, .pair { break-inside: avoid; } h2, h3 { break-after: avoid; } .wide { overflow: visible; } }
"""


def page(report: RankingReport, title: str, top: int) -> str:
    """The whole page."""
    names = [m.name for m in report.measures]
    links = " ".join(f'<a href="#m{k}">{escape(name)}</a>' for k, name in enumerate(names))
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
        "two-sided and paired by query: Fisher's randomisation test, which asks whether the signs of the differences "
        "could be coin tosses, and Wilcoxon's signed-rank test. Both are adjusted by Holm for the number of pairs "
        "within a measure, not for the number of measures. A query counts as won if its value is better, by "
        "however little.</p>",
        '<p class="quiet">Made by rankrls ' + escape(version("rankrls")) + ".</p>",
    ]
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{escape(title)}</title>\n<style>{_STYLE}</style>\n</head>\n<body>\n"
        + "\n".join(body)
        + "\n</body>\n</html>\n"
    )


def _verdict(report: RankingReport) -> str:
    """One sentence on the main measure."""
    main, best = report.measures[0], report.measures[0].best
    head = f"By {escape(main.name)}, <strong>{escape(best)}</strong> is ahead"
    p_values = {
        line.second if line.first == best else line.first: line.p_holm
        for line in main.randomization
        if best in (line.first, line.second)
    }
    unsure = [name for name in report.names if p_values.get(name, 0.0) >= 1.0 - report.confidence]
    if unsure:
        return f"{head}; its lead over {escape(', '.join(unsure))} may be chance (randomisation test, Holm)."
    if len(p_values) < len(report.names) - 1:  # a baseline: the best is not compared with all
        return f"{head}."
    others = "all others" if len(p_values) > 1 else escape(next(iter(p_values)))
    return f"{head} of {others}, beyond what chance explains."


def _summary(report: RankingReport) -> str:
    rows = []
    for m in report.measures:
        values = (_cell(f"{m.intervals[name].estimate:.4f}", name == m.best) for name in report.names)
        direction = "" if m.greater_is_better else " (less is better)"
        rows.append(_cell(escape(m.name) + direction) + "".join(values))
    return _table(["", *map(escape, report.names)], rows)


def _measure(report: RankingReport, m: MeasureReport, number: int, top: int) -> str:
    chart = intervals_chart([(name, m.intervals[name]) for name in report.names], m.best)
    lines = list(zip(m.randomization, m.wilcoxon, strict=True))
    head = ("pair", "difference", "interval", "won / tied / lost", "p (random.)", "p (Wilcoxon)")
    table = _table(head, (_pair_row(r, w, report.confidence) for r, w in lines))
    pairs = "".join(_pair(report, m, r, top) for r, _ in lines[:_MAX_PAIRS])
    if len(lines) > _MAX_PAIRS:
        pairs += f'<p class="quiet">{len(lines) - _MAX_PAIRS} further pairs are in the table.</p>'
    if number > 0:  # the main measure is open, and on paper; the others on a tap
        pairs = f"<details><summary>{escape(m.name)}, query by query</summary>{pairs}</details>"
    return f'<section><h2 id="m{number}">{escape(m.name)}</h2>{chart}{table}</section>{pairs}'


def _pair_row(r: PairComparison, w: PairComparison, confidence: float) -> str:
    texts = (
        f"{escape(r.first)} − {escape(r.second)}",
        f"{r.difference:+.4f}",
        f"{r.low:+.3f} to {r.high:+.3f}",
        f"{r.wins} / {r.ties} / {r.losses}",
    )
    tests = (_cell(escape(p_text(line.p_holm)), line.p_holm < 1.0 - confidence) for line in (r, w))
    return "".join((*map(_cell, texts), *tests))


def _pair(report: RankingReport, m: MeasureReport, r: PairComparison, top: int) -> str:
    first, second = escape(r.first), escape(r.second)
    changed = report.changed(m.name, r.first, r.second, top=top)
    title = f"<h3>{first} − {second}, query by query</h3>"
    if not changed:
        return f'<div class="pair">{title}<p>No query differs.</p></div>'
    chart = differences_chart(m.per_query[r.first] - m.per_query[r.second], r.first, r.second, m.greater_is_better)
    rows = []
    for c in changed:
        texts = escape(str(c.qid)), str(c.n_items), f"{c.first:.4f}", f"{c.second:.4f}", f"{c.difference:+.4f}"
        rows.append("".join(map(_cell, texts)))
    table = _table(("query that changed most", "items", first, second, "difference"), rows)
    return f'<div class="pair">{title}{chart}</div>{table}'


def _table(head: Iterable[str], rows: Iterable[str]) -> str:
    """A table of titles and of rows of cells, both HTML."""
    titles = "".join(f"<th>{title}</th>" for title in head)
    body = "".join(f"<tr>{row}</tr>" for row in rows)
    return f'<div class="wide"><table><thead><tr>{titles}</tr></thead><tbody>{body}</tbody></table></div>'


def _cell(text: str, strong: bool = False) -> str:
    return f"<td{' class=strong' if strong else ''}>{text}</td>"
