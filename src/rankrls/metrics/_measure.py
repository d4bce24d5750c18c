"""A measure is a value: a name, a depth, and declared choices; evaluation of rankings with measures."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, TypeAlias

import numpy as np
from sklearn.utils.metadata_routing import MetadataRequest

from rankrls._checks import array_of, check_count, check_finite, check_word, numbers_of, refuse_where, vector_of
from rankrls._errors import InputError, InputWarning, did_you_mean
from rankrls._preferences import check_preferences
from rankrls._queries import QueryLayout, query_layout
from rankrls._typing import AnyArray, Array, IdsLike, Index, LabelsLike, Mask, Values, VectorLike
from rankrls.metrics._scorer import holds, predict_by_query
from rankrls.metrics._table import BY_NAME, CONVENTIONS, DEFAULTS, Chunk, Definition, Gain, ratio
from rankrls.ranking import docno_order

ByDocument = Mapping[str, Mapping[str, float]]
"""Labels or scores of the documents of each query."""
RUN_MEASURES = ("map", "ndcg@10", "p@10", "recall@100", "mrr", "bpref")
_NAME = re.compile(r"\s*([a-z_-]*?)(?:_cut|_?at)?(?:(?:\s*[@_.]\s*|:top=)?([0-9]+))?\s*")
"""Pattern of names in lower case, also in other tools: ndcg@10, ndcg_cut_10, p_5, precisionat:top=5."""
_MANY = 3.0
"""Number of standard errors that a random order of rows rarely changes."""
_MOST = float(np.finfo(np.float32).max)
_OTHER_NAMES = {
    "hit": "success",
    "hits": "success",
    "hit_rate": "success",
    "hr": "success",
    "pre": "p",
    "rank_biased_precision": "rbp",
    "recip_rank": "mrr",
    "rr": "mrr",
    "c-index": "pair_accuracy",
    "c_index": "pair_accuracy",
    "concordance_index": "pair_accuracy",
    "cindex": "pair_accuracy",
    "concordance": "pair_accuracy",
    "roc_auc": "auc",
}


@dataclass(frozen=True, repr=False)
class Measure:
    r"""A measure with its parameters; ``Measure("ndcg", k=10)(y_true, y_score, qid=qid)`` applies it.

    ======================  ============  ==================================================================
    name                    also          value of a query
    ======================  ============  ==================================================================
    ``disagreement``                      share of the pairs with different labels in the wrong order (an error)
    ``pair_accuracy``                     1 - disagreement
    ``auc``                               pair_accuracy of relevant against other items
    ``kendall_tau``         ``tau``       Kendall's tau-b
    ``pair_squared_error``                mean squared error of score differences over pairs (an error)
    ``ndcg``                              normalized discounted cumulative gain
    ``average_precision``   ``map``       mean over the relevant items of the precision at their positions
    ``precision``           ``p``         relevant items among the first k, over k
    ``recall``                            relevant items among the first k, over the relevant items
    ``success``                           1 if a relevant item is among the first k, else 0
    ``reciprocal_rank``     ``mrr``       1 / position of the first relevant item, 0 if none is among the first k
    ``r_precision``         ``rprec``     precision at the number of relevant items
    ``err``                               expected reciprocal rank (Chapelle et al. 2009)
    ``bpref``                             mean over the R relevant items of 1 - min(a, R) / min(N, R), where a of
                                          the N judged items that are not relevant rank above the relevant one
                                          (Buckley and Voorhees 2004, as in trec_eval)
    ``rbp``                               rank-biased precision (Moffat and Zobel 2008): sum of (1 - p) p^(i - 1)
                                          over the positions i of relevant items
    ======================  ============  ==================================================================

    Parameters
    ----------
    name : str or callable
        Name from the table, or ``function(y_true, y_score) -> float``, called once per query and column, where greater
        is better and NaN means that a query has no value.
    k : int, optional
        Depth of the ranking; the whole ranking by default. Precision, recall and success require a depth; measures over
        pairs, r_precision and bpref have none.
    convention : {"letor", "trec", "sklearn", "lightgbm", "xgboost", "ranklib", "catboost"}
        Evaluation tool whose definitions apply; see the notes.
    gain : {"exp2", "linear", "positive"} or sequence, optional
        Gains of NDCG: ``2^rel - 1``, ``rel``, ``max(rel, 0)``, or the gains of labels 0, 1, 2, ...
    discount : {"log2", "letor"}, optional
        Discounts of NDCG: ``1 / log2(i + 1)``; or 1, 1, then ``1 / log2(i)``.
    empty : float or "skip", optional
        Value of a query without relevant items; "skip" leaves it out of the mean.
    ties : {"row", "docno", "worst", "average", "threshold"}, optional
        Treatment of equal scores: row order; greater document id first; lower label first; mean over all orders (NDCG,
        precision, recall, r_precision, rbp); or retrieval as one group (average precision without k).
    relevant : float, optional
        Smallest relevant label; 1 in every convention.
    denominator : {"nominal", "reachable"}, optional
        Denominator of precision: k, or min(k, items); of average precision at k: the number of relevant items, or
        min(k, relevant items).
    tied_labels : {"ignore", "half"}, optional
        Treatment of pairs with equal labels in disagreement and accuracy: "ignore" leaves them out; "half" includes
        them, as half an error if their scores differ (Pahikkala et al. 2007, eq. 3).
    highest : float, optional
        Highest possible label for ERR, 4 by default.
    persistence : float, optional
        Probability p of looking at the next item in RBP, 0.8 by default.

    Raises
    ------
    ValueError
        If a name, depth or option is invalid, or the measure does not have the option.

    Notes
    -----
    For query Q with labels y, scores f and weights w, the disagreement is (Airola, Pahikkala and Salakoski 2010, eq. 1)

    .. math::

        e_Q = \frac{1}{N_Q} \sum_{i, j \in Q,\; y_i < y_j} w_i w_j H(f_i - f_j), \qquad
        H(a) = 1, \tfrac12, 0 \text{ for } a > 0, a = 0, a < 0,

    where N_Q is the weight of the pairs with ``y_i < y_j``. The disagreement of a perfect ranking
    is 0, that of random or constant scores 0.5. A query of one item has no value.

    The conventions (i is the position, from 1; the last two columns concern measures of relevant items):

    ==========  ===========  ============  =============  ===================  ========  ============
    convention  gain         discount      empty query    equal scores         relevant  denominator
    ==========  ===========  ============  =============  ===================  ========  ============
    letor       2^rel - 1    letor         0              row                  rel >= 1  nominal
    trec        max(rel, 0)  1/log2(i+1)   0              docno, as float32    rel >= 1  nominal
    sklearn     rel          1/log2(i+1)   0              average (a)          rel >= 1  nominal
    lightgbm    2^rel - 1    1/log2(i+1)   1 (b)          row                  rel >= 1  reachable
    xgboost     2^rel - 1    1/log2(i+1)   1 (b)          row, as float32      rel >= 1  reachable
    ranklib     2^rel - 1    1/log2(i+1)   0              row                  rel >= 1  reachable (c)
    catboost    rel          1/log2(i+1)   0 (d)          worst                rel >= 1  reachable
    ==========  ===========  ============  =============  ===================  ========  ============

    letor's discount is 1, 1, 1/log2(3), 1/log2(4), ... Measures that a tool lacks, such as reciprocal rank in
    scikit-learn, follow the rest of its row. (a) Average precision retrieves equal scores together, at the end of their
    group; reciprocal rank, success, ERR and bpref rank them in row order. (b) 0 for precision, success and rbp.
    (c) Average precision divides by the number of relevant items. (d) 1 for NDCG and recall.

    O(m log m) time per column, in compiled code.

    Examples
    --------
    >>> from rankrls.metrics import Measure
    >>> print(Measure("ndcg", k=10))
    ndcg@10
    >>> y, scores, qid = [2, 0, 1, 0, 1], [0.3, 0.5, 0.1, 0.2, 0.7], [1, 1, 1, 2, 2]
    >>> round(Measure("ndcg", k=10)(y, scores, qid=qid), 4)
    0.9539
    >>> round(Measure("ndcg", k=10, convention="sklearn")(y, scores, qid=qid), 4)
    0.8348
    >>> Measure("disagreement")(y, scores, qid=qid, per_query=True).round(4)
    array([0.6667, 0.    ])
    """

    name: Any
    k: int | None = None
    convention: str = "letor"
    gain: Gain | None = None
    discount: str | None = None
    empty: float | str | None = None
    ties: str | None = None
    relevant: float | None = None
    denominator: str | None = None
    tied_labels: str | None = None
    highest: float | None = None
    persistence: float | None = None

    def __post_init__(self) -> None:
        if not callable(self.name):
            object.__setattr__(self, "name", _named(self.name, self.name).name)
        if isinstance(self.gain, list | np.ndarray):
            object.__setattr__(self, "gain", tuple(vector_of("gain", self.gain, "one gain per label").tolist()))
        depth = self.definition.depth
        if self.k is not None and depth == "none":
            raise InputError(f"{self.name} has no depth; got k={self.k!r}.", parameter="k")
        if self.k is not None:
            object.__setattr__(self, "k", check_count("k", self.k, none="all positions"))
        elif depth == "needed":
            raise InputError(f"{self.name} needs a depth k, as in the name '{self.name}@10'.", parameter="k")
        check_word("convention", self.convention, CONVENTIONS)
        for name, value in self._given().items():
            self.definition.check(name, value)

    @property
    def definition(self) -> Definition:
        """Row of the table of measures, or the definition of a function."""
        return Definition(str(self), self._apply, depth="none") if callable(self.name) else BY_NAME[self.name]

    def _apply(self, chunk: Chunk) -> Array:
        """Values of a function for each query and column."""
        values = np.empty((chunk.n_queries, len(chunk.scores)))
        for q, (a, b) in enumerate(pairwise(chunk.starts)):
            for k, scores in enumerate(chunk.scores[:, a:b]):
                value = self.name(chunk.y[a:b], scores)
                try:
                    values[q, k] = float(value)
                except (TypeError, ValueError):
                    problem = f"the measure {self} must return one number per query; it returned {value!r}."
                    raise InputError(problem, parameter="measure") from None
        if np.isinf(values).any():
            raise InputError(f"the measure {self} returned infinity for a query.", parameter="measure")
        return values

    @property
    def choices(self) -> Any:
        """Choices of the convention, overridden by those given."""
        return self.definition.chosen(self.convention, self._given())

    def _given(self) -> Values:
        """Choices that were given."""
        values = {name: vars(self)[name] for name in DEFAULTS}
        return {name: value for name, value in values.items() if value is not None}

    def __repr__(self) -> str:
        """Constructor call; part of an estimator's repr."""
        given = {name: value for name, value in vars(self).items() if value is not None}
        return f"Measure({', '.join(f'{name}={value!r}' for name, value in given.items())})"

    def __str__(self) -> str:
        if callable(self.name):
            return str(getattr(self.name, "__name__", repr(self.name)))
        given = {} if self.convention == "letor" or self.definition.over_pairs else {"convention": self.convention}
        given.update(self._given())
        inside = ", ".join(f"{name}={value!r}" for name, value in given.items())
        depth = "" if self.k is None else f"@{self.k}"
        return (self.definition.short or self.name) + (f"({inside})" if inside else "") + depth

    @property
    def greater_is_better(self) -> bool:
        """False only for errors."""
        return self.definition.greater_is_better

    @property
    def not_judged(self) -> str:
        """Reason why no query may have a value."""
        if not self.definition.over_pairs:
            return "every query is skipped"
        both = " and two different scores" if self.name == "kendall_tau" else ""
        return f"no query has two items with different labels{both}"

    def values(
        self,
        scores: Array,
        y: Array,
        starts: Index,
        *,
        weights: Array | None = None,
        places: AnyArray | None = None,
    ) -> Array:
        """Value of each query of a chunk, for many columns of scores at once, without validation.

        Parameters
        ----------
        scores : ndarray of shape (columns, rows)
            Finite float64 in C order, such as the held-out scores of every alpha; -inf for rows that were not
            retrieved.
        y : ndarray of shape (rows,)
            Labels; fastest if the rows of each query are sorted by label.
        starts : ndarray of shape (queries + 1,)
            First row of each query, and the number of rows.
        weights : ndarray of shape (rows,), optional
            Row weights, for measures over pairs.
        places : ndarray of shape (rows,), optional
            Order of rows with equal scores, such as the row numbers before rows were sorted; as given by default.

        Returns
        -------
        ndarray of shape (queries, columns)
            NaN for a query that has no value.
        """
        if self.choices.single_scores and not self.definition.over_pairs:
            single = np.clip(scores, -_MOST, _MOST).astype(np.float32).astype(np.float64)
            scores = np.where(scores == -np.inf, scores, single)
        chunk = Chunk(scores, y, weights, starts, self.k, self.choices)
        if not self.definition.over_pairs:
            chunk = chunk.in_order(y if self.choices.ties == "worst" else places)
        return self.definition.compute(chunk)

    def in_both_orders(
        self, scores: Array, y: Array, starts: Index, *, weights: Array | None = None, places: AnyArray | None = None
    ) -> Array:
        """Values as of :meth:`values`, and those of shuffled rows, (2, queries, columns).

        Equal scores are ranked in the order of rows, of which measures over pairs are independent. The values of a
        random order and of its reverse are averaged, which halves the standard deviation due to it.
        """
        values = self.values(scores, y, starts, weights=weights, places=places)
        gaps = (np.diff(np.sort(scores[:, a:b], axis=1)) for a, b in pairwise(starts))
        if self.definition.over_pairs or all(gap.all() for gap in gaps):
            return np.stack((values, values))
        order = np.random.default_rng(len(y)).permutation(len(y))
        shuffled = [self.values(scores, y, starts, places=each) for each in (order, -order)]
        return np.stack((values, np.mean(shuffled, axis=0)))

    def per_query(
        self,
        y: Array,
        scores: Array,
        layout: QueryLayout,
        weights: Array | None = None,
        docno: IdsLike | None = None,
    ) -> Array:
        """Values of each query, (q, columns), for scores (m, columns) of rows in any order.

        Document ids order equal scores if the convention requires it.
        """
        order = layout.order if docno is None or self.choices.ties != "docno" else docno_order(docno, layout)
        y = y[order]
        weights = None if weights is None else weights[order]
        return self.values(np.ascontiguousarray(scores[order].T), y, layout.starts, weights=weights)

    def __call__(
        self,
        y_true: VectorLike,
        y_score: LabelsLike,
        y: LabelsLike | None = None,
        *,
        qid: IdsLike | None = None,
        sample_weight: VectorLike | None = None,
        docno: IdsLike | None = None,
        per_query: bool = False,
    ) -> Any:
        """Evaluate one ranking, or several.

        Parameters
        ----------
        y_true : array-like of shape (m,)
            Labels, any finite numbers; those of NDCG must have a gain.
        y_score : array-like of shape (m,) or (m, columns)
            Scores, greater is better; each column is evaluated separately.
        y : array-like of shape (m,), optional
            Labels, if the other two are an estimator and X, as when scikit-learn calls ``scoring``: the result is then
            the average over queries, for which greater is better: errors are negated.
        qid : array-like of shape (m,), optional
            One query id per row, in any order. By default, all rows belong to one query.
        sample_weight : array-like of shape (m,), optional
            Nonnegative row weights; a pair has weight ``w_i w_j``. Measures over positions ignore them.
        docno : array-like of shape (m,), optional
            Document ids. With ``ties="docno"`` (convention "trec"), the greater id, as text, comes first among equal
            scores; other measures ignore them.
        per_query : bool
            Whether to return each query's value instead.

        Returns
        -------
        float or ndarray
            A float, or shape (columns,) if scores have columns. With ``per_query``, shape (q,) or (q, columns), in
            order of first appearance; NaN for queries without a value.

        Raises
        ------
        ValueError
            If labels, scores or weights are not finite (the message names the row), a weight is negative, lengths
            differ, or no query has a value; and if an estimator was fitted with qid, but qid is missing.
        """
        if y is not None:
            return self._score(y_true, y_score, y, qid, sample_weight)
        labels = vector_of("y_true", y_true, "one label per row")
        if not len(labels):
            raise InputError("y_true is empty: there is nothing to evaluate.", parameter="y_true")
        check_finite("y_true", labels, "label")
        scores = check_scores(y_score)
        check_one_score_per_label(scores, labels)
        weights = check_weights(sample_weight, len(labels))
        layout = query_layout(qid, len(labels))
        values = self.per_query(labels, scores.reshape(len(labels), -1), layout, weights, docno)
        if per_query:
            return values if scores.ndim == 2 else values[:, 0]
        average = mean_of_judged(values)
        if np.isnan(average).all():
            raise InputError(f"{self} is not defined for these data: {self.not_judged}.", parameter="y_true")
        return average if scores.ndim == 2 else float(average[0])

    def _score(self, model: Any, X: Any, y: Any, qid: IdsLike | None, sample_weight: VectorLike | None) -> float:
        """Average over the queries of a model's ranking; negated for an error.

        Rows whose label is NaN are left out for estimators that use unlabelled rows.

        Raises
        ------
        InputError
            If the model was fitted with qid but the measure did not receive it: all rows would count as one query.
        """
        if qid is None and holds(model, "fitted_with_qid_"):
            raise InputError(
                f"The measure {self} did not get qid, but the model was fitted with it. qid reaches scorers by "
                "metadata routing: call sklearn.set_config(enable_metadata_routing=True) first, and pass "
                "params={'qid': qid} to cross_validate, or qid=qid to the fit of a search.",
                parameter="qid",
            )
        scores = predict_by_query(model, X, qid)
        weights = sample_weight if self.definition.over_pairs else None
        if holds(model, "_takes_unlabelled"):
            y, scores, qid, weights = labelled_rows(y, scores, qid, weights)
        value = float(self(y, np.asarray(scores), qid=qid, sample_weight=weights))
        return value if self.greater_is_better else -value

    def get_metadata_routing(self) -> MetadataRequest:
        """Metadata that scikit-learn passes to a measure given as ``scoring``: qid, and weights if they are used."""
        request = MetadataRequest(owner=self)
        request.score.add_request(param="qid", alias=True)
        request.score.add_request(param="sample_weight", alias=self.definition.over_pairs)
        return request


