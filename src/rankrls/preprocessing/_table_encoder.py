"""Tables with categories, gaps, dates and texts as numbers."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from rankrls._checks import check_count, check_word, unchanged_on_error
from rankrls._errors import InputError, InputWarning, warn_user
from rankrls._queries import query_layout
from rankrls._typing import AnyArray
from rankrls.preprocessing._columns import Column, ColumnUse, check_there, column_uses, columns_of, names_of
from rankrls.preprocessing._encodings import (
    NEED_QUERY,
    STRATEGIES,
    TEXT_FEATURES,
    Categories,
    EncodedFeature,
    Encoding,
    Numbers,
    Texts,
)

_FEW_COLUMNS = 500
_DENSE_FROM = 0.3


@dataclass(eq=False, repr=False, kw_only=True)
class TableEncoder(TransformerMixin, BaseEstimator):
    """Encode numbers, categories, dates and texts of a table as features, without labels.

    ============  =====================================================================================================
    numbers       unchanged; a missing one is replaced, and a further feature indicates that it was missing
    categories    one feature (0 or 1) for each category with at least ``min_frequency`` rows; one for all rarer and
                  unseen ones; one for missing cells, if they are frequent
    dates         the age in days, and the time of year and of week on a circle, if the dates span two of them
    texts         the number of words of the query in the text, and their TF-IDF cosine; without query text, TF-IDF
                  words
    ============  =====================================================================================================

    Parameters
    ----------
    columns : {"auto", "named"}, default="auto"
        Use of columns that no other parameter names. "auto": according to their cells; empty columns, columns that
        look like ids, and columns that are constant (within every query, if ``fit`` has ``qid``) are left out, see
        ``columns_``. "named": they must be numbers; one error lists all columns that are not.
    categorical, dates, text, ignore : str or sequence of str
        Columns of each kind, and columns that are not features. Whole numbers can be categories too.
    query_text : str, optional
        Column with the text of the query, to compare texts with. It is not a feature itself.
    impute : {"median", "mean"}, number, mapping of column to these, or None, default="median"
        Replacement of missing numbers and ages. With None, and for columns missing from a mapping, a missing number is
        an error.
    min_frequency : int, default=5
        Minimum number of rows for a category to get its own feature.
    max_categories : int, default=1000
        Maximum number of categories of a column; the rarest are combined with the other rare ones.
    missing : str or sequence of str, optional
        Cell texts that mean missing, in upper or lower case, in addition to None, NaN, NaT and ``pandas.NA``. By
        default none: "NA" may be Namibia. The command line reads text files with na, n/a, nan, null, none, - and ?
        instead; empty cells of text files are always missing.
    date_format : str or sequence of str, optional
        Formats of ``datetime.strptime``. By default ISO 8601 (2024-03-01, with or without a time), 2024/3/1 and
        1.3.2024; dates such as 3/1/2024 are ambiguous and need a format.
    text_features : sequence of {"matches", "similarity", "word", "tfidf"}, optional
        Features of texts: the number of matching words of the query, the TF-IDF cosine with the query, the text's own
        words as 0 or 1, or their TF-IDF. By default the first two with ``query_text``, else the last.
    max_words : int, default=1000
        Maximum number of words of each text column that become features; the most frequent are used.
    sparse_output : {"auto", True, False}, default="auto"
        Whether the result is sparse; "auto" if there are more than 500 features, and fewer than 30 % of them are
        numbers or dates.

    Attributes
    ----------
    columns_ : list of ColumnUse
        ``name``, ``kind``, ``reason``, ``n_missing``, ``n_distinct`` and ``n_features`` of each column.
    encodings_ : list
        Encoding of each used column, in column order.
    features_ : tuple of EncodedFeature
        ``name``, ``column``, ``kind`` and ``value`` of each feature.
    n_features_in_ : int
    feature_names_in_ : ndarray of str
        Names of the columns.

    Raises
    ------
    InputError
        In ``fit``, if columns do not exist or cannot be used as configured; one error lists all of them. In
        ``transform``, if columns are missing, or cells of number or date columns are neither.

    Notes
    -----
    O(cells). Columns that ``fit`` did not use are ignored. Blanks around a cell are ignored. Categories are compared as
    texts, so "00100" is not "100". If all of a column are numbers or truth values, they are compared by value with
    cells of any type: 1, 1.0 and "1" are one category, and so are True, "True" and 1.

    If ``transform`` finds no known category in a column with several rows, it issues an ``InputWarning``.

    Examples
    --------
    >>> from rankrls.preprocessing import TableEncoder
    >>> shop = {
    ...     "brand": ["H&M", "Acme", "H&M", None],
    ...     "price": [9.5, None, 20.0, 12.0],
    ...     "added": ["2024-03-01", "2024-02-25", "28.2.2024", "2024-03-02"],
    ... }
    >>> encoder = TableEncoder(min_frequency=2).fit(shop)
    >>> for column in encoder.columns_:
    ...     print(column.name, column.kind, column.reason)
    brand category 2 different values
    price number numbers
    added date dates
    >>> encoder.get_feature_names_out().tolist()
    ['brand=H&M', 'brand=(other)', 'price', 'price (missing)', 'added (age in days)']
    >>> encoder.transform({"brand": ["H&M", "New"], "price": [None, 7.0], "added": ["2024-03-02", "2024-03-02"]})
    array([[ 1.,  0., 12.,  1.,  0.],
           [ 0.,  1.,  7.,  0.,  0.]])
    """

    columns: str = "auto"
    categorical: Any = ()
    dates: Any = ()
    text: Any = ()
    ignore: Any = ()
    query_text: str | None = None
    impute: Any = "median"
    min_frequency: int = 5
    max_categories: int = 1000
    missing: Any = ()
    date_format: Any = None
    text_features: Any = None
    max_words: int = 1000
    sparse_output: Any = "auto"

    __metadata_request__fit = {"qid": True}  # noqa: RUF012

    @unchanged_on_error
    def fit(self, X: Any, y: Any = None, *, qid: ArrayLike | None = None) -> Self:
        """Decide the use of each column, and determine its categories, words and replacements of missing cells.

        Parameters
        ----------
        X : data frame of pandas or polars, table of pyarrow, or dict of columns, with m rows
        y : ignored
            Not used; for compatibility with scikit-learn.
        qid : array-like of shape (m,), optional
            Query of each row. A column that is constant within every query cannot change the ranking by itself, so it
            is left out unless a parameter names it.

        Returns
        -------
        self
        """
        self._fit(columns_of(X, missing=self.missing_words()), qid)
        return self

    @unchanged_on_error
    def fit_transform(self, X: Any, y: Any = None, *, qid: ArrayLike | None = None) -> Any:
        """``fit(X, qid=qid).transform(X)``, with the table read once."""
        columns = columns_of(X, missing=self.missing_words())
        self._fit(columns, qid)
        return self._encoded(columns)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.two_d_array = False  # a table has named columns
        tags.input_tags.string = tags.input_tags.categorical = tags.input_tags.allow_nan = True
        return tags

    def _fit(self, columns: dict[str, Column], qid: ArrayLike | None) -> None:
        fills = dict(self.impute) if isinstance(self.impute, Mapping) else dict.fromkeys(columns, self.impute)
        check_there([*self.columns_named(), *fills], columns)
        texts = self._checked(fills)
        formats = names_of("date_format", self.date_format)
        layout = None if qid is None else query_layout(qid, len(next(iter(columns.values())).values))
        uses = column_uses(columns, self, fills, layout)

        def encoding(use: ColumnUse) -> Encoding:
            column = columns[use.name]
            if use.kind == "category":
                return Categories.fitted(column, self.min_frequency, self.max_categories)
            if use.kind == "text":
                return Texts.fitted(column, texts, self.max_words)
            return Numbers.fitted(column, use.kind, fills.get(use.name), formats)

        found = _all_or_one_error(encoding, [use for use in uses if use.kind not in ("unused", "query text")])
        if not found:
            shown = "; ".join(f"{use.name!r} ({use.reason})" for use in uses)
            text = f"No column of the table is a feature: {shown}. Name columns in categorical, dates or text."
            raise InputError(text, parameter="X")
        self.feature_names_in_ = np.array([*columns], dtype=object)
        self.n_features_in_ = len(columns)
        self.encodings_: list[Encoding] = found
        counts = {encoding.column: len([*encoding.features()]) for encoding in found}
        self.columns_ = [replace(use, n_features=counts.get(use.name, 0)) for use in uses]
        self.sparse_output_ = bool(self.sparse_output)
        if self.sparse_output == "auto":
            n, dense = (sum(counts[e.column] for e in found if isinstance(e, kinds)) for kinds in (Encoding, Numbers))
            self.sparse_output_ = n > _FEW_COLUMNS and dense < _DENSE_FROM * n

    def _checked(self, fills: Mapping[str, Any]) -> Sequence[str]:
        """Kinds of text features; refuses invalid parameters other than names of columns."""
        check_word("columns", self.columns, ("auto", "named"))
        check_count("min_frequency", self.min_frequency)
        check_count("max_categories", self.max_categories, least=2)
        check_count("max_words", self.max_words)
        if self.sparse_output not in ("auto", True, False):
            text = f"sparse_output must be 'auto', True or False; got {self.sparse_output!r}."
            raise InputError(text, parameter="sparse_output")
        for value in fills.values():
            number = isinstance(value, int | float | np.number) and not isinstance(value, bool) and np.isfinite(value)
            if not (value is None or number or value in STRATEGIES):
                text = f"impute must be one of {', '.join(STRATEGIES)}, or a finite number; got {value!r}."
                raise InputError(text, parameter="impute")
        asked = names_of("text_features", self.text_features)
        for name in asked:
            check_word("text_features", name, TEXT_FEATURES)
            if name in NEED_QUERY and self.query_text is None:
                text = f"text_features has {name!r}, which needs a column with the query's text (query_text)."
                raise InputError(text, parameter="text_features")
        return asked or (NEED_QUERY if self.query_text is not None else ("tfidf",))

    def columns_named(self) -> dict[str, str]:
        """Columns that are named in parameters, and their kinds according to these."""
        kinds = {"categorical": "category", "dates": "date", "text": "text", "query_text": "query text"}
        named: dict[str, str] = {}
        for parameter, kind in (kinds | {"ignore": "unused"}).items():
            for name in names_of(parameter, vars(self)[parameter]):
                if named.setdefault(name, kind) != kind:
                    text = f"{parameter} names the column {name!r}, which another parameter makes a {named[name]}."
                    raise InputError(text, parameter=parameter, column=name)
        return named

    def missing_words(self) -> tuple[str, ...]:
        """Cell texts that mean missing."""
        return names_of("missing", self.missing)

    def transform(self, X: Any) -> Any:
        """Return the features of the rows of a table.

        Parameters
        ----------
        X : data frame of pandas or polars, table of pyarrow, or dict of columns, with m rows
            Table with the columns that ``fit`` used; others are ignored.

        Returns
        -------
        ndarray or csr_array of shape (m, n), float64
        """
        columns = self._columns_needed(X)
        self._warn_of_unseen(columns)
        return self._encoded(columns)

    def _columns_needed(self, X: Any) -> dict[str, Column]:
        check_is_fitted(self, "columns_")
        return columns_of(X, self.columns_needed_, self.missing_words())

    def _warn_of_unseen(self, columns: Mapping[str, Column]) -> None:
        """Warn of columns with several rows and no category that ``fit`` has seen."""
        unseen: list[str] = []
        for encoding in self.encodings_:
            column = columns[encoding.column]
            present = int((~column.missing).sum())
            if isinstance(encoding, Categories) and present > 1 and encoding.unseen(column) == present:
                unseen.append(f"{encoding.column!r} ({', '.join(map(repr, [*column.counts()][:2]))})")
        if unseen:
            text = f"Training rows have no category of any row in {', '.join(unseen)}. Check how the cells are written."
            warn_user(InputWarning(text, parameter="X"))

    def count_unusual(self, X: Any) -> dict[str, dict[str, int]]:
        """Count the cells of each column that are missing, or categories that ``fit`` has not seen.

        Parameters
        ----------
        X : as for ``transform``

        Returns
        -------
        dict of str to dict of str to int
            "missing" and "unseen" of each column that has such cells.
        """
        columns = self._columns_needed(X)
        out: dict[str, dict[str, int]] = {}
        for encoding in self.encodings_:
            column = columns[encoding.column]
            found = {"missing": int(column.missing.sum())}
            if isinstance(encoding, Categories):
                found["unseen"] = encoding.unseen(column)
            if any(found.values()):
                out[encoding.column] = {what: n for what, n in found.items() if n}
        return out

    def get_feature_names_out(self, input_features: ArrayLike | None = None) -> AnyArray:
        """Names of the features, from the names of columns and categories.

        Parameters
        ----------
        input_features : ignored
            For scikit-learn.

        Returns
        -------
        ndarray of str objects, shape (n,)
        """
        return np.array([feature.name for feature in self.features_], dtype=object)

    @property
    def features_(self) -> tuple[EncodedFeature, ...]:
        """Descriptions of the features, in order."""
        check_is_fitted(self, "columns_")
        return tuple(feature for encoding in self.encodings_ for feature in encoding.features())

    @property
    def columns_needed_(self) -> list[str]:
        """Columns that ``transform`` needs."""
        texts = any(use.kind == "text" for use in self.columns_)
        return [use.name for use in self.columns_ if use.kind != "unused" and (use.kind != "query text" or texts)]

    def example(self) -> dict[str, Any]:
        """A table of two rows for ``transform``: zeros and empty texts."""
        cells: dict[str, Any] = dict.fromkeys(self.columns_needed_, "")
        for encoding in self.encodings_:
            if isinstance(encoding, Numbers):
                cells[encoding.column] = 0.0 if encoding.kind == "number" else "2000-01-01"
        return {name: [cell] * 2 for name, cell in cells.items()}

    def _encoded(self, columns: Mapping[str, Column]) -> Any:
        """The features of the rows; one error for all columns with cells that cannot be used."""
        query = columns.get(str(self.query_text))
        parts = _all_or_one_error(lambda encoding: encoding.transform(columns[encoding.column], query), self.encodings_)
        if self.sparse_output_:
            return sparse.csr_array(sparse.hstack([sparse.csr_array(part) for part in parts]))
        return np.hstack([part.toarray() if sparse.issparse(part) else part for part in parts])


def _all_or_one_error(make: Callable[[Any], Any], parts: Sequence[Any]) -> list[Any]:
    """Results for all parts; one error for all parts that raise one."""
    found = []
    errors = []
    for part in parts:
        try:
            found.append(make(part))
        except InputError as error:
            errors.append(error)
    if errors:
        raise errors[0].replace(message=" ".join(error.message for error in errors))
    return found
