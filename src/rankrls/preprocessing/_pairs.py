"""Features of a query and an item from their embeddings."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from rankrls._checks import check_finite, check_word, numbers_of
from rankrls._errors import InputError
from rankrls._typing import Array

_PARTS = ("product", "difference", "cosine")


def pair_features(
    query_vectors: ArrayLike, item_vectors: ArrayLike, *, parts: Sequence[str] = ("product", "cosine")
) -> Array:
    r"""Compute features of pairs of a query and an item from their vectors, such as embeddings of texts.

    With u and v scaled to the length :math:`n^{1/4}`, the columns for a pair are

    ==============  =================================  =======
    part            columns                            number
    ==============  =================================  =======
    ``product``     :math:`u_k v_k`                    n
    ``difference``  :math:`|u_k - v_k|`                n
    ``cosine``      :math:`u'v / \sqrt n`, the cosine  1
    ==============  =================================  =======

    A linear model of the products is a cosine with weighted terms.

    Parameters
    ----------
    query_vectors : array-like of shape (m, n) or (n,)
        Vector of each pair's query, or of one query for all items.
    item_vectors : array-like of shape (m, n)
        Vector of each pair's item.
    parts : sequence of {"product", "difference", "cosine"}, default=("product", "cosine")
        Parts, in the order of the columns.

    Returns
    -------
    ndarray of shape (m, columns)

    Raises
    ------
    InputError
        If vectors differ in length, numbers are not finite, or parts are unknown.

    Notes
    -----
    With this length, the squares of the products of a pair sum to about 1 if no direction dominates, and the default
    width of kernels, ``gamma = 1 / columns``, is wide: the kernel is then nearly a polynomial of low degree. A vector
    of zeros remains zero. O(m n).

    Examples
    --------
    >>> from rankrls.preprocessing import pair_features
    >>> pair_features([1.0, 0.0], [[2.0, 0.0], [0.0, 3.0]], parts=["product", "cosine"]).round(3)
    array([[1.414, 0.   , 1.   ],
           [0.   , 0.   , 0.   ]])
    """
    items = numbers_of("item_vectors", item_vectors)
    queries = np.atleast_2d(numbers_of("query_vectors", query_vectors))
    if items.ndim != 2 or queries.shape not in (items.shape, (1, *items.shape[1:])):
        problem = f"query_vectors must have the shape of item_vectors, {items.shape}, or that of one row"
        raise InputError(f"{problem}; got {queries.shape}.", parameter="query_vectors")
    check_finite("item_vectors", items, "component")
    check_finite("query_vectors", queries, "component")
    for part in parts:
        check_word("parts", part, _PARTS)
    u = _of_common_length(queries)
    v = _of_common_length(items)
    product = u * v
    columns = {
        "product": product,
        "difference": np.abs(u - v),
        "cosine": product.sum(axis=1, keepdims=True) / np.sqrt(items.shape[1]),
    }
    return np.hstack([columns[part] for part in parts])


def _of_common_length(vectors: Array) -> Array:
    """Rows scaled to the length n^(1/4); rows of zeros are unchanged."""
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    return np.asarray(vectors * (vectors.shape[1] ** 0.25 / np.where(lengths > 0.0, lengths, 1.0)))