MeasureLike: TypeAlias = str | Measure | Callable[..., float]
"""A measure as users give it."""


def resolve_measure(measure: MeasureLike, convention: str | None = None) -> Measure:
    """Convert a name or a function to a measure.

    Parameters
    ----------
    measure : str, Measure or callable
        Name of a :class:`Measure`, with ``@k`` for a depth (``"ndcg@10"``, ``"map"``, ``"p@5"``, ``"disagreement"``); a
        :class:`Measure`, returned unchanged; or ``function(y_true, y_score) -> float``, called once per query, where
        greater is better. Names of other tools, such as ``"ndcg_cut_10"`` and ``"hit@5"``, are understood.
    convention : str, optional
        Convention of a measure given by name; "letor" by default.

    Returns
    -------
    Measure

    Raises
    ------
    ValueError
        If ``measure`` is anything else; the message lists the known names.

    Examples
    --------
    >>> from rankrls.metrics import resolve_measure
    >>> resolve_measure("p@5").k
    5
    >>> print(resolve_measure("ndcg@3", convention="sklearn"))
    ndcg(convention='sklearn')@3
    """
    if isinstance(measure, Measure):
        return measure
    if isinstance(measure, str):
        found = _NAME.fullmatch(measure.lower())
        word, depth = ("", None) if found is None else found.groups()
        name = _named(word, measure).name
        return Measure(name, k=int(depth) if depth else None, convention="letor" if convention is None else convention)
    return Measure(measure)


