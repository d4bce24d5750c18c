"""Assignment of rows to queries.

:class:`QueryLayout` finds once what every layer above needs to know about a ``qid`` column: the rows of each query, the
order of the queries, and how to visit them in contiguous runs. Public functions return results in the caller's order.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from rankrls._arrays import to_host
from rankrls._cached import cached_property
from rankrls._cells import is_missing
from rankrls._checks import refuse_where, vector_of
from rankrls._errors import InputError
from rankrls._typing import AnyArray, Array, Index, Mask


def in_words(queries: int) -> str:
    """Number of queries in words: "1 query", "12 queries"."""
    return f"{queries} {'query' if queries == 1 else 'queries'}"


@dataclass(frozen=True, eq=False)
class QueryLayout:
    """The rows of each query.

    Attributes
    ----------
    ids : ndarray of shape (q,)
        Ids of the queries, in order of first appearance.
    codes : ndarray of shape (m,), intp
        Number of each row's query.
    starts : ndarray of shape (q + 1,), intp
        ``order[starts[k]:starts[k + 1]]`` are the rows of query ``k``, in row order.
    contiguous : bool
        Whether the rows of each query are adjacent and the queries follow ``ids``; ``order`` is then ``arange(m)`` and
        no gather is needed.
    """

    ids: AnyArray
    codes: Index
    starts: Index
    contiguous: bool

    @property
    def n_rows(self) -> int:
        return len(self.codes)

    @property
    def n_queries(self) -> int:
        return len(self.ids)

    @cached_property
    def order(self) -> Index:
        """Stable permutation that brings the rows of each query together."""
        if self.contiguous:
            return np.arange(self.n_rows, dtype=np.intp)
        return np.argsort(self.codes, kind="stable")

    @property
    def counts(self) -> Index:
        """Number of rows of each query."""
        return np.diff(self.starts)

    @property
    def blocks(self) -> list[Index]:
        """Rows of each query."""
        return np.split(self.order, self.starts[1:-1])

    @cached_property
    def by_id(self) -> Index:
        """Numbers of the queries in the order of their ids, which does not depend on the order of the rows.

        Random draws of queries use this order. Ids that cannot be compared with each other stay in order of first
        appearance.
        """
        try:
            return np.argsort(self.ids, kind="stable")
        except TypeError:
            return np.arange(self.n_queries, dtype=np.intp)

    @property
    def codes_by_id(self) -> Index:
        """Number of each row's query in the order of their ids."""
        return np.argsort(self.by_id)[self.codes]

    def rows(self, query: int) -> Index:
        """Rows of one query."""
        return self.order[self.starts[query] : self.starts[query + 1]]


def query_layout(qid: Any, n_rows: int, name: str = "qid") -> QueryLayout:
    """Group rows by ``qid``.

    Parameters
    ----------
    qid : array-like of shape (m,) or None
        One id per row, in any order and of any hashable type. None means one query of all rows.
    n_rows : int
        Number of rows that ``qid`` must have.
    name : str, default="qid"
        Name of the parameter in error messages.

    Raises
    ------
    InputError
        If ``qid`` is not one-dimensional, its length is not ``n_rows``, or an id is missing or not hashable.
    """
    if qid is None:
        return QueryLayout(
            np.zeros(1, dtype=np.intp),
            np.zeros(n_rows, dtype=np.intp),
            np.array([0, n_rows], dtype=np.intp),
            True,
        )
    ids = _as_id_array(qid)
    if ids.ndim != 1:
        raise InputError(f"{name} must be one-dimensional, one id per row; got shape {ids.shape}.", parameter=name)
    if len(ids) != n_rows:
        problem = f"{name} has {len(ids)} entries for {n_rows} rows: it needs one id per row, not group sizes."
        hint = " rankrls.group_to_qid makes them from group sizes." if name == "qid" else ""
        raise InputError(problem + hint, parameter=name)
    objects = ids.dtype.kind == "O"
    missing = np.fromiter(map(is_missing, ids), dtype=bool, count=n_rows) if objects else ids != ids
    refuse_where(missing, name, lambda row: f"{name} is missing in row {row}: every row needs an id.")
    return _group(ids, name)


def label_varies(y: Array, layout: QueryLayout) -> Mask:
    """Whether each query contains two different labels, in any target."""
    if layout.n_rows == 0:
        return np.zeros(layout.n_queries, dtype=bool)
    sorted_y = y.reshape(len(y), -1)[layout.order]
    first = np.repeat(sorted_y[layout.starts[:-1]], layout.counts, axis=0)
    return np.logical_or.reduceat((sorted_y != first).any(axis=1), layout.starts[:-1])


