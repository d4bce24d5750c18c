"""The pairs of items that are worth asking about next."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankrls._checks import check_count, check_word
from rankrls._errors import InputError
from rankrls._preferences import check_preferences
from rankrls._queries import query_layout
from rankrls._shown import Shown, some, table_text
from rankrls.features.columns import rows_of
from rankrls.inspection.uncertainty import Posterior, normal_above_zero
from rankrls.models.inputs.validation import check_features, check_no_extra_qid
from rankrls.problems.questions import CRITERIA, among, inside_queries


@dataclass(frozen=True, eq=False, repr=False)
class Questions(Shown):
    """Pairs of rows to ask about, the one to ask first first.

    Attributes
    ----------
    a, b : ndarray of intp
        Row numbers; ``a`` is the one whose score is higher now.
    value : ndarray of float64
        The value of the question by the criterion, once those before it are answered.
    probability : ndarray of float64
        P(a above b) as it is now, before any answer.
    """

    a: NDArray[np.intp]
    b: NDArray[np.intp]
    value: NDArray[np.float64]
    probability: NDArray[np.float64]

    def __len__(self) -> int:
        return len(self.a)

    def __str__(self) -> str:
        columns = (self.a, self.b, self.value, self.probability)
        rows = [[f"{a} or {b}", f"{v:.4g}", f"{p:.2f}"] for a, b, v, p in zip(*columns, strict=True)]
        return f"{len(self)} questions\n{table_text(['rows', 'value', 'P(first above)'], some(rows) if rows else [])}"


def pairs_to_ask(
    posterior: Posterior,
    X: Any,
    *,
    qid: Any = None,
    k: int = 1,
    criterion: str = "vote",
    pairs: tuple[Any, Any] | None = None,
    exclude: tuple[Any, Any] | None = None,
) -> Questions:
    r"""The pairs of items whose comparison would teach the most.

    Parameters
    ----------
    posterior : Posterior
        The present knowledge; made by :func:`posterior` or :func:`pair_posterior`.
    X : as for ``predict``
        The items that could be asked about.
    qid : array-like of shape (m,), optional
        One query id per row: only items of one query are compared. Needed if the posterior was made with qid.
    k : int, default=1
        How many pairs; all different. Each is chosen as if those before it had been answered, so that they do not all
        ask the same. Fewer come back if fewer can teach anything.
    criterion : {"vote", "variance", "even"}, default="vote"
        "vote": what a yes or no tells about the scores, in bits; large if the order is open *and* the scores are
        unknown. "variance": what a number tells, the difference of two labels or a strength; the order does not matter,
        and items that differ much are preferred. "even": the probability closest to 1/2, even if little can be learned.
    pairs : tuple of two arrays of row numbers, optional
        The candidates. By default all pairs of items of one query.
    exclude : tuple of two arrays of row numbers, optional
        Pairs that are not to be asked (again), in either order.

    Returns
    -------
    Questions

    Notes
    -----
    O(m^2 n) for m items of one query and n features (a kernel: the training items), in tiles, for each of the k pairs;
    nothing of the size of all pairs is held, but for a kernel the m x training items values are.

    With variance v and mean :math:`\mu` of a difference and noise :math:`\rho^2` of an answer
    (``posterior.answer_variance``), "variance" is :math:`\tfrac12 \log_2(1 + v / \rho^2)`.

    References
    ----------
    Houlsby, Huszár, Ghahramani, Lengyel: Bayesian active learning for classification and preference learning. 2011.
    MacKay: Information-based objective functions for active data selection. Neural Computation, 1992.

    Examples
    --------
    >>> from rankrls import RankRLS
    >>> from rankrls.inspection import pair_posterior, pairs_to_ask
    >>> X = [[0.0, 0.0], [1.0, 0.0], [0.0, 1.0], [3.0, 0.0]]
    >>> known = pair_posterior(RankRLS(), X, winners=[1, 3], losers=[0, 1])  # of the second feature nothing
    >>> questions = pairs_to_ask(known, X, k=2)
    >>> sorted((int(questions.a[0]), int(questions.b[0])))
    [0, 2]
    """
    check_word("criterion", criterion, CRITERIA)
    check_count("k", k)
    if not isinstance(posterior, Posterior):
        problem = "{posterior} must come from posterior() or pair_posterior(); got {0}."
        raise InputError(problem, type(posterior).__name__)
    X = check_features(posterior._model, X, kernel=posterior._model.kernel)
    m = rows_of(X)
    check_no_extra_qid(posterior._by_query and pairs is None, qid, "pairs_to_ask")
    layout = query_layout(qid, m)
    left_out = set() if exclude is None else _pair_set(exclude, m, "exclude")
    candidates = None if pairs is None else _rows_of(pairs, m, "pairs")
    scores = posterior._scores(X)
    if not posterior.noise_variance > 0.0:
        problem = "The model fits every observation exactly, so no answer could add anything."
        raise InputError(problem, remedy="Give {noise}.", parameter="noise")
    noise = posterior.answer_variance / posterior.noise_variance
    # Means in the units of the covariances.
    scores = replace(scores, mean=scores.mean / np.sqrt(posterior.noise_variance))  # in the units of the covariances
    first = scores
    chosen, values = [], []
    for _ in range(k):
        if candidates is None:
            found = inside_queries(scores, layout, criterion, noise, left_out)
        else:
            found = among(scores, candidates, criterion, noise, left_out)
        if found.a < 0:
            break
        chosen.append((found.a, found.b))
        values.append(found.value)
        left_out.add((min(found.a, found.b), max(found.a, found.b)))
        if len(chosen) < k:
            scores = scores.after(found.a, found.b, noise)
    ends = np.array(chosen, dtype=np.intp).reshape(-1, 2)
    swap = first.mean[ends[:, 0]] < first.mean[ends[:, 1]]
    ends[swap] = ends[swap, ::-1]
    above, below = ends[:, 0].copy(), ends[:, 1].copy()
    chance = normal_above_zero(first.mean[above] - first.mean[below], first.pair_variances(above, below))
    return Questions(above, below, np.array(values), chance)


def _rows_of(pairs: Any, m: int, name: str) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    if not isinstance(pairs, tuple | list) or len(pairs) != 2:
        raise InputError(f"{{{name}}} must be two arrays of row numbers, one entry a pair each.")
    try:
        checked = check_preferences(pairs[0], pairs[1], m, None, None, each="pair")
    except InputError as error:
        raise error.renamed({"winners": f"{name}[0]", "losers": f"{name}[1]"}) from None
    return checked.winners, checked.losers


def _pair_set(pairs: Any, m: int, name: str) -> set[tuple[int, int]]:
    a, b = _rows_of(pairs, m, name)
    return set(zip(np.minimum(a, b).tolist(), np.maximum(a, b).tolist(), strict=True))