def named_measures(measures: MeasureLike | Sequence[MeasureLike], convention: str | None) -> dict[str, Measure]:
    """Measures under the names they were given by; a single one counts as a list of one."""
    found = {}
    for each in [measures] if isinstance(measures, str) or not isinstance(measures, Sequence) else measures:
        measure = resolve_measure(each, convention)
        found[each if isinstance(each, str) else str(measure)] = measure
    return found


def needs_gains(measure: MeasureLike) -> bool:
    """Whether a measure, or its name, refuses negative labels, which have no gain; False if it is not a measure."""
    try:
        found = resolve_measure(measure)
    except InputError:
        return False
    return bool(found.name == "ndcg" and found.choices.gain != "positive")


def _named(name: Any, given: Any) -> Definition:
    """Definition with this name; ``given`` is the user's spelling."""
    known = _OTHER_NAMES.get(name, name) if isinstance(name, str) else ""
    if known not in BY_NAME:
        word = str(given).lower().partition("@")[0].strip()
        problem = f"unknown measure {given!r}.{did_you_mean(_OTHER_NAMES.get(word, word), BY_NAME)}"
        problem += f" The measures are {', '.join(sorted(BY_NAME))}; most take a depth, as in 'ndcg@10'."
        raise InputError(problem, parameter="measure")
    return BY_NAME[known]


