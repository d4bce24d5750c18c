"""A report as one HTML page that needs nothing else."""

from __future__ import annotations

from html import escape
from importlib.metadata import version
from typing import TYPE_CHECKING

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
        "within a measure, not for the number of measures. A query counts as won where its value is better, however "
        "little.</p>",
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
    main = report.measures[0]
    best = main.best
    head = f"By {escape(main.name)}, <strong>{escape(best)}</strong> is ahead"
    beaten = [
        line.second if line.first == best else line.first
        for line in main.randomization
        if best in (line.first, line.second) and line.p_holm < 1.0 - report.confidence
    ]
    others = [name for name in report.names if name != best]
    compared = [
        name for name in others if any({line.first, line.second} == {best, name} for line in main.randomization)
    ]
    if len(beaten) == len(others):
        return f"{head} of {'it all' if len(others) > 1 else escape(others[0])}, beyond what chance explains.".replace(
            "of it all", "of all others"
        )
    open_ones = [name for name in compared if name not in beaten]
    if open_ones:
        return f"{head}; its lead over {escape(', '.join(open_ones))} may be chance (randomisation test, Holm)."
    return f"{head}."


def _summary(report: RankingReport) -> str:
    head = "".join(f"<th>{escape(name)}</th>" for name in report.names)
    rows = []
    for m in report.measures:
        best = m.best
        cells = "".join(
            f"<td{' class=strong' if name == best else ''}>{m.intervals[name].estimate:.4f}</td>"
            for name in report.names
        )
        arrow = "" if m.greater_is_better else " (less is better)"
        rows.append(f"<tr><td>{escape(m.name)}{arrow}</td>{cells}</tr>")
    return (
        f'<div class="wide"><table><thead><tr><th></th>{head}</tr></thead><tbody>{"".join(rows)}</tbody></table></div>'
    )


def _measure(report: RankingReport, m: MeasureReport, number: int, top: int) -> str:
    chart = intervals_chart([(name, m.intervals[name]) for name in report.names], m.best)
    lines = list(zip(m.randomization, m.wilcoxon, strict=True))
    table = "".join(_pair_row(r, w, report.confidence) for r, w in lines)
    pairs = "".join(_pair(report, m, r, top) for r, _ in lines[:_MAX_PAIRS])
    if len(lines) > _MAX_PAIRS:
        pairs += f'<p class="quiet">{len(lines) - _MAX_PAIRS} further pairs are in the table.</p>'
    if number > 0:  # the main measure is open, and on paper; the others on a tap
        pairs = f"<details><summary>{escape(m.name)}, query by query</summary>{pairs}</details>"
    return (
        f'<section><h2 id="m{number}">{escape(m.name)}</h2>{chart}<div class="wide"><table><thead><tr><th>pair</th>'
        "<th>difference</th><th>interval</th><th>won / tied / lost</th><th>p (random.)</th>"
        f"<th>p (Wilcoxon)</th></tr></thead><tbody>{table}</tbody></table></div></section>{pairs}"
    )


def _pair_row(r: PairComparison, w: PairComparison, confidence: float) -> str:
    p = "".join(
        f"<td{' class=strong' if line.p_holm < 1.0 - confidence else ''}>{_p(line.p_holm)}</td>" for line in (r, w)
    )
    return (
        f"<tr><td>{escape(r.first)} − {escape(r.second)}</td><td>{r.difference:+.4f}</td>"
        f"<td>{r.low:+.3f} to {r.high:+.3f}</td><td>{r.wins} / {r.ties} / {r.losses}</td>{p}</tr>"
    )


def _pair(report: RankingReport, m: MeasureReport, r: PairComparison, top: int) -> str:
    gap = m.per_query[r.first] - m.per_query[r.second]
    changed = report.changed(m.name, r.first, r.second, top=top)
    head = f"<h3>{escape(r.first)} − {escape(r.second)}, query by query</h3>"
    if not changed:
        return f'<div class="pair">{head}<p>No query differs.</p></div>'
    rows = "".join(
        f"<tr><td>{escape(str(c.qid))}</td><td>{c.n_items}</td><td>{c.first:.4f}</td><td>{c.second:.4f}</td>"
        f"<td>{c.difference:+.4f}</td></tr>"
        for c in changed
    )
    return (
        f'<div class="pair">{head}{differences_chart(gap, r.first, r.second, m.greater_is_better)}</div>'
        f'<div class="wide"><table><thead><tr><th>query that changed most</th><th>items</th>'
        f"<th>{escape(r.first)}</th><th>{escape(r.second)}</th><th>difference</th></tr></thead>"
        f"<tbody>{rows}</tbody></table></div>"
    )


def _p(value: float) -> str:
    return "&lt; 0.0001" if value < 0.0001 else f"{value:.4f}"
