"""A report as one HTML page that needs nothing else."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from html import escape
from importlib.metadata import version
from typing import TYPE_CHECKING

from rankrls._shown import p_text
from rankrls.comparison._charts import differences_chart, intervals_chart, signed
from rankrls.comparison.per_query import PairComparison

if TYPE_CHECKING:
    from rankrls.comparison.report import MeasureReport, RankingReport

Row = Sequence[str | tuple[str, bool]]
"""Cells of text, some of them marked."""

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
svg { width: 100%; height: auto; display: block; margin: .3rem 0; font: 14px system-ui, sans-serif; }
.grid { stroke: #e2e8f0; } .tick { fill: #4a5568; font-size: 13px; } .name { fill: #1a202c; }
.whisker { stroke: #718096; stroke-width: 3; } .dot { fill: #718096; }
.value { fill: #4a5568; } .whisker.best { stroke: #2b6cb0; } .dot.best { fill: #2b6cb0; }
.value.best { fill: #2b6cb0; font-weight: 700; } .first { fill: #2b6cb0; } .second { fill: #c05621; }
nav a { margin-right: .8rem; } a { color: #2b6cb0; }
@media (min-width: 40rem) { svg { font-size: 10px; } .tick { font-size: 9px; } }
@media screen and (max-width: 34rem) { table, tbody, tr, td { display: block; width: auto; } thead { display: none; }
  tr { border-bottom: 2px solid #a0aec0; padding: .3rem 0; } td { border: 0; padding: .1rem 0; white-space: normal; }
  td::before { content: attr(data-label); float: left; color: #4a5568; padding-right: 1rem; text-align: left; }
  td::after { content: ""; display: block; clear: both; } td:first-child { font-weight: 600; } }
@media print { body { max-width: none; font-size: 10pt; padding: 0; } nav, details { display: none; }
  section, svg, tr, .pair { break-inside: avoid; } h2, h3 { break-after: avoid; } .wide { overflow: visible; } }
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
        "two-sided and paired by query: Fisher's randomisation test, which asks whether the signs of the differences "
        "could be coin tosses, and Wilcoxon's signed-rank test. Both are adjusted by Holm for the number of pairs "
        "within a measure, not for the number of measures. A query counts as won if its value is better, by "
        "however little. A ranking is marked if the randomisation test says that it is better than every other "
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
    best, chance = main.best, 1.0 - report.confidence
    strong = f"<strong>{escape(best)}</strong>"
    by = f"By {escape(main.name)}"
    p_values = main.p_values(best)
    others = [name for name in report.names if name != best]
    equal = [name for name in others if main.intervals[name].estimate == main.intervals[best].estimate]
    if equal:
        return f"{by}, no ranking is ahead of all others: {_listed([best, *equal])} have the same mean."
    unsure = [name for name, p in p_values.items() if p >= chance]
    sure = [name for name in p_values if name not in unsure]
    parts = []
    if sure:
        whom = "all others" if len(sure) == len(others) > 1 else _listed(sure)
        parts.append(f"it is better than {whom}, beyond what chance explains")
    if unsure:
        parts.append(f"its lead over {_listed(unsure)} may be chance")
    untested = [name for name in others if name not in p_values]
    if untested:
        parts.append(f"it was not tested against {_listed(untested)}")
    return f"{by}, {strong} has the best mean: {'; '.join(parts)} (randomisation test, Holm)."


def _listed(names: Sequence[str]) -> str:
    shown = [escape(name) for name in names]
    return shown[0] if len(shown) == 1 else f"{', '.join(shown[:-1])} and {shown[-1]}"


def _summary(report: RankingReport) -> str:
    rows: list[Row] = []
    for m in report.measures:
        winner = m.winner(report.confidence)
        values = ((f"{m.intervals[name].estimate:.4f}", name == winner) for name in report.names)
        rows.append([m.name + ("" if m.greater_is_better else " (less is better)"), *values])
    return _table(["", *report.names], rows)


def _measure(report: RankingReport, m: MeasureReport, number: int, top: int) -> str:
    chart = intervals_chart([(name, m.intervals[name]) for name in report.names], m.winner(report.confidence))
    lines = list(zip(m.randomization, m.wilcoxon, strict=True))
    head = ("pair", "difference", "interval", "won / tied / lost", "p (random.)", "p (Wilcoxon)")
    table = _table(head, (_pair_row(r, w, report.confidence) for r, w in lines))
    pairs = "".join(_pair(report, m, r, top) for r, _ in lines[:_MAX_PAIRS])
    if len(lines) > _MAX_PAIRS:
        pairs += f'<p class="quiet">{len(lines) - _MAX_PAIRS} further pairs are in the table.</p>'
    if number > 0:  # the main measure is open, and on paper; the others on a tap
        pairs = f"<details><summary>{escape(m.name)}, query by query</summary>{pairs}</details>"
    return f'<section><h2 id="m{number}">{escape(m.name)}</h2>{chart}{table}</section>{pairs}'


def _pair_row(r: PairComparison, w: PairComparison, confidence: float) -> Row:
    return [
        f"{r.first} − {r.second}",
        signed(r.difference),
        f"{signed(r.low, '+.3f')} to {signed(r.high, '+.3f')}",
        f"{r.wins} / {r.ties} / {r.losses}",
        *((p_text(line.p_holm), line.p_holm < 1.0 - confidence) for line in (r, w)),
    ]


def _pair(report: RankingReport, m: MeasureReport, r: PairComparison, top: int) -> str:
    changed = report.changed(m.name, r.first, r.second, top=top)
    title = f"<h3>{escape(r.first)} − {escape(r.second)}, query by query</h3>"
    if not changed:
        return f'<div class="pair">{title}<p>No query differs.</p></div>'
    chart = differences_chart(m.per_query[r.first] - m.per_query[r.second], r.first, r.second, m.greater_is_better)
    rows: list[Row] = [
        [str(c.qid), str(c.n_items), f"{c.first:.4f}", f"{c.second:.4f}", signed(c.difference)] for c in changed
    ]
    table = _table(("query that changed most", "items", r.first, r.second, "difference"), rows)
    return f'<div class="pair">{title}{chart}</div>{table}'


def _table(head: Sequence[str], rows: Iterable[Row]) -> str:
    """A table; each cell knows its column's title, which a narrow screen shows beside it."""
    titles = "".join(f"<th>{escape(title)}</th>" for title in head)
    body = "".join(f"<tr>{''.join(map(_cell, head, row))}</tr>" for row in rows)
    return f'<div class="wide"><table><thead><tr>{titles}</tr></thead><tbody>{body}</tbody></table></div>'


def _cell(title: str, cell: str | tuple[str, bool]) -> str:
    text, strong = (cell, False) if isinstance(cell, str) else cell
    return f'<td data-label="{escape(title, quote=True)}"{" class=strong" if strong else ""}>{escape(text)}</td>'