def evaluate(
    y_true: VectorLike,
    y_score: LabelsLike,
    *,
    qid: IdsLike | None = None,
    measures: MeasureLike | Sequence[MeasureLike] = (
        "map",
        "mrr",
        "p@5",
        "p@10",
        "ndcg@1",
        "ndcg@5",
        "ndcg@10",
        "disagreement",
    ),
    convention: str | None = None,
    sample_weight: VectorLike | None = None,
    docno: IdsLike | None = None,
    per_query: bool = False,
) -> Values:
    """Evaluate one ranking with several measures.

    Parameters
    ----------
    y_true : array-like of shape (m,)
        Labels, any finite numbers; NDCG needs labels with a gain.
    y_score : array-like of shape (m,) or (m, columns)
        Scores, greater is better; each column is evaluated separately.
    qid : array-like of shape (m,), optional
        One query id per row, in any order. By default, all rows belong to one query.
    measures : sequence of str, Measure or callable
        Names (with a depth), measures or functions (:func:`rankrls.metrics.resolve_measure`);
        :class:`rankrls.metrics.Measure` lists the names.
    convention : {"letor", "trec", "sklearn", "lightgbm", "xgboost", "ranklib", "catboost"}, optional
        Evaluation tool whose definitions apply to measures given by name; "letor" by default.
    sample_weight : array-like of shape (m,), optional
        Row weights, used by measures over pairs and ignored by the others.
    docno : array-like of shape (m,), optional
        Document ids, which order equal scores in the convention "trec", as in trec_eval.
    per_query : bool
        Whether to return each query's value instead, in order of first appearance; NaN for queries without a value.

    Returns
    -------
    dict
        Value of each measure under its name, in the order of ``measures``: a float, or shape (columns,) if scores have
        columns; with ``per_query``, shape (q,) or (q, columns).

    Raises
    ------
    ValueError
        If a measure is unknown; if labels, scores or weights are not finite (the message names the row), a weight is
        negative, lengths differ, or a label has no gain; and if no query has a value.

    See Also
    --------
    Measure : One measure, with options and values of each query.
    evaluate_run : TREC judgements and runs.
    rankrls.comparison.compare_rankings : Intervals and paired tests.

    Notes
    -----
    :class:`rankrls.metrics.Measure` describes equal scores, equal labels and queries without relevant items. O(m log m)
    per measure and column, in compiled code.

    Examples
    --------
    >>> from rankrls.metrics import evaluate
    >>> evaluate([1, 0, 2, 0], [0.9, 0.7, 0.5, 0.3], measures=["mrr", "p@2", "disagreement"])
    {'mrr': 1.0, 'p@2': 0.5, 'disagreement': 0.4}
    """
    return {
        name: measure(y_true, y_score, qid=qid, sample_weight=sample_weight, docno=docno, per_query=per_query)
        for name, measure in named_measures(measures, convention).items()
    }


