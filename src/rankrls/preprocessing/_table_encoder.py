"""Tables with categories, gaps, dates and texts as numbers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted

from rankrls._checks import check_count, check_word
from rankrls._errors import InputError
from rankrls.preprocessing._cells import Column, columns_of, not_there, texts_of
from rankrls.preprocessing._deciding import Rules, decided, names_of
from rankrls.preprocessing._features import PERIODS, EncodedFeature, features_of
from rankrls.preprocessing._filling import check_filled, checked_fills, imputer_for, values_of
from rankrls.preprocessing._texts import NEED_QUERY, TEXT_FEATURES, text_features, vectorizers

_FEW_COLUMNS = 500
_DENSE_FROM = 0.3


class TableEncoder(TransformerMixin, BaseEstimator):
    """Numbers, categories, dates and texts of a table as features, learned from training rows without labels.

    ============  =====================================================================================================
    numbers       as they are; a missing one is filled, and a further feature says that it was missing
    categories    one feature each (0 or 1) for those of at least ``min_frequency`` rows; one for all rarer and unseen
                  ones; one for missing cells, if they are frequent
    lists         such as embeddings: one feature for each place in a list, and one that says that a list was missing
    dates         the age in days, and the time of year and of week on a circle, where the dates span two of them
    texts         how many words of the query a text has, and their TF-IDF cosine; without a query's text TF-IDF words
    ============  =====================================================================================================

    The work is done by scikit-learn's SimpleImputer, OneHotEncoder, HashingVectorizer and TfidfVectorizer.

    Parameters
    ----------
    columns : {"auto", "named"}, default="auto"
        What becomes of columns that no other parameter names. "auto": whatever their cells are; constant and empty
        columns and those like ids are left out, see ``columns_``. "named": they have to be numbers, and every column
        that is not is in one error.
    categorical, dates, text, ignore : str or sequence of str
        Columns of each kind, and columns that are no features. Whole numbers may be categories too.
    query_text : str, optional
        The column with the text of the query, with which texts are compared. It is no feature itself.
    impute : {"median", "mean", "most_frequent"}, number, mapping of column to these, or None, default="median"
        What missing numbers, ages and numbers of lists count as. None, and a column that a mapping does not name: a
        missing number is an error.
    min_frequency : int, default=5
        Rows that a category needs to be one of its own.
    max_categories : int, default=1000
        At most so many categories of a column; the rarest go to the others.
    date_format : str or sequence of str, optional
        Formats of ``datetime.strptime``. By default ISO 8601 (2024-03-01, with or without a time), 2024/3/1 and
        1.3.2024; dates such as 3/1/2024 have two readings and need a format.
    text_features : sequence of {"matches", "similarity", "word", "tfidf"}, optional
        What becomes of texts: how many words of the query it has, their TF-IDF cosine, its own words as 0 or 1, or by
        TF-IDF. By default the first two with ``query_text``, else the last.
    max_words : int, default=1000
        Words of each text column that become features, the most frequent.
    sparse_output : {"auto", True, False}, default="auto"
        "auto": a sparse array if there are more than 500 features and fewer than 30 % of the values are not 0.

    Attributes
    ----------
    columns_ : list of ColumnUse
        For each column ``name``, ``kind``, ``reason``, ``n_missing``, ``n_distinct``, ``examples`` and ``n_features``.
    features_ : tuple of EncodedFeature
        For each feature ``name``, ``column``, ``kind``, ``value``.
    n_features_in_, feature_names_in_
        Number and names of the columns.

    Raises
    ------
    InputError
        At ``fit``: for columns that are not there or cannot be used as said; all of them in one error. At
        ``transform``: for columns that are missing, and cells that are not numbers or dates where the training rows had
        such.

    Notes
    -----
    O(cells), and each different text of a column is read once. Columns that ``fit`` did not use do not matter. Cells
    that are empty or say n/a, null, none, nan, - or ? are missing, and blanks around a cell are no part of it.

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
    ['price', 'added (age in days)', 'price (missing)', 'brand=H&M', 'brand=(other)']
    >>> encoder.transform({"brand": ["H&M", "New"], "price": [None, 7.0], "added": ["2024-03-02", "2024-03-02"]})
    array([[12.,  0.,  1.,  1.,  0.],
           [ 7.,  0.,  0.,  0.,  1.]])
    """

    def __init__(
        self,
        *,
        columns: str = "auto",
        categorical: Any = (),
        dates: Any = (),
        text: Any = (),
        ignore: Any = (),
        query_text: str | None = None,
        impute: Any = "median",
        min_frequency: int = 5,
        max_categories: int = 1000,
        date_format: Any = None,
        text_features: Any = None,
        max_words: int = 1000,
        sparse_output: Any = "auto",
    ) -> None:
        self.columns = columns
        self.categorical = categorical
        self.dates = dates
        self.text = text
        self.ignore = ignore
        self.query_text = query_text
        self.impute = impute
        self.min_frequency = min_frequency
        self.max_categories = max_categories
        self.date_format = date_format
        self.text_features = text_features
        self.max_words = max_words
        self.sparse_output = sparse_output

    # Learning ---------------------------------------------------------------------------------------------------------

    def fit(self, X: Any, y: Any = None) -> Self:
        """Decide what each column is, and learn categories, words and what missing cells count as.

        Parameters
        ----------
        X : data frame of pandas or polars, table of pyarrow, or dict of columns, with m rows
        y : ignored
            For scikit-learn: labels are not looked at.

        Returns
        -------
        self
        """
        self._fit(columns_of(X))
        return self

    def fit_transform(self, X: Any, y: Any = None, **params: Any) -> Any:
        """``fit(X).transform(X)``, reading the table once."""
        columns = columns_of(X)
        self._fit(columns)
        return self._encoded(columns)

    def _fit(self, columns: dict[str, Column]) -> None:
        rules = self._rules(columns)
        uses = decided(columns, rules)
        self.feature_names_in_ = np.array([*columns], dtype=object)
        self.n_features_in_ = len(columns)
        self.columns_ = uses
        self._fit_numbers(columns)
        self._fit_categories(columns)
        self._fit_texts(columns)
        counts = Counter(feature.column for feature in self.features_)
        if not counts:
            shown = "; ".join(f"{use.name!r} ({use.reason})" for use in uses)
            remedy = "Say what they are: {categorical}, {dates}, {text}."
            raise InputError("No column of the table is a feature: {0}.", shown, remedy=remedy, parameter="X")
        self.columns_ = [replace(use, n_features=counts[use.name]) for use in uses]
        self._choose_output(columns)

    def _rules(self, columns: Mapping[str, Column]) -> Rules:
        check_word("columns", self.columns, ("auto", "named"))
        check_count("min_frequency", self.min_frequency)
        check_count("max_categories", self.max_categories, least=2)
        check_count("max_words", self.max_words)
        if self.sparse_output not in ("auto", True, False):
            raise InputError("{sparse_output} must be 'auto', True or False; got {0!r}.", self.sparse_output)
        for name in names_of("text_features", self.text_features):
            check_word("text_features", name, TEXT_FEATURES)
        said: dict[str, str] = {}
        for parameter, kind, given in (
            ("categorical", "category", self.categorical),
            ("dates", "date", self.dates),
            ("text", "text", self.text),
            ("query_text", "query text", self.query_text),
            ("ignore", "unused", self.ignore),
        ):
            for name in names_of(parameter, given):
                if said.setdefault(name, kind) != kind:
                    problem = f"{{{parameter}}} names the column {{0!r}}, which was said to be of kind {{1!r}}."
                    raise InputError(problem, name, said[name], column=name)
        missing = [name for name in (*said, *checked_fills(self.impute)) if name not in columns]
        if missing:
            raise not_there(missing, columns)
        formats = names_of("date_format", self.date_format)
        return Rules(said, self.columns == "auto", self.min_frequency, formats, self._fills)

    def _fills(self, name: str) -> Any:
        """What missing numbers of a column count as; None if they may not be missing."""
        return self.impute.get(name) if isinstance(self.impute, Mapping) else self.impute

    def _fit_numbers(self, columns: Mapping[str, Column]) -> None:
        """Imputers of the numbers and ages, by what they fill in; and what is learned of dates."""
        numeric, lists = self._named("number", "date"), self._named("list")
        wrong = [name for name in checked_fills(self.impute) if name not in (*numeric, *lists)]
        if wrong:
            raise InputError("{impute} names {0!r}, which is no column of numbers or dates.", wrong[0], column=wrong[0])
        self.origins_: dict[str, float] = {}
        self.periods_: dict[str, list[str]] = {}
        groups: dict[Any, list[str]] = {}
        self._check_filled(columns)
        values = self._values(columns, "number", "date")
        for name in numeric:
            if name in self._named("date"):
                days = values[name]
                self.origins_[name] = origin = float(np.nanmax(days))
                span = origin - float(np.nanmin(days))
                self.periods_[name] = [period for period, length in PERIODS.items() if span >= 2 * length]
                values[name] = origin - days
            groups.setdefault(self._fills(name), []).append(name)
        self.least_ = {name: float(np.nanmin(values[name])) for name in numeric}
        self.imputers_ = [
            (names, imputer_for(fill, indicator=True).fit(np.column_stack([values[name] for name in names])))
            for fill, names in groups.items()
        ]
        self.lists_ = {
            name: imputer_for(self._fills(name), indicator=False).fit(
                columns[name].as_lists(columns[name].list_size)[0]
            )
            for name in lists
        }

    def _fit_categories(self, columns: Mapping[str, Column]) -> None:
        named = self._named("category")
        self.one_hot_: Any = None
        if named:
            from sklearn.preprocessing import OneHotEncoder

            self.one_hot_ = OneHotEncoder(
                min_frequency=self.min_frequency,
                max_categories=self.max_categories,
                handle_unknown="infrequent_if_exist",
                dtype=np.float64,
            ).fit(texts_of(columns, named))

    def _fit_texts(self, columns: Mapping[str, Column]) -> None:
        wanted = names_of("text_features", self.text_features)
        if not wanted:
            wanted = NEED_QUERY if self.query_text is not None else ("tfidf",)
        if self.query_text is None and (lacking := [name for name in wanted if name in NEED_QUERY]):
            problem = "{text_features} has {0!r}, which compares with the query's text, and there is none."
            raise InputError(problem, lacking[0], remedy="Give {query_text}.")
        self.text_features_ = [*wanted]
        self.vectorizers_: dict[str, dict[str, Any]] = {
            name: vectorizers(columns[name], wanted, self.max_words) for name in self._named("text")
        }

    def _choose_output(self, columns: Mapping[str, Column]) -> None:
        self.sparse_output_ = self.sparse_output != "auto" and bool(self.sparse_output)
        if self.sparse_output == "auto" and len(self.features_) > _FEW_COLUMNS:
            found = sparse.hstack([sparse.csr_array(part) for part in self._blocks(columns)])
            self.sparse_output_ = found.nnz < _DENSE_FROM * found.shape[0] * found.shape[1]

    # Encoding ---------------------------------------------------------------------------------------------------------

    def transform(self, X: Any) -> Any:
        """The features of a table's rows.

        Parameters
        ----------
        X : data frame of pandas or polars, table of pyarrow, or dict of columns, with m rows
            With the columns that ``fit`` used; others do not matter.

        Returns
        -------
        ndarray or csr_array of shape (m, n), float64
        """
        check_is_fitted(self, "columns_")
        return self._encoded(self._used(columns_of(X)))

    def count_unusual(self, X: Any) -> dict[str, dict[str, int]]:
        """How many cells of each column are missing, and how many are categories that ``fit`` has not seen.

        Parameters
        ----------
        X : as for ``transform``

        Returns
        -------
        dict of str to dict of str to int
            "missing" and "unseen" of each column that has such cells.
        """
        check_is_fitted(self, "columns_")
        columns = self._used(columns_of(X))
        categories = [] if self.one_hot_ is None else map(set, self.one_hot_.categories_)
        seen = dict(zip(self._named("category"), categories, strict=True))
        out: dict[str, dict[str, int]] = {}
        for use in self.columns_:
            if use.kind in ("unused", "query text"):
                continue
            column = columns[use.name]
            found = {"missing": int(column.missing.sum())}
            if use.name in seen:
                words, codes = column.as_texts()
                new = np.array([word != "" and word not in seen[use.name] for word in words])
                found["unseen"] = int(new[codes].sum())
            if any(found.values()):
                out[use.name] = {what: n for what, n in found.items() if n}
        return out

    def get_feature_names_out(self, input_features: ArrayLike | None = None) -> NDArray[Any]:
        """Names of the features, in the words of columns and categories.

        Parameters
        ----------
        input_features : ignored
            For scikit-learn.

        Returns
        -------
        ndarray of str objects, shape (n,)
        """
        check_is_fitted(self, "columns_")
        return np.array([feature.name for feature in self.features_], dtype=object)

    @property
    def features_(self) -> tuple[EncodedFeature, ...]:
        """What each feature is, in order."""
        return tuple(features_of(self))

    @property
    def columns_needed_(self) -> list[str]:
        """The columns that ``transform`` looks at."""
        texts = self._named("text")
        return [use.name for use in self.columns_ if use.kind != "unused" and (use.kind != "query text" or texts)]

    def _named(self, *kinds: str) -> list[str]:
        """The columns of some kinds."""
        return [use.name for use in self.columns_ if use.kind in kinds]

    def _used(self, columns: dict[str, Column]) -> dict[str, Column]:
        missing = [name for name in self.columns_needed_ if name not in columns]
        if missing:
            raise not_there(missing, columns)
        return columns

    def _encoded(self, columns: dict[str, Column]) -> Any:
        blocks = list(self._blocks(columns))
        if self.sparse_output_:
            return sparse.csr_array(sparse.hstack([sparse.csr_array(part) for part in blocks], format="csr"))
        return np.hstack([part.toarray() if sparse.issparse(part) else part for part in blocks])

    def _blocks(self, columns: Mapping[str, Column]) -> Iterator[Any]:
        """The features of all columns of a kind at a time, in the order of ``features_``."""
        values = self._values(columns, "number", "date", "list")
        self._check_filled(columns)
        for name, origin in self.origins_.items():
            values[name] = origin - values[name]
        for names, imputer in self.imputers_:
            yield imputer.transform(np.column_stack([values[name] for name in names]))
        for name, periods in self.periods_.items():
            for period in periods:
                angle = 2.0 * np.pi / PERIODS[period] * values[name]
                yield np.nan_to_num(np.column_stack([np.sin(angle), np.cos(angle)]), nan=0.0)
        for name, imputer in self.lists_.items():
            yield imputer.transform(values[name])
            if any(use.n_missing for use in self.columns_ if use.name == name):
                yield columns[name].missing[:, None].astype(np.float64)
        if self.one_hot_ is not None:
            yield self.one_hot_.transform(texts_of(columns, self._named("category")))
        for name, made in self.vectorizers_.items():
            for kind in self.text_features_:
                yield text_features(columns[name], columns.get(str(self.query_text)), kind, made.get(kind))

    def _values(self, columns: Mapping[str, Column], *kinds: str) -> dict[str, NDArray[np.float64]]:
        """Numbers, days and lists, NaN where they are missing; an error for all columns that hold something else."""
        formats = names_of("date_format", self.date_format)
        values, errors = {}, []
        for name, kind in ((use.name, use.kind) for use in self.columns_ if use.kind in kinds):
            size = self.lists_[name].n_features_in_ if kind == "list" else 0
            fills = self._fills(name) is not None
            try:
                values[name] = values_of(columns[name], kind, size=size, formats=formats, fills=fills)
            except InputError as error:
                errors.append(error)
        if errors:
            raise errors[0].joined(errors[1:])
        return values

    def _check_filled(self, columns: Mapping[str, Column]) -> None:
        numeric = self._named("number", "date", "list")
        check_filled(columns[name] for name in numeric if self._fills(name) is None)

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.two_d_array = False
        tags.input_tags.categorical = True
        tags.input_tags.string = True
        tags.input_tags.allow_nan = True
        return tags