def group_to_qid(group: Any) -> Index:
    """Convert query sizes, as used by LightGBM and XGBoost, to one query id per row.

    The first ``group[0]`` rows are query 0, the next ``group[1]`` rows are query 1, and so on.

    Parameters
    ----------
    group : array-like of shape (q,)
        Number of rows of each query, in row order. A size of 0 is a query without rows; its number is not used.

    Returns
    -------
    ndarray of shape (m,), intp

    Raises
    ------
    InputError
        If a size is negative or not a whole number, with its position as ``row``.

    Notes
    -----
    O(m + q). Conversely, if the rows of each query are adjacent, its size is the length of its run in ``qid``.

    Examples
    --------
    >>> from rankrls import group_to_qid
    >>> group_to_qid([3, 1, 2])
    array([0, 0, 0, 1, 2, 2])
    """
    sizes = vector_of("group", group, "the number of rows of each query")
    refuse_where(
        ~(np.isfinite(sizes) & (sizes >= 0.0) & (sizes == np.floor(sizes))),
        "group",
        lambda k: f"group must contain whole numbers that are not negative; the size of query {k} is {sizes[k]:g}.",
    )
    return np.repeat(np.arange(len(sizes), dtype=np.intp), sizes.astype(np.intp))


def query_weight_to_sample_weight(query_weight: Any, qid: Any) -> Array:
    """Convert one weight per query, as used by XGBoost, to one weight per row.

    Parameters
    ----------
    query_weight : array-like of shape (q,)
        Nonnegative weights of the queries, in order of first appearance in ``qid``.
    qid : array-like of shape (m,)
        One query id per row, in any order.

    Returns
    -------
    ndarray of shape (m,)
        ``sample_weight`` for fits with ``balance="examples"``, which is the default: the loss of each query is
        multiplied by its weight.

    Raises
    ------
    InputError
        If the number of weights is not that of the queries, or a weight is negative or not finite, with its position as
        ``row``.

    Notes
    -----
    With ``balance="pairs"``, the weight of a pair is the product of the weights of its rows, so square roots of the
    weights have this effect. With ``balance="queries"``, constant weights within a query have no effect. O(m + q).

    Examples
    --------
    >>> from rankrls import query_weight_to_sample_weight
    >>> query_weight_to_sample_weight([2.0, 0.5], qid=["a", "a", "b"])
    array([2. , 2. , 0.5])
    """
    weights = vector_of("query_weight", query_weight, "one weight per query")
    layout = query_layout(qid, len(qid))
    if len(weights) != layout.n_queries:
        problem = f"query_weight has {len(weights)} weights for {in_words(layout.n_queries)}. Give one for each query."
        raise InputError(problem, parameter="query_weight")
    refuse_where(
        ~(np.isfinite(weights) & (weights >= 0.0)),
        "query_weight",
        lambda k: f"query_weight must be finite and not negative; that of query {k} is {weights[k]:g}.",
    )
    return weights[layout.codes]


def _as_id_array(qid: Any) -> AnyArray:
    if not isinstance(qid, (list, tuple)):
        ids = to_host(qid)
        return ids.astype(object) if ids.dtype.kind == "T" else ids  # numpy sorts missing strings among the others
    kinds = {type(v) for v in qid}
    kind = kinds.pop() if len(kinds) == 1 else object
    if issubclass(kind, str | float | int | np.integer):
        ids = np.asarray(qid)
        if ids.dtype.kind != "f" or issubclass(kind, float):
            return ids
    # Anything else keeps its own equality: numpy would convert the 1 in [1, "1"] to "1", two large integers to the same
    # float, and tuples to a second dimension.
    ids = np.empty(len(qid), dtype=object)
    ids[:] = [tuple(v) if isinstance(v, list) else v for v in qid]
    return ids


def _group(ids: AnyArray, name: str) -> QueryLayout:
    """Group by runs first: real files keep the rows of a query together, and then only the run heads are compared."""
    m = len(ids)
    heads = np.flatnonzero(np.append(True, ids[1:] != ids[:-1]))[:m]
    seen: dict[Any, int] = {}
    try:
        codes_of_heads = [seen.setdefault(value, len(seen)) for value in ids[heads].tolist()]
    except TypeError as error:
        raise InputError(
            f"{name} must contain hashable ids, such as numbers or strings: {error}.", parameter=name
        ) from None
    run_codes = np.array(codes_of_heads, dtype=np.intp)
    firsts = np.unique(run_codes, return_index=True)[1]
    codes = np.repeat(run_codes, np.diff(heads, append=m))
    counts = np.bincount(codes, minlength=len(firsts))
    starts = np.concatenate(([0], np.cumsum(counts))).astype(np.intp)
    return QueryLayout(ids[heads[firsts]], codes, starts, len(firsts) == len(heads))