def preference_accuracy(
    y_score: LabelsLike,
    winners: VectorLike,
    losers: VectorLike,
    *,
    strength: VectorLike | None = None,
    weight: VectorLike | None = None,
    per_pair: bool = False,
) -> Any:
    r"""Weighted share of preferences whose winner has the higher score.

    .. math::

        \frac{\sum_e c_e H(\mathrm{sign}(s_e) (f_{i_e} - f_{j_e}))}{\sum_e c_e}, \qquad
        H(a) = 1, \tfrac12, 0 \text{ for } a > 0, a = 0, a < 0,

    over the preferences e = (i, j) with nonzero strength s. This is one minus the loss in equation 2 of Airola,
    Pahikkala and Salakoski (2010), averaged over the pairs.

    Parameters
    ----------
    y_score : array-like of shape (m,) or (m, columns)
        Scores of the items, greater is better; each column is evaluated separately.
    winners, losers : array-like of int, shape (p,)
        Row numbers of the scores. Repeated and contradictory preferences are allowed.
    strength : array-like of shape (p,), optional
        Strengths, of which only the sign is used: ties (0) are ignored, and a negative strength reverses a preference.
    weight : array-like of shape (p,), optional
        Weight of each preference; 1 by default.
    per_pair : bool
        Whether to return 1, 1/2 or 0 for each preference instead, and NaN for ignored ones.

    Returns
    -------
    float or ndarray
        A float, or shape (columns,) if scores have columns; with ``per_pair``, shape (p,) or (p, columns).

    Raises
    ------
    ValueError
        If scores, row numbers, strengths or weights are invalid (the message names the preference), and if all
        preferences are ignored.

    Notes
    -----
    Equal scores count half. O(p) per column.

    Examples
    --------
    >>> from rankrls.metrics import preference_accuracy
    >>> preference_accuracy([0.3, 0.1, 0.2, 0.2], winners=[0, 0, 1, 2], losers=[1, 2, 2, 3])
    0.625
    """
    scores = check_scores(y_score)
    given = check_preferences(winners, losers, len(scores), strength, weight)
    columns = scores if scores.ndim == 2 else scores[:, None]
    right, counts = right_order(columns[given.winners] - columns[given.losers], given.strength, given.weight)
    if not counts.any():
        raise InputError("There are no preferences to evaluate: each one has strength 0 or weight 0.")
    if per_pair:
        values = np.where((counts > 0.0)[:, None], right, np.nan)
        return values if scores.ndim == 2 else values[:, 0]
    share = counts @ right / counts.sum()
    return share if scores.ndim == 2 else float(share[0])


