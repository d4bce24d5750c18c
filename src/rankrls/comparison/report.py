"""Evaluation of rankings with several measures, and their comparison: tables, JSON, and an HTML page."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from html import escape
from importlib.resources import files
from string import Template
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from rankrls._checks import refuse_where
from rankrls._errors import InputError
from rankrls._queries import query_layout
from rankrls._shown import Shown, table_text
from rankrls._typing import AnyArray, Array, Index
from rankrls.comparison.significance import COLUMNS, Comparison, bootstrap_interval, compare_per_query
from rankrls.io import PairTable, Rows, atomic_write
from rankrls.metrics._measure import Measure, evaluate, mean_and_error, named_measures, preference_accuracy
from rankrls.metrics._runs import RUN_MEASURES, ByDocument, join_run

_DRAWS = 2000
_GRADED = ("map", "ndcg@1", "ndcg@3", "ndcg@5", "ndcg@10", "p@1", "p@5", "p@10", "mrr", "disagreement")
_ANY = ("disagreement", "tau")
_BINARY_TOP = 31  # largest label for which 2^label - 1 is a sensible gain


@dataclass(frozen=True)
class Judgement:
    """Value of one measure for one ranking.

    Attributes
    ----------
    value, standard_error : float
        Average over queries and its standard error; NaN if too few queries have a value.
    judged : int
        Number of queries (or preferences) with a value.
    per_query : ndarray of shape (q,)
        Value of each query; NaN if undefined.
    unit : {"queries", "preferences"}
    """

    value: float
    standard_error: float
    judged: int
    per_query: Any
    unit: str = "queries"

    def interval(self) -> tuple[float, float] | None:
        """95 % interval: bootstrap over queries, or 1.96 standard errors of a share of preferences; None if unknown."""
        if np.isnan(self.standard_error):
            return None
        if self.unit == "queries":
            found = bootstrap_interval(self.per_query, n_resamples=_DRAWS, random_state=0)
            return found.low, found.high
        return max(self.value - 1.96 * self.standard_error, 0.0), min(self.value + 1.96 * self.standard_error, 1.0)

    def as_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return {"value": self.value, "standard_error": self.standard_error, self.unit: self.judged}


def suitable_measures(y: Array, first: Iterable[str] = ()) -> tuple[str, ...]:
    """Names of measures that suit the labels, starting with ``first``. Missing labels are NaN."""
    known = y[~np.isnan(y)]
    graded = bool(((known >= 0) & (known <= _BINARY_TOP) & (known == np.floor(known))).all())
    return tuple(dict.fromkeys((*first, *(_GRADED if graded else _ANY))))


def judge(
    names: Sequence[str | Measure],
    convention: str,
    table: Rows,
    scores: Array,
    *,
    weights: Array | None = None,
) -> dict[str, Judgement]:
    """Evaluate scores of the rows of a table using its labels; rows with a missing label (NaN) are left out."""
    assert table.y is not None
    rows = np.flatnonzero(~np.isnan(table.y))

    def known(column: AnyArray | None) -> AnyArray | None:
        return None if column is None else column[rows]

    values = evaluate(
        known(table.y),
        scores[rows],
        qid=known(table.qid),
        measures=names,
        convention=convention,
        sample_weight=known(weights),
        docno=known(table.docids),
        per_query=True,
    )
    return {name: judgement_of(of_queries) for name, of_queries in values.items()}


def judgement_of(per_query: Array) -> Judgement:
    """Average of the values of queries; NaN marks a query without a value."""
    mean, error = mean_and_error(per_query[:, None])
    judged = int((~np.isnan(per_query)).sum())
    return Judgement(float(mean[0]), float(error[0]), judged, per_query)


def judge_pairs(pairs: PairTable, scores: Array, qid: AnyArray | None = None) -> Judgement:
    """Weighted share of preferences that the scores order correctly.

    The standard error is over groups of preferences if the file has them, otherwise over preferences. ``qid`` is passed
    for a model that compares items only within queries.

    Raises
    ------
    InputError
        If no preference counts, or if one is between items of two queries.
    """
    problem = "Preference {} is between items of different queries, whose scores cannot be compared."
    try:
        if qid is not None:
            refuse_where(qid[pairs.winners] != qid[pairs.losers], "qid", problem.format)
        values = preference_accuracy(
            scores, pairs.winners, pairs.losers, strength=pairs.strength, weight=pairs.weight, per_pair=True
        )
    except InputError as error:
        raise error.replace(file=pairs.path) from None
    judged = ~np.isnan(values)
    weight = np.ones(len(values))[judged] if pairs.weight is None else pairs.weight[judged]
    mean = float(np.average(values[judged], weights=weight))
    parts = weight * (values[judged] - mean)
    if pairs.groups is not None:
        parts = np.bincount(np.unique(pairs.groups[judged], return_inverse=True)[1], parts)
    spread = float(np.linalg.norm(parts) / weight.sum()) if len(parts) > 1 else np.nan
    return Judgement(mean, spread, int(judged.sum()), values, unit="preferences")


DEFAULT_MEASURES = ("map", "ndcg@1", "ndcg@5", "ndcg@10", "p@5", "mrr", "disagreement")


class ChangedQuery(NamedTuple):
    """A query that two rankings order differently.

    Attributes
    ----------
    qid : object
    items : int
        Number of its items.
    first, second : float
        The measure of each ranking.
    difference : float
        First minus second.
    """

    qid: Any
    items: int
    first: float
    second: float
    difference: float


@dataclass(frozen=True)
class MeasureReport:
    """One measure for all rankings.

    Attributes
    ----------
    name : str
    greater_is_better : bool
    per_query : dict of str to ndarray of shape (q,)
        Values per query; NaN for a query without a value.
    comparison : Comparison
        Mean of each ranking with its interval, and the comparison of every pair of rankings, or of each with the
        baseline.
    """

    name: str
    greater_is_better: bool
    per_query: dict[str, Array]
    comparison: Comparison

    @property
    def best(self) -> str:
        """Name of the ranking with the best mean; the first of several."""
        sign = 1.0 if self.greater_is_better else -1.0
        means = {name: sign * interval.value for name, interval in self.comparison.means.items()}
        return max(means, key=means.__getitem__)


@dataclass(frozen=True, repr=False)
class RankingReport(Shown):
    """Result of :func:`compare_rankings`; prints as tables.

    Attributes
    ----------
    names : tuple of str
        Names of the rankings.
    measures : tuple of MeasureReport
        Measures in the requested order; the first is the main one.
    qid : tuple
        Ids of the queries, in the order of each measure's ``per_query``.
    items : ndarray of shape (q,)
        Number of items per query.
    convention : str
        Convention of the measures given by name.
    confidence : float
        Confidence level of the intervals.
    """

    names: tuple[str, ...]
    measures: tuple[MeasureReport, ...]
    qid: tuple[Any, ...]
    items: Index
    convention: str
    confidence: float

    def changed(self, measure: str, first: str, second: str, *, top: int = 10) -> list[ChangedQuery]:
        """Queries whose value differs most between two rankings, sorted by decreasing difference.

        Parameters
        ----------
        measure, first, second : str
            Names from the report.
        top : int, default=10
            Maximum number of queries; those without a difference are left out.
        """
        values = {m.name: m.per_query for m in self.measures}[measure]
        a = values[first]
        b = values[second]
        gap = np.nan_to_num(a - b)
        order = [k for k in np.argsort(-np.abs(gap), kind="stable").tolist() if gap[k] != 0.0][:top]
        return [ChangedQuery(self.qid[k], int(self.items[k]), float(a[k]), float(b[k]), float(gap[k])) for k in order]

    def __str__(self) -> str:
        tables = self.tables(top=0)
        return "\n\n".join(f"{title}\n{table_text(columns, rows)}" for title, columns, rows in tables)

    def as_dict(self, *, top: int = 10) -> dict[str, Any]:
        """The report as plain values for JSON, with the ``top`` most changed queries of each pair."""
        measures = {}
        for m in self.measures:
            pairs = []
            for line in m.comparison:
                changed = self.changed(m.name, line.first, line.second, top=top)
                pairs.append({**asdict(line), "changed_most": [query._asdict() for query in changed]})
            values = {name: asdict(interval) for name, interval in m.comparison.means.items()}
            measures[m.name] = {"greater_is_better": m.greater_is_better, "values": values, "pairs": pairs}
        about = {"n_queries": len(self.qid), "convention": self.convention, "confidence": self.confidence}
        return {"rankings": list(self.names), **about, "measures": measures}

    def tables(self, of: str = "", *, top: int = 10) -> list[tuple[str, list[str], list[list[str]]]]:
        """Titles, columns and rows of text: the means, the differences, and the most changed queries.

        Parameters
        ----------
        of : str, optional
            Name of the ranked data.
        top : int, default=10
            Maximum number of most changed queries of each pair with the best ranking by the main measure.
        """
        means = []
        for m in self.measures:
            intervals = [f"{i.value:.4f} [{i.low:.4f}, {i.high:.4f}]" for i in m.comparison.means.values()]
            means.append([m.name, *intervals])
        what = f"Rankings of {of}" if of else f"{len(self.names)} rankings"
        title = f"{what}, {len(self.qid)} queries, {100 * self.confidence:g} % intervals"
        out = [(title, ["", *self.names], means)]
        out += [(f"{m.name}, p values by Holm", list(COLUMNS), m.comparison.rows()) for m in self.measures]
        main = self.measures[0]
        for line in main.comparison:
            changed = self.changed(main.name, line.first, line.second, top=top)
            if changed and main.best in (line.first, line.second):
                rows = [[f"{q}", f"{n}", f"{a:.4f}", f"{b:.4f}", f"{gap:+.4f}"] for q, n, a, b, gap in changed]
                columns = ["qid", "items", line.first, line.second, "difference"]
                out.append((f"Queries whose {main.name} changed most", columns, rows))
        return out

    def to_html(
        self, *, title: str = "Comparison of rankings", top: int = 10, about: Mapping[str, str] | None = None
    ) -> str:
        """Return a self-contained page without scripts, for screens of any width and for print.

        Parameters
        ----------
        title : str
        top : int, default=10
            Maximum number of most changed queries, as for :meth:`tables`.
        about : mapping of str to str, optional
            Origin of the data and rankings, such as paths and hashes.
        """
        tables = [_table(*table) for table in self.tables(top=top)]
        return Template(files("rankrls.comparison").joinpath("page.html").read_text("utf-8")).substitute(
            title=escape(title),
            items=int(self.items.sum()),
            convention=escape(self.convention),
            tables="".join(tables),
            confidence=f"{self.confidence:.0%}",
            origin=_table("Where it comes from", ["", "from"], about.items()) if about else "",
        )

    def save_html(self, path: str | os.PathLike[str], **options: Any) -> None:
        """Write :meth:`to_html` to a file atomically."""
        with atomic_write(path, "w") as file:
            file.write(self.to_html(**options))


def compare_rankings(
    y_true: ArrayLike,
    scores: Mapping[str, ArrayLike],
    *,
    qid: Any = None,
    measures: Sequence[Any] = DEFAULT_MEASURES,
    convention: str | None = None,
    baseline: str | None = None,
    confidence: float = 0.95,
    n_resamples: int = 10_000,
    random_state: Any = 0,
    docno: Any = None,
) -> RankingReport:
    """Evaluate several rankings of the same items and compare them query by query.

    Parameters
    ----------
    y_true : array-like of shape (m,)
        Labels.
    scores : mapping from a name to an array-like of shape (m,)
        Scores of two or more rankings.
    qid : array-like of shape (m,)
        One query id per row. Tests compare queries, so there must be at least two.
    measures : sequence of str, Measure or callable
        Measures; see :func:`rankrls.metrics.resolve_measure`. Each must have values for at least two queries.
    convention : str, optional
        Convention of the measures given by name; "letor" by default.
    baseline : str, optional
        Ranking with which every other is compared; by default, all pairs are compared. Holm's adjustment is over the
        pairs of one measure.
    confidence : float, default=0.95
        Confidence level of the bootstrap intervals over queries.
    n_resamples : int, default=10000
        Number of resamples of the bootstrap and of the randomization test.
    random_state : int, Generator or None, default=0
        Seed of the resamples; the same number gives the same report.
    docno : array-like of shape (m,), optional
        Document ids, as for :func:`rankrls.metrics.evaluate`.

    Returns
    -------
    RankingReport

    Raises
    ------
    ValueError
        If there is a single query, scores have another length, names or measures are unknown, or a measure has no
        values.

    See Also
    --------
    compare_runs : Compare TREC runs.
    compare_per_query : Compare values of each query from any source.
    rankrls.metrics.evaluate : Measures of one ranking.

    Notes
    -----
    O(m log m) per measure and ranking, O(q n_resamples) per pair.

    Examples
    --------
    >>> import numpy as np
    >>> from rankrls.comparison import compare_rankings
    >>> rng = np.random.default_rng(0)
    >>> y, qid = rng.integers(0, 3, size=200), np.repeat(np.arange(20), 10)
    >>> scores = {"good": y + rng.normal(size=200), "poor": y + 4 * rng.normal(size=200)}
    >>> report = compare_rankings(y, scores, qid=qid, measures=["map", "ndcg@5"])
    >>> line = report.measures[0].comparison.pairs[0]
    >>> line.first, line.second, line.p_randomization_holm < 0.01
    ('good', 'poor', True)
    >>> [c.qid for c in report.changed("map", "good", "poor", top=1)]
    [3]
    """
    layout = query_layout(qid, len(np.asarray(y_true)))
    if layout.n_queries < 2:
        problem = "Rankings are compared over queries, but there is only one query. Pass qid, one id per row."
        raise InputError(problem, parameter="qid")

    def values_of(who: str, measure: Measure) -> Array:
        found: Array = measure(y_true, scores[who], qid=qid, docno=docno, per_query=True)
        return found

    reports = _compared(
        values_of,
        list(scores),
        named_measures(measures, convention),
        baseline=baseline,
        confidence=confidence,
        n_resamples=n_resamples,
        random_state=random_state,
    )
    names = tuple(map(str, scores))
    ids = tuple(layout.ids.tolist())
    return RankingReport(names, reports, ids, layout.counts, convention or "letor", confidence)


def compare_runs(
    qrels: ByDocument,
    runs: Mapping[str, ByDocument],
    *,
    measures: Sequence[Any] = RUN_MEASURES,
    convention: str | None = "trec",
    baseline: str | None = None,
    confidence: float = 0.95,
    n_resamples: int = 10_000,
    random_state: Any = 0,
) -> RankingReport:
    """Evaluate several runs with the same judgements and compare them query by query.

    Parameters
    ----------
    qrels : mapping of str to mapping of str to float
        Labels of the judged documents of each query (:func:`rankrls.io.load_qrels`).
    runs : mapping of str to run
        Two or more runs (:func:`rankrls.io.load_run`), which need not have retrieved the same documents.
    measures : sequence of str or Measure
        Measures; see :func:`rankrls.metrics.evaluate_run`, which also describes what is counted.
    convention : str, default="trec"
        Convention of the measures given by name.
    baseline, confidence, n_resamples, random_state
        See :func:`compare_rankings`.

    Returns
    -------
    RankingReport
        Report in which ``items`` counts the judged documents.

    Raises
    ------
    InputError
        If a run has no query with judgements; otherwise as for :func:`compare_rankings`.

    Examples
    --------
    >>> from rankrls.comparison import compare_runs
    >>> qrels = {"q1": {"a": 1, "b": 0}, "q2": {"c": 1, "d": 0}}
    >>> runs = {"new": {"q1": {"a": 2, "b": 1}, "q2": {"c": 1}}, "old": {"q1": {"b": 1}, "q2": {"d": 2, "c": 1}}}
    >>> report = compare_runs(qrels, runs, measures=["map"])
    >>> report.measures[0].per_query["old"]
    array([0. , 0.5])
    """
    joined = {str(name): join_run(qrels, run) for name, run in runs.items()}

    def values_of(who: str, measure: Measure) -> Array:
        return joined[who].per_query(measure)

    reports = _compared(
        values_of,
        [*joined],
        named_measures(measures, convention),
        baseline=baseline,
        confidence=confidence,
        n_resamples=n_resamples,
        random_state=random_state,
    )
    judged = [query for query, labels in qrels.items() if labels]
    items = np.array([len(qrels[query]) for query in judged])
    return RankingReport(tuple(joined), reports, tuple(judged), items, convention or "letor", confidence)


def _compared(
    values_of: Callable[[str, Measure], Array],
    names: Sequence[str],
    measures: Mapping[str, Measure],
    **options: Any,
) -> tuple[MeasureReport, ...]:
    """Values of each measure for each ranking, by query, and their comparison."""
    reports = []
    for name, measure in measures.items():
        values = {}
        for who in names:
            try:
                values[str(who)] = values_of(who, measure)
            except InputError as error:
                parameter = "scores" if error.parameter == "y_score" else error.parameter
                raise error.replace(message=f"ranking {who!r}: {error.message}", parameter=parameter) from None
        better = measure.greater_is_better
        try:
            comparison = compare_per_query(values, greater_is_better=better, **options)
        except InputError as error:
            raise error.replace(message=f"{name}: {error.message}") from None
        reports.append(MeasureReport(name, better, values, comparison))
    return tuple(reports)


def _table(title: str, columns: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Table with a title, in HTML."""
    head = "".join(f"<th>{escape(column)}</th>" for column in columns)
    body = "".join(f"<tr>{''.join(f'<td>{escape(cell)}</td>' for cell in row)}</tr>" for row in rows)
    table = f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
    return f'<section><h2>{escape(title)}</h2><div class="wide">{table}</div></section>'