def right_order(differences: Array, strength: Array, weight: Array) -> tuple[Array, Array]:
    """Agreement of score differences with preferences, and the weight of each preference.

    Parameters
    ----------
    differences : ndarray of shape (p, columns)
        Scores of winners minus those of losers.
    strength, weight : ndarray of shape (p,)

    Returns
    -------
    right : ndarray of shape (p, columns)
        1, 1/2 (equal scores) or 0.
    counts : ndarray of shape (p,)
        Weight of each preference; 0 for ties.
    """
    sign = np.sign(strength)
    right = (np.sign(differences) * sign[:, None] + 1.0) / 2.0
    return right, np.where(sign == 0.0, 0.0, weight)


def labelled_rows(y: Any, scores: Any, qid: IdsLike | None, weights: Any) -> tuple[Any, Any, Any, Any]:
    """Labels, scores, query ids and weights of the labelled rows; the label NaN marks an unlabelled row."""
    labels = array_of("y", y)
    if labels.dtype.kind not in "fiub" or labels.ndim not in (1, 2):
        return y, scores, qid, weights
    check_one_score_per_label(scores, labels)
    known = ~np.isnan(labels.reshape(len(labels), -1)).all(axis=1)
    if not known.any():
        raise InputError(
            "Every label is NaN, so there is nothing to evaluate. Make folds of the labelled queries, and keep "
            "the unlabelled rows in each training set.",
            parameter="y",
        )
    qid = None if qid is None else query_layout(qid, len(labels)).codes[known]
    weights = check_weights(weights, len(labels))
    return labels[known], np.asarray(scores)[known], qid, None if weights is None else weights[known]


def row_order_warning(
    measure: Measure, value: float, error: float, shift: float, parameter: str = "scoring"
) -> InputWarning | None:
    """Warning that a random order of rows, which is that of equal scores, changes a mean by many standard errors."""
    if not abs(shift) > _MANY * error:
        return None
    return InputWarning(
        f"Equal scores are ranked in row order, where {measure} is {value:.3f}; in a random order it is "
        f"{value + shift:.3f}. Shuffle the rows, or set ties of rankrls.metrics.Measure.",
        parameter=parameter,
    )


def check_one_score_per_label(scores: Any, labels: AnyArray) -> None:
    """Refuse scores and labels of different lengths."""
    if len(scores) != len(labels):
        problem = f"y_score has {len(scores)} rows but y_true has {len(labels)}: one score per label is needed."
        raise InputError(problem, parameter="y_score")


def check_scores(y_score: LabelsLike) -> Array:
    """Scores as a finite float64 vector or matrix."""
    scores = numbers_of("y_score", y_score)
    if scores.ndim not in (1, 2):
        raise InputError(f"y_score must have shape (m,) or (m, columns); got {scores.shape}.", parameter="y_score")
    check_finite("y_score", scores, "score")
    return scores


def check_weights(sample_weight: VectorLike | None, n_rows: int) -> Array | None:
    """Row weights as a finite, non-negative float64 vector, or None."""
    if sample_weight is None:
        return None
    w = numbers_of("sample_weight", sample_weight)
    if w.shape != (n_rows,):
        raise InputError(
            f"sample_weight must have one weight per row, shape ({n_rows},); got {w.shape}.", parameter="sample_weight"
        )
    check_finite("sample_weight", w, "weight")
    refuse_where(
        w < 0,
        "sample_weight",
        lambda row: f"sample_weight is negative in row {row} ({w[row]:g}): it must be 0 or more.",
    )
    return w


def mean_of_judged(values: Array) -> Array:
    """Mean of each column of (queries, columns) over the entries that are not NaN; NaN where there are none."""
    return ratio(np.nansum(values, axis=0), (~np.isnan(values)).sum(axis=0))


def mean_and_error(values: Array) -> tuple[Array, Array]:
    """Mean of each column over the entries that are not NaN, and its standard error, NaN for fewer than two."""
    mean = mean_of_judged(values)
    count = (~np.isnan(values)).sum(axis=0)
    squares = np.nansum((values - mean) ** 2, axis=0)
    return mean, np.sqrt(ratio(squares, count * (count - 1.0)))


@dataclass(frozen=True, eq=False)
class JoinedRun:
    """Judged and retrieved documents of every judged query, one row each.

    Attributes
    ----------
    y, scores : ndarray of shape (m,)
        Labels, 0 for documents without a judgement; and scores, -inf for documents that were not retrieved.
    judged : ndarray of shape (m,), bool
        Whether a document has a nonnegative judgement. In a query without any, the first document, which is not
        relevant, takes their place.
    docno : ndarray of shape (m,)
    layout : QueryLayout
    counts : dict of str to int
        Number of queries, and numbers of queries and documents that only the run or only the judgements have.
    """

    y: Array
    scores: Array
    judged: Mask
    docno: AnyArray
    layout: QueryLayout
    counts: dict[str, int]

    def per_query(self, measure: Measure) -> Array:
        """Value of each judged query; NaN for queries without a value."""
        if measure.name == "pair_squared_error" or callable(measure.name):
            problem = f"{measure} needs a score for every judged document, but a run has scores of retrieved ones only."
            raise InputError(problem, parameter="measures")
        rows = np.flatnonzero(self.judged) if measure.definition.judged_only else np.arange(len(self.y))
        layout = query_layout(self.layout.codes[rows], len(rows))
        return measure.per_query(self.y[rows], self.scores[rows, None], layout, docno=self.docno[rows])[:, 0]


def join_run(qrels: ByDocument, run: ByDocument) -> JoinedRun:
    """Join a run with judgements; the queries are those with judgements, in the same order.

    Raises
    ------
    InputError
        If they have no query in common, or a label or score is not a finite number.
    """
    qrels = {query: labels for query, labels in qrels.items() if labels}
    if not qrels.keys() & run.keys():
        problem = "The run and the judgements have no query in common."
        if qrels and run:
            problem += f" Judgements begin with query {next(iter(qrels))!r}, and the run with {next(iter(run))!r}."
        raise InputError(problem, parameter="run")
    rows = [
        (query, document, labels.get(document, np.nan), run.get(query, {}).get(document, -np.inf))
        for query, labels in qrels.items()
        for document in {**labels, **run.get(query, {})}
    ]
    queries, documents, *numbers = zip(*rows, strict=True)
    y, scores = np.array(numbers, dtype=np.float64)
    unknown = np.flatnonzero(np.isinf(y) | ~(scores < np.inf))
    if len(unknown):
        where = f"document {documents[unknown[0]]!r} of query {queries[unknown[0]]!r}"
        raise InputError(f"The label and the score of {where} must be finite numbers.", parameter="run")
    known = ~np.isnan(y)
    retrieved = scores > -np.inf
    counts = {
        "queries": len(qrels),
        "queries_without_results": len(qrels.keys() - run.keys()),
        "queries_without_judgements": len(run.keys() - qrels.keys()),
        "relevant_not_retrieved": int((~retrieved & (y >= 1)).sum()),
        "retrieved_not_judged": int((retrieved & ~known).sum()),
    }
    layout = query_layout(np.array(queries, dtype=object), len(queries))
    judged = known & (y >= 0)
    first = layout.starts[:-1]
    judged[first] |= ~np.logical_or.reduceat(judged, first)
    return JoinedRun(
        y=np.where(known, y, 0.0),
        scores=scores,
        judged=judged,
        docno=np.array(documents, dtype=object),
        layout=layout,
        counts=counts,
    )


def evaluate_run(
    qrels: ByDocument,
    run: ByDocument,
    *,
    measures: MeasureLike | Sequence[MeasureLike] = RUN_MEASURES,
    convention: str | None = "trec",
    per_query: bool = False,
) -> Values:
    """Evaluate a run, whose documents need not be the judged ones.

    Parameters
    ----------
    qrels : mapping of str to mapping of str to float
        Labels of each query's judged documents (:func:`rankrls.io.load_qrels`).
    run : mapping of str to mapping of str to float
        Scores of each query's retrieved documents, greater is better (:func:`rankrls.io.load_run`).
    measures : sequence of str or Measure
        See :func:`resolve_measure`.
    convention : str, default="trec"
        Convention of the measures given by name.
    per_query : bool
        Whether to return each judged query's value instead, in the order of ``qrels``; NaN for queries without a value.

    Returns
    -------
    dict
        Value of each measure under its name.

    Raises
    ------
    InputError
        If no query has both judgements and results, if values are not finite, and for pair_squared_error and functions,
        which need a score for every judged document.

    Notes
    -----
    Relevant documents that were not retrieved have no position, but count as relevant. Retrieved documents without a
    judgement are not relevant; measures over pairs and bpref leave them out, as they do documents with a negative
    judgement. A query without results has the value of an empty list, as with ``trec_eval -c``. Queries without
    judgements are left out. O(m log m) per measure.

    Examples
    --------
    >>> from rankrls.metrics import evaluate_run
    >>> qrels = {"q1": {"a": 1, "b": 0, "c": 2}, "q2": {"d": 1}}
    >>> run = {"q1": {"b": 3.5, "x": 2.0, "c": 1.5}}
    >>> evaluate_run(qrels, run, measures=["map", "bpref"], per_query=True)
    {'map': array([0.16666667, 0.        ]), 'bpref': array([0., 0.])}
    """
    joined = join_run(qrels, run)
    found: Values = {}
    for name, measure in named_measures(measures, convention).items():
        values = joined.per_query(measure)
        found[name] = values if per_query else float(mean_of_judged(values))
    return found
